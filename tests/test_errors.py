"""Errors: one line each, one tree, and nothing is lost when they cross a process boundary."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm

ERRORS: dict[str, Any] = {
    "plain": mm.MinMaxConError("something is wrong; do it otherwise."),
    "quoting": mm.MinMaxConError("a library says: first line\n   second line\r\nthird."),
    "invalid": mm.InvalidInput("kappa", -1.0, "must be positive."),
    "invalid array": mm.InvalidInput("bounds", np.zeros((50, 50)), "use fewer."),
    "invalid text": mm.InvalidInput("label", "two\nlines", "use one."),
    "invalid remedy": mm.InvalidInput("label", 1, "numpy says:\n no."),
    "unknown": mm.UnknownName("metric", "grup", ("group", "inter_group")),
    "unknown to nobody": mm.UnknownName("problem", "x", ()),
    "data": mm.DataError("file.csv", "row 3, column age:\n'x' is no number; correct it."),
    "control": mm.DataError("file.csv", "Arrow says \x1b[31m\x0f, and Python \udc80; export it again."),
    "unsupported": mm.Unsupported("a stream has no exact values:\nuse finite data."),
    "missing": mm.MissingDependency("cvxpy", "reference", "reference solutions"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_one_line_that_survives_copies(error: Any, clone: Any) -> None:
    copied = clone(error)
    assert type(copied) is type(error)
    assert str(copied) == str(error)
    assert len(str(error).splitlines()) == 1
    assert str(error).isprintable()
    assert len(str(error)) < 200
    named = {name: value for name, value in vars(error).items() if name != "value"}
    assert {name: value for name, value in vars(copied).items() if name != "value"} == named


@pytest.mark.parametrize("value", [(i for i in range(2)), lambda: None], ids=["generator", "lambda"])
def test_a_value_that_cannot_be_pickled_does_not_keep_the_error_in(value: Any) -> None:
    error = mm.InvalidInput("points", value, "make it a function.")
    for copied in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert str(copied) == str(error)
        assert copied.argument == "points"
        assert str(pickle.loads(pickle.dumps(copied))) == str(error)


def test_messages_name_argument_value_and_remedy() -> None:
    assert str(ERRORS["invalid"]) == "kappa=-1.0: must be positive."
    assert str(ERRORS["data"]) == "file.csv: row 3, column age: 'x' is no number; correct it."
    assert str(ERRORS["missing"]) == (
        "cvxpy is needed for reference solutions; install it with: pip install 'minmaxcon[reference]'"
    )
    assert ERRORS["invalid array"].value.shape == (50, 50)
    long = mm.InvalidInput("x", "a" * 500, "too long.")
    assert str(long) == f"x='{'a' * 76}...: too long."
    assert long.value == "a" * 500


@pytest.mark.parametrize("name", ["plain", "invalid", "unknown", "data", "unsupported", "missing"])
def test_one_tree_and_the_built_in_kinds(name: str) -> None:
    kinds = {"invalid": ValueError, "unknown": ValueError, "data": ValueError, "unsupported": TypeError}
    kinds["missing"] = ImportError
    assert isinstance(ERRORS[name], mm.MinMaxConError)
    assert isinstance(ERRORS[name], kinds.get(name, Exception))


@pytest.mark.parametrize(
    "value, hint",
    [
        ("inter_grup", "did you mean 'inter_group'?"),
        ("inter-group", "did you mean 'inter_group'?"),
        ("INTER_GROUP", "did you mean 'inter_group'?"),
        ("a9A", "did you mean 'A9a'?"),
        ("zzz", "unknown name; Known: group, inter_group, A9a."),
        (None, "unknown name; Known: group, inter_group, A9a."),
    ],
)
def test_the_nearest_name_is_suggested(value: Any, hint: str) -> None:
    error = mm.UnknownName("metric", value, ("group", "inter_group", "A9a"))
    assert hint in str(error)
    assert "Known: group, inter_group, A9a." in str(error)
    assert error.known == ("group", "inter_group", "A9a")


def test_advice_follows_the_names_and_survives_a_process() -> None:
    error = mm.UnknownName("problem", "mine", ["toy"], "Install it first.")
    assert str(error).endswith("Known: toy. Install it first.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
