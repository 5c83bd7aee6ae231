"""`duetime tokens`, and `duetime api` as a real process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.acceptance.kit import URL, duetime, from_json, until


@pytest.fixture(autouse=True)
def _database(folder: Path) -> None:
    duetime("migrate", *URL)


def api(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "duetime.cli", "api", *URL, "--port", "0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_token_is_shown_once_listed_and_revoked() -> None:
    made = duetime("tokens", "add", "ci", "--role", "operator", "--queue", "mail", "--expires", "30d", *URL)
    secret = made.stdout.strip()
    assert secret.startswith("dt_")
    assert secret not in made.stderr
    (token,) = from_json("tokens", "list", *URL)
    assert (token["name"], token["role"], token["queues"]) == ("ci", "operator", ["mail"])
    listed = duetime("tokens", "list", *URL).stdout
    assert "good" in listed
    assert secret not in listed
    assert duetime("tokens", "add", "ci", *URL).exit_code == 2
    assert duetime("tokens", "revoke", "ci", *URL).exit_code == 0
    assert "revoked" in duetime("tokens", "list", *URL).stdout
    assert duetime("tokens", "revoke", "ci", *URL).exit_code == 3
    assert from_json("tokens", "add", "ci", "--forever", *URL)["token"].startswith("dt_")


def test_the_api_by_itself_says_a_link_that_signs_in_once() -> None:
    with api() as process:
        try:
            link = until(process, "sign-in?code=").rpartition(" ")[2].strip()
            with httpx.Client(follow_redirects=True) as browser:
                assert browser.get(link).json() == {"name": "link", "role": "admin", "queues": None}
                assert browser.get(link).status_code == 401
                assert browser.get(link.partition("/sign-in")[0] + "/api/v1/jobs").json()["items"] == []
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=20)[0]
            assert "code=" not in rest
            assert process.returncode in {0, -signal.SIGTERM}
        finally:
            process.kill()


def test_where_others_can_reach_it_it_wants_tokens_first() -> None:
    refused = duetime("api", "--host", "0.0.0.0", "--port", "0", *URL)  # noqa: S104 - that is what is refused
    assert refused.exit_code == 2
    assert "duetime tokens add" in refused.stderr
    token = duetime("tokens", "add", "ci", *URL).stdout.strip()
    with api("--host", "0.0.0.0") as process:  # noqa: S104
        try:
            said = until(process, "Serving on")
            port = said.partition(";")[0].rpartition(":")[2]
            headers = {"Authorization": f"Bearer {token}"}
            assert (
                httpx.get(f"http://127.0.0.1:{port}/api/v1/session", headers=headers).json()["name"] == "ci"
            )
        finally:
            process.kill()
