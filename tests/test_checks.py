"""The public checks of options: what passes comes back in one type, what does not is one line that names the option.

There is one rule for numbers: what one check takes for a number, every other takes, and so does every constructor.
"""

from __future__ import annotations

import datetime as dt
import inspect
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

import minmaxcon as mm
from minmaxcon.checks import (
    choice,
    file_path,
    finite_array,
    flag,
    instance,
    instances,
    mapping,
    number,
    positive,
    seed_number,
    whole,
)
from minmaxcon.data import Stream, split_indices
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import BallBlock, BoxBlock, PerspectiveGenerator, Simplex, SimplexBlock, interval
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests import cases

CHECKS: dict[str, Callable[[Any], Any]] = {
    "number": lambda value: number("option", value, "must be a number."),
    "array": lambda value: finite_array("option", value, "must be a number."),
    "positive": lambda value: positive("option", value),
    "several": lambda value: positive("option", value, several=True)[0],
    "whole": lambda value: whole("option", value),
    "seed": lambda value: seed_number("option", value),
}
EVERY = frozenset(CHECKS)
NO_SEED = EVERY - {"seed"}
REAL = NO_SEED - {"whole"}

TABLE: list[tuple[Any, frozenset[str]]] = [
    # value, the checks that take it
    (3, EVERY),
    (np.int8(3), EVERY),
    (np.uint64(3), EVERY),
    (3.0, NO_SEED),
    (1e4, NO_SEED),
    (np.float16(3), NO_SEED),
    (np.float32(3), NO_SEED),
    (np.longdouble(3), NO_SEED),
    (np.array(3), NO_SEED),
    (np.array(3.0), NO_SEED),
    (torch.tensor(3), NO_SEED),
    (torch.tensor(3.0, requires_grad=True), NO_SEED),
    (Fraction(3), NO_SEED),
    (Decimal(3), NO_SEED),
    (2**53 + 1, EVERY),
    (2**63 - 1, EVERY),
    (2**63, EVERY - {"whole"}),
    (10**30, EVERY - {"whole"}),
    (2.5, REAL),
    (np.float32(2.5), REAL),
    (np.array(2.5), REAL),
    (Fraction(1, 2), REAL),
    (1e300, REAL),
    (0, frozenset({"number", "array", "seed"})),
    (np.int64(0), frozenset({"number", "array", "seed"})),
    (0.0, frozenset({"number", "array"})),
    (-1, frozenset({"number", "array"})),
    (np.array(-1.5), frozenset({"number", "array"})),
    (10**400, frozenset({"seed"})),
    ([3], frozenset({"array", "several"})),
    (np.array([3.0]), frozenset({"array", "several"})),
    (torch.tensor([3]), frozenset({"array", "several"})),
    ([Fraction(3)], frozenset({"array", "several"})),
    *(
        (value, frozenset[str]())
        for value in (
            *(True, False, np.True_, np.False_, np.array(True), torch.tensor(True), [True], np.array([True])),
            *([3.0, True], [np.True_, 3], [[3, 4], [5.0, True]]),
            *("3", b"3", bytearray(b"3"), memoryview(b"3"), np.str_("3"), np.bytes_(b"3"), np.array("3"), ["3"], ""),
            *(np.nan, np.inf, -np.inf, np.float32("nan"), np.array(np.inf), Decimal("NaN"), Decimal("sNaN")),
            *(-(10**400), Decimal("1e400"), np.array(10**400), np.longdouble("1e4000"), [10**400]),
            *(3j, np.complex128(3), np.array(3j), [3j], None, object(), float, np.float64, {}, [None]),
            *(dt.date(2000, 1, 1), np.datetime64(3, "D"), np.timedelta64(3, "D"), np.array([3], "m8[s]")),
            *(np.ma.masked, np.array(None), [1, [2]], torch.tensor(3j), torch.tensor(np.nan)),
        )
    ),
]


@pytest.mark.parametrize("check", CHECKS)
def test_one_rule_says_what_a_number_is(check: str) -> None:
    for value, taken in TABLE:
        if check in taken:
            found = CHECKS[check](value)
            # An exact comparison: a whole number does not pass through a float, which ends at 2**53.
            given = value.item() if hasattr(value, "item") else value[0] if isinstance(value, list) else value
            if check in ("whole", "seed"):
                assert type(found) is int, value
                assert found == given
            else:
                assert np.asarray(found).item() == float(given)
            assert check != "number" or type(found) is float, value
            continue
        with pytest.raises(InvalidInput) as caught:
            CHECKS[check](value)
        message = str(caught.value)
        assert message.startswith("option=")
        assert "\n" not in message
        assert caught.value.argument == "option"
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, True, "3", None, [1.0], 10**400])
def test_a_positive_number_is_a_positive_finite_number(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^radius=.*must be positive and finite\.$"):
        positive("radius", value)


@pytest.mark.parametrize(
    "value",
    [
        [True, True],
        [0.1, True],
        (np.True_, 0.1),
        [[0.1, 0.2], [0.3, False]],
        [0.1, torch.tensor(True)],
        [0.1, np.array(True)],
    ],
)
def test_a_boolean_among_numbers_is_no_number(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^point="):
        finite_array("point", value, "must be finite.")


@pytest.mark.parametrize("value", [[], [1.0, 0.0], [[1.0]], [1.0, np.inf], ["1"], "1", None, [1, [2]]])
def test_a_vector_of_bounds_is_checked_in_every_entry(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^bound=.*a number or a list of them\.$"):
        positive("bound", value, several=True)


def test_one_bound_or_several_come_back_as_a_new_vector() -> None:
    given = np.array([1.0, 2.0])
    found = positive("bound", given, several=True)
    found[0] = 5.0
    assert given[0] == 1.0
    assert positive("bound", 3, several=True).tolist() == [3.0]
    assert positive("bound", (1, 2.5), several=True).tolist() == [1.0, 2.5]


def test_a_whole_number_comes_back_as_an_int() -> None:
    assert type(whole("look", np.int32(4))) is int
    assert type(whole("look", 200.0)) is int
    assert whole("look", 0, least=0) == 0


def test_a_whole_number_has_a_largest_one() -> None:
    with pytest.raises(InvalidInput, match=r"at least 1 and at most 9223372036854775807\.$"):
        whole("look", 10**30)
    with pytest.raises(InvalidInput, match=r"^look=11: must be a whole number of at least 1 and at most 10\.$"):
        whole("look", 11, most=10)
    assert whole("look", 10, most=10) == 10


@pytest.mark.parametrize("value, passes", [(0.0, False), (1e-9, True), (1.0, True), (1.0 + 1e-9, False)])
def test_limits_are_open_or_closed_as_their_names_say(value: float, passes: bool) -> None:
    def accepted(**limits: float) -> bool:
        try:
            return number("share", value, "no.", **limits) == value
        except InvalidInput:
            return False

    assert accepted(above=0.0, most=1.0) is passes
    assert accepted(least=0.0, below=1.0) is (value < 1.0)


QUICK = mm.SFLS(mm.SMD(steps=10, batch_size=5), levels=1)


def fit(**settings: Any) -> Any:
    """A model of hardly any rows, without constraint, which is quick."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    label, group = np.arange(40) % 2, np.arange(40) // 2 % 2
    model = FairAUCClassifier(**{"max_gap": 1.0, "random_state": 0, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of a solver of few steps
        return model.fit(rows, label, sensitive_features=group)


def solve(**settings: Any) -> Any:
    return mm.solve(cases.problem("fair_auc_inter"), QUICK, **settings)


FINITE: list[tuple[Callable[..., Any], str]] = [
    (lambda radius: mm.Ball(2, radius), "radius"),
    (lambda lower: mm.Box(lower, 10.0), "lower"),
    (lambda upper: mm.Box(0.0, upper), "upper"),
    (interval, "radius"),
    (lambda curvature: interval(1.0, curvature), "curvature"),
    (lambda curvature: BoxBlock([0.0], [1.0], curvature), "curvature"),
    (lambda radius: BallBlock(2, radius), "radius"),
    (lambda curvature: BallBlock(2, 1.0, curvature), "curvature"),
    (lambda temperature: SimplexBlock(2, temperature), "temperature"),
    (lambda entropy_weight: PerspectiveGenerator([None], entropy_weight), "entropy_weight"),
    (mm.SMD, "entropy_weight"),
    (mm.SFLS, "theta"),
    (mm.SFLS, "oracle_error"),
    (mm.SFLS, "slack"),
    (mm.SFLS, "growth"),
    (mm.IQRC, "weight"),
    (mm.IQRC, "tolerance"),
    (mm.MirrorProx, "relative_accuracy"),
    (mm.MirrorProx, "entropy_weight"),
    (mm.ExtraGradient, "entropy_weight"),
    (mm.VarianceReduced, "relative_accuracy"),
    (mm.VarianceReduced, "entropy_weight"),
    (mm.ConEx, "smoothness"),
    (mm.ConEx, "primal_step"),
    (mm.ConEx, "cap"),
    (mm.ConEx, "dual_scale"),
    (mm.Adaptive, "distance"),
    (mm.Adaptive, "dual_scale"),
    (mm.Adaptive, "floor"),
    (mm.InverseSqrt, "scale"),
    (mm.InverseSqrt, "dual_scale"),
    (mm.Theory, "constant"),
    (mm.Theory, "safety"),
    (solve, "time_limit"),
    (fit, "radius"),
    (fit, "time_limit"),
]
"""Settings for which 3 is a good number."""

WHOLE: list[tuple[Callable[..., Any], str]] = [
    (lambda dimension: mm.Ball(dimension, 1.0), "dimension"),
    (Simplex, "dimension"),
    (lambda dimension: BallBlock(dimension, 1.0), "dimension"),
    (SimplexBlock, "dimension"),
    (mm.SMD, "steps"),
    (mm.SMD, "batch_size"),
    (mm.SMD, "block"),
    (mm.SFLS, "levels"),
    (mm.SFLS, "searches"),
    (mm.IQRC, "iterations"),
    (mm.MirrorProx, "steps"),
    (mm.ExtraGradient, "steps"),
    (mm.ExtraGradient, "batch_size"),
    (mm.VarianceReduced, "epochs"),
    (mm.VarianceReduced, "inner_steps"),
    (lambda steps: mm.ConEx(steps, evaluations=2), "steps"),
    (mm.ConEx, "batch_size"),
    (mm.ConEx, "evaluations"),
    (mm.models.Linear, "features"),
    (lambda hidden: mm.models.mlp(3, hidden), "hidden"),
    (lambda shuffle: Stream([{"a": 1.0}], shuffle=shuffle), "shuffle"),
    (solve, "budget"),
]
"""Settings for which 3 is a good number and 2.5 is none."""

SHARES: list[tuple[Callable[..., Any], str]] = [
    (mm.SMD, "mixing"),
    (mm.SFLS, "tolerance"),
    (mm.SFLS, "delta"),
    (mm.SFLS, "least_span"),
    (mm.MirrorProx, "mixing"),
    (mm.ExtraGradient, "mixing"),
    (mm.VarianceReduced, "mixing"),
    (mm.ConEx, "tail"),
    (mm.ConEx, "tolerance"),
    (fit, "max_gap"),
    (lambda kappa: fit(kappa=kappa, max_gap=None, solver=QUICK), "kappa"),
    (fit, "validation_fraction"),
]
"""Settings for which 1/2 is a good number."""

SEEDS: list[tuple[Callable[..., Any], str]] = [
    (solve, "seed"),
    (lambda seed: split_indices(10, (0.5, 0.5), seed), "seed"),
]

NO_NUMBERS = [np.True_, "3", 3j]
"""One value of each kind that passes where a constructor forgets the rule, which is tested above."""


def named(builds: list[tuple[Callable[..., Any], str]]) -> list[Any]:
    return [
        pytest.param(build, name, id=f"{getattr(build, '__name__', 'x').strip('<>')}-{name}") for build, name in builds
    ]


def refused(build: Callable[..., Any], name: str, values: list[Any]) -> str:
    """Every value is refused in one line that names the setting; return the last message."""
    message = ""
    for value in values:
        with pytest.raises(InvalidInput) as caught:
            build(**{name: value})
        message = str(caught.value)
        assert caught.value.argument == name, value
        assert message.startswith(f"{name}="), value
        assert "\n" not in message
    return message


@pytest.mark.parametrize("build, name", named(FINITE))
def test_a_setting_that_is_a_number_goes_by_the_rule(build: Callable[..., Any], name: str) -> None:
    refused(build, name, [*NO_NUMBERS, 10**400])
    build(**{name: np.array(3)})


@pytest.mark.parametrize("build, name", named(WHOLE))
def test_a_setting_that_is_a_count_goes_by_the_rule(build: Callable[..., Any], name: str) -> None:
    assert "must be a whole number of at least" in refused(build, name, [*NO_NUMBERS, 10**400, np.float32(2.5)])
    build(**{name: np.float32(3)})


@pytest.mark.parametrize("build, name", named(SHARES))
def test_a_setting_that_is_a_share_goes_by_the_rule(build: Callable[..., Any], name: str) -> None:
    refused(build, name, [*NO_NUMBERS, 10**400])
    build(**{name: np.float32(0.5)})


@pytest.mark.parametrize("build, name", named(SEEDS))
def test_a_seed_goes_by_the_rule(build: Callable[..., Any], name: str) -> None:
    assert "must be a whole number of at least 0" in refused(build, name, [*NO_NUMBERS, 3.0])
    build(**{name: np.int64(3)})


def test_no_number_that_a_public_name_takes_by_default_goes_unchecked() -> None:
    """Whatever was added after the tables above: every parameter whose default is a number refuses a boolean."""
    public = [getattr(mm, name) for name in mm.__all__ if name != "Needs"]  # which the author of a method declares
    builds = [build for build in public if callable(build)] + [mm.plugin(name).load for name in mm.plugin_names()]
    tried = 0
    for build in builds:
        try:
            parameters = inspect.signature(build).parameters.values()
        except ValueError:  # those of some built-in bases cannot be told
            continue
        defaults = {
            one.name: one.default for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        }
        for name, default in defaults.items() if inspect.Parameter.empty not in defaults.values() else ():
            if isinstance(default, int | float) and not isinstance(default, bool):
                tried += 1
                with pytest.raises(InvalidInput, match=f"^{name}="):
                    build(**{name: True})
    assert tried > 80


def test_the_sample_of_a_stream_of_rows_goes_by_the_rule() -> None:
    refused(fit, "max_rows_per_cell", [*NO_NUMBERS, 2.5])
    refused(fit, "random_state", [True, 2.5])


@pytest.mark.parametrize("dimension", [10**10, 2**62, 10**30, 1e300, 10**400])
@pytest.mark.parametrize("build", [lambda p: mm.Ball(p, 1.0), Simplex, SimplexBlock, lambda p: BallBlock(p, 1.0)])
def test_a_dimension_that_no_memory_holds_is_refused(build: Callable[[Any], Any], dimension: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^dimension=.*at most 1000000000\.$"):
        build(dimension)


@pytest.mark.parametrize("metric", [None, 1, 2.5, b"group", np.array("group"), np.True_, [], object()])
def test_a_metric_that_is_none_is_named_with_those_that_are(metric: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^metric=.*group, inter_group, intra_group, .*four subsets") as caught:
        fit(metric=metric)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "name", ["method", "demand", "unknown", "calibration", "use_group", "against", "objective", "standardize"]
)
def test_a_choice_that_is_no_text_is_named(name: str) -> None:
    refused(fit, name, [np.zeros(3), torch.zeros(3), object(), 1j])


def test_texts_flags_kinds_and_paths_are_checked_as_numbers_are() -> None:
    assert choice("kind", "a", ("a", "b")) == "a"
    assert flag("loud", np.True_) is True
    assert instances("parts", iter([1, 2]), int, "must be whole.") == (1, 2)
    assert mapping("given", {"a": 1}, "must be a mapping.") == {"a": 1}
    assert str(file_path("folder", "a")) == "a"
    refused(lambda kind: choice("kind", kind, ("a", "b")), "kind", [None, "c", ["a"], np.array("a")])
    refused(lambda loud: flag("loud", loud), "loud", [None, 1, "True", np.array(True)])
    refused(lambda part: instance("part", part, str, "must be a text."), "part", [None, 1, b"a"])
    refused(lambda parts: instances("parts", parts, str, "must be texts."), "parts", [None, "ab", np.array("a"), 1])
    refused(lambda given: mapping("given", given, "must be a mapping."), "given", [None, [], {1: 2}])
    refused(lambda folder: file_path("folder", folder), "folder", [None, 1, ["a"], np.zeros(3)])
    with pytest.raises(InvalidInput, match=r"^parts\[1\]=2: must be texts"):
        instances("parts", ["a", 2], str, "must be texts.")
