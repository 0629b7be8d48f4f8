"""Checks of a solver: the values, the status and the certificate of a solution, runs, start, budget and states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import number, seed_number
from minmaxcon.core import MinMaxProblem, Position, Solution, Solver, Start, Status
from minmaxcon.solvers import iterate, solve
from minmaxcon.testing.check import Check, Fault, Part, Skip, apart, exact_solutions, report_of, require, require_kind
from minmaxcon.testing.problem import finite_problem, fresh_values, like_data
from minmaxcon.testing.purity import PAGE, Call, first_rows, lasting, run_axis, same_bits, unchanged
from minmaxcon.testing.report import Report
from minmaxcon.testing.toys import robust_toy

__all__ = ["SOLVER", "check_solver", "solver_part"]

_RETURNED = "theory/sfls.html#what-is-returned"
_TOLERANCE = "theory/sfls.html#tolerances"
_MANY = "theory/sfls.html#many-problems-at-once"
_LEVEL = "theory/level_set.html#what-a-level-proves"
_PAGE = "howto/conformance.html#solvers"


def check_solver(solver: Any, problem: Any = None, *, tolerance: float = 0.05, seed: int = 0) -> Report:
    r"""Check a solver on a problem with known optimum, and on one without a feasible point.

    Parameters
    ----------
    solver : Solver
        What is checked; give it few steps, it solves about ten times.
    problem : MinMaxProblem, optional
        A small problem on finite data with a cvxpy form; one in two variables by default.
    tolerance : float
        A solver that says solved must be within this share of :math:`f_0(x_0) - f^*`; positive.
    seed : int
        Seed of the solves.

    Returns
    -------
    Report
        The solution's values, status and certificate; determinism, purity, runs, start and budget.

    Raises
    ------
    InvalidInput
        If it is no solver, the problem no problem on finite data, or the tolerance not positive.
    Unsupported
        If the problem does not meet the solver's needs.
    """
    part = solver_part(solver, problem, tolerance=tolerance, seed=seed)
    return report_of(part.label, [part], seed)


def solver_part(solver: Any, problem: Any = None, *, tolerance: Any = 0.05, seed: int = 0) -> Part:
    """Return the checks of a solver."""
    require_kind("solver", solver, Solver, "a Solver such as SFLS()")
    single = finite_problem(robust_toy(200, seed=1) if problem is None else problem)
    solver.needs.check(type(solver).__name__, single)
    share = number("tolerance", tolerance, "must be a positive number, a share such as 0.1.", above=0.0)
    return Part(type(solver).__name__, SolverTrial(solver, single, share, seed_number("seed", seed)), SOLVER)


@dataclass(frozen=True, eq=False)
class SolverTrial:
    """A solver, a problem of a single run on finite data, and its solutions, each found once."""

    solver: Solver
    problem: MinMaxProblem
    tolerance: float
    seed: int

    @cached_property
    def solution(self) -> Solution:
        """The solution of the problem."""
        return solve(self.problem, self.solver, seed=self.seed)

    @cached_property
    def best(self) -> Any:
        """The exact solution, or a reason to skip."""
        with exact_solutions() as (reference, _):
            found = reference.solve_exact(self.problem)
        if found.status is Status.INFEASIBLE:
            raise Skip("cvxpy finds the problem infeasible")
        return found

    @property
    def start_values(self) -> Any:
        """Objective and constraints minus bounds at the starting point."""
        return fresh_values(self.problem, to_numpy(self.problem.start_point(1)))[0]


def _require_true(problem: MinMaxProblem, found: Solution) -> None:
    inside = np.all(to_numpy(problem.primal.holds(np.asarray(found.x))))
    require(inside, "x lies outside X.", x=found.x)
    true = fresh_values(problem, found.x)[0]
    scale = 1.0 + np.abs(true).max()
    seen = f"objective is {found.objective:.8g}, f_0(x) = {true[0]:.8g} by a fresh pass over the data."
    require(abs(found.objective - true[0]) <= 1e-7 * scale, seen, x=found.x)
    constraints = np.asarray(found.constraints, dtype=np.float64)
    far = np.abs(constraints - true[1:])
    if not far.max() <= 1e-7 * scale:
        worst = int(np.argmax(far))
        said = f"constraints[{worst}] is {constraints[worst]:.8g}"
        raise Fault(f"{said}, f_i(x) - b_i = {true[1 + worst]:.8g} by a fresh pass.", x=found.x)


def _true_values(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """Objective and constraints of the solution are those of x by a fresh exact pass; x lies in X."""
    _require_true(trial.problem, trial.solution)
    return str(trial.solution)


def _certificate(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """The certificate brackets f*: lower <= f* <= upper, and upper is the objective of a feasible x."""
    found, bounds = trial.solution, trial.solution.certificate
    require(not (np.isnan(bounds.lower) or np.isnan(bounds.upper)), "a bound is NaN.")
    if found.feasible:
        said = f"upper is {bounds.upper:.8g}, the feasible point's objective {found.objective:.8g}."
        require(abs(bounds.upper - found.objective) <= 1e-9 * (1.0 + abs(found.objective)), said)
    else:
        require(np.isinf(bounds.upper), f"upper is {bounds.upper:.6g}, but x is not feasible.")
    if bounds.kind == "estimate":
        raise Skip("the certificate is an estimate")
    best = float(trial.best.objective)
    slack = 1e-6 * (1.0 + abs(best))
    example = {"lower": bounds.lower, "optimum": best, "upper": bounds.upper}
    require(bounds.lower <= best + slack, f"lower = {bounds.lower:.7g} > {best:.7g} = f*.", **example)
    require(bounds.upper >= best - slack, f"upper = {bounds.upper:.7g} < {best:.7g} = f*.", **example)
    return f"{bounds}, f* = {best:.6g}"


def _honest_status(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """Only a feasible point within the tolerance of f* is called solved."""
    found = trial.solution
    status = found.status
    require(isinstance(status, Status), f"status is {status!r}, not a Status.")
    if status is Status.INFEASIBLE:
        best = float(trial.best.objective)
        raise Fault("it says infeasible, but a feasible point exists.", x=trial.best.x, objective=best)
    if status is not Status.SOLVED:
        return f"it says {status}"
    worst = float(fresh_values(trial.problem, found.x)[0, 1:].max())
    require(worst <= 1e-9, f"it says solved, but x violates a constraint by {worst:.3g}.", x=found.x)
    best = float(trial.best.objective)
    span = abs(float(trial.start_values[0]) - best)
    share = (found.objective - best) / max(span, 1e-12)
    seen = f"it says solved at {found.objective:.6g}, but f* = {best:.6g}: {share:.1%} of f_0(x_0) - f* are left."
    require(found.objective - best <= trial.tolerance * span + 1e-6, seen, x=found.x, best=trial.best.x)
    return f"solved, {max(share, 0.0):.2%} of f_0(x_0) - f* left"


def _progress(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """From a strictly feasible start a feasible point is returned that is no worse than the start."""
    first = trial.start_values
    if first[1:].max() >= 0:
        raise Skip("the problem's start is not strictly feasible")
    values = fresh_values(trial.problem, trial.solution.x)[0]
    require(values[1:].max() <= 1e-9, f"x violates a constraint by {values[1:].max():.3g}.", x=trial.solution.x)
    seen = f"f_0 = {values[0]:.6g} at x and {first[0]:.6g} at the start."
    require(values[0] <= first[0] + 1e-9 * (1.0 + abs(first[0])), seen, x=trial.solution.x)
    return f"f_0 from {first[0]:.6g} to {values[0]:.6g}"


def _infeasible(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """An infeasible problem is not called solved, and no bound from above is claimed."""
    problem = robust_toy(60, bound=-3.0)
    if (missing := trial.solver.needs.missing(problem)) is not None:
        raise Skip(f"it needs {missing}")
    found = solve(problem, trial.solver, seed=trial.seed)
    require(found.status is not Status.SOLVED, "it says solved.", x=found.x, constraints=found.constraints)
    require(not found.feasible, "it calls its point feasible.", x=found.x, constraints=found.constraints)
    require(np.isinf(found.certificate.upper), f"upper is {found.certificate.upper:.6g}.")
    _require_true(problem, found)
    return f"it says {found.status}"


def _deterministic(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """The same seed gives the same bits."""
    again, first = solve(trial.problem, trial.solver, seed=trial.seed), trial.solution
    same_bits("solves", {"x": first.x}, {"x": again.x})
    require(again.steps == first.steps, f"{again.steps} steps, then {first.steps}.")
    return "2 solves"


def _run_axis(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """Problems with several bounds are solved together as each is alone."""
    room = np.maximum(-trial.start_values[1:], 0.0)
    bounds = trial.problem.bounds()[0]
    several = np.stack([bounds, bounds + 0.5 * room + 0.01, bounds - 0.2 * room])
    solved: list[Any] = []

    def call(bounds: Any) -> dict[str, Any]:
        problem = trial.problem.with_bounds(*(b if np.ndim(b) else float(b) for b in np.asarray(bounds).T))
        solved.append(solve(problem, trial.solver, seed=trial.seed))
        if not np.ndim(solved[-1].objective):
            _require_true(problem, solved[-1])
        return {"f_0": np.asarray(solved[-1].objective)}

    run_axis("a solve", Call(call, {"bounds": several}), 1e-6)
    together, *alone = solved
    require(together.runs == 3, f"the solution holds {together.runs} runs, not 3.")
    for j, single in enumerate(alone):
        _require_true(trial.problem.with_bounds(*map(float, several[j])), together[j])
        same = together[j].status is single.status
        require(same, f"run {j} is {together[j].status} together and {single.status} alone.")
    return "3 bounds"


def _start(trial: SolverTrial, rng: np.random.Generator) -> str:
    """It starts at the start that it is given."""
    primal, origin = trial.problem.primal, to_numpy(trial.problem.start_point(1))[0]
    x0 = np.asarray(0.7 * origin + 0.3 * primal.sample(rng, 1)[0], dtype=np.float64)
    kept = x0.copy()
    state = next(iter(iterate(trial.problem, trial.solver, seed=trial.seed, x0=x0)))
    first = np.asarray(to_numpy(trial.solver.outcome(state).x), dtype=np.float64)
    require(first.shape == (1, x0.size), f"x of the first state has shape {first.shape}, not {(1, x0.size)}.")
    small = 1e-9 if trial.problem.data.like.dtype.itemsize == 8 else 1e-5
    # Variables that have a minimiser in closed form may be set to it at once.
    refined = trial.problem.family.refine(like_data(trial.problem, x0), trial.problem.data)
    near = min(apart(first[0], x0), apart(first[0], np.asarray(to_numpy(refined))[0]))
    require(near <= small, "the first state is elsewhere.", given=x0, first=first[0])
    require(np.array_equal(x0, kept), "x0 was changed.")
    return "a random point of X"


def _pure(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """A solve changes neither data nor start, draws from no global state, and its states are values."""
    problem = trial.problem
    rows = first_rows(problem.data, 20_000)
    begun = Start(problem.start_point(1), None, Position.start(np.random.default_rng(trial.seed)))
    given = {"start.x": begun.x, **{f"data {name!r}": array for name, array in rows.items()}}
    bounds, solver = problem.bounds(), trial.solver
    with unchanged("a solve", given):
        state = solver.init(problem, begun)
        lasting(state, solver.step, solver.finished, lambda state: {"x": solver.outcome(state).x}, 3)
    require(np.array_equal(problem.bounds(), bounds), "the problem's bounds were changed.")
    return "data, start and 3 states"


def _budget(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """A budget of steps ends the solve early, with a valid outcome."""
    found = solve(trial.problem, trial.solver, seed=trial.seed, budget=1)
    require(found.steps >= 1, "steps is 0 after a solve with a budget of one step: the outcome must count them.")
    _require_true(trial.problem, found)
    total = trial.solution.steps
    if found.steps >= total:
        return f"the whole solve is a single piece of {total} steps"
    require(found.status is Status.BUDGET, f"it says {found.status} after {found.steps} of {total} steps.")
    return f"{found.steps} of {total} steps"


def _trace(trial: SolverTrial, _rng: np.random.Generator) -> str:
    """The trace has columns of one length, with a row a run and level."""
    lengths = {name: len(column) for name, column in trial.solution.trace.items()}
    require(len(set(lengths.values())) <= 1, f"the columns' lengths are {lengths}.")
    if not lengths:
        raise Skip("the solver keeps no trace")
    require("run" in lengths, "there is no column run, by which the rows of several runs are told apart.")
    return f"{next(iter(lengths.values()))} rows of {len(lengths)} columns"


SOLVER = (
    Check("true_values", _RETURNED, _true_values),
    Check("certificate", _LEVEL, _certificate),
    Check("honest_status", _TOLERANCE, _honest_status),
    Check("progress", _RETURNED, _progress),
    Check("infeasible", _RETURNED, _infeasible),
    Check("deterministic", PAGE, _deterministic),
    Check("run_axis", _MANY, _run_axis),
    Check("start", _PAGE, _start),
    Check("pure", PAGE, _pure),
    Check("budget", _PAGE, _budget),
    Check("trace", _RETURNED, _trace),
)
