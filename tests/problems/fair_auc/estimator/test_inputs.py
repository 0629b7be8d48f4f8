"""Whatever library rows come from they mean the same, and what cannot be used is refused by name and row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator.inputs import sensitive_column
from tests.problems.fair_auc.estimator.samples import Rows


def fitted(X: Any, y: Any, group: Any, **settings: Any) -> FairAUCClassifier:
    settings = {"metric": "group", "objective": "quadratic_auc", **settings}  # the objective that takes least
    return FairAUCClassifier(**settings, random_state=0).fit(X, y, sensitive_features=group)


@pytest.fixture(scope="module")
def plain(rows: Rows) -> FairAUCClassifier:
    """Give the fit of the rows as arrays of NumPy, to which others are compared."""
    return fitted(*rows)


@pytest.fixture(scope="module")
def holed(rows: Rows) -> tuple[Any, FairAUCClassifier]:
    """Give features of which many are nothing, and their fit."""
    features = np.where(np.abs(rows.X) > 0.5, rows.X, 0.0)
    return features, fitted(features, rows.y, rows.group)


def as_pandas(rows: Rows) -> tuple[Any, Any, Any]:
    pd = pytest.importorskip("pandas")
    index = np.arange(len(rows.y))[::-1] * 10
    frame = pd.DataFrame(rows.X, columns=list("abcd"), index=index)
    return frame, pd.Series(rows.y, index=index), pd.Series(rows.group, index=index, dtype="category")


def as_polars(rows: Rows) -> tuple[Any, Any, Any]:
    pl = pytest.importorskip("polars")
    return pl.DataFrame(rows.X, schema=list("abcd")), pl.Series(rows.y), pl.Series(rows.group)


def as_arrow(rows: Rows) -> tuple[Any, Any, Any]:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({name: rows.X[:, k] for k, name in enumerate("abcd")})
    return table, rows.y, pa.chunked_array([pa.array(rows.group.tolist())])


def as_lists(rows: Rows) -> tuple[Any, Any, Any]:
    return rows.X.tolist(), rows.y.tolist(), rows.group.tolist()


@pytest.mark.parametrize("convert", [as_pandas, as_polars, as_arrow, as_lists])
def test_every_library_gives_the_same_model(
    rows: Rows, plain: FairAUCClassifier, convert: Callable[[Rows], Any]
) -> None:
    X, y, group = convert(rows)
    found, expected = fitted(X, y, group), plain
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(rows.X))
    if convert is not as_lists:
        assert found.feature_names_in_.tolist() == list("abcd")
    streamed = FairAUCClassifier("group", objective="quadratic_auc", random_state=0).partial_fit(
        X, y, sensitive_features=group
    )
    np.testing.assert_allclose(streamed.decision_function(X), expected.decision_function(rows.X), atol=1e-6)


@pytest.mark.parametrize("kind", [csr_matrix, csr_array, csc_matrix])
def test_sparse_features_are_scaled_and_not_centred(
    rows: Rows, holed: tuple[Any, FairAUCClassifier], kind: Any
) -> None:
    # The AUC does not see a shift of all scores, so neither does the best model.
    features, expected = holed
    found = fitted(kind(features), rows.y, rows.group)
    assert found.gap_.value <= 0.02
    assert found.auc_.value == pytest.approx(expected.auc_.value, abs=2e-3)
    np.testing.assert_allclose(found.decision_function(kind(features)), found.decision_function(features), atol=1e-9)
    streamed = FairAUCClassifier("group", objective="quadratic_auc", random_state=0).partial_fit(
        kind(features), rows.y, sensitive_features=rows.group
    )
    np.testing.assert_allclose(streamed.coef_, found.coef_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(
    "labels, groups",
    [((0, 1), ("man", "woman")), ((3.0, 7.0), (0, 1)), ((False, True), (2.5, 1.5)), (("a", "b"), (True, False))],
)
def test_any_two_labels_and_groups(rows: Rows, plain: FairAUCClassifier, labels: Any, groups: Any) -> None:
    y = np.where(rows.y == "yes", labels[1], labels[0])
    group = np.where(rows.group == "b", groups[1], groups[0])
    found, expected = fitted(rows.X, y, group), plain
    assert found.classes_.tolist() == list(labels)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(rows.X) == labels[1], expected.predict(rows.X) == "yes")


def test_protected_names_one_of_many_values(rows: Rows) -> None:
    many = np.where((rows.group == "a") & (np.arange(600) % 2 == 0), "c", rows.group)
    expected = fitted(*rows, metric="bpsn_bnsp", protected="b")
    found = fitted(rows.X, rows.y, many, metric="bpsn_bnsp", protected="b")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    streamed = FairAUCClassifier("bpsn_bnsp", protected="b", objective="quadratic_auc", random_state=0)
    streamed.partial_fit(rows.X, rows.y, sensitive_features=many)
    np.testing.assert_allclose(streamed.coef_, expected.coef_, rtol=1e-4)
    # A metric that is not symmetric in the groups tells them apart.
    other = fitted(*rows, metric="bpsn_bnsp", protected="a")
    assert not np.allclose(other.coef_, expected.coef_, rtol=1e-3)
    with pytest.raises(DataError, match=r"has 51 values \(.*\); say with protected="):
        fitted(rows.X, rows.y, np.arange(600) % 51)
    with pytest.raises(InvalidInput, match="protected='z': is no value of sensitive_features"):
        fitted(*rows, protected="z")


def missing_in_pandas() -> Any:
    return pytest.importorskip("pandas").array(["a", None, "b", None], dtype="string")


def missing_in_polars() -> Any:
    return pytest.importorskip("polars").Series([1, None, 0, None])


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "b", float("nan")],
        np.array([1.0, np.nan, 0.0, np.nan]),
        np.array(["2020-01-01", "NaT", "2021-01-01", "NaT"], dtype="datetime64[D]"),
        missing_in_pandas,
        missing_in_polars,
    ],
)
def test_missing_groups_are_refused_with_their_rows(values: Any) -> None:
    given = values() if callable(values) else values
    with pytest.raises(
        DataError, match=r"missing in 2 of 4 rows, counted from 0: 1, 3; remove these rows, or say .*unknown="
    ):
        sensitive_column(given, 4)


@pytest.mark.parametrize("absent", ["", None, float("nan")])
def test_missing_labels_are_refused_in_every_container(rows: Rows, plain: FairAUCClassifier, absent: Any) -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    labels = [absent, *rows.y[1:599].tolist(), absent]
    given = [labels, np.array(labels, dtype=object), pd.Series(labels), pd.DataFrame({"y": labels})]
    if absent != absent:
        labels = [None if label != label else label for label in labels]
    given += [pd.Series(labels, dtype=kind) for kind in ("string", "category")]
    for container in (*given, pl.Series(labels), pa.array(labels), pa.chunked_array([labels])):
        for call in (fitted, lambda X, y, group: plain.measure(X, y, sensitive_features=group)):
            with pytest.raises(
                DataError, match=r"y: is missing in 2 of 600 rows, counted from 0: 0, 599; remove these"
            ):
                call(rows.X, container, rows.group)


def test_misaligned_indices_are_refused_with_the_row(rows: Rows) -> None:
    X, y, group = as_pandas(rows)
    moved = group.iloc[[0, 2, 1, *range(3, 600)]]
    with pytest.raises(DataError, match=r"sensitive_features: its index differs from that of X: row 1 .*labelled 5970"):
        fitted(X, y, moved)
    with pytest.raises(DataError, match="y: its index differs from that of X: row 0"):
        fitted(X, y.reset_index(drop=True), group)
    with pytest.raises(DataError, match="has 599 rows where X has 600"):
        fitted(X, y, group.iloc[1:])
    # After a step that returns an array, the labels and the groups still know their rows.
    with pytest.raises(DataError, match="its index differs from that of y"):
        fitted(rows.X, y, moved)
    # Aligned, in whatever order.
    order = np.random.default_rng(0).permutation(600)
    fitted(X.iloc[order], y.iloc[order], group.iloc[order])


def test_features_that_are_not_finite_are_refused(rows: Rows) -> None:
    for bad in (np.nan, np.inf):
        X = rows.X.copy()
        X[5, 2] = bad
        with pytest.raises(ValueError, match="Input X contains"):
            fitted(X, rows.y, rows.group)
        model = FairAUCClassifier().partial_fit(*rows[:2], sensitive_features=rows.group)
        with pytest.raises(ValueError, match="Input X contains"):
            model.partial_fit(X[5:6], rows.y[5:6], sensitive_features=rows.group[5:6])


def test_columns_of_the_wrong_shape(rows: Rows, plain: FairAUCClassifier) -> None:
    with pytest.raises(DataError, match=r"has shape \(2, 2, 2\); give one value for each row"):
        fitted(rows.X, rows.y, np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match="has 599 values for the 600 rows"):
        fitted(rows.X, rows.y, rows.group[1:])
    np.testing.assert_array_equal(fitted(rows.X, rows.y, rows.group[:, None]).coef_, plain.coef_)


def test_labels_and_groups_of_one_value(rows: Rows) -> None:
    with pytest.raises(DataError, match="y: has one class only, 'yes'"):
        fitted(rows.X, np.full(600, "yes"), rows.group)
    with pytest.raises(DataError, match="is 'a' in every row; two groups are needed"):
        fitted(rows.X, rows.y, np.full(600, "a"))
    with pytest.raises(DataError, match="no row is in the subset positive & protected"):
        fitted(rows.X, rows.y, np.where(rows.y == "yes", "a", rows.group), metric="inter_group")


@pytest.mark.parametrize("name", [0, 3, ("of", "two levels"), "group", None], ids=str)
def test_a_frame_of_one_column_may_call_it_anything(rows: Rows, name: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: rows.group})
    assert sensitive_column(frame, len(rows.group)).tolist() == rows.group.tolist()
    frame.iloc[2, 0] = None
    with pytest.raises(DataError, match=r"is missing in 1 of \d+ rows, counted from 0: 2;"):
        sensitive_column(frame, len(rows.group))


@pytest.mark.parametrize("unknown", ["refuse", "own_group", "drop"])
def test_a_table_of_arrow_with_one_column_is_that_column(rows: Rows, unknown: str) -> None:
    pa = pytest.importorskip("pyarrow")
    column = sensitive_column(pa.table({"group": rows.group.tolist()}), len(rows.group), unknown)
    assert column.tolist() == rows.group.tolist()  # none is missing


@pytest.mark.parametrize("absent", ["None", "NaN", "NA"])
def test_columns_of_objects_are_numbers_but_where_a_cell_is_missing(
    rows: Rows, plain: FairAUCClassifier, absent: str
) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows.X, columns=list("abcd")).astype({"b": object, "c": object})
    assert fitted(frame, rows.y, rows.group).coef_.tobytes() == plain.coef_.tobytes()
    for row in (9, 7):
        frame.iloc[row, 2] = {"None": None, "NaN": float("nan"), "NA": pd.NA}[absent]
    with pytest.raises(DataError, match=r"X: column 'c' has no value in row 7 \(counted from 0\)"):
        fitted(frame, rows.y, rows.group)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_words_or_empty_cells_name_the_column_and_the_pipeline(rows: Rows, library: str) -> None:
    module = pytest.importorskip(library)
    columns: dict[str, Any] = {name: rows.X[:, k].tolist() for k, name in enumerate("abcd")}
    holed = {**columns, "c": [None, *columns["c"][1:]]}
    model = fitted(module.DataFrame(columns), rows.y, rows.group)
    for words, said in (
        ({"job": ["cook", *["clerk"] * 599]}, "X: column 'job' holds words, such as 'cook'; encode them in a pipeline"),
        (
            {"id": [f"A{k}" for k in range(600)], "job": ["cook"] * 600},
            "X: columns 'id', 'job' hold words, such as 'A0'",
        ),
    ):
        frame = module.DataFrame({**holed, **words})
        for call in (lambda frame=frame: fitted(frame, rows.y, rows.group), lambda frame=frame: model.predict(frame)):
            with pytest.raises(DataError, match=said):
                call()
    more = {**holed, "a": [columns["a"][0], None, *columns["a"][2:]]}
    with pytest.raises(DataError, match=r"X: columns 'a', 'c' have no value in some rows, the first in row 0 \("):
        model.predict(module.DataFrame(more))
    said = r"X: column 'c' has no value in row 0 \(counted from 0\); fill missing cells in a pipeline"
    with pytest.raises(DataError, match=said):
        fitted(module.DataFrame(holed), rows.y, rows.group)
    with pytest.raises(DataError, match=said):
        model.predict(module.DataFrame(holed))


def test_texts_that_are_no_categories_are_named(rows: Rows) -> None:
    """Notes, of which nearly every row has its own, and numbers with decimal commas, in any frame."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    notes = [f"seen on day {k}" if k % 2 else f"day {k}" for k in range(600)]
    commas = [f"{value:.3f}".replace(".", ",") for value in rows.X[:, 0]]
    for columns, words in (
        (
            {"a": rows.X[:, 0], "note": notes},
            "holds words, such as 'day 0'; column 'note' has another text in nearly every row, .*: leave out",
        ),
        ({"a": rows.X[:, 0], "b": commas}, r"X: column 'b' holds numbers with decimal commas, such as '-?\d+,\d+'"),
        ({"a": rows.X[:, 0], "b": list("xyz") * 200}, "X: column 'b' holds words, such as 'x'; encode them"),
    ):
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
            with pytest.raises(DataError, match=words) as caught:
                fitted(frame, rows.y, rows.group)
            assert "\n" not in str(caught.value)
