"""Servers that are after the password of who connects to them, and a look at what they get.

As a program, in a network namespace of its own: `python -m tests.integration.rogues ADDRESS` prints, for each of them, what
became of a store and what the server heard.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from duetime.stores.open import open_store

PASSWORD: Final = "tops3cret"
_SSL_REQUEST: Final = bytes.fromhex("0000000804d2162f")
_CLEAR: Final = b"R\0\0\0\x08\0\0\0\x03"
_SCRAM: Final = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
_SALT: Final = b"abcdefghijklmnopqrst"
_KEY: Final = b"\x01-----BEGIN PUBLIC KEY-----"


class Heard(bytearray):
    """All that was sent to a server."""


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Heard], Awaitable[None]]


async def _message(reader: asyncio.StreamReader, heard: Heard, size: int) -> bytes:
    data = await reader.readexactly(size)
    heard += data
    return data


async def _start_of_postgres(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard
) -> None:
    """Refuse TLS, if asked, and read how the client introduces itself."""
    first = await _message(reader, heard, 8)
    if first == _SSL_REQUEST:
        writer.write(b"N")
        first = await _message(reader, heard, 8)
    await _message(reader, heard, int.from_bytes(first[:4], "big") - 8)


async def clear_postgres(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
    """Ask for the password in clear."""
    await _start_of_postgres(reader, writer, heard)
    writer.write(_CLEAR)


async def turning_postgres(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
    """Begin with a safe way to log in, and ask for the password in clear then."""
    await _start_of_postgres(reader, writer, heard)
    writer.write(_SCRAM)
    head = await _message(reader, heard, 5)
    await _message(reader, heard, int.from_bytes(head[1:], "big") - 4)
    writer.write(_CLEAR)


async def breaking_postgres(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
    """Agree to TLS and break it, so that the client tries without; then ask in clear."""
    first = await _message(reader, heard, 8)
    if first == _SSL_REQUEST:
        writer.write(b"S")
        await _message(reader, heard, 1)
        writer.write(b"no TLS here")
        return
    await _message(reader, heard, int.from_bytes(first[:4], "big") - 8)
    writer.write(_CLEAR)


def mysql(plugin: bytes, switch: bytes, *answers: bytes) -> Serve:
    """Greet with a way to log in, and send these once the client has introduced itself, one after each answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
        greeting = (
            b"\x0a8.0.0-rogue\0" + bytes(4) + _SALT[:8] + b"\0" + (0x8208).to_bytes(2, "little") + b"\x2d\2\0"
            b"\x08\0" + bytes([21]) + bytes(10) + _SALT[8:] + b"\0" + plugin + b"\0"
        )  # fmt: skip
        _send(writer, 0, greeting)
        for number, payload in enumerate((switch, *answers)):
            head = await _message(reader, heard, 4)
            await _message(reader, heard, int.from_bytes(head[:3], "little"))
            _send(writer, 2 * number + 2, payload)

    return serve


def _send(writer: asyncio.StreamWriter, number: int, payload: bytes) -> None:
    writer.write(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


class Case(NamedTuple):
    """A URL, and who answers there."""

    url: str
    serve: Serve


CASES: Final = {
    "postgres": Case("postgresql://ann:{password}@{host}:{port}/jobs", clear_postgres),
    "postgres-disable": Case(
        "postgresql://ann:{password}@{host}:{port}/jobs?sslmode=disable", clear_postgres
    ),
    "postgres-allow": Case("postgresql://ann:{password}@{host}:{port}/jobs?sslmode=allow", clear_postgres),
    "postgres-environment": Case("postgresql://ann@{host}:{port}/jobs", clear_postgres),
    "postgres-turning": Case("postgresql://ann:{password}@{host}:{port}/jobs", turning_postgres),
    "postgres-breaking": Case("postgresql://ann:{password}@{host}:{port}/jobs", breaking_postgres),
    "mariadb": Case(
        "mariadb://ann:{password}@{host}:{port}/jobs",
        mysql(b"mysql_native_password", b"\xfemysql_clear_password\0"),
    ),
    "mariadb-dialog": Case(
        "mariadb://ann:{password}@{host}:{port}/jobs",
        mysql(b"mysql_native_password", b"\xfedialog\0\x05Password: "),
    ),
    "mysql-key": Case(
        "mysql://ann:{password}@{host}:{port}/jobs",
        mysql(b"mysql_native_password", b"\xfesha256_password\0" + _SALT + b"\0", _KEY),
    ),
    "mysql-cached-key": Case(
        "mysql://ann:{password}@{host}:{port}/jobs", mysql(b"caching_sha2_password", b"\x01\x04", _KEY)
    ),
}


@asynccontextmanager
async def rogue(case: Case, host: str) -> AsyncIterator[tuple[str, Heard]]:
    """Serve, and give the URL and what is heard."""
    heard, ended = Heard(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await case.serve(reader, writer, heard)
            heard.extend(await reader.read(4096))
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            ended.set()

    async with await asyncio.start_server(serve, host) as server:
        port = server.sockets[0].getsockname()[1]
        place = f"[{host}]" if ":" in host else host
        yield case.url.format(password=PASSWORD, host=place, port=port), heard
        await asyncio.wait_for(ended.wait(), 5)


async def what_it_gets(case: Case, host: str) -> tuple[str, bytes]:
    """Return what became of a store that was opened, and what the server heard."""
    async with rogue(case, host) as (url, heard):
        store = open_store(url)
        try:
            await store.open()
            said = "open"
        except Exception as error:  # noqa: BLE001 -- what it was is what the tests look at
            said = f"{type(error).__name__}: {error}"
        finally:
            await store.close()
    return said, bytes(heard)


async def _main(host: str) -> None:
    for name, case in CASES.items():
        said, heard = await what_it_gets(case, host)
        sys.stdout.write(json.dumps({"name": name, "said": said, "heard": heard.hex()}) + "\n")


if __name__ == "__main__":
    os.environ["PGPASSWORD"] = PASSWORD
    asyncio.run(_main(sys.argv[1]))
