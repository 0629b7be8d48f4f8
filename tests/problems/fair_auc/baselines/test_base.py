"""What holds for every baseline: names, runs, seeds, settings and refusals."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, Dataset
from minmaxcon_problems.fair_auc.baselines import (
    BASELINES,
    CorrelationPenalty,
    GradientBaseline,
    PostProcessing,
    ProxyLagrangian,
    Unconstrained,
)
from minmaxcon_problems.fair_auc.labelled import LabelledData

SMALL: dict[str, Any] = {"steps": 60, "moments": 3, "batch_size": 24}
GRADIENT = [Unconstrained, CorrelationPenalty, ProxyLagrangian]
MODELS = [mm.Linear(4), mm.MLP(4, 3)]


def test_the_baselines_have_names_and_need_no_tuning() -> None:
    assert list(BASELINES) == ["unconstrained", "correlation", "proxy_lagrangian", "post_processing"]
    for name, kind in BASELINES.items():
        assert kind().name == name
        assert kind() == kind()


@pytest.mark.parametrize("kind", GRADIENT)
@pytest.mark.parametrize("model", MODELS, ids=["linear", "mlp"])
def test_runs_carried_together_are_the_runs_alone(dataset: Dataset, kind: Any, model: mm.Model) -> None:
    strengths, rates = [0.0, 0.3], (0.003, 0.03)
    together = kind(**SMALL, rates=rates, dtype="float64").fit(
        dataset, METRICS["group"], strengths, model=model, seed=1
    )
    count = len(together.strengths) // 2
    assert together.shape == (6, 2 * count)
    np.testing.assert_array_equal(together.rates, rates * count)
    np.testing.assert_array_equal(together.strengths, np.repeat(strengths[:count], 2))
    for r, (strength, rate) in enumerate(zip(together.strengths, together.rates, strict=True)):
        alone = kind(**SMALL, rates=(rate,), dtype="float64").fit(
            dataset, METRICS["group"], [strength], model=model, seed=1
        )
        np.testing.assert_allclose(alone.parameters[:, 0], together.parameters[:, r], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [*GRADIENT, PostProcessing])
@pytest.mark.parametrize("model", MODELS, ids=["linear", "mlp"])
def test_the_seed_decides_every_bit(dataset: Dataset, kind: Any, model: mm.Model) -> None:
    settings = {"base": Unconstrained(**SMALL)} if kind is PostProcessing else SMALL
    method = pickle.loads(pickle.dumps(copy.deepcopy(kind(**settings))))
    first, again, other = (
        method.fit(dataset, METRICS["group"], [0.1, 0.2], model=model, seed=seed).parameters for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_validation_and_test_rows_do_not_train(dataset: Dataset) -> None:
    blind = Dataset("made up", dataset.train, None, dataset.test.select(np.arange(1)))
    for kind in GRADIENT:
        seen, unseen = (
            kind(**SMALL).fit(data, METRICS["group"], [0.1], model=mm.Linear(4), seed=0).parameters
            for data in (dataset, blind)
        )
        np.testing.assert_array_equal(seen, unseen)


@pytest.mark.parametrize(
    "setting, value",
    [
        ("c1", 0.0),
        ("c2", float("nan")),
        ("c2", "one"),
        ("batch_size", 2.5),
        ("steps", 0),
        ("moments", True),
        ("moments", 5000),
        ("rates", ()),
        ("rates", 0.1),
        ("rates", "0.1"),
        ("rates", (0.1, -1.0)),
        ("dtype", "float16"),
    ],
)
@pytest.mark.parametrize("kind", GRADIENT)
def test_settings_out_of_range_are_refused_at_construction(kind: Any, setting: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=f"^{setting}=.*(must|use)"):
        kind(**{setting: value})


@pytest.mark.parametrize("strengths", [[], [-0.1], [np.nan], ["a"], 0.1, [[0.1]]])
@pytest.mark.parametrize("kind", [CorrelationPenalty, ProxyLagrangian])
def test_strengths_out_of_range_are_refused(dataset: Dataset, kind: Any, strengths: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"^strengths="):
        kind().fit(dataset, METRICS["group"], strengths, model=mm.Linear(4), seed=0)


@pytest.mark.parametrize("kind", BASELINES.values())
def test_a_metric_without_members_is_refused(dataset: Dataset, kind: Any) -> None:
    train = dataset.train.select(dataset.train.group < 0)
    with pytest.raises(mm.DataError, match="protected"):
        kind().fit(Dataset("one group", train, None, train), METRICS["group"], [0.1], model=mm.Linear(4), seed=0)


def test_rates_may_be_any_sequence_and_are_frozen() -> None:
    method: GradientBaseline = Unconstrained(rates=[1, 2])
    assert method.rates == (1.0, 2.0)
    with pytest.raises(AttributeError):
        method.steps = 5


def test_sparse_rows_train_alike(dataset: Dataset) -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")

    def sparse(rows: LabelledData) -> LabelledData:
        return replace(rows, features=scipy_sparse.csr_array(rows.features))

    other = Dataset("sparse", sparse(dataset.train), sparse(dataset.test), sparse(dataset.test))
    for metric in ("group", "intra_group"):
        tracks = [
            ProxyLagrangian(**SMALL).fit(d, METRICS[metric], [0.1], model=mm.Linear(4), seed=0).parameters
            for d in (dataset, other)
        ]
        np.testing.assert_array_equal(*tracks)
