"""``minmaxcon predict`` where the truth is known: the measures of ``measure_scores`` in words, or one refusal."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import minmaxcon as mm
from minmaxcon.results import model_bytes
from minmaxcon_problems.fair_auc import measure_scores
from minmaxcon_problems.fair_auc.plugin import plugin as fair_auc
from tests.cli.conftest import FILE_OPTIONS, call, table_rows, write_table

__all__ = ["call"]

TRUTH = ("--label", "label", "--sensitive", "group")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Give the arrays and the description of a linear model of the table, whichever its weights."""
    rows = write_table(tmp_path_factory.mktemp("training") / "train.csv", table_rows())
    given = {"data": str(rows), "label": "label", "sensitive": "group", "metric": "intra_group", "kappa": 0.3}
    problem = mm.load_problem("fair_auc", **given)
    arrays, description = fair_auc.export(problem, np.array([0.5, 1.0, 0.2, -0.2]))
    return arrays, description


@pytest.fixture
def model(exported: tuple[Any, Any], tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(model_bytes(*exported))
    return folder


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Give new rows, with an identifier that must stay as it is."""
    rows = [[f"{k:04d}", *row] for k, row in enumerate(table_rows(90, seed=5))]
    return write_table(tmp_path / "fresh.csv", rows, "person,x1,x2,colour,group,label")


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_the_measures_are_those_of_measure_scores(call: Callable[..., Any], model: Path, fresh: Path) -> None:
    """Text and JSON; the metric is by default that of training, and any other can be asked for."""
    scores = [float(line) for line in call("predict", model, "--data", fresh).out.splitlines()]
    y, group = column(fresh, "label"), column(fresh, "group")
    for more, metric, confidence in (
        ((), "intra_group", 0.95),
        (("--metric", "inter_group", "--confidence", 0.8), "inter_group", 0.8),
    ):
        expected = measure_scores(
            scores, y, sensitive_features=group, metric=metric, protected="b", positive="yes", confidence=confidence
        )
        done = call("predict", model, "--data", fresh, *TRUTH, *more)
        assert (done.status, done.err) == (0, "")
        assert " ".join(done.out.split()) == " ".join(str(expected).split())
        told = json.loads(call("predict", model, "--data", fresh, *TRUTH, *more, "--json").out)
        assert told["measured"] == json.loads(json.dumps(expected.as_dict()))
        assert (told["rows"], told["data"], "scores" in told) == (90, str(fresh), False)
    alone = call("predict", model, "--data", fresh, "--label", "label")
    assert alone.out == f"AUC {measure_scores(scores, y).auc}\n"


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_probabilities_are_those_of_a_logistic_regression_of_the_training_rows(
    kind: str, tmp_path: Path, fresh: Path
) -> None:
    """On Platt's targets, by the scores of the saved model, whatever the scaling in which it was trained."""
    train = write_table(tmp_path / "train.csv", table_rows())
    test = write_table(tmp_path / "test.csv", table_rows(80, seed=9))
    given = {"data": str(train), "test": str(test), "label": "label", "sensitive": "group", "kappa": 0.3}
    problem = mm.load_problem("fair_auc", **given, model=kind)
    x = np.random.default_rng(0).normal(size=problem.primal.dimension)  # which ranks better than chance
    saved = fair_auc.export(problem, x)
    scores, positive = fair_auc.predict(*saved, str(train)), np.array(column(train, "label")) == "yes"
    counts = positive.sum(), (~positive).sum()
    target = np.where(positive, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
    # A soft target is two rows, one of each label, with the target as weight.
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(
        np.tile(scores[:, None], (2, 1)),
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    new = fair_auc.predict(*saved, str(fresh))
    found = fair_auc.probabilities(saved[1], new)
    np.testing.assert_allclose(found, reference.predict_proba(new[:, None])[:, 1], atol=2e-4, rtol=0.0)
    assert (np.argsort(found) == np.argsort(new)).all()


def test_the_command_gives_probabilities_where_the_model_has_them(
    call: Callable[..., Any], exported: tuple[Any, Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    """In each form of output, under a name of their own; measures stay those of the scores."""
    arrays, description = exported
    expected = fair_auc.probabilities(description, fair_auc.predict(*exported, str(fresh))).tolist()
    asked = ("predict", model, "--data", fresh, "--probabilities")
    assert [float(line) for line in call(*asked).out.splitlines()] == expected
    assert json.loads(call(*asked, "--json").out)["probabilities"] == expected
    written = call(*asked, "--id", "person", "--out", tmp_path / "chance.csv")
    assert written.err == f"minmaxcon: written: {tmp_path / 'chance.csv'} (90 probabilities)\n"
    assert [float(cell) for cell in column(tmp_path / "chance.csv", "probability")] == expected
    measured, plain = (
        json.loads(call("predict", model, "--data", fresh, *TRUTH, "--json", *more).out)["measured"]
        for more in (("--probabilities", "--out", tmp_path / "both.csv"), ())
    )
    assert measured == plain
    assert [float(cell) for cell in column(tmp_path / "both.csv", "probability")] == expected
    for more, named in ((("--probabilities",), "--probabilities=True"), (("--id", "person"), "--id='person'")):
        idle = call("predict", model, "--data", fresh, *TRUTH, *more)
        assert (idle.status, idle.out, idle.err.count("\n")) == (2, "", 1)
        assert f"{named}: acts on the scores, and measures are printed: name a file by --out." in idle.err
    assert "no such result folder" in call("predict", tmp_path / "none", "--probabilities", "--data", fresh).err
    assert (fair_auc.probabilities(description, np.array([-1e308, 1e308])) == [0.0, 1.0]).all()
    for forged, said in (
        (None, "the model has no calibration: an earlier version saved the model"),
        ("steep", "calibration='steep': is no calibration"),
        ({"log_slope": 1e3, "intercept": 0.0}, "calibration.log_slope=1000.0: is out of range"),
        ({"log_slope": 0.0}, "calibration.intercept=None: is out of range"),
    ):
        (model / "model.safetensors").write_bytes(model_bytes(arrays, {**description, "calibration": forged}))
        refused = call(*asked, "--out", tmp_path / "scores.csv")
        assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert said in refused.err
        assert not (tmp_path / "scores.csv").exists()
        assert call("predict", model, "--data", fresh).status == 0


def test_the_other_label_and_group_are_measured_where_they_are_asked_for(
    call: Callable[..., Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    """Labels may be called otherwise in new rows, and another group may be the protected one."""
    as_numbers = tmp_path / "numbers.csv"
    as_numbers.write_text(fresh.read_text().replace(",yes", ",1").replace(",no", ",0"))
    refused = call("predict", model, "--data", as_numbers, *TRUTH)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "column 'label': " in refused.err
    assert "is no label of the training data (--positive says" in refused.err
    plain = json.loads(call("predict", model, "--data", fresh, *TRUTH, "--json").out)["measured"]
    words = ("--positive", 1, "--protected", "a", "--json")
    other = json.loads(call("predict", model, "--data", as_numbers, *TRUTH, *words).out)["measured"]
    assert other["auc"] == plain["auc"]
    assert (other["positive"], other["groups"][0]["group"]) == (1, "a")
    assert other["groups"][0]["signed"]["value"] == pytest.approx(-plain["groups"][0]["signed"]["value"])


def test_truth_that_cannot_be_used_is_one_line(
    call: Callable[..., Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    third = tmp_path / "third.csv"
    third.write_text(fresh.read_text().replace(",a,yes", ",c,yes", 1))
    for data, words, said in (
        (fresh, ("--label", "lable", "--sensitive", "group"), "no column 'lable', asked for by --label; did you mean"),
        (fresh, ("--label", "label", "--sensitive", "grup"), "no column 'grup', asked for by --sensitive; did you"),
        (fresh, ("--label", "label", "--sensitive", "label"), "--sensitive='label': is the label"),
        (fresh, ("--label", "group", "--sensitive", "label"), "is no label of the training data"),
        (fresh, ("--label", "x1"), "is no label of the training data"),
        (fresh, ("--sensitive", "group"), "--label: name the column of the label"),
        (fresh, ("--label", "label", "--metric", "group"), "--metric='group': is about groups: name"),
        (fresh, ("--label", "label", "--missing", "dorp"), "--missing"),
        (fresh, (*TRUTH, "--metric", "grup"), "did you mean 'group'"),
        (fresh, (*TRUTH, "--positive", "no"), "--positive='no': low scores of this model mean this label"),
        (fresh, (*TRUTH, "--positive", "maybe"), "no value 'maybe', asked for by --positive"),
        (fresh, (*TRUTH, "--protected", "z"), "no value 'z', asked for by --protected"),
        (fresh, (*TRUTH, "--confidence", 2), "--confidence=2"),
        (fresh, (*TRUTH, "--senstive", "group"), "Unknown option: --senstive. Did you mean --sensitive?"),
        (third, TRUTH, "'c' is no group of the training data (--protected says"),
        (tmp_path / "none.csv", TRUTH, "no such file"),
    ):  # fmt: skip
        done = call("predict", model, "--data", data, *words, "--out", tmp_path / "scores.csv")
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert said in done.err
        assert not (tmp_path / "scores.csv").exists()
    assert call("predict", model, "--data", third, *TRUTH, "--protected", "c").status == 0
    for folder in (tmp_path / "nowhere", tmp_path):
        done = call("predict", folder, "--data", fresh, *TRUTH)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert "minmaxcon solve --out DIR" in done.err


def test_rows_that_miss_a_cell_say_so(call: Callable[..., Any], model: Path, fresh: Path, tmp_path: Path) -> None:
    """What is undefined is no number, and the reason stands beside it."""
    lines = [line for line in fresh.read_text().splitlines() if not line.endswith(",b,yes")]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    done = call("predict", model, "--data", tmp_path / "few.csv", *TRUTH)
    assert (done.status, done.err) == (0, "")
    assert "Gap of 'b': " in done.out
    told = json.loads(call("predict", model, "--data", tmp_path / "few.csv", *TRUTH, "--json").out)["measured"]
    assert told["gap"]["value"] is None
    assert {(cell["label"], cell["group"]): cell["rows"] for cell in told["cells"]}["yes", "b"] == 0
    of_one = [lines[0], *(line for line in lines if ",a," in line)]
    (tmp_path / "one.csv").write_text("\n".join(of_one) + "\n")
    assert call("predict", model, "--data", tmp_path / "one.csv", *TRUTH).status == 0


def test_rows_whose_truth_is_unknown_are_scored_and_not_measured(
    call: Callable[..., Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    """Refused by default; a value that only such rows have is none."""
    lines = fresh.read_text().splitlines()
    known = tmp_path / "known.csv"
    known.write_text("\n".join([lines[0], *lines[4:]]) + "\n")
    cells = [line.rsplit(",", 2) for line in lines[1:4]]
    gaps = [f"{cells[0][0]},a,", f"{cells[1][0]},,maybe", f"{cells[2][0]},NA,yes"]
    part = tmp_path / "part.csv"
    part.write_text("\n".join([lines[0], *gaps, *lines[4:]]) + "\n")
    refused = call("predict", model, "--data", part, *TRUTH)
    assert (refused.status, "is missing" in refused.err) == (2, True)
    out = tmp_path / "scores.txt"
    done = call("predict", model, "--data", part, *TRUTH, "--missing", "drop", "--out", out)
    assert done.out == call("predict", model, "--data", known, *TRUTH).out
    assert "3 of 90 rows lack one of 'label', 'group': they are scored, not measured." in done.err
    assert out.read_text() == call("predict", model, "--data", fresh).out
    part.write_text("\n".join([lines[0], *gaps]) + "\n")
    nothing = call("predict", model, "--data", part, *TRUTH, "--missing", "drop")
    assert (nothing.status, nothing.out, nothing.err.count("\n")) == (2, "", 1)
    assert "no row has all of 'label', 'group'" in nothing.err


def test_identifiers_are_repeated_as_they_stand(
    call: Callable[..., Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    """In each form of the output, from CSV and Parquet; measures go to standard output beside them."""
    import pyarrow.csv
    import pyarrow.parquet

    names = [f"{k:04d}" for k in range(90)]
    scores = call("predict", model, "--data", fresh).out.split()
    frame = pyarrow.csv.read_csv(
        fresh, convert_options=pyarrow.csv.ConvertOptions(column_types={"person": pyarrow.string()})
    )
    pyarrow.parquet.write_table(frame, tmp_path / "fresh.parquet")
    for data in (fresh, tmp_path / "fresh.parquet"):
        done = call("predict", model, "--data", data, "--id", "person")
        assert [line.split("\t") for line in done.out.splitlines()] == [
            list(pair) for pair in zip(names, scores, strict=True)
        ]
        assert json.loads(call("predict", model, "--data", data, "--id", "person", "--json").out)["ids"] == names
    out = tmp_path / "scores.csv"
    done = call("predict", model, "--data", fresh, "--id", "person", "--out", out, *TRUTH)
    assert (done.status, done.out.startswith("AUC ")) == (0, True)
    assert (column(out, "row")[0], column(out, "id"), column(out, "score")) == ("1", names, scores)
    done = call("predict", model, "--data", fresh, "--id", "persn")
    assert (done.status, done.out) == (2, "")
    assert "no column 'persn', asked for by --id; did you mean 'person'" in done.err
    odd = write_table(
        tmp_path / "odd.csv", [['a"b\t\x1b[31m', *row] for row in table_rows(1)], "person,x1,x2,colour,g,l"
    )
    assert call("predict", model, "--data", odd, "--id", "person").out.startswith('a"b\\t\\x1b[31m\t')


def test_identifiers_may_be_more_than_categories(call: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    rows = [[f"name {k}", *row] for k, row in enumerate(table_rows(1200, seed=6))]
    many = write_table(tmp_path / "many.csv", rows, "person,x1,x2,colour,group,label")
    done = call("predict", model, "--data", many, "--id", "person")
    assert (done.status, len(done.out.splitlines())) == (0, 1200)


def test_an_unknown_category_is_refused_or_zero(
    call: Callable[..., Any], exported: tuple[Any, Any], model: Path, fresh: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.csv"
    odd.write_text(fresh.read_text().replace(",red,", ",mauve,", 2))
    assert call("predict", model, "--data", odd).status == 2
    done = call("predict", model, "--data", odd, "--unknown-category", "zero")
    assert done.status == 0
    said = "2 rows have a category in column 'colour' that was not in the training data ('mauve'): its features are 0."
    assert said in done.err
    weight = dict(zip(("x1", "x2", "green", "red"), fair_auc_weight(model), strict=True))
    plain = [float(line) for line in call("predict", model, "--data", fresh).out.split()]
    zero = [float(line) for line in done.out.split()]
    changed = [k for k, (a, b) in enumerate(zip(column(fresh, "colour"), column(odd, "colour"), strict=True)) if a != b]
    expected = [score - weight["red"] * (k in changed) for k, score in enumerate(plain)]
    assert len(changed) == 2
    np.testing.assert_allclose(zero, expected, rtol=1e-12)
    assert call("predict", model, "--data", odd, "--unknown-category", "zero", "--quiet").err == ""
    wrong = call("predict", model, "--data", odd, "--unknown-category", "guess")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)
    misspelt: Any = "zeros"
    with pytest.raises(mm.UnknownName, match="unknown_category='zeros': unknown name; did you mean 'zero'"):
        fair_auc.predict(*exported, str(fresh), unknown_category=misspelt)
    misspelt = "dropped"
    with pytest.raises(mm.UnknownName, match="missing='dropped': unknown name; did you mean 'drop'"):
        fair_auc.measure_scores(exported[1], np.zeros(90), str(fresh), label="label", missing=misspelt)


def fair_auc_weight(model: Path) -> Any:
    from minmaxcon.results import read_model

    return read_model(model / "model.safetensors")[0]["weight"]


def test_help_of_a_model_has_the_options_of_its_problem(call: Callable[..., Any], model: Path) -> None:
    done = call("predict", model, "--help")
    for word in ("Options of fair_auc", "--sensitive", "--unknown-category", "--confidence", "--id"):
        assert word in done.out
    assert "--sensitive" not in call("predict", "--help").out


def test_libsvm_rows_are_measured_too(call: Callable[..., Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for k in range(80):
        label, group = (-1, 1)[k % 2], (k // 2) % 2
        features = {1: group, 2: round(float(rng.normal(label)), 4), 3: round(float(rng.normal(group)), 4)}
        lines.append(f"{label} " + " ".join(f"{index}:{value}" for index, value in features.items() if value))
    train = tmp_path / "train.libsvm"
    train.write_text("\n".join(lines) + "\n")
    problem = mm.load_problem("fair_auc", data=str(train), sensitive="1", kappa=0.5)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(model_bytes(*fair_auc.export(problem, np.array([1.0, 0.1]))))
    scores = [float(line) for line in call("predict", tmp_path / "m", "--data", train).out.split()]
    y, group = [int(line.split()[0]) for line in lines], [int(" 1:1" in line) for line in lines]
    expected = measure_scores(
        scores, y, sensitive_features=group, protected=problem.details.dataset.train.group_values[1]
    )
    done = call("predict", tmp_path / "m", "--data", train, "--sensitive", 1)
    assert " ".join(done.out.split()) == " ".join(str(expected).split())
    for words, said in (
        (("--sensitive", 1, "--label", "y"), "--label='y': a LIBSVM file has its label first"),
        (("--sensitive", 9), "--sensitive='9'"),
        (("--id", "person"), "no column 'person', asked for by --id"),
        (("--unknown-category", "zero"), "--unknown-category='zero': a LIBSVM file has no categories"),
    ):
        refused = call("predict", tmp_path / "m", "--data", train, *words)
        assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert said in refused.err, refused.err


def test_a_model_that_does_not_name_its_metric_asks_for_one(
    call: Callable[..., Any], exported: tuple[Any, Any], model: Path, fresh: Path
) -> None:
    arrays, description = exported
    for change, said in (
        ({"metric": None}, "--metric: the model does not name"),
        ({"metric": ["group"]}, "--metric: the model does not name"),
        ({"label_values": "ny"}, "label_values='ny'"),
        ({"group_values": [1, None]}, "group_values=[1, None]"),
    ):
        (model / "model.safetensors").write_bytes(model_bytes(arrays, {**description, **change}))
        done = call("predict", model, "--data", fresh, *TRUTH)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert said in done.err
    (model / "model.safetensors").write_bytes(model_bytes(arrays, {**description, "metric": None}))
    assert call("predict", model, "--data", fresh, *TRUTH, "--metric", "group").status == 0


def test_of_several_groups_the_protected_one_is_against_all_others(call: Callable[..., Any], tmp_path: Path) -> None:
    """Also where new rows have a group that training did not have: it is one of the others."""
    rows = [[*row[:3], "abc"[k // 4 % 3], row[4]] for k, row in enumerate(table_rows())]
    train = write_table(tmp_path / "train.csv", rows)
    given = {"data": str(train), "label": "label", "sensitive": "group", "protected": "c", "kappa": 0.3}
    problem = mm.load_problem("fair_auc", **given)
    content = model_bytes(*fair_auc.export(problem, np.array([0.5, 1.0, 0.2, -0.2])))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(content)
    rows[0][3] = "d"
    fresh = write_table(tmp_path / "fresh.csv", rows)
    done = call("predict", tmp_path / "m", "--data", fresh, *FILE_OPTIONS)
    assert done.status == 0
    assert "'c' against 'not c'" in done.out
