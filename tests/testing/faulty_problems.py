"""Sources of data, and functions of a problem together, with one planted fault each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import minmaxcon as mm
from tests.problem_library import HalfSquare, Linear

Array = Any


class Favourites(mm.Finite):
    """Draws the first half of the rows only."""

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> tuple[Iterator[Any], mm.Position]:
        rng = position.rng()
        indices = rng.integers(int(self.size or 0) // 2, size=(steps, batch_size))
        return self._gather(indices), mm.Position(rng.bit_generator.state, position.samples + steps * batch_size)


class SplitMatters(mm.Finite):
    """The samples depend on how steps are split among calls."""

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> tuple[Iterator[Any], mm.Position]:
        rng = position.rng()
        rng.random(steps)
        indices = rng.integers(int(self.size or 0), size=(steps, batch_size))
        return self._gather(indices), mm.Position(rng.bit_generator.state, position.samples + steps * batch_size)


class WrongShares(mm.Finite):
    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Any]]:
        found = list(super().chunks(rows))
        yield from ((1.0 if len(found) == 1 else share * 0.9, batch) for share, batch in found)


class _Reversed(mm.ConstraintFamily):
    """Gives the functions' values in the wrong order."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slopes = [c.evaluate(x, batch) for c in reversed(self.constraints)]
        F = np.stack([part.F for part in slopes], axis=-1)
        return mm.Evaluation(F, x[..., :0], lambda y, a: sum(s.pullback(y[..., i], a) for i, s in enumerate(slopes)))


class Misordered(Linear):
    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return _Reversed(constraints)


class OptimisticForm(HalfSquare):
    """The cvxpy form is a tenth too small: its optimum is not the functions'."""

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return 0.9 * super().cvxpy_value(cp, x, data)
