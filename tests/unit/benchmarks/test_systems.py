from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import adapters
from benchmarks.peers.systems import SYSTEMS, System

every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


def test_no_two_systems_have_one_name() -> None:
    assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)


@every_system
def test_every_system_has_its_adapter(system: System) -> None:
    assert (Path(adapters.__path__[0]) / f"{system.adapter}.py").is_file()


@every_system
def test_versions_are_pinned_exactly(system: System) -> None:
    assert all("==" in requirement for requirement in system.requirements)
    assert system.requirements


@every_system
def test_settings_and_notes_are_there_to_be_judged(system: System) -> None:
    assert system.settings
    assert not system.notes or system.notes.endswith(".")
