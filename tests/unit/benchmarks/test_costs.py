from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.peers.systems import base
from benchmarks.processes import held, parent, spent, tree, usage

CHILD = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0); print(p.pid, flush=True); p.wait()"


def test_a_tree_holds_the_children_of_children() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        grandchild = int(child.stdout.readline())
        assert parent(grandchild) == child.pid
        assert set(tree(child.pid)) == {child.pid, grandchild}
        assert {child.pid, grandchild} <= set(tree(os.getpid()))
        assert held(child.pid) > 1
        child.stdin.close()


def test_processor_time_is_read_finely_enough_to_see_a_millisecond() -> None:
    before = usage([os.getpid()])
    until = time.process_time() + 0.001
    while time.process_time() < until:
        pass
    assert 0.001 <= spent(before, usage([os.getpid()])) < 10


def test_a_process_that_came_in_between_counts_whole_and_one_that_went_not_at_all() -> None:
    assert spent({1: 5.0, 2: 1.0}, {1: 5.5, 3: 0.25}) == 0.75


def test_what_a_handler_notes_can_be_read_while_the_next_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(base.LEDGER, str(tmp_path / "ledger"))
    monkeypatch.setattr(base, "_opened", [])
    before = time.time()
    base.record(7, 12.25)
    content = (tmp_path / "ledger").read_bytes() + b"half an entry"
    [(number, at, due)] = base.entries(content)
    assert (number, due) == (7, 12.25)
    assert before <= at <= time.time()
