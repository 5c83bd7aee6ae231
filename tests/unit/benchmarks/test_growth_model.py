"""The model of a growing fleet finds what it was made from, and predicts what follows from it."""

from __future__ import annotations

import pytest

from benchmarks.growth.model import Model, Unfit, each, fit, fitted, fleet, once, pairs

SIZES = (4, 16, 32, 64, 128)


def model(*, server_us: float = 100.0) -> Model:
    crowds = [
        {
            "workers": n,
            "idle_statements": 0.5 * n + 6 * fleet(n),
            "idle_server": 0.2 * n,
            "connections": 4.0 * n + 2,
            "statements_per_event": 2.0 * n + 1,
        }
        for n in SIZES
    ]
    drains = [
        {"server_us": server_us, "wal_per_job": 500.0},
        {"server_us": server_us / 2, "wal_per_job": 900.0},
    ]
    return fitted(crowds, drains)


def test_a_fit_finds_the_terms_that_the_measurements_were_made_from() -> None:
    found = fit([(n, 3 * n + 7 * fleet(n)) for n in (1, 2, *SIZES)], each, fleet)
    assert found.coefficient(each) == pytest.approx(3)
    assert found.coefficient(fleet) == pytest.approx(7)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found(1_000) == pytest.approx(3_007)


def test_a_cost_of_every_pair_is_told_from_a_cost_of_every_worker() -> None:
    found = fit([(n, 2 * n + 0.01 * n * n) for n in SIZES], each, pairs)
    assert found.coefficient(each) == pytest.approx(2)
    assert found.coefficient(pairs) == pytest.approx(0.01)


def test_the_residuals_are_what_the_fit_leaves_unexplained() -> None:
    found = fit([(1, 1.0), (2, 2.0), (3, 6.0)], each)
    assert sum(map(abs, found.residuals)) > 1
    assert found.residuals[2] == pytest.approx(6 - found(3))
    assert found.error == max(map(abs, found.residuals)) / 3


def test_nothing_costs_less_than_nothing() -> None:
    found = fit([(n, 5.0 * n - 3) for n in SIZES], each, once)
    assert found.coefficient(once) == 0
    assert found.coefficient(each) > 0


def test_terms_that_the_measurements_cannot_tell_apart_do_not_break_the_fit() -> None:
    found = fit([(n, 2.0 * n) for n in (1, 2, 3, 4)], each, fleet)
    assert found(4) == pytest.approx(8)


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(Unfit, match="1 measurements cannot tell 2 terms apart"):
        fit([(1, 1.0)], each, once)
    with pytest.raises(Unfit, match="no drain"):
        fitted([], [])


def test_the_most_jobs_are_the_cores_that_are_left_over_the_processor_time_of_the_dearest_job() -> None:
    found = model().predict(1_000, cores=4)
    assert found.idle_server == pytest.approx(2)
    assert found.most_jobs == pytest.approx((4 - 2) / 100e-6)
    assert found.wal == pytest.approx(found.most_jobs * 900)
    assert model().predict(1_000, cores=1).most_jobs == 0


def test_heartbeats_and_connections_grow_with_the_workers() -> None:
    found = model().predict(1_000, cores=4)
    assert (found.heartbeats, round(found.connections)) == (100, 4_002)
    assert model().workers_for(connections=402) == 100


def test_answers_to_hints_have_a_bound_however_many_workers_there_are() -> None:
    some, many = (model().predict(n, cores=4).answers_per_second for n in (1_000, 10_000))
    assert many == pytest.approx(some, rel=0.02)
