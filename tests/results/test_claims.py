"""Every solver on a problem that it accepts: what it claims is confirmed from its folder, and no altered claim is."""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.core import allowed_fall, proved, proved_distance
from minmaxcon.core.constraint import family_of
from minmaxcon.core.first_order import by_the_weight, distance_of, no_proximal_problem
from minmaxcon.core.linearisation import exact_gradients
from minmaxcon.reference import solve_exact
from minmaxcon.registry import Encloses
from minmaxcon.results import measure, record, to_json
from minmaxcon.results.enclosed import Enclosed, function_values, too_close
from minmaxcon.results.records import read_result
from minmaxcon.results.verification import _Checks, _compared, _feasible, verify
from tests import cases
from tests.cli.conftest import FILE_OPTIONS, table_rows, write_table
from tests.core.test_evidence import Wave, quadratic
from tests.figures import Figure
from tests.normal_stream import half_space
from tests.problem_library import HalfSquare, Linear
from tests.staircases import POINTS, bowl, spread, staircase

LEAST = -6.0 * float(np.linalg.norm(cases.arrays()["costs"].mean(axis=0)))
"""The least value of the linear constraint on the ball of radius 6."""

INNER = mm.SFLS(oracle=mm.MirrorProx(steps=60), levels=4, least_span=0.0)

SOLVERS: dict[str, Callable[[], mm.Solver]] = {
    "sfls": lambda: mm.SFLS(oracle=mm.SMD(steps=300, batch_size=60), tolerance=0.05),
    "sfls_mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=60), tolerance=0.05),
    "sfls_extragradient": lambda: mm.SFLS(oracle=mm.ExtraGradient(steps=300), tolerance=0.1),
    "sfls_variance_reduced": lambda: mm.SFLS(oracle=mm.VarianceReduced(), tolerance=0.05),
    "iqrc": lambda: mm.IQRC(oracle=INNER, tolerance=0.1),
    "conex": lambda: mm.ConEx(steps=1500, batch_size=60, evaluations=6, tolerance=0.2),
    "switching_subgradient": lambda: mm.SwitchingSubgradient(
        steps=1500, batch_size=60, test_size=240, evaluations=6, tolerance=0.2
    ),
    "primal_dual": lambda: mm.PrimalDual(steps=3000, batch_size=60, evaluations=6, tolerance=0.2),
}
"""By the names of the command line, all but the one of true measures, with settings for small problems."""


class Plugin(mm.ProblemPlugin):
    """A stranger's problem, which measures nothing of its own."""

    name = "strange"

    def __init__(self, problem: mm.MinMaxProblem) -> None:
        self.problem = problem

    def load(self) -> mm.MinMaxProblem:
        return self.problem


Written = Callable[..., dict[str, Any]]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Give a function that solves, writes result.json as the command line does, and returns its content."""

    def write(problem: mm.MinMaxProblem, solver: mm.Solver, seed: int = 0) -> dict[str, Any]:
        plugin = Plugin(problem)
        monkeypatch.setattr("minmaxcon.results.verification.plugin_named", lambda _: plugin)
        monkeypatch.setattr("minmaxcon.results.verification.load_problem", lambda *_, **__: problem)
        solution = mm.solve(problem, solver, seed=seed)
        found = record(measure(plugin, problem, solution)[0], solution, {"problem": "strange"})
        (tmp_path / "result.json").write_text(to_json(found))
        return json.loads(to_json(found))

    return write


def confirmed(folder: Path, content: dict[str, Any]) -> tuple[bool, set[str]]:
    """Verify a folder with a changed result.json: whether all is confirmed, and which claims are not."""
    (folder / "result.json").write_text(json.dumps(content))
    wrong = {one.claim for one in verify(folder) if not one.confirmed}
    return not wrong, wrong


def altered(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return variants of a true result: another point, other multipliers, another status, a bolder number."""
    found: dict[str, dict[str, Any]] = {}

    def variant(name: str) -> dict[str, Any]:
        found[name] = copy.deepcopy(told)
        return found[name]

    evidence = told["evidence"]
    variant("another point")["evidence"]["x"] = [0.99 * value + 1e-3 for value in evidence["x"]]
    variant("another objective")["objective"] += 2e-5 * (1.0 + abs(told["objective"]))
    if told["status"] == "solved":
        del variant("no tolerance")["settings"]["solver_settings"]["tolerance"]
        variant("a smaller tolerance")["settings"]["solver_settings"]["tolerance"] *= 1e-4
    variant("far away")["evidence"]["x"] = [1e6 * (value + 1.0) for value in evidence["x"]]
    if "linear" in evidence:
        for name, add in (("more multiplier", 0.1), ("huge multiplier", 100.0)):
            changed = [value + add for value in evidence["linear"]["multipliers"]]
            variant(name)["evidence"]["linear"]["multipliers"] = changed
        negative = [-value - 1e-3 for value in evidence["linear"]["multipliers"]]
        variant("negative multiplier")["evidence"]["linear"]["multipliers"] = negative
        variant("short")["evidence"]["linear"]["multipliers"] = [0.0]
        del variant("no multipliers")["evidence"]["linear"]
    else:
        other = [0.0] * len(evidence["weights"])
        other[-1 if evidence["weights"][-1] < 0.5 * sum(evidence["weights"]) else 0] = 1.0
        variant("other multipliers")["evidence"]["weights"] = other
        variant("negative multiplier")["evidence"]["weights"] = [-value for value in evidence["weights"]]
        variant("short")["evidence"]["weights"] = evidence["weights"][1:]
        del variant("no multipliers")["evidence"]["weights"]
    if "proximal" in evidence:
        variant("bold distance")["evidence"]["proximal"]["distance"] *= 0.01
        variant("light weight")["evidence"]["proximal"]["weight"] = 1e-9
        variant("far neighbour")["evidence"]["proximal"]["point"] = [value + 1.0 for value in evidence["x"]]
        variant("neighbour outside")["evidence"]["proximal"]["point"] = [value + 1e3 for value in evidence["x"]]
        variant("no neighbour")["evidence"]["proximal"]["point"] = []
        variant("a bound instead")["certificate"]["lower"] = told["objective"] - 1e-3
    if told["certificate"]["lower"] is not None and told["status"] != "infeasible":
        variant("bold bound")["certificate"]["lower"] += 0.5 * (1.0 + abs(told["objective"]))
    if told["certificate"]["lower"] is not None and told["certificate"]["upper"] is not None:
        gap = told["certificate"]["upper"] - told["certificate"]["lower"]
        if gap > 1e-3:  # a part of the gap only, and no more than another search may find
            variant("slightly bold bound")["certificate"]["lower"] += 0.1 * gap
    variant("other status")["status"] = "solved" if told["status"] == "infeasible" else "infeasible"
    for status in ("out_of_reach", "unfinished", "not_strictly_feasible", "inconsistent", "diverged"):
        if told["feasible"] or not status.startswith(("out", "un")):
            variant(status)["status"] = status
    return found


def moved(told: dict[str, Any], problem: mm.MinMaxProblem, x: Any) -> dict[str, Any]:
    """Return a result that tells the truth of another point, and calls it what the first was called."""
    values = problem.at_level(0.0).values(np.array([x]))[0]
    there = copy.deepcopy(told)
    there["evidence"]["x"], there["objective"] = list(x), float(values[0])
    there["constraints"] = (values[1:] - problem.bounds()[0]).tolist()
    there["feasible"] = max(there["constraints"]) <= 1e-9
    there["certificate"] |= {"upper": there["objective"] if there["feasible"] else None, "gap": None}
    if there["feasible"]:
        there["certificate"]["gap"] = there["objective"] - there["certificate"]["lower"]
    return there


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3])
def test_solved_is_about_the_point_in_every_unit(unit: float, written: Written, tmp_path: Path) -> None:
    """A feasible point far from the optimum, or a better one that is not feasible, with the multipliers of another."""
    rows = cases.arrays()
    data = mm.Finite({"points": unit * rows["points"], "costs": rows["costs"]})
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.5 * unit)], mm.Ball(3, 6.0 * unit), data)
    told = written(problem, SOLVERS["sfls_mirror_prox"]())
    assert told["status"] == "solved", told["reason"]
    assert confirmed(tmp_path, told)[0]
    far, better = -unit * np.ones(3), rows["points"].mean(axis=0) * unit
    assert confirmed(tmp_path, moved(told, problem, far)) == (False, {"status"})
    assert confirmed(tmp_path, moved(told, problem, better)) == (False, {"status"})
    wide = moved(told, problem, far)
    wide["settings"]["solver_settings"]["least_span"] = 1e3
    assert confirmed(tmp_path, wide) == (False, {"status"})
    nothing = moved(told, problem, far)
    nothing["objective"] = 0.0
    nothing["certificate"] |= {"upper": 0.0, "lower": 0.0, "gap": 0.0}
    assert confirmed(tmp_path, nothing)[1] >= {"objective", "upper", "status"}


def test_a_status_has_one_spelling(written: Written, tmp_path: Path) -> None:
    told = written(cases.quadratic(bound=0.5), SOLVERS["sfls_mirror_prox"]())
    for status in ("SOLVED", "Solved", "optimal"):
        (tmp_path / "result.json").write_text(json.dumps({**told, "status": status}))
        with pytest.raises(mm.DataError, match="is no status of minmaxcon"):
            verify(tmp_path)


def test_a_heavy_proximal_term_makes_no_point_stationary(written: Written) -> None:
    """Its proximal points are near wherever one is."""
    problem = cases.quadratic(bound=0.5)
    heavy = mm.IQRC(oracle=INNER, weight=1e4, iterations=2)
    told = written(problem, heavy)
    assert told["status"] == "budget", told["reason"]
    sure = written(problem, mm.IQRC(oracle=INNER, weight=1.0, tolerance=0.1))
    assert sure["status"] == "solved", sure["reason"]
    assert by_the_weight(0.1, 1e4, 0.0) == 1e3
    assert by_the_weight(0.1, np.array([0.5, 2.0, 8.0]), 2.0).tolist() == [0.1, 0.1, 0.2]
    assert distance_of(0.3, 1.0, 1.0, 2.0) == 0.3
    assert distance_of(0.0, 2.0, 1.0, 2.0) == 1.0


def never_confirmed(folder: Path, told: dict[str, Any]) -> None:
    (folder / "result.json").write_text(json.dumps(told))
    assert main(["verify", str(folder), "--quiet"]) == 0, [one.text for one in verify(folder) if not one.confirmed]
    for name, variant in altered(told).items():
        assert not confirmed(folder, variant)[0], name


PROBLEMS: dict[str, tuple[Callable[[], mm.MinMaxProblem], str]] = {
    "optimum": (lambda: cases.quadratic(bound=0.5), "solved"),
    "infeasible": (lambda: cases.quadratic(bound=LEAST - 0.5), "infeasible"),
}


def crossed() -> list[Any]:
    """Return each solver with each ending; what takes long is a promise."""
    dear = {("sfls_extragradient", "optimum"), ("conex", "optimum"), ("primal_dual", "optimum"), ("sfls", "optimum")}
    return [
        pytest.param(solver, problem, marks=pytest.mark.rel if (solver, problem) in dear else ())
        for solver in SOLVERS
        for problem in PROBLEMS
    ]


@pytest.mark.parametrize("solver, problem", crossed())
def test_each_claim_is_confirmed_and_no_altered_one(
    solver: str, problem: str, written: Written, tmp_path: Path
) -> None:
    made, status = PROBLEMS[problem]
    told = written(made(), SOLVERS[solver]())
    assert told["status"] == status, told["reason"]
    never_confirmed(tmp_path, told)
    (tmp_path / "result.json").write_text(json.dumps(told))
    said = {one.claim: one.text for one in verify(tmp_path)}
    if status == "solved":
        assert said["upper"] == f"the point is feasible, with {told['objective']:.9g}."
    else:
        assert said["status"].startswith("every point violates the constraints by at least 0.")


def test_every_solver_of_the_command_line_is_tried() -> None:
    assert {*SOLVERS, "successive"} == set(mm.solvers.solver_names())


def weakly_convex() -> mm.MinMaxProblem:
    return cases.problem("regression_weakly_convex")


def test_near_stationarity_of_a_problem_that_is_not_convex_is_confirmed(written: Written, tmp_path: Path) -> None:
    problem = weakly_convex()
    inner = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=100), levels=2, least_span=0.0)
    told = written(problem, mm.IQRC(oracle=inner, tolerance=0.2))
    assert told["status"] == "solved", told["reason"]
    assert told["certificate"]["lower"] is None
    bare = copy.deepcopy(told)
    del bare["evidence"]["proximal"]  # the multipliers are those of the proximal problem
    assert confirmed(tmp_path, bare) == (False, {"status"})
    assert told["evidence"]["proximal"]["weight"] > problem.modulus
    x = np.array(told["evidence"]["x"])
    assert "modulus" in no_proximal_problem(problem, problem.modulus, x)
    assert no_proximal_problem(problem, 1.001 * problem.modulus, x) == ""
    never_confirmed(tmp_path, told)


@pytest.mark.parametrize("solver", ["sfls_mirror_prox", "iqrc"])
def test_what_ended_early_is_not_solved_by_its_name(solver: str, written: Written, tmp_path: Path) -> None:
    """The bounds that it has are confirmed, and it is not within its tolerance."""
    chosen = {
        "sfls_mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=5), levels=2, tolerance=1e-4),
        "iqrc": lambda: mm.IQRC(oracle=INNER, tolerance=1e-9, iterations=2),
    }[solver]()
    told = written(cases.quadratic(bound=0.5), chosen)
    assert told["status"] == "budget", told["reason"]
    assert confirmed(tmp_path, told)[0]
    assert confirmed(tmp_path, {**told, "status": "solved"}) == (False, {"status"})


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a target on a true measure that the command line has solved."""
    where = tmp_path_factory.mktemp("target")
    table = str(write_table(where / "rows.csv", table_rows()))
    words = ["solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--max-gap", "0.05", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minmaxcon.results.png", lambda *_: b"")
        assert main([*words, "--out", str(where / "r")]) == 0
    return where / "r"


def test_a_target_and_its_first_order_optimality_are_confirmed(target: Path, tmp_path: Path, capsys: Any) -> None:
    told = json.loads((target / "result.json").read_text())
    assert (told["status"], sorted(told["evidence"])) == ("solved", ["linear", "x"])
    shutil.copytree(target, tmp_path / "r")
    never_confirmed(tmp_path / "r", told)
    capsys.readouterr()
    assert main(["verify", str(target)]) == 0
    said = capsys.readouterr().out
    assert "in exact fractions" in said
    assert "the true measure meets its target; of the fall" in said
    given = {name: told["settings"][name] for name in ("data", "label", "sensitive", "max_gap")}
    problem: Any = mm.load_problem("fair_auc", **given)
    for factors in (0.0, 30.0):  # one part is large
        multipliers = [factors] * len(told["evidence"]["linear"]["multipliers"])
        bold, found = copy.deepcopy(told), allowed_fall(problem, told["evidence"]["x"], multipliers)
        bold["evidence"]["linear"] = {"multipliers": multipliers, "fall": found.total}
        assert confirmed(tmp_path / "r", bold) == (False, {"status"}), found
    fall = f"{told['evidence']['linear']['fall']:.2g}"
    assert f"allows the objective to fall by {fall}; the true measure meets its target." in told["reason"]


def test_a_result_of_an_older_version_is_read(target: Path, written: Written, tmp_path: Path) -> None:
    """What it has no evidence of is not confirmed, and the rest is."""
    shutil.copytree(target, tmp_path / "r")
    told = json.loads((target / "result.json").read_text())
    del told["evidence"]["linear"]
    assert confirmed(tmp_path / "r", told) == (False, {"status"})
    told = written(cases.quadratic(bound=0.5), SOLVERS["sfls_mirror_prox"]())
    del told["evidence"]["first"]  # the start of the problem stands for it
    assert confirmed(tmp_path, told)[1] <= {"status"}


def test_what_is_claimed_bounds_every_step_of_the_linear_models(target: Path) -> None:
    """Weak duality, for any multipliers: no step that the linear models allow lowers the objective's by more."""
    told = json.loads((target / "result.json").read_text())
    given = {name: told["settings"][name] for name in ("data", "label", "sensitive", "max_gap")}
    problem: Any = mm.load_problem("fair_auc", **given)
    x, multipliers = np.array(told["evidence"]["x"]), np.array(told["evidence"]["linear"]["multipliers"])
    seen = problem.measure.observe(x[None])
    family = family_of([seen.objective_surrogate(), *seen.surrogates()])
    gradients = exact_gradients(family, x[None], problem.data)[1][0]
    room = problem.bounds()[0] - seen.values[0]
    inverse = problem.measure.curvature(x[None])(np.eye(len(x))[None])[0]
    steps = 0.3 * np.random.default_rng(0).normal(size=(4000, len(x))) @ inverse
    inside, normals = (part[0] for part in problem.primal.inequalities(x[None]))
    allowed = (steps @ gradients[1:].T <= room).all(axis=1) & (steps @ normals.T <= -inside).all(axis=1)
    assert allowed.sum() > 100
    model = steps @ gradients[0] + 0.5 * np.einsum("sd,de,se->s", steps, np.linalg.inv(inverse), steps)
    for factors in (multipliers, 0.0 * multipliers, multipliers + 0.1):
        found = allowed_fall(problem, x, factors)
        assert found.fault == ""
        assert -model[allowed].min() <= found.total
        residual = gradients[0] + factors @ np.concatenate([gradients[1:], normals])
        assert found.curved == pytest.approx(0.5 * residual @ inverse @ residual, rel=1e-9)
        assert found.room == pytest.approx(factors @ np.concatenate([room, -inside]), rel=1e-9)
    assert allowed_fall(problem, x, multipliers).total == pytest.approx(told["evidence"]["linear"]["fall"], rel=1e-9)
    for wrong, said in (([1.0], "not as many"), (-multipliers - 1.0, "at least 0"), (np.nan * multipliers, "finite")):
        assert said in allowed_fall(problem, x, wrong).fault


class Silent(mm.SFLS):
    """Claims what it claims, and brings no multipliers."""

    def outcome(self, state: Any) -> Any:
        return replace(super().outcome(state), evidence=None)


class Says(mm.SFLS):
    """Ends as the level-set method does, and calls it something else."""

    status = mm.Status.SOLVED

    def outcome(self, state: Any) -> Any:
        found = super().outcome(state)
        return replace(found, status=(self.status,) * len(found.status)) if self.finished(state) else found


class SaysInfeasible(Says):
    status = mm.Status.INFEASIBLE


@pytest.mark.parametrize(
    "problem, solver, said",
    [
        ("optimum", Silent, "brings no multipliers that prove it, so it is open whether"),
        ("infeasible", Silent, "brings no multipliers that prove it, so it is open whether"),
        ("infeasible", Says, "the point violates a constraint by"),
        ("optimum", SaysInfeasible, "do not prove that no point is feasible"),
    ],
)
def test_nothing_is_solved_or_infeasible_without_evidence(problem: str, solver: Any, said: str) -> None:
    found = mm.solve(PROBLEMS[problem][0](), solver(oracle=mm.MirrorProx(steps=60), tolerance=0.05))
    assert found.status is mm.Status.BUDGET
    assert said in found.reason.lower()


class Sure(Says):
    """Says so from the first estimate on, which has no confidence."""

    def outcome(self, state: Any) -> Any:
        return replace(super().outcome(state), confidence=0.0)


@pytest.mark.parametrize("solver", [Silent, Sure, SaysInfeasible])
def test_nothing_is_solved_or_infeasible_on_a_stream_without_evidence(solver: Any) -> None:
    problem, _ = half_space()
    settings: dict[str, Any] = {"oracle": mm.SMD(steps=100, batch_size=20), "levels": 3, "tolerance": 0.9}
    assert mm.solve(problem, mm.SFLS(**settings)).status is mm.Status.SOLVED
    found = mm.solve(problem, solver(**settings))
    assert found.status is mm.Status.BUDGET
    assert found.reason.startswith("The solver brings no multipliers that prove it, so it is open whether ")
    assert found.certificate.lower == -np.inf


class Bold(mm.IQRC):
    """Says that its proximal points are nearer than is proved."""

    def outcome(self, state: Any) -> Any:
        found = super().outcome(state)
        beside = found.evidence.neighbour
        return replace(
            found, evidence=replace(found.evidence, neighbour=replace(beside, distance=1e-3 * beside.distance))
        )


def test_a_distance_that_is_not_proved_is_not_claimed() -> None:
    found = mm.solve(cases.quadratic(bound=0.5), Bold(oracle=INNER, tolerance=0.1))
    assert found.status is mm.Status.BUDGET
    assert found.reason.startswith("The multipliers prove a distance of ")


@pytest.mark.parametrize("margin, decided", [(1e-12, True), (0.0, None), (-1e-12, False)])
def test_rounding_decides_no_claim(margin: float, decided: bool | None) -> None:
    """Values whose last digits depend on the order of the sum lie in an interval, and so does their true value."""
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.0)], mm.Ball(3, 6.0), cases.finite("points", "costs"))
    x = np.array([0.3, -0.2, 0.7])
    values, errors = function_values(problem, x[None])
    costs = cases.arrays()["costs"]
    true = sum(Fraction(float(c)) * Fraction(float(v)) for row in costs for c, v in zip(row, x, strict=True)) / len(
        costs
    )
    found = Enclosed.around(float(values[0, 1]), float(errors[0, 1]))
    assert Fraction(found.low) <= true <= Fraction(found.high)
    assert found.error < 1e-13
    limit = found.middle + margin
    assert found.minus(limit).at_most(0.0) is decided
    if decided is None:
        said = too_close("the value", found, limit)
        assert said.startswith("too close for rounding to decide: the value is ")
        assert f"{limit:.17g}" in said


@pytest.mark.parametrize("measures", [False, True])
def test_a_constraint_that_rounding_would_decide_is_not_confirmed(
    written: Written, tmp_path: Path, measures: bool
) -> None:
    """The bound is such that the recorded point exceeds the limit by less than its last digits, whoever sums them."""
    told = written(cases.quadratic(bound=0.5), SOLVERS["sfls_mirror_prox"]())
    x = np.array(told["evidence"]["x"])
    value, error = (float(part[0, 1]) for part in function_values(cases.quadratic(bound=0.5), x[None]))
    problem = cases.quadratic(bound=value - 1e-9 - 0.5 * error)
    with pytest.MonkeyPatch.context() as patch:
        if measures:
            patch.setattr(Plugin, "evaluate", lambda *_: {"values": [value]})
        patch.setattr("minmaxcon.results.verification.load_problem", lambda *_, **__: problem)
        (found,) = [one for one in verify(tmp_path) if one.claim == "feasible"]
    assert not found.confirmed
    assert found.text.startswith("too close for rounding to decide: the largest f_i - b_i is 1.0000")


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_gap_is_the_fraction_that_its_counts_are(model: str) -> None:
    problem = mm.load_problem("fair_auc", data="loanapp", max_gap=0.05, model=model)
    plugin = mm.plugin("fair_auc")
    assert isinstance(plugin, Encloses)
    x = np.random.default_rng(0).normal(size=problem.primal.dimension)
    (low, high), (least, most) = plugin.enclosed(problem, x) or ()
    assert (least, most) == (-high, -low)
    assert low <= high <= low + Fraction(1, 1000)
    assert float(high) == pytest.approx(plugin.evaluate(problem, x)["values"][0], abs=1e-3)
    rows, scores = problem.details.dataset.train, plugin.scores(problem, x, problem.details.dataset.train.features)
    masks = problem.details.metric.masks(rows.label, rows.group)

    def share(own: Any, other: Any) -> Fraction:  # every pair, one by one
        difference = scores[own][:, None] - scores[other][None]
        return Fraction(int(2 * (difference > 0).sum() + (difference == 0).sum()), 2 * difference.size)

    gap = share(masks[:, 0], masks[:, 1]) - share(masks[:, 2], masks[:, 3])
    assert gap in (low, high)
    assert plugin.enclosed(mm.load_problem("fair_auc", data="loanapp", kappa=0.1), x) is None


def judged(seeds: Any, written: Written, folder: Path) -> int:
    """What can be reached is not called infeasible, what cannot is; the folder confirms this claim and no other.

    Returns how many proofs that no point is feasible there were.
    """
    solver = mm.SFLS(oracle=mm.MirrorProx(steps=150), tolerance=0.1)
    counted = dict.fromkeys(("feasible", "hopeless", "not convex"), 0)
    for seed in seeds:
        least = -6.0 * float(np.linalg.norm(cases.arrays(seed)["costs"].mean(axis=0)))
        problems = {
            "feasible": quadratic(seed, least + 0.05),
            "hopeless": quadratic(seed, least - 0.05),
            "not convex": quadratic(seed, 0.5, Wave(0.5 + 0.1 * seed)),
        }
        for kind, problem in problems.items():
            told = written(problem, solver, seed)
            status = told["status"]
            assert kind == "hopeless" or status != "infeasible"
            assert kind != "feasible" or status != "inconsistent"
            assert kind != "hopeless" or (status != "solved" and not told["feasible"])
            if status in ("solved", "infeasible"):
                counted[kind] += 1
                assert confirmed(folder, told)[0], (seed, kind, [one.text for one in verify(folder)])
            for other in {"solved", "infeasible"} - {status}:
                assert not confirmed(folder, {**told, "status": other})[0], (seed, kind, other)
            if kind == "not convex" and status == "solved":  # the best of many points is no better
                values = mm.Points.measured(problem, problem.primal.sample(np.random.default_rng(seed), 20_000))
                assert told["certificate"]["lower"] <= values.objective[values.violation <= 0].min() + 1e-6
    assert min(counted["feasible"], counted["hopeless"]) >= 0.95 * len(seeds)
    return counted["hopeless"]


def test_feasible_infeasible_and_not_convex(written: Written, tmp_path: Path) -> None:
    judged([0, 12], written, tmp_path)


@pytest.mark.rel
@pytest.mark.timeout(600)
def test_feasible_infeasible_and_not_convex_40_of_each(written: Written, tmp_path: Path, figure: Figure) -> None:
    seeds = range(40)
    figure.count(judged(seeds, written, tmp_path), len(seeds), "infeasible quadratics proved, as the check confirms")


def limits_of_a_gap(problem: mm.MinMaxProblem, told: dict[str, Any], rounded: float = 1e-9) -> dict[str, float]:
    """The gap may be 1.1 times the tolerance times what the first point lacks, and a billionth of the value."""
    held = told["evidence"]
    lower = proved(problem, held["weights"], held["scaled"], near=held["near"]).lower
    values, errors = (part[:, 0] for part in function_values(problem, np.array([held["x"], held["first"]])))
    rounding, gap = rounded * (values[0] + errors[0] / 1e-6), values[0] + errors[0] - lower
    assert gap > 100.0 * rounding
    return {"tolerance": (gap - rounding) / (1.1 * (values[1] - errors[1] - lower))}


def in_single(data: Any) -> mm.Finite:
    return mm.Finite(data.arrays, dtype="float32")


def limits_of_a_distance(problem: mm.MinMaxProblem, told: dict[str, Any]) -> dict[str, float]:
    """The distance may be 1.1 times what is claimed; times its weight, which is 2 here, 1.1 times the tolerance."""
    held, beside = told["evidence"], told["evidence"]["proximal"]
    multipliers = held["weights"], held["scaled"], held["near"]
    found = proved_distance(problem, held["x"], *multipliers, (beside["weight"], beside["point"])).distance
    size = 1e-6 * (1.0 + float(np.linalg.norm(held["x"])))
    assert found > 100.0 * size
    return {"tolerance": (2.0 * found - size) / 1.1, "distance": (found - size) / 1.1}


def limits_of_a_fall(_: mm.MinMaxProblem, told: dict[str, Any], rounded: float = 1e-6) -> dict[str, float]:
    """The gradient's part may be five times the tolerance times the objective's size; with multipliers a bit larger."""
    x, mean = np.array(told["evidence"]["x"]), POINTS.mean(axis=0)
    factor = 1.1 * told["evidence"]["linear"]["multipliers"][0]
    told["evidence"]["linear"]["multipliers"] = [factor, 0.0]
    value, slope = bowl(x[None])
    curved = 0.5 * float(((x - mean + factor * slope[0]) ** 2).sum())
    room = factor * (0.2 - 1e-3 * np.round(value[0] / 1e-3))
    scale = 1.0 + 0.5 * float(((x - mean) ** 2).sum()) + spread()
    assert room < 0.02 * scale
    assert curved > 2.0 * rounded * scale
    return {"tolerance": (curved - rounded * scale) / (5.0 * scale), "fall": (curved + room - rounded * scale) / 1.1}


SOLVED: dict[str, tuple[Callable[[], tuple[mm.MinMaxProblem, mm.Solver]], Callable[..., dict[str, float]], float]] = {
    "optimal": (lambda: (cases.quadratic(bound=0.5), SOLVERS["sfls_mirror_prox"]()), limits_of_a_gap, 1e-9),
    "optimal, in single precision": (
        lambda: (
            replace(cases.quadratic(bound=0.5), data=in_single(cases.finite("points", "costs"))),
            SOLVERS["sfls_mirror_prox"](),
        ),
        partial(limits_of_a_gap, rounded=1e-6),
        1e-9,
    ),
    "nearly stationary": (
        lambda: (cases.quadratic(bound=0.5), mm.IQRC(oracle=INNER, weight=2.0, tolerance=0.2)),
        limits_of_a_distance,
        1e-7,
    ),
    "first-order optimal": (lambda: (staircase(), mm.SuccessiveApproximation(tolerance=1e-3)), limits_of_a_fall, 1e-7),
    "first-order optimal, in single precision": (
        lambda: (staircase(data=in_single(staircase().data)), mm.SuccessiveApproximation(tolerance=1e-3)),
        partial(limits_of_a_fall, rounded=1e-4),
        1e-3,
    ),
}
"""What solved may mean: a problem and a solver for each, the least numbers with which it is confirmed, and the share of
these to which they are known here."""


@cache
def solved_as(kind: str) -> tuple[mm.MinMaxProblem, str]:
    """A problem of this kind, and the result of its solve."""
    hopeless = PROBLEMS["infeasible"][0], SOLVERS["sfls_mirror_prox"]
    problem, solver = (make() for make in hopeless) if kind == "hopeless" else SOLVED[kind][0]()
    solution = mm.solve(problem, solver, seed=0)
    assert solution.status is (mm.Status.INFEASIBLE if kind == "hopeless" else mm.Status.SOLVED), solution.reason
    return problem, to_json(record(measure(Plugin(problem), problem, solution)[0], solution, {"problem": "strange"}))


def claims(folder: Path, problem: mm.MinMaxProblem, told: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """What is found of each claim of a result."""
    (folder / "result.json").write_text(json.dumps(told))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minmaxcon.results.verification.plugin_named", lambda _: Plugin(problem))
        patch.setattr("minmaxcon.results.verification.load_problem", lambda *_, **__: problem)
        return {one.claim: (one.confirmed, one.text) for one in verify(folder)}


def changed(text: str, place: str, value: Any) -> dict[str, Any]:
    """Return a result with another value in one place."""
    found: dict[str, Any] = json.loads(text)
    *path, name = place.split(".")
    reduce(lambda part, key: part[key], path, found)[name] = value
    return found


TOLERANCE = "settings.solver_settings.tolerance"


@pytest.mark.parametrize("kind", SOLVED)
def test_solved_tells_what_it_lacks_and_where_its_tolerance_ends(kind: str, tmp_path: Path) -> None:
    """Each limit from both sides, by numbers that are computed here; and what is missing, by its name."""
    problem, text = solved_as(kind)
    told = json.loads(text)
    assert all(confirmed for confirmed, _ in claims(tmp_path, problem, told).values())
    with pytest.MonkeyPatch.context() as patch:  # the plug-in's own measure says that the point is not feasible
        patch.setattr(Plugin, "evaluate", lambda *_: {"values": [problem.bounds()[0, 0] + 1.0]})
        missed = f"the {'target is not known to be met' if 'first' in kind else NOT_FEASIBLE}."
        assert claims(tmp_path, problem, told)["status"] == (False, missed)
    for nothing in (None, "0.1"):
        holds, said = claims(tmp_path, problem, changed(text, TOLERANCE, nothing))["status"]
        assert not holds
        assert said.startswith(("no tolerance is recorded", "settings.solver_settings has no tolerance"))
    places = {"distance": "evidence.proximal.distance", "fall": "evidence.linear.fall"}
    for name, least in SOLVED[kind][1](problem, told).items():
        for share, holds in ((1.0 + SOLVED[kind][2], True), (1.0 - SOLVED[kind][2], False)):
            other = changed(json.dumps(told), places.get(name, TOLERANCE), share * least)
            assert claims(tmp_path, problem, other)["status" if name == "tolerance" else name][0] is holds, share


NOT_FEASIBLE = "point is not known to be feasible"


@pytest.mark.parametrize(
    "kind, place, value, claim, said",
    [
        ("optimal", "evidence.weights", None, "lower", "there are no multipliers that prove it."),
        ("optimal", "evidence.weights", None, "status", "there are no multipliers that prove it."),
        ("hopeless", "evidence.weights", None, "status", "there are no multipliers that prove it."),
        ("hopeless", "evidence.weights", [1.0], "status", "the multipliers are not as many as the functions have."),
        (
            "hopeless",
            "evidence.weights",
            [0.5, 0.5],
            "status",
            "the multipliers do not prove that no point is feasible.",
        ),
        ("optimal", "evidence.weights", [1.0], "lower", "the multipliers are not as many as the functions have."),
        ("optimal", "evidence.weights", [0.0, 1.0], "status", "the bound on violations is not positive."),
        ("optimal", "status", "infeasible", "status", "the multipliers do not prove that no point is "),
        ("optimal", "evidence.x", [9.0] * 3, "x", "the recorded point is no point of the set of 3 variables."),
        ("optimal", "evidence.x", [0.0] * 2, "x", "the recorded point is no point of the set of 3 variables."),
        ("optimal", "evidence.x", [-1.0] * 3, "status", "the point is within "),
        ("optimal", "constraints", [], "constraints", "0 are recorded, and the problem has 1."),
        ("optimal", "constraints", [None], "constraints", "None is recorded, and "),
        ("optimal", "certificate.kind", "estimate", "gap", "the bounds leave "),
        ("optimal", "feasible", False, "feasible", "the largest f_i - b_i is "),
        ("nearly stationary", "evidence.weights", [0.0, 1.0], "distance", "the bound on violations is not positive."),
        ("nearly stationary", "evidence.weights", None, "distance", "the multipliers are not as many as the functions"),
        ("nearly stationary", "evidence.proximal.weight", 0.0, "status", "the proximal weight 0 is not above the "),
        ("nearly stationary", "evidence.proximal.point", [], "distance", "the point beside it is no point."),
        ("nearly stationary", "evidence.proximal.point", [9.0] * 3, "status", "the point beside it is no point of the"),
        (
            "nearly stationary",
            "evidence.proximal.point",
            [3.0] * 3,
            "distance",
            "of the point beside it in the proximal problem the largest f_i - b_i is ",
        ),
        ("first-order optimal", "evidence.linear.multipliers", [-1.0, 0.0], "fall", "the multipliers are not finite"),
        ("first-order optimal", "evidence.linear.multipliers", [1.0], "status", "the multipliers are not as many as "),
        ("first-order optimal", "evidence.linear", None, "status", "there are no multipliers by which first-order "),
        ("first-order optimal", "status", "infeasible", "status", "multipliers prove nothing of true measures, which "),
        ("optimal", "status", "not_strictly_feasible", "status", "that no point has room to spare is not computed"),
        ("optimal", "status", "out_of_reach", "status", "the point is not known to miss its target, of which the "),
        ("optimal", "status", "unfinished", "status", "the point is not known to miss its target, of which the "),
        ("optimal", "status", "inconsistent", "status", "what the solver met on its way is not computed again."),
        ("optimal", "status", "diverged", "status", "what the solver met on its way is not computed again."),
    ],
)
def test_what_is_not_confirmed_tells_why(
    kind: str, place: str, value: Any, claim: str, said: str, tmp_path: Path
) -> None:
    problem, text = solved_as(kind)
    holds, why = claims(tmp_path, problem, changed(text, place, value))[claim]
    assert not holds
    assert why.startswith(said), why


def test_a_target_that_is_missed_may_be_out_of_reach(tmp_path: Path) -> None:
    """What the status says is what the point shows; where rounding would decide, nothing is known."""
    problem, text = solved_as("optimal")
    missed = moved(json.loads(text), problem, cases.arrays()["points"].mean(axis=0))
    for status in ("out_of_reach", "unfinished"):
        found = claims(tmp_path, problem, missed | {"status": status})
        assert "status" not in found
        assert all(holds for holds, _ in found.values()), found
    x = np.array(missed["evidence"]["x"])
    value, error = (float(part[0, 1]) for part in function_values(problem, x[None]))
    close = problem.with_bounds(value - 1e-9 - 0.5 * error)
    assert not claims(tmp_path, close, missed | {"status": "out_of_reach"})["status"][0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["optimal", "first-order optimal"])
def test_numbers_agree_up_to_a_share_of_their_sizes(kind: str, dtype: str, tmp_path: Path) -> None:
    """A millionth; of a true measure of data in single precision, which it may compute in this, a ten thousandth."""
    problem, text = solved_as(kind)
    measured = kind != "optimal"
    if dtype == "float32":
        problem = replace(problem, data=in_single(problem.data))
    x, told = np.array(json.loads(text)["evidence"]["x"]), json.loads(text)
    (values,) = function_values(problem, x[None])[0]
    if measured:
        values[1] = 1e-3 * np.round(bowl(x[None])[0][0] / 1e-3)
    bound = problem.bounds()[0, 0]
    told |= {"objective": values[0], "constraints": [values[1] - bound]}
    share = 1e-4 if measured and dtype == "float32" else 1e-6
    sizes = {"objective": abs(values[0]), "constraints": abs(values[1]) + abs(bound)}
    for name, size in sizes.items():
        for part, agree in ((0.99, True), (-0.99, True), (1.01, False), (-1.01, False)):
            off: Any = np.asarray(told[name]) + part * share * size
            found = claims(tmp_path, problem, told | {name: off.tolist()})
            assert found[name][0] is agree, (name, part)
    if measured:
        return
    gap = values[0] - told["certificate"]["lower"]
    for name, value, size in (("gap", gap, gap), ("upper", values[0], -values[0])):
        for part, agree in ((0.99, True), (1.01, False)):
            certificate = told["certificate"] | {"upper": values[0], "gap": gap, name: value + part * 1e-6 * size}
            found = claims(tmp_path, problem, told | {"certificate": certificate})
            assert found[name][0] is agree, (name, part)
    assert claims(tmp_path, problem, changed(text, "certificate.upper", 100.0))["upper"][0]  # it is not a bold one


def test_a_true_measure_of_no_size_agrees_up_to_its_own_rounding(tmp_path: Path) -> None:
    told = json.loads(solved_as("first-order optimal")[1])
    told["evidence"]["x"], told["objective"] = [0.0, 0.0], 0.5 * float((POINTS**2).sum(-1).mean())
    for value, agree in ((0.0, True), (0.9e-12, True), (-0.9e-12, True), (1.1e-12, False)):
        found = claims(tmp_path, staircase(bound=0.0), told | {"constraints": [value]})
        assert found["objective"][0]
        assert found["constraints"][0] is agree


@pytest.mark.parametrize(
    "told, found, options, alike, said",
    [
        (1.0, 1.0 + 1.9e-6, {}, True, "computed again: 1.0000019."),
        (1.0, 1.0 + 2.1e-6, {}, False, "it is recorded as 1.0, and computed again as 1.0000021."),
        (100.0, 100.0 - 0.9e-4, {}, True, "computed again: 99.99991."),
        (1e-9, 2e-9, {}, True, "computed again: 2e-09."),
        (1e-9, 2e-9, {"least": 0.0}, False, "it is recorded as 1e-09, and computed again as 2e-09."),
        (1.0, 1.4, {"allowed": 0.2}, True, "computed again: 1.4."),
        ([1.0, 2], [1, 2.0], {}, True, "computed again, it agrees."),
        ({"a": {"b": [1.0, 5.0]}}, {"a": {"b": [1.0, 5.5]}}, {}, False, "a.b[1] is recorded as 5.0, and computed "),
        ({"a": 1.0}, {"b": 1.0}, {}, False, "it is recorded as {'a': 1.0}, and computed again as {'b': 1.0}."),
        ({"a": [1.0]}, {"a": [1.0, 2.0]}, {}, False, "a is recorded as [1.0], and computed again as [1.0, 2.0]."),
        ({"a": "x", "b": None}, {"a": "x", "b": None}, {}, True, "computed again, it agrees."),
        ({"a": "x"}, {"a": "y"}, {}, False, "a is recorded as 'x', and computed again as 'y'."),
        ({"a": None}, {"a": 0.0}, {}, False, "a is recorded as None, and computed again as 0.0."),
        ([math.nan], [1.0], {}, False, "[0] is recorded as nan, and computed again as 1.0."),
    ],
)
def test_values_of_json_are_compared_one_by_one(told: Any, found: Any, options: Any, alike: bool, said: str) -> None:
    same, text = _compared(told, found, **options)
    assert same is alike
    assert text.startswith(said)


def test_the_largest_of_the_constraints_is_told() -> None:
    """And whether it is known exactly; where one is violated, or rounding decides, another that is not is no help."""
    half, tiny = Fraction(-1, 2), Enclosed(-1e-9, 3e-9)
    assert _feasible([Enclosed(-2.0, -1.0), Enclosed(half, half)]) == (
        True,
        "the largest f_i - b_i is -0.5, in exact fractions.",
    )
    assert _feasible([Enclosed(-2.0, -1.0), Enclosed(-4.0, -3.0)]) == (True, "the largest f_i - b_i is -1.5.")
    assert _feasible([tiny, Enclosed(2.0, 3.0)]) == (False, "the largest f_i - b_i is 2.5.")
    known, said = _feasible([Enclosed(-2.0, -1.0), tiny])
    assert known is None
    assert said.startswith("too close for rounding to decide: the largest f_i - b_i is ")


def test_what_a_gap_is_measured_by(tmp_path: Path) -> None:
    """What a feasible first point lacks, and by what the objective varies on a thousandth of the way to others."""
    problem, text = solved_as("optimal")
    points = cases.arrays()["points"]

    def objective(x: Any) -> Any:
        return 0.5 * ((np.asarray(x)[..., None, :] - points) ** 2).sum(-1).mean(-1)

    def yardsticks(first: Any, least_span: Any = None) -> tuple[float, float]:
        told = changed(text, "settings.solver_settings.least_span", least_span)
        (tmp_path / "result.json").write_text(json.dumps(told))
        checks = _Checks(0, Plugin(problem), problem, read_result(tmp_path), tmp_path)  # type: ignore[arg-type]
        return checks._yardsticks(x, np.array(first), 1.5)

    def nearby(here: Any, share: float) -> float:
        drawn = problem.primal.sample(np.random.default_rng(0), 32)
        return float(np.abs(objective(here + share * (drawn - here)) - objective(here)).max())

    x, good = np.array(json.loads(text)["evidence"]["x"]), np.array([-1.0, -1.0, -1.0])
    assert yardsticks(good) == pytest.approx((objective(good) - 1.5, nearby(good, 1e-3)), rel=1e-9)
    for asked, share in ((1e3, 1e-3), (1e-4, 1e-4)):
        assert yardsticks(good, asked)[1] == pytest.approx(nearby(good, share), rel=1e-9)
    assert yardsticks(good, 0.0)[1] == 0.0
    violates = points.mean(axis=0)
    assert yardsticks(violates) == pytest.approx((0.0, nearby(violates, 1e-3)), rel=1e-9)
    for none in ([np.nan] * 3, [9.0] * 3):
        assert yardsticks(none) == pytest.approx((0.0, nearby(x, 1e-3)), rel=1e-9)


def test_a_start_that_is_nearly_optimal_is_solved_by_what_the_objective_varies_by(tmp_path: Path) -> None:
    """Up to twice that, by the share that the tolerance is."""
    problem, text = solved_as("optimal")
    exact, points = solve_exact(problem), cases.arrays()["points"]
    x = exact.x - 1e-3 * cases.arrays()["costs"].mean(axis=0)
    told = moved(json.loads(text), problem, x)
    told["evidence"] |= {"weights": [1.0, *exact.multipliers], "near": exact.x.tolist(), "first": x.tolist()}
    values, errors = (part[:, 0] for part in function_values(problem, x[None]))
    drawn = x + 1e-3 * (problem.primal.sample(np.random.default_rng(0), 32) - x)
    varies = np.abs(0.5 * ((drawn[:, None] - points) ** 2).sum(-1).mean(-1) - values[0]).max()
    lower = proved(problem, told["evidence"]["weights"], [], near=exact.x).lower
    gap = values[0] + errors[0] - lower - (1e-9 * values[0] + errors[0])
    assert 0.0 < gap < 0.5 * varies
    for share, holds in ((1.0 + 1e-6, True), (1.0 - 1e-6, False)):
        found = claims(tmp_path, problem, changed(json.dumps(told), TOLERANCE, share * gap / (1.1 * 2.0 * varies)))
        assert found["status"][0] is holds
        assert ("of what the objective varies by nearby" in found["status"][1]) is holds
