"""The public checks of options: what passes comes back in one type, what does not is one line that names the option."""

import numpy as np
import pytest

from minmaxcon.checks import number, positive, whole
from minmaxcon.errors import InvalidInput


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, True, "3", None, [1.0], 10**400])
def test_a_positive_number_is_a_positive_finite_number(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^radius=.*must be positive and finite\.$"):
        positive("radius", value)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0)])
def test_every_kind_of_number_comes_back_as_a_float(value: object) -> None:
    found = positive("radius", value)
    assert type(found) is float
    assert found == 2.0


@pytest.mark.parametrize("value", [[], [1.0, 0.0], [[1.0]], [1.0, np.inf], [True, True], ["1"], "1", None, [1, [2]]])
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


@pytest.mark.parametrize("value", [True, False, 1.0, 2.5, "2", None, -1, np.float64(3), np.True_, [3]])
def test_a_whole_number_is_no_boolean_and_no_float(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^seed=.*must be a whole number of at least 0\.$"):
        whole("seed", value, 0)


def test_a_whole_number_comes_back_as_an_int() -> None:
    assert type(whole("seed", np.int32(4))) is int
    assert whole("seed", 0, least=0) == 0


@pytest.mark.parametrize("value, passes", [(0.0, False), (1e-9, True), (1.0, True), (1.0 + 1e-9, False)])
def test_limits_are_open_or_closed_as_their_names_say(value: float, passes: bool) -> None:
    def accepted(**limits: float) -> bool:
        try:
            return number("share", value, "no.", **limits) == value
        except InvalidInput:
            return False

    assert accepted(above=0.0, most=1.0) is passes
    assert accepted(least=0.0, below=1.0) is (value < 1.0)
