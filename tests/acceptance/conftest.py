from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.kit import APP


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with an application in it, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUETIME_URL", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(APP)
    yield tmp_path
    # Nothing else: an extension module that is imported a second time may well crash the interpreter.
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
