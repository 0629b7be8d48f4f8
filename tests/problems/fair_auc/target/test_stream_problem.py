"""Fair AUC from single points: the same optimum as shuffled batches, and bad input."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import GroupWeights, stream_problem
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests.cases import fair_auc, labelled
from tests.problems.fair_auc.streams import CELLS, METRIC, cell_shares, raw, singles, slots_of

# -------------------------------------------------------------------------------------------------------------- solves


def windows(rows: Any, seed: int, count: int, *, ordered: bool) -> Any:
    """Points drawn from the rows, sorted by group and label within windows of 200 or not at all."""

    def read() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(seed)
        for _ in range(count // 200):
            chosen = rng.integers(len(rows), size=200)
            if ordered:
                chosen = chosen[np.lexsort((rows.label[chosen], rows.group[chosen]))]
            for i in chosen:
                yield {"features": rows.features[i], "label": rows.label[i], "group": rows.group[i]}

    return read


@pytest.mark.parametrize(
    "known, samples",
    [pytest.param(True, 60_000, marks=pytest.mark.slow), pytest.param(False, 60_000, marks=pytest.mark.rel)],
)
def test_sorted_single_points_do_as_well_as_shuffled_batches(known: bool, samples: int) -> None:
    """Within 1% of r_0 - f* after equally many samples."""
    rows = labelled(3, n=400)
    problem = fair_auc(kappa=0.2, rows=rows)
    level = 0.4
    single = stream_problem(
        windows(rows, 1, samples + 2000, ordered=True), kappa=0.2, probabilities=cell_shares(rows) if known else None
    )
    start = mm.Position.start(np.random.default_rng(0))

    def value(question: mm.MinMaxProblem, batch: int) -> float:
        oracle = mm.SMD(steps=samples // batch, batch_size=batch)
        found = oracle.query(question.at_level(level), mm.Start(question.start_point(1), None, start))
        assert found.samples == samples
        exact = problem.at_level(level)
        return float((exact.values(problem.family.refine(found.x, problem.data)) - exact.bounds).max())

    span = 0.5 - mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=1000))).certificate.lower
    assert value(single, 1) <= value(problem, 100) + 0.01 * span


SLOPES = np.random.default_rng(7).normal(size=(2, 3))


def population(rng: np.random.Generator, n: int) -> LabelledData:
    """Draw from a population of four Gaussian cells with probabilities .12, .18, .2 and .5."""
    cell = rng.choice(4, size=n, p=[0.12, 0.18, 0.2, 0.5])
    group, label = np.array(CELLS)[cell].T
    features = rng.normal(size=(n, 3)) + 0.7 * (label[:, None] * SLOPES[0] + group[:, None] * SLOPES[1])
    return LabelledData(features, label, group, ("a", "b", "c"))


def endless(seed: int) -> Any:
    def read() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng([seed, 1])
        while True:
            yield from singles(population(rng, 1000))

    return read


@cache
def large_sample() -> tuple[mm.MinMaxProblem, mm.Solution]:
    """A sample of 20,000 of the population, solved exactly."""
    problem = fair_auc(kappa=0.2, rows=population(np.random.default_rng(99), 20_000))
    solution = mm.solve(problem, mm.SFLS(oracle=mm.MirrorProx()), seed=0)
    assert solution.status is mm.Status.SOLVED
    return problem, solution


SOLVER = mm.SFLS(oracle=mm.SMD(steps=250), tolerance=0.02, levels=5)


@pytest.mark.parametrize("known", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_stream_is_solved_with_confidence(known: bool) -> None:
    given = dict(zip(CELLS, [0.12, 0.18, 0.2, 0.5], strict=True)) if known else None
    problem = stream_problem(endless(0), kappa=0.2, probabilities=given)
    large, exact = large_sample()
    solution = mm.solve(problem, SOLVER, seed=0)
    assert solution.status is mm.Status.BUDGET
    assert solution.feasible
    assert solution.certificate.kind == "with confidence"
    assert solution.certificate.confidence == 0.9
    assert solution.certificate.lower <= exact.certificate.upper + 0.005
    assert solution.certificate.upper == solution.objective
    assert solution.certificate.upper >= exact.certificate.lower - 0.005
    assert solution.samples == pytest.approx(125 * solution.steps, rel=0.01)  # a quarter more than the steps took
    assert solution.objective == pytest.approx(exact.objective, abs=0.03)
    # what is claimed holds on the large sample, where every value is exact
    question = large.at_level(0.0)
    values = (question.values(large.family.refine(solution.x[None], large.data)) - question.bounds)[0]
    span = 0.5 - exact.certificate.lower
    assert values[0] - exact.certificate.lower <= 0.04 * span
    # the bounds of the population hold on the sample but for its own noise
    assert values[0] <= solution.objective + 0.005
    assert values[1:].max() <= 0.005
    assert (values[1:] <= solution.constraints + 0.02).all()


def test_the_certificate_of_iqrc_on_a_stream_claims_nothing() -> None:
    """However it ends: an estimate of the upper bound, or nothing at all."""
    method = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=30), tolerance=0.02, levels=2, searches=2), iterations=2)
    kinds = set()
    problem = stream_problem(endless(0), kappa=0.3)
    for asked in (problem, problem.with_bounds(0.5, 0.5)):  # no model brings both surrogates below 1
        solution = mm.solve(asked, method, seed=0)
        certificate = solution.certificate
        assert certificate.lower == -np.inf
        assert certificate.confidence == 0.0
        assert certificate.kind == ("estimate" if solution.feasible else "none")
        assert certificate.upper == (solution.objective if solution.feasible else np.inf)
        assert solution.status is not mm.Status.SOLVED
        kinds.add(certificate.kind)
    assert kinds == {"estimate", "none"}


def test_several_bounds_are_solved_at_once() -> None:
    problem = stream_problem(endless(0), kappa=[0.1, 0.4])
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=50), levels=3), seed=0)
    assert solution.feasible.all()
    assert solution.objective[1] < solution.objective[0] < 0.5


@pytest.mark.parametrize("engine, dtype", [("torch", "float64"), ("numpy", "float32")])
def test_engines_agree_on_a_stream(engine: str, dtype: str) -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=50, batch_size=20), levels=2)
    expected = mm.solve(stream_problem(endless(0), kappa=0.3), solver, seed=0)
    found = mm.solve(stream_problem(endless(0), kappa=0.3, engine=engine, dtype=dtype), solver, seed=0)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9 if dtype == "float64" else 1e-3)
    assert found.samples == expected.samples


@pytest.mark.parametrize("count", [26_000, 60_000])
def test_a_stream_that_ends_says_so(count: int) -> None:
    problem = stream_problem(windows(labelled(3, n=400), 1, count, ordered=False), kappa=0.2)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200)), seed=0)
    assert solution.status is mm.Status.BUDGET
    assert solution.reason == "The stream has ended; feasible with confidence 0.9."
    assert solution.feasible
    assert solution.objective < 0.5 or count == 26_000  # of which a query and no look was left after the search
    assert count - 1000 < solution.samples <= count


@pytest.mark.parametrize("count, batch_size", [(5000, 100), (20_100, 100), (19_900, 100), (900, 30), (400, 7)])
def test_a_stream_that_ends_in_or_after_the_search_says_so(count: int, batch_size: int) -> None:
    """No samples are left to estimate the objective from: those of the search serve, and it is never infinite."""
    problem = stream_problem(windows(labelled(3, n=400), 1, count, ordered=False), kappa=0.2)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200, batch_size=batch_size), searches=30), seed=0)
    assert np.isfinite(solution.objective)
    if solution.feasible:
        assert solution.status is mm.Status.BUDGET
        assert "ended" in solution.reason
        assert "by estimate" in solution.reason
        assert solution.objective == pytest.approx(0.4, abs=0.15)
        assert solution.certificate.upper == solution.objective
    else:
        assert solution.status is mm.Status.BUDGET


# -------------------------------------------------------------------------------------------------- problems, bad input


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_stream_problem_can_be_copied(clone: Any) -> None:
    problem = stream_problem([*singles(labelled(3, n=400))] * 10, kappa=0.3)
    solver = mm.SFLS(oracle=mm.SMD(steps=20, batch_size=10), levels=2)
    expected = mm.solve(problem, solver, seed=0)
    np.testing.assert_array_equal(mm.solve(clone(problem), solver, seed=0).x, expected.x)


def test_the_look_sizes_the_sets() -> None:
    """Twice what the first points need; and the stream still begins with its first point."""
    rows = labelled(3, n=400)
    problem = stream_problem([*singles(rows)], look=100)
    first = raw(rows, np.arange(100))
    means = np.stack([first["features"][m].mean(axis=0) for m in slots_of(first["label"], first["group"]).T])
    assert problem.objective.dual.reach == pytest.approx(20 * np.linalg.norm(means[::2] - means[1::2], axis=1).max())
    wider = stream_problem([*singles(rows)], look=100, radius=20.0)
    assert wider.objective.dual.reach == pytest.approx(2 * problem.objective.dual.reach)
    known = stream_problem([*singles(rows)], look=100, probabilities=cell_shares(rows))
    (batch,) = known.data.draw(mm.Position.start(np.random.default_rng(0)), 1, 400)[0]
    np.testing.assert_allclose(np.sort(batch["features"][:, 0]), np.sort(rows.features[:, 0]))
    assert stream_problem([*singles(rows)]).details.model.dimension == 3


def with_point(number: int, **changes: Any) -> list[dict[str, Any]]:
    points = list(singles(labelled(n=40)))
    points[number - 1] = {**points[number - 1], **changes}
    return points


@pytest.mark.parametrize(
    "points, message",
    [
        ([], "no points"),
        (with_point(7, features=[1.0, np.nan, 2.0]), "point 7: features is NaN"),
        (with_point(7, label=np.nan), "point 7: label is NaN"),
        (with_point(7, label=0), r"point 7: label is 0 and must be -1 or \+1"),
        (with_point(7, label=7), "point 7: label is 7"),
        (with_point(31, group=0.5), "point 31: group is 0.5"),
        (with_point(7, features=[1.0, 2.0]), r"point 7 has features \(2,\)"),
        (with_point(7, features="text"), "point 7: features is no number"),
        ([{"features": [1.0], "label": 1}] * 9, "group of a point is missing"),
        ([{"x": [1.0], "label": 1, "group": 1}] * 9, "features of a point is missing"),
        ([{"features": 1.0, "label": 1, "group": 1}] * 9, "features of a point"),
        ([{"features": [1.0], "label": [1], "group": 1}] * 9, "label of a point"),
        ([{"features": [1.0], "label": 1, "group": 1}] * 9, "first 9 points.*no row is in the subset"),
        ([3.0], "point 1 is no mapping"),
    ],
)
def test_points_that_cannot_be_used_are_named(points: Any, message: str) -> None:
    with pytest.raises(mm.DataError, match=message) as caught:
        stream_problem(points)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shuffle", [1, 1000])
@pytest.mark.parametrize("name", ["label", "group"])
def test_a_bad_sign_after_the_look_is_named(name: str, shuffle: int) -> None:
    """Blocks are permuted, and the number is that of the points' own order."""
    made = [*singles(labelled(3, n=400))] * 6
    made[1777] = {**made[1777], name: 0}
    problem = stream_problem(made, kappa=0.3)
    problem.data.shuffle = shuffle
    with pytest.raises(mm.DataError, match=f"point 1778: {name} is 0 and must be"):
        mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=20, batch_size=100)), seed=0)


GOOD = dict(zip(CELLS, [0.1, 0.2, 0.3, 0.4], strict=True))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kappa": -0.5}, "kappa"),
        ({"kappa": "many"}, "kappa"),
        ({"c1": 0.0}, "c1"),
        ({"radius": -1.0}, "radius"),
        ({"look": 0}, "look"),
        ({"look": 2.5}, "look"),
        ({"metric": "intergroup"}, "did you mean 'inter_group'"),
        ({"engine": "cupy"}, "engine"),
        ({"probabilities": {**GOOD, (1, 1): -0.1, (1, -1): 0.4}}, "probabilities"),
        ({"probabilities": {**GOOD, (1, 1): 0.2}}, "sum to 1"),
        ({"probabilities": {c: GOOD[c] for c in CELLS[1:]}}, "four cells"),
        ({"probabilities": {**{c: GOOD[c] for c in CELLS[1:]}, (-1, -2): 0.1}}, "four cells"),
        ({"probabilities": {**GOOD, (1, 1): float("nan")}}, "sum to 1"),
        ({"probabilities": {**GOOD, (1, 1): 0.0, (1, -1): 0.3}}, r"must lie in \(0, 1\]"),
        ({"probabilities": {1: 0.5, -1: 0.5}}, "four cells"),
        ({"probabilities": [0.1, 0.2, 0.3, 0.4]}, "four cells"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message) as caught:
        stream_problem(list(singles(labelled(n=40))), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [[0.0] * 10, [1.5] * 10, [float("nan")] * 10, [0.5] * 9, 0.5, [0.5]])
def test_slot_probabilities_are_checked(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="one for each of the 10 slots"):
        GroupWeights(METRIC, bad)


def test_weights_are_the_objects_own() -> None:
    mine = np.full(10, 0.5)
    prepare = GroupWeights(METRIC, mine)
    mine[:] = 0.0
    np.testing.assert_array_equal(prepare.probabilities, np.full(10, 0.5))
    for bad in (-1, 2.5, None):
        with pytest.raises(mm.InvalidInput, match="burn_in"):
            GroupWeights(METRIC, burn_in=bad)


def test_one_iterator_cannot_be_a_stream() -> None:
    rows = labelled(n=160)
    with pytest.raises(mm.InvalidInput, match="fresh iterator"):
        stream_problem(singles(rows))
    once = singles(rows)
    problem = stream_problem(lambda: once)
    with pytest.raises(mm.InvalidInput, match="same iterator twice"):
        problem.data.draw(mm.Position.start(np.random.default_rng(0)), 1, 1)
