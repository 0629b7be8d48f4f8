"""The one loop: it drives a solver's states, and holds the clock, callbacks, progress and Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import finite_array, flag, number, seed_number, whole
from minmaxcon.core import (
    Certificate,
    Evidence,
    MinMaxProblem,
    Needs,
    Outcome,
    Position,
    Proved,
    Solution,
    Solver,
    Source,
    Start,
    Status,
    proved_of_runs,
)
from minmaxcon.core.compiled import uncompiled
from minmaxcon.core.first_order import ProvedDistance, proved_distance
from minmaxcon.core.level import real_evaluation
from minmaxcon.core.problem import require_problem
from minmaxcon.core.runs import take_runs
from minmaxcon.core.solver import GOING_ON
from minmaxcon.errors import EngineWarning, InvalidInput
from minmaxcon.solvers.checkpoint import open_checkpoints, settings_of
from minmaxcon.solvers.named import automatic

__all__ = ["Progress", "ends_together", "iterate", "progress_bar", "progress_lines", "solve"]


@dataclass(frozen=True, eq=False, slots=True)
class Progress:
    """Progress of a solve, handed to callbacks after each piece of work.

    Attributes
    ----------
    solver : Solver
        The solver.
    state : object
        Its state.
    seconds : float
        Time since the solve began.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> def watch(progress):
    ...     return progress.seconds > 10.0  # True ends the solve
    >>> mm.solve(mm.load_problem("toy"), seed=0, callbacks=[watch]).status.name
    'SOLVED'
    """

    solver: Solver
    state: Any
    seconds: float

    @property
    def outcome(self) -> Outcome:
        """What the solver knows at this moment; to write into its arrays does not change the state."""
        found = self.solver.outcome(self.state)
        arrays = {name: getattr(found, name) for name in ("x", "objective", "constraints", "lower")}
        return replace(found, **{name: namespace(array).shown(array) for name, array in arrays.items()})

    def __str__(self) -> str:
        outcome = self.outcome
        steps = f"{self.seconds:.0f} s, {outcome.steps:,} steps"
        return ", ".join(filter(None, (steps, _summary(outcome))))


Callback = Callable[[Progress], Any]


def iterate(
    problem: MinMaxProblem, solver: Solver, *, seed: int = 0, x0: Any = None, state: Any = None
) -> Iterator[Any]:
    """Yield the states of a solve, the first before any work; the public form of the loop.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem.
    solver : Solver
        The solver.
    seed : int
        Seed of all draws.
    x0 : array_like (d,) or (R, d), optional
        Where to start instead of the problem's own point.
    state : object, optional
        A state of an earlier solve by this solver to go on from, instead of a start.

    Yields
    ------
    object
        The solver's immutable state; ``solver.outcome(state)`` says what is known.

    Raises
    ------
    InvalidInput
        If the problem is no problem, the solver no solver, the seed not a whole number, or x0 not a finite point of the
        primal set.
    Unsupported
        If the problem does not meet the solver's needs.
    """
    solver = _fitting(problem, solver)
    if state is None:
        start = _start(problem, solver, seed, x0)
        with _naming_values(problem):
            state = solver.init(problem, start)
    yield state
    while not solver.finished(state):
        with _naming_values(problem):
            state = solver.step(state)
        yield state


@contextmanager
def _naming_values(problem: MinMaxProblem) -> Iterator[None]:
    """Where arithmetic fails, refuse functions whose values or gradients are no real numbers, by their names.

    Families that evaluate functions together are not looked at in each step: that would take longer than many steps.
    """
    try:
        yield
    except (TypeError, KeyError, InvalidInput):  # points that have become complex are blamed on another function
        with np.errstate(all="ignore"):
            for batch in problem.data.draw(Position.start(np.random.default_rng(0)), 1, 1)[0]:
                found = real_evaluation(problem.family.evaluate(problem.start_point(1), batch))
                found.pullback(0.0 * found.F + 1.0, 0.0 * found.G)
        raise


def solve(
    problem: MinMaxProblem,
    solver: Solver | None = None,
    *,
    seed: int = 0,
    x0: Any = None,
    time_limit: float | None = None,
    elapsed: float = 0.0,
    budget: int | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    every: float = 30.0,
    resume: str | Path | None = None,
) -> Solution:
    """Solve a constrained stochastic min-max problem.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem; with bounds of shape (R,) it is solved for R runs at once on shared samples.
    solver : Solver, optional
        By default one that fits the problem, see :func:`minmaxcon.solvers.automatic`.
    seed : int
        Seed of all random draws; the same seed gives the same bits.
    x0 : array_like (d,) or (R, d), optional
        Where to start instead of the problem's own point.
    time_limit : float, optional
        Seconds of wall-clock time.
    elapsed : float
        Seconds of this limit that were spent before the solve, as on loading data.
    budget : int, optional
        Largest number of oracle steps; the solve may exceed it by one piece of work.
    callbacks : sequence of callable
        Each is called with a :class:`Progress` after each piece of work; one that returns True ends the solve. Those
        with a method ``close`` are closed when the solve ends, however it does.
    checkpoint : path, optional
        A folder that holds the latest state of the solve, from which ``resume`` goes on: written before any work, every
        so often, and when the solve ends, however it does. One that holds a checkpoint already is refused, unless
        ``resume`` names it too; then the solve goes on from there, or begins where there is none.
    every : float
        Least number of seconds between two checkpoints; 0 for one after each piece of work.
    resume : path, optional
        A folder from which the solve goes on, with the same bits as if it had never ended, and where it writes its
        checkpoints unless ``checkpoint`` names another. Problem, solver, seed and x0 must be those of before; time
        limit, budget and callbacks may be others.

    Returns
    -------
    Solution
        The best feasible point, its exact values, status, certificate and trace. After Ctrl-C, SIGTERM or SIGHUP the
        status is ``INTERRUPTED`` and the best point so far is returned; a second Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    InvalidInput
        If an argument is out of range; if a checkpoint cannot be written or read, or is of another problem, solver or
        seed, and what differs is named.
    CorruptCheckpoint
        If the checkpoint is damaged or of another version.
    Unsupported
        If the problem does not meet the solver's needs, or a state holds what no checkpoint can hold.

    Warns
    -----
    CheckpointWarning
        If other versions, or another number of threads, have written the checkpoint; if a later one cannot be written.
    EngineWarning
        If the problem's engine compiles, and nothing that the solver does is compiled.
    """
    solver = _fitting(problem, solver)
    if not solver.compiled and uncompiled(problem):
        warnings.warn(EngineWarning(problem.data.engine, solver.title), stacklevel=2)
    callbacks = _functions(callbacks)
    if time_limit is not None:
        time_limit = number("time_limit", time_limit, "must be a positive number of seconds.", above=0.0)
    if budget is not None:
        budget = whole("budget", budget)
    elapsed = number("elapsed", elapsed, "must be a number of seconds, at least 0.", least=0.0)
    clock = _Clock(None if time_limit is None else time_limit - elapsed, problem.data)
    keeper, saved = open_checkpoints(
        problem,
        lambda: settings_of(problem, solver, seed_number("seed", seed), x0),
        checkpoint=checkpoint,
        resume=resume,
        every=every,
    )
    problem.data.agreed(None)  # nobody writes before all have looked
    begin, clock.before = (None, 0.0) if saved is None else (saved.state, saved.seconds)
    ended: tuple[Status, str] | None = None
    spent = clock.before
    with _interruptible() as signals, ExitStack() as closing:
        for callback in callbacks:
            closing.callback(getattr(callback, "close", _nothing))
        state: Any = None
        told = [] if signals else callbacks  # of a job that has ended there is nothing to tell
        for state in iterate(problem, solver, seed=seed, x0=x0, state=begin):
            late, seconds = clock.over, clock.seconds
            stops = [callback(Progress(solver, state, seconds)) for callback in told]
            if signals:
                ended = Status.INTERRUPTED, f"stopped by {signals[0]}."
            elif any(isinstance(stop, (bool, np.bool_)) and stop for stop in stops):
                ended = Status.BUDGET, "stopped by a callback."
            elif late:
                ended = Status.BUDGET, f"the time limit of {time_limit:g} s was reached."
            elif budget is not None and solver.outcome(state).steps >= budget:
                ended = Status.BUDGET, f"the budget of {budget} steps was used."
            ended = _agreed(problem.data, ended, signals)
            spent = clock.seconds  # what the last checkpoint says that the solve took, so that going on adds to it
            if (
                keeper is not None
                and problem.data.leader
                and (ended is not None or solver.finished(state) or keeper.due())
            ):
                keeper.write(state, spent)
            if ended is not None:
                break
        unfinished = None if solver.finished(state) else ended
        settings = {"seed": int(seed), "solver": describe(solver), "time_limit": time_limit, "budget": budget}
        clock.signals, checking = signals, clock.seconds
        solution = _solution(problem, solver.outcome(state), unfinished, clock, settings)
    return replace(solution, seconds=spent + clock.seconds - checking)


class _Clock:
    """Seconds of a solve, with those ``before`` it was resumed, and whether its time is over."""

    def __init__(self, limit: float | None, data: Source) -> None:
        self.began, self.limit, self.before = time.perf_counter(), limit, 0.0
        self.data, self.signals = data, list[str]()

    @property
    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.began

    @property
    def over(self) -> bool:
        return self.limit is not None and time.perf_counter() - self.began >= self.limit

    def ended(self) -> bool:
        """Tell whether the time is over or a signal came, in any of the processes that share the data."""
        return bool(self.data.agreed(True if self.signals or self.over else None))


def _nothing() -> None:
    """Close what needs no closing."""


def _fitting(problem: Any, solver: Any) -> Solver:
    """Return the solver, by default one that fits the problem, or refuse a problem that does not meet its needs."""
    require_problem(problem)
    if solver is None:
        return automatic(problem)
    if not isinstance(solver, Solver):
        raise InvalidInput("solver", solver, "must be a Solver such as SFLS() or IQRC().")
    solver.needs.check(solver.title, problem)
    return solver


def _functions(callbacks: Any) -> list[Callback]:
    found = list(callbacks) if isinstance(callbacks, Iterable) else []
    if isinstance(callbacks, Iterable) and all(map(callable, found)):
        return found
    raise InvalidInput("callbacks", callbacks, "must be a list of functions of one argument; put a single one in [ ].")


def _start(problem: MinMaxProblem, solver: Solver, seed: Any, x0: Any) -> Start:
    seed = seed_number("seed", seed)
    points: Any = None if x0 is None else finite_array("x0", x0, "must be a finite point of the primal set.")
    sizes = {n for n in (problem.runs, solver.runs, len(points) if np.ndim(points) == 2 else None) if n is not None}
    if len(sizes) > 1:
        raise InvalidInput("runs", sorted(sizes), "bounds, step sizes and x0 must agree about the number of runs.")
    x = problem.start_point(next(iter(sizes), 1))
    if points is not None:
        if points.shape[-1:] != (problem.primal.dimension,) or points.ndim > 2:
            raise InvalidInput("x0", points.shape, f"must have shape ({problem.primal.dimension},) or one row per run.")
        if not np.all(problem.primal.holds(points)):
            raise InvalidInput("x0", x0, "must be a finite point of the primal set.")
        x = namespace(x).asarray(np.broadcast_to(points, x.shape).copy(), x)
    return Start(x, None, Position.start(np.random.default_rng(seed)))


def _solution(
    problem: MinMaxProblem,
    outcome: Outcome,
    ended: tuple[Status, str] | None,
    clock: _Clock,
    settings: dict[str, Any],
) -> Solution:
    feasible = outcome.constraints.max(axis=1) <= 0
    final = set(Status) - {Status.BUDGET, Status.INTERRUPTED}
    undeclared, checked = _undeclared(problem), _checked(problem, outcome, clock.ended)
    statuses, reasons, certificates = [], [], []
    for j, status in enumerate(outcome.status):
        reason, lower = outcome.reason[j], float(outcome.lower[j])
        if ended is not None and status not in final:
            status, reason = ended[0], ended[1] if reason == GOING_ON else f"{ended[1][:-1]}; {reason}"
        worst = float(outcome.constraints[j].max())
        if status in (Status.BUDGET, Status.INTERRUPTED) and not feasible[j] and np.isfinite(worst):
            reason = f"{reason[:-1]}; no feasible point was found yet, the least violation is {worst:.6g}."
        if undeclared is not None and status is Status.BUDGET:
            need = f"nothing is proved, as {undeclared!r} declares neither convex = True nor weak_convexity."
            reason = f"{reason[:-1]}; {need}"
        found = checked.get(j)
        if found and not found.confirmed:
            lower = found.lower
            if found.cut:  # neither confirmed nor refuted
                cause = f"{clock.signals[0]} came" if clock.signals else "the time ended"
                status = Status.INTERRUPTED if clock.signals else Status.BUDGET
                reason = f"{cause} before this was confirmed: {reason}"
            elif found.fault:
                status, reason, lower = Status.INCONSISTENT, f"the multipliers prove nothing: {found.fault}", -np.inf
            else:
                status, reason = Status.BUDGET, f"{found.instead}, so it is open whether {reason}"
        elif found and np.isfinite(found.distance):
            text = f"the proximal point (weight {found.weight:.3g}) is proved to lie within {found.distance:.3g}"
            reason = f"nearly stationary: {text}."
        elif found and found.lower < lower:  # near enough to be confirmed; what is told is what others find
            if lower - found.lower > 1e-3 * (float(outcome.objective[j]) - lower):
                reason = f"{reason[:-1]}; found again, the multipliers prove f* >= {found.lower:.6g}."
            lower = found.lower
        statuses.append(status)
        reasons.append(reason[0].upper() + reason[1:])
        certificates.append(_certificate(outcome, j, bool(feasible[j]), lower))
    names = list(outcome.trace[0]) if outcome.trace else []
    trace = {name: np.array([row[name] for row in outcome.trace]) for name in names}
    x = np.array(to_numpy(outcome.x), dtype=np.float64)
    several = problem.runs is not None or x.shape[0] > 1
    pick: Any = (lambda value: value) if several else (lambda value: value[0])
    return Solution(
        x=pick(x),
        objective=outcome.objective if several else float(outcome.objective[0]),
        constraints=pick(outcome.constraints),
        status=pick(tuple(statuses)),
        certificate=pick(tuple(certificates)),
        reason=pick(tuple(reasons)),
        trace=trace,
        steps=outcome.steps,
        samples=outcome.samples,
        seconds=0.0,
        settings=settings,
        evidence=_claimed(outcome.evidence, checked),
    )


def _claimed(evidence: Evidence | None, checked: Mapping[int, _Check]) -> Evidence | None:
    """Return the evidence, with the distances from proximal points that were proved of it."""
    found = {j: one.distance for j, one in checked.items() if one.confirmed and np.isfinite(one.distance)}
    if evidence is None or not found:
        return evidence
    distance = np.array(evidence.neighbour.distance)
    distance[list(found)] = list(found.values())
    return replace(evidence, neighbour=replace(evidence.neighbour, distance=distance))


def _undeclared(problem: MinMaxProblem) -> str | None:
    """Return the first function from which no bound is drawn because it declares nothing; None where none is."""
    if problem.data.size is None or Needs(measure=True).missing(problem) is None:
        return None  # there are no bounds on streams, and none on true measures
    return next((f.name for f in problem.family.constraints if np.isinf(f.modulus)), None)


@dataclass(frozen=True, slots=True)
class _Check:
    """What the multipliers of a run prove of its claim: all of it, or a bound ``lower`` and, in words, ``instead``.

    Of a proximal point, of this ``weight``, they prove a ``distance``, which is what the run then claims.
    """

    confirmed: bool
    fault: str
    cut: bool
    lower: float
    instead: str = ""
    distance: float = np.nan
    weight: float = np.nan

    @classmethod
    def of_nothing(cls) -> _Check:
        """Return that of a claim without evidence."""
        return cls(False, "", False, -np.inf, "the solver brings no multipliers that prove it")

    @classmethod
    def of_bound(cls, found: Proved, status: Status, lower: float, objective: float) -> _Check:
        """Return that of a lower bound, or of that no point is feasible, which rests on the constraints alone."""
        solved = found.confirms(lower, objective) and np.isfinite(found.lower)
        confirmed = bool(solved) if status is Status.SOLVED else found.excess > 0
        instead = f"the multipliers prove f* >= {found.lower:.6g} and not {lower:.6g}"
        if status is Status.INFEASIBLE:
            instead = "the multipliers do not prove that no point is feasible"
        return cls(confirmed, found.fault, found.cut, found.lower, instead)

    @classmethod
    def of_distance(cls, found: ProvedDistance, claimed: float, weight: float) -> _Check:
        """Return that of the distance of a proximal point."""
        instead = f"the multipliers prove a distance of {found.distance:.3g} and not {claimed:.3g}"
        return cls(found.confirms(claimed), found.fault, found.cut, -np.inf, instead, found.distance, weight)


def _checked(problem: MinMaxProblem, outcome: Outcome, over: Callable[[], bool]) -> dict[int, _Check]:
    """Return what their multipliers prove of the runs that claim something by them, in the time that is left."""
    claimed = np.array([status in (Status.SOLVED, Status.INFEASIBLE) for status in outcome.status])
    evidence = Evidence.none(problem, len(claimed)) if outcome.evidence is None else outcome.evidence
    if problem.data.size is None:  # where fresh samples bound what is claimed, with confidence
        solved = np.array([status is Status.SOLVED for status in outcome.status])
        proved = (
            solved & np.isfinite(evidence.weights).all(axis=1) & (np.broadcast_to(outcome.confidence, solved.shape) > 0)
        )
        return {int(j): _Check.of_nothing() for j in np.flatnonzero(claimed & ~proved)}
    linear = np.zeros(len(claimed), dtype=bool) if evidence.linear is None else np.isfinite(evidence.linear.fall)
    shown = np.isfinite(evidence.weights).all(axis=1)
    checks = {int(j): _Check.of_nothing() for j in np.flatnonzero(claimed & ~shown & ~linear)}
    for j, status in enumerate(outcome.status):
        if status is Status.SOLVED and not (worst := float(outcome.constraints[j].max())) <= 0:
            said = f"the point violates a constraint by {worst:.3g}"
            checks[j] = _Check(False, "", False, float(outcome.lower[j]), said)
            claimed[j] = False
    claimed, beside = claimed & shown, evidence.neighbour
    if beside is not None:
        for j in map(int, np.flatnonzero(claimed & np.isfinite(beside.weight))):
            own = (evidence.weights[j], evidence.scaled[j], evidence.near[j], (beside.weight[j], beside.point[j]))
            x = np.asarray(to_numpy(outcome.x), dtype=np.float64)[j]
            found = proved_distance(problem.take([j]), x, *own, over)
            checks[j] = _Check.of_distance(found, float(beside.distance[j]), float(beside.weight[j]))
    runs = np.array([j for j in np.flatnonzero(claimed) if j not in checks], dtype=int)
    if runs.size:
        mine = take_runs(evidence, runs)
        proofs = proved_of_runs(problem.take(runs), mine.weights, mine.scaled, near=mine.near, over=over)
        for j, one in zip(map(int, runs), proofs, strict=True):
            values = outcome.status[j], float(outcome.lower[j]), float(outcome.objective[j])
            checks[j] = _Check.of_bound(one, *values)
    return checks


def _certificate(outcome: Outcome, run: int, feasible: bool, lower: float) -> Certificate:
    upper = float(outcome.objective[run])
    upper = upper if feasible and np.isfinite(upper) else np.inf
    lower = -np.inf if np.isnan(lower) else lower
    if np.isinf(upper) and np.isinf(lower):
        return Certificate("none", upper, lower, 0.0)
    confidence = float(np.broadcast_to(outcome.confidence, (len(outcome.status),))[run])
    kind = "exact on the data" if outcome.exact else "with confidence" if confidence > 0 else "estimate"
    if lower > upper and not outcome.exact:  # of two bounds with confidence one has failed, as they may
        lower = -np.inf
    return Certificate(kind, upper, lower, confidence)


def describe(part: Any) -> Any:
    """Return a solver's or oracle's settings as plain values: its class's name and its public attributes."""
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, np.generic):
        return part.item()
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, (tuple, list)):
        return [describe(item) for item in part]
    if not hasattr(part, "__dict__") or callable(part):
        return str(part)
    public = {name: describe(value) for name, value in sorted(vars(part).items()) if not name.startswith("_")}
    return {"name": type(part).__name__, **public}


_SIGNALS = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM", "SIGHUP": "SIGHUP"}
"""Signals that end a solve in order, as the reason names them; not every system has all."""


def _agreed(data: Source, ended: tuple[Status, str] | None, signals: list[str]) -> tuple[Status, str] | None:
    """Return how the solve ends in all processes, and note a signal that came to another one: the job ends in all."""
    found: tuple[Status, str] | None = data.agreed(ended)
    if found is not None and found[0] is Status.INTERRUPTED and not signals:
        signals.append("a signal to another process")
    return found


_together: ContextVar[list[str] | None] = ContextVar("_together", default=None)
"""Signals that ended a solve of the job at hand, None outside of one."""


@contextmanager
def ends_together(*, all_or_nothing: bool = False) -> Iterator[list[str]]:
    """Make the solves within parts of one job: a signal that ends one of them ends all that follow, at their start.

    Without it each solve takes signals for itself, and the next one goes on as if none had come. Yields the names of
    the signals, which are shared with a job around this one, and with other processes of the same solve. No generator
    may yield within, since what its caller does would be part of the job. With ``all_or_nothing`` a job that a signal
    has cut short is worth nothing, and KeyboardInterrupt is raised at its end. Raises InvalidInput where that is
    neither True nor False.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.solvers import ends_together
    >>> with ends_together() as signals:
    ...     found = [mm.solve(mm.load_problem("toy"), seed=seed) for seed in range(2)]
    >>> signals, [one.status.name for one in found]
    ([], ['SOLVED', 'SOLVED'])
    """
    needed = flag("all_or_nothing", all_or_nothing)
    around = _together.get()
    signals: list[str] = [] if around is None else around
    token = _together.set(signals)
    try:
        yield signals
    except Exception as failure:  # of work on what a solve had not come to
        if needed and signals:
            raise KeyboardInterrupt from failure
        raise
    finally:
        _together.reset(token)
    if needed and signals:
        raise KeyboardInterrupt


@contextmanager
def _interruptible() -> Iterator[list[str]]:
    """Note signals in the job's list, so that the loop can end in order; a second Ctrl-C raises KeyboardInterrupt."""
    around = _together.get()
    noted: list[str] = [] if around is None else around
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(which: int, _frame: Any) -> None:
        name = _SIGNALS[signal.Signals(which).name]
        if name in noted and which == signal.SIGINT:
            raise KeyboardInterrupt
        noted.append(name)

    known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    # A signal that the process was started to ignore, as by nohup, stays ignored.
    taken = [which for which in known if which == signal.SIGINT or signal.getsignal(which) is not signal.SIG_IGN]
    before = {which: signal.getsignal(which) or signal.SIG_DFL for which in taken}  # None: not Python's own
    try:
        for which in taken:
            signal.signal(which, note)
        yield noted
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


def progress_bar(*, file: Any = None) -> Callback:
    """Return a callback that shows steps, best objective and violation: a bar of tqdm, or lines where no one sees one.

    Parameters
    ----------
    file : text stream, optional
        Where it is written, standard error by default; where that is no terminal, see :func:`progress_lines`.

    Raises
    ------
    InvalidInput
        If it is no stream.
    """
    stream = _stream(file)
    if not (hasattr(stream, "isatty") and stream.isatty()):
        return progress_lines(file=stream)
    from tqdm.auto import tqdm

    return _Bar(tqdm(unit=" steps", file=stream, leave=False, dynamic_ncols=True))


def progress_lines(*, file: Any = None, prefix: str = "", first: float = 2.0, every: float = 10.0) -> Callback:
    """Return a callback that writes a line now and then: seconds, steps, best objective and violation.

    Parameters
    ----------
    file : text stream, optional
        Where the lines are written, standard error by default.
    prefix : str
        What each line begins with.
    first, every : float
        Seconds from the beginning to the first line, and from each line to the next.

    Raises
    ------
    InvalidInput
        If a number of seconds, or the stream, is none.
    """
    said = "must be a number of seconds of at least 0."
    due, every = number("first", first, said, least=0.0), number("every", every, said, least=0.0)
    stream = _stream(file)

    def write(progress: Progress) -> None:
        nonlocal due
        if progress.seconds >= due:
            due = progress.seconds + every
            print(f"{prefix}{progress}", file=stream, flush=True)

    return write


def _stream(file: Any) -> Any:
    if file is None or hasattr(file, "write"):
        return sys.stderr if file is None else file
    raise InvalidInput("file", file, "must be a text stream, such as sys.stderr.")


def _summary(outcome: Outcome) -> str:
    """Say what is known so far; nothing before the first row of the trace."""
    if not outcome.trace:
        return ""
    best, worst = float(np.min(outcome.objective)), float(np.max(outcome.constraints))
    return f"objective {best:.5g}, worst f_i - b_i {worst:.2g}"


class _Bar:
    """A callback that moves a bar of tqdm."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, progress: Progress) -> None:
        outcome = progress.outcome
        self._bar.update(outcome.steps - self._bar.n)
        self._bar.set_postfix_str(_summary(outcome), refresh=False)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()
