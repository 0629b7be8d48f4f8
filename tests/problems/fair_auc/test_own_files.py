"""Parts that are files of their own: what is learned from the training file, and what is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import load_dataset
from tests.cli.conftest import FILE_OPTIONS, call, outlined, table_rows, write_table

__all__ = ["call", "outlined"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give three files: units and colours of the others are not those of the training file."""
    folder = tmp_path_factory.mktemp("parts")
    found = {"data": write_table(folder / "train.csv", table_rows())}
    for seed, name in ((2, "validation"), (3, "test")):
        rows = [[str(3 * float(row[0])), *row[1:]] for row in table_rows(80, seed) if row[2] == "red"]
        turned = [[row[k] for k in (4, 3, 0, 2, 1)] for row in rows]
        found[name] = write_table(folder / f"{name}.csv", turned, "label,group,x1,colour,x2")
    return found


def words_of(parts: dict[str, Path]) -> list[Any]:
    return [word for name, path in parts.items() for word in (f"--{name}", path)]


def test_the_training_file_alone_teaches(parts: dict[str, Path]) -> None:
    """Scaling, categories and the protected group: those of the training file, whatever the others have."""
    given = {**{name: str(path) for name, path in parts.items()}, "label": "label", "sensitive": "group"}
    found = mm.load_problem("fair_auc", **given, kappa=0.3).details.dataset
    raw = mm.load_problem("fair_auc", **given, kappa=0.3, standardize=False).details.dataset
    assert (len(raw.train), raw.validation.feature_names) == (240, raw.train.feature_names)
    assert raw.test.feature_names == ("x1", "x2", "colour=green", "colour=red")
    np.testing.assert_array_equal(raw.test.features[:, 2:], np.tile([0.0, 1.0], (len(raw.test), 1)))
    mean, deviation = raw.train.features.mean(axis=0), raw.train.features.std(axis=0)
    for name in ("train", "validation", "test"):
        part = getattr(raw, name)
        np.testing.assert_allclose(getattr(found, name).features, (part.features - mean) / deviation)
        assert (part.label_values, part.group_values) == (("no", "yes"), ("a", "b"))
        assert Path(part.name) == parts["data" if name == "train" else name]
    rows = [row for row in table_rows(80, 3) if row[2] == "red"]
    np.testing.assert_array_equal(raw.test.label, [1 if row[4] == "yes" else -1 for row in rows])
    np.testing.assert_array_equal(raw.test.group, [1 if row[3] == "b" else -1 for row in rows])
    assert "Parts are files of their own: training" in found.notes[0]


@pytest.mark.usefixtures("outlined")
def test_a_solve_measures_every_file_and_is_verified(
    call: Callable[..., Any], parts: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = call("solve", "fair_auc", *words_of(parts), *FILE_OPTIONS, "--kappa", 0.3, "--out", out)
    assert done.status == 0, done.err
    told = json.loads((out / "result.json").read_text())
    assert [told["settings"][name] for name in parts] == [str(path) for path in parts.values()]
    for name, path in parts.items():
        part = told["train" if name == "data" else name]
        assert f"{'train' if name == 'data' else name} " in done.out
        measured = call("predict", out, "--data", path, *FILE_OPTIONS, "--json")
        again = json.loads(measured.out)
        assert again["rows"] == part["rows"]
        assert again["measured"]["auc"]["value"] == pytest.approx(part["auc"], abs=1e-12)
        assert again["measured"]["gap"]["value"] == pytest.approx(part["auc_gap"], abs=1e-12)
    said = call("verify", out)
    assert (said.status, "validation" in said.out, "NOT CONFIRMED" in said.out) == (0, True, False)
    before = parts["test"].read_text()
    parts["test"].write_text(before.replace("yes,a", "no,a", 5))
    changed = call("verify", out)
    parts["test"].write_text(before)
    assert (changed.status, "test" in changed.out, "NOT CONFIRMED" in changed.out) == (1, True, True)


def test_parts_that_do_not_fit_are_one_line(call: Callable[..., Any], parts: dict[str, Path], tmp_path: Path) -> None:
    train, test = parts["data"], parts["test"]
    text = test.read_text()

    def changed(name: str, old: str, new: str, count: int = -1) -> Path:
        path = tmp_path / name
        path.write_text(text.replace(old, new, count))
        assert path.read_text() != text
        return path

    link = tmp_path / "link.csv"
    link.symlink_to(train)
    copy = Path(shutil.copy(test, tmp_path / "copy.csv"))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "heading.csv").write_text(text.splitlines()[0] + "\n")
    (tmp_path / "rows.libsvm").write_text("1 1:1\n-1 1:0.5\n")
    given = ("--data", train, *FILE_OPTIONS)
    for words, said in (
        ((*given, "--test", changed("less.csv", "x2", "x3")), "has no column 'x2' and a further column 'x3', unlike"),
        ((*given, "--test", changed("more.csv", "\n", ",1\n")), "has a further column '1', unlike"),
        ((*given, "--test", changed("label.csv", "yes", "maybe", 1)), "column 'label': 'maybe' is not in the training"),
        ((*given, "--test", changed("group.csv", ",b,", ",c,", 1)), "column 'group': 'c' is not in the training rows"),
        ((*given, "--test", changed("colour.csv", "red", "mauve", 1)), "column 'colour': the category 'mauve'"),
        (
            (*given, "--test", changed("text.csv", "red", "1")),
            "column 'colour': the value 1 is a number",
        ),
        ((*given, "--test", changed("cell.csv", "yes,b", "no,b")), "no row has group=b & label=yes"),
        ((*given, "--test", tmp_path / "empty.csv"), "empty.csv: the file is empty"),
        ((*given, "--test", tmp_path / "heading.csv"), "no data row"),
        ((*given, "--test", tmp_path / "none.csv"), "none.csv: no such file"),
        ((*given, "--test", tmp_path), "is not a regular file"),
        ((*given, "--test", tmp_path / "rows.libsvm"), "is a LIBSVM file, and the training rows are in a table"),
        ((*given, "--test", link), "is the file of --data, or a copy; each part needs rows of its own."),
        ((*given, "--test", test, "--validation", copy), "is the file of --validation, or a copy"),
        ((*given, "--validation", test), "needs --test, the file of the test rows"),
        ((*given, "--test", test, "--test-fraction", 0.2), "--test-fraction=0.2: is for rows that are split"),
        (("--test", test), "and --data loanapp names a data set"),
        (("--data", "twoyear", "--test", test), "and --data twoyear names a data set"),
        (("--data", "nosuch", "--test", test), "names a data set"),
        ((*given, "--test", test, "--memory", "1KB"), "goes with rows that are read at once"),
    ):
        done = call("solve", "fair_auc", *words, "--kappa", 0.3, "--out", tmp_path / "out")
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), (words, done)
        assert said in done.err, done.err
        assert not (tmp_path / "out").exists()
    rows = load_dataset("loanapp")
    for data in (rows, rows.train):
        with pytest.raises(mm.InvalidInput, match="give Dataset its parts"):
            mm.load_problem("fair_auc", data=data, test=str(test))


def test_a_group_that_is_one_of_several_is_known_from_the_training_file(parts: dict[str, Path], tmp_path: Path) -> None:
    """With more than two groups the others are any that the training file has, and no other."""
    rows = [[*row[:3], "abc"[k // 4 % 3], row[4]] for k, row in enumerate(table_rows())]
    train = write_table(tmp_path / "train.csv", rows)
    given = {"data": str(train), "test": str(parts["test"]), "label": "label", "sensitive": "group", "kappa": 0.3}
    found = mm.load_problem("fair_auc", **given, protected="b").details.dataset
    assert found.test.group_values == found.train.group_values == ("not b", "b")
    rows[0][3] = "d"
    given["test"] = str(write_table(tmp_path / "test.csv", rows))
    with pytest.raises(mm.DataError, match=r"row 1 \(line 2\), column 'group': 'd' is not in the training rows"):
        mm.load_problem("fair_auc", **given, protected="b")


def test_libsvm_and_parquet_and_frames_are_parts_too(parts: dict[str, Path], tmp_path: Path) -> None:
    import pandas as pd

    frames = {name: pd.read_csv(path) for name, path in parts.items()}
    columns = {"label": "label", "sensitive": "group", "kappa": 0.3}
    expected = mm.load_problem("fair_auc", **{name: str(path) for name, path in parts.items()}, **columns)
    frames["test"].to_parquet(tmp_path / "test.parquet")
    mixed = {"data": str(parts["data"]), "validation": frames["validation"], "test": str(tmp_path / "test.parquet")}
    for given in (frames, mixed):
        found = mm.load_problem("fair_auc", **given, **columns).details.dataset
        for name in ("train", "validation", "test"):
            part, other = getattr(found, name), getattr(expected.details.dataset, name)
            np.testing.assert_allclose(part.features, other.features)
            np.testing.assert_array_equal(part.label, other.label)
    with pytest.raises(mm.InvalidInput, match="is the file of data=, or a copy"):
        mm.load_problem("fair_auc", data=frames["data"], test=frames["data"], **columns)
    lines = [f"{(-1, 1)[k % 2]} 1:{k // 2 % 2} 2:{k} 3:{k % 5}" for k in range(20)]
    for name, kept in (("a.libsvm", lines), ("b.libsvm", [line.partition(" 3:")[0] for line in lines[:8]])):
        (tmp_path / name).write_text("\n".join(kept) + "\n")
    sparse = {"data": str(tmp_path / "a.libsvm"), "sensitive": "1", "kappa": 0.3, "standardize": False}
    found = mm.load_problem("fair_auc", **sparse, test=str(tmp_path / "b.libsvm")).details.dataset
    np.testing.assert_array_equal(found.test.features.toarray(), [[k, 0.0] for k in range(8)])
    with pytest.raises(mm.InvalidInput, match="is a table, and the training rows are in a LIBSVM file"):
        mm.load_problem("fair_auc", **sparse, test=str(parts["test"]))


def with_columns(path: Path, **columns: Callable[[int], str]) -> Path:
    """Write the rows with further columns in front, each made from the number of the row."""
    rows = [[*(made(k) for made in columns.values()), *row] for k, row in enumerate(table_rows())]
    return write_table(path, rows, ",".join([*columns, "x1,x2,colour,group,label"]))


def test_columns_are_left_out_by_the_option_that_the_refusal_names(call: Callable[..., Any], tmp_path: Path) -> None:
    """Each column that cannot be used is named with the option of this very command that leaves it out."""
    path = with_columns(
        tmp_path / "people.csv", name=lambda k: f"p{k}", gone=lambda k: "" if k == 7 else "1", comma=lambda _: "1,5"
    )
    words: tuple[Any, ...] = ("--data", path, *FILE_OPTIONS, "--kappa", 0.3, "--quiet")
    left: tuple[str, ...] = ()
    for column, ignored in (("name", "name"), ("gone", "name,gone"), ("comma", "name,gone,comma")):
        refused = call("solve", "fair_auc", *words, *left)
        assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert f"column '{column}'" in refused.err
        assert refused.err.endswith(f" To leave the column out: --ignore {ignored}.\n"), refused.err
        left = ("--ignore", ignored)
    done = call("solve", "fair_auc", *words, *left, "--time-limit", 5, "--json")
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert told["settings"]["ignore"] == ["name", "gone", "comma"]
    given = {"data": str(path), "label": "label", "sensitive": "group", "kappa": 0.3}
    found = mm.load_problem("fair_auc", **given, ignore="name,gone,comma").details.dataset
    assert found.train.feature_names == ("x1", "x2", "colour=green", "colour=red")
    for command in ("check", "compare"):
        refused = call(command, "fair_auc", *words)
        assert refused.err.endswith(" To leave the column out: --ignore name.\n"), refused.err
    refused = call("report", *words[:6], "--out", tmp_path / "page.html")
    assert refused.err.endswith(" To leave the column out: --ignore name.\n"), refused.err
    for wrong, said, *memory in (
        ("nmae", "no column 'nmae', asked for by --ignore; did you mean 'name'?"),
        ("nmae", "no column 'nmae', asked for by --ignore; did you mean 'name'?", "--memory", "1KB"),
        ("name,label", "--ignore='label': is the label, which is needed"),
        ("group", "--ignore='group': is the sensitive column, which is needed"),
    ):
        refused = call("solve", "fair_auc", *words, "--ignore", wrong, *memory)
        assert (refused.status, said in refused.err) == (2, True), refused.err
    assert "--ignore=x1: data set 'loanapp' fixes this itself" in call("solve", "fair_auc", "--ignore", "x1").err


def test_files_of_other_parts_may_lack_what_is_left_out(parts: dict[str, Path], tmp_path: Path) -> None:
    import pandas as pd

    path = with_columns(tmp_path / "people.csv", name=lambda k: f"p{k}", day=lambda k: str(k))
    given = {"label": "label", "sensitive": "group", "kappa": 0.3, "ignore": ["name", "day", "x2"]}
    found = mm.load_problem("fair_auc", data=str(path), test=str(parts["test"]), **given).details.dataset
    assert found.train.feature_names == found.test.feature_names == ("x1", "colour=green", "colour=red")
    frame = pd.read_csv(path)
    frame["day"] = pd.Timestamp("2026-01-01")
    frame.to_parquet(tmp_path / "people.parquet")
    for source in (frame, str(tmp_path / "people.parquet")):
        again = mm.load_problem("fair_auc", data=source, test=str(parts["test"]), **given).details.dataset
        np.testing.assert_allclose(again.test.features, found.test.features)
    with pytest.raises(
        mm.DataError, match=r"column 'day' is of type timestamp.* leave the column out: ignore='day'\.$"
    ):
        mm.load_problem("fair_auc", data=frame, **{**given, "ignore": None})
    (tmp_path / "rows.libsvm").write_text("1 1:1 2:1\n-1 1:0.5 2:1\n")
    with pytest.raises(mm.InvalidInput, match=r"ignore='2': a LIBSVM file has no named columns"):
        mm.load_problem("fair_auc", data=str(tmp_path / "rows.libsvm"), sensitive="1", kappa=0.3, ignore="2")


@pytest.mark.filterwarnings("always")
def test_a_column_that_numbers_the_rows_is_told_of(call: Callable[..., Any], tmp_path: Path) -> None:
    path = with_columns(tmp_path / "people.csv", id=lambda k: str(1000 + (7 * k) % 240))
    words = ("--data", path, *FILE_OPTIONS, "--kappa", 0.3, "--time-limit", 5)
    told = call("solve", "fair_auc", *words)
    assert (
        f"minmaxcon: note: {path}: column 'id' numbers the rows, and is a feature all the same; ignore it" in told.err
    )
    assert "numbers the rows" not in call("solve", "fair_auc", *words, "--ignore", "id").err


@pytest.mark.filterwarnings("always")
def test_unknown_categories_of_other_parts_are_refused_or_zero(
    call: Callable[..., Any], parts: dict[str, Path], tmp_path: Path
) -> None:
    """By the same words as ``predict``, and to the same features."""
    text = parts["test"].read_text()
    odd = tmp_path / "odd.csv"
    odd.write_text(text.replace("red", "mauve", 3))
    given = ("--data", parts["data"], "--test", odd, *FILE_OPTIONS, "--kappa", 0.3, "--time-limit", 5)
    refused = call("solve", "fair_auc", *given)
    assert refused.status == 2
    assert "the category 'mauve' was not in the training data; known are 'green', 'red'. To take such" in refused.err
    assert refused.err.endswith(": --unknown-category zero.\n")
    done = call("solve", "fair_auc", *given, "--unknown-category", "zero")
    assert f"note: {odd}: 3 rows have a category in column 'colour' that was not in the training data" in done.err
    options = {"label": "label", "sensitive": "group", "kappa": 0.3, "standardize": False}
    files = {"data": str(parts["data"]), "test": str(odd), "unknown_category": "zero"}
    with pytest.warns(UserWarning, match="3 rows have a category"):
        rows = mm.load_problem("fair_auc", **files, **options).details.dataset.test
    assert rows.features[:, 2:].sum(axis=1).tolist() == [0.0] * 3 + [1.0] * (len(rows) - 3)
    with pytest.raises(mm.UnknownName, match="unknown_category='guess'"):
        mm.load_problem("fair_auc", **{**files, "unknown_category": "guess"}, **options)
    alone = call("solve", "fair_auc", *given[:2], *given[4:], "--unknown-category", "zero")
    assert "--unknown-category='zero': is about files of other parts" in alone.err
