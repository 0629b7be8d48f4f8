"""Fair AUC of data sets larger than memory: the same problem, measures and models as of the same rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.core.linearisation import exact_values
from minmaxcon.errors import DataError
from minmaxcon.metrics import auc, auc_gap
from minmaxcon.testing import check_problem
from minmaxcon_problems.fair_auc import FairAUCClassifier, build_problem, resolve_metric
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.labelled import FileColumns, LabelledData, read_table
from minmaxcon_problems.fair_auc.streamed import CELLS, large_evaluation, large_problem, load_large, too_large

N = 6000
COLUMNS: dict[str, Any] = {"label": "y", "sensitive": "g", "positive": "yes"}


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.3
    points = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 100.0, 0.0] + 0.5 * group[:, None]
    kind = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    label = points @ [1.0, 0.2, 1.0] - 20.0 + (kind == "a") + 0.8 * group + rng.normal(size=n) > 0.7
    columns = {f"x{j}": points[:, j] for j in range(3)}
    return pd.DataFrame({**columns, "kind": kind, "y": np.where(label, "yes", "no"), "g": np.where(group, "f", "m")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder of three files, sorted by label and group: the worst order there is."""
    found = tmp_path_factory.mktemp("large")
    rows = pa.Table.from_pandas(frame().sort_values(["y", "g"]), preserve_index=False)
    for k in range(3):
        pq.write_table(rows.slice(2000 * k, 2000), found / f"part-{k}.parquet", row_group_size=700)
    return found


@pytest.fixture(scope="module")
def large(folder: Path) -> Any:
    return load_large(folder, columns=FileColumns(label="y", sensitive="g", positive="yes"), seed=3)


def in_memory(large: Any) -> LabelledData:
    """The training rows of a large data set as rows in memory."""
    features, cells = (np.concatenate(parts) for parts in zip(*large.train.pieces(), strict=True))
    signs = CELLS[cells]
    return LabelledData(features, signs[:, 0], signs[:, 1], large.train.feature_names)


def test_features_are_those_of_the_whole_table(large: Any) -> None:
    assert large.train.feature_names == ("x0", "x1", "x2", "kind=a", "kind=b", "kind=c")
    assert (large.train.label_values, large.train.group_values) == (("no", "yes"), ("m", "f"))
    rows = in_memory(large)
    np.testing.assert_allclose(rows.features.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(rows.features.std(axis=0), 1.0, rtol=1e-11)
    raw, whole = (
        frame(),
        np.concatenate([part for name in ("train", "test") for part, _ in getattr(large, name).pieces()]),
    )
    back = whole * large.standardizer.scale + large.standardizer.mean
    np.testing.assert_allclose(np.sort(back[:, 1]), np.sort(raw["x1"]), rtol=1e-12)
    assert len(large.train) + len(large.test) == N
    assert 0.27 < len(large.test) / N < 0.33
    assert np.array_equal(np.bincount(2 * (rows.label > 0) + (rows.group > 0), minlength=4), large.train.counts)


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_the_problem_is_that_of_the_same_rows_in_memory(large: Any, folder: Path, model: str) -> None:
    streamed = mm.load_problem("fair_auc", data=folder, **COLUMNS, kappa=0.1, seed=3, model=model)
    rows = in_memory(large)
    dataset = Dataset("drawn", rows, None, rows)
    scorer, engine = (mm.Linear(6), "numpy") if model == "linear" else (mm.mlp(6), "torch")
    plain = build_problem(dataset, resolve_metric("inter_group"), 0.1, model=scorer, engine=engine, seed=3)
    points = streamed.primal.sample(np.random.default_rng(0), 3)
    one, other = (
        exact_values(each.family, mm.arrays.namespace(each.data.like).asarray(points, each.data.like), each.data)
        for each in (streamed, plain)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
    moments = np.random.default_rng(1).normal(size=(5, 2))
    for function, same in zip(streamed.constraints, plain.constraints, strict=True):
        np.testing.assert_allclose(function.dual.maximize(moments)[1], same.dual.maximize(moments)[1], rtol=1e-9)


def test_problems_of_one_data_set_do_not_change_one_another(large: Any) -> None:
    """Each metric weighs the rows in its own way; all read the same copy on disk."""
    metrics = [resolve_metric(name) for name in ("group", "inter_group")]
    problems = [large_problem(large, metric, 0.1) for metric in metrics]
    rows = in_memory(large)
    for metric, problem in zip(metrics, problems, strict=True):
        alone = build_problem(Dataset("alone", rows, None, rows), metric, 0.1)
        points = alone.primal.sample(np.random.default_rng(0), 3)
        found, expected = (exact_values(one.family, points, one.data) for one in (problem, alone))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_scores_that_rounding_alone_tells_apart_are_one_score(large: Any) -> None:
    """The columns of the kinds sum up to one, so that a weight for each in its own unit tells no rows apart."""
    problem = large_problem(large, resolve_metric("group"), 0.1)
    x = np.zeros(problem.primal.dimension)
    x[3:6] = 7.0 * large.standardizer.scale[3:6]
    scores = in_memory(large).features @ x[:6]
    assert 0 < np.ptp(scores) < 1e-13
    found = large_evaluation(problem, x)
    assert [(found[part]["auc"], found[part]["auc_gap"]) for part in ("train", "test")] == [(0.5, 0.0)] * 2


def test_a_solve_of_a_sorted_file_is_as_good_as_one_in_memory(folder: Path, large: Any) -> None:
    rows = in_memory(large)
    plain = build_problem(Dataset("drawn", rows, None, rows), resolve_metric("inter_group"), 0.05)
    solver = mm.SFLS(oracle=mm.SMD(steps=100), tolerance=0.02)
    streamed = mm.load_problem("fair_auc", data=folder, **COLUMNS, kappa=0.05, seed=3)
    one, other = mm.solve(streamed, solver), mm.solve(plain, solver)
    assert one.status is other.status is mm.Status.SOLVED
    start = exact_values(plain.family, plain.start_point(), plain.data)[0, 0]
    assert one.objective == pytest.approx(other.objective, abs=0.02 * (start - other.certificate.lower))
    assert one.certificate.lower <= other.objective + 1e-9
    found = mm.plugin("fair_auc").evaluate(streamed, one.x)
    assert found["objective"] == pytest.approx(one.objective, rel=1e-9)
    np.testing.assert_allclose(np.array(found["values"]) - 1.05, one.constraints, atol=1e-9)
    scores = rows.features @ one.x[:6]
    assert found["train"]["auc"] == auc(scores[rows.label > 0], scores[rows.label < 0])
    masks = resolve_metric("inter_group").masks(rows.label, rows.group)
    gap = auc_gap(scores, (masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3]))
    assert found["train"]["auc_gap"] == pytest.approx(gap, abs=1e-15)
    assert found["test"]["rows"] == len(large.test)


def test_the_command_streams_what_needs_more_memory_than_it_may_use(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "big.parquet"
    pq.write_table(pa.Table.from_pandas(frame(2000), preserve_index=False), path)
    words = ["solve", "fair_auc", "--data", str(path), "--label", "y", "--sensitive", "g", "--kappa", "0.1", "--quiet"]
    words += ["--solver", "sfls", "--memory", "70K", "--dtype", "float32"]
    assert main([*words, "--out", str(tmp_path / "found")]) == 0
    told = capsys.readouterr().out
    assert "SOLVED" in told
    scores = ["predict", str(tmp_path / "found"), "--data", str(path), "--out", str(tmp_path / "scores.csv")]
    assert main(scores) == 0
    written = pd.read_csv(tmp_path / "scores.csv")
    assert len(written) == 2000
    words[words.index("--kappa") : words.index("--kappa") + 2] = ["--max-gap", "0.02"]
    assert main(words) == 2
    assert "error: --max-gap=0.02: looks at all scores at once" in capsys.readouterr().err
    assert not too_large(path)


class Alone(mm.distributed.Processes):
    """One process, that is told what it tells."""

    def exchange(self, value: Any) -> list[Any]:
        return [value]

    def total(self, value: Any) -> Any:
        return value


def test_of_one_process_the_shard_is_the_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**COLUMNS, "kappa": 0.1, "seed": 3}
    whole = mm.load_problem("fair_auc", data=folder, **options)
    for name in ("current", "join"):
        monkeypatch.setattr(mm.distributed, name, lambda: Alone(0, 1))
    shared = mm.load_problem("fair_auc", data=folder, **options)
    x = whole.start_point() + 0.1
    np.testing.assert_array_equal(shared.at_level(0.0).values(x), whole.at_level(0.0).values(x))


def test_a_libsvm_file_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "small.libsvm"
    rng = np.random.default_rng(0)
    lines = [
        f"{int(rng.random() < 0.4)} 1:{rng.normal():.4g} 2:{rng.normal():.4g} 3:{int(rng.random() < 0.4)}\n"
        for _ in range(400)
    ]
    path.write_text("".join(lines))
    monkeypatch.setenv("MINMAXCON_MEMORY", "10K")
    problem = mm.load_problem("fair_auc", data=path, sensitive=3, kappa=0.1)
    assert problem.data.streamed
    assert problem.details.dataset.train.feature_names == ("1", "2")
    _, description = mm.plugin("fair_auc").export(problem, problem.start_point()[0])
    assert description["encoding"] == {"n_features": 3, "removed": 3, "format": "libsvm"}


def test_the_checks_of_problems_hold(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(frame(200), preserve_index=False), tmp_path / "rows.parquet")
    check_problem(mm.load_problem("fair_auc", data=tmp_path, **COLUMNS, kappa=0.1)).raise_if_failed()


BAD: dict[str, Any] = {
    "label": ({"label": "z"}, "no column 'z', asked for by label"),
    "sensitive": ({"sensitive": "y"}, "is the label"),
    "no label": ({"label": None}, "label=None: name the column of the label; only a LIBSVM file has it in a fixed"),
    "positive": ({"positive": "perhaps"}, "has no value 'perhaps'"),
    "labels": ({"label": "kind"}, "has 3 labels"),
    "groups": ({"sensitive": "kind"}, "has 3 values"),
    "several columns": ({"sensitive": "g,kind"}, "it names 2 columns, and one is taken: join them into one column"),
    "fraction": ({"test_fraction": 1.0}, "must lie strictly between 0 and 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused(folder: Path, case: str) -> None:
    changed, said = BAD[case]
    options = {**COLUMNS, **({"positive": None} if case == "labels" else {}), **changed}
    with pytest.raises(mm.MinMaxConError, match=said) as caught:
        mm.load_problem("fair_auc", data=folder, **options)
    assert "\n" not in str(caught.value)


def test_notes_are_no_categories_of_a_large_data_set_either(tmp_path: Path) -> None:
    rows = frame(400).assign(note=[f"seen on day {k}" for k in range(400)])
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    columns = FileColumns(**COLUMNS)
    with pytest.raises(DataError, match=r"column 'note' has 400 different texts .*the column out: ignore='note'\.$"):
        load_large(tmp_path / "rows.parquet", seed=0, columns=columns)
    found = load_large(tmp_path / "rows.parquet", seed=0, columns=FileColumns.of(**COLUMNS, ignore="note, x1"))
    assert found.train.feature_names == ("x0", "x2", "kind=a", "kind=b", "kind=c")
    with pytest.raises(DataError, match="column 'note' has 400 different texts in 400 rows, such as notes"):
        read_table(rows, **COLUMNS)
    with pytest.raises(DataError, match="asked for by sensitive_features; it names 2 columns, and one is taken"):
        FairAUCClassifier().fit(tmp_path / "rows.parquet", "y", sensitive_features="g, kind")


# ------------------------------------------------------------------------------------------------------ the classifier


def numeric(n: int = 4000) -> pd.DataFrame:
    return frame(n).drop(columns="kind").assign(y=lambda rows: (rows["y"] == "yes").astype(int))


def test_the_classifier_fits_a_data_set_and_measures_all_rows(tmp_path: Path) -> None:
    rows = numeric(20_000).sort_values(["y", "g"])
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet", row_group_size=3000)
    made = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0, max_rows_per_cell=500)
    made.fit(tmp_path / "rows.parquet", "y", sensitive_features="g")
    features = rows[["x0", "x1", "x2"]]
    there = made.measure(features, rows["y"], sensitive_features=rows["g"])
    assert (made.auc_.value, made.gap_.value) == pytest.approx((there.auc.value, there.gap.value), abs=1e-12)
    assert made.gap_.upper == pytest.approx(there.gap.upper, abs=1e-3)
    assert made.gap_.value <= 0.02
    assert made.target_ <= 0.02
    assert made.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    assert list(made.feature_names_in_) == ["x0", "x1", "x2"]
    assert (made.classes_.tolist(), made.protected_) == ([0, 1], "f")
    at_hand = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0).fit(
        features, rows["y"], sensitive_features=rows["g"]
    )
    assert made.auc_.value == pytest.approx(at_hand.auc_.value, abs=0.01)


def test_frames_one_after_the_other_give_the_same_model() -> None:
    rows = numeric()
    parts = [rows.iloc[begin : begin + 700] for begin in range(0, len(rows), 700)]
    one, other = (
        FairAUCClassifier("group", max_gap=0.1, random_state=0, max_rows_per_cell=300).fit(
            source, "y", sensitive_features="g"
        )
        for source in (parts, lambda: iter([rows]))
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.gap_.value == other.gap_.value


@pytest.fixture(scope="module")
def weighted() -> pd.DataFrame:
    """Give rows with weights that are no whole numbers; some are 0."""
    rows = numeric(1500)
    weight = np.random.default_rng(5).uniform(0.2, 3.0, len(rows))
    weight[::7] = 0.0
    return rows.assign(w=weight)


def test_weights_of_a_data_set_are_those_of_rows_at_hand(weighted: pd.DataFrame, tmp_path: Path) -> None:
    """The same model, gap and AUC where every row is kept; of a sample the measures are those of all rows."""
    pq.write_table(pa.Table.from_pandas(weighted, preserve_index=False), tmp_path / "w.parquet", row_group_size=400)
    rows = weighted[["x0", "x1", "x2"]], weighted["y"]
    given = {"sensitive_features": weighted["g"], "sample_weight": weighted["w"]}
    named = {"sensitive_features": "g", "sample_weight": "w"}
    settings: dict[str, Any] = {"metric": "inter_group", "max_gap": 0.05, "random_state": 0}
    at_hand = FairAUCClassifier(**settings).fit(*rows, **given)
    made = FairAUCClassifier(**settings).fit(tmp_path / "w.parquet", "y", **named)
    plain = FairAUCClassifier(**settings).fit([weighted.drop(columns="w")], "y", sensitive_features="g")
    assert list(made.feature_names_in_) == ["x0", "x1", "x2"]
    np.testing.assert_allclose(made.coef_, at_hand.coef_, rtol=2e-3)
    assert abs(made.coef_ - plain.coef_).max() > 10 * abs(made.coef_ - at_hand.coef_).max()
    for one, other in ((made.gap_, at_hand.gap_), (made.auc_, at_hand.auc_)):
        assert one.value == pytest.approx(other.value, abs=2e-4)
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.02)
        assert one.upper == pytest.approx(one.value + 1.959964 * one.standard_error)
        assert one.counts == other.counts
    told = {
        found.reason_.partition("The smallest set behind the gap, ")[2].partition(":")[0] for found in (made, at_hand)
    }
    cells = [
        int(((weighted["y"] == y) & (weighted["g"] == g) & (weighted["w"] > 0)).sum()) for y in (0, 1) for g in "fm"
    ]
    (told_of,) = told
    assert told_of.endswith(f" has {min(cells)} rows")  # rows, of any weight
    sampled = FairAUCClassifier(**settings, max_rows_per_cell=100).fit(
        [weighted.iloc[:700], weighted[700:]], "y", **named
    )
    there = sampled.measure(*rows, **given)
    assert (sampled.auc_.value, sampled.gap_.value) == pytest.approx((there.auc.value, there.gap.value), abs=1e-12)
    assert sampled.gap_.value <= 0.05


@pytest.mark.parametrize(
    "bad, said",
    [
        (-1.0, r"row 901, column 'w': the weight -1 is negative; weights are at least 0\.$"),
        (np.nan, "row 901, column 'w': the value is missing"),
        (np.inf, "row 901, column 'w': the value inf is not finite"),
        ("much", "row 901, column 'w': the value 'much' is text in a numeric column"),
        (None, "column 'w', the weights, is 0 in every row"),
    ],
)
def test_what_is_no_weight_of_a_data_set_is_refused(weighted: pd.DataFrame, bad: Any, said: str) -> None:
    if bad is None:
        rows = weighted.assign(w=0)
    else:
        rows = weighted.assign(w=weighted["w"].astype(object).where(np.arange(len(weighted)) != 900, bad))
    with pytest.raises(DataError, match=said):
        FairAUCClassifier().fit([rows.iloc[:600], rows.iloc[600:]], "y", sensitive_features="g", sample_weight="w")


def test_without_groups_there_is_no_constraint() -> None:
    rows = numeric().drop(columns="g")
    with pytest.warns(UserWarning, match="without a fairness constraint"):
        made = FairAUCClassifier(random_state=0, max_rows_per_cell=300).fit([rows], "y")
    assert made.gap_ is None
    assert made.auc_.value > 0.7


def test_data_sets_that_cannot_be_fitted_leave_the_estimator_as_it_was() -> None:
    made = FairAUCClassifier("group", max_gap=0.1, random_state=0, max_rows_per_cell=300)
    made.fit([numeric()], "y", sensitive_features="g")
    before = made.coef_
    for source, options, said in (
        ([frame()], {"sensitive_features": "g"}, "column 'kind' holds texts, such as"),
        ([numeric()], {"sensitive_features": "z"}, "no column 'z', asked for by sensitive_features"),
        ([numeric()], {"sensitive_features": [1]}, "must name a column"),
        ([numeric()], {"sensitive_features": "g", "sample_weight": [1.0]}, "sample_weight='list': must name a column"),
        ([numeric()], {"sensitive_features": "g", "sample_weight": "w"}, "no column 'w', asked for by sample_weight"),
        ([numeric()], {"sensitive_features": "g", "sample_weight": "g"}, "is the column of sensitive_features; each"),
        (iter([numeric()]), {"sensitive_features": "g"}, "a function that returns a fresh iterator"),
        ("missing.parquet", {"sensitive_features": "g"}, "no such file"),
    ):
        with pytest.raises(mm.MinMaxConError, match=said):
            made.fit(source, "y", **options)
        np.testing.assert_array_equal(made.coef_, before)
    with pytest.raises(mm.InvalidInput, match="y='list': must name a column where X is a data set"):
        made.fit("missing.parquet", [0, 1], sensitive_features=[0, 1])
    with pytest.raises(mm.InvalidInput, match=r"X='rows\.parquet': must hold the rows to be scored"):
        made.predict("rows.parquet")


def test_a_csv_file_is_streamed_like_the_same_rows_in_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(600)
    rows.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet")
    monkeypatch.setenv("MINMAXCON_MEMORY", "20K")
    found = [
        mm.load_problem("fair_auc", data=tmp_path / f"rows.{kind}", **COLUMNS, kappa=0.1, seed=3)
        for kind in ("csv", "parquet")
    ]
    assert all(one.details.dataset.streamed for one in found)
    assert found[0].data.digest == found[1].data.digest
    monkeypatch.setenv("MINMAXCON_MEMORY", "1G")
    assert not mm.load_problem("fair_auc", data=tmp_path / "rows.csv", **COLUMNS, kappa=0.1).details.dataset.streamed
