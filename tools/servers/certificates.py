"""Certificates for servers that speak TLS, signed by an authority of our own."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tools.servers.binaries import find
from tools.servers.process import HOST

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


class Certificate(NamedTuple):
    """Where a certificate and its key lie."""

    file: Path
    key: Path


class Authority:
    """Signs certificates as long as this object is open; its files can be read by any account."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="duetime-certificates-")
        # Servers run under an account of their own.
        Path(self._folder.name).chmod(0o755)
        self._own = self._make("authority", "-x509", "-subj", "/CN=authority")

    @property
    def file(self) -> Path:
        """What whoever trusts this authority is told."""
        return self._own.file

    def sign(self, name: str, *, host: str = f"IP:{HOST}") -> Certificate:
        """Return a certificate for a host, `IP:...` or `DNS:...`."""
        own = self._own
        return self._make(
            name,
            *("-x509", "-subj", f"/CN={name}", "-addext", f"subjectAltName={host}"),
            *("-addext", "basicConstraints=critical,CA:FALSE", "-CA", str(own.file), "-CAkey", str(own.key)),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def _make(self, name: str, *options: str) -> Certificate:
        made = Certificate(*(Path(self._folder.name) / f"{name}.{kind}" for kind in ("pem", "key")))
        subprocess.run(
            [find("openssl"), "req", *_EC, "-keyout", made.key, "-out", made.file, *options],
            check=True,
            capture_output=True,
        )
        made.key.chmod(0o644)
        return made
