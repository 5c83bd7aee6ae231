"""A cluster of several primaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from redis.crc import key_slot

from tests.integration.kit import until
from tests.integration.redis.kit import follows, tell
from tools.servers import RedisServer
from tools.servers.process import HOST, free_port

_SLOTS = 16_384
_SOON, _LATE = "1000", "60000"
"""After how many milliseconds the others believe that a server is dead; a busy machine may keep one waiting."""


def slot_of(namespace: str = "duetime") -> int:
    """Return the slot of all keys of a namespace."""
    slot: int = key_slot(f"{{{namespace}}}".encode())
    return slot


class Member(RedisServer):
    """One server of a cluster."""

    def __init__(self) -> None:
        self.bus = free_port()
        super().__init__(
            *("--cluster-enabled", "yes", "--cluster-port", str(self.bus)),
            *("--cluster-node-timeout", _SOON, "--repl-diskless-sync-delay", "0"),
        )

    @property
    def place(self) -> str:
        """Where it is, as others tell of it."""
        return f"{HOST}:{self.port}"


class Cluster:
    """Servers that share the slots."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    def url(self, *members: Member, **options: object) -> str:
        """Return an address that names some members."""
        places = ",".join(member.place for member in members or self.members)
        return f"redis+cluster://{places}?" + "&".join(f"{key}={value}" for key, value in options.items())

    def owner(self, namespace: str = "duetime") -> Member:
        """Return the primary that keeps a namespace."""
        return self.members[slot_of(namespace) * len(self.members) // _SLOTS]

    async def form(self, *, mortal: bool = False) -> None:
        """Share the slots out and wait until all agree; those that are mortal are soon missed."""
        count = len(self.members)
        bounds = [-(-_SLOTS * number // count) for number in range(count + 1)]
        for number, member in enumerate(self.members):
            await tell(member, "CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
            await tell(member, "CLUSTER", "ADDSLOTSRANGE", str(bounds[number]), str(bounds[number + 1] - 1))
            await self._meet(member)
        await self._agree(*self.members)
        if not mortal:
            for member in self.members:
                await tell(member, "CONFIG", "SET", "cluster-node-timeout", _LATE)

    async def follow(self, replica: Member, primary: Member) -> None:
        """Let a server follow one of the primaries."""
        await self._meet(replica)
        await self._agree(*self.members, replica)
        await tell(replica, "CLUSTER", "REPLICATE", await self._id(primary))
        await follows(replica, primary)

    async def begin_to_move(self, slot: int, source: Member, target: Member) -> None:
        """Declare that the keys of a slot are on their way."""
        await tell(target, "CLUSTER", "SETSLOT", str(slot), "IMPORTING", await self._id(source))
        await tell(source, "CLUSTER", "SETSLOT", str(slot), "MIGRATING", await self._id(target))

    async def move(self, slot: int, source: Member, target: Member) -> None:
        """Bring the keys of a slot to another member."""
        keys = [key.decode() for key in await tell(source, "CLUSTER", "GETKEYSINSLOT", str(slot), "1000")]
        await tell(source, "MIGRATE", HOST, str(target.port), "", "0", "5000", "KEYS", *keys)
        for member in (target, source, *self.members):
            await tell(member, "CLUSTER", "SETSLOT", str(slot), "NODE", await self._id(target))

    async def _id(self, member: Member) -> str:
        name: bytes = await tell(member, "CLUSTER", "MYID")
        return name.decode()

    async def _meet(self, member: Member) -> None:
        first = self.members[0]
        if member is not first:
            await tell(member, "CLUSTER", "MEET", HOST, str(first.port), str(first.bus))

    async def _agree(self, *members: Member) -> None:
        async def agreed() -> bool:
            told: list[dict[str, Any]] = [await tell(member, "CLUSTER INFO") for member in members]
            known = {(info["cluster_state"], info["cluster_known_nodes"]) for info in told}
            return known == {("ok", str(len(members)))}

        await until(agreed, what="a cluster")


@contextmanager
def servers(count: int) -> Iterator[list[Member]]:
    """Servers that may become a cluster."""
    with ExitStack() as running:
        yield [running.enter_context(Member()) for _ in range(count)]
