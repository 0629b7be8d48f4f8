"""Microseconds of a step, beside the matrix products that it cannot do without and beside other packages.

All contestants take turns in one process: every round visits each of them for the same short time, and the medians over
the rounds are reported. A machine that is busy for a while then slows all of them alike, and ratios hold.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from tqdm import tqdm

from minmaxcon.arrays import namespace
from minmaxcon.core import MinMaxProblem, Position, Start
from minmaxcon.errors import InvalidInput, MinMaxConError
from minmaxcon.oracles import SMD
from minmaxcon.registry import plugin, plugin_names
from minmaxcon.results import describe_machine, load_average, one_thread, versions
from minmaxcon_problems.fair_auc.labelled import LabelledData

from .bench_result import BenchResult
from .peers import Peer, installed_peers

__all__ = ["PeerTime", "ProblemTime", "StepTime", "StepsResult", "Target", "bench_steps", "targets"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """Median microseconds of a step of mirror descent with R runs, the same by run, and quartiles over the rounds.

    ``products`` are those of the two matrix products of a step alone: the scores, (R, d) times (d, B), and the
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
class ProblemTime:
    """Median microseconds of a step of one problem, interpreted and compiled, with one run in float64.

    ``ratio`` is the median over the rounds of the first divided by the second, ``compiling`` the seconds that the first
    compiled block took.
    """

    problem: str
    interpreted: float
    compiled: float
    ratio: float
    compiling: float


@dataclass(frozen=True, slots=True)
class PeerTime:
    """Median microseconds of a step of another package, with one run, and their quartiles over the rounds.

    ``ratio`` is the median over the rounds of this step's time divided by that of minmaxcon's with NumPy in float32;
    None where that was not measured.
    """

    package: str
    version: str
    method: str
    step: float
    spread: tuple[float, float]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Target:
    """An aim on a quiet machine, in words, the number that was found, and whether it meets the aim."""

    name: str
    aim: str
    found: float
    met: bool


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StepsResult(BenchResult):
    """The times of a measurement, and of all problems where JAX is installed.

    Beside them stand the aims, notes on a busy machine and missing peers, and what repeats the measurement.
    """

    steps: list[StepTime]
    problems: list[ProblemTime]
    peers: list[PeerTime]
    targets: list[Target]

    def table(self) -> str:
        """Return the table that ``minmaxcon bench steps`` prints."""
        return "\n".join(_lines(self)) + "\n"


def targets(steps: Sequence[StepTime], peers: Sequence[PeerTime]) -> list[Target]:
    """Return the aims for NumPy and for compiled steps, in float32, for which there is a number."""
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
    fast = {one.runs: one for one in steps if (one.engine, one.dtype) == ("jax", "float32")}
    if 1 in own and 1 in fast:
        gain = own[1].step / fast[1].step
        found.append(Target("compiled over interpreted, R = 1", "at least 6", gain, gain >= 6.0))
        if ratios:
            gain *= min(ratios)
            found.append(Target("compiled over Cooper, R = 1", "at least 25", gain, gain >= 25.0))
    if 256 in fast:
        over = fast[256].step / fast[256].products
        found.append(Target("compiled / products, R = 256", "at most 2.5", over, over <= 2.5))
    return found


def _lines(result: StepsResult) -> Iterator[str]:
    settings, machine = result.settings, result.machine
    yield (
        f"Linear fair AUC: batch {settings['batch_size']}, {settings['features']} dense features, "
        f"{settings['step_rule']} steps, one thread"
    )
    load = "unknown" if machine["load_average"] is None else f"{machine['load_average']:.2f}"
    yield f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, load average {load}"
    names = ("minmaxcon", "python", "numpy", "torch", "jax")
    yield ", ".join(f"{name} {result.versions[name]}" for name in names if result.versions.get(name))
    yield ""
    head = ("us a step", "quartiles", "us a run-step", "two products", "step/products")
    yield f"{'engine':<8}{'precision':<11}{'R':>5}{head[0]:>12}{head[1]:>18}{head[2]:>15}{head[3]:>14}{head[4]:>15}"
    last = None
    for step in result.steps:
        kind = (step.engine, step.dtype)
        shown = kind if kind != last else ("", "")
        last = kind
        yield (
            f"{shown[0]:<8}{shown[1]:<11}{step.runs:>5,}{step.step:>12,.1f}{_spread(step.spread):>18}"
            f"{step.run_step:>15,.2f}{step.products:>14,.1f}{step.step / step.products:>15.1f}"
        )
    if result.problems:
        yield ""
        yield "All problems, R = 1, batch 100, float64 (interpreted by NumPy, compiled by JAX):"
        yield f"{'problem':<18}{'us interpreted':>15}{'us compiled':>13}{'times':>8}{'s to compile':>14}"
        for one in result.problems:
            yield (
                f"{one.problem:<18}{one.interpreted:>15,.1f}{one.compiled:>13,.1f}{one.ratio:>8.1f}{one.compiling:>14.2f}"
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
        yield "Targets on a quiet machine (float32):"
        for target in result.targets:
            yield f"  {target.name:<34}{target.aim:<13}{target.found:>8.2f}  {'met' if target.met else 'not met'}"
    if result.notes:
        yield ""
        yield from result.notes


def _spread(spread: tuple[float, float]) -> str:
    return f"{spread[0]:,.1f} - {spread[1]:,.1f}"


_KINDS = {
    "numpy": ("float32", "float64"),
    "torch": ("float32",),
    "jax": ("float32", "float64"),
}
_BLOCK = 100  # steps between two looks at the clock, fewer where runs are many
_QUIET = 0.5  # a load average up to which a machine counts as quiet


@dataclass(slots=True)
class _Contestant:
    """Something to measure: ``block()`` makes some steps and returns how many.

    ``times`` are microseconds a step, ``first`` the seconds of the first block.
    """

    block: Callable[[], int]
    times: list[float] = field(default_factory=list)
    first: float = 0.0

    def visit(self, seconds: float) -> None:
        steps, begin = 0, time.perf_counter()
        while True:
            steps += self.block()
            elapsed = time.perf_counter() - begin
            if elapsed >= seconds:
                break
        self.times.append(1e6 * elapsed / steps)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.quantile(self.times, (0.25, 0.75)).tolist()
        return low, high


def bench_steps(
    *,
    seconds: float = 30.0,
    runs: Sequence[int] = (1, 16, 256, 1024),
    engines: Sequence[str] | None = None,
    peers: bool = True,
    batch_size: int = 100,
    features: int = 123,
    rows: int = 20_000,
    rounds: int = 15,
    seed: int = 0,
    progress: bool = False,
) -> StepsResult:
    """Measure microseconds a step of linear fair AUC with adaptive steps, on one thread.

    ``seconds`` are shared evenly by all that is measured, each visited at least once in every one of the ``rounds``
    over which medians are taken. Each number of ``runs`` is one solve; installed ``peers`` see the same mini-batches.
    ``engines`` are those of ``numpy``, ``torch`` and ``jax`` that are installed; with ``jax`` all problems are measured
    beside, interpreted and compiled.
    The data are synthetic, of dense features, and 70% of the rows train. ``progress`` shows a bar on standard error
    that counts the rounds, where that is a terminal. Raises InvalidInput for a number out of range, UnknownName where
    the fair AUC problem is not installed.
    """
    if not (np.isfinite(seconds) and seconds > 0):
        raise InvalidInput("seconds", seconds, "must be positive and finite.")
    least = {"batch_size": (batch_size, 1), "features": (features, 1), "rows": (rows, 40), "rounds": (rounds, 1)}
    for name, (value, limit) in least.items():
        if value < limit:
            raise InvalidInput(name, value, f"must be at least {limit}.")
    runs = tuple(dict.fromkeys(runs))
    if not runs or min(runs) < 1:
        raise InvalidInput("runs", runs, "must be whole numbers of at least 1, such as 1,16,256,1024.")
    before = load_average()
    with one_thread():
        data = _synthetic(rows, features, seed)
        names = _engines(engines)
        problems = {(name, dtype): _problem(data, name, dtype) for name in names for dtype in _KINDS[name]}
        by_torch = problems.get(("torch", "float32")) or _problem(data, "torch", "float32")
        found, missing = installed_peers(by_torch) if peers else ([], [])
        ours: dict[tuple[str, str, int], _Contestant] = {}
        limits: dict[tuple[str, str, int], _Contestant] = {}
        for (engine, dtype), problem in problems.items():
            for count in runs:
                ours[engine, dtype, count] = _Contestant(_mirror_descent(problem, count, batch_size, seed))
                limits[engine, dtype, count] = _Contestant(_products(problem, count, batch_size, seed))
        theirs = [_Contestant(_peer(peer, by_torch, batch_size, seed)) for peer in found]
        pairs, absent = _pairs(batch_size, seed) if "jax" in names else ({}, [])
        missing = [*missing, *absent]
        contestants = [*ours.values(), *limits.values(), *theirs, *(one for pair in pairs.values() for one in pair)]
        share = _measure(contestants, seconds, rounds, progress)
        environment = versions() | {peer.package: peer.version for peer in found}
    steps = [
        StepTime(*key, one.median, one.median / key[2], one.quartiles, limits[key].median) for key, one in ours.items()
    ]
    own = ours.get(("numpy", "float32", 1))
    times = [_peer_time(peer, one, own) for peer, one in zip(found, theirs, strict=True)]
    machine = {**describe_machine(), "load_average": before, "load_average_after": load_average(), "own_share": share}
    return StepsResult(
        steps=steps,
        problems=[_problem_time(name, *pair) for name, pair in pairs.items()],
        peers=times,
        targets=targets(steps, times),
        notes=[*_busy(before, share, machine["cores"]), *missing],
        settings={
            "seconds": seconds,
            "rounds": rounds,
            "runs": runs,
            "engines": names,
            "batch_size": batch_size,
            "features": features,
            "rows": rows,
            "seed": seed,
            "step_rule": "adaptive",
        },
        machine=machine,
        versions=environment,
    )


def _measure(contestants: Sequence[_Contestant], seconds: float, rounds: int, progress: bool) -> float:
    """Let all take turns; return the share of the time that this process had a processor."""
    for one in contestants:
        begin = time.perf_counter()
        one.block()  # caches fill, and what is made at the first step is made
        one.first = time.perf_counter() - begin
    each = seconds / (rounds * len(contestants))
    wall, own = time.perf_counter(), time.process_time()
    for _ in tqdm(range(rounds), desc="rounds", leave=False, disable=None if progress else True):
        for one in contestants:
            one.visit(each)
    return round((time.process_time() - own) / (time.perf_counter() - wall), 3)


def _engines(wanted: Sequence[str] | None) -> list[str]:
    if wanted is None:
        return [name for name in _KINDS if find_spec(name) is not None]
    for name in wanted:
        if name not in _KINDS:
            raise InvalidInput("engines", name, f"must be some of {', '.join(_KINDS)}, separated by commas.")
    return list(dict.fromkeys(wanted))


def _pairs(batch_size: int, seed: int) -> tuple[dict[str, tuple[_Contestant, _Contestant]], list[str]]:
    """Return every problem that can be loaded, interpreted and compiled, and a sentence for each other one."""
    pairs, missing = {}, []
    for name in plugin_names():
        try:
            both = [plugin(name).load(engine=engine) for engine in ("numpy", "jax")]
        except (TypeError, MinMaxConError) as error:  # its data or an option are not there
            missing.append(f"{name} is not measured: {error}")
            continue
        first, second = (_Contestant(_mirror_descent(one, 1, batch_size, seed)) for one in both)
        pairs[name] = first, second
    return pairs, missing


def _problem_time(name: str, slow: _Contestant, fast: _Contestant) -> ProblemTime:
    ratio = statistics.median(one / other for one, other in zip(slow.times, fast.times, strict=True))
    return ProblemTime(name, slow.median, fast.median, ratio, fast.first)


def _synthetic(rows: int, features: int, seed: int) -> LabelledData:
    """Return normal features with a signal, and every combination of label and group for a quarter of the rows."""
    rng = np.random.default_rng(seed)
    index = np.arange(rows)
    label, group = ((1 - 2 * (index // every % 2)).astype(np.int8) for every in (1, 2))
    values = rng.standard_normal((rows, features)) + 0.2 * label[:, None] * rng.standard_normal(features)
    return LabelledData(values, label, group, tuple(f"x{j}" for j in range(features)), name="synthetic")


def _problem(data: LabelledData, engine: str, dtype: str) -> MinMaxProblem:
    return plugin("fair_auc").load(data=data, metric="inter_group", kappa=0.1, engine=engine, dtype=dtype)


def _start(seed: int) -> Position:
    """Return the position that all contestants read the data from: they see the same mini-batches."""
    return Position.start(np.random.default_rng(seed))


def _mirror_descent(problem: MinMaxProblem, runs: int, batch_size: int, seed: int) -> Callable[[], int]:
    several = problem if runs == 1 else problem.with_bounds(*[np.linspace(1.05, 2.0, runs)] * len(problem.constraints))
    level = several.at_level(np.full(runs, 0.5))
    # As a solve has them, fewer where runs are many: a visit is no shorter than a block.
    steps = min(SMD().block_of(level), _block(runs, 6400))
    oracle = SMD(steps=10**12, batch_size=batch_size, block=steps)
    state = oracle.begin(level, Start(several.start_point(runs), None, _start(seed)))

    def block() -> int:
        nonlocal state
        state = oracle.advance(state)
        return steps

    return block


def _products(problem: MinMaxProblem, runs: int, batch_size: int, seed: int) -> Callable[[], int]:
    rng, xp = np.random.default_rng(seed), namespace(problem.data.like)
    steps = _block(runs)
    features = [batch["features"] for batch in problem.data.draw(_start(seed), steps, batch_size)[0]]
    weights, slopes = (
        xp.asarray(rng.standard_normal((runs, size)), problem.data.like) for size in features[0].shape[::-1]
    )

    def block() -> int:
        for one in features:
            weights @ one.T
            slopes @ one
        return steps

    return block


def _peer(peer: Peer, problem: MinMaxProblem, batch_size: int, seed: int) -> Callable[[], int]:
    position, step = _start(seed), peer.step

    def block() -> int:
        nonlocal position
        batches, position = problem.data.draw(position, _BLOCK, batch_size)
        for batch in batches:
            step(batch)
        return _BLOCK

    return block


def _block(runs: int, most: int = _BLOCK) -> int:
    return max(1, min(most, 6400 // runs))


def _peer_time(peer: Peer, one: _Contestant, own: _Contestant | None) -> PeerTime:
    ratio = None
    if own is not None:
        ratio = statistics.median(theirs / ours for theirs, ours in zip(one.times, own.times, strict=True))
    return PeerTime(peer.package, peer.version, peer.method, one.median, one.quartiles, ratio)


def _busy(load: float | None, share: float, cores: Any) -> Iterator[str]:
    if (load is not None and load > _QUIET) or share < 0.97:
        shown = "unknown" if load is None else f"{load:.2f}"
        yield (
            f"The machine was not quiet: load average {shown} on {cores} cores before the first measurement, and this "
            f"process had a processor {share:.0%} of the time. Ratios hold, as all took turns; times may be too long."
        )
