from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from duetime.runtime import identity as liveness
from duetime.runtime.identity import WorkerIdentity, host_key, is_gone, process_started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_this_process_lives() -> None:
    assert not is_gone(os.getpid(), process_started(os.getpid()))


def test_a_process_id_that_was_given_to_another_process_does_not_keep_the_first_alive() -> None:
    started = process_started(os.getpid())
    assert started is not None
    assert is_gone(os.getpid(), str(int(started) - 1))


def test_a_process_that_ended_is_gone_also_while_nobody_has_collected_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_started(process.pid)
    try:
        assert not is_gone(process.pid, started)
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(process.pid, started), "a zombie"
    finally:
        process.kill()
        process.wait()
    assert is_gone(process.pid, started)


def test_a_process_that_is_collected_while_it_is_looked_at_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    look = liveness._read_stat

    def collected(pid: int) -> list[str] | None:
        process.wait()
        return look(pid)

    monkeypatch.setattr(liveness, "_read_stat", collected)
    assert is_gone(process.pid, None)


def test_a_stopped_process_is_not_gone() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"]
    )
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert not is_gone(process.pid, process_started(process.pid))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("pid", [0, -1, -(2**31)])
def test_a_number_that_is_no_process_is_never_believed_gone(pid: int) -> None:
    assert not is_gone(pid, None)


def test_without_a_start_time_a_living_process_id_is_believed() -> None:
    assert not is_gone(os.getpid(), None)


def test_a_command_name_with_brackets_does_not_confuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields = " ".join(["S", *map(str, range(1, 40))])
    text = f"77 (evil ) R 1 (name) {fields}"
    monkeypatch.setattr(liveness, "open", lambda *_, **__: io.StringIO(text), raising=False)
    assert process_started(77) == "19"


def test_where_nothing_can_be_seen_there_is_no_host_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(liveness, "open", refuse, raising=False)
    assert host_key() is None
    assert process_started(os.getpid()) is None


@pytest.mark.covers("cut-off-worker")
def test_where_the_ids_in_proc_are_those_of_another_namespace_there_is_no_host_key() -> None:
    shown = "from duetime.runtime.identity import host_key; print(host_key())"
    command = ["unshare", "--pid", "--fork", sys.executable, "-c", shown]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no pid namespace here: {done.stderr}")
    assert done.stdout == "None\n", done.stderr


def test_there_is_no_host_key_if_proc_shows_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_key() is not None
    read = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: "1" if path == "/proc/self" else read(path))
    assert host_key() is None


def test_processes_that_tell_start_times_differently_have_different_host_keys() -> None:
    shown = "from duetime.runtime.identity import host_key; print(host_key())"
    command = [*("unshare", "--time", "--boottime", "1000", "--fork"), sys.executable, "-c", shown]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no time namespace here: {done.stderr}")
    assert done.stdout.strip() not in {"None", host_key()}


@pytest.mark.covers("identity-after-fork")
def test_an_identity_is_never_used_twice() -> None:
    identity = WorkerIdentity(queues=["default"], slots=3)
    first = identity.info
    assert identity.renew() == identity.info != first
    assert (first.pid, first.slots, first.queues) == (os.getpid(), 3, ("default",))
    assert WorkerIdentity(queues=["default"], slots=3).info.id not in {first.id, identity.info.id}
