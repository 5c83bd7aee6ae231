from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, TYPED, Block, Page, pages, read_blocks

WITH_ETCD = ROOT / "docs" / "how-to" / "write-a-lock.md"
_LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder, as a reader would have it: empty, and Python imports from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("DUETIME_URL", raising=False)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


RUN = [page for page in pages() if page.relative_to(ROOT).as_posix() not in TYPED]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
@pytest.mark.usefixtures("empty_folder")
@pytest.mark.timeout(180)  # It starts a process for each of a page's commands.
def test_the_code_on_a_page_runs(
    page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page == WITH_ETCD:
        monkeypatch.setenv("ETCD_URL", request.getfixturevalue("etcd").url())
    runs = Page(page.relative_to(ROOT).as_posix())
    with asyncio.Runner() as runner:
        for block in read_blocks(page.read_text(encoding="utf-8")):
            runs.run(block, runner)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_on_a_page_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    dead = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert dead == []


def test_blocks_share_their_names_and_may_await() -> None:
    page = Page("page")
    with asyncio.Runner() as runner:
        page.run(Block(language="python", text="import asyncio\nx = 1\n", line=1), runner)
        page.run(Block(language="python", text="await asyncio.sleep(0)\nassert x == 1\n", line=5), runner)


def test_code_that_fails_fails_the_page() -> None:
    with asyncio.Runner() as runner, pytest.raises(ZeroDivisionError):
        Page("page").run(Block(language="python", text="1 / 0\n", line=1), runner)


def test_an_error_that_was_announced_must_come() -> None:
    block = Block(language="python", text="x = 1\n", line=1, options={"raises": "InvalidCron"})
    with asyncio.Runner() as runner, pytest.raises(AssertionError, match="raised nothing"):
        Page("page").run(block, runner)


def test_a_command_that_prints_something_else_fails_the_page() -> None:
    block = Block(language="console", text="$ duetime --version\nduetime 0.0.0 of old\n", line=1)
    with asyncio.Runner() as runner, pytest.raises(AssertionError, match="duetime --version"):
        Page("page").run(block, runner)


def test_a_fence_says_nothing_unknown() -> None:
    with pytest.raises(ValueError, match=r"line 1: the fence says .*norun"):
        list(read_blocks('```python norun="x"\nx\n```\n'))
