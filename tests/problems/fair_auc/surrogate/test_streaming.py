"""Fair AUC from single points: weights without bias."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, GroupWeights, resolve_metric, stream_problem
from tests.cases import fair_auc, labelled
from tests.problems.fair_auc.streams import CELLS, METRIC, cell_shares, raw, singles, slots_of

# ---------------------------------------------------------------------------------------------------- known frequencies


@pytest.mark.parametrize("metric", METRICS)
def test_known_probabilities_give_population_weights(metric: str) -> None:
    rows = labelled(n=200)
    problem = fair_auc(metric, 0.4, rows=rows)
    prepare = GroupWeights(
        resolve_metric(metric), slots_of(rows.label, rows.group, resolve_metric(metric)).mean(axis=0)
    )
    memory, found = prepare.start(), []
    for begin, end in ((0, 1), (1, 14), (14, 200)):  # the population's, whatever a block holds
        memory, arrays = prepare(memory, raw(rows, np.arange(begin, end)))
        np.testing.assert_array_equal(arrays["features"], rows.features[begin:end])
        found.append(arrays["weights"])
    np.testing.assert_allclose(np.concatenate(found), problem.data.arrays["weights"], rtol=1e-14)
    assert memory == prepare.start(), "nothing has to be remembered"


@pytest.mark.parametrize("metric", METRICS)
def test_probabilities_of_cells_are_added_up_to_those_of_slots(metric: str) -> None:
    rows = labelled(n=200)
    problem = stream_problem([*singles(rows)], metric, 0.4, probabilities=cell_shares(rows))
    expected = slots_of(rows.label, rows.group, resolve_metric(metric)).mean(axis=0)
    np.testing.assert_allclose(problem.data.prepare.probabilities, expected, rtol=1e-14)


def test_probabilities_need_only_be_nearly_one_in_all() -> None:
    """Counts divided by their sum may exceed 1 by a rounding, and people round."""
    rows = labelled(n=200)
    exact = cell_shares(rows)
    for factor in (1.0 + 4e-16, 1.0005, 0.9995):
        problem = stream_problem(
            [*singles(rows)], "group", 0.4, probabilities={c: factor * p for c, p in exact.items()}
        )
        expected = slots_of(rows.label, rows.group, resolve_metric("group")).mean(axis=0)
        np.testing.assert_allclose(problem.data.prepare.probabilities, expected, rtol=1e-13)
    zero_one = {(int(g > 0), int(y > 0)): p for (g, y), p in exact.items()}
    problem = stream_problem([*singles(rows)], "group", 0.4, probabilities=zero_one)
    np.testing.assert_allclose(problem.data.prepare.probabilities, expected, rtol=1e-13)


def test_single_points_are_unbiased() -> None:
    """The mean over one pass of batches of one equals the full data's value, moment and gradient."""
    rows = labelled(n=80)
    full = fair_auc(rows=rows)
    single = stream_problem([*singles(rows)], kappa=0.1, probabilities=cell_shares(rows))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, full.primal.dimension))
    y, a = rng.dirichlet(np.ones(3), size=2), rng.normal(size=(2, 5))
    ((_, batch),) = full.data.chunks()
    expected = full.family.evaluate(x, batch)
    batches, _ = single.data.draw(mm.Position.start(rng), 80, 1)
    found = [single.family.evaluate(x, batch) for batch in batches]
    assert len(found) == 80
    np.testing.assert_allclose(sum(e.F for e in found) / 80, expected.F, rtol=1e-12)
    np.testing.assert_allclose(sum(e.G for e in found) / 80, expected.G, rtol=1e-11, atol=1e-13)
    gradient = sum(e.pullback(y, a) for e in found) / 80
    np.testing.assert_allclose(gradient, expected.pullback(y, a), rtol=1e-11, atol=1e-13)
    assert max(np.abs(e.G - expected.G).max() for e in found) > 1.0  # though single ones are far off


# ------------------------------------------------------------------------------------------------ estimated frequencies


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("burn_in", [0, 1, 4])
@pytest.mark.parametrize("cuts", [(60,), (1, 13, 40, 60), tuple(range(1, 61)), (59, 60)])
def test_estimated_weights_count_the_present_sample(metric: str, burn_in: int, cuts: tuple[int, ...]) -> None:
    """Exactly t/N_t, by a plain loop, however the points are split into blocks."""
    rows = labelled(n=60)
    resolved = resolve_metric(metric)
    prepare = GroupWeights(resolved, burn_in=burn_in)
    memory, weights, features = prepare.start(), [], []
    for begin, end in zip((0, *cuts[:-1]), cuts, strict=True):
        memory, arrays = prepare(memory, raw(rows, np.arange(begin, end)))
        assert len(arrays["weights"]) == len(arrays["features"])
        weights.append(arrays["weights"])
        features.append(arrays["features"])
    members = slots_of(rows.label, rows.group, resolved)
    expected, kept, seen = [], [], [0] * 10
    for t in range(60):
        for j in range(10):
            seen[j] += int(members[t, j])
        if min(seen) >= burn_in:
            expected.append([(t + 1) / seen[j] if members[t, j] else 0.0 for j in range(10)])
            kept.append(t)
    assert len(kept) < 60 or burn_in == 0
    np.testing.assert_array_equal(np.concatenate(weights), expected)
    np.testing.assert_array_equal(np.concatenate(features), rows.features[kept])
    assert memory.points == 60
    assert memory.members == tuple(seen)


@pytest.mark.parametrize("t", [1, 2, 3, 4, 5])
def test_expectation_of_an_estimated_weight(t: int) -> None:
    """E 1_G (t/N_t) h = (1 - (1-p)^t) E[h | G] for every slot, by enumeration of all histories of t cells."""
    chances, heights = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, -2.0, 0.5, 3.0])
    group, label = np.array(CELLS).T
    prepare = GroupWeights(METRIC, burn_in=0)
    total = np.zeros(10)
    for history in itertools.product(range(4), repeat=t):
        cells = list(history)
        points = {"features": heights[cells][:, None], "label": label[cells], "group": group[cells]}
        _, arrays = prepare(prepare.start(), points)
        total += np.prod(chances[cells]) * arrays["weights"][-1] * heights[cells[-1]]
    members = slots_of(label, group).astype(float)
    p = chances @ members
    conditional = (chances * heights) @ members / p
    np.testing.assert_allclose(total, (1.0 - (1.0 - p) ** t) * conditional, rtol=1e-12)


def test_estimated_weights_are_unbiased() -> None:
    """Over many seeds the mean of weighted scores is each group's mean, within the Monte Carlo error."""
    rows = labelled(5, n=400)
    scores = rows.features @ np.array([1.0, -0.5, 0.25])
    members = slots_of(rows.label, rows.group)
    truth = np.array([scores[mask].mean() for mask in members.T])
    prepare = GroupWeights(METRIC)
    found = []
    for seed in range(400):
        chosen = np.random.default_rng(seed).integers(400, size=300)
        _, arrays = prepare(prepare.start(), raw(rows, chosen))
        kept = arrays["weights"] * (arrays["features"] @ np.array([1.0, -0.5, 0.25]))[:, None]
        found.append(kept[-100:].mean(axis=0))  # long after the burn-in
    error = np.std(found, axis=0, ddof=1) / 20.0
    assert (error < 0.03).all()
    assert (np.abs(np.mean(found, axis=0) - truth) < 4.0 * error).all()


def test_a_stream_resumes_with_its_counts() -> None:
    """Batches of one point, split anyhow: positions carry what has been counted."""
    rows = labelled(n=160)
    problem = stream_problem([*singles(rows)])
    stream, start = problem.data, mm.Position.start(np.random.default_rng(0))
    whole = [batch["weights"] for batch in stream.draw(start, 200, 1)[0]]
    assert 60 < len(whole) < 160, "the burn-in takes some points"
    where, found = start, []
    for steps in (1, 2, 30, 1, 200):
        batches, where = stream.draw(where, steps, 1)
        found += [batch["weights"] for batch in batches]
        where = pickle.loads(pickle.dumps(where))
        stream = pickle.loads(pickle.dumps(stream))
    np.testing.assert_array_equal(found, whole)
    assert where.memory.points == 160
