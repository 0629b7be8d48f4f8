"""partial_fit of one row a call: in whatever form it comes, by a short way, and with the classes named each time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset, true_gap
from minmaxcon_problems.fair_auc.estimator.inputs import one_row
from tests.problems.fair_auc.estimator.samples import Rows, feed, model


@pytest.mark.rel
@pytest.mark.data
@pytest.mark.parametrize("metric", ["inter_group"])
def test_a9a_row_by_row(shared_data: Path, metric: str) -> None:
    data = load_dataset("a9a", data_dir=shared_data)
    train, test = data.train, data.test
    X, count = train.features, len(train)
    batch = FairAUCClassifier(metric, random_state=0).fit(X, train.label, sensitive_features=train.group)
    began = time.process_time()
    block = FairAUCClassifier(metric, random_state=0).partial_fit(X, train.label, sensitive_features=train.group)
    coef = block.coef_
    of_block = (time.process_time() - began) / count
    began = time.process_time()
    single = FairAUCClassifier(metric, random_state=0)
    for row in range(count):
        one = slice(row, row + 1)
        single.partial_fit(X[one], train.label[one], sensitive_features=train.group[one])
    np.testing.assert_array_equal(single.coef_, coef)
    of_calls = (time.process_time() - began) / count
    assert of_block < 120e-6
    assert of_calls < 400e-6
    found, expected = (m.decision_function(test.features) for m in (single, batch))
    positive = test.label > 0
    assert roc_auc_score(positive, found) == pytest.approx(roc_auc_score(positive, expected), abs=0.01)
    gaps = [true_gap(scores, test.label, test.group, metric) for scores in (found, expected)]
    assert gaps[0] == pytest.approx(gaps[1], abs=0.01)


@pytest.mark.parametrize(
    "classes", [["no", "yes"], ("no", "yes"), np.array(["no", "yes"])], ids=["list", "tuple", "array"]
)
def test_classes_in_every_call_take_the_short_way_too(
    rows: Rows, classes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names the classes each time, as scikit-learn allows, must not pay for the general way each time."""
    clf = FairAUCClassifier("group", random_state=0)
    one = [(rows.X[i : i + 1], rows.y[i : i + 1], rows.group[i : i + 1]) for i in range(40)]
    for X, y, group in one[:20]:
        clf.partial_fit(X, y, classes=classes, sensitive_features=group)
    monkeypatch.setattr(type(clf._stream), "add", None)  # the general way
    for X, y, group in one[20:]:
        clf.partial_fit(X, y, classes=classes, sensitive_features=group)
    assert sum(clf._stream.reservoir.counts) == 40


FORMS = {
    "array": lambda row: row[None],
    "list of an array": lambda row: [row],
    "tuple of an array": lambda row: (row,),
    "list of a list": lambda row: [row.tolist()],
    "list of a tuple": lambda row: [tuple(row.tolist())],
    "single precision": lambda row: [row.astype(np.float32)],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_row_takes_the_short_way_in_whatever_form(rows: Rows, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows.take(np.arange(250))
    rows = rows._replace(X=rows.X.astype(np.float32).astype(float))
    expected = feed(model(), rows, 250).coef_
    clf = model()
    for i, (row, label, group) in enumerate(zip(rows.X, rows.y, rows.group, strict=True)):
        clf.partial_fit(FORMS[form](row), [label], classes=["no", "yes"], sensitive_features=[group])
        if i == 0:
            monkeypatch.setattr(type(clf._stream), "add", None)  # the general way
    np.testing.assert_array_equal(clf.coef_, expected)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[np.longdouble(1), 2, 3, 4]]),
        [["1", "2", "3", "4"]],
        [[True, False, True, True]],
        [[1 + 0j] * 4],
        [[[1.0], [2.0, 3.0]]],
        [{"a": 1.0}],
        [[]],
    ],
    ids=str,
)
def test_what_is_no_plain_row_is_left_to_the_general_way(X: Any) -> None:
    assert one_row(X, 4) is None


@pytest.mark.parametrize(
    "classes",
    [
        ["no"],
        [["no", "yes"]],
        [["no", "yes"], ["no", "yes"]],
        ["no", None],
        [1, "no", ["yes"]],
        [["no"], ["no", "yes"]],
    ],
    ids=str,
)
def test_classes_that_are_no_two_labels_are_refused_by_name(rows: Rows, classes: Any) -> None:
    fresh, running = model(), feed(model(), rows.take(slice(0, 20)), 20)
    for clf in (fresh, running):
        with pytest.raises(InvalidInput, match=r"classes=.*must be the two labels"):
            clf.partial_fit(rows.X[:1], rows.y[:1], classes, sensitive_features=rows.group[:1])
    assert sum(running._stream.reservoir.counts) == 20


@pytest.mark.filterwarnings("ignore:No sensitive_features")
def test_a_label_that_no_double_holds_takes_the_general_way(rows: Rows) -> None:
    """And rows without groups take the short one."""
    plain = {True: 2**60 + 1, False: 0}
    one, whole = FairAUCClassifier(random_state=0), FairAUCClassifier(random_state=0)
    labels = np.array([plain[label == "yes"] for label in rows.y])
    for row, label in zip(rows.X[:80], labels[:80].tolist(), strict=True):
        one.partial_fit(row[None], [label])
    whole.partial_fit(rows.X[:80], labels[:80])
    np.testing.assert_array_equal(one.coef_, whole.coef_)
    assert one.classes_.tolist() == [0, 2**60 + 1]


def test_other_classes_are_refused_in_any_call(rows: Rows) -> None:
    clf = FairAUCClassifier("group", random_state=0)
    clf.partial_fit(rows.X[:1], rows.y[:1], classes=["no", "yes"], sensitive_features=rows.group[:1])
    with pytest.raises(ValueError, match="classes"):
        clf.partial_fit(rows.X[:1], rows.y[:1], classes=["no", "maybe", "yes"], sensitive_features=rows.group[:1])
