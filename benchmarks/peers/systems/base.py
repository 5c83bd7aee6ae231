"""What a system is, as the catalogue describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Engine = Literal["sqlite", "postgres", "mariadb", "redis"]
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres", "mariadb", "redis")
TITLES: dict[str, str] = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "redis": "Redis",
}

_OURS = ("asyncmy==0.2.17", "asyncpg==0.32.0", "click==8.5.1", "msgspec==0.22.0", "redis==8.1.0")
"""What `pip install "duetime[mysql,postgres,redis]"` installs beside Duetime itself, which is run from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One scheduler or queue on one kind of database."""

    name: str
    """As it stands in tables, on the command line and in file names."""
    title: str
    engine: Engine
    adapter: str
    """The module in `benchmarks.peers.adapters`."""
    requirements: tuple[str, ...]
    """Exact pins."""
    settings: str
    """Part of a sentence for the report."""
    notes: str = ""
    width: str = "concurrency"
    """The name of its main setting."""
    widths: tuple[int, ...] = (100,)
    """Values of that setting that a drain is tried with; its best one counts."""
    pace: int = 1_000
    """One-off jobs a second that it surely stores; what is due later is put that much earlier."""
    in_process: bool = False
    """True where jobs can only be added in the process that runs them."""
    processes: int = 2
    """Worker processes that can share the work."""
    schedules: bool = True
    """False where it has none that come every few seconds; its adapter refuses them."""
    polls: bool = False
    """True where a shorter poll than the default one is used for everything but the idle cost."""
    blocks: bool = False
    """True where jobs are put one at a time by a call that blocks, though there is one to await; that is noted beside it."""
    ours: bool = False

    @property
    def configuration(self) -> str:
        """One sentence for the report, without its end."""
        if len(self.widths) == 1:
            return self.settings
        tried = " and ".join(f"{width:,}" for width in self.widths)
        return f"{self.settings}; drain with {self.width} {tried}, the better one counts"

    @property
    def environment(self) -> str:
        """The name of its own virtual environment."""
        return self.adapter


def duetime(engine: Engine, *, pace: int, settings: str = "defaults", blocks: bool = False) -> System:
    """Return our own system on one kind of database."""
    return System(
        name=f"duetime-{engine}",
        title="Duetime",
        engine=engine,
        adapter="duetime",
        requirements=_OURS,
        settings=settings,
        widths=(100, 1_000),
        pace=pace,
        blocks=blocks,
        ours=True,
    )
