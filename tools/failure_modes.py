"""Write `docs/explanation/failure-modes.md` from the catalogue and the tests that cover it.

The catalogue says what can go wrong and what Duetime promises instead; `@pytest.mark.covers("id")` on a
test says that it shows the promise. The page puts both together, so that no promise stands there untested.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = Path("docs/failure_modes.toml")
PAGE = Path("docs/explanation/failure-modes.md")
# The conformance suite ships with the package; its tests count like any other.
TEST_FOLDERS = (Path("tests"), Path("src/duetime/testing"))

HEADER = """\
# Failure modes

<!-- Written by `make docs` from docs/failure_modes.toml and the tests; do not edit. -->

What goes wrong with schedulers that share a database, what Duetime guarantees instead, and the tests that
show it.
"""

ENTRY = """
## {title}

Id: `{id}`

**What goes wrong.** {failure}

**What Duetime guarantees.** {guarantee}

**Shown by**

{tests}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMode:
    """One way in which a scheduler fails, and the promise that rules it out."""

    id: str
    title: str
    failure: str
    guarantee: str


# The tests, as pytest node ids, that cover each failure id.
Coverage = Mapping[str, Sequence[str]]


def read_catalogue(root: Path) -> list[FailureMode]:
    """Read the failure modes in the order in which the page shows them."""
    entries = tomllib.loads((root / CATALOGUE).read_text(encoding="utf-8")).get("failure", [])
    return [
        FailureMode(**{name: " ".join(text.split()) for name, text in entry.items()}) for entry in entries
    ]


def read_coverage(root: Path) -> Coverage:
    """Find every `covers` mark in the test files, without importing them."""
    coverage: dict[str, list[str]] = defaultdict(list)
    for folder in TEST_FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            module = file.relative_to(root).as_posix()
            for covered, node_id in _marks(ast.parse(file.read_text(encoding="utf-8")), module):
                coverage[covered].append(node_id)
    return coverage


def problems(catalogue: Sequence[FailureMode], coverage: Coverage) -> list[str]:
    """Say what keeps catalogue and tests from agreeing; an empty list when nothing does."""
    ids = [mode.id for mode in catalogue]
    return [
        *(
            f"{id_!r} is listed twice in {CATALOGUE}"
            for id_ in sorted({id_ for id_ in ids if ids.count(id_) > 1})
        ),
        *(
            f"{id_!r} has no test: mark one with @pytest.mark.covers({id_!r})"
            for id_ in ids
            if not coverage.get(id_)
        ),
        *(
            f"{coverage[id_][0]} covers {id_!r}, which is not in {CATALOGUE}"
            for id_ in coverage
            if id_ not in ids
        ),
    ]


def render(catalogue: Iterable[FailureMode], coverage: Coverage) -> str:
    """Return the text of the page."""
    return HEADER + "".join(
        ENTRY.format(
            id=mode.id,
            title=mode.title,
            failure=mode.failure,
            guarantee=mode.guarantee,
            tests="\n".join(_link(test) for test in coverage.get(mode.id, [])),
        )
        for mode in catalogue
    )


def main() -> None:
    """Write the page, unless catalogue and tests disagree."""
    catalogue, coverage = read_catalogue(ROOT), read_coverage(ROOT)
    if found := problems(catalogue, coverage):
        sys.exit("\n".join(found))
    (ROOT / PAGE).write_text(render(catalogue, coverage), encoding="utf-8")
    print(f"{PAGE}: {len(catalogue)} failure modes")


def _link(node_id: str) -> str:
    file, *names = node_id.split("::")
    return f"- [`{'::'.join(names) or Path(file).name}`](../../{file})"


def _marks(tree: ast.AST, node_id: str) -> Iterator[tuple[str, str]]:
    """Yield (failure id, node id) for the marks of a module or class and of everything inside."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                yield from ((covered, node_id) for mark in marks for covered in _covered(mark))
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = f"{node_id}::{node.name}"
                yield from ((covered, inner) for mark in node.decorator_list for covered in _covered(mark))
                if isinstance(node, ast.ClassDef):
                    yield from _marks(node, inner)
            case _:
                pass


def _covered(mark: ast.expr) -> list[str]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.covers":
        return [str(ast.literal_eval(argument)) for argument in mark.args]
    return []


if __name__ == "__main__":
    main()
