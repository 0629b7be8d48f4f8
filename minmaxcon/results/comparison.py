"""Comparisons of solvers on one problem: the runs, the optimum that gaps are measured from, and their text."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import instance, instances, number, seed_number, whole
from minmaxcon.core import MinMaxProblem, RefreshedProblem, Solution, Solver, Status
from minmaxcon.core.linearisation import exact_values
from minmaxcon.core.problem import require_problem
from minmaxcon.errors import CorruptCheckpoint, InvalidInput, MinMaxConError, MissingDependency, Unsupported
from minmaxcon.results.machine import describe_machine, load_average, one_thread
from minmaxcon.results.parallel import BACKEND, in_parallel
from minmaxcon.results.records import FEASIBLE, plain, versions
from minmaxcon.solvers import AUTO, Progress, automatic, named_solver, solve
from minmaxcon.solvers.checkpoint import Checkpoints, open_checkpoints, settings_of

__all__ = [
    "Comparison",
    "Entry",
    "Optimum",
    "as_data",
    "compare",
    "comparison_text",
    "exact_optimum",
    "found_optimum",
    "measures",
    "path_rows",
]


@dataclass(frozen=True, slots=True)
class Optimum:
    r"""The optimal value :math:`f^*`, None where nothing is known, and the unit in which gaps are measured.

    The source is ``"exact"`` (a conic solver), ``"given"``, ``"best found"`` (the best feasible point of all solvers,
    so that every gap is to be read as a lower bound), ``"infeasible"`` or ``"unknown"``; ``note`` says why it is not
    exact. ``lower`` is a lower bound on :math:`f^*`: the value itself where it is exact, else the largest that a solver
    proved. ``start`` is :math:`f_0` at the problem's start where that is feasible, else None. ``scale``, the unit of
    relative gaps, is :math:`f_0(\text{start}) - f^*` from a feasible start that is not optimal, else
    :math:`1 + |f^*|`.
    """

    value: float | None
    source: str
    lower: float | None
    start: float | None
    scale: float | None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Entry:
    r"""One solver with one seed.

    Attributes
    ----------
    solver : str
        Its name.
    seed : int
        The seed.
    status : str
        Short name of the :class:`~minmaxcon.Status`, or ``"not run"`` where the solver does not take the problem.
    reason : str
        The evidence behind the status; why the solver was not run.
    seconds : float
        The solver's own time.
    samples, steps : int
        Samples and oracle steps.
    objective, violation : float
        Of the returned point, by a fresh exact pass; the solver's estimates on a stream.
    gap, relative_gap : float
        :math:`f_0 - f^*` and the same in units of the optimum's scale.
    upper, lower : float
        The certificate's bounds on :math:`f^*`.
    checkpoints, infeasible : int
        Points that the method itself looked at on the way, and how many of them violate a constraint by more than
        1e-9; ``checkpoints`` leaves the start out.
    path : tuple of mapping
        The start and these points: ``checkpoint`` (0 is the start), ``seconds``, ``samples``, ``steps``, ``objective``,
        ``gap``, ``relative_gap``, ``violation`` and ``estimate_violation``, that of the oracle's raw point where the
        method checks it before it moves there.
    settings : mapping
        The solver's settings.
    title : str
        Solver and oracle, such as ``"SFLS(oracle=MirrorProx)"``.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.results import compare
    >>> entry = compare(mm.load_problem("toy"), {"SFLS": "auto"}, samples=20_000).entries[0]
    >>> entry.infeasible, entry.violation <= 0
    (0, True)
    """

    solver: str
    seed: int
    status: str
    reason: str
    seconds: float = math.nan
    samples: int = 0
    steps: int = 0
    objective: float = math.nan
    violation: float = math.nan
    gap: float = math.nan
    relative_gap: float = math.nan
    upper: float = math.nan
    lower: float = math.nan
    checkpoints: int = 0
    infeasible: int = 0
    path: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    title: str = ""

    @property
    def ran(self) -> bool:
        """Whether the solver took the problem."""
        return bool(self.path)


@dataclass(frozen=True)
class Comparison:
    """Solvers side by side on one problem.

    Attributes
    ----------
    problem : str
        What it is called.
    optimum : Optimum
        What gaps are measured from, and in units of what.
    entries : tuple of Entry
        By solver and seed, in the order asked for.
    samples : int or None
        The common budget of samples.
    time_limit : float or None
        The common budget of seconds.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.results import compare
    >>> found = compare(mm.load_problem("toy"), {"SFLS": "auto"}, samples=20_000)
    >>> found.problem, [entry.solver for entry in found.entries]
    ('toy', ['SFLS'])
    """

    problem: str
    optimum: Optimum
    entries: tuple[Entry, ...]
    samples: int | None
    time_limit: float | None

    @property
    def interrupted(self) -> bool:
        """Whether a solve was ended by Ctrl-C, so that others are missing."""
        return any(entry.status == str(Status.INTERRUPTED) for entry in self.entries)


_WHICH = "name at least one solver, such as ['sfls', 'iqrc'], or give a mapping, such as {'mine': SFLS(steps=500)}."


def compare(
    problem: MinMaxProblem,
    solvers: Sequence[str] | Mapping[str, Solver | str],
    *,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    samples: int | None = None,
    time_limit: float | None = None,
    reference: float | None = None,
    name: str | None = None,
    report: Callable[[str, int], Any] | None = None,
    jobs: int = 1,
    backend: str = "loky",
    checkpoint: str | Path | None = None,
    resume: str | Path | None = None,
) -> Comparison:
    r"""Run several solvers on one problem under a common budget.

    Every solver has its own stopping rule beside the budget. Its clock stands still while the comparison looks at it;
    the exact passes that the method itself makes at its checkpoints count. The optimum is found, and the returned
    points are measured, outside the clock.

    Parameters
    ----------
    problem : MinMaxProblem
        A problem of one run.
    solvers : sequence of str, or mapping of str to Solver
        Names as :func:`minmaxcon.solvers.solver_names` lists them and ``"auto"`` for the one that
        :func:`minmaxcon.solvers.automatic` takes; or solvers, or such names, by any name.
    seed : int
        Seed of every solve.
    seeds : sequence of int, optional
        Several seeds instead: every solver runs with each.
    samples : int, optional
        Largest number of samples of a solve, which may exceed it by one piece of work.
    time_limit : float, optional
        Largest number of seconds of a solve's own time, which it may exceed by one piece of work.
    reference : float, optional
        :math:`f^*` where it is known; else a conic solver finds it where the problem has a cvxpy form and cvxpy is
        installed, else the best feasible point of all solvers stands in for it, which ``optimum.source`` says.
    name : str, optional
        What the problem is called; its own name by default.
    report : callable, optional
        Called with the solver's name and the seed before each solve; in other processes, when it has ended.
    jobs : int
        Solves at a time, each in a process of its own on one thread where there are several. Seconds compare only if
        every process has a core of its own.
    backend : str
        Where these processes are, see :func:`minmaxcon.results.in_parallel`.
    checkpoint : path, optional
        A folder that holds the solves that have ended, from which ``resume`` goes on. One that holds a checkpoint
        already is refused, unless ``resume`` names it too; then the comparison goes on from there, or begins where
        there is none.
    resume : path, optional
        A folder from which the comparison goes on: what had ended is not done again and keeps its seconds, and a solve
        that was under way begins anew. All but ``jobs``, ``backend`` and ``report`` must be as before.

    Returns
    -------
    Comparison
        An entry for every solver and seed; a solver that does not take the problem has one with the reason.

    Raises
    ------
    UnknownName
        There is no such solver.
    InvalidInput
        An argument is out of range, or the problem has several runs; a checkpoint cannot be written or read, or is of
        another comparison, and what differs is named.
    CorruptCheckpoint
        The checkpoint is damaged or of another version.
    MinMaxConError
        Other processes have failed.

    Warns
    -----
    CheckpointWarning
        Other versions, or another number of threads, have written the checkpoint; a later one cannot be written.
    """
    _check(problem, report)
    if name is not None:
        instance("name", name, str, "must be a text, or None for the name of the problem.")
    instance("backend", backend, str, BACKEND)
    if samples is not None:
        samples = whole("samples", samples)
    if time_limit is not None:
        remedy = "must be a positive and finite number of seconds; leave it out for no limit."
        time_limit = number("time_limit", time_limit, remedy, above=0.0)
    chosen = _solvers(problem, solvers)
    every = _seeds("seed", [seed]) if seeds is None else _seeds("seeds", seeds)
    several = whole("jobs", jobs) > 1 or backend != "loky"
    asked = list(itertools.product(chosen, every))
    settings = {"problem": name or problem.name, "solvers": ", ".join(chosen), "seeds": ", ".join(map(str, every))}
    settings |= {"samples": str(samples), "time_limit": str(time_limit), "reference": str(_reference(reference))}
    keeper, saved = open_checkpoints(
        problem, lambda: settings | settings_of(problem, chosen, every[0]), checkpoint=checkpoint, resume=resume
    )
    optimum, done = (exact_optimum(problem, reference), {}) if saved is None else _kept(saved.state, resume)
    _keep(keeper, optimum, done)
    tasks = [
        (problem, label, chosen[label], one, samples, time_limit) for label, one in asked if (label, one) not in done
    ]
    with closing(_entries(tasks, report, jobs if several else None, backend)) as ended:
        for entry in ended:
            done[entry.solver, entry.seed] = entry
            if entry.status == str(Status.INTERRUPTED):
                break
            _keep(keeper, optimum, done)
    entries = [done[one] for one in asked if one in done]
    if optimum.source == "unknown" and problem.data.size is not None:
        bounds = [(entry.objective, entry.violation, entry.lower) for entry in entries if entry.ran]
        optimum = found_optimum(optimum, bounds, FEASIBLE)
    measured = tuple(_with_gaps(entry, optimum) for entry in entries)
    return Comparison(name or problem.name, optimum, measured, samples, time_limit)


_Done = dict[tuple[str, int], Entry]
"""Entries by solver and seed."""


@dataclass(frozen=True, eq=False, slots=True)
class _Kept:
    """What a checkpoint of a comparison holds: what was known of the optimum before any solve, and those that ran."""

    optimum: Optimum
    entries: tuple[Entry, ...]


def _keep(keeper: Checkpoints | None, optimum: Optimum, done: _Done) -> None:
    """Write what has ended, where that is asked for; a solver that did not run may do so next time."""
    if keeper is not None:
        ran = tuple(entry for entry in done.values() if entry.ran)
        keeper.write(_Kept(optimum, ran), sum(entry.seconds for entry in ran))


def _kept(state: Any, folder: Any) -> tuple[Optimum, _Done]:
    """Return what a checkpoint holds; one that was made by hand may hold anything."""
    known = isinstance(state, _Kept) and _is(Optimum, state.optimum) and isinstance(state.entries, tuple)
    if not known or not all(_is(Entry, entry) and all(map(_is_row, entry.path)) for entry in state.entries):
        raise CorruptCheckpoint(str(folder), "is no checkpoint of a comparison; name another folder.")
    return state.optimum, {(entry.solver, entry.seed): entry for entry in state.entries}


_KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "float | None": float | None,
    "Mapping[str, Any]": Mapping,
    "tuple[Mapping[str, Any], ...]": tuple,
}
"""The types of the fields of an optimum and an entry, by their annotations."""


def _is(kind: Any, value: Any) -> bool:
    """Tell whether a value is of a class, and its fields are of the types that they are annotated with."""
    if type(value) is not kind:
        return False
    fields = kind.__dataclass_fields__.values()
    whole = all(isinstance(getattr(value, field.name), _KINDS[str(field.type)]) for field in fields)
    if not whole or kind is Optimum:
        return whole and (value.scale is None or bool(value.scale > 0))
    return bool(0.0 <= value.seconds <= _LONGEST)


_LONGEST = 1e10
"""Seconds that no solve takes."""


def _is_row(row: Any) -> bool:
    """Tell whether a value is a point of a path."""
    return isinstance(row, Mapping) and row.keys() >= _ROW and all(isinstance(row[name], float | int) for name in _ROW)


def _entries(
    tasks: Sequence[tuple[Any, ...]], report: Callable[[str, int], Any] | None, jobs: int | None, backend: str
) -> Generator[Entry, None, None]:
    """Run the tasks, one after the other or so many at a time, and give their entries as they end."""
    if jobs is None:
        for task in tasks:
            if report is not None:
                report(task[1], task[3])
            yield _run(*task)
    elif tasks:
        with closing(in_parallel(_run_alone, tasks, jobs=jobs, backend=backend, ordered=False)) as ended:
            for entry in ended:
                if report is not None:
                    report(entry.solver, entry.seed)
                yield entry


def _check(problem: Any, report: Any) -> None:
    require_problem(problem)
    if problem.runs is not None:
        raise InvalidInput("problem", problem.name, "has several runs; give one bound, so that solvers compare.")
    if report is not None and not callable(report):
        raise InvalidInput("report", report, "must be a function of a solver's name and a seed; leave it out for none.")


def _solvers(problem: MinMaxProblem, asked: Any) -> dict[str, Solver]:
    if isinstance(asked, Mapping):
        chosen = dict(asked)
    else:
        names = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
        if not all(isinstance(name, str) for name in names):
            raise InvalidInput("solvers", asked, _WHICH)
        chosen = {name: name for name in names}
    if not chosen:
        raise InvalidInput("solvers", asked, _WHICH)
    for name, solver in chosen.items():
        if isinstance(solver, str):
            chosen[name] = solver = automatic(problem) if solver == AUTO else named_solver(solver)
        if not isinstance(solver, Solver):
            raise InvalidInput("solvers", solver, f"{name!r} must be a Solver such as SFLS().")
    return chosen


def _seeds(argument: str, asked: Any) -> list[int]:
    if not isinstance(asked, Iterable) or not (seeds := list(asked)):
        raise InvalidInput(argument, asked, "must be whole numbers of at least 0, at least one, such as range(3).")
    return list(dict.fromkeys(seed_number(argument, seed) for seed in seeds))


_ROW = {"checkpoint", "seconds", "samples", "steps", "objective", "violation", "estimate_violation"}
"""The keys of each point of a path."""


class _Watch:
    """A callback that notes when each row of the trace appeared, by the solver's own clock, and ends the solve."""

    def __init__(self, samples: int | None, time_limit: float | None) -> None:
        self.samples, self.time_limit = samples, time_limit
        self.seconds = self.away = 0.0
        self.path: list[dict[str, Any]] = []
        self.ended = ""

    def __call__(self, progress: Progress) -> bool:
        arrived = time.perf_counter()
        self.seconds = seconds = progress.seconds - self.away
        outcome = progress.outcome
        if not self.path:
            begun = {"objective": float(outcome.objective[0]), "violation": float(outcome.constraints[0].max())}
            self._note(begun, seconds, outcome.steps, outcome.samples)
        for row in outcome.trace[len(self.path) - 1 :]:
            self._note(row, seconds, outcome.steps, outcome.samples)
        if self.samples is not None and outcome.samples >= self.samples:
            self.ended = f"the budget of {self.samples:,} samples was used"
        elif self.time_limit is not None and seconds >= self.time_limit:
            self.ended = f"the time limit of {self.time_limit:g} s was reached"
        self.away += time.perf_counter() - arrived
        return bool(self.ended)

    def _note(self, row: Mapping[str, Any], seconds: float, steps: int, samples: int) -> None:
        """Add a row; what the method itself says of steps and samples stands, as some add several rows at once."""
        self.path.append(
            {
                "checkpoint": len(self.path),
                "seconds": seconds,
                "samples": int(row.get("samples", samples)),
                "steps": int(row.get("steps", steps)),
                "objective": float(row["objective"]),
                "violation": float(row["violation"]),
                "estimate_violation": float(row.get("estimate_violation", math.nan)),
            }
        )


def _run(
    problem: MinMaxProblem, name: str, solver: Solver, seed: int, samples: int | None, time_limit: float | None
) -> Entry:
    """Run one solver; one that does not take the problem says why."""
    watch = _Watch(samples, time_limit)
    try:
        solution = solve(problem, solver, seed=seed, callbacks=[watch])
    except MinMaxConError as refusal:
        return Entry(name, seed, "not run", str(refusal))
    objective, violation = _returned(problem, solution)
    reason = str(solution.reason)
    if watch.ended:
        reason = reason.replace("Stopped by a callback", watch.ended[0].upper() + watch.ended[1:])
    infeasible = sum(not row["violation"] <= FEASIBLE for row in watch.path[1:])
    return Entry(
        solver=name,
        seed=seed,
        status=str(solution.status),
        reason=reason,
        seconds=watch.seconds,
        samples=int(solution.samples),
        steps=int(solution.steps),
        objective=objective,
        violation=violation,
        upper=solution.certificate.upper,
        lower=solution.certificate.lower,
        checkpoints=len(watch.path) - 1,
        infeasible=infeasible,
        path=tuple(watch.path),
        settings=solution.settings.get("solver", {}),
        title=solver.title,
    )


def _run_alone(*task: Any) -> Entry:
    """Run one solver in a process of its own."""
    with one_thread():
        return _run(*task)


def _returned(problem: MinMaxProblem, solution: Solution) -> tuple[float, float]:
    """Return objective and largest violation of the returned point: exact on finite data."""
    if problem.data.size is None:
        return float(solution.objective), float(np.max(solution.constraints))
    return measures(problem, solution.x)


def _with_gaps(entry: Entry, optimum: Optimum) -> Entry:
    """Return the entry with its gaps, NaN where no optimal value is known."""
    value, scale = (math.nan if known is None else known for known in (optimum.value, optimum.scale))
    gaps = [(row, row["objective"] - value) for row in entry.path]
    path = tuple({**row, "gap": gap, "relative_gap": gap / scale} for row, gap in gaps)
    gap = entry.objective - value
    return replace(entry, path=path, gap=gap, relative_gap=gap / scale)


def measures(problem: MinMaxProblem, x: Any) -> tuple[float, float]:
    """Return objective and largest :math:`f_i - b_i` at a point x (d,), by one exact pass over finite data.

    On a problem that is refreshed these are the true measures.
    """
    like = problem.data.like
    point = namespace(like).asarray(np.asarray(x, dtype=np.float64)[None, :], like)
    values = exact_values(problem.family, point, problem.data)[0]
    objective, constraints = float(values[0]), values[1:] - problem.bounds()[0]
    if isinstance(problem, RefreshedProblem):
        seen = problem.measure.observe(point)
        objective = objective if seen.objective is None else float(seen.objective[0][0])
        constraints = np.asarray(seen.values)[0] - problem.bounds()[0]
    return objective, float(np.max(constraints))


def exact_optimum(problem: MinMaxProblem, reference: float | None = None) -> Optimum:
    """Return the optimum of a problem of one run as far as it is known before any solver has run.

    ``reference`` is its optimal value, where the caller knows it; InvalidInput if that is not finite.
    """
    reference, start = _reference(reference), None
    if problem.data.size is not None:
        first = problem.family.refine(problem.start_point(1), problem.data)
        objective, violation = measures(problem, to_numpy(first)[0])
        start = objective if violation <= 0 else None
    if reference is not None:
        return Optimum(reference, "given", reference, start, _scale(reference, start))
    value, why = _by_conic_solver(problem)
    if value is None:
        return Optimum(None, "unknown", None, start, None, why)
    if not np.isfinite(value):
        return Optimum(None, "infeasible", None, start, None, "a conic solver proved that no point is feasible")
    return Optimum(value, "exact", value, start, _scale(value, start))


def _reference(reference: Any) -> float | None:
    """Return an optimal value that a caller knows, where it is finite."""
    if reference is None:
        return None
    return number("reference", reference, "must be a finite number; leave it out where it is unknown.")


def found_optimum(unknown: Optimum, found: Sequence[tuple[float, float, float]], feasible: float) -> Optimum:
    """Return the optimum as the solvers know it, from what was known before and what they found.

    ``found`` holds objective, violation and lower bound of each point that was returned, ``feasible`` is the violation
    up to which a point counts as feasible.
    """
    upper = min((objective for objective, violation, _ in found if violation <= feasible), default=np.inf)
    lower = max((bound for _, _, bound in found), default=-np.inf)
    bounded = replace(unknown, lower=float(lower) if np.isfinite(lower) else None)
    if not np.isfinite(upper):
        return bounded
    return replace(bounded, value=float(upper), source="best found", scale=_scale(float(upper), unknown.start))


_ROUNDING = 1e-9
"""Differences of two objectives below this share of their sizes are those of a start at the optimum."""


def _scale(value: float, start: float | None) -> float:
    if start is None or start - value <= _ROUNDING * (abs(start) + abs(value)):
        return 1.0 + abs(value)
    return start - value


def _by_conic_solver(problem: MinMaxProblem) -> tuple[float | None, str]:
    """Return the optimal value, infinite where there is none, or why it is not known."""
    from minmaxcon.reference import ReferenceFailed, solve_exact

    if problem.data.size is None:
        return None, "a stream has no exact values"
    if isinstance(problem, RefreshedProblem):
        return None, "true measures have no cvxpy form"
    if problem.modulus > 0:
        return None, "the problem is not declared convex"
    try:
        found = solve_exact(problem)
    except (MissingDependency, Unsupported, ReferenceFailed) as failure:
        return None, str(failure)
    return (np.inf, "") if found.status is Status.INFEASIBLE else (float(found.objective), "")


_HEADING = ("solver", "status", "seconds", "samples", "relative gap", "max f_i-b_i", "infeasible on the way")
_TOO_SHORT = (
    "no checkpoint fell within the budget, and a solve ends only between two pieces of its work: the row tells nothing "
    "of the method. Allow more."
)


def comparison_text(found: Comparison, table: Callable[..., str], wrapped: Callable[[str, str], str]) -> str:
    """Return a comparison for a reader: a line a solver, medians over seeds, and what is needed to read them.

    Parameters
    ----------
    found : Comparison
        The comparison.
    table, wrapped : callable
        Align rows of cells and wrap a sentence, as those of :mod:`minmaxcon.cli.output` do.
    """
    instance("found", found, Comparison, "must be a Comparison, such as compare() returns.")
    instance("table", table, Callable, "must be a function of rows of cells.")
    instance("wrapped", wrapped, Callable, "must be a function of an opening and a sentence.")
    by_solver: dict[str, list[Entry]] = {}
    for entry in found.entries:
        by_solver.setdefault(entry.solver, []).append(entry)
    seeds = max(len(mine) for mine in by_solver.values())
    listed = f"seed {found.entries[0].seed}" if seeds == 1 else f"medians over {seeds} seeds"
    text = f"{found.problem}: {listed}{_budget(found)}\n\n"
    text += table([_HEADING, *(_line(name, mine) for name, mine in by_solver.items())], left=2)
    text += wrapped("f*: ", _optimum_text(found.optimum))
    if AUTO in by_solver and by_solver[AUTO][0].ran:
        text += wrapped(f"{AUTO}: ", f"{by_solver[AUTO][0].title} fits the problem.")
    refused = [mine[0] for mine in by_solver.values() if not mine[0].ran]
    text += "".join(wrapped(f"{entry.solver}: ", entry.reason) for entry in refused)
    idle = [name for name, mine in by_solver.items() if any(_too_short(entry, found) for entry in mine)]
    return text + (wrapped(f"{', '.join(idle)}: ", _TOO_SHORT) if idle else "")


def _too_short(entry: Entry, found: Comparison) -> bool:
    """Return whether a solve used the budget before the method looked at any point of its own."""
    samples = np.inf if found.samples is None else found.samples
    seconds = np.inf if found.time_limit is None else found.time_limit
    used = entry.samples >= samples or entry.seconds >= seconds
    return (
        entry.ran
        and used
        and not any(row["samples"] <= samples and row["seconds"] <= seconds for row in entry.path[1:])
    )


def _budget(found: Comparison) -> str:
    parts = [] if found.samples is None else [f"{found.samples:,} samples"]
    parts += [] if found.time_limit is None else [f"{found.time_limit:g} s"]
    return f", at most {' or '.join(parts)} a solve" if parts else ""


def _line(name: str, mine: Sequence[Entry]) -> list[str]:
    ran = [entry for entry in mine if entry.ran]
    counts = Counter(entry.status for entry in mine)
    status = ", ".join(word if len(mine) == 1 else f"{count} {word}" for word, count in counts.items())
    if not ran:
        return [name, status, *("-" for _ in _HEADING[2:])]

    def median(field: str) -> float:
        return float(np.median([getattr(entry, field) for entry in ran]))

    infeasible, checkpoints = (sum(getattr(entry, word) for entry in ran) for word in ("infeasible", "checkpoints"))
    gap = median("relative_gap")
    return [
        name,
        status,
        f"{median('seconds'):.2f}",
        f"{median('samples'):,.0f}",
        "unknown" if np.isnan(gap) else f"{100.0 * gap:.3g}%",
        f"{max(entry.violation for entry in ran):.2g}",
        f"{infeasible} of {checkpoints}",
    ]


def _optimum_text(optimum: Optimum) -> str:
    if optimum.value is None:
        return f"{optimum.source}: {optimum.note or 'no solver found a feasible point'}."
    unit = f"A relative gap is f_0 - f* in units of {optimum.scale:.6g}"
    unit += ", of 1 + |f*|" if optimum.start is None else f": the start has f_0 = {optimum.start:.6g}"
    said = {"exact": "exact, by a conic solver", "given": "as given"}.get(optimum.source, "")
    if optimum.source == "best found":
        least = "none is proved" if optimum.lower is None else f"{optimum.lower:.6g} is proved"
        why = f" as {optimum.note.rstrip('.')}" if optimum.note else ""
        said = f"the best feasible point of these solvers{why}; of lower bounds {least}"
    return f"{optimum.value:.6g}, {said}. {unit}."


def comparisons_of(value: Any) -> tuple[Comparison, ...]:
    """Return the argument ``comparisons``, or refuse (InvalidInput) what is no list of them."""
    return instances("comparisons", value, Comparison, "must be a list of Comparison, such as compare() returns.")


def path_rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return every point of every path as a row, with the names of problem and solver and the seed."""
    return [
        {"problem": found.problem, "solver": entry.solver, "seed": entry.seed, **row}
        for found in comparisons_of(comparisons)
        for entry in found.entries
        for row in entry.path
    ]


def as_data(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons as JSON knows them, with versions and the machine that the seconds are of."""
    listed = [
        {
            "problem": found.problem,
            "optimum": asdict(found.optimum),
            "samples": found.samples,
            "time_limit": found.time_limit,
            "solvers": [asdict(entry) for entry in found.entries],
        }
        for found in comparisons_of(comparisons)
    ]
    machine = {**describe_machine(), "load_average": load_average()}
    return {"comparisons": plain(listed), "machine": plain(machine), "versions": plain(versions())}
