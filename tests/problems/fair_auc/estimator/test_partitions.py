"""Fits of a Dask DataFrame: those of the same rows in one frame, computed where the partitions are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.problems.fair_auc.estimator.samples import biased_rows

REASON = "dask is not installed: pip install 'minmaxcon[cluster]'"
dask = pytest.importorskip("dask", reason=REASON)
frames = pytest.importorskip("dask.dataframe", reason=REASON)


@pytest.fixture(autouse=True)
def _here() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    found = biased_rows(3000, 1)
    table = pd.DataFrame(found.X, columns=["a", "b", "c", "d"])
    return table.assign(y=found.y, group=found.group)


def partitioned(rows: pd.DataFrame, *ends: int) -> Any:
    """Return the rows in partitions that end there; the last is empty."""
    parts = [rows.iloc[begin:end] for begin, end in zip((0, *ends), (*ends, len(rows)), strict=True)]
    return frames.from_delayed([dask.delayed(lambda part: part)(part) for part in (*parts, rows.iloc[:0])])


def fitted(source: Any, weight: str | None = None, **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(
        "inter_group", max_gap=0.02, max_rows_per_cell=settings.pop("capacity", 150), random_state=0, **settings
    )
    return model.fit(source, "y", sensitive_features="group", sample_weight=weight)


@pytest.mark.parametrize("capacity", [150, 4096])
def test_the_fit_is_that_of_one_frame(rows: pd.DataFrame, capacity: int) -> None:
    """To the last bit, sampled or whole: coefficients, targets, and the measures of all rows."""
    weight = None if capacity == 4096 else "w"
    if weight is not None:  # a whole partition is left out
        rows = rows.assign(w=np.where(np.arange(len(rows)) < 700, 0.0, 1.0 + np.arange(len(rows)) % 3))
    one, other = (fitted(source, weight, capacity=capacity) for source in ([rows], partitioned(rows, 700, 1900)))
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert (one.gap_, one.auc_, one.target_, one.status_) == (other.gap_, other.auc_, other.target_, other.status_)
    assert other.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    given = {} if weight is None else {"sample_weight": rows[weight]}
    measured = other.measure(rows[["a", "b", "c", "d"]], rows["y"], sensitive_features=rows["group"], **given)
    assert measured.gap.value == pytest.approx(other.gap_.value, abs=1e-12)


@pytest.mark.filterwarnings("ignore:out_of_reach")  # of a sample so small
def test_only_labels_groups_and_the_sample_are_fetched(rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back of a computation never has the features of more rows than the sample keeps."""
    fetched: list[int] = []
    compute = dask.compute

    def counted(*tasks: Any) -> Any:
        found = compute(*tasks)
        fetched.extend(part.size for part in found if isinstance(part, np.ndarray))
        return found

    monkeypatch.setattr(dask, "compute", counted)
    fitted(partitioned(rows, 1500), capacity=50)
    assert sum(fetched) == 4 * 50 * 4  # features of the rows kept of four cells


FAULTS: dict[str, tuple[Any, str, str]] = {
    "no number": (lambda rows: rows.assign(a=["x"] * len(rows)), "y", r"partition 0.*column 'a' holds texts"),
    "missing": (
        lambda rows: rows.assign(b=rows["b"].where(np.arange(len(rows)) != 2000)),
        "y",
        r"Dask DataFrame, partition 1: .*row",
    ),
    "no column": (lambda rows: rows, "z", "y names column 'z', which there is not; its columns are 'a'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_one_line_with_its_partition(rows: pd.DataFrame, fault: str) -> None:
    spoil, label, says = FAULTS[fault]
    model = FairAUCClassifier("inter_group")
    with pytest.raises(mm.MinMaxConError, match=says) as caught:
        model.fit(partitioned(spoil(rows), 1500), label, sensitive_features="group")
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "n_features_in_")


def test_a_partition_that_cannot_be_made_is_one_line(rows: pd.DataFrame) -> None:
    def lost() -> pd.DataFrame:
        raise OSError("the disk of\nthis worker is gone")

    made = frames.from_delayed([dask.delayed(lost)()], meta=rows.iloc[:0])
    with pytest.raises(mm.MinMaxConError, match=r"partitions 0 to 0 could not be computed \(OSError: the disk of this"):
        fitted(made)


def test_labels_at_hand_do_not_go_with_partitions(rows: pd.DataFrame) -> None:
    with pytest.raises(mm.InvalidInput, match="is the name of a column"):
        FairAUCClassifier().fit(partitioned(rows, 10), rows["y"], sensitive_features=rows["group"])


@pytest.mark.rel
def test_two_worker_processes_give_the_same(rows: pd.DataFrame) -> None:
    distributed = pytest.importorskip("dask.distributed", reason=REASON)
    with (
        dask.config.set(scheduler=None),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        found = fitted(frames.from_pandas(rows, npartitions=4, sort=False))
    assert found.coef_.tobytes() == fitted([rows]).coef_.tobytes()
