"""Compiled blocks of steps: the trajectories of NumPy for every problem, compiled once a shape, and clear refusals."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.core.compiled import forget_changed, kept_with, padded
from minmaxcon.oracles import SMD, ExtraGradient, VarianceReduced
from minmaxcon.testing import check_problem
from minmaxcon.testing.constraint import constraint_part
from tests import cases
from tests.figures import Figure

pytest.importorskip("jax", reason="the extra jax is not installed")

PROBLEMS = (
    *("cvar_portfolio", "fair_auc", "fair_regression", "group_dro", "group_parity", "neyman_pearson"),
    *("robust_diet", "toy", "worst_group"),
)


def trajectory(problem: mm.MinMaxProblem, oracle: Any, levels: Any, seed: int = 3) -> list[Any]:
    """Return the states after each block of a query."""
    start = mm.Start(problem.start_point(len(levels)), None, mm.Position.start(np.random.default_rng(seed)))
    states = [oracle.begin(problem.at_level(np.asarray(levels, dtype=float)), start)]
    while not oracle.finished(states[-1]):
        states.append(oracle.advance(states[-1]))
    return states


def apart(one: Any, other: Any) -> float:
    """Return the largest difference of two states relative to the size of each part."""
    parts = [(s.x, s.y.weights, s.y.inner, s.sums / s.weight) for s in (one, other)]
    return max(float((np.abs(a - b) / (1.0 + np.abs(a))).max(initial=0.0)) for a, b in zip(*parts, strict=True))


def both(problem: str, oracle: Any, levels: Any, **options: Any) -> float:
    found = [
        trajectory(mm.load_problem(problem, engine=engine, **options), oracle, levels)[-1]
        for engine in ("numpy", "jax")
    ]
    assert type(found[1].x) is np.ndarray
    assert found[0].steps == found[1].steps
    return apart(*found)


@pytest.mark.rel
@pytest.mark.parametrize(
    "problem, method",
    [*((name, SMD) for name in PROBLEMS), *((name, ExtraGradient) for name in ("fair_auc", "group_dro", "toy"))],
)
def test_trajectories_are_those_of_numpy(problem: str, method: Any, figure: Figure) -> None:
    """2,000 steps within 1e-10. On the steep tail loss of cvar_portfolio the adaptive steps of SMD are unstable: a
    change in the last bit grows to a percent, whatever the engine, so it takes the steps of the theorem there."""
    rule = "theory" if problem == "cvar_portfolio" else "adaptive"
    found = both(problem, method(steps=2000, step_rule=rule), [0.5])
    figure.largest("of compiled steps from NumPy's", found)
    assert found < 1e-10


@pytest.mark.parametrize("rule", ["adaptive", "inverse_sqrt", "theory"])
def test_step_rules_and_runs(rule: str) -> None:
    """Five runs take the place of six; a query whose length is no multiple of a block ends where it should."""
    assert padded(5) == 6
    sizes = mm.InverseSqrt(np.linspace(0.02, 0.2, 5)) if rule == "inverse_sqrt" else rule  # one for each run
    assert both("toy", SMD(steps=130, step_rule=sizes, batch_size=7), np.linspace(0.2, 1.0, 5), bound=[1.0] * 5) < 1e-12


def variance_reduced(problem: str, epochs: int, levels: Any, **options: Any) -> float:
    """Return the largest difference of iterates, best points and bounds of NumPy's and compiled epochs."""
    oracle = VarianceReduced(epochs=epochs, relative_accuracy=0.0)
    one, other = (
        trajectory(mm.load_problem(problem, engine=engine, **options), oracle, levels)[-1]
        for engine in ("numpy", "jax")
    )
    assert (one.steps, one.samples) == (other.steps, other.samples)
    parts = [(s.x, s.y.weights, s.best.x, s.best.upper, s.best.lower, s.size.gamma) for s in (one, other)]
    return max(float((np.abs(a - b) / (1.0 + np.abs(a))).max(initial=0.0)) for a, b in zip(*parts, strict=True))


def test_epochs_of_variance_reduction() -> None:
    """Pieces that hold and pieces that are undone; five runs take the place of six."""
    assert variance_reduced("toy", 4, np.linspace(0.2, 1.0, 5), bound=[1.0] * 5) < 1e-12


@pytest.mark.rel
@pytest.mark.parametrize("problem", PROBLEMS)
def test_epochs_of_variance_reduction_of_all_problems(problem: str) -> None:
    """On the steep tail loss of cvar_portfolio a change in the last bit grows, whatever the engine."""
    assert variance_reduced(problem, 8, [0.5]) < (1e-5 if problem == "cvar_portfolio" else 1e-10)


def test_a_method_that_compiles_nothing_says_so() -> None:
    """The automatic choice makes exact passes on small data: it is told, and gives NumPy's bits."""
    with pytest.warns(
        mm.EngineWarning, match=r'^engine="jax" .* SFLS\(oracle=MirrorProx\).* SFLS\(SMD\(\)\), or leave the engine out'
    ):
        found = mm.solve(mm.load_problem("toy", engine="jax"), seed=0)
    np.testing.assert_array_equal(found.x, mm.solve(mm.load_problem("toy"), seed=0).x)


@pytest.mark.parametrize("name", PROBLEMS)
def test_caches_are_no_change(name: str) -> None:
    """What a family keeps of passes and batches does not make it another one, whose blocks would be compiled anew."""
    problem = mm.load_problem(name)
    family, x = problem.family, problem.start_point(1)
    forget_changed(family, problem.primal)
    kept_with(family, "made", object)
    for batch_size in (5, 7):
        (batch,) = problem.data.draw(mm.Position.start(np.random.default_rng(0)), 1, batch_size)[0]
        family.evaluate(x, batch).pullback(np.ones((1, 1 + len(problem.constraints))), np.zeros((1, inner(family))))
    mm.solve(problem, mm.SFLS(levels=2), seed=0, budget=40)
    forget_changed(family, problem.primal)
    assert "made" in vars(family)["_kept"]


def inner(family: mm.ConstraintFamily) -> int:
    return sum(0 if one.dual is None else one.dual.dimension for one in family.constraints)


def test_numbers_of_runs() -> None:
    assert [padded(runs) for runs in (1, 2, 3, 4, 5, 7, 9, 13, 256, 257)] == [1, 2, 3, 4, 6, 8, 12, 16, 256, 384]


class Square(mm.StochasticMinMaxConstraint):
    """Terms alone: the gradient is automatic."""

    convex = True

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        return ((x[..., None, :] - batch["z"]) ** 2).sum(-1).mean(-1), None


class Sum(mm.StochasticMinMaxConstraint):
    convex = True
    dual = mm.interval(1.0)

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        xp = namespace(x)
        return 0.0 * x[..., 0], xp.sum(x, keepdims=True) + batch["z"].mean()


class Branch(Sum):
    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        mean, moment = super().terms(x, batch)
        return (mean, moment) if (x > 0).any() else (mean, 2.0 * moment)


class Writes(Sum):
    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        x[..., 0] = 0.0
        return super().terms(x, batch)


class ByNumPy(Sum):
    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        return 0.0 * x[..., 0], np.maximum(x, 0.0)[..., :1]


class Mask(Sum):
    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        return 0.0 * x[..., 0], batch["z"][batch["z"] > 0].sum() * x[..., :1]


def problem(engine: str, constraint: type = Sum, dtype: str = "float64", rows: int = 300) -> mm.MinMaxProblem:
    z = np.random.default_rng(0).normal(0.5, 1.0, (rows, 3))
    limit = constraint()
    limit.bound = 0.8
    return mm.MinMaxProblem(
        Square(), [limit], mm.Ball(3, 2.0), mm.Finite({"z": z}, engine=engine, dtype=dtype), start=[-0.2] * 3
    )


def test_terms_alone_are_solved() -> None:
    """Automatic derivatives of JAX give what torch's give, in steps, exact passes and bounds."""
    found = [mm.solve(problem(engine), mm.SFLS(SMD(steps=60), levels=2), seed=1) for engine in ("torch", "jax")]
    assert type(found[1].x) is np.ndarray
    assert found[0].status == found[1].status
    np.testing.assert_allclose(found[1].x, found[0].x, rtol=1e-8)
    np.testing.assert_allclose(found[1].certificate.lower, found[0].certificate.lower, rtol=1e-8)


def test_one_compiled_block_serves_all_levels() -> None:
    made = problem("jax")
    for level in (2.0, 3.0):
        for steps in (100, 130):
            trajectory(made, SMD(steps=steps, batch_size=5), [level])
    blocks = [key for key in vars(made.family)["_kept"] if isinstance(key, tuple)]
    assert len(blocks) == 1
    other = copy.deepcopy(made)
    assert vars(other.family)["_kept"] == {}
    assert pickle.loads(pickle.dumps(made.data)).engine == "jax"


def test_what_is_kept_with_a_family_is_bounded() -> None:
    """The oldest is made anew, the others are there."""
    family, made = problem("jax").family, []
    for key in [*range(40), 39, 30, 0]:
        assert kept_with(family, key, lambda key=key: made.append(key) or -key) == -key
    assert made == [*range(40), 0]
    assert len(vars(family)["_kept"]) <= 16


def test_single_precision_stays_single() -> None:
    states = trajectory(problem("jax", dtype="float32"), SMD(steps=50, batch_size=5), [2.0])
    assert states[-1].x.dtype == np.float32
    assert states[-1].sums.dtype == np.float64


def test_proximal_terms_are_no_constants() -> None:
    """Another centre and weight meet the same compiled block."""
    ends = []
    for engine in ("torch", "jax"):
        made = problem(engine)
        for center, weight in (([0.1, 0.0, 0.2], 2.0), ([-0.5, 0.3, 0.0], 0.7)):
            end = trajectory(made.with_proximal(center, weight), SMD(steps=100, batch_size=5), [2.0])[-1]
        ends.append(np.asarray(end.x))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-10)


@pytest.mark.parametrize(
    "constraint, says",
    {Branch: "boolean", Writes: "immutable", ByNumPy: "NumPy|numpy", Mask: "boolean"}.items(),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_traced_is_named(constraint: type, says: str) -> None:
    with pytest.raises(mm.Unsupported, match=says) as caught:
        trajectory(problem("jax", constraint), SMD(steps=10, batch_size=5), [2.0])
    message = str(caught.value)
    assert f"{constraint.__name__}.terms (test_compiled.py:" in message
    assert "namespace(x)" in message
    assert ". Compute from" in message
    assert "\n" not in message
    assert len(message) < 600


def test_checks_see_functions_as_the_solvers_do() -> None:
    """Terms alone have their gradient from JAX in the checks too, for one point and for several."""
    z, x = np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=(2, 3))
    function = constraint_part(Square(), mm.Ball(3, 2.0), mm.Finite({"z": z}, engine="jax")).subject
    for points in (x, x[0]):
        found = function.evaluate(points)
        np.testing.assert_allclose(found.F, ((points[..., None, :] - z) ** 2).sum(-1).mean(-1), rtol=1e-12)
        slope = found.pullback(np.full(points.shape[:-1], 0.5), np.zeros((*points.shape[:-1], 0)))
        np.testing.assert_allclose(slope, points - z.mean(0), rtol=1e-12)


@pytest.mark.rel
def test_all_checks_hold_for_terms_alone() -> None:
    report = check_problem(problem("jax"))
    assert report.passed, str(report)


def test_values_that_are_not_finite_are_named() -> None:
    """The run that stops being finite is frozen, and the sentence is that of the interpreted steps."""
    failures = []
    for engine in ("torch", "jax"):
        made = problem(engine)
        spoilt = np.random.default_rng(0).normal(0.5, 1.0, (300, 3))
        spoilt[7] = 1e200
        data = mm.Finite({"z": spoilt}, engine=engine)
        bad = mm.MinMaxProblem(made.objective, made.constraints, made.primal, data, start=[-0.2] * 3)
        failures.append(trajectory(bad, SMD(steps=300, batch_size=5), [2.0])[-1].failure)
    assert failures[0] == failures[1]
    assert failures[0][0] is not None


def test_streams_are_compiled_too() -> None:
    rows = [{"z": row} for row in np.random.default_rng(0).normal(0.5, 1.0, (470, 3))]
    ends = []
    for engine in ("torch", "jax"):
        limit = Sum()
        limit.bound = 0.8
        made = mm.MinMaxProblem(Square(), [limit], mm.Ball(3, 2.0), mm.Stream(rows, engine=engine), start=[-0.2] * 3)
        ends.append(trajectory(made, ExtraGradient(steps=100, batch_size=5), [2.0])[-1])
    assert ends[0].steps == ends[1].steps == 47
    assert ends[1].exhausted
    np.testing.assert_allclose(ends[1].x, np.asarray(ends[0].x), rtol=1e-10)


def test_a_stream_too_short_for_a_step_leaves_the_start() -> None:
    rows = [{"z": row} for row in np.random.default_rng(0).normal(0.5, 1.0, (7, 3))]
    for engine in ("torch", "jax"):
        limit = Sum()
        limit.bound = 0.8
        made = mm.MinMaxProblem(Square(), [limit], mm.Ball(3, 2.0), mm.Stream(rows, engine=engine), start=[-0.2] * 3)
        end = trajectory(made, ExtraGradient(steps=100, batch_size=5), [2.0])[-1]
        assert (end.steps, end.exhausted) == (0, True)
        np.testing.assert_array_equal(np.asarray(end.x), [[-0.2] * 3])


@pytest.mark.rel
@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_another_device_gives_the_same(engine: str) -> None:
    """``cpu:0`` is this machine by the path that an accelerator takes: everything that is computed is compiled."""
    known = mm.load_problem("toy")
    found = []
    for chosen in ({}, {"engine": engine, "device": "cpu:0"}):
        data = mm.Finite(known.data.arrays, **chosen)
        made = mm.MinMaxProblem(known.objective, known.constraints, known.primal, data, start=known.start)
        found.append(mm.solve(made, mm.SFLS(SMD(), levels=3), seed=0))
    np.testing.assert_allclose(np.asarray(found[1].x), found[0].x, rtol=1e-10)
    assert found[1].certificate.lower == pytest.approx(found[0].certificate.lower, rel=1e-10)


def test_devices() -> None:
    for device in ("nowhere", "cpu:9"):
        with pytest.raises(mm.InvalidInput, match=r'JAX finds no such device on this machine; use .*"cpu"'):
            mm.Finite({"z": [1.0]}, engine="jax", device=device)
    with pytest.raises(mm.InvalidInput, match=r"torch cannot use it .*; use .cpu.\."):
        mm.Finite({"z": [1.0]}, engine="torch", device="nowhere")
    for engine in ("numpy", "torch", "jax"):
        for device in (3, None, ["cpu"], "meta"):
            with pytest.raises(mm.InvalidInput, match=r"device=.* must be a name such as"):
                mm.Finite({"z": [1.0]}, engine=engine, device=device)  # type: ignore[arg-type]  # the mistake tried
    for none in (["jax"], None, 3):
        with pytest.raises(mm.InvalidInput, match="unknown array engine; use one of numpy, torch, jax"):
            mm.Finite({"z": [1.0]}, engine=none)  # type: ignore[arg-type]  # the mistake tried
    with pytest.raises(mm.InvalidInput, match='"cpu" alone'):
        mm.Finite({"z": [1.0]}, device="cuda")


@pytest.mark.rel
def test_networks_are_compiled() -> None:
    """The paper's network, traced, against torch's autograd."""
    ends = []
    for engine in ("torch", "jax"):
        made = mm.load_problem("fair_auc", model="mlp", engine=engine)
        ends.append(trajectory(made, SMD(steps=60, batch_size=20), [0.5])[-1])
    np.testing.assert_allclose(ends[1].x, np.asarray(ends[0].x), rtol=1e-8, atol=1e-10)


class Away(Square):
    """The square of the distance from points that are moved by what the author may change."""

    def __init__(self) -> None:
        self.center = np.zeros(3)

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        return super().terms(x - self.center, batch)


class AwayByHand(Away):
    """The same with a gradient of its own, which is compiled within the steps alone."""

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        away = x[..., None, :] - self.center - batch["z"]
        return mm.Evaluation((away**2).sum(-1).mean(-1), x[..., :0], lambda y, _: 2.0 * y[..., None] * away.mean(-2))


def moved(function: type) -> mm.MinMaxProblem:
    limit = Sum()
    limit.bound = 5.0
    z = np.random.default_rng(0).normal(0.5, 1.0, (60, 3))
    return mm.MinMaxProblem(function(), [limit], mm.Ball(3, 2.0), mm.Finite({"z": z}, engine="jax"))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda problem: problem.objective.center.__setitem__(..., 0.5),
    "anew": lambda problem: setattr(problem.objective, "center", np.full(3, 0.5)),
    "set": lambda problem: setattr(problem.primal, "radius", 0.1),
}


@pytest.mark.parametrize("change", ["in place", "anew"])
def test_values_are_those_of_the_functions_as_they_are_now(change: str) -> None:
    """A compiled function holds what it has read; the problem of that time must not be solved instead."""
    problem, x = moved(Away), np.full((1, 3), 0.2)
    assert isinstance(problem.data, mm.Finite)
    for center in (0.0, 0.5):
        expected = ((x - center - problem.data.arrays["z"]) ** 2).sum(-1).mean()
        assert problem.at_level(0.0).values(x)[0, 0] == pytest.approx(expected, rel=1e-12)
        CHANGES[change](problem)


@pytest.mark.parametrize("change", cases.promises(CHANGES, ["in place"]))
def test_steps_are_those_of_the_problem_as_it_is_now(change: str) -> None:
    problem, fresh, oracle = moved(AwayByHand), moved(AwayByHand), SMD(steps=20, batch_size=5)
    before = trajectory(problem, oracle, [2.0])[-1]
    for one in (problem, fresh):
        CHANGES[change](one)
    after, expected = (trajectory(one, oracle, [2.0])[-1] for one in (problem, fresh))
    np.testing.assert_array_equal(after.x, expected.x)
    assert not np.array_equal(before.x, after.x)


def test_short_steps_are_compiled_in_longer_blocks() -> None:
    """Calling a block takes as long as dozens of short steps; a block of long ones would take too long itself."""
    rows = np.random.default_rng(0).normal(size=(50, 3))

    def steps(oracle: SMD, data: mm.Source, runs: int = 1) -> int:
        level = mm.load_problem("toy", bound=[1.0] * runs).at_level(np.full(runs, 0.5))
        level = dataclasses.replace(level, data=data)
        return oracle.block_of(level)

    compiled, plain = (mm.Finite({"z": rows}, engine=engine) for engine in ("jax", "numpy"))
    assert (steps(SMD(), plain), steps(SMD(), compiled), steps(SMD(block=7), compiled)) == (100, 400, 7)
    # By the number of runs that a compiled block has: 13 to 16 share one.
    assert [steps(SMD(batch_size=2**14), compiled, runs) for runs in (13, 16, 17)] == [400, 400, 100]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted by /proc")
def test_one_thread_holds_jax_too() -> None:
    """Where it computes for the first time within ``one_thread``; what a benchmark says of one thread is of one."""
    program = (
        "import os, pathlib\nfrom minmaxcon.results import one_thread\n"
        "def threads():\n"
        "    names = (path.joinpath('comm').read_text() for path in pathlib.Path('/proc/self/task').iterdir())\n"
        "    return sum('Eigen' in name for name in names)\n"
        "with one_thread():\n"
        "    import jax\n    jax.jit(lambda x: x @ x)(jax.numpy.ones((64, 64))).block_until_ready()\n"
        "print(threads())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() in ("0", "1")
