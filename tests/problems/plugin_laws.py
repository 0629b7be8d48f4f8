"""Laws of every plug-in of the gallery, beside what its own tests show."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.reference import solve_exact


def functions(problem: mm.MinMaxProblem) -> list[mm.StochasticMinMaxConstraint]:
    return [problem.objective, *problem.constraints]


def whole(problem: mm.MinMaxProblem) -> Any:
    ((_, batch),) = problem.data.chunks()
    return batch


def points(problem: mm.MinMaxProblem, count: int = 3, seed: int = 0) -> Any:
    """Points well inside of X, so that a small step in any direction of its affine hull stays there."""
    drawn = problem.primal.sample(np.random.default_rng(seed), count)
    return 0.5 * drawn + 0.5 * problem.primal.center


def gradients_match_differences(problem: mm.MinMaxProblem, count: int = 50, step: float = 1e-6) -> float:
    """Central differences of y F + <a, G> in every coordinate, for each function and point; return the worst."""
    rng, batch, worst = np.random.default_rng(1), whole(problem), 0.0
    shifts = step * np.concatenate([np.eye(problem.primal.dimension), -np.eye(problem.primal.dimension)])
    for function in functions(problem):
        for x in points(problem, count):
            found = function.evaluate(x, batch)
            y, a = rng.uniform(0.5, 1.5), rng.normal(size=found.G.shape)
            terms = function.evaluate(x + shifts, batch)
            ahead, behind = np.split(y * terms.F + terms.G @ a, 2)
            gradient = np.asarray(found.pullback(np.asarray(y), a))
            scale = 1.0 + np.abs(gradient).max()
            apart = float(np.abs(gradient - (ahead - behind) / (2 * step)).max() / scale)
            assert apart <= 1e-6, function.name
            worst = max(worst, apart)
    return worst


def gradients_match_autograd(problem: mm.MinMaxProblem, count: int = 50) -> float:
    """The gradient by hand is that of torch's autograd, for each function and point; return how far it is at worst."""
    import torch

    rng, batch, x = np.random.default_rng(1), whole(problem), torch.tensor(points(problem, count))
    worst = 0.0
    for function in functions(problem):
        found = function.evaluate(x, batch)
        automatic = mm.StochasticMinMaxConstraint.evaluate(function, x, batch)
        y, a = (torch.tensor(rng.normal(size=size)) for size in (count, tuple(found.G.shape)))
        by_hand, expected = (np.asarray(one.pullback(y, a)) for one in (found, automatic))
        assert np.abs(expected).max() > 0, function.name
        apart = float(np.abs(by_hand - expected).max() / np.abs(expected).max())
        assert apart <= 1e-12, function.name
        worst = max(worst, apart)
    return worst


def single_samples_are_unbiased(problem: mm.MinMaxProblem) -> float:
    """The mean over all samples of single-sample terms and gradients is what the whole data give; return the worst."""
    batch, x, worst = whole(problem), points(problem), 0.0
    size = int(problem.data.size or 0)
    for function in functions(problem):
        full = function.evaluate(x, batch)
        y, a = np.linspace(0.5, 1.5, len(x)), np.ones_like(full.G)
        singles = [function.evaluate(x, {k: v[i : i + 1] for k, v in batch.items()}) for i in range(size)]
        gradients = np.array([s.pullback(y, a) for s in singles])
        for parts, mean in (
            (np.array([s.F for s in singles]), full.F),
            (np.array([s.G for s in singles]), full.G),
            (gradients, full.pullback(y, a)),
        ):
            scale = np.abs(parts).max(initial=1.0)  # the terms of the mean, which may cancel
            apart = float(np.abs(parts.mean(axis=0) - mean).max(initial=0.0) / scale)
            assert apart <= 1e-12, function.name
            worst = max(worst, apart)
    return worst


def engines_and_shapes_agree(load: Callable[..., mm.MinMaxProblem], **options: Any) -> None:
    """(R, d) gives what each (d,) gives, and torch gives what numpy gives."""
    import torch

    problem, torch_problem = load(**options), load(**options, engine="torch")
    batch, other, x = whole(problem), whole(torch_problem), points(problem)
    for function, twin in zip(functions(problem), functions(torch_problem), strict=True):
        found = function.evaluate(x, batch)
        y, a = np.linspace(0.5, 1.5, len(x)), np.random.default_rng(2).normal(size=found.G.shape)
        gradient = found.pullback(y, a)
        for j, point in enumerate(x):
            alone = function.evaluate(point, batch)
            np.testing.assert_allclose(alone.F, found.F[j], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(alone.G, found.G[j], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(alone.pullback(y[j], a[j]), gradient[j], rtol=1e-12, atol=1e-12)
            first, second = function.terms(point, batch)
            np.testing.assert_allclose(first, alone.F, rtol=1e-12, atol=1e-12)
            assert (second is None) == (function.dual is None)
        theirs = twin.evaluate(torch.tensor(x), other)
        np.testing.assert_allclose(theirs.F.numpy(), found.F, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(theirs.G.numpy(), found.G, rtol=1e-12, atol=1e-12)
        pulled = theirs.pullback(torch.tensor(y), torch.tensor(a))
        np.testing.assert_allclose(pulled.numpy(), gradient, rtol=1e-12, atol=1e-12)


def evaluation_agrees(plugin: mm.ProblemPlugin, problem: mm.MinMaxProblem) -> tuple[Any, Any]:
    """evaluate() says what the functions, and their cvxpy forms, say; return the last point and its measures."""
    import cvxpy as cp

    x, measured = None, None
    for x in points(problem):
        measured = plugin.evaluate(problem, x)
        said = [measured["objective"], *measured["values"]]
        values = problem.at_level(0.0).values(x[None])[0]
        np.testing.assert_allclose(values, said, rtol=1e-9, atol=1e-9)
        variable = cp.Variable(len(x), value=x)
        forms = [float(f.cvxpy_value(cp, variable, problem.data).value) for f in functions(problem)]
        np.testing.assert_allclose(forms, said, rtol=1e-7, atol=1e-7)
        json.dumps({name: measured.get(name) for name in ("objective", "values", "train", "test")})
    return x, measured


def solver_reaches(problem: mm.MinMaxProblem, best: Any, oracle: mm.Oracle | None = None) -> mm.Solution:
    """Every run ends feasible, within 2% of r_0 - f*, with a certificate that holds of the optimum ``best``."""
    oracle = mm.SMD(steps=100, batch_size=60) if oracle is None else oracle
    solution = mm.solve(problem, mm.SFLS(oracle=oracle, tolerance=0.02), seed=0)
    runs = [solution] if problem.runs is None else [solution[j] for j in range(problem.runs)]
    for run, optimum in zip(runs, np.ravel(best).tolist(), strict=True):
        levels = np.asarray(run.trace["r"])
        first, slack = levels[np.isfinite(levels)][0], 1e-6 * (1.0 + abs(optimum))
        assert run.status is mm.Status.SOLVED, run.reason
        assert run.feasible
        assert -slack <= run.objective - optimum <= 0.02 * (first - optimum) + slack
        assert run.certificate.lower <= optimum + slack
    return solution


def several_bounds_in_one_solve(problem: mm.MinMaxProblem, oracle: mm.Oracle | None = None) -> None:
    """Each bound of a vector is solved as if it were alone, and a looser one is no worse."""
    best = solve_exact(problem).objective
    assert problem.runs == len(best)
    assert len(set(np.round(best, 6))) == len(best)  # the bounds matter
    solver_reaches(problem, best, oracle)


def starts_strictly_feasible(problem: mm.MinMaxProblem) -> None:
    values = problem.feasibility().values(problem.start_point())
    assert (values < problem.bounds()).all()


def command_line_solves(name: str, measure: str, tmp_path: Path, capsys: Any, options: Sequence[str] = ()) -> None:
    """Run its command: a report that can be read, and a result.json with the true measures."""
    folder = tmp_path / name
    assert main(["solve", name, *options, "--quiet", "--out", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "objective f_0" in text
    assert "f_1 - b_1" in text
    assert measure in text
    result = json.loads((folder / "result.json").read_text())
    assert result["recomputed"]
    assert result["feasible"]
    assert np.isfinite(result["train"][measure])
