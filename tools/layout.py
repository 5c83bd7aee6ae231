"""Write `docs/explanation/layout.md`: every file of the package and its one reason, from its first sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/duetime")
PAGE = Path("docs/explanation/layout.md")

HEADER = """\
# Layout

<!-- Written by `make docs` from the first sentence of each file; do not edit. -->

A file has one reason to exist. [Architecture](architecture.md) has the layers, and the folders around the package.
"""


def render(root: Path) -> str:
    """Return the text of the page."""
    return HEADER + "".join(_section(root, folder) for folder in _folders(root / PACKAGE))


def main() -> None:
    """Write the page."""
    (ROOT / PAGE).write_text(render(ROOT), encoding="utf-8")
    print(PAGE)


def _folders(package: Path) -> Iterator[Path]:
    yield package
    yield from sorted(path.parent for path in package.rglob("__init__.py") if path.parent != package)


def _section(root: Path, folder: Path) -> str:
    name = folder.relative_to(root / "src").as_posix()
    files = [path for path in _files(folder) if path.name != "__init__.py"]
    rows = "".join(
        f"| [`{path.relative_to(folder).as_posix()}`](../../{path.relative_to(root).as_posix()}) | {reason(path)} |\n"
        for path in files
    )
    table = f"\n| File | Reason |\n|---|---|\n{rows}" if rows else ""
    return f"\n## `{name}/`\n\n{reason(folder / '__init__.py')}\n{table}"


def _files(folder: Path) -> list[Path]:
    """Return the modules of a folder, and the SQL in it and below."""
    return sorted([*folder.glob("*.py"), *folder.glob("*.sql"), *folder.glob("migrations/*.sql")])


def reason(file: Path) -> str:
    """Return the first sentence of a file: of its docstring, or of the comment that an SQL file begins with."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".sql":
        return text.partition("\n")[0].removeprefix("--").strip()
    docstring = ast.get_docstring(ast.parse(text)) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


if __name__ == "__main__":
    main()
