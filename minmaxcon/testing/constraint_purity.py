"""A constraint's calls: evaluate as a function of x and of the weights of its pullback, on one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import Evaluation
from minmaxcon.testing.constraint_laws import CONSTRAINT
from minmaxcon.testing.functions import Function, converted, rows_of, taken
from minmaxcon.testing.harness import Fault, Skip, apart, differing, other_engine, require, shown, unchanged

__all__: list[str] = []

_CODE = "howto/conformance.html#arrays-and-runs"
_PARTS = "howto/new_problem.html#what-each-part-must-obey"

_RUNS = 5
_BATCH = 50


def _drawn(function: Function, rng: np.random.Generator, dtype: str = "float64") -> tuple[Any, Any, Any, Any]:
    """Return points, weights and a batch of the data's own engine."""
    rows = taken(function.batch, 0, _BATCH)
    y, a = rng.uniform(0.5, 1.5, _RUNS), function.inner(rng, _RUNS)
    create = function.xp.create
    points = create(function.points(rng, _RUNS), dtype)
    return points, create(y, dtype), create(a, dtype), converted(rows, function.xp, dtype)


def _parts(found: Evaluation, y: Any, a: Any) -> dict[str, Any]:
    return {"F": found.F, "G": found.G, "the gradient": found.pullback(y, a)}


@CONSTRAINT.check("evaluate() and terms() change nothing they are given and draw from no global random state.", _CODE)
def pure(function: Function, rng: np.random.Generator) -> str:
    x, y, a, batch = _drawn(function, rng)
    given = {"x": x, **{f"batch[{name!r}]": array for name, array in batch.items()}}
    with unchanged("evaluate()", given):
        found = function.constraint.evaluate(x, batch)
    with unchanged("pullback()", {**given, "y": y, "a": a}):
        slope = found.pullback(y, a)
    with unchanged("terms()", given):
        function.constraint.terms(x, batch)
    held = {"F": found.F, "G": found.G, "the gradient": slope}
    kept = {name: np.array(to_numpy(part)) for name, part in held.items()}
    for name, part in held.items():
        for key, array in batch.items():
            shared = not hasattr(array, "tocsr") and np.shares_memory(to_numpy(part), to_numpy(array))
            require(not shared, f"{name} shares memory with batch[{key!r}], which the source may reuse.")
    require(not np.shares_memory(to_numpy(slope), to_numpy(x)), "the gradient shares memory with x.")
    moved = namespace(x).create(function.points(rng, _RUNS))
    later = function.constraint.evaluate(moved, batch)
    later.pullback(y, a)
    for name, part in held.items():
        seen = f"{name} of the first call changed in the second: a buffer is shared."
        require(np.array_equal(to_numpy(part), kept[name], equal_nan=True), seen)
    for name, part in _parts(function.constraint.evaluate(x, batch), y, a).items():
        same = np.array_equal(to_numpy(part), kept[name], equal_nan=True)
        require(same, f"{name} has other bits when evaluate() is called again with the same arguments.")
    return f"{_RUNS} points, {rows_of(batch)} samples"


@CONSTRAINT.check("x of several runs, shape (R, d), gives what each gives alone, shape (d,).", _CODE)
def run_axis(function: Function, rng: np.random.Generator) -> str:
    x, y, a, batch = _drawn(function, rng)
    together = _parts(function.constraint.evaluate(x, batch), y, a)
    scale = {name: float(np.abs(to_numpy(part)).max(initial=1e-12)) for name, part in together.items()}
    for j in range(_RUNS):
        alone = _parts(function.constraint.evaluate(x[j], batch), y[j], a[j])
        for name, part in together.items():
            one, other = to_numpy(part)[j], to_numpy(alone[name])
            seen = f"{name} has shape {np.shape(other)} for a single point, {np.shape(one)} is needed."
            require(np.shape(one) == np.shape(other), seen)
            far = float(np.abs(one - other).max(initial=0.0)) / scale[name]
            if not far <= 1e-10:
                seen = f"{name} of run {j} differs from that of the same point alone by {far:.2g}, relatively."
                raise Fault(f"{seen[:-1]}, {differing(one, other)}.", shown(x=x[j]))
    return f"{_RUNS} runs"


@CONSTRAINT.check("Float32 data and points give float32: one float64 array promotes a whole step.", _CODE)
def precision(function: Function, rng: np.random.Generator) -> str:
    x, y, a, batch = _drawn(function, rng, "float32")
    for name, part in _parts(function.constraint.evaluate(x, batch), y, a).items():
        require(str(part.dtype).endswith("32"), f"{name} is {part.dtype}.")
    return "F, G and the gradient"


@CONSTRAINT.check("A batch of a single sample works and is finite.", _PARTS)
def single_sample(function: Function, rng: np.random.Generator) -> str:
    count = rows_of(function.batch)
    x, y, a = function.points(rng, 1)[0], np.ones(()), function.inner(rng, 1)[0]
    for row in rng.permutation(count)[:20]:
        found = function.evaluate(x, taken(function.batch, int(row), int(row) + 1))
        for name, part in _parts(found, y, a).items():
            require(np.isfinite(part).all(), f"{name} is not finite on sample {row} alone.", shown(x=x))
    return f"{min(count, 20)} samples"


@CONSTRAINT.check("NumPy arrays and torch tensors give the same numbers.", _CODE)
def engines(function: Function, rng: np.random.Generator) -> str:
    x, y, a, batch = _drawn(function, rng)
    mine = _parts(function.constraint.evaluate(x, batch), y, a)
    xp = other_engine(x)
    try:
        moved = converted(batch, xp, "float64")
        theirs = _parts(function.constraint.evaluate(xp.create(x), moved), xp.create(y), xp.create(a))
        theirs = {name: to_numpy(part) for name, part in theirs.items()}
    except Exception as error:  # whatever code for one engine does with the other's arrays
        first = " ".join(str(error).split())[:80]
        raise Skip(f"not written for {xp.name} arrays ({type(error).__name__}: {first})") from None
    for name, part in mine.items():
        far = apart(part, theirs[name])
        seen = f"{name} differs by {far:.2g} between {function.xp.name} and {xp.name}, relatively"
        if not far <= 1e-8:
            same = np.shape(part) == np.shape(theirs[name])
            raise Fault(f"{seen}{', ' + differing(part, theirs[name]) if same else ''}.", shown(x=x[0]))
    return "F, G and the gradient"
