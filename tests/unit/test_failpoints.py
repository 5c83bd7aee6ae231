from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from duetime import failpoints
from duetime.errors import ConfigError
from duetime.failpoints import InjectedFault, arm, failpoint


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    arm(None)


def test_an_unarmed_failpoint_does_nothing() -> None:
    failpoint("after:claim")


def test_an_armed_failpoint_fails_at_its_own_place_only() -> None:
    arm("after:claim:raise")
    failpoint("before:claim")
    with pytest.raises(InjectedFault, match="after:claim"):
        failpoint("after:claim")


def test_a_failpoint_waits_for_its_turn_and_acts_once() -> None:
    arm("after:claim:raise:2")
    failpoint("after:claim")
    with pytest.raises(InjectedFault):
        failpoint("after:claim")
    failpoint("after:claim")


@pytest.mark.parametrize("setting", ["after:claim", "explode", "after:claim:explode", ":kill"])
def test_a_setting_that_is_not_understood_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="place:action"):
        arm(setting)


def test_the_environment_arms_a_process_to_die() -> None:
    code = "from duetime.failpoints import failpoint; failpoint('after:settle')"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, env={failpoints.VARIABLE: "after:settle:kill"}
    )
    assert done.returncode == -signal.SIGKILL
