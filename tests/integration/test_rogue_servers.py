"""No server gets a password by asking for it, unless it is on this host or has shown who it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.rogues import CASES, PASSWORD, what_it_gets

pytestmark = pytest.mark.covers("password-in-clear")

ELSEWHERE = "192.0.2.1"
NAMESPACE = 'ip link set lo up && ip address add "$1"/32 dev lo && shift && exec "$@"'


@pytest.fixture(scope="module")
def gathered() -> dict[str, dict[str, str]]:
    """What happens with each server, under an address that is not this host's own."""
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    program = [sys.executable, "-m", "tests.integration.rogues", ELSEWHERE]
    done = subprocess.run(
        [*unshare, "sh", "-c", NAMESPACE, "sh", ELSEWHERE, *program],
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_a_server_elsewhere_that_asks_for_the_password_does_not_get_it(
    gathered: dict[str, dict[str, str]], name: str
) -> None:
    heard = bytes.fromhex(gathered[name]["heard"])
    assert b"ann" in heard
    assert PASSWORD.encode() not in heard
    said = gathered[name]["said"]
    assert said.startswith("StoreUnusable: ")
    assert "asks for the password in clear, without TLS, and did not get it" in said
    assert said.endswith(("add ?sslrootcert=ca.pem", "add ?ssl_ca=ca.pem"))
    assert PASSWORD not in said


def test_a_password_is_not_encrypted_for_a_key_that_the_server_hands_out(
    gathered: dict[str, dict[str, str]],
) -> None:
    for name in ("mysql-key", "mysql-cached-key"):
        # The last that is sent asks for the key.
        assert bytes.fromhex(gathered[name]["heard"])[-5:-1].endswith(b"\0\0\x03"), name


@pytest.mark.parametrize(
    "name", ["postgres", "postgres-disable", "postgres-turning", "mariadb", "mariadb-dialog"]
)
async def test_a_server_on_this_host_may_ask(name: str) -> None:
    _, heard = await what_it_gets(CASES[name], "127.0.0.1")
    assert PASSWORD.encode() + b"\0" in heard
