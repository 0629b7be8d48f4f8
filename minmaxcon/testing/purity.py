"""What every numeric method must satisfy: pure, repeatable, one precision, any number of runs, any array engine.

An object is looked at through its calls: named functions of arrays whose results are arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, engine, namespace, to_numpy
from minmaxcon.geometry import DistanceGenerator, DualPoint, InnerBlock, PerspectiveGenerator
from minmaxcon.testing.blocks import BLOCK, interior_of
from minmaxcon.testing.duals import DUAL
from minmaxcon.testing.generator_laws import GENERATOR, steps_from
from minmaxcon.testing.harness import Check, Skip, Suite, apart, require, shown, unchanged

__all__ = ["Call", "add_purity"]

_CODE = "howto/conformance.html#arrays-and-runs"
_RUNS = 6


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """A method with arguments: arrays whose first axis counts runs, all of one engine.

    Attributes
    ----------
    function : callable
        Takes the arrays by name, returns a tuple of arrays.
    arrays : mapping
        The arguments.
    new : bool
        Whether the result must not share memory with them.
    """

    function: Callable[..., tuple[Any, ...]]
    arrays: Mapping[str, Any]
    new: bool = False

    def __call__(self, **changed: Any) -> tuple[Any, ...]:
        """Call with some arguments replaced."""
        return self.function(**{**self.arrays, **changed})

    def converted(self, xp: Namespace, dtype: str = "float64") -> dict[str, Any]:
        """Return the arguments in another engine or precision."""
        return {name: xp.create(array, dtype) for name, array in self.arrays.items()}


Calls = Callable[[Any, np.random.Generator], dict[str, Call]]


def _generator_calls(generator: DistanceGenerator, rng: np.random.Generator) -> dict[str, Call]:
    drawn = steps_from(generator, rng, _RUNS)
    anchor, g, other = drawn["anchor"], drawn["gradient"], drawn["center"]
    return {
        "prox": Call(lambda **a: (generator.prox(**a),), drawn, new=True),
        "value": Call(lambda u: (generator.value(u),), {"u": anchor}),
        "gradient": Call(lambda u: (generator.gradient(u),), {"u": anchor}),
        "divergence": Call(lambda u, v: (generator.divergence(u, v),), {"u": anchor, "v": other}),
        "linear_minimum": Call(lambda g: generator.linear_minimum(g), {"g": g}),
        "norm": Call(lambda u: (generator.norm(u),), {"u": g}),
        "dual_norm": Call(lambda g: (generator.dual_norm(g),), {"g": g}),
        "contains": Call(lambda u: (generator.contains(u),), {"u": other}),
    }


def _block_calls(block: InnerBlock, rng: np.random.Generator) -> dict[str, Call]:
    v, rate = 3.0 * rng.standard_normal((_RUNS, block.dimension)), 10.0 ** rng.uniform(-1.0, 1.0, (_RUNS, 1))
    alpha, anchor = (interior_of(block, rng, _RUNS) for _ in range(2))
    return {
        "prox": Call(lambda **a: block.prox(**a), {"v": v, "anchor": anchor, "inverse_step": rate}, new=True),
        "maximize": Call(lambda v: block.maximize(v), {"v": v}),
        "value": Call(lambda alpha: (block.value(alpha),), {"alpha": alpha}),
        "penalty": Call(lambda alpha: (block.penalty(alpha),), {"alpha": alpha}),
        "divergence": Call(lambda **a: (block.divergence(**a),), {"alpha": alpha, "anchor": anchor}),
    }


def _dual_calls(generator: PerspectiveGenerator, rng: np.random.Generator) -> dict[str, Call]:
    point = generator.sample(rng, _RUNS)
    u = rng.standard_normal((_RUNS, generator.levels))
    v = rng.standard_normal((_RUNS, generator.inner_dimension))
    step = 10.0 ** rng.uniform(-1.0, 1.0, (_RUNS, 1))

    def prox(weights: Any, inner: Any, u: Any, v: Any, step: Any) -> tuple[Any, ...]:
        found: DualPoint = generator.prox(generator.point(weights, inner), u, v, step)
        return found.log_weights, found.weights, found.inner

    drawn = {"weights": point.weights, "inner": point.inner, "u": u, "v": v, "step": step}
    return {"prox": Call(prox, drawn), "support": Call(lambda u, v: (generator.support(u, v),), {"u": u, "v": v})}


def _pure(made: Mapping[str, Call]) -> None:
    """Raise a fault if a call has side effects, or its result does not last."""
    for name, call in made.items():
        backup = {key: np.array(to_numpy(array)) for key, array in call.arrays.items()}
        with unchanged(name, call.arrays):
            first = call()
        kept = [np.array(to_numpy(part)) for part in first]
        if call.new:
            _require_new(name, first, call)
        call(**{key: namespace(a).copy(0.5 * a) for key, a in call.arrays.items() if key in ("u", "v", "g", "x")})
        lasting = all(np.array_equal(to_numpy(a), b, equal_nan=True) for a, b in zip(first, kept, strict=True))
        require(lasting, f"the result of {name} changed when {name} was called again: a buffer is shared.")
        again = call(**{key: namespace(call.arrays[key]).create(b) for key, b in backup.items()})
        same = all(np.array_equal(to_numpy(a), b, equal_nan=True) for a, b in zip(again, kept, strict=True))
        require(same, f"{name} gave other bits when it was called again with the same arguments.")


def _run_axis(made: Mapping[str, Call]) -> None:
    """Raise a fault if runs do not give together what each gives alone."""
    for name, call in made.items():
        together = call()
        for j in range(_RUNS):
            alone = call(**{key: array[j] for key, array in call.arrays.items()})
            for part, single in zip(together, alone, strict=True):
                far = apart(part[j], single)
                seen = f"run {j} of {_RUNS} of {name} differs from the same run alone by {far:.2g}, relatively."
                given = shown(**{key: array[j] for key, array in call.arrays.items()})
                require(far <= 1e-9, seen, f"{given}: {shown(together=part[j], alone=single)}")


def _precision(made: Mapping[str, Call]) -> None:
    """Raise a fault if float32 becomes float64."""
    for name, call in made.items():
        single = call(**call.converted(engine("numpy"), "float32"))
        for part in single:
            kind = str(part.dtype)
            require(not kind.endswith("64"), f"{name} turned float32 into {kind}.")


def _engines(made: Mapping[str, Call]) -> None:
    """Raise a fault if torch tensors do not give the numbers of NumPy arrays."""
    for name, call in made.items():
        ours = call()
        try:
            theirs = call(**call.converted(engine("torch")))
        except Exception as error:  # whatever NumPy code does with tensors
            raise Skip(f"{name} is not written for torch tensors ({type(error).__name__})") from None
        for part, other in zip(ours, theirs, strict=True):
            kind = namespace(other).name
            require(kind == "torch", f"{name} turned torch tensors into {kind} arrays.")
            require(apart(part, other) <= 1e-9, f"{name} differs by {apart(part, other):.2g}, relatively.")


def add_purity(suite: Suite, calls: Calls) -> None:
    """Add the checks of purity to a suite whose subjects have these calls."""

    def add(name: str, expected: str, law: Callable[[Mapping[str, Call]], None]) -> None:
        def run(subject: Any, rng: np.random.Generator) -> str:
            made = calls(subject, rng)
            law(made)
            return ", ".join(made)

        suite.append(Check(name, expected, _CODE, run))

    add(
        "pure", "No call changes its arguments, draws from a global random state, or depends on the call before.", _pure
    )
    add("run_axis", "Points of several runs, shape (R, d), give what each gives alone, shape (d,).", _run_axis)
    add("precision", "Arrays in float32 give arrays in float32: one float64 promotes a whole step.", _precision)
    add("engines", "NumPy arrays and torch tensors give the same numbers.", _engines)


def _require_new(name: str, found: tuple[Any, ...], call: Call) -> None:
    for part in found:
        for key, array in call.arrays.items():
            shared = part is array or np.shares_memory(to_numpy(part), to_numpy(array))
            require(not shared, f"the result of {name} shares memory with its argument {key}; return a new array.")


add_purity(GENERATOR, _generator_calls)
add_purity(BLOCK, _block_calls)
add_purity(DUAL, _dual_calls)
