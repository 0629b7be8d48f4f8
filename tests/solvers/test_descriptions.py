"""What a checkpoint says of values: settings by their parts, states as trees and arrays, and what is no state."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.core import codec as module
from minmaxcon.core.codec import Codec
from minmaxcon.solvers import checkpoint
from tests import cases


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Pair:
    first: Any
    second: Any = 7
    _hidden: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    """A dataclass without a dictionary, whose state is a list."""

    width: Any


@dataclasses.dataclass
class Loose:
    """A dataclass that is not frozen, and so no part of a state."""

    value: Any = 0


@dataclasses.dataclass(frozen=True)
class Dying:
    """A class that would run code when a value is dropped."""

    def __del__(self) -> None: ...


class Plain:
    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


class Slotted:
    __slots__ = ("_hidden", "value")

    def __init__(self, value: Any) -> None:
        self.value, self._hidden = value, 5


class Rebuilt:
    rebuilt_from = ("scale",)

    def __init__(self, scale: Any) -> None:
        self.scale, self.cache = scale, object()


HERE = __name__
ARRAY = np.arange(6.0).reshape(2, 3)


def described(value: Any) -> dict[str, str]:
    """Return what a walk says of a value named ``a``."""
    walk = checkpoint._Walk()
    walk.visit("a", value)
    return walk.found


def digest(content: bytes) -> str:
    return checkpoint._digest(content)


@pytest.mark.parametrize(
    "value, expected",
    [
        (3, {"a": "3"}),
        (np.float32(0.5), {"a": "0.5"}),
        (None, {"a": "None"}),
        (1 + 2j, {"a": "(1+2j)"}),
        (b"x", {"a": "b'x'"}),
        (Colour.RED, {"a": "<Colour.RED: 1>"}),
        ("x" * 198, {"a": repr("x" * 198)}),
        ("x" * 199, {"a": digest(repr("x" * 199).encode())}),
        (ARRAY, {"a": f"float64(2, 3) {digest(ARRAY.tobytes())}"}),
        (ARRAY.T, {"a": f"float64(3, 2) {digest(ARRAY.T.copy().tobytes())}"}),
        (torch.ones(2), {"a": f"float32(2,) {digest(np.ones(2, dtype=np.float32).tobytes())}"}),
        (np.array(["b", None], dtype=object), {"a": f"object(2,) {digest(repr(['b', None]).encode())}"}),
        ([1, "b"], {"a[0]": "1", "a[1]": "'b'"}),
        (tuple(range(40)), {f"a[{i}]": str(i) for i in range(40)}),
        (list(range(41)), {"a": f"41 entries {digest(repr(list(range(41))).encode())}"}),
        ({"k": 1, 2: None}, {"a['k']": "1", "a[2]": "None"}),
        (Colour, {"a": f"{HERE}.Colour"}),
        (described, {"a": f"{HERE}.described"}),
        (object(), {"a": "builtins.object"}),
        (Pair(1), {"a.class": f"{HERE}.Pair", "a.first": "1", "a.second": "7"}),
        (Slots(4), {"a.class": f"{HERE}.Slots", "a.width": "4"}),
        (Plain(b=2, a=1, _c=3), {"a.class": f"{HERE}.Plain", "a.a": "1", "a.b": "2"}),
        (Slotted(4), {"a.class": f"{HERE}.Slotted", "a.value": "4"}),
        (Rebuilt(0.5), {"a.class": f"{HERE}.Rebuilt", "a.scale": "0.5"}),
    ],
)
def test_a_value_is_described_by_its_parts(value: Any, expected: dict[str, str]) -> None:
    assert described(value) == expected


def test_sparse_rows_are_described_by_their_entries() -> None:
    rows = scipy.sparse.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))
    entries = np.array([2.0, 3.0])
    index, begin = np.array([1, 0], dtype=rows.indices.dtype), np.array([0, 1, 2], dtype=rows.indptr.dtype)
    assert described(rows) == {
        "a.shape": "'(2, 2)'",
        "a.entries": f"float64(2,) {digest(entries.tobytes())}",
        "a.indices": f"{index.dtype}(2,) {digest(index.tobytes())}",
        "a.indptr": f"{begin.dtype}(3,) {digest(begin.tobytes())}",
    }
    assert set(described(scipy.sparse.coo_array(rows))) == {"a.shape", "a.entries"}


def test_what_occurs_twice_is_described_once() -> None:
    shared, held = [1], ARRAY.copy()
    assert described([shared, shared]) == {"a[0][0]": "1", "a[1]": "the a[0]"}
    found = described([held, held])
    assert found["a[1]"] == found["a[0]"] == f"float64(2, 3) {digest(held.tobytes())}"
    loop: Any = Plain()
    loop.me = loop
    assert described(loop) == {"a.class": f"{HERE}.Plain", "a.me": "the a"}


def test_a_description_ends_at_a_depth() -> None:
    value: Any = 1
    for _ in range(20):
        value = Plain(b=value)
    found = described(value)
    assert found["a" + 12 * ".b" + ".class"] == f"{HERE}.Plain"
    assert found["a" + 13 * ".b"] == f"{HERE}.Plain"
    assert len(found) == 14


def codec() -> Codec:
    return Codec(cases.problem("fair_auc_inter"), {"tests", "minmaxcon"})


def there_and_back(value: Any) -> Any:
    tree, arrays = codec().encode(value)
    return codec().decode(tree, arrays)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.1, -0.0, "text", (1, (2.5, None)), [1, [2]], {"a": (1,), "b": {}}, Colour.RED, Pair(1, [2])],
)
def test_plain_values_come_back(value: Any) -> None:
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_numbers_that_are_not_finite_scalars_and_arrays_come_back() -> None:
    assert repr(there_and_back((np.inf, -np.inf, np.nan))) == "(inf, -inf, nan)"
    scalar = there_and_back(np.float32(0.1))
    assert scalar == np.float32(0.1)
    assert scalar.dtype == np.float32
    for array in (ARRAY, ARRAY.astype(np.int16), torch.arange(3, dtype=torch.float32)):
        found = there_and_back(array)
        assert type(found) is type(array)
        assert found.dtype == array.dtype
        assert np.array_equal(np.asarray(found), np.asarray(array))
    tree, arrays = codec().encode((ARRAY, [ARRAY], ARRAY + 1.0))
    assert len(arrays) == 2
    assert tree[0] == {"array": 0}
    assert there_and_back(Rebuilt(2.0)).scale == 2.0
    assert there_and_back(Pair(ARRAY)).second == 7


def test_parts_of_the_problem_are_named_and_found_again() -> None:
    problem = cases.problem("fair_auc_inter")
    kept = Codec(problem, {"minmaxcon", "minmaxcon_problems"})
    blocks = [function.dual for function in (problem.objective, *problem.constraints)]
    value = (problem.primal, problem.data, problem.objective, blocks[0])
    tree, arrays = kept.encode(value)
    assert tree == [{"part": name} for name in ("primal", "data", "function 0", "block 0")]
    assert arrays == []
    assert all(one is other for one, other in zip(kept.decode(tree, arrays), value, strict=True))


def test_the_names_of_parts_are_those_of_older_checkpoints() -> None:
    problem = cases.problem("fair_auc_inter")
    named = ("problem", "family", "constraint_family", "primal", "data")
    found = module._parts(problem)
    assert all(found[name] is getattr(problem, name) for name in named[1:])
    assert found["problem"] is problem
    functions = (problem.objective, *problem.constraints)
    blocks = {f"block {i}" for i, function in enumerate(functions) if function.dual is not None}
    assert set(found) == {*named, *blocks, *(f"function {i}" for i in range(len(functions)))}
    assert set(module._parts(problem, "first ")) == {f"first {name}" for name in found}


@pytest.mark.parametrize(
    "name, allowed",
    [
        (f"{HERE}:Pair", True),
        (f"{HERE}:Colour", True),
        (f"{HERE}:Rebuilt", True),
        (f"{HERE}:Loose", False),
        (f"{HERE}:Plain", False),
        (f"{HERE}:Dying", False),
        (f"{HERE}:described", False),
        (f"{HERE}:ARRAY", False),
        (f"{HERE}:Missing", False),
        (f"{HERE}:mm", False),
        (f"{HERE}:dataclasses", False),
        (f"{HERE}:Codec", False),
        ("os:system", False),
        ("tests.nowhere:Pair", False),
    ],
)
def test_a_state_is_made_of_classes_of_values_only(name: str, allowed: bool) -> None:
    kind = "member" if name.endswith("Colour") else "made" if name.endswith("Rebuilt") else "fields"
    parts: Any = {"member": "RED", "made": {"scale": 1.0}, "fields": {"first": 1}}[kind]
    tree = {kind: parts, "class": name}
    if allowed:
        assert codec().decode(tree, []) is not None
        return
    with pytest.raises(mm.CorruptCheckpoint) as caught:
        codec().decode(tree, [])
    assert "\n" not in str(caught.value)


def local() -> Any:
    """Return a value of a class that no name leads to."""

    @dataclasses.dataclass(frozen=True)
    class Local:
        value: int = 0

    return Local()


@pytest.mark.parametrize(
    "value", [Loose(), Dying(), local(), Plain(), object(), {1: 2}, {3}, np.array([None]), lambda: 0]
)
def test_what_is_no_state_is_refused_by_its_place(value: Any) -> None:
    with pytest.raises(mm.Unsupported, match=r"^state\[1\]\.first is an? .*no checkpoint can hold"):
        codec().encode((0, Pair(value)))


def test_fields_of_another_version_are_named() -> None:
    for parts, word in (({"first": 1, "third": 2}, "'third'"), ({"second": 1}, "'first'")):
        with pytest.raises(mm.CorruptCheckpoint, match=f"Pair has other fields, such as {word}"):
            codec().decode({"fields": parts, "class": f"{HERE}:Pair"}, [])
    with pytest.raises(mm.CorruptCheckpoint, match="not rebuilt from these"):
        codec().decode({"made": {"size": 1}, "class": f"{HERE}:Rebuilt"}, [])


def test_a_tree_has_a_depth() -> None:
    tree: Any = 1
    for _ in range(module._DEPTH):
        tree = [tree]
    assert codec().decode(tree, []) is not None
    with pytest.raises(mm.CorruptCheckpoint, match="nested too deep"):
        codec().decode([tree], [])
