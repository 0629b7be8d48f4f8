"""A constraint with its set and a sample of its data, as functions of NumPy arrays in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, engine, namespace
from minmaxcon.core import Batch, Evaluation, Position, Source, StochasticMinMaxConstraint
from minmaxcon.geometry import DistanceGenerator
from minmaxcon.testing.generator_laws import interior
from minmaxcon.testing.harness import require

__all__ = ["Function", "converted", "rows_of", "taken"]

_ROWS = 20_000  # rows of finite data that are looked at at once
_STREAM = 4_096  # samples of a stream that stand for it


def taken(batch: Batch, begin: int, end: int) -> dict[str, Any]:
    """Return some rows of a batch."""
    return {name: array[begin:end] for name, array in batch.items()}


def rows_of(batch: Batch) -> int:
    """Return the number of samples of a batch."""
    return int(next(iter(batch.values())).shape[0])


@dataclass(frozen=True, eq=False)
class Function:
    r"""A constraint on a set, seen through part of its data.

    Attributes
    ----------
    constraint : StochasticMinMaxConstraint
        The constraint.
    primal : DistanceGenerator
        The set X.
    data : Source
        The samples.
    first : ndarray (d,)
        Where solvers start.
    slopes : float
        How exact slopes must be, relatively: surrogates read values and slopes from tables.
    """

    constraint: StochasticMinMaxConstraint
    primal: DistanceGenerator
    data: Source
    first: Any = None
    slopes: float = 2e-5

    @cached_property
    def xp(self) -> Namespace:
        """Functions of the data's own array engine."""
        return namespace(self.data.like)

    @cached_property
    def complete(self) -> bool:
        """Whether :attr:`batch` is all of the data."""
        return self.data.size is not None and self.data.size <= _ROWS

    @cached_property
    def batch(self) -> dict[str, Any]:
        """Finite data, or the first rows of it; of a stream the first samples; in float64."""
        if self.data.size is not None:
            _, rows = next(iter(self.data.chunks(_ROWS)))
        else:
            batches, _ = self.data.draw(Position.start(np.random.default_rng(0)), 1, _STREAM)
            rows = next(iter(batches))
        return converted(rows, self.xp, "float64")

    @property
    def inner_dimension(self) -> int:
        """Number of inner variables."""
        return 0 if self.constraint.dual is None else int(self.constraint.dual.dimension)

    @property
    def start(self) -> Any:
        """Where solvers start."""
        return np.asarray(self.primal.center if self.first is None else self.first, dtype=np.float64)

    def points(self, rng: np.random.Generator, count: int) -> Any:
        """Draw points of X."""
        return interior(self.primal, rng, count)

    def inner(self, rng: np.random.Generator, count: int) -> Any:
        """Draw inner variables, shape (count, p)."""
        block = self.constraint.dual
        return np.zeros((count, 0)) if block is None else np.asarray(block.sample(rng, count), dtype=np.float64)

    def evaluate(self, x: Any, batch: Batch | None = None) -> Evaluation:
        """Return F, G and the pullback at NumPy points, as NumPy arrays."""
        found = self.constraint.evaluate(self.xp.create(x), self.batch if batch is None else batch)
        need = f"evaluate() must return mm.Evaluation; it returned {type(found).__name__}."
        require(isinstance(found, Evaluation), need)
        xp = self.xp

        def pullback(y: Any, a: Any) -> Any:
            return xp.to_numpy(found.pullback(xp.create(y), xp.create(a)))

        return Evaluation(xp.to_numpy(found.F), xp.to_numpy(found.G), pullback)

    def terms(self, x: Any, batch: Batch) -> tuple[Any, Any]:
        """Return F and G of ``terms``, as NumPy arrays; G has no entry where there are no inner variables."""
        mean, moment = self.constraint.terms(self.xp.create(x), batch)
        mean = self.xp.to_numpy(mean)
        return mean, np.zeros((*np.shape(mean), 0)) if moment is None else self.xp.to_numpy(moment)

    def lagrangian(self, alpha: Any) -> Callable[[Any], Any]:
        r"""Return :math:`x \mapsto E F + \langle\alpha, E G\rangle` for one alpha (p,), or one a point."""

        def value(x: Any) -> Any:
            found = self.evaluate(x)
            return found.F + np.vecdot(found.G, np.broadcast_to(alpha, found.G.shape))

        return value

    def gradient(self, alpha: Any) -> Callable[[Any], Any]:
        """Return the gradient of :meth:`lagrangian`."""

        def slope(x: Any) -> Any:
            found = self.evaluate(x)
            return found.pullback(np.ones(x.shape[:-1]), np.broadcast_to(alpha, (*x.shape[:-1], self.inner_dimension)))

        return slope

    def size(self, x: Any) -> float:
        """Return the size of the terms over the samples, in units of which rounding is measured."""
        found = self.evaluate(x)
        reach = 0.0 if self.constraint.dual is None else float(self.constraint.dual.radius)
        parts = (np.abs(found.F).max(initial=0.0), reach * np.linalg.norm(found.G, axis=-1).max(initial=0.0))
        return float(1e-3 + sum(parts))


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
