"""A model of one PostgreSQL under a growing fleet, fitted to measurements: what it predicts, and how well it fits.

Costs are linear in what causes them: so much for each worker that beats, so much for what the whole fleet does
together however large it is, and so much for each job. The processor's share ends the growth (demand law: no more
jobs a second than cores divided by the processor time of a job), or the connections do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from duetime.runtime.pacing import REQUEST_SPACING, SMALL_FLEET

FEW = 4
"""From so many workers on, the looks of the fleet at itself do not become more."""
Term: TypeAlias = Callable[[float], float]
Point: TypeAlias = Mapping[str, float]


def each(workers: float) -> float:
    """What every worker costs."""
    return workers


def fleet(workers: float) -> float:
    """What the fleet costs together: it grows with the first few workers only."""
    return min(workers, FEW) / FEW


def pairs(workers: float) -> float:
    """What every worker costs for every other: a heartbeat counts the living."""
    return workers * workers


def once(_workers: float) -> float:
    """What there is however many workers there are."""
    return 1.0


class Unfit(Exception):
    """There are fewer measurements than terms to fit."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A sum of terms with the coefficients that fit best, none below zero."""

    terms: tuple[Term, ...]
    coefficients: tuple[float, ...]
    residuals: tuple[float, ...]
    """What was measured less what is predicted there."""
    mean: float

    def __call__(self, workers: float) -> float:
        """Predict."""
        return sum(k * term(workers) for k, term in zip(self.coefficients, self.terms, strict=True))

    def coefficient(self, term: Term) -> float:
        """Return how much there is of a term."""
        return dict(zip(self.terms, self.coefficients, strict=True)).get(term, 0.0)

    @property
    def error(self) -> float:
        """The largest residual, as a share of the mean of what was measured."""
        return max(map(abs, self.residuals)) / self.mean if self.mean else 0.0


def fit(points: Sequence[tuple[float, float]], *terms: Term) -> Fit:
    """Fit by least squares; a term that would be negative is left out, since nothing costs less than nothing."""
    used = list(terms)
    while used:
        if len(points) < len(used):
            raise Unfit(f"{len(points)} measurements cannot tell {len(used)} terms apart")
        found = _least_squares(points, used)
        if min(found) >= 0:
            break
        used.pop(found.index(min(found)))
    else:
        found = []
    coefficients = dict(zip(used, found, strict=True))
    kept = tuple(coefficients.get(term, 0.0) for term in terms)
    predicted = [sum(k * term(x) for k, term in zip(kept, terms, strict=True)) for x, _ in points]
    residuals = tuple(y - guess for (_, y), guess in zip(points, predicted, strict=True))
    mean = sum(y for _, y in points) / len(points) if points else 0.0
    return Fit(terms, kept, residuals, mean)


def _least_squares(points: Sequence[tuple[float, float]], terms: Sequence[Term]) -> list[float]:
    rows = [[term(x) for term in terms] for x, _ in points]
    matrix = [
        [sum(row[i] * row[j] for row in rows) for j in range(len(terms))]
        + [sum(row[i] * y for row, (_, y) in zip(rows, points, strict=True))]
        for i in range(len(terms))
    ]
    return _solved(matrix)


def _solved(matrix: list[list[float]]) -> list[float]:
    """Solve by elimination; terms that measurements cannot tell apart share nothing: the later one gets zero."""
    size = len(matrix)
    scale = max((abs(value) for row in matrix for value in row[:-1]), default=0.0) or 1.0
    free: set[int] = set()
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        if abs(matrix[pivot][column]) < 1e-12 * scale:
            free.add(column)
            continue
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for row in range(size):
            if row != column:
                factor = matrix[row][column] / matrix[column][column]
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[column], strict=True)]
    return [0.0 if n in free else matrix[n][-1] / matrix[n][n] for n in range(size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a fleet of some size asks of one PostgreSQL."""

    workers: int
    idle_statements: float
    """Statements per second with nothing to do."""
    heartbeats: float
    """Heartbeats per second; two statements each."""
    idle_server: float
    """Cores that the idle fleet keeps busy."""
    connections: float
    answers: float
    """Statements because of one enqueued job, where all workers are idle."""
    answers_per_second: float
    """The most of them, however many jobs come."""
    most_jobs: float
    """Jobs per second that the cores of the server have time for."""
    wal: float
    """Bytes of write-ahead log per second at that rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The fits, and what follows from them."""

    idle_statements: Fit
    idle_server: Fit
    connections: Fit
    answers: Fit
    server_per_job: float
    """Processor seconds of the server for a job that is drained."""
    wal_per_job: float
    beat: float = 10.0
    """Seconds between the heartbeats of a worker."""

    def predict(self, workers: int, *, cores: float) -> Prediction:
        """Predict for a fleet on a server with so many cores."""
        idle = self.idle_server(workers)
        most = max(0.0, cores - idle) / self.server_per_job
        answers = self.answers(workers)
        return Prediction(
            workers=workers,
            idle_statements=self.idle_statements(workers),
            heartbeats=workers / self.beat,
            idle_server=idle,
            connections=self.connections(workers),
            answers=answers,
            answers_per_second=answers / (REQUEST_SPACING * max(1.0, (workers - SMALL_FLEET) / 2)),
            most_jobs=most,
            wal=most * self.wal_per_job,
        )

    def workers_for(self, *, connections: int) -> int:
        """Return how many workers a server with so many connections has room for."""
        per_worker = self.connections.coefficient(each)
        if not per_worker:
            return 0
        return max(0, int((connections - self.connections.coefficient(once)) / per_worker))


def fitted(crowds: Sequence[Point], workers: Sequence[Point]) -> Model:
    """Fit to what crowds asked and to what drains cost."""

    def of(key: str, *terms: Term, scale: float = 1.0) -> Fit:
        return fit([(point["workers"], point[key] * scale) for point in crowds], *terms)

    # Few points cannot tell what pairs of workers cost from what the fleet costs.
    server = (each, fleet, pairs) if len(crowds) > 3 else (each, fleet)
    costs = [(point["server_us"], point["wal_per_job"]) for point in workers]
    if not costs:
        raise Unfit("no drain was measured")
    return Model(
        idle_statements=of("idle_statements", each, fleet),
        # Measured in hundredths of a core.
        idle_server=of("idle_server", *server, scale=0.01),
        connections=of("connections", each, once),
        answers=of("statements_per_event", each, once),
        # The dearest: with more workers, batches are smaller.
        server_per_job=max(us for us, _ in costs) / 1e6,
        wal_per_job=max(wal for _, wal in costs),
    )
