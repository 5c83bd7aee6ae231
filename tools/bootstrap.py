"""Make a virtual environment from the running interpreter, and install the project with one of its extras.

Runs before anything is installed: standard library only, and a syntax that older interpreters can still
read, so that they get a sentence and not a traceback.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from tools import apt

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


CONTENTS = {
    "dev": "all that tests, linters and type checkers need: about a minute the first time",
    "web": "what the demo needs, FastAPI and uvicorn: a few seconds",
}


def main(extra: str = "dev", folder: str = ".venv") -> None:
    """Leave behind an environment in which tests, linters and type checkers run, or with `web` the demo."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"Duetime needs Python 3.11 or newer; {sys.executable} is {found}. Try: make PYTHON=python3.12"
        )
    venv = ROOT / folder
    print(f"Installing into {venv.name}: {CONTENTS[extra]} …", flush=True)
    if not _usable(venv):
        _ensure_ensurepip()
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--editable", f"{ROOT}[{extra}]"], check=True)


def _usable(venv: Path) -> bool:
    """True when the environment's interpreter starts and has pip; an interrupted set-up leaves neither."""
    python = venv / "bin" / "python"
    return python.exists() and subprocess.run([python, "-c", "import pip"], check=False).returncode == 0


def _ensure_ensurepip() -> None:
    """Debian keeps `ensurepip` in a package of its own: install it as root, else name it."""
    if importlib.util.find_spec("ensurepip"):
        return
    package = f"python3.{sys.version_info.minor}-venv"
    if not apt.available():
        sys.exit(f"{sys.executable} cannot make virtual environments. Try: sudo apt install {package}")
    apt.install(package)


if __name__ == "__main__":
    main(*sys.argv[1:])
