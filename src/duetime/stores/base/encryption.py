"""Whether a connection is encrypted and the server's identity checked, and whether a password may be sent by it."""

from __future__ import annotations

import ssl
from typing import Any, cast

from duetime.stores.base.values import DoctorCheck


def is_local(peer: object) -> bool:
    """Whether the other end of a connection is on this host, by the address that the system reports; None is unknown."""
    if not isinstance(peer, tuple):
        # A socket in the file system has a path, or no name at all.
        return isinstance(peer, str | bytes)
    address = str(cast("tuple[object, ...]", peer)[0])
    return address == "::1" or address.removeprefix("::ffff:").startswith("127.")


def may_send_password(transport: Any) -> bool:
    """Whether a password may be sent as it is: by TLS, or to this host."""
    return transport.get_extra_info("ssl_object") is not None or is_local(
        transport.get_extra_info("peername")
    )


def examine_tls(transport: Any, *, encrypt: str, verify: str) -> DoctorCheck:
    """Say how a connection is encrypted; `encrypt` and `verify` are the fixes if it is not, or if the server is not checked."""
    local = is_local(transport.get_extra_info("peername"))
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    if tls is None:
        detail = "; the server is on this host" if local else ": others on the network can read it"
        return DoctorCheck.of("tls", local, f"not encrypted{detail}", encrypt)
    cipher = tls.cipher()
    detail = f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}"
    if tls.context.verify_mode is not ssl.CERT_REQUIRED:
        detail += "; the certificate of the server is not checked: another server may have answered"
        return DoctorCheck.of("tls", local, detail, verify)
    checked = "certificate and host name of the server are checked"
    if not tls.context.check_hostname:
        checked = "the certificate of the server is checked, its host name is not"
    return DoctorCheck.of("tls", ok=True, detail=f"{detail}; {checked}")
