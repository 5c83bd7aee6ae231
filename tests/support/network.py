"""A network of the kernel's own with one host in it, which a test can make lose every packet."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Interface

import pytest


class Network:
    """A namespace that is joined to this host by one wire."""

    def __init__(self) -> None:
        token = f"{random.getrandbits(32):08x}"
        self.name = f"duetime-{token}"
        self._wires = (f"dt{token}a", f"dt{token}b")
        wire, first = f"10.{random.randrange(200, 250)}.{random.randrange(256)}", 4 * random.randrange(64)
        self.here = IPv4Interface(f"{wire}.{first + 1}/30")
        """The address of this host in it."""
        self._there = IPv4Interface(f"{wire}.{first + 2}/30")

    def open(self) -> None:
        """Make the namespace and the wire."""
        here, there = self._wires
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", self.name)
        _run("ip", "address", "add", str(self.here), "dev", here)
        _run("ip", "-n", self.name, "address", "add", str(self._there), "dev", there)
        _run("ip", "link", "set", here, "up")
        _run("ip", "-n", self.name, "link", "set", there, "up")

    def lose_all(self) -> None:
        """Drop every packet at both ends without a word: queues that hold none."""
        here, there = self._wires
        _run("tc", "qdisc", "add", "dev", here, "root", "pfifo", "limit", "0")
        _run("tc", "-n", self.name, "qdisc", "add", "dev", there, "root", "pfifo", "limit", "0")

    def lose_none(self) -> None:
        """Let packets through again."""
        here, there = self._wires
        _run("tc", "qdisc", "del", "dev", here, "root")
        _run("tc", "-n", self.name, "qdisc", "del", "dev", there, "root")

    def close(self) -> None:
        """Remove it all; the wire goes with the namespace, and at once with its near end."""
        for command in (("ip", "link", "del", self._wires[0]), ("ip", "netns", "del", self.name)):
            with suppress(AssertionError, OSError):
                _run(*command)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, f"{' '.join(command)}: {done.stderr}"


@contextmanager
def opened() -> Iterator[Network]:
    """Make a network, or skip the test where that is not allowed; as root, `CI` allows no skip."""
    network = Network()
    try:
        if os.geteuid() != 0:
            pytest.skip("only root can make a network namespace")
        try:
            network.open()
        except (AssertionError, OSError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"`ip` cannot make a network namespace here: {error}")
        yield network
    finally:
        network.close()
