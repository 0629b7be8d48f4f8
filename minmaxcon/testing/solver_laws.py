"""What a solver must satisfy: a solution that says what is so, and a status and a certificate that are honest."""

from __future__ import annotations

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.core import MinMaxProblem, Position, Solution, Start, Status
from minmaxcon.solvers import iterate, solve
from minmaxcon.testing.functions import taken
from minmaxcon.testing.harness import Fault, Skip, Suite, apart, require, shown, unchanged
from minmaxcon.testing.problem_laws import fresh_values, like_data
from minmaxcon.testing.toys import robust_toy
from minmaxcon.testing.trials import SolverTrial

__all__ = ["SOLVER"]

SOLVER = Suite()

_RETURNED = "theory/sfls.html#what-is-returned"
_TOLERANCE = "theory/sfls.html#tolerances"
_MANY = "theory/sfls.html#many-problems-at-once"
_LEVEL = "theory/level_set.html#what-a-level-proves"
_CODE = "howto/conformance.html#arrays-and-runs"
_PAGE = "howto/conformance.html#solvers"


def _require_true(problem: MinMaxProblem, found: Solution) -> None:
    inside = np.all(to_numpy(problem.primal.contains(np.asarray(found.x), 1e-6)))
    require(inside, "x lies outside X.", shown(x=found.x))
    true = fresh_values(problem, found.x)[0]
    scale = 1.0 + np.abs(true).max()
    seen = f"objective is {found.objective:.8g}, f_0(x) = {true[0]:.8g} by a fresh pass over the data."
    require(abs(found.objective - true[0]) <= 1e-7 * scale, seen, shown(x=found.x))
    constraints = np.asarray(found.constraints, dtype=np.float64)
    far = np.abs(constraints - true[1:])
    if not far.max() <= 1e-7 * scale:
        worst = int(np.argmax(far))
        seen = (
            f"constraints[{worst}] is {constraints[worst]:.8g}, f_i(x) - b_i = {true[1 + worst]:.8g} by a fresh pass."
        )
        raise Fault(seen, shown(x=found.x))


@SOLVER.check("objective and constraints of the solution are those of x by a fresh exact pass; x lies in X.", _RETURNED)
def true_values(trial: SolverTrial, _rng: np.random.Generator) -> str:
    _require_true(trial.problem, trial.solution)
    return str(trial.solution)


@SOLVER.check("The certificate brackets f*: lower <= f* <= upper, and upper is the objective of a feasible x.", _LEVEL)
def certificate(trial: SolverTrial, _rng: np.random.Generator) -> str:
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
    example = shown(lower=bounds.lower, optimum=best, upper=bounds.upper)
    require(bounds.lower <= best + slack, f"lower = {bounds.lower:.7g} > {best:.7g} = f*.", example)
    require(bounds.upper >= best - slack, f"upper = {bounds.upper:.7g} < {best:.7g} = f*.", example)
    return f"{bounds}, f* = {best:.6g}"


@SOLVER.check("Only a feasible point within the tolerance of f* is called solved.", _TOLERANCE)
def honest_status(trial: SolverTrial, _rng: np.random.Generator) -> str:
    found = trial.solution
    status = found.status
    require(isinstance(status, Status), f"status is {status!r}, not a Status.")
    if status is Status.INFEASIBLE:
        best = float(trial.best.objective)
        raise Fault("it says infeasible, but a feasible point exists.", shown(x=trial.best.x, objective=best))
    if status is not Status.SOLVED:
        return f"it says {status}"
    worst = float(fresh_values(trial.problem, found.x)[0, 1:].max())
    require(worst <= 1e-9, f"it says solved, but x violates a constraint by {worst:.3g}.", shown(x=found.x))
    best = float(trial.best.objective)
    span = abs(float(trial.start_values[0]) - best)
    share = (found.objective - best) / max(span, 1e-12)
    seen = f"it says solved at {found.objective:.6g}, but f* = {best:.6g}: {share:.1%} of f_0(x_0) - f* are left."
    require(found.objective - best <= trial.tolerance * span + 1e-6, seen, shown(x=found.x, best=trial.best.x))
    return f"solved, {max(share, 0.0):.2%} of f_0(x_0) - f* left"


@SOLVER.check("From a strictly feasible start a feasible point is returned that is no worse than the start.", _RETURNED)
def progress(trial: SolverTrial, _rng: np.random.Generator) -> str:
    first = trial.start_values
    if first[1:].max() >= 0:
        raise Skip("the problem's start is not strictly feasible")
    values = fresh_values(trial.problem, trial.solution.x)[0]
    require(values[1:].max() <= 1e-9, f"x violates a constraint by {values[1:].max():.3g}.", shown(x=trial.solution.x))
    seen = f"f_0 = {values[0]:.6g} at x and {first[0]:.6g} at the start."
    require(values[0] <= first[0] + 1e-9 * (1.0 + abs(first[0])), seen, shown(x=trial.solution.x))
    return f"f_0 from {first[0]:.6g} to {values[0]:.6g}"


@SOLVER.check("An infeasible problem is not called solved, and no bound from above is claimed.", _RETURNED)
def infeasible(trial: SolverTrial, _rng: np.random.Generator) -> str:
    problem = robust_toy(60, bound=-3.0)
    found = solve(problem, trial.solver, seed=trial.seed)
    require(found.status is not Status.SOLVED, "it says solved.", shown(x=found.x, constraints=found.constraints))
    require(not found.feasible, "it calls its point feasible.", shown(x=found.x, constraints=found.constraints))
    require(np.isinf(found.certificate.upper), f"upper is {found.certificate.upper:.6g}.")
    _require_true(problem, found)
    return f"it says {found.status}"


@SOLVER.check("The same seed gives the same bits.", _CODE)
def deterministic(trial: SolverTrial, _rng: np.random.Generator) -> str:
    again = solve(trial.problem, trial.solver, seed=trial.seed)
    require(np.array_equal(again.x, trial.solution.x), "x differs.", shown(x=trial.solution.x, again=again.x))
    require(again.steps == trial.solution.steps, f"{again.steps} steps, then {trial.solution.steps}.")
    return "2 solves"


@SOLVER.check("Problems with several bounds are solved together as each is alone.", _MANY)
def run_axis(trial: SolverTrial, _rng: np.random.Generator) -> str:
    room = np.maximum(-trial.start_values[1:], 0.0)
    bounds = trial.problem.bounds()[0]
    several = [np.array([b, b + 0.5 * r + 0.01, b - 0.2 * r]) for b, r in zip(bounds, room, strict=True)]
    together = solve(trial.problem.with_bounds(*several), trial.solver, seed=trial.seed)
    require(together.runs == 3, f"the solution holds {together.runs} runs, not 3.")
    for j in range(3):
        problem = trial.problem.with_bounds(*(float(b[j]) for b in several))
        alone = solve(problem, trial.solver, seed=trial.seed)
        _require_true(problem, together[j])
        far = abs(together[j].objective - alone.objective) / (1.0 + abs(alone.objective))
        seen = f"run {j}: f_0 = {together[j].objective:.8g} together, {alone.objective:.8g} alone."
        require(far <= 1e-6, seen, shown(bounds=[b[j] for b in several]))
        same = together[j].status is alone.status
        require(same, f"run {j} is {together[j].status} together and {alone.status} alone.")
    return "3 bounds"


@SOLVER.check("It starts at the start that it is given.", _PAGE)
def start(trial: SolverTrial, rng: np.random.Generator) -> str:
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
    require(near <= small, "the first state is elsewhere.", shown(given=x0, first=first[0]))
    require(np.array_equal(x0, kept), "x0 was changed.")
    return "a random point of X"


@SOLVER.check("A solve changes neither data nor start, draws from no global state, and its states are values.", _CODE)
def pure(trial: SolverTrial, _rng: np.random.Generator) -> str:
    problem = trial.problem
    rows = taken(next(iter(problem.data.chunks(20_000)))[1], 0, 20_000)
    begun = Start(problem.start_point(1), None, Position.start(np.random.default_rng(trial.seed)))
    given = {"start.x": begun.x, **{f"data {name!r}": array for name, array in rows.items()}}
    bounds = problem.bounds()
    with unchanged("a solve", given):
        state = trial.solver.init(problem, begun)
        for _ in range(3):
            if trial.solver.finished(state):
                break
            before, kept = state, np.array(to_numpy(trial.solver.outcome(state).x))
            state = trial.solver.step(state)
            seen = "a state changed when the solve went on from it: it must not be written to."
            require(np.array_equal(to_numpy(trial.solver.outcome(before).x), kept), seen)
    require(np.array_equal(problem.bounds(), bounds), "the problem's bounds were changed.")
    return "data, start and 3 states"


@SOLVER.check("A budget of steps ends the solve early, with a valid outcome.", _PAGE)
def budget(trial: SolverTrial, _rng: np.random.Generator) -> str:
    found = solve(trial.problem, trial.solver, seed=trial.seed, budget=1)
    require(found.steps >= 1, "steps is 0 after a solve with a budget of one step: the outcome must count them.")
    _require_true(trial.problem, found)
    total = trial.solution.steps
    if found.steps >= total:
        return f"the whole solve is a single piece of {total} steps"
    ended = found.status in (Status.BUDGET, Status.NOT_STRICTLY_FEASIBLE)
    require(ended, f"it says {found.status} after {found.steps} of {total} steps.")
    return f"{found.steps} of {total} steps"


@SOLVER.check("The trace has columns of one length, with a row a run and level.", _RETURNED)
def trace(trial: SolverTrial, _rng: np.random.Generator) -> str:
    lengths = {name: len(column) for name, column in trial.solution.trace.items()}
    require(len(set(lengths.values())) <= 1, f"the columns' lengths are {lengths}.")
    if not lengths:
        raise Skip("the solver keeps no trace")
    require("run" in lengths, "there is no column run, by which the rows of several runs are told apart.")
    return f"{next(iter(lengths.values()))} rows of {len(lengths)} columns"
