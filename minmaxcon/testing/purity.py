"""Purity: calls without side effects, any number of runs, one precision, any array engine, states that are values.

An object is looked at through its calls: functions of named arrays whose results are named arrays.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from textwrap import shorten
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, engine, namespace, to_numpy
from minmaxcon.core import Batch, Position, Source
from minmaxcon.errors import InvalidInput
from minmaxcon.testing.check import Check, Fault, Skip, apart, differing, require

__all__ = [
    "PAGE",
    "Call",
    "converted",
    "first_rows",
    "lasting",
    "pure",
    "purity_checks",
    "rows_of",
    "run_axis",
    "same_bits",
    "taken",
    "unchanged",
]

PAGE = "howto/conformance.html#arrays-and-runs"


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """A method with arguments: takes and returns arrays by name; where there is a batch, it is the first argument.

    The first axis of ``arrays``, all of one engine, counts runs, that of the batch samples. ``distinct`` names, for a
    result, the arguments whose memory it must not share; it may share none of the batch.
    """

    function: Callable[..., Mapping[str, Any]]
    arrays: Mapping[str, Any]
    batch: Batch | None = None
    distinct: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __call__(self, *batch: Batch, **changed: Any) -> Mapping[str, Any]:
        """Call with some arguments replaced."""
        given = batch or (() if self.batch is None else (self.batch,))
        return self.function(*given, **{**self.arrays, **changed})

    def converted(self, xp: Namespace, dtype: str = "float64") -> Mapping[str, Any]:
        """Call with all arguments in another engine or precision."""
        batch = () if self.batch is None else (converted(self.batch, xp, dtype),)
        return self(*batch, **{name: xp.create(array, dtype) for name, array in self.arrays.items()})

    @property
    def given(self) -> dict[str, Any]:
        """All arguments by the names that a finding shows."""
        return {**self.arrays, **{f"batch[{name!r}]": array for name, array in (self.batch or {}).items()}}


Calls = Callable[[Any, np.random.Generator], dict[str, Call]]


def converted(batch: Batch, xp: Namespace, dtype: str) -> dict[str, Any]:
    """Return a batch in another engine or precision; sparse arrays stay so in NumPy and become dense in torch."""
    found: dict[str, Any] = {}
    for name, array in batch.items():
        if not hasattr(array, "tocsr"):
            found[name] = xp.create(array, dtype)
        elif xp is engine("numpy"):
            found[name] = array.astype(dtype)
        else:
            found[name] = xp.create(array.toarray(), dtype)
    return found


def taken(batch: Batch, begin: int, end: int) -> dict[str, Any]:
    """Return some rows of a batch."""
    return {name: array[begin:end] for name, array in batch.items()}


def first_rows(data: Source, rows: int) -> Batch:
    """Return the first rows of finite data, or samples of a stream: where it ends before, half as many."""
    if data.size is not None:
        return taken(next(iter(data.chunks(rows)))[1], 0, rows)
    start = Position.start(np.random.default_rng(0))
    while rows:
        for batch in data.draw(start, 1, rows)[0]:
            return batch
        rows //= 2
    raise InvalidInput("data", data, "gives no sample: a check needs at least one.")


def rows_of(batch: Batch) -> int:
    """Return the number of samples of a batch."""
    return int(next(iter(batch.values())).shape[0])


def purity_checks(calls: Calls, after: tuple[str, ...] = ()) -> tuple[Check, ...]:
    """Return the checks of objects that have these calls."""

    def over(law: Callable[[str, Call], None]) -> Callable[[Any, np.random.Generator], str]:
        @wraps(law)
        def run(subject: Any, rng: np.random.Generator) -> str:
            made = calls(subject, rng)
            for name, call in made.items():
                law(name, call)
            return ", ".join(made)

        return run

    laws = {"pure": pure, "run_axis": run_axis, "precision": precision, "engines": engines}
    return tuple(Check(name, PAGE, over(law), after) for name, law in laws.items())


def pure(name: str, call: Call) -> None:
    """No call changes its arguments, draws from a global random state, or depends on the call before."""
    backup = {key: namespace(array).copy(array) for key, array in call.arrays.items()}
    with unchanged(name, call.given):
        first = call()
    kept = {part: np.array(to_numpy(value)) for part, value in first.items()}
    for part, value in first.items():
        _require_own_memory(name, part, value, call)
    call(**{key: array[list(range(len(array)))[::-1]] for key, array in call.arrays.items()})
    for part, value in first.items():
        seen = f"{_of(part, name)} changed when {name} was called again: a buffer is shared."
        require(np.array_equal(to_numpy(value), kept[part], equal_nan=True), seen)
    for part, value in call(**backup).items():
        seen = f"{_of(part, name)} has other bits when {name} is called again with the same arguments."
        require(np.array_equal(to_numpy(value), kept[part], equal_nan=True), seen)


def _of(part: str, name: str) -> str:
    return f"the result of {name}" if part == name else f"{part} of {name}"


def _require_own_memory(name: str, part: str, value: Any, call: Call) -> None:
    held = set(call.distinct.get(part, ())) | (set(call.given) - set(call.arrays))
    for key in sorted(held):
        array = call.given[key]
        if not hasattr(array, "tocsr"):
            shared = value is array or np.shares_memory(to_numpy(value), to_numpy(array))
            require(not shared, f"{_of(part, name)} shares memory with its argument {key}; return a new array.")


def run_axis(name: str, call: Call, tolerance: float = 1e-10) -> None:
    """Points of several runs, shape (R, d), give what each gives alone, shape (d,)."""
    together = call()
    sizes = {part: float(np.abs(to_numpy(value)).max(initial=1e-12)) for part, value in together.items()}
    runs = len(next(iter(call.arrays.values())))
    for j in range(runs):
        given = {key: array[j] for key, array in call.arrays.items()}
        for part, single in call(**given).items():
            one, other = to_numpy(together[part])[j], to_numpy(single)
            what = _of(part, name)
            seen = f"{what} has shape {np.shape(other)} for a single run, {np.shape(one)} is needed."
            require(np.shape(one) == np.shape(other), seen)
            far = apart(one, other, sizes[part])
            if not far <= tolerance:
                seen = f"{what}, run {j} of {runs}, differs from the same run alone by {far:.2g}, relatively"
                raise Fault(f"{seen}, {differing(one, other)}.", **given)


def precision(name: str, call: Call) -> None:
    """Arrays in float32 give arrays in float32: one float64 promotes a whole step."""
    xp = namespace(next(iter(call.arrays.values())))
    for part, value in call.converted(xp, "float32").items():
        kind = str(value.dtype)
        require(not kind.endswith("64"), f"{_of(part, name)} is {kind} where all arguments are float32.")


def engines(name: str, call: Call) -> None:
    """NumPy arrays and torch tensors give the same numbers."""
    ours = call()
    mine = namespace(next(iter(call.arrays.values()))).name
    xp = engine("torch" if mine == "numpy" else "numpy")
    try:
        theirs = call.converted(xp)
        kinds = {part: namespace(value).name for part, value in theirs.items()}
    except Exception as error:  # whatever code for one engine does with the other's arrays
        first = shorten(str(error), 160, placeholder=" ...")
        raise Skip(f"{name} is not written for {xp.name} arrays ({type(error).__name__}: {first})") from None
    for part, value in ours.items():
        what = _of(part, name)
        require(kinds[part] == xp.name, f"{what} is a {kinds[part]} array where all arguments are of {xp.name}.")
        far = apart(value, theirs[part])
        if not far <= 1e-8:
            seen = f"{what} differs by {far:.2g} between {mine} and {xp.name}, relatively"
            same = np.shape(value) == np.shape(theirs[part])
            raise Fault(f"{seen}{', ' + differing(value, theirs[part]) if same else ''}.")


def same_bits(call: str, first: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Raise a fault unless two calls with the same seed gave the same bits."""
    for name, value in first.items():
        one, other = to_numpy(value), to_numpy(again[name])
        if not np.array_equal(one, other, equal_nan=True):
            both = f", {differing(one, other)}" if np.shape(one) == np.shape(other) else ""
            raise Fault(f"{name} of two {call} with the same seed differs{both}.")


def lasting(
    state: Any,
    step: Callable[[Any], Any],
    finished: Callable[[Any], bool],
    look: Callable[[Any], Mapping[str, Any]],
    steps: int,
) -> int:
    """Raise a fault if a state, or what is read from it, changes when a method goes on; return the steps taken."""
    for taken in range(steps):
        if finished(state):
            return taken
        seen = look(state)
        kept = {name: np.array(to_numpy(value)) for name, value in seen.items()}
        later = step(state)
        look(later)
        for name, value in look(state).items():
            wrote = f"{name} of a state changed when the method went on from it: a state must not be written to."
            require(np.array_equal(to_numpy(value), kept[name]), wrote)
            lent = f"{name} changed after it was read from a state: return a new array."
            require(np.array_equal(to_numpy(seen[name]), kept[name]), lent)
        state = later
    return steps


@contextmanager
def unchanged(call: str, arrays: Mapping[str, Any]) -> Iterator[None]:
    """Raise a fault if a call changes one of its arrays, or the global random state of a library."""
    before, states = {name: _bits(array) for name, array in arrays.items()}, _random_states()
    yield
    for name, array in arrays.items():
        require(_bits(array) == before[name], f"{call} changed its argument {name}.")
    for name, state in _random_states().items():
        drew = f"{call} drew from the global random state of {name}; draw from the caller's seed."
        require(states.get(name, state) == state, drew)


def _bits(array: Any) -> bytes:
    if hasattr(array, "tocsr"):
        array = array.data
    return bytes(np.ascontiguousarray(to_numpy(array)).tobytes())


def _random_states() -> dict[str, bytes]:
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002  # looked at, never drawn from
    states = {"random": repr(random.getstate()).encode(), "numpy": repr(legacy["state"]["pos"]).encode()}
    states["numpy"] += legacy["state"]["key"].tobytes()
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states
