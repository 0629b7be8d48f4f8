"""What a measurement of steps found: as data, and as the table that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["PeerTime", "StepTime", "StepsResult", "Target", "targets"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of a step of mirror descent on fair AUC.

    Attributes
    ----------
    engine, dtype : str
        Array engine and precision.
    runs : int
        Runs R that one solve carries.
    step, run_step : float
        Median microseconds of a step of all runs, and the same divided by R.
    spread : (float, float)
        Quartiles of the step over the rounds.
    products : float
        Median microseconds of the two matrix products of a step alone: the scores, (R, d) times (d, B), and the
        pullback, (R, B) times (B, d).
    """

    engine: str
    dtype: str
    runs: int
    step: float
    run_step: float
    spread: tuple[float, float]
    products: float


@dataclass(frozen=True, slots=True)
class PeerTime:
    """Time of a step of another package, with one run.

    Attributes
    ----------
    package, version, method : str
        What was measured.
    step : float
        Median microseconds of a step.
    spread : (float, float)
        Quartiles over the rounds.
    ratio : float or None
        Median over the rounds of this step's time divided by that of minmaxcon's with NumPy in float32; None where that
        was not measured.
    """

    package: str
    version: str
    method: str
    step: float
    spread: tuple[float, float]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Target:
    """What is aimed at on a quiet machine, and what was found.

    Attributes
    ----------
    name : str
        What is meant.
    aim : str
        The aim in words.
    found : float
        The number.
    met : bool
        Whether it meets the aim.
    """

    name: str
    aim: str
    found: float
    met: bool


@dataclass(frozen=True, eq=False, slots=True)
class StepsResult:
    """What :func:`bench_steps` found.

    Attributes
    ----------
    steps : list of StepTime
        By engine, precision and number of runs.
    peers : list of PeerTime
        Other packages.
    targets : list of Target
        Those for which there is a number.
    notes : list of str
        What the reader must know to read the numbers rightly: whether the machine was busy, what is missing.
    settings, machine, versions : dict
        What is needed to repeat them.
    """

    steps: list[StepTime]
    peers: list[PeerTime]
    targets: list[Target]
    notes: list[str]
    settings: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON knows it."""
        return asdict(self)

    def table(self) -> str:
        """Return the table that ``minmaxcon bench steps`` prints."""
        return "\n".join(_lines(self)) + "\n"


def targets(steps: Sequence[StepTime], peers: Sequence[PeerTime]) -> list[Target]:
    """Return the aims for NumPy in float32 for which there is a number."""
    own = {one.runs: one for one in steps if (one.engine, one.dtype) == ("numpy", "float32")}
    found = []
    if 1 in own:
        step = own[1].step
        found.append(Target("us a step, R = 1", "at most 100", step, step <= 100.0))
    if 256 in own:
        step = own[256].run_step
        found.append(Target("us a run-step, R = 256", "at most 2", step, step <= 2.0))
    ratios = [one.ratio for one in peers if one.package == "cooper-optim" and one.ratio is not None]
    if ratios:
        found.append(Target("times as fast as Cooper, R = 1", "at least 5", min(ratios), min(ratios) >= 5.0))
    return found


def _lines(result: StepsResult) -> Iterator[str]:
    settings, machine = result.settings, result.machine
    yield (
        f"Linear fair AUC: batch {settings['batch_size']}, {settings['features']} dense features, "
        f"{settings['step_rule']} steps, one thread"
    )
    load = "unknown" if machine["load_average"] is None else f"{machine['load_average']:.2f}"
    yield f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, load average {load}"
    names = ("minmaxcon", "python", "numpy", "torch")
    yield ", ".join(f"{name} {result.versions[name]}" for name in names)
    yield ""
    head = ("us a step", "quartiles", "us a run-step", "two products", "step/products")
    yield f"{'engine':<8}{'precision':<11}{'R':>5}{head[0]:>12}{head[1]:>18}{head[2]:>15}{head[3]:>14}{head[4]:>15}"
    last = None
    for one in result.steps:
        kind = (one.engine, one.dtype)
        shown = kind if kind != last else ("", "")
        last = kind
        yield (
            f"{shown[0]:<8}{shown[1]:<11}{one.runs:>5,}{one.step:>12,.1f}{_spread(one.spread):>18}"
            f"{one.run_step:>15,.2f}{one.products:>14,.1f}{one.step / one.products:>15.1f}"
        )
    if result.peers:
        yield ""
        yield "Other packages, R = 1, the same mini-batches and constraints (torch, float32, autograd):"
        yield f"{'package':<31}{'method':<29}{'us a step':>10}{'quartiles':>18}{'times':>8}"
        for peer in result.peers:
            ratio = "" if peer.ratio is None else f"{peer.ratio:.1f}"
            package = f"{peer.package} {peer.version}"
            yield f"{package:<31}{peer.method:<29}{peer.step:>10,.1f}{_spread(peer.spread):>18}{ratio:>8}"
        yield "times: over minmaxcon's step (numpy, float32, R = 1); the median over the rounds"
    if result.targets:
        yield ""
        yield "Targets on a quiet machine (numpy, float32):"
        for target in result.targets:
            yield f"  {target.name:<32}{target.aim:<13}{target.found:>8.2f}  {'met' if target.met else 'not met'}"
    if result.notes:
        yield ""
        yield from result.notes


def _spread(spread: tuple[float, float]) -> str:
    return f"{spread[0]:,.1f} - {spread[1]:,.1f}"
