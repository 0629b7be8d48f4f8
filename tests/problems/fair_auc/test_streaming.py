"""Fair AUC from single points: weights without bias, and the same optimum as shuffled batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import GroupWeights, resolve_metric, stream_problem
from minmaxcon_problems.fair_auc.build import pair_masks
from tests.cases import fair_auc, labelled

METRIC = resolve_metric("inter_group")


def raw(rows: Any, indices: Any) -> dict[str, Any]:
    return {"features": rows.features[indices], "label": rows.label[indices], "group": rows.group[indices]}


def test_estimated_weights_count_the_present_sample() -> None:
    rows = labelled(n=60)
    prepare = GroupWeights(METRIC, burn_in=1)
    memory, found = prepare.start(), []
    for begin in (0, 1, 13, 40):  # pieces of any size give the same
        end = {0: 1, 1: 13, 13: 40, 40: 60}[begin]
        memory, arrays = prepare(memory, raw(rows, np.arange(begin, end)))
        found.append(arrays["weights"])
    slots = [mask for pair in pair_masks(rows.label, METRIC, rows.group) for mask in pair]
    expected, seen = [], [0] * len(slots)
    for t in range(60):
        seen = [count + int(mask[t]) for count, mask in zip(seen, slots, strict=True)]
        if min(seen) >= 1:
            row = [(t + 1) / count if mask[t] else 0.0 for count, mask in zip(seen, slots, strict=True)]
            expected.append(row)
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-15)


def test_known_probabilities_give_population_weights() -> None:
    rows = labelled(n=200)
    problem = fair_auc(rows=rows)
    slots = [mask for pair in pair_masks(rows.label, METRIC, rows.group) for mask in pair]
    prepare = GroupWeights(METRIC, [mask.mean() for mask in slots])
    _, arrays = prepare(prepare.start(), raw(rows, np.arange(200)))
    np.testing.assert_allclose(arrays["weights"], problem.data.arrays["weights"], rtol=1e-14)
    with pytest.raises(mm.InvalidInput, match="probabilities"):
        GroupWeights(METRIC, [0.0] * 10)


def test_expectation_of_an_estimated_weight() -> None:
    """E 1_G t/N_t f = (1 - (1-p)^t) E[f | G], by enumeration of all histories of t samples with f = 1."""
    p, t = 0.3, 5
    total = 0.0
    for history in range(2**t):
        members = [(history >> i) & 1 for i in range(t)]
        chance = np.prod([p if m else 1 - p for m in members])
        if members[-1]:
            total += chance * t / sum(members)
    assert total == pytest.approx(1 - (1 - p) ** t, abs=1e-14)


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


@pytest.mark.parametrize("known, samples", [(True, 60_000), pytest.param(False, 300_000, marks=pytest.mark.rel)])
def test_sorted_single_points_do_as_well_as_shuffled_batches(known: bool, samples: int) -> None:
    """Within 1% of r_0 - f* after equally many samples."""
    rows = labelled(3, n=400)
    problem = fair_auc(kappa=0.2, rows=rows)
    level = 0.4
    cells = {(g, y): float(np.mean((rows.group == g) & (rows.label == y))) for g in (-1, 1) for y in (-1, 1)}
    single = stream_problem(
        windows(rows, 1, samples + 2000, ordered=True), kappa=0.2, probabilities=cells if known else None
    )
    start = mm.Position.start(np.random.default_rng(0))

    def value(question: mm.MinMaxProblem, batch: int) -> float:
        oracle = mm.SMD(steps=samples // batch, batch_size=batch)
        found = oracle.query(question.at_level(level), mm.Start(question.start_point(1), None, start))
        exact = problem.at_level(level)
        return float((exact.values(problem.family.refine(found.x, problem.data)) - exact.bounds).max())

    span = 0.5 - mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=1000))).certificate.lower
    assert value(single, 1) <= value(problem, 100) + 0.01 * span


def test_a_stream_is_solved_with_confidence() -> None:
    rows = labelled(3, n=400)
    problem = stream_problem(windows(rows, 1, 2_000_000, ordered=False), kappa=0.2)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=500), tolerance=0.02, levels=8), seed=0)
    exact = mm.solve(fair_auc(kappa=0.2, rows=rows), mm.SFLS(oracle=mm.SMD(steps=500)), seed=0)
    assert str(solution.status) in {"solved", "budget"}
    assert solution.certificate.kind == "with confidence"
    assert solution.certificate.confidence == pytest.approx(0.9)
    assert solution.objective == pytest.approx(exact.objective, abs=0.05)


def test_a_stream_that_ends_says_so() -> None:
    problem = stream_problem(windows(labelled(3, n=400), 1, 30_000, ordered=False), kappa=0.2)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200)), seed=0)
    assert "ended" in solution.reason or "violation" in solution.reason
