"""An etcd of our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.request import urlopen

from tools.servers.own import OwnServer
from tools.servers.process import HOST, free_port


class EtcdServer(OwnServer):
    """An etcd, alone in its cluster, that keeps its data in a temporary folder as long as this object is open."""

    def __init__(self) -> None:
        super().__init__("etcd", account="etcd")
        self._peers = f"http://{HOST}:{free_port()}"

    def url(self) -> str:
        """Return its address, for the JSON gateway as well."""
        return f"http://{HOST}:{self.port}"

    def _arguments(self) -> Iterable[str | Path]:
        return (
            *("--data-dir", self._process.folder / "data", "--log-level", "error"),
            *("--listen-client-urls", self.url(), "--advertise-client-urls", self.url()),
            *("--listen-peer-urls", self._peers, "--initial-advertise-peer-urls", self._peers),
            *("--initial-cluster", f"default={self._peers}"),
        )

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url()}/health", timeout=1) as answer:  # noqa: S310 -- our own address
                return b"true" in answer.read()
        except OSError:
            return False
