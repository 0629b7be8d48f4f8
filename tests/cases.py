"""The tables PROBLEMS, ORACLES and SOLVERS, which one suite crosses; geometries have theirs in tests/geometry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import minmaxcon as mm
from minmaxcon_problems.fair_auc import Dataset, build_problem, resolve_metric
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests.plain_oracle import SwitchingSubgradient
from tests.problem_library import CVaR, HalfSquare, Linear, MeanGap, Robust, RobustRegression, WorstGroup

Array = Any


def labelled(seed: int = 0, n: int = 160, d: int = 3, *, sparse: bool = False, lean: float = 0.7) -> LabelledData:
    """Draw rows whose features lean on label and group; every cell has a member."""
    rng = np.random.default_rng(seed)
    label = np.where(rng.random(n) < 0.4, 1, -1)
    group = np.where(rng.random(n) < 0.3 + 0.2 * (label > 0), 1, -1)
    label[:4], group[:4] = [1, 1, -1, -1], [1, -1, 1, -1]
    directions = rng.normal(size=(2, d))
    features = rng.normal(size=(n, d)) + lean * (label[:, None] * directions[0] + group[:, None] * directions[1])
    if sparse:
        features = features * (rng.random((n, d)) < 0.5)
    held: Any = scipy.sparse.csr_array(features) if sparse else features
    return LabelledData(held, label, group, tuple(f"x{j}" for j in range(d)))


def dataset(rows: LabelledData) -> Dataset:
    """Return the rows as training and test part alike, unscaled."""
    return Dataset("drawn", rows, None, rows)


def fair_auc(
    metric: Any = "inter_group", kappa: Any = 0.1, *, rows: LabelledData | None = None, **options: Any
) -> mm.MinMaxProblem:
    """Return fair AUC on drawn rows."""
    rows = labelled() if rows is None else rows
    return build_problem(dataset(rows), resolve_metric(metric), kappa, **options)


def arrays(seed: int = 0, n: int = 120, d: int = 3) -> dict[str, Any]:
    """Draw the arrays that the problem library's constraints read."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, size=n)
    group[:3] = [0, 1, 2]
    shares = (group[:, None] == np.arange(3)).astype(float)
    points = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(3, d))[group] + 1.0
    truth = rng.normal(size=d)
    return {
        "points": points,
        "costs": 0.3 * rng.normal(size=(n, d)) + np.linspace(0.4, 1.0, d),
        "shares": shares / shares.mean(axis=0),
        "contrast": shares[:, 0] / shares[:, 0].mean() - (1 - shares[:, 0]) / (1 - shares[:, 0]).mean(),
        "target": points @ truth + rng.standard_t(2, size=n),
    }


def finite(*names: str, engine: str = "numpy", seed: int = 0, d: int = 3) -> mm.Finite:
    """Return some of the drawn arrays as a source."""
    drawn = arrays(seed, d=d)
    return mm.Finite({name: drawn[name] for name in names}, engine=engine)


def quadratic(bound: Any = 0.5, engine: str = "numpy") -> mm.MinMaxProblem:
    """The nearest point to the data's mean in a half-space: the saddle point is known in closed form."""
    data = finite("points", "costs", engine=engine)
    return mm.MinMaxProblem(HalfSquare(), [Linear(bound)], mm.Ball(3, 6.0), data, start=np.array([-1.0, -1.0, -1.0]))


def portfolio(bound: float = -0.75) -> mm.MinMaxProblem:
    """On the simplex with entropy: a point near the data's mean whose reward is large enough."""
    data = finite("points", "costs")
    return mm.MinMaxProblem(
        HalfSquare(), [Linear(bound, sign=-1.0)], mm.Simplex(3), data, start=np.array([0.1, 0.1, 0.8])
    )


def mixed_geometry() -> mm.MinMaxProblem:
    """A simplex beside a ball: a product that is not Euclidean."""
    data = finite("points", "costs", d=4)
    primal = mm.product([mm.Simplex(2), mm.Ball(2, 2.0)])
    return mm.MinMaxProblem(HalfSquare(), [Linear(0.9), Linear(0.6, sign=-1.0)], primal, data)


def cvar() -> mm.MinMaxProblem:
    """A plain constraint with a variable of its own that is minimised."""
    data = finite("points", "costs")
    data.arrays["points"] = np.concatenate([data.arrays["points"], np.zeros((data.size or 0, 1))], axis=1)
    primal = mm.product([mm.Ball(3, 4.0), mm.Box([-5.0], [5.0])])
    return mm.MinMaxProblem(HalfSquare(), [CVaR(0.8, bound=1.0)], primal, data)


def regression() -> mm.MinMaxProblem:
    """A weakly convex objective and a plain constraint."""
    data = finite("points", "target", "costs")
    modulus = float(np.linalg.eigvalsh(arrays()["points"].T @ arrays()["points"] / data.size)[-1]) / 4.0
    return mm.MinMaxProblem(RobustRegression(modulus), [Linear(0.4)], mm.Ball(3, 4.0), data)


@dataclass(frozen=True)
class Case:
    """A problem and what is known of it.

    Attributes
    ----------
    build : callable
        Makes the problem; what it draws is fixed.
    convex : bool
        Whether lower bounds, and so certificates, are to be expected.
    reference : bool
        Whether it has a cvxpy form.
    outer : int
        Outer steps that IQRC takes to come near the optimum.
    query : int
        Steps of the first query of SFLS: few are quickest where functions are smooth, many where they have kinks.
    """

    build: Callable[[], mm.MinMaxProblem]
    convex: bool = True
    reference: bool = True
    outer: int = 6
    query: int = 100


PROBLEMS: dict[str, Case] = {
    "fair_auc_group": Case(lambda: fair_auc("group", 0.15)),
    "fair_auc_inter": Case(lambda: fair_auc("inter_group", 0.1)),
    "fair_auc_intra": Case(lambda: fair_auc("intra_group", 0.3, rows=labelled(1))),
    "fair_auc_bpsn_overlapping": Case(lambda: fair_auc("bpsn_bnsp", 0.2)),
    "fair_auc_active_ball": Case(lambda: fair_auc("inter_group", 1.0, radius=0.25)),
    "fair_auc_sparse": Case(lambda: fair_auc(kappa=0.1, rows=labelled(2, sparse=True))),
    "fair_auc_torch": Case(lambda: fair_auc(kappa=0.1, engine="torch")),
    "quadratic": Case(quadratic),
    "quadratic_infeasible_start": Case(lambda: quadratic(bound=-2.5)),
    "robust": Case(
        lambda: mm.MinMaxProblem(HalfSquare(), [Robust(3, 0.3, 0.6)], mm.Ball(3, 6.0), finite("points", "costs"))
    ),
    "worst_group": Case(
        lambda: mm.MinMaxProblem(
            Linear(sign=-1.0), [WorstGroup(3, 5.0)], mm.Ball(3, 6.0), finite("points", "costs", "shares")
        )
    ),
    "worst_group_regularised": Case(
        lambda: mm.MinMaxProblem(
            WorstGroup(3, temperature=0.5), [Linear(0.4)], mm.Ball(3, 6.0), finite("points", "costs", "shares")
        )
    ),
    "mean_gap": Case(
        lambda: mm.MinMaxProblem(
            HalfSquare(), [MeanGap(0.2), Linear(1.0)], mm.Ball(3, 6.0), finite("points", "costs", "contrast")
        ),
        query=400,
    ),
    "cvar": Case(cvar, query=400),
    "fair_regression": Case(lambda: mm.load_problem("fair_regression")),
    "group_dro": Case(lambda: mm.load_problem("group_dro"), query=400),
    "neyman_pearson": Case(lambda: mm.load_problem("neyman_pearson"), query=400),
    "worst_group_loans": Case(lambda: mm.load_problem("worst_group"), query=400),
    "cvar_portfolio": Case(lambda: mm.load_problem("cvar_portfolio", assets=6, scenarios=400), outer=10, query=400),
    "group_parity": Case(lambda: mm.load_problem("group_parity", rows=400, radius=1.0)),
    "robust_diet": Case(
        lambda: mm.load_problem("robust_diet", nutrients=("energy", "protein", "calcium", "vitamin_c"), samples=200),
        query=400,
    ),
    "toy": Case(lambda: mm.load_problem("toy", samples=200)),
    "portfolio": Case(portfolio),
    "mixed_geometry": Case(mixed_geometry),
    "regression_weakly_convex": Case(regression, convex=False, reference=False),
}

ORACLES: dict[str, Callable[[], mm.Oracle]] = {
    "adaptive": lambda: mm.SMD(steps=250, batch_size=30),
    "inverse_sqrt": lambda: mm.SMD(steps=250, batch_size=30, step_rule=mm.InverseSqrt(0.1)),
    "theory": lambda: mm.SMD(steps=250, batch_size=30, step_rule="theory"),
    "theorem_weight": lambda: mm.SMD(steps=250, batch_size=30, entropy_weight="theorem"),
    "paper_weight": lambda: mm.SMD(steps=250, batch_size=30, entropy_weight="paper"),
    "single_samples": lambda: mm.SMD(steps=500, batch_size=1),
    "extragradient": lambda: mm.ExtraGradient(steps=125, batch_size=30),
    "mirror_prox": lambda: mm.MirrorProx(steps=60),
    "variance_reduced": lambda: mm.VarianceReduced(epochs=6, batch_size=30),
    "subgradient": SwitchingSubgradient,
}


@dataclass(frozen=True)
class SolverCase:
    """A solver and what it promises; calling it makes one.

    Attributes
    ----------
    build : callable
        Makes the solver.
    keeps_feasible : bool
        Whether it ends at a feasible point wherever there is a strictly feasible one, and every row of its trace is
        feasible from then on.
    convex_only : bool
        Whether it refuses problems that are only weakly convex.
    """

    build: Callable[[], mm.Solver]
    keeps_feasible: bool = True
    convex_only: bool = False

    def __call__(self) -> mm.Solver:
        return self.build()


SOLVERS: dict[str, SolverCase] = {
    "sfls": SolverCase(lambda: mm.SFLS(oracle=mm.SMD(steps=400, batch_size=60), tolerance=0.02)),
    "iqrc": SolverCase(
        lambda: mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=100, batch_size=60), levels=3), iterations=6)
    ),
    "conex": SolverCase(
        lambda: mm.ConEx(steps=900, batch_size=60, evaluations=6), keeps_feasible=False, convex_only=True
    ),
    "switching": SolverCase(
        lambda: mm.SwitchingSubgradient(steps=900, batch_size=60, test_size=240, evaluations=6), keeps_feasible=False
    ),
    "primal_dual": SolverCase(
        lambda: mm.PrimalDual(steps=1200, batch_size=60, evaluations=6), keeps_feasible=False, convex_only=True
    ),
}


TYPICAL = ("fair_auc_inter", "quadratic_infeasible_start", "portfolio", "regression_weakly_convex")
"""Problems that stand for the table, which is crossed as a whole in promises: Euclidean and not, no start that is
feasible, and a function that is not convex."""

GALLERY = (
    "fair_regression",
    "group_dro",
    "neyman_pearson",
    "worst_group_loans",
    "cvar_portfolio",
    "group_parity",
    "robust_diet",
    "toy",
)
"""Problems of the gallery, which tests/problems solves every time: to cross them with all solvers is a promise."""


ALIKE = ("fair_auc_group", "fair_auc_intra", "fair_auc_active_ball", "quadratic", "worst_group_regularised")
"""Problems that differ by numbers from one of the others: to cross them with all solvers is a promise too."""

RIVALS = {"conex": "fair_auc_inter", "primal_dual": "portfolio", "switching": "quadratic_infeasible_start"}
"""Rival solvers, each with the problem that it solves every time; the other pairs are promises."""


def promises(names: Iterable[str], kept: Iterable[str] = TYPICAL) -> list[Any]:
    """Return parameters for pytest: those ``kept`` are tried every time, the others are promises (marker rel)."""
    always = set(kept)
    return [pytest.param(name, marks=() if name in always else pytest.mark.rel) for name in names]


RESULT: dict[str, Any] = {
    "status": "solved",
    "feasible": True,
    "objective": 1.0,
    "constraints": [-1.0],
    "certificate": {"kind": "none", "upper": None, "lower": None, "gap": None, "confidence": 0.0},
    "steps": 1,
    "seconds": 0.5,
    "settings": {},
    "versions": {},
    "reason": "",
    "evidence": {"x": [0.0]},
}
"""A result as result.json holds it."""


@cache
def problem(name: str) -> mm.MinMaxProblem:
    """Return a problem of the table; problems are values and may be shared."""
    return PROBLEMS[name].build()


@cache
def optimum(name: str) -> Any:
    """Return the reference solution of a problem of the table."""
    from minmaxcon.reference import solve_exact

    return solve_exact(problem(name))


def span(name: str, first: float) -> float:
    r"""Return :math:`r_0 - f^*`, in units of which optimality is measured."""
    return first - float(optimum(name).objective)
