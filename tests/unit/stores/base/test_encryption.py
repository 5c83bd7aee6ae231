from __future__ import annotations

import ssl
from typing import Any

import pytest

from duetime.stores.base.encryption import examine_tls, is_local, may_send_password
from duetime.stores.sql.postgres.password_guard import is_password_in_clear

pytestmark = pytest.mark.covers("password-in-clear")

LOCAL = [
    ("127.0.0.1", 5432),
    ("127.8.9.10", 1),
    ("::1", 1, 0, 0),
    ("::ffff:127.0.0.1", 1, 0, 0),
    "",
    "/run/pg",
    b"\0x",
]
ELSEWHERE = [
    ("192.0.2.1", 5432),
    ("10.0.0.1", 1),
    ("128.0.0.1", 1),
    ("::127.0.0.1", 1, 0, 0),
    ("fe80::1", 1, 0, 2),
    None,
]


class Wire:
    """A transport that is asked what it is."""

    def __init__(self, peer: object, tls: object = None) -> None:
        self._facts = {"peername": peer, "ssl_object": tls}

    def get_extra_info(self, name: str) -> object:
        return self._facts[name]


class Tls:
    """What is known of an encrypted connection."""

    def __init__(self, mode: ssl.VerifyMode, *, names: bool) -> None:
        self.context: Any = type("Context", (), {"verify_mode": mode, "check_hostname": names})

    def version(self) -> str:
        return "TLSv1.3"

    def cipher(self) -> tuple[str, str, int]:
        return "TLS_AES_256_GCM_SHA384", "TLSv1.3", 256


FULL, UNCHECKED = Tls(ssl.CERT_REQUIRED, names=True), Tls(ssl.CERT_NONE, names=False)


@pytest.mark.parametrize("peer", LOCAL)
def test_a_password_may_be_sent_to_this_host(peer: object) -> None:
    assert is_local(peer)
    assert may_send_password(Wire(peer))


@pytest.mark.parametrize("peer", ELSEWHERE)
def test_a_password_may_be_sent_to_another_host_by_tls_only(peer: object) -> None:
    assert not is_local(peer)
    assert not may_send_password(Wire(peer))
    assert may_send_password(Wire(peer, UNCHECKED))


@pytest.mark.parametrize(
    ("wire", "ok", "says", "fix"),
    [
        (Wire(LOCAL[0]), True, "not encrypted; the server is on this host", None),
        (Wire(LOCAL[0], UNCHECKED), True, "is not checked", None),
        (Wire(ELSEWHERE[0]), False, "not encrypted: others on the network can read it", "encrypt"),
        (
            Wire(ELSEWHERE[0], UNCHECKED),
            False,
            "TLSv1.3, TLS_AES_256_GCM_SHA384; the certificate of the server is not",
            "verify",
        ),
        (
            Wire(ELSEWHERE[0], Tls(ssl.CERT_REQUIRED, names=False)),
            True,
            "certificate of the server is checked, its host",
            None,
        ),
        (Wire(ELSEWHERE[0], FULL), True, "certificate and host name of the server are checked", None),
    ],
)
def test_the_doctor_says_how_a_connection_is_encrypted_and_what_was_checked(
    wire: Wire, ok: bool, says: str, fix: str | None
) -> None:
    check = examine_tls(wire, encrypt="encrypt", verify="verify")
    assert (check.name, check.ok, check.fix) == ("tls", ok, fix)
    assert says in check.detail


def message(kind: bytes, text: bytes) -> bytes:
    return kind + (len(text) + 4).to_bytes(4, "big") + text


@pytest.mark.parametrize(
    ("sent", "clear"),
    [
        (message(b"p", b"secret\0"), True),
        (message(b"p", b"md5secret\0"), True),
        (message(b"p", "sécret".encode() + b"\0"), True),
        (message(b"p", b"n,,n=ann,r=nonce\0"), True),
        (message(b"p", b"\0"), False),
        (message(b"p", b"md5" + b"0123456789abcdef" * 2 + b"\0"), False),
        (message(b"p", b"SCRAM-SHA-256\0\0\0\0\x10n,,n=ann,r=nonce"), False),
        (message(b"p", b"c=biws,r=nonce,p=proof"), False),
        (message(b"Q", b"SELECT 'p'\0"), False),
        (b"", False),
        (memoryview(message(b"p", b"secret\0")), True),
    ],
)
def test_a_password_in_clear_is_recognized_among_all_answers_of_a_login(sent: bytes, clear: bool) -> None:
    assert is_password_in_clear(sent) is clear
