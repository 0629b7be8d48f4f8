"""Verification of a result folder from model and data, without the solvers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import MinMaxProblem, RefreshedProblem, Status, proved
from minmaxcon.core.evidence import AGREES
from minmaxcon.core.source import in_double
from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.memory import VARIABLE, parsed
from minmaxcon.registry import ProblemPlugin, SavesModels, load_problem
from minmaxcon.registry import plugin as plugin_named
from minmaxcon.results.machine import environment
from minmaxcon.results.records import FEASIBLE, RunRecord, RunsRecord, plain, read_result
from minmaxcon.results.saved_models import read_model

__all__ = ["Finding", "verify"]

_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one claim of a run.

    Attributes
    ----------
    run : int
        The run.
    claim : str
        What is claimed: ``x``, ``objective``, ``constraints``, ``feasible``, ``train``, ``test``, ``model``, ``upper``,
        ``lower`` or ``status``.
    confirmed : bool
        Whether it holds.
    text : str
        What was found, a sentence.
    """

    run: int
    claim: str
    confirmed: bool
    text: str


def verify(folder: str | Path) -> list[Finding]:
    """Check what a result folder claims, from its point and multipliers and from the data.

    The problem is loaded anew by its recorded options. Objective, constraints and measures are computed again at the
    recorded point; lower bounds and claims of infeasibility from the recorded multipliers, by
    :func:`minmaxcon.core.proved`.

    Parameters
    ----------
    folder : path
        A folder that ``minmaxcon solve --out`` wrote.

    Returns
    -------
    list of Finding
        One for each claim of each run.

    Raises
    ------
    DataError
        If the folder holds no result, a damaged one, or one without a point.
    MinMaxConError
        If the problem cannot be loaded as recorded.
    """
    found = read_result(folder)
    runs = found.runs if isinstance(found, RunsRecord) else [found]
    findings: list[Finding] = []
    for number, record in enumerate(runs):
        name = "model.safetensors" if isinstance(found, RunRecord) else f"model-{number}.safetensors"
        with environment(_memory(Path(folder), record)):
            plugin, problem = _loaded(Path(folder), record)
            findings += _Checks(number, plugin, problem, record, Path(folder) / name).all()
    return findings


def _memory(folder: Path, record: RunRecord) -> dict[str, str]:
    """Return the limit of memory under which the problem was loaded: files are then read in the same way."""
    limit = record.settings.get("memory")
    if limit is None:
        return {}
    text = limit if isinstance(limit, str) else repr(limit)
    try:
        parsed("memory", text)
    except InvalidInput as failure:
        raise DataError(str(folder / "result.json"), f"settings.{failure}") from None
    return {VARIABLE: text}


def _loaded(folder: Path, record: RunRecord) -> tuple[ProblemPlugin, MinMaxProblem]:
    """Return the plug-in and the problem of a run, by the options that are recorded."""
    place = str(folder / "result.json")
    name = record.settings.get("problem")
    if not isinstance(name, str):
        raise DataError(place, "settings.problem is no name of a problem; solve again.")
    plugin = plugin_named(name)
    options = {one: record.settings[one] for one in plugin.options() if record.settings.get(one) is not None}
    try:
        problem = load_problem(name, **options)
        if problem.runs is not None:
            raise DataError(place, "the settings of one run are those of several; solve again.")
        return plugin, problem
    except MinMaxConError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError) as failure:
        raise DataError(place, f"the problem cannot be loaded as recorded ({failure}).") from failure


@dataclass(frozen=True, eq=False, slots=True)
class _Checks:
    """The claims of one run, and what they are checked with."""

    run: int
    plugin: ProblemPlugin
    problem: MinMaxProblem
    record: RunRecord
    model: Path

    def all(self) -> list[Finding]:
        return [Finding(self.run, *found) for found in self._each()]

    def _each(self) -> Iterator[tuple[str, bool, str]]:
        record, problem, evidence = self.record, self.problem, self.record.evidence
        if evidence is None:
            raise DataError(str(self.model.parent / "result.json"), "evidence is missing: an older version wrote it.")
        x = np.array(evidence.x, dtype=np.float64)
        if x.shape != (problem.primal.dimension,) or not problem.primal.contains(x, 1e-6):
            yield "x", False, f"the recorded point is no point of the set of {problem.primal.dimension} variables."
            return
        if problem.data.size is None:
            yield (
                "status",
                False,
                "the data are a stream: what holds on it holds with a confidence, and is not computed again.",
            )
            return
        objective, constraints = _values(problem, x)
        yield "objective", *_compared(record.objective, objective)
        yield "constraints", *_compared(record.constraints, constraints.tolist())
        worst = float(constraints.max())
        feasible = worst <= FEASIBLE
        yield "feasible", feasible == record.feasible, f"the largest f_i - b_i is {worst:.6g}."
        yield from self._measures(x)
        if isinstance(self.plugin, SavesModels):
            yield "model", *self._model(self.plugin, x)
        yield from self._bounds(x, objective, feasible)

    def _measures(self, x: Any) -> Iterator[tuple[str, bool, str]]:
        """Compare the plug-in's true measures, those that its evaluation of this solution alone gives."""
        measured = self.plugin.evaluate(self.problem, x.copy())
        for part in ("train", "validation", "test"):
            told, found = getattr(self.record, part), plain(measured.get(part))
            if told is not None:
                common = {name: told[name] for name in (found or {}) if name in told}
                yield part, *_compared(common, {name: found[name] for name in common})

    def _model(self, plugin: SavesModels, x: Any) -> tuple[bool, str]:
        """Tell whether the saved model is that of the point."""
        try:
            saved = read_model(self.model)[0]
        except DataError as failure:
            return False, failure.problem
        own = plugin.export(self.problem, x.copy())[0]
        if sorted(saved) != sorted(own):
            return False, f"it holds {sorted(saved)}, and the point gives {sorted(own)}."
        return _compared({name: saved[name].tolist() for name in saved}, {name: own[name].tolist() for name in own})

    def _bounds(self, x: Any, objective: float, feasible: bool) -> Iterator[tuple[str, bool, str]]:
        """Check upper and lower bound, and the status that rests on them."""
        record, told, evidence = self.record, self.record.certificate, self.record.evidence
        scale = AGREES * (1.0 + abs(objective))
        if told.upper is not None:
            holds = feasible and told.upper >= objective - scale
            yield "upper", holds, f"the point is {'feasible' if feasible else 'not feasible'}, with {objective:.9g}."
        proof = None
        if evidence is not None and evidence.weights is not None and not isinstance(self.problem, RefreshedProblem):
            near = x if evidence.near is None or len(evidence.near) != len(x) else np.array(evidence.near)
            proof = proved(self.problem, evidence.weights, evidence.scaled or [], near=near)
        if told.lower is not None:
            if proof is None or proof.fault:
                yield "lower", False, proof.fault if proof else "there are no multipliers that prove it."
            else:
                yield "lower", proof.confirms(told.lower, objective), f"the multipliers prove {proof.lower:.9g} <= f*."
        if record.status == str(Status.INFEASIBLE):
            holds = proof is not None and not proof.fault and proof.excess > 0
            text = f"every point violates the constraints by at least {proof.excess:.6g}." if proof and holds else ""
            yield "status", holds, text or (proof.fault if proof else "there are no multipliers that prove it.")
        elif record.status == str(Status.SOLVED):
            holds = feasible and proof is not None and not proof.fault and math.isfinite(proof.lower)
            gap = f"the point is within {objective - proof.lower:.3g} of the optimum." if proof and holds else ""
            missing = "solved rests on first-order conditions, which multipliers of a lower bound do not prove."
            yield "status", holds, gap or (proof.fault if proof and proof.fault else missing)


def _values(problem: MinMaxProblem, x: Any) -> tuple[float, Any]:
    """Return the objective and :math:`f_i - b_i` (m,) at a point, in float64."""
    like = namespace(problem.data.like).double(problem.data.like)
    point = namespace(like).asarray(x[None], like)
    bounds = problem.bounds(1)[0]
    if isinstance(problem, RefreshedProblem):
        seen = problem.measure.observe(point)
        constraints = np.asarray(seen.values, dtype=np.float64)[0] - bounds
        if seen.objective is not None:
            return float(np.asarray(seen.objective[0])[0]), constraints
        return float(_functions(problem, point)[0]), constraints
    values = _functions(problem, point)
    return float(values[0]), values[1:] - bounds


def _functions(problem: MinMaxProblem, point: Any) -> Any:
    """Return the values of objective and constraints (1 + m,)."""
    parts = []
    for share, batch in in_double(problem.data).chunks(_ROWS):
        found = problem.family.evaluate(point, batch)
        parts.append([share * np.asarray(to_numpy(part), dtype=np.float64)[0] for part in (found.F, found.G)])
    F, G = (np.array([math.fsum(column) for column in zip(*side, strict=True)]) for side in zip(*parts, strict=True))
    values, begin = F.copy(), 0
    for i, function in enumerate(problem.family.constraints):
        if function.dual is not None:
            mine = G[begin : begin + function.dual.dimension]
            begin += function.dual.dimension
            values[i] += float(np.asarray(function.dual.maximize(mine[None])[1])[0])
    return values


def _compared(told: Any, found: Any) -> tuple[bool, str]:
    """Tell whether two values of JSON agree, and where they do not."""
    where = _difference(told, found, "")
    if where is None:
        return True, "computed again, it agrees." if isinstance(
            told, Mapping | list
        ) else f"computed again: {found:.9g}."
    place, one, other = where
    return False, f"{place.lstrip('.') or 'it'} is recorded as {one!r:.40}, and computed again as {other!r:.40}."


def _difference(told: Any, found: Any, place: str) -> tuple[str, Any, Any] | None:
    if isinstance(told, Mapping) and isinstance(found, Mapping) and told.keys() == found.keys():
        pairs = [(f"{place}.{name}", told[name], found[name]) for name in told]
    elif isinstance(told, list) and isinstance(found, list) and len(told) == len(found):
        pairs = [(f"{place}[{i}]", one, other) for i, (one, other) in enumerate(zip(told, found, strict=True))]
    elif isinstance(told, int | float) and isinstance(found, int | float):
        return None if abs(told - found) <= AGREES * (1.0 + abs(found)) else (place, told, found)
    else:
        return None if told == found else (place, told, found)
    return next((where for place, one, other in pairs if (where := _difference(one, other, place))), None)
