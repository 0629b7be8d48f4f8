r"""Steps of other packages on the fair AUC problem, for measuring beside minmaxcon's own.

All minimise the objective subject to the two constraints of the same problem, on the same mini-batches, in the way that
is fastest for them: one vector of parameters, plain SGD, one constraint object with two entries, and the mean over all
pairs (G, G') in a batch from moments of the scores,

.. math::
    \frac{1}{|G||G'|}\sum_{i \in G,\, j \in G'} (h_i - h_j - c_2)^2
        = \overline{h^2} - \bar h^2 + \overline{h'^2} - \bar h'^2 + (\bar h - \bar h' - c_2)^2,

which needs no pairwise array. The gradient is autograd's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.core import Batch, MinMaxProblem

__all__ = ["Peer", "installed_peers", "pair_values"]

Step = Callable[[Batch], Any]
"""Takes one batch and moves the parameters."""

Rates = tuple[float, float]
"""Step sizes of the parameters and of the multipliers."""

_RATES: Rates = (1e-2, 1e-2)


@dataclass(frozen=True, slots=True)
class Peer:
    """A method of another package: the distribution, what is measured, ``step(batch)`` and its present weights (d,)."""

    package: str
    version: str
    method: str
    step: Step
    weights: Callable[[], Any]


def pair_values(problem: MinMaxProblem) -> Callable[[Array, Batch], Array]:
    """Return a function of a linear model's weights and a batch: the objective, then :math:`f_i - b_i`.

    The problem is fair AUC of one run with the torch engine: every function has ``pairs``, and pair j the columns 2j
    and 2j + 1 of the batch's ``weights``. Autograd differentiates the tensor (1 + m,) that ``values(w, batch)``
    returns; means are over the pairs in the batch, so a subset without a sample in it gives NaN.
    """
    import torch

    functions: list[Any] = [problem.objective, *problem.constraints]
    c1, c2 = float(problem.details.c1), float(problem.details.c2)
    pairs = 1 + max(max(function.pairs) for function in functions)
    owner = c1 * np.array([[float(function.pairs.count(pair)) for pair in range(pairs)] for function in functions])
    slots = np.repeat(owner, 2, axis=1)  # functions x slots
    # The means, and their differences less c2; the squares of all of them enter the functions.
    differences = np.concatenate([np.eye(2 * pairs), np.kron(np.eye(pairs), [[1.0, -1.0]])])
    like = {"dtype": problem.data.like.dtype, "device": problem.data.like.device}
    of_means, of_moments = torch.tensor(differences, **like), torch.tensor(slots, **like)
    of_squares = torch.tensor(np.concatenate([-slots, owner], axis=1), **like)
    shift = torch.tensor([0.0] * 2 * pairs + [-c2] * pairs, **like)
    bounds = torch.tensor([0.0, *(-problem.bounds()[0])], **like)

    def values(w: Array, batch: Batch) -> Array:
        weights = batch["weights"]
        means = (weights / weights.sum(0)).T
        scores = batch["features"] @ w
        first = torch.addmv(shift, of_means, means @ scores)
        return torch.addmv(torch.addmv(bounds, of_moments, means @ (scores * scores)), of_squares, first * first)

    return values


def installed_peers(problem: MinMaxProblem, rates: Rates = _RATES) -> tuple[list[Peer], list[str]]:
    """Return what can be measured on a problem as for :func:`pair_values`, and a sentence for each missing package.

    ``rates`` are the step sizes of the parameters and of the multipliers.

    The first peer is PyTorch by hand, with fixed multipliers: what autograd and the optimiser cost without any package.
    """
    makers = {"torch": _torch, "cooper-optim": _cooper, "humancompatible-train": _humancompatible}
    peers, missing = [], []
    for package, make in makers.items():
        try:
            number = version(package)
        except PackageNotFoundError:
            missing.append(f"{package} is not installed, so not measured: pip install 'minmaxcon[bench]'.")
            continue
        for method, w, step in make(problem, rates):
            peers.append(Peer(package, number, method, step, _reader(w)))
    return peers, missing


def _reader(w: Any) -> Callable[[], Any]:
    """Return a function that copies the parameters as a float64 array (d,)."""
    return lambda: w.detach().numpy().astype(np.float64)


def _primal(problem: MinMaxProblem, rate: float) -> tuple[Any, Any]:
    """Return the parameters, a tensor (d,) at zero, and their optimiser."""
    import torch

    w = torch.zeros(problem.details.model.dimension, dtype=problem.data.like.dtype, requires_grad=True)
    return w, torch.optim.SGD([w], lr=rate)


def _torch(problem: MinMaxProblem, rates: Rates) -> Iterator[tuple[str, Any, Step]]:
    import torch

    values, (w, optimizer) = pair_values(problem), _primal(problem, rates[0])
    multipliers = torch.ones(1 + len(problem.constraints), dtype=w.dtype)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        values(w, batch).dot(multipliers).backward()
        optimizer.step()

    yield "by hand, fixed multipliers", w, step


def _cooper(problem: MinMaxProblem, rates: Rates) -> Iterator[tuple[str, Any, Step]]:
    import torch

    cooper: Any = importlib.import_module("cooper")
    formulations, optim = cooper.formulations, cooper.optim
    values, size = pair_values(problem), len(problem.constraints)

    def build(formulation: Any, optimizer: Any, **options: Any) -> tuple[Any, Step]:
        w, primal = _primal(problem, rates[0])
        constraint = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY,
            formulation_type=formulation,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=size, dtype=w.dtype),
            **options,
        )

        class Problem(cooper.ConstrainedMinimizationProblem):  # type: ignore[misc]  # no types where not installed
            def __init__(self) -> None:
                super().__init__()
                self.both = constraint

            def compute_cmp_state(self, batch: Batch) -> Any:
                found = values(w, batch)
                state = cooper.ConstraintState(violation=found[1:])
                return cooper.CMPState(loss=found[0], observed_constraints={constraint: state})

        cmp = Problem()
        dual = torch.optim.SGD(cmp.dual_parameters(), lr=rates[1], maximize=True)
        both = optimizer(cmp=cmp, primal_optimizers=primal, dual_optimizers=dual)
        return w, lambda batch: both.roll(compute_cmp_state_kwargs={"batch": batch})

    yield "Lagrangian, simultaneous", *build(formulations.Lagrangian, optim.SimultaneousOptimizer)
    penalty = cooper.penalty_coefficients.DensePenaltyCoefficient(torch.ones(size, dtype=problem.data.like.dtype))
    # Cooper's documentation: this order costs no second evaluation.
    order = optim.AlternatingDualPrimalOptimizer
    yield "augmented Lagrangian", *build(formulations.AugmentedLagrangian, order, penalty_coefficient=penalty)


def _humancompatible(problem: MinMaxProblem, rates: Rates) -> Iterator[tuple[str, Any, Step]]:
    methods: Any = importlib.import_module("humancompatible.train.dual_optim")
    values, size = pair_values(problem), len(problem.constraints)

    def build(dual: Any) -> tuple[Any, Step]:
        w, optimizer = _primal(problem, rates[0])

        def step(batch: Batch) -> None:
            optimizer.zero_grad()
            found = values(w, batch)
            dual.forward_update(found[0], found[1:]).backward()
            optimizer.step()

        return w, step

    yield "SSG", *build(methods.SSG(m=size))
    yield "ALM", *build(methods.ALM(m=size, lr=rates[1], penalty=1.0, is_ineq=True))
