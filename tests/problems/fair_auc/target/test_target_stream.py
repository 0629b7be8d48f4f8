"""Targets on streams of a known population: what a fit of the whole population gives, in bounded memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import load_dataset, resolve_metric, stream_target_problem
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.target.objectives import named_objective
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from minmaxcon_problems.fair_auc.target.stream import TargetStream
from tests.cases import promises
from tests.problems.fair_auc.by_pairs import biased, masks_of, sklearn_auc, sklearn_gap
from tests.problems.fair_auc.fits import fit

Array = Any

GAP = 0.02
CELLS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
"""(group, label)."""


@cache
def population() -> LabelledData:
    return biased(3, n=20_000)


def arriving(
    rows: LabelledData, order: str = "shuffled", passes: int | None = None, keep: Array = None
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Endless passes over rows: reshuffled; then sorted by label and group; or sorted, and alike in each pass."""
    features = rows.features.toarray() if hasattr(rows.features, "toarray") else rows.features

    def make() -> Iterator[dict[str, Any]]:
        rng, done = np.random.default_rng(7), 0
        while passes is None or done < passes:
            chosen = rng.permutation(len(rows)) if order != "alike" else np.arange(len(rows))
            if order != "shuffled":
                chosen = chosen[np.lexsort((rows.group[chosen], rows.label[chosen]))]
            if keep is not None:
                chosen = chosen[keep[chosen]]
            for i in chosen:
                yield {"features": features[i], "label": rows.label[i], "group": rows.group[i]}
            done += 1

    return make


def judged(x: Array, rows: LabelledData, metric: str, model: mm.Model) -> tuple[float, float]:
    """Gap and AUC of the whole population by scikit-learn; of linear models even the scores are computed here."""
    w = np.asarray(x)[: model.dimension]
    scores = np.asarray(rows.features @ w) if isinstance(model, mm.Linear) else model.predict(w, _dense(rows))
    positive = rows.label > 0
    return abs(sklearn_gap(scores, masks_of(rows, metric))), sklearn_auc(scores, positive, ~positive)


def _dense(rows: LabelledData) -> Array:
    return rows.features.toarray() if hasattr(rows.features, "toarray") else rows.features


@cache
def whole(metric: str, objective: str = "auc") -> float:
    """AUC of the fit to the whole population."""
    return fit(metric, GAP, population(), objective=objective).train_auc.value


def solved(problem: mm.MinMaxProblem, sample: int = 6000, iterations: int = 12, **options: Any) -> mm.Solution:
    return mm.solve(problem, mm.SuccessiveApproximation(sample=sample, iterations=iterations, **options), seed=0)


def check(solution: mm.Solution, metric: str, objective: str = "auc", model: mm.Model | None = None) -> None:
    gap, area = judged(solution.x, population(), metric, model or mm.Linear(6))
    assert abs(gap - GAP) <= 0.01
    assert area == pytest.approx(whole(metric, objective), abs=0.01)
    assert solution.status is mm.Status.BUDGET
    assert solution.certificate.kind == "estimate"


# ------------------------------------------------------------------------------------------------------ the population


@pytest.mark.parametrize("metric", promises(["group", "inter_group", "intra_group"], ["intra_group"]))
def test_the_population_meets_the_target_as_after_a_fit(metric: str) -> None:
    check(solved(stream_target_problem(arriving(population()), metric, GAP, first=2000)), metric)


@pytest.mark.parametrize("objective", promises(["quadratic_auc", "logistic"], ["logistic"]))
def test_every_objective(objective: str) -> None:
    """These start from the constant model, where an AUC has no gradient."""
    problem = stream_target_problem(arriving(population()), "group", GAP, objective=objective, first=2000)
    check(solved(problem), "group", objective)


@pytest.mark.parametrize("order, sample", [("sorted", 6000), pytest.param("alike", 12_000, marks=pytest.mark.rel)])
def test_labels_and_groups_in_any_order(order: str, sample: int) -> None:
    """One combination after the other; where all passes are alike, what is kept of each hardly changes."""
    problem = stream_target_problem(arriving(population(), order), "group", GAP, first=2000)
    check(solved(problem, sample), "group")


def test_probabilities_that_are_known() -> None:
    """A stream where positives are half as frequent as in the population, which the group metric takes into account."""
    rows = population()
    share = {(g, y): float(np.mean((rows.group == g) & (rows.label == y))) for g, y in CELLS}
    fewer = (rows.label < 0) | (np.random.default_rng(0).random(len(rows)) < 0.5)
    points = arriving(rows, keep=fewer)
    check(solved(stream_target_problem(points, "group", GAP, probabilities=share, first=2000)), "group")


@pytest.mark.slow
def test_a_network() -> None:
    from minmaxcon.models import MLP

    model = MLP(6, 4)
    problem = stream_target_problem(arriving(population()), "group", GAP, model=model, first=1000)
    check(solved(problem, refresh=3), "group", model=model)


# ----------------------------------------------------------------------------------------------------------- many runs


def test_targets_together_and_alone() -> None:
    gaps = [0.01, 0.03, 1.0]
    many = solved(stream_target_problem(arriving(population()), "inter_group", gaps, first=800), 800, 5)
    for j, gap in enumerate(gaps):
        alone = solved(stream_target_problem(arriving(population()), "inter_group", gap, first=800), 800, 5)
        assert many[j].x == pytest.approx(alone.x, abs=1e-6)
    assert many.objective[2] <= many.objective[1] <= many.objective[0]


def test_the_same_seed_gives_the_same_bits() -> None:
    one, other = (
        solved(stream_target_problem(arriving(population()), "group", GAP, first=500), 500, 4) for _ in range(2)
    )
    assert one.x.tobytes() == other.x.tobytes()


@pytest.mark.rel
def test_another_method_inside() -> None:
    """On finite data the level-set method reaches what linearised steps reach, within a hundredth of the AUC."""
    rows = biased(0, n=600)
    problem = build_target_problem(rows, Target(metric="inter_group", max_gap=GAP, objective="quadratic_auc"))
    inner = mm.SFLS(oracle=mm.SMD(steps=60, batch_size=50), levels=2)
    found = mm.solve(problem, mm.SuccessiveApproximation(iterations=6, margin=2e-4, weight=0.1, inner=inner), seed=0)
    linearised = mm.solve(problem, mm.SuccessiveApproximation(margin=2e-4), seed=0)
    assert found.feasible
    assert found.objective == pytest.approx(linearised.objective, abs=0.01)
    (gap, area), (_, best) = (judged(s.x, rows, "inter_group", mm.Linear(6)) for s in (found, linearised))
    assert 0.005 <= gap <= GAP
    assert area == pytest.approx(best, abs=0.01)
    assert found.trace["accepted"].sum() >= 2  # not the first, linearised step alone
    assert found.samples > linearised.samples


# ------------------------------------------------------------------------------------------------------ blocks, weights


def stream(points: Any, metric: str = "inter_group", **options: Any) -> TargetStream:
    return TargetStream(points, resolve_metric(metric), named_objective("auc"), **options)


def start() -> mm.Position:
    return mm.Position.start(np.random.default_rng(0))


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_a_block_stands_for_all_that_has_passed_in_bounded_memory(order: str) -> None:
    """Cells weigh what they weigh among all points so far, however many rows of each are kept."""
    rows, sample, position = population(), 1000, start()
    source = stream(arriving(rows, order))
    for number in range(30):
        block, position = source.block(position, sample)
        assert block is not None
        assert block.size <= 2 * sample
        kept = position.memory
        assert len(kept.features) == block.size
        weight = block.arrays["row_weight"]
        counts = [int(((kept.group == g) & (kept.label == y)).sum()) for g, y in CELLS]
        assert min(counts) >= 1
        if number >= 5:
            assert counts[-1] >= 200  # the rarest, a tenth of the points, is kept up to a quarter of the block
        shares = [float(weight[(kept.group == g) & (kept.label == y)].sum() / weight.sum()) for g, y in CELLS]
        assert shares == pytest.approx((kept.counts / position.samples).tolist(), abs=1e-12)
        assert kept.counts.sum() == position.samples
    one_pass = [float(np.mean((rows.group == g) & (rows.label == y))) for g, y in CELLS]
    if order == "shuffled":
        assert shares == pytest.approx(one_pass, abs=0.02)


def test_the_measure_of_a_block_is_the_weighted_gap_of_its_rows() -> None:
    problem = stream_target_problem(arriving(population(), "sorted"), "group", GAP, first=500)
    block, position = problem.data.block(start(), 800)
    on, kept = problem.on(block), position.memory
    x = np.random.default_rng(1).normal(size=(2, 6))
    rows = LabelledData(kept.features, kept.label, kept.group, tuple("abcdef"))
    for r, values in enumerate(on.measure.observe(x).values):
        expected = sklearn_gap(rows.features @ x[r], masks_of(rows, "group"), block.arrays["row_weight"])
        assert values == pytest.approx([expected, -expected], abs=1e-10)


def test_single_samples_are_unbiased() -> None:
    """The mean over one pass of draws of one point equals the full data's, for the gap and for the loss."""
    rows = biased(2, n=300)
    share = {(g, y): float(np.mean((rows.group == g) & (rows.label == y))) for g, y in CELLS}
    full = build_target_problem(rows, Target(metric="inter_group", max_gap=GAP))
    source = stream(arriving(rows, passes=1), probabilities=share)
    x = full.start_point(1) + np.linspace(0.1, 0.3, 6)
    problem = full.refreshed(full.measure.observe(x))
    other = x + 0.1
    ((_, whole_batch),) = full.data.chunks()
    expected = problem.family.evaluate(other, whole_batch).F[0]
    found = [problem.family.evaluate(other, batch).F[0] for batch in source.draw(start(), 300, 1)[0]]
    assert len(found) == 300
    np.testing.assert_allclose(np.mean(found, axis=0), expected, rtol=1e-10)
    _, after = source.block(start(), 100)
    assert sum(1 for _ in source.draw(after, 300, 1)[0]) == 200  # draws go on where a block ended


def test_a_copy_goes_on() -> None:
    source = stream(_Rows(), "group")
    _, position = source.block(start(), 300)
    expected, _ = source.block(position, 300)
    found, _ = pickle.loads(pickle.dumps(source)).block(position, 300)
    for name in ("features", "subsets", "weights", "row_weight"):
        np.testing.assert_array_equal(found.arrays[name], expected.arrays[name])


class _Rows:
    """Points that can be pickled, read again and again."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return arriving(biased(1, n=1500), passes=1)()


# ------------------------------------------------------------------------------------------------- ends and refusals


def test_a_stream_that_ends_early() -> None:
    problem = stream_target_problem(arriving(biased(1, n=2300), passes=1), "group", GAP, first=500)
    solution = solved(problem, 500)
    assert solution.status is mm.Status.BUDGET
    assert solution.reason.startswith("The stream has ended; by an estimate from 2,300 rows")
    assert len(set(solution.trace["steps"])) == 4  # after those of the quadratic loss
    assert solution.samples == 2300


@pytest.mark.parametrize("passes", [None, 1])
def test_a_subset_without_members_is_named(passes: int | None) -> None:
    """Within ``look`` points, or where the stream ends."""
    rows = biased(1, n=1000)
    points = arriving(rows, passes=passes, keep=~((rows.label > 0) & (rows.group > 0)))
    with pytest.raises(mm.DataError, match="positive & protected of the metric intra_group"):
        stream_target_problem(points, "intra_group", GAP, look=3000, first=500)
    assert stream_target_problem(points, "group", GAP, look=3000, first=500).runs is None  # which does without


def test_one_class_is_not_enough() -> None:
    rows = biased(1, n=1000)
    with pytest.raises(mm.DataError, match="one class only"):
        stream_target_problem(arriving(rows, passes=1, keep=rows.label > 0), "group", GAP, first=500)


def test_a_cell_whose_probability_is_said_to_be_nothing() -> None:
    shares = {(1, 1): 0.0, (1, -1): 0.3, (-1, 1): 0.3, (-1, -1): 0.4}
    with pytest.raises(mm.InvalidInput, match=r"probabilities=.*\(1, 1\) has come"):
        stream_target_problem(arriving(biased(1, n=1000)), "group", GAP, probabilities=shares, first=500)


@pytest.mark.parametrize(
    "name, bad",
    [
        ("first", 0),
        ("look", 0),
        ("probabilities", {(1, 1): 1.0}),
        ("max_gap", -0.1),
        ("metric", ["group", "inter_group"]),
    ],
)
def test_settings_out_of_range_are_named(name: str, bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=f"{name}="):
        stream_target_problem(**{"points": arriving(biased(1, n=200)), "metric": "group", name: bad})


def test_no_points() -> None:
    opened = iter([[*arriving(biased(1, n=50), passes=1)()]])  # only the first time it is opened there are some
    with pytest.raises(mm.DataError, match="stream: it has no points"):
        stream_target_problem(lambda: next(opened, []), "group", GAP)
    with pytest.raises(mm.DataError, match="no points"):
        stream_target_problem([], "group", GAP)


# ---------------------------------------------------------------------------------------------------------------- a9a


@pytest.mark.rel
@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    "metric, order, sample",
    [("group", "alike", 5000), ("inter_group", "sorted", 5000)],
)
def test_a9a(metric: str, order: str, sample: int) -> None:
    rows = load_dataset("a9a").train
    problem = stream_target_problem(arriving(rows, order), metric, GAP)
    solution = solved(problem, sample, 60 if order == "alike" else 40)
    gap, area = judged(solution.x, rows, metric, mm.Linear(rows.features.shape[1]))
    assert abs(gap - GAP) <= 0.01
    assert area == pytest.approx(fit(metric, GAP, rows).train_auc.value, abs=0.01)
