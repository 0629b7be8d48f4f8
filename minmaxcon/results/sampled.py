"""Claims on a stream, checked with confidence by samples that the solve has not read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import MinMaxProblem, Position, Status
from minmaxcon.core.confidence import Look, look
from minmaxcon.core.evidence import no_multipliers
from minmaxcon.data import Stream
from minmaxcon.results.records import EvidenceRecord, RunRecord

__all__ = ["sampled_claims"]

_CONFIDENCE = 0.95
"""The confidence of the answers, where the result claims none."""

_MORE, _MOST = 4, 1_000_000
"""Fresh samples for each that the solve has read, so that bounds are tighter than those that they confirm, and the most
of them. For a longer solve a quarter of what it has read, which is at least what its own bounds rest on."""

_WEAKER = 0.1
"""By this share of the gap a bound may be weaker than the one that is claimed: both are random."""

_SEED = 0x6672657368
"""The seed of the draws. It is none that a solve is given by default, and the same claims get the same answer."""

_PIECE = 1000
"""Samples that are passed over at once."""


def sampled_claims(
    problem: MinMaxProblem, record: RunRecord, evidence: EvidenceRecord, tolerance: float | None
) -> Iterator[tuple[str, bool, str]]:
    r"""Yield each claim of a run on a stream, whether it is confirmed, and what was found.

    Samples follow those that the solve has read. They bound the functions at the point from above and the least value
    of the Lagrangian from below, and all these bounds hold together with the confidence that is claimed; see
    :func:`minmaxcon.core.confidence.look`.
    """
    told, read = record.certificate, evidence.samples
    confidence = told.confidence if 0.0 < told.confidence < 1.0 else _CONFIDENCE
    solved = record.status == str(Status.SOLVED)
    if not (record.feasible or solved or told.upper is not None or told.lower is not None):
        yield "status", record.status != str(Status.INFEASIBLE), "nothing is known of the problem."
        return
    if read is None:
        yield "samples", False, "the result does not tell how many samples the solve has read; solve again."
        return
    fault = "there are no multipliers that prove it."
    if evidence.weights is not None:
        fault = no_multipliers(problem, evidence.weights, evidence.scaled or [])
        if not fault and evidence.weights[0] <= 0:
            fault = "the multiplier of the objective is 0."
    wanted = max(min(_MORE * read, _MOST), math.ceil(read / _MORE))
    seen = _fresh(problem, evidence, wanted, 1.0 - confidence, multipliers=not fault)
    if seen is None:
        yield "samples", False, f"the stream ends before {wanted:,} samples follow the {read:,} of the solve."
        return
    how = f"with confidence {confidence:g}, by {seen.samples:,} fresh samples"
    excess, high = seen.upper[-1, 0, 1:] - problem.bounds(1)[0], float(seen.upper[-1, 0, 0])
    feasible = bool((excess <= 0.0).all())
    low = -math.inf if fault else float(seen.lower[0])
    allowed = 0.0 if told.upper is None or told.lower is None else _WEAKER * abs(told.upper - told.lower)
    if record.feasible:
        yield "feasible", feasible, f"{how}, no f_i - b_i is above {excess.max():.6g}."
    if told.upper is not None:
        yield "upper", feasible and high <= told.upper + allowed, f"{how}, the objective is at most {high:.6g}."
    if told.lower is not None:
        yield "lower", low >= told.lower - allowed, fault or f"{how}, {low:.6g} <= f*."
    if solved:
        missing = fault or ("" if tolerance is not None else "settings.solver_settings has no tolerance.")
        if missing or not feasible or tolerance is None:
            yield "status", False, missing or "the point is not known to be feasible."
            return
        gap, span = max(high - low, 0.0), float(seen.first[0]) - low
        text = f"{how}, the point is within {gap:.3g} of the optimum, and the first feasible point lacks {span:.3g}."
        yield "status", gap <= (1.0 + _WEAKER) * tolerance * span, text
    elif record.status == str(Status.INFEASIBLE):
        yield "status", False, "no number of samples of a stream proves that every point is infeasible."


def _fresh(
    problem: MinMaxProblem, evidence: EvidenceRecord, samples: int, share: float, *, multipliers: bool
) -> Look | None:
    """Return bounds from samples that the solve has not read, which fail together with probability ``share`` at most.

    The first point is the one that the gap is relative to; ``lower`` bounds the optimal value.
    """
    level, like = problem.at_level(np.zeros(1)), problem.start_point(1)
    xp, data = namespace(like), problem.data

    def row(values: Any) -> Any:
        return xp.asarray(np.array(values, dtype=np.float64)[None], like)

    x, first = row(evidence.x), evidence.first
    usable = first is not None and len(first) == len(evidence.x)
    usable = usable and bool(np.asarray(to_numpy(problem.primal.holds(row(first)))).all())
    dual = level.dual().center(x)
    weights, scaled = dual.weights, level.dual().scaled(dual)
    if multipliers:
        total = sum(evidence.weights or [])
        weights, scaled = row(evidence.weights) / total, row(evidence.scaled or []) / total
    position, left = Position.start(np.random.default_rng(_SEED)), int(evidence.samples or 0)
    if isinstance(data, Stream):
        left += data.shuffle  # another seed orders the points of a block in another way
    while left > 0:
        batches, position = data.draw(position, 1, min(left, _PIECE))
        if next(batches, None) is None:
            return None
        left -= _PIECE
    found = look(
        level,
        [row(first) if usable else x, x],
        weights,
        scaled,
        position,
        samples=samples,
        beta=share / (len(problem.constraints) + 3),
        lower=multipliers,
    )
    share_of_objective = np.asarray(to_numpy(weights), dtype=np.float64)[:, 0] if multipliers else np.ones(1)
    return None if found is None else replace(found, lower=found.lower / share_of_objective)
