"""Verification of a result folder from model and data, without the solvers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import MinMaxProblem, Proved, RefreshedProblem, Status, allowed_fall, proved
from minmaxcon.core.evidence import AGREES
from minmaxcon.core.first_order import by_the_weight, distance_of, no_proximal_problem
from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.memory import VARIABLE, parsed
from minmaxcon.registry import Compares, Encloses, ProblemPlugin, SavesModels, load_problem
from minmaxcon.registry import plugin as plugin_named
from minmaxcon.results.enclosed import Enclosed, function_values, too_close
from minmaxcon.results.machine import environment
from minmaxcon.results.records import FEASIBLE, EvidenceRecord, RunRecord, RunsRecord, plain, read_result
from minmaxcon.results.sampled import sampled_claims
from minmaxcon.results.saved_models import read_model

__all__ = ["Finding", "verify"]

_SINGLE = 1e-4
"""Relative difference up to which numbers agree of which one was computed in single precision."""

_WEAKER = 0.1
"""By this share more than the tolerance a claim of a solve may be found again: lower bounds are found anew."""

_OPTIMAL, _ROUNDED = 1e-3, 1e-12
"""The share of the difference up to which objectives agree that may be left to the optimum where there is nothing to
measure it by, and the rounding of a plug-in's own measures."""

_AS_SMALL = 5.0
"""How many times its tolerance the gradient's part of first-order optimality may be."""

_DRAWN, _NEARBY = 32, 2.0
"""Points towards which the objective is looked at for what it varies by nearby, and the factor that chance may cost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one claim of a run.

    Attributes
    ----------
    run : int
        The run.
    claim : str
        What is claimed: ``x``, ``objective``, ``constraints``, ``feasible``, ``train``, ``test``, ``model``, ``upper``,
        ``lower``, ``gap``, ``distance`` (of the proximal point), ``fall`` (that first-order optimality allows),
        ``samples`` (that a stream has enough of them) or ``status``.
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
    recorded point; lower bounds, claims of infeasibility and of near stationarity from the recorded multipliers, by
    :func:`minmaxcon.core.proved`; first-order optimality of a true measure by :func:`minmaxcon.core.allowed_fall`.
    Where a number is nearer to its limit than rounding, the claim is not confirmed, and the finding says so. Claims on
    a stream are checked with their confidence by samples that follow those that the solve has read.

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

    def _each(self) -> Iterator[_Found]:
        record, problem, evidence = self.record, self.problem, self.record.evidence
        told = record.certificate
        if evidence is None:
            raise DataError(str(self.model.parent / "result.json"), "evidence is missing: an older version wrote it.")
        x = np.array(evidence.x)
        if x.shape != (problem.primal.dimension,) or not problem.primal.holds(x):
            yield "x", False, f"the recorded point is no point of the set of {problem.primal.dimension} variables."
            return
        if problem.data.size is None:
            yield from sampled_claims(problem, record, evidence, self._setting("tolerance"))
            if isinstance(self.plugin, SavesModels):
                yield "model", *self._model(self.plugin, x)
            return
        if told.upper is not None and told.lower is not None:
            gap, alike = told.upper - told.lower, told.kind == "exact on the data"
            alike = alike and told.gap is not None and abs(told.gap - gap) <= AGREES * abs(gap)
            yield "gap", alike, f"the bounds leave {gap:.9g}, exact on the data."
        measured = self.plugin.evaluate(self.problem, x.copy())
        objective, excess, allowed = _values(problem, x)
        own = measured.get("values")
        yield "objective", *_near([record.objective], [objective], allowed[:1])
        yield "constraints", *_near(record.constraints, excess, allowed[1:])
        if own is not None:  # by code that shares nothing with the solvers, and rounds as the functions' sums do
            bounds, errors = problem.bounds()[0], [one.error for one in excess]
            excess = [Enclosed.around(float(v), e).minus(b) for v, e, b in zip(own, errors, bounds, strict=True)]
        if isinstance(self.plugin, Encloses) and (exact := self.plugin.enclosed(problem, x.copy())) is not None:
            excess = [Enclosed(*each).minus(b) for each, b in zip(exact, problem.bounds()[0].tolist(), strict=True)]
        feasible, said = _feasible(excess)
        yield "feasible", feasible is not None and feasible == record.feasible, said
        yield from self._measures(measured)
        if isinstance(self.plugin, SavesModels):
            yield "model", *self._model(self.plugin, x)
        if record.certificate.upper is not None:
            holds = feasible is True and record.certificate.upper >= objective.low - allowed[0]
            what = "feasible" if feasible else "not feasible"
            yield "upper", holds, f"the point is {what}, with {objective.middle:.9g}."
        yield from self._claims(x, objective, feasible is True, evidence, allowed[0])
        yield from self._ended(feasible)

    def _measures(self, measured: Mapping[str, Any]) -> Iterator[_Found]:
        """Compare the plug-in's true measures. What it adds by other solutions is not computed again, and is named."""
        beside: Mapping[str, Any] = measured
        if isinstance(self.plugin, Compares):  # with itself in the place of the others, for the names
            beside = self.plugin.compared(measured, dict.fromkeys(self.plugin.references(self.problem), measured))
        for part in ("train", "validation", "test"):
            told, found = getattr(self.record, part), plain(measured.get(part)) or {}
            if told is None:
                continue
            common = {name: told[name] for name in found if name in told}
            alike, text = _compared(common, {name: found[name] for name in common})
            more, added = sorted(set(told) - set(common)), set(beside.get(part) or {})
            if alike and more:
                text = f"{text.rstrip('.')}, but for {', '.join(map(repr, more[:4]))}: it takes other solutions."
            if unknown := [name for name in more if name not in added]:
                alike, text = False, f"{unknown[0]!r:.40} is nothing that the problem measures."
            yield part, alike and bool(common), text if common else "the problem measures nothing of it."

    def _model(self, plugin: SavesModels, x: Any) -> tuple[bool, str]:
        """Tell whether the saved model is that of the point."""
        try:
            saved, described = read_model(self.model)
        except DataError as failure:
            return False, failure.problem
        own, description = plugin.export(self.problem, x.copy())
        if sorted(saved) != sorted(own):
            return False, f"it holds {sorted(saved)}, and the point gives {sorted(own)}."
        # Each weight by itself: one of a column of large numbers is small, and counts as much as the others.
        there, here = ({name: held[name].tolist() for name in sorted(held)} for held in (saved, own))
        alike, text = _compared(there, here, least=0.0)
        return _compared(plain(described), plain(description)) if alike else (alike, text)

    def _ended(self, feasible: bool | None) -> Iterator[_Found]:
        """Say of a status that is neither solved nor infeasible what it claims of the problem."""
        status = self.record.status
        if status == str(Status.NOT_STRICTLY_FEASIBLE):
            yield "status", False, "that no point has room to spare is not computed again."
        elif status in (str(Status.OUT_OF_REACH), str(Status.UNFINISHED)) and feasible is not False:
            yield "status", False, "the point is not known to miss its target, of which the status says that it does."
        elif status in (str(Status.INCONSISTENT), str(Status.DIVERGED)):
            yield "status", False, "what the solver met on its way is not computed again."

    def _claims(
        self, x: Any, objective: Enclosed, feasible: bool, evidence: EvidenceRecord, allowed: float
    ) -> Iterator[_Found]:
        """Check the lower bound, or what stands in its place, and the status that rests on it."""
        solved = self.record.status == str(Status.SOLVED)
        if isinstance(self.problem, RefreshedProblem):
            if evidence.linear is not None:
                yield from self._fall(x, objective, feasible, evidence)
            elif solved:
                yield "status", False, "there are no multipliers by which first-order optimality could be checked."
            if self.record.status == str(Status.INFEASIBLE):
                yield "status", False, "multipliers prove nothing of true measures, which are not convex."
            return
        proof = None
        if evidence.proximal is not None:
            yield from self._distance(x, feasible, evidence)
            solved = False  # by that, and the multipliers are of another problem
        elif evidence.weights is not None:
            near = x if evidence.near is None or len(evidence.near) != len(x) else np.array(evidence.near)
            proof = proved(self.problem, evidence.weights, evidence.scaled or [], near=near)
        lower, nothing = self.record.certificate.lower, "there are no multipliers that prove it."
        if lower is not None:
            if proof is None or proof.fault:
                yield "lower", False, proof.fault if proof else nothing
            else:
                confirmed = proof.confirms(lower, objective.middle)
                yield "lower", confirmed, f"the multipliers prove {proof.lower:.9g} <= f*."
        if self.record.status == str(Status.INFEASIBLE):
            if proof is None or proof.fault or not proof.excess > 0:
                fault = (proof.fault or "the multipliers do not prove that no point is feasible.") if proof else nothing
                yield "status", False, fault
            else:
                yield "status", True, f"every point violates the constraints by at least {proof.excess:.6g}."
        elif solved:
            yield "status", *self._solved(x, objective, feasible, proof, evidence.first, allowed)

    def _setting(self, name: str) -> float | None:
        """Return a number that was set of the solver."""
        settings = self.record.settings.get("solver_settings")
        value = settings.get(name) if isinstance(settings, Mapping) else None
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

    def _solved(
        self,
        x: Any,
        objective: Enclosed,
        feasible: bool,
        proof: Proved | None,
        first: list[float] | None,
        allowed: float,
    ) -> tuple[bool, str]:
        """Tell whether the point is feasible and optimal within the tolerance."""
        tolerance = self._setting("tolerance")
        if proof is None or proof.fault or not math.isfinite(proof.lower):
            return False, (proof.fault if proof else "") or "there are no multipliers that prove it."
        if not feasible:
            return False, "the point is not known to be feasible."
        if tolerance is None:
            return False, "settings.solver_settings has no tolerance, which solved is about."
        single = self.problem.data.like.dtype.itemsize < 8
        gap, unit = objective.high - proof.lower, allowed * (1.0 if single else _OPTIMAL)
        text = f"the point is within {max(gap, 0.0):.3g} of the optimum"
        begin = first if first is not None and len(first) == len(x) else to_numpy(self.problem.start_point(1))[0]
        span, near = self._yardsticks(x, np.array(begin), proof.lower)
        for yardstick, factor, what in (
            (span, 1.0, "of what the first feasible point lacks"),
            (near, _NEARBY, "of what the objective varies by nearby"),
        ):
            if gap <= (1.0 + _WEAKER) * tolerance * factor * yardstick + unit:
                share = f", {max(gap, 0.0) / yardstick:.2g} {what}" if yardstick > 0 else ""
                return True, f"{text}{share}; the tolerance is {tolerance:g}."
        return False, f"{text}, and not within the tolerance of {tolerance:g} times {max(span, near):.3g}."

    def _yardsticks(self, x: Any, first: Any, lower: float) -> tuple[float, float]:
        """Return the objective's excess at a feasible point over the lower bound, and by how much it varies near there.

        0 where the first point is none of the set, or not feasible.
        """
        primal = self.problem.primal
        usable = bool(np.isfinite(first).all()) and bool(primal.holds(first))
        here = first if usable else x
        share = min(_SPAN if (asked := self._setting("least_span")) is None else asked, _SPAN)
        drawn = primal.sample(np.random.default_rng(0), _DRAWN)
        around = here + share * (drawn - here)
        with np.errstate(all="ignore"):
            values, errors = function_values(self.problem, np.concatenate([here[None], around]))
        excess = (values[0] - errors[0])[1:] - self.problem.bounds()[0]
        span = values[0, 0] - lower if usable and excess.max() <= FEASIBLE else 0.0
        varies = np.abs(values[1:, 0] - values[0, 0])
        return max(float(np.nan_to_num(span)), 0.0), float(np.max(varies, initial=0.0, where=np.isfinite(varies)))

    def _distance(self, x: Any, feasible: bool, evidence: EvidenceRecord) -> Iterator[_Found]:
        """Check near stationarity: how far the proximal point can be."""
        told, problem = evidence.proximal, self.problem
        if told is None:
            return
        other = np.array(told.point)
        fault, found = no_proximal_problem(problem, told.weight, other), math.inf
        if not fault:
            proximal = problem.with_proximal(x, told.weight)
            near = x if evidence.near is None or len(evidence.near) != len(x) else np.array(evidence.near)
            proof = proved(proximal, evidence.weights or [], evidence.scaled or [], near=near)
            upper, excess, _ = _values(proximal, other)
            beside, said = _feasible(excess)
            if proof.fault or not math.isfinite(proof.lower):
                fault = proof.fault or "the multipliers prove no bound."
            elif beside is not True:
                fault = f"of the point beside it in the proximal problem {said}"
            else:
                step = float(problem.primal.norm(other - x)) * (1.0 + 1e-12)
                found = distance_of(step, upper.high, proof.lower, told.weight - problem.modulus)
        size = AGREES * (1.0 + float(np.linalg.norm(x)))
        text = fault or f"the proximal point (weight {told.weight:.4g}) is proved to lie within {found:.4g}."
        yield "distance", found <= (1.0 + _WEAKER) * told.distance + size, text
        if self.record.status == str(Status.SOLVED):
            tolerance = self._setting("tolerance")
            if fault or not feasible or tolerance is None:
                missing = fault or (
                    "the point is not known to be feasible." if not feasible else "no tolerance is recorded."
                )
                yield "status", False, missing
            else:
                found = float(by_the_weight(found, told.weight, problem.modulus))
                holds = found <= (1.0 + _WEAKER) * tolerance + size
                text = f"nearly stationary within {found:.4g}, as by a weight of {max(1.0, 2.0 * problem.modulus):.4g}"
                yield "status", holds, f"{text}; the tolerance is {tolerance:g}."

    def _fall(self, x: Any, objective: Enclosed, feasible: bool, evidence: EvidenceRecord) -> Iterator[_Found]:
        """Check first-order optimality of a true measure."""
        told = evidence.linear
        if told is None or not isinstance(self.problem, RefreshedProblem):
            return
        found, scale = allowed_fall(self.problem, x, told.multipliers), 1.0 + abs(objective.middle)
        single = self.problem.data.like.dtype.itemsize < 8
        slack = (_SINGLE if single else AGREES) * scale
        text = found.fault or f"first-order optimality allows the objective to fall by {found.total:.3g}."
        yield "fall", not found.fault and found.total <= (1.0 + _WEAKER) * told.fall + slack, text
        if self.record.status == str(Status.SOLVED):
            tolerance = self._setting("tolerance")
            if found.fault or not feasible or tolerance is None:
                missing = "the target is not known to be met." if not feasible else "no tolerance is recorded."
                yield "status", False, found.fault or missing
            else:
                parts = f"{found.curved:.2g} by the gradient, {found.room:.2g} by the room that the target leaves"
                holds = found.is_small(_AS_SMALL * tolerance * scale + slack, scale)
                yield "status", holds, f"the true measure meets its target; of the fall {parts}."


_Found = tuple[str, bool, str]

_SPAN = 1e-3
"""How far towards other points the objective is looked at for what it varies by, where no setting says so."""


def _feasible(excess: list[Enclosed]) -> tuple[bool | None, str]:
    """Tell whether no constraint is violated, None where rounding would decide it, and say what was found."""
    worst = max(excess, key=lambda one: one.high)
    known = [one.at_most(FEASIBLE) for one in excess]
    if False in known:
        return False, f"the largest f_i - b_i is {worst.middle:.6g}."
    if None in known:
        return None, too_close("the largest f_i - b_i", worst, FEASIBLE)
    exactly = ", in exact fractions" if isinstance(worst.low, Fraction) else ""
    return True, f"the largest f_i - b_i is {worst.middle:.6g}{exactly}."


def _values(problem: MinMaxProblem, x: Any) -> tuple[Enclosed, list[Enclosed], list[float]]:
    """Return the objective and :math:`f_i - b_i` at a point, and up to which difference numbers told of each agree.

    That is relative to the sizes of :math:`f_i` and :math:`b_i`, so that it has their unit.
    """
    bounds, agrees, rounded = problem.bounds()[0].tolist(), AGREES, 0.0
    if isinstance(problem, RefreshedProblem):
        point = namespace(problem.data.like).asarray(x[None], problem.data.like)
        seen = problem.measure.observe(point)
        agrees, rounded = _SINGLE if problem.data.like.dtype.itemsize < 8 else AGREES, _ROUNDED
        found = [Enclosed.around(float(v), 0.0) for v in np.asarray(seen.values)[0]]
        if seen.objective is None:
            values, errors = (part[0] for part in function_values(problem, x[None]))
            found = [Enclosed.around(float(values[0]), float(errors[0])), *found]
        else:
            found = [Enclosed.around(float(np.asarray(seen.objective[0])[0]), 0.0), *found]
    else:
        values, errors = (part[0] for part in function_values(problem, x[None]))
        found = [Enclosed.around(float(v), float(e)) for v, e in zip(values, errors, strict=True)]
    sizes = [abs(one.middle) + abs(b) for one, b in zip(found, [0.0, *bounds], strict=True)]
    allowed = [agrees * size + rounded + one.error / _OPTIMAL for one, size in zip(found, sizes, strict=True)]
    return found[0], [one.minus(b) for one, b in zip(found[1:], bounds, strict=True)], allowed


def _near(told: list[float | None], found: list[Enclosed], allowed: list[float]) -> tuple[bool, str]:
    """Tell whether numbers agree with what was computed again, and say which does not."""
    if len(told) != len(found):
        return False, f"{len(told)} are recorded, and the problem has {len(found)}."
    for one, again, least in zip(told, found, allowed, strict=True):
        if one is None or not abs(one - again.middle) <= least:
            return False, f"{one!r:.40} is recorded, and {again.middle!r:.40} computed again."
    return True, f"computed again: {', '.join(f'{one.middle:.9g}' for one in found[:4])}{', ...' if found[4:] else ''}."


def _compared(told: Any, found: Any, allowed: float = AGREES, least: float = 1.0) -> tuple[bool, str]:
    """Tell whether two values of JSON agree, and where they do not; below the size ``least`` by its share."""
    where = _difference(told, found, "", (allowed, least))
    if where is None:
        return True, "computed again, it agrees." if isinstance(
            told, Mapping | list
        ) else f"computed again: {found:.9g}."
    place, one, other = where
    return False, f"{place.lstrip('.') or 'it'} is recorded as {one!r:.40}, and computed again as {other!r:.40}."


def _difference(told: Any, found: Any, place: str, allowed: tuple[float, float]) -> tuple[str, Any, Any] | None:
    if isinstance(told, Mapping) and isinstance(found, Mapping) and told.keys() == found.keys():
        pairs = [(f"{place}.{name}", told[name], found[name]) for name in told]
    elif isinstance(told, list) and isinstance(found, list) and len(told) == len(found):
        pairs = [(f"{place}[{i}]", one, other) for i, (one, other) in enumerate(zip(told, found, strict=True))]
    elif isinstance(told, int | float) and isinstance(found, int | float):
        share, least = allowed
        return None if abs(told - found) <= share * (least + abs(found)) else (place, told, found)
    else:
        return None if told == found else (place, told, found)
    return next((where for place, one, other in pairs if (where := _difference(one, other, place, allowed))), None)
