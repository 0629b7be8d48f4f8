"""Values that stop being finite: the run ends at once, names step and term, keeps its last good point; others go on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.figures import Figure
from tests.problem_library import HalfSquare, Linear, MeanGap
from tests.solvers.averaging.rivals import RIVALS, small

Array = Any

BAD_ROW = 17  # batches that draw this row are poisoned
POISONS = {"nan": np.nan, "inf": np.inf, "minus_inf": -np.inf}


class Poisoned(MeanGap):
    """A mean gap that a marked sample spoils: in F, in G or in the gradient, for runs whose x_1 exceeds a threshold."""

    def __init__(self, where: str, poison: float, above: float = -np.inf, bound: Any = 0.2) -> None:
        super().__init__(bound, name="spoiled")
        self.where, self.poison, self.above = where, poison, above
        self.hits: list[int] = []  # how many rows a batch had that was spoilt; copies share it

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if len(batch["mark"]) > 100 or not bool((batch["mark"] > 0).any()):  # exact passes are spared
            return found
        self.hits.append(len(batch["mark"]))
        spoil = np.where(x[..., 1] > self.above, self.poison, 0.0).astype(x.dtype)
        if self.where == "F":
            return mm.Evaluation(found.F + spoil, found.G, found.pullback)
        if self.where == "G":
            return mm.Evaluation(found.F, found.G + spoil[..., None], found.pullback)
        return mm.Evaluation(found.F, found.G, lambda y, a: found.pullback(y, a) + spoil[..., None])


def poisoned(
    where: str, poison: float, above: float = -np.inf, bound: Any = 0.2, dtype: str = "float64"
) -> mm.MinMaxProblem:
    arrays = {name: cases.arrays()[name] for name in ("points", "costs", "contrast")}
    arrays["mark"] = (np.arange(120) == BAD_ROW).astype(float)
    data = mm.Finite(arrays, dtype=dtype)
    return mm.MinMaxProblem(HalfSquare(), [Poisoned(where, poison, above, bound), Linear(1.0)], mm.Ball(3, 6.0), data)


def first_poisoned_step(problem: mm.MinMaxProblem, seed: int, batch_size: int) -> int:
    position = mm.Position.start(np.random.default_rng(seed))
    batches, _ = problem.data.draw(position, 500, batch_size)
    return next(t for t, batch in enumerate(batches) if (batch["mark"] > 0).any())


@pytest.mark.parametrize(
    "where, poison, rule",
    [(where, poison, "adaptive") for where in ("F", "G", "gradient") for poison in POISONS]
    + [("F", "nan", "inverse_sqrt")],
)
def test_step_and_term_are_named(where: str, poison: str, rule: str) -> None:
    problem = poisoned(where, POISONS[poison])
    named = {"F": "F of 'spoiled'", "G": "G of 'spoiled'", "gradient": "the gradient"}[where]
    step = first_poisoned_step(problem, 0, 2)
    visited: list[int] = []

    def watch(progress: mm.Progress) -> None:
        visited.append(progress.outcome.steps)

    solver = mm.SFLS(oracle=mm.SMD(steps=400, batch_size=2, step_rule=rule))
    solution = mm.solve(problem, solver, seed=0, callbacks=[watch])
    assert solution.status is mm.Status.DIVERGED
    assert solution.reason == f"{named[0].upper()}{named[1:]} is not finite at step {step} of query 1."
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.objective)
    assert solution.feasible  # the start was
    assert visited[-1] <= 100 * (step // 100 + 1)  # it stops with the block in which it happens


@pytest.mark.parametrize("block", [1, 50, 400])
def test_the_last_good_point_is_kept(block: int) -> None:
    problem = poisoned("gradient", np.nan)
    step = first_poisoned_step(problem, 0, 2)
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    found = mm.SMD(steps=400, batch_size=2, block=block).query(problem.at_level(7.0), start)
    last = step // block * block  # the beginning of the block
    clean = mm.SMD(steps=max(last, 1), batch_size=2, block=block).query(problem.at_level(7.0), start)
    for part in (found.x, found.weights, found.scaled, found.next.x, found.next.dual.log_weights):
        assert np.isfinite(part).all()
    if last:
        assert found.next.x.tobytes() == clean.next.x.tobytes()
        assert found.x.tobytes() == clean.x.tobytes()


def test_other_runs_go_on_as_if_nothing_had_happened() -> None:
    """Only runs with a large coordinate are hit; the others keep every bit."""
    problem = poisoned("G", np.inf, above=0.5, bound=[0.2, 0.3, 0.4])
    healthy = poisoned("G", 0.0, above=0.5, bound=[0.2, 0.3, 0.4])
    starts = np.array([[0.0, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, -0.5, 0.0]])
    position = mm.Position.start(np.random.default_rng(1))
    smd = mm.SMD(steps=300, batch_size=2, step_rule=mm.InverseSqrt(1e-4))  # steps too small to cross the threshold
    found, clean = (smd.query(p.at_level([7.0] * 3), mm.Start(starts, None, position)) for p in (problem, healthy))
    assert [failure is None for failure in found.failure] == [True, False, True]
    for j in (0, 2):
        assert found.x[j].tobytes() == clean.x[j].tobytes()
        assert found.next.x[j].tobytes() == clean.next.x[j].tobytes()
        assert found.upper[j] == clean.upper[j]
    assert np.isfinite(found.x[1]).all()


def test_one_run_diverges_and_the_others_are_solved() -> None:
    """In a solve: a run that starts above the threshold diverges, its neighbour ends as it would alone."""
    problem = poisoned("F", np.nan, above=3.5)
    arrays = cases.arrays()
    rows = np.stack([(arrays["contrast"][:, None] * arrays["points"]).mean(axis=0), arrays["costs"].mean(axis=0)])
    far = np.cross(*rows)  # neither constraint sees this direction: strictly feasible, and above the threshold
    starts = np.array([np.zeros(3), 5.0 * far / np.linalg.norm(far)])
    solver = mm.SFLS(oracle=mm.SMD(steps=300, batch_size=40), tolerance=0.05, levels=2)
    both = mm.solve(problem, solver, seed=0, x0=starts)
    alone = mm.solve(problem, solver, seed=0, x0=starts[0])
    assert both.status[1] is mm.Status.DIVERGED
    assert both[0].status is alone.status is not mm.Status.DIVERGED
    assert both[0].objective == pytest.approx(alone.objective, abs=1e-9)


@pytest.mark.parametrize("rule", ["adaptive", "inverse_sqrt"])
def test_a_number_that_is_large_but_finite(rule: str) -> None:
    """1e38 in a gradient: in float32 its square overflows, and the run ends; in float64 it is a number like others."""
    for dtype, statuses in (("float32", {mm.Status.DIVERGED}), ("float64", {mm.Status.SOLVED, mm.Status.BUDGET})):
        problem = poisoned("gradient", 1e38, dtype=dtype)
        solver = mm.SFLS(oracle=mm.SMD(steps=200, batch_size=2, step_rule=rule), levels=1)
        solution = mm.solve(problem, solver, seed=0)
        assert solution.status in statuses
        assert np.isfinite(solution.x).all()
        if dtype == "float32":
            assert "the gradient is not finite at step" in solution.reason.lower()


class Sometimes(HalfSquare):
    """A value that is not finite once, and not again when it is asked for the same batch."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.call, self.calls = call, 0

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        self.calls += len(batch["points"]) == 7
        return mm.Evaluation(found.F + (np.nan if self.calls == self.call else 0.0), found.G, found.pullback)


def test_what_cannot_be_reproduced_still_ends_the_run() -> None:
    problem = replace(cases.quadratic(), objective=Sometimes(150))
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=400, batch_size=7)), seed=0)
    assert solution.status is mm.Status.DIVERGED
    assert "between steps 100 and 200 of query 1" in solution.reason


class Logarithm(mm.StochasticMinMaxConstraint):
    """f(x) = log(x_1 - least) or minus it: not a number left of ``least``, infinite at it."""

    convex = True

    def __init__(self, least: float, bound: Any = 0.0, sign: float = -1.0) -> None:
        self.least, self.bound, self.sign, self.name = least, bound, sign, "logarithm"

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return self.sign * np.log(x[..., 0] - self.least), None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        def pullback(y: Array, _: Array) -> Array:
            slope = np.zeros_like(x)
            slope[..., 0] = self.sign * y / (x[..., 0] - self.least)
            return slope

        return mm.Evaluation(self.terms(x, batch)[0], x[..., :0], pullback)


@pytest.mark.parametrize("solver", cases.SOLVERS)
@pytest.mark.parametrize("least", [1.0, 0.0], ids=["nan", "infinite"])
@pytest.mark.parametrize("where", ["objective", "constraint"])
def test_a_start_whose_values_are_not_finite_is_refused(where: str, least: float, solver: str) -> None:
    problem = replace(cases.quadratic(bound=9.0), start=None)
    part = Logarithm(least, bound=0.5)
    problem = replace(problem, objective=part) if where == "objective" else replace(problem, constraints=[part])
    with pytest.raises(mm.InvalidInput, match=r"^start=.*'logarithm' is not finite there"):
        mm.solve(problem, cases.SOLVERS[solver]())


def test_no_certificate_holds_nan() -> None:
    """A search that visits points where the objective is not finite does not take them for a start."""
    cost = cases.arrays()["costs"].mean(axis=0)
    problem = replace(cases.quadratic(bound=-2.0), objective=Logarithm(-2.0), start=3.0 * cost / np.linalg.norm(cost))
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=300, batch_size=40), levels=4), seed=0)
    certificate = solution.certificate
    assert not np.isnan([certificate.upper, certificate.lower]).any()
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.objective)
    assert solution.feasible == np.isfinite(certificate.upper)


class FiniteAtTheStart(HalfSquare):
    """A value that is not finite but at one point, in exact passes."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        lost = (np.abs(x - 3.0).max(axis=-1) > 1e-9) & (len(batch["points"]) > 100)
        return mm.Evaluation(np.where(lost, np.nan, found.F), found.G, found.pullback)


@pytest.mark.parametrize("solver", cases.SOLVERS)
def test_a_search_ends_where_feasible_points_have_no_objective(solver: str) -> None:
    problem = replace(cases.quadratic(bound=-2.5), objective=FiniteAtTheStart(), start=np.full(3, 3.0))
    chosen = small(solver, steps=60) if solver in RIVALS else cases.SOLVERS[solver]()
    if isinstance(chosen, mm.SFLS):
        chosen.searches = 1
    if isinstance(chosen, mm.IQRC):
        chosen.oracle.searches = 1
    solution = mm.solve(problem, chosen, seed=0)
    assert solution.status is mm.Status.BUDGET
    assert solution.x.tolist() == [3.0] * 3
    assert np.isfinite(solution.objective)
    assert solution.certificate.kind == "none"


@pytest.mark.parametrize("oracle", ["sfls", "iqrc"])
def test_iqrc_passes_it_on(oracle: str) -> None:
    inner = mm.SFLS(oracle=mm.SMD(steps=200, batch_size=2), levels=2)
    solver = inner if oracle == "sfls" else mm.IQRC(oracle=inner, iterations=3)
    solution = mm.solve(poisoned("F", np.nan), solver, seed=0)
    assert solution.status is mm.Status.DIVERGED
    assert np.isfinite(solution.x).all()


def drawn_oracle(rng: np.random.Generator) -> mm.SMD:
    rule = ("adaptive", mm.InverseSqrt(0.05), "theory")[rng.integers(3)]
    return mm.SMD(steps=100, batch_size=int(rng.integers(1, 8)), step_rule=rule, block=int(rng.integers(1, 80)))


def into_functions(rng: np.random.Generator, poison: float, dtype: str) -> None:
    """A run that meets the value ends there; no other run does."""
    bound = 0.2 if rng.random() < 0.5 else [0.2, 0.4]
    problem = poisoned(("F", "G", "gradient")[rng.integers(3)], poison, dtype=dtype, bound=bound)
    solution = mm.solve(problem, mm.SFLS(oracle=drawn_oracle(rng), levels=2), seed=int(rng.integers(100)))
    spoilt: Any = problem.constraints[0]
    runs = [solution] if solution.runs is None else list(solution)
    assert np.isfinite(solution.x).all()
    assert [one.objective for one in runs] == pytest.approx([half_square(one.x) for one in runs], rel=1e-5)
    for one in runs:
        diverged = one.status is mm.Status.DIVERGED
        assert not diverged or "is not finite at step" in one.reason
        if np.isfinite(poison):
            assert not diverged or dtype == "float32"
        else:
            assert diverged is bool(spoilt.hits) or one.status is mm.Status.SOLVED  # it may have ended before


def half_square(x: Array) -> float:
    return float(0.5 * np.mean(np.sum((x - cases.arrays()["points"]) ** 2, axis=1)))


def into_data(rng: np.random.Generator, poison: float, dtype: str) -> None:
    """Before step 0, by array or point; a number that is only large spoils no point that is returned."""
    arrays = {name: cases.arrays()[name].copy() for name in ("points", "costs")}
    name = ("points", "costs")[rng.integers(2)]
    row, column = (int(rng.integers(size)) for size in arrays[name].shape)
    arrays[name][row, column] = poison

    def solve(data: mm.Source) -> mm.Solution:
        problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.5)], mm.Ball(3, 6.0), data)
        return mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=30, batch_size=5), levels=2))

    if np.isfinite(poison):
        assert np.isfinite(solve(mm.Finite(arrays, dtype=dtype)).x).all()
        return
    with pytest.raises(mm.InvalidInput, match=f"^{name}=.*row {row}, column {column} is NaN"):
        solve(mm.Finite(arrays, dtype=dtype))
    rows = [{name: part[i] for name, part in arrays.items()} for i in range(len(arrays[name]))]
    with pytest.raises(mm.DataError, match=f"point {row + 1}: {name} is NaN"):
        solve(mm.Stream(rows, dtype=dtype))


def into_callbacks(rng: np.random.Generator, poison: float, dtype: str) -> None:
    """What a callback writes into what it is shown, or returns, changes no bit."""
    problem = poisoned("F", 0.0, dtype=dtype)
    solver = mm.SFLS(oracle=drawn_oracle(rng), levels=1)

    def spoil(progress: mm.Progress) -> float:
        for name in ("x", "objective", "constraints", "lower"):
            with suppress(ValueError):  # NumPy refuses it
                getattr(progress.outcome, name)[...] = poison
        return poison

    spoilt, clean = (mm.solve(problem, solver, callbacks=callbacks) for callbacks in ([spoil], []))
    assert spoilt.x.tobytes() == clean.x.tobytes()
    assert (spoilt.objective, spoilt.certificate, spoilt.status) == (clean.objective, clean.certificate, clean.status)


@pytest.mark.parametrize("seeds", [6, pytest.param(300, marks=pytest.mark.rel)])
def test_nonfinite_injections(seeds: int, figure: Figure) -> None:
    """Where, when, and with which rule, precision and number of runs is random."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        poison, dtype = (np.nan, np.inf, -np.inf, 1e38)[rng.integers(4)], ("float64", "float32")[rng.integers(2)]
        (into_functions, into_data, into_callbacks)[seed % 3](rng, poison, dtype)
    figure.total(seeds, "injections, each named or without effect")


class Writes(HalfSquare):
    """Writes into the point that it is given, in batches, exact passes or the gradient."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if self.where == ("exact" if len(batch["points"]) > 100 else "batches"):
            x[...] = np.nan

        def pullback(y: Array, a: Array) -> Array:
            gradient = found.pullback(y, a)
            if self.where == "gradient":
                x[...] = np.nan
            return gradient

        return mm.Evaluation(found.F, found.G, pullback)


METHODS = ("smd", "mirror_prox", "variance_reduced", "conex", "switching")


@pytest.mark.parametrize(
    "method, where, engine",
    [
        # What torch gives to functions is a copy wherever it is given: all places of one method, one of the others.
        pytest.param(m, w, e, marks=() if e == "numpy" or m == "smd" or w == "gradient" else pytest.mark.rel)
        for m in METHODS
        for w in ("batches", "exact", "gradient")
        for e in ("numpy", "torch")
    ],
)
def test_a_function_that_writes_into_a_point_is_named_or_spoils_nothing(method: str, where: str, engine: str) -> None:
    oracles: dict[str, mm.Oracle] = {
        "smd": mm.SMD(steps=40, batch_size=5),
        "mirror_prox": mm.MirrorProx(steps=5),
        "variance_reduced": mm.VarianceReduced(epochs=1, batch_size=5),
    }
    solver = mm.SFLS(oracles[method], levels=1) if method in oracles else small(method, steps=40)
    problem = replace(cases.quadratic(engine=engine), objective=Writes(where))
    if engine == "numpy" and (method, where) != ("mirror_prox", "batches"):  # which draws none
        with pytest.raises(mm.InvalidInput, match=r"^(evaluate|pullback) of half square=.*cannot be written into"):
            mm.solve(problem, solver, seed=0)
    else:
        found = mm.solve(problem, solver, seed=0)
        assert np.isfinite(found.x).all()
        assert found.objective == pytest.approx(half_square(found.x), rel=1e-9)
