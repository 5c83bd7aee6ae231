"""A run ends by saying what it left out, also when that is nothing."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = len(terminalreporter.getreports("skipped"))
    if skipped:
        terminalreporter.section(f"SKIPPED {skipped} TESTS, reasons above", sep="!", yellow=True, bold=True)
    else:
        terminalreporter.line("Skipped: nothing.")
