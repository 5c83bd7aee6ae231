"""One virtual environment per system, made once: their pins clash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.systems import System

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench" / "envs"
_STAMP = "requirements.txt"
_INHERITED = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")


def python(system: System, folder: Path = ENVIRONMENTS) -> Path:
    """Return the interpreter that a system runs in, and make its environment if it is missing or outdated."""
    home = folder / system.environment
    wanted = "".join(f"{pin}\n" for pin in system.requirements)
    stamp = home / _STAMP
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment for {system.adapter}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        subprocess.run([*pip, *system.requirements], check=True)
        stamp.write_text(wanted)
    return home / "bin" / "python"


def surroundings(system: System, *, ledger: Path | None = None) -> dict[str, str]:
    """Return the environment variables of a system's process: its own packages, and of ours the adapters only, or all."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    paths = [ROOT / "src", ROOT] if system.ours else [ROOT]
    found = {**inherited, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONUNBUFFERED": "1"}
    return found if ledger is None else {**found, "PEERS_LEDGER": str(ledger)}


def versions(system: System) -> dict[str, str]:
    """Return what is installed for a system, by name."""
    code = "import importlib.metadata as m; print(*sorted({d.metadata['Name'] + '==' + d.version for d in m.distributions()}))"
    done = subprocess.run([str(python(system)), "-c", code], check=True, capture_output=True, text=True)
    return dict(pin.split("==", 1) for pin in done.stdout.split())
