"""Result records: what a solve reached, measured again outside the solver, as JSON knows it."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, ValidationError
from threadpoolctl import threadpool_info

from minmaxcon.checks import instance, instances, mapping
from minmaxcon.core import Certificate, MinMaxProblem, Solution, Status
from minmaxcon.core.problem import require_problem
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.files import installed_version
from minmaxcon.registry import Compares, ProblemPlugin
from minmaxcon.results.folders import recover

__all__ = [
    "FEASIBLE",
    "CertificateRecord",
    "EvidenceRecord",
    "RunRecord",
    "RunsRecord",
    "certificate_text",
    "csv_text",
    "interval_text",
    "measure",
    "plain",
    "read_result",
    "record",
    "to_json",
    "versions",
]

FEASIBLE = 1e-9
"""Violation up to which a point counts as feasible when it is measured again: rounding, nothing more."""


def _finite(value: JsonValue) -> JsonValue:
    """Refuse numbers at any depth that JSON does not know: pydantic's own check sees those of fields alone."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(part)
    return value


Measures = dict[str, Annotated[JsonValue, AfterValidator(_finite)]]


class _Record(BaseModel):
    # Validators are built when they are needed: building all takes as long as to import pydantic.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


class CertificateRecord(_Record):
    """Bounds on the optimal value; null where there is none. Fields as in :class:`minmaxcon.Certificate`."""

    kind: str
    upper: float | None
    lower: float | None
    gap: float | None
    confidence: float


class ProximalRecord(_Record):
    """What near stationarity rests on beside multipliers of the proximal problem.

    Fields as in :class:`minmaxcon.core.Neighbour`: the weight, a feasible point, and the claimed distance.
    """

    weight: FiniteFloat
    point: list[FiniteFloat]
    distance: FiniteFloat


class LinearRecord(_Record):
    """What first-order optimality of a true measure rests on; fields as in :class:`minmaxcon.core.Linearised`."""

    multipliers: list[FiniteFloat]
    fall: FiniteFloat


class EvidenceRecord(_Record):
    """What the claims of a run rest on, so that others can check them (``minmaxcon verify``).

    Attributes
    ----------
    x : list of float
        The point.
    weights, scaled : list of float
        Multipliers of objective and constraints, and scaled inner variables, as in :class:`minmaxcon.core.Evidence`;
        absent where nothing is proved by multipliers.
    near : list of float
        Where the search for the minimiser of their Lagrangian starts.
    first : list of float
        A feasible point whose objective the gap of a solved run is relative to.
    proximal : ProximalRecord
        Of a run that claims near stationarity; the multipliers are then those of the proximal problem.
    linear : LinearRecord
        Of a run that claims first-order optimality of a true measure.
    samples : int
        Of a run on a stream: how many samples the solve has read. Whoever checks a claim takes those that follow.
    """

    x: list[FiniteFloat]
    weights: list[FiniteFloat] | None = None
    scaled: list[FiniteFloat] | None = None
    near: list[FiniteFloat] | None = None
    first: list[FiniteFloat] | None = None
    proximal: ProximalRecord | None = None
    linear: LinearRecord | None = None
    samples: int | None = Field(default=None, ge=0)


def _known_status(status: str) -> str:
    if status not in set(map(str, Status)):
        raise ValueError("is no status of minmaxcon")
    return status


class RunRecord(_Record):
    """One run of a solve.

    Attributes
    ----------
    status : str
        Short name of the :class:`~minmaxcon.Status`.
    feasible : bool
        Whether no ``constraints`` is above 1e-9.
    objective, constraints : float, list of float
        :math:`f_0(x)` and :math:`f_i(x) - b_i`, from the plug-in's own evaluation, which shares nothing with solvers.
    certificate : CertificateRecord
        Bounds on the optimal value, from the solver.
    train, validation, test : mapping
        The plug-in's true measures on each part of the data.
    steps, seconds : int, float
        Oracle steps and wall-clock time of the solve, of all its runs together.
    settings, versions : mapping
        What is needed to repeat it.
    reason : str
        The evidence behind the status.
    notes : list of str
        What the reader must know to read these numbers rightly.
    evidence : EvidenceRecord, optional
        The point and the multipliers.
    recomputed : bool
        False where the plug-in cannot evaluate, so that objective and constraints are the solver's own.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.results import measure, record
    >>> problem = mm.load_problem("toy")
    >>> solution = mm.solve(problem, seed=0)
    >>> found = record(measure(mm.plugin("toy"), problem, solution)[0], solution, {"seed": 0})
    >>> found.status, found.feasible, found.recomputed
    ('solved', True, True)
    """

    status: Annotated[str, AfterValidator(_known_status)]
    feasible: bool
    objective: float | None
    constraints: list[float | None]
    certificate: CertificateRecord
    train: Measures | None = None
    validation: Measures | None = None
    test: Measures | None = None
    steps: int
    seconds: float
    settings: Measures
    versions: Measures
    reason: str
    notes: list[str] = Field(default_factory=list)
    recomputed: bool = True
    evidence: EvidenceRecord | None = None

    @property
    def solved(self) -> bool:
        """Whether the run is solved, and feasible when measured again."""
        return self.status == str(Status.SOLVED) and self.feasible


class RunsRecord(_Record):
    """Several runs of one solve, in the order in which their bounds were given.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.results import RunsRecord, measure, record
    >>> problem = mm.load_problem("toy", bound=[0.5, 1.0])
    >>> solution = mm.solve(problem, seed=0)
    >>> runs = [record(found, solution[j], {}) for j, found in enumerate(measure(None, problem, solution))]
    >>> both = RunsRecord(runs=runs, steps=solution.steps, seconds=solution.seconds, settings={}, versions={})
    >>> both.solved, len(both.runs)
    (True, 2)
    """

    runs: list[RunRecord]
    steps: int
    seconds: float
    settings: Measures
    versions: Measures
    notes: list[str] = Field(default_factory=list)

    @property
    def solved(self) -> bool:
        """Whether every run is solved."""
        return all(run.solved for run in self.runs)


def certificate_text(record: RunRecord) -> str:
    """Return the certificate in words."""
    found = instance("record", record, RunRecord, "must be a RunRecord, such as record() returns.").certificate
    lower = "no lower bound" if found.lower is None else f"{found.lower:.6g} <= f*"
    upper = "no upper bound" if found.upper is None else f"f* <= {found.upper:.6g}"
    if found.lower is not None and found.upper is not None:
        text = f"{found.lower:.6g} <= f* <= {found.upper:.6g}, gap {found.gap:.3g}"
    else:
        text = f"{lower}, {upper}"
    return f"{text}, {found.kind}" if found.kind != "none" else text


def interval_text(part: Mapping[str, Any], name: str) -> str:
    """Return a measure with its interval: ``0.9441 [0.9271, 0.9610]``."""
    mapping("part", part, "must be the measures of a part of the data, by name.")
    instance("name", name, str, "must be the name of a measure.")
    value, interval = part.get(name), part.get(f"{name}_interval")
    text = "undefined" if value is None else f"{value:.4f}"
    if not interval or None in interval:
        return text
    return f"{text} [{interval[0]:.4f}, {interval[1]:.4f}]"


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: NaN and infinities become None, arrays lists, unknown objects their text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def to_json(found: Any) -> str:
    """Return a record or a mapping as valid JSON text with a newline at its end; parts that are absent are left out."""
    value = found.model_dump() if isinstance(found, BaseModel) else plain(found)
    return json.dumps(_without_absent(value), indent=2, allow_nan=False) + "\n"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV; floats read back exactly, what does not exist is empty."""
    rows = instances("rows", rows, Mapping, "must be a list of mappings with the same names.")
    text = io.StringIO(newline="")
    if rows:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return "" if isinstance(value, float) and math.isnan(value) else value


_ABSENT = ("train", "validation", "test", "evidence", *EvidenceRecord.model_fields)


def _without_absent(value: Any) -> Any:
    """Drop the parts of the data that a problem does not have; any other null says "unknown" and stays."""
    if isinstance(value, list):
        return [_without_absent(item) for item in value]
    if isinstance(value, dict):
        absent = {name for name in _ABSENT if value.get(name, 0) is None}
        return {name: _without_absent(item) for name, item in value.items() if name not in absent}
    return value


_SOLUTION = "must be a Solution, such as solve() returns."

_LARGEST = 2**28
"""Bytes of a result that is read."""


def read_result(folder: str | Path) -> RunRecord | RunsRecord:
    """Return what ``result.json`` of a result folder says.

    Raises
    ------
    DataError
        There is none, or it is not a result of minmaxcon: the first field that is wrong is named.
    """
    recover(folder)
    path = Path(folder) / "result.json"
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST or not path.is_file():  # a pipe would wait for ever
            need = "is a link, no regular file, or larger than any result of minmaxcon; copy the folder anew."
            raise DataError(str(path), need)
        text = path.read_text(encoding="utf-8")
    except DataError:
        raise
    except (OSError, ValueError) as failure:
        cause = getattr(failure, "strerror", None) or "no text"
        raise DataError(str(path), f"cannot be read ({cause}); 'minmaxcon solve --out DIR' writes it.") from failure
    kind = RunsRecord if '"runs":' in text else RunRecord
    try:
        return kind.model_validate_json(text)
    except ValidationError as failure:
        first = failure.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(str(path), f"is no result of minmaxcon: {where}: {first['msg']}; solve again.") from failure


def measure(
    plugin: ProblemPlugin | None,
    problem: MinMaxProblem,
    solution: Solution,
    references: Mapping[str, tuple[MinMaxProblem, Solution]] | None = None,
) -> list[dict[str, Any]]:
    """Measure a solution, each run on its own, by the plug-in's code.

    Parameters
    ----------
    plugin : ProblemPlugin or None
        The problem's plug-in; None for the solver's own values.
    problem : MinMaxProblem
        The problem.
    solution : Solution
        Its solution, of one run or several.
    references : mapping, optional
        The problems that a plug-in compares with, and their solutions, by name.

    Returns
    -------
    list of dict
        For each run what the plug-in's ``evaluate`` says, with ``constraints`` :math:`f_i(x) - b_i` and ``recomputed``;
        where it says nothing the solver's own values.
    """
    if plugin is not None and not hasattr(plugin, "evaluate"):
        raise InvalidInput("plugin", plugin, "must be a ProblemPlugin, or None for the solver's own values.")
    require_problem(problem)
    instance("solution", solution, Solution, _SOLUTION)
    if references is not None:
        mapping("references", references, "must map names to problems and their solutions.")
    runs = [solution] if solution.runs is None else [solution[j] for j in range(solution.runs)]
    found = [
        _measure_run(plugin, problem, run, bounds)
        for run, bounds in zip(runs, problem.bounds(len(runs)).tolist(), strict=True)
    ]
    if references and isinstance(plugin, Compares):
        others = {name: plugin.evaluate(other, solved.x.copy()) for name, (other, solved) in references.items()}
        found = [dict(plugin.compared(mine, others)) for mine in found]
    return found


def _measure_run(
    plugin: ProblemPlugin | None, problem: MinMaxProblem, run: Solution, bounds: list[float]
) -> dict[str, Any]:
    found = {} if plugin is None else dict(plugin.evaluate(problem, run.x.copy()))
    if "objective" in found and "values" in found:
        constraints = [float(value) - bound for value, bound in zip(found["values"], bounds, strict=True)]
        return {**found, "objective": float(found["objective"]), "constraints": constraints, "recomputed": True}
    own = {"objective": float(run.objective), "constraints": np.asarray(run.constraints).tolist()}
    return {**found, **own, "recomputed": False}


def record(
    measured: Mapping[str, Any], solution: Solution, settings: Mapping[str, Any], notes: list[str] | None = None
) -> RunRecord:
    """Return the record of one run.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    solution : Solution
        The solution of this run alone.
    settings : mapping
        What was asked for.
    notes : list of str, optional
        Sentences for the reader.
    """
    mapping("measured", measured, "must be what measure() returns of one run.")
    instance("solution", solution, Solution, _SOLUTION)
    mapping("settings", settings, "must map names to what was asked for.")
    noted = instances("notes", () if notes is None else notes, str, "must be a list of sentences.")
    worst = float(np.max(measured["constraints"]))  # NaN where one is
    feasible = bool(worst <= FEASIBLE)
    status, reason = str(solution.status), str(solution.reason)
    if solution.status is Status.SOLVED and not feasible:
        status = str(Status.BUDGET)
        how = "is no number" if math.isnan(worst) else f"is violated by {worst:.3g}"
        reason += f" But measured again outside the solver a constraint {how}."
    certificate: Certificate = solution.certificate
    bounds = {name: getattr(certificate, name) for name in ("kind", "upper", "lower", "gap", "confidence")}
    return RunRecord(
        status=status,
        feasible=feasible,
        objective=plain(measured["objective"]),
        constraints=plain(measured["constraints"]),
        certificate=CertificateRecord(**plain(bounds)),
        **{part: plain(measured.get(part)) for part in ("train", "validation", "test")},
        steps=int(solution.steps),
        seconds=float(solution.seconds),
        settings=plain({**settings, "solver_settings": solution.settings.get("solver")}),
        versions=versions(),
        reason=reason,
        notes=list(noted),
        recomputed=measured["recomputed"],
        evidence=_evidence(solution),
    )


def _evidence(solution: Solution) -> EvidenceRecord:
    """Return the point of one run, and the multipliers that prove what it claims."""
    found, x = solution.evidence, np.asarray(solution.x, dtype=np.float64).tolist()
    kept: dict[str, Any] = {}
    if solution.certificate.kind in ("with confidence", "estimate"):
        kept["samples"] = int(solution.samples)
    if found is None:
        return EvidenceRecord(x=x, **kept)
    if np.isfinite(found.weights).all():
        kept |= {name: getattr(found, name)[0].tolist() for name in ("weights", "scaled", "near")}
    if found.first is not None and np.isfinite(found.first).all():
        kept["first"] = found.first[0].tolist()
    if solution.status is Status.SOLVED:
        for name, record_of, part in (
            ("proximal", ProximalRecord, found.neighbour),
            ("linear", LinearRecord, found.linear),
        ):
            if part is not None and all(np.isfinite(getattr(part, field.name)).all() for field in fields(part)):
                kept[name] = record_of(**{field.name: getattr(part, field.name)[0].tolist() for field in fields(part)})
    return EvidenceRecord(x=x, **kept)


def versions() -> dict[str, Any]:
    """Return what bits depend on beside settings: versions, BLAS threads and the processor's instructions.

    No package is imported to know its version.
    """
    found: dict[str, Any] = {"minmaxcon": installed_version("minmaxcon"), "python": platform.python_version()}
    found |= {name: installed_version(name) for name in ("numpy", "scipy", "torch")}
    return {**found, "threads": _threads(), "machine": platform.machine(), "cpu_dispatch": _dispatch()}


def _threads() -> int:
    """Return how many threads the linear algebra uses."""
    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


def _dispatch() -> list[str]:
    """Return the instruction sets that NumPy found beyond its baseline."""
    described: Any = np.show_config(mode="dicts")
    return list((described or {}).get("SIMD Extensions", {}).get("found", []))
