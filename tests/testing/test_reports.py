"""Reports that can be read, pages that exist, and the checks as pytest cases."""

from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.testing import (
    CheckFailed,
    Report,
    check_constraint,
    check_generator,
    check_oracle,
    check_problem,
    check_solver,
    parametrize_checks,
)
from minmaxcon.testing.block import largest_value
from minmaxcon.testing.check import apart
from minmaxcon.testing.constraint import constraint_part
from minmaxcon.testing.generator import GENERATOR
from minmaxcon.testing.oracle import oracle_part
from minmaxcon.testing.problem import fresh_values, problem_parts
from minmaxcon.testing.solver import solver_part
from tests.cases import PROBLEMS, fair_auc, finite, labelled, quadratic
from tests.problem_library import Linear, Robust
from tests.staircases import staircase
from tests.testing.faulty_functions import Bent, WrongSign
from tests.testing.faulty_geometry import LowDiameter
from tests.testing.faulty_solvers import QuickLevels
from tests.testing.planted_faults import FAULTS, found, whole
from tests.testing.test_planted_faults import TABLES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def failing() -> Report:
    return check_generator(LowDiameter(3, 1.0))


def test_a_failure_says_what_was_expected_and_seen_with_an_example_and_a_page(failing: Report) -> None:
    report = failing
    (failure,) = report.failures
    assert failure.check == "diameter"
    text = str(report)
    assert "1 failed" in text.splitlines()[0]
    for part in (failure.expected, "declared 0.45", "0.5", "u = (", failure.page):
        assert " ".join(part.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 110
    assert "linear_minimum" in text  # what passed is told too


def test_a_report_is_a_sequence_that_raises_and_goes_into_json(failing: Report) -> None:
    assert len(failing) == len(list(failing)) == len(failing[:])
    assert failing[0].check == "contains"
    assert not failing.passed
    with pytest.raises(CheckFailed, match=r"declared 0\.45"):
        failing.raise_if_failed()
    assert not issubclass(CheckFailed, mm.MinMaxConError)
    assert issubclass(CheckFailed, AssertionError)
    found = json.loads(json.dumps(failing.to_dict()))
    assert found["passed"] is False
    assert [finding["check"] for finding in found["findings"] if finding["status"] == "failed"] == ["diameter"]


def test_the_same_seed_gives_the_same_report() -> None:
    problem = quadratic()
    first, again, other = (check_constraint(WrongSign(), problem.primal, problem.data, seed=s) for s in (0, 0, 1))
    assert first == again
    assert first.failures[0].counterexample != other.failures[0].counterexample


def test_what_a_plug_in_raises_is_a_failure_that_quotes_it() -> None:
    class Broken(Linear):
        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            raise KeyError("no such column")

    report = check_constraint(Broken(), mm.Ball(3, 1.0), finite("costs"))
    assert "KeyError" in report.failures[0].seen
    assert "no such column" in report.failures[0].seen
    assert "test_reports.py" in report.failures[0].counterexample
    assert [failure.check for failure in report.failures] == ["shapes"]
    assert all(found.seen == "until shapes passes" for found in report if found.check != "shapes")
    problem = mm.MinMaxProblem(Broken(), [Linear(1.0)], mm.Ball(3, 1.0), finite("costs"))
    failed = [(failure.subject, failure.check) for failure in check_problem(problem).failures]
    assert failed == [("objective", "shapes")]


def test_the_place_of_an_exception_is_in_the_plug_in_not_in_what_it_calls() -> None:
    class Deep(Linear):
        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            np.linalg.solve(np.zeros((2, 2)), np.zeros(2))
            raise AssertionError("not reached")

    failure = check_constraint(Deep(), mm.Ball(3, 1.0), finite("costs")).failures[0]
    assert "LinAlgError" in failure.seen
    assert "test_reports.py" in failure.counterexample


def test_what_is_no_evaluation_is_named() -> None:
    class Pair(Linear):
        def evaluate(self, x: Any, batch: mm.Batch) -> Any:
            return x.sum(-1), None

    (failure,) = check_constraint(Pair(), mm.Ball(3, 1.0), finite("costs")).failures
    assert "evaluate() must return mm.Evaluation; it returned tuple" in failure.seen


def test_a_wrong_gradient_is_not_reported_as_a_lack_of_convexity() -> None:
    problem = quadratic()
    report = check_constraint(WrongSign(), problem.primal, problem.data)
    found = {finding.check: finding for finding in report}
    assert {failure.check for failure in report.failures} == {"gradient", "autograd"}
    assert found["convexity"].status == "passed"
    for name in ("tangents", "curvature"):
        assert (found[name].status, found[name].seen) == ("skipped", "until gradient passes")


def test_an_oracle_that_raises_is_one_failure() -> None:
    class Raises(mm.SMD):
        def advance(self, state: Any) -> Any:
            raise KeyError("memory")

    report = check_oracle(Raises(steps=20))
    assert [failure.check for failure in report.failures] == ["estimate"]
    assert any("the same exception at the same place" in finding.seen for finding in report)


@pytest.mark.parametrize(
    "name", ["functions fused in the wrong order", "shares of pieces do not sum to 1", "other numbers with torch"]
)
def test_numbers_that_are_said_to_differ_differ_in_print(name: str) -> None:
    seen = found(FAULTS[name].faulty(), FAULTS[name].check).seen
    if "shares" in name:
        assert "sum to 1" in seen  # the fault below is what prints two numbers
        seen = found(whole(source=SlightlyOtherPieces)(), "sampling").seen
        assert "entry 0" in seen or "entry 1" in seen
    one, other = re.findall(r"-?\d+\.\d+(?:e-?\d+)?", seen)[-2:]
    assert one != other, seen


class SlightlyOtherPieces(mm.Finite):
    """The first piece is a hundred-millionth too large."""

    def chunks(self, rows: Any = None) -> Any:
        found = list(super().chunks(rows))
        for i, (share, batch) in enumerate(found):
            factor = 1.0 + 1e-8 * (i == 0 and len(found) > 1)
            yield share, {name: factor * array for name, array in batch.items()}


@pytest.mark.parametrize("declared, told", [(5.0, "declared 5, largest seen 0: declare convex = True"), (0.0, "")])
def test_a_modulus_declared_far_too_large_is_told(declared: float, told: str) -> None:
    function = Bent(0.0, declared)
    report = check_constraint(function, mm.Ball(3, 2.0), finite("costs"))
    (found,) = [finding for finding in report if finding.check == "curvature"]
    assert found.status == "passed"
    assert told in found.seen
    assert ("declared" in found.seen) == bool(told)


def test_the_report_says_where_its_pages_are(failing: Report) -> None:
    assert str(failing).count("make docs") == 1
    assert "make docs" not in str(Report("nothing", ()))
    pages = {check.name: check.page for check in GENERATOR}
    assert pages["prox"] == pages["reference_forms"] == "howto/new_generator.html#what-must-hold"


def anchors(page: Path) -> set[str]:
    lines = page.read_text().splitlines()
    titles = {
        re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        for title, line in itertools.pairwise(lines)
        if title and re.fullmatch(r"[=\-~^]{3,}", line)
    }
    return titles | set(re.findall(r"^\.\. _([a-z0-9-]+):", page.read_text(), re.MULTILINE))


def test_every_page_that_a_check_names_exists() -> None:
    for check in [check for table in TABLES.values() for check in table]:
        name, _, anchor = check.page.partition("#")
        page = DOCS / name.replace(".html", ".rst")
        assert page.is_file(), check.page
        assert not anchor or anchor in anchors(page), check.page


def test_every_check_is_explained() -> None:
    text = (DOCS / "howto" / "conformance.rst").read_text()
    for check in [check for table in TABLES.values() for check in table]:
        assert f"``{check.name}``" in text, check.name
        assert check.expected.endswith(".")
        assert 20 < len(check.expected) < 140


@pytest.mark.parametrize(
    "check, arguments",
    [
        (check_generator, ("ball",)),
        (check_constraint, (3, mm.Ball(3, 1.0), finite("costs"))),
        (check_constraint, (Linear(), "ball", finite("costs"))),
        (check_constraint, (Linear(), mm.Ball(3, 1.0), {"costs": np.zeros((2, 3))})),
        (check_problem, (Linear(),)),
        (check_oracle, (mm.SFLS(),)),
        (check_oracle, (mm.SMD(), "toy")),
        (check_solver, (mm.SMD(),)),
        (check_solver, (mm.SFLS(), "toy")),
    ],
)
def test_what_is_of_another_kind_is_refused(check: Any, arguments: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="must be"):
        check(*arguments)


def test_a_seed_a_tolerance_and_a_start_are_refused_by_name() -> None:
    """The rules for numbers are proved where they stand; here is their use."""
    with pytest.raises(mm.InvalidInput, match="seed"):
        check_generator(mm.Ball(3, 1.0), seed=-1)
    for check, subject in ((check_oracle, mm.SMD()), (check_solver, mm.SFLS())):
        for seed, tolerance in ((0, 0), (0, "x"), (-1, 0.1)):
            with pytest.raises(mm.InvalidInput, match="seed" if seed else "tolerance"):
                check(subject, tolerance=tolerance, seed=seed)
    for start in ([0.0, 0.0], [np.nan, 0.0, 0.0], [3.0, 0.0, 0.0], "x", 0.0):
        with pytest.raises(mm.InvalidInput, match="start"):
            check_constraint(Linear(), mm.Ball(3, 1.0), finite("costs"), start=start)


def test_an_oracle_is_not_tried_on_a_stream() -> None:
    problem = mm.MinMaxProblem(Linear(), [Linear(1.0)], mm.Ball(3, 1.0), mm.Stream([{"costs": np.zeros(3)}]))
    with pytest.raises(mm.InvalidInput, match="finite data"):
        check_oracle(mm.SMD(), problem)


def test_without_cvxpy_the_rest_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    report = check_generator(mm.Ball(3, 1.0))
    (skipped,) = report.having("skipped")
    assert report.passed
    assert skipped.check == "reference_forms"
    assert "cvxpy is needed" in skipped.seen
    assert "minmaxcon[reference]" in skipped.seen


class _Formless(mm.Ball):
    """A ball without a cvxpy form."""

    def cvxpy_constraints(self, cp: Any, u: Any) -> Any:
        raise mm.Unsupported("_Formless has no cvxpy form")


def test_without_a_cvxpy_form_the_rest_is_checked() -> None:
    report = check_generator(_Formless(3, 1.0))
    assert report.passed
    assert [(found.check, found.seen) for found in report.having("skipped")] == [
        ("reference_forms", "_Formless has no cvxpy form")
    ]


class _Curved(mm.StochasticMinMaxConstraint):
    """f(x) = E <c, x> + curvature/2 |x|^2, which declares nothing; evaluate() alone is given."""

    def __init__(self, curvature: float) -> None:
        self.curvature = curvature

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        value = x @ slope + 0.5 * self.curvature * (x * x).sum(-1)
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (slope + self.curvature * x))


@pytest.mark.parametrize(
    "curvature, told",
    [
        (
            0.5,
            {"convexity": "150 chords do not refute it: declare convex = True", "curvature": "smallest eigenvalue 0.5"},
        ),
        (-2.0, {"convexity": "and it is not convex: half-way between u and v", "curvature": "must be at least 2"}),
    ],
)
def test_a_function_that_declares_no_convexity_is_told_what_drawn_points_say(curvature: float, told: Any) -> None:
    report = check_constraint(_Curved(curvature), mm.Ball(3, 2.0), finite("costs"))
    assert report.passed, str(report)
    skipped = {finding.check: finding.seen for finding in report.having("skipped")}
    for name, text in told.items():
        assert "no convexity is declared, so no lower bound is claimed" in skipped[name]
        assert text in skipped[name]
    assert skipped["terms"] == "evaluate() alone is given"
    assert "cvxpy form" in skipped["reference_value"]


class _Projecting(mm.SMD):
    """An oracle that declares that it needs a Euclidean set."""

    needs = mm.Needs(euclidean=True, unregularised=True)


def test_an_oracle_is_tried_on_what_meets_its_needs() -> None:
    report = check_oracle(_Projecting(steps=80, batch_size=10, block=20))
    seen = {finding.check: finding.seen for finding in report}
    assert report.passed, str(report)
    assert "robust toy" in seen["upper_bound"]
    assert "mixed toy" not in seen["upper_bound"]
    assert "takes no proximal term" in seen["proximal"]
    with pytest.raises(mm.Unsupported, match=r"_Projecting cannot solve this level problem\. It needs a Euclidean set"):
        check_oracle(_Projecting(), PROBLEMS["portfolio"].build())


def test_a_solver_is_refused_a_problem_that_does_not_meet_its_needs() -> None:
    with pytest.raises(mm.Unsupported, match="SuccessiveApproximation cannot solve 'robust toy'"):
        check_solver(mm.SuccessiveApproximation())


def skipped(report: Report) -> dict[str, str]:
    """Return why checks were skipped; nothing has failed."""
    assert report.passed, str(report)
    return {finding.check: finding.seen for finding in report.having("skipped")}


def test_a_problem_on_a_stream_is_checked_as_far_as_samples_go() -> None:
    rng = np.random.default_rng(0)
    rows = [{"points": row, "costs": row[::-1]} for row in rng.standard_normal((6000, 3))]
    problem = mm.MinMaxProblem(Robust(3, 0.5), [Linear(1.0)], mm.Ball(3, 1.0), mm.Stream(rows))
    whole_problem = problem_parts(problem)[-1]
    for name in ("sampling", "refine", "lower_bounds", "reference_optimum"):
        assert "stream" in found(whole_problem, name).seen
    start = found(whole_problem, "start")
    assert (start.status, start.seen) == ("passed", "finite on the first samples")


@pytest.mark.parametrize("samples", [1, 700])
def test_a_stream_is_checked_however_short_it_is(samples: int) -> None:
    rng = np.random.default_rng(0)
    data = mm.Stream([{"points": row, "costs": row[::-1]} for row in rng.standard_normal((samples, 3))])
    report = mm.testing.check_constraint(Robust(3, 0.5), mm.Ball(3, 1.0), data)
    assert report.passed, str(report)


def test_a_stream_without_samples_is_told() -> None:
    report = mm.testing.check_constraint(Robust(3, 0.5), mm.Ball(3, 1.0), mm.Stream([]))
    (failed,) = report.having("failed")
    assert "gives no sample" in failed.seen


def test_rows_that_are_sparse_are_checked_in_every_engine() -> None:
    parts = problem_parts(fair_auc(kappa=0.1, rows=labelled(2, n=60, sparse=True)))
    (objective,) = [part for part in parts if part.label == "objective"]
    for name in ("pure", "engines", "precision"):
        assert found(objective, name).status == "passed"


def test_without_a_feasible_point_there_is_no_optimum_to_compare_with() -> None:
    problem, why = quadratic(bound=-100.0), "cvxpy finds the problem infeasible"
    assert found(problem_parts(problem)[-1], "reference_optimum").seen == why
    part = solver_part(QuickLevels(), problem)
    assert [found(part, name).seen for name in ("certificate", "honest_status")] == [why] * 2


@dataclass(frozen=True)
class _Place:
    problem: mm.MinMaxProblem
    start: mm.Start
    done: bool = False


class _Modest(mm.Solver):
    """Returns its start after one step, keeps no trace and claims nothing."""

    def __init__(self, **needs: Any) -> None:
        self.asked = mm.Needs(**needs)

    @property
    def needs(self) -> mm.Needs:
        return self.asked

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> _Place:
        return _Place(problem, start)

    def step(self, state: _Place) -> _Place:
        return replace(state, done=True)

    def finished(self, state: _Place) -> bool:
        return state.done

    def outcome(self, state: _Place) -> mm.Outcome:
        values, runs = fresh_values(state.problem, state.start.x), len(state.start.x)
        return mm.Outcome(
            x=state.start.x,
            objective=values[:, 0],
            constraints=values[:, 1:],
            lower=np.full(runs, -np.inf),
            exact=False,
            confidence=0.0,
            status=(mm.Status.BUDGET,) * runs,
            reason=("It goes nowhere.",) * runs,
            trace=(),
            steps=int(state.done),
            samples=0,
            next=state.start,
        )


@pytest.mark.parametrize("name", ["quadratic", "quadratic_infeasible_start"])
def test_a_solver_that_claims_nothing_passes_and_is_told_what_was_not_tried(name: str) -> None:
    report = check_solver(_Modest(), PROBLEMS[name].build())
    told = skipped(report)
    assert told["trace"] == "the solver keeps no trace"
    strict = name == "quadratic"
    assert told.get("certificate") == ("the certificate is an estimate" if strict else None)
    assert ("progress" in told) == (not strict)
    seen = {finding.check: finding.seen for finding in report}
    assert seen["budget"] == "the whole solve is a single piece of 1 steps"
    assert seen["honest_status"] == "it says budget"


def test_a_solver_of_another_kind_of_problem_is_not_tried_on_an_infeasible_one() -> None:
    told = skipped(check_solver(_Modest(measure=True), staircase()))
    assert told["infeasible"].startswith("it needs ")


def test_no_bound_of_an_oracle_is_tried_where_functions_are_not_convex() -> None:
    part = oracle_part(mm.SMD(steps=40, batch_size=10), PROBLEMS["regression_weakly_convex"].build())
    tight = found(part, "tightness")
    assert "robust toy: a share of" in tight.seen
    assert " problem: " not in tight.seen
    assert found(part, "lower").status == "passed"


@pytest.mark.parametrize("radius", [0.3, 1e-5])
def test_a_counterexample_is_rounded_as_far_as_it_remains_one(radius: float) -> None:
    """In a small ball whole numbers are all 0, in a tiny one all numbers of three decimals."""
    part = constraint_part(Bent(1e3, 0.0), mm.Ball(3, radius), finite("costs"))
    seen = found(part, "convexity")
    assert seen.status == "failed"
    numbers = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", seen.counterexample)
    assert 0.0 < max(map(abs, map(float, numbers))) <= radius
    assert (max(map(len, numbers)) <= len("-0.1")) == (radius > 0.1), seen.counterexample


def test_curvature_is_sought_in_as_many_directions_as_there_are_or_a_few() -> None:
    rng = np.random.default_rng(0)
    told = skipped(check_constraint(Linear(), mm.Box(np.ones(3), np.ones(3)), finite("costs")))
    assert told["curvature"] == "X is a single point"
    wide = mm.Finite({"costs": rng.standard_normal((30, 40))})
    report = check_constraint(Bent(2.0, 2.0), mm.Ball(40, 2.0), wide)
    (seen,) = [finding.seen for finding in report if finding.check == "curvature"]
    assert report.passed, str(report)
    assert "2" in seen


class _Huber(mm.StochasticMinMaxConstraint):
    """f(x) = E sum_i h(x_i - c_i) with Huber's h, whose cvxpy form is a minimum over variables of its own."""

    convex, name = True, "huber"

    def __init__(self, form: bool = True) -> None:
        self.form = form

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        apart = x - batch["costs"].mean(0)
        value = np.where(np.abs(apart) <= 1.0, 0.5 * apart**2, np.abs(apart) - 0.5).sum(-1)
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * np.clip(apart, -1.0, 1.0))

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        t = cp.Variable(x.shape)
        ((_, rows),) = data.chunks(data.size)
        return 0.5 * cp.sum_squares(x - rows["costs"].mean(0) - t) + cp.norm1(t)


def test_a_form_with_variables_of_its_own_is_minimised_over_them() -> None:
    report = check_constraint(_Huber(), mm.Ball(3, 2.0), finite("costs"))
    assert [finding.status for finding in report if finding.check == "reference_value"] == ["passed"]
    many = mm.Finite({"costs": np.random.default_rng(0).standard_normal((20_001, 3))})
    part = constraint_part(Linear(), mm.Ball(3, 2.0), many)
    assert found(part, "reference_value").seen == "only the first 20000 of 20001 rows are looked at"

    class Lifted(mm.Ball):
        def cvxpy_value(self, cp: Any, u: Any) -> Any:
            return super().cvxpy_value(cp, u) + cp.abs(cp.Variable())

    assert [one.status for one in check_generator(Lifted(3, 1.0)) if one.check == "reference_forms"] == ["passed"]


def test_arrays_of_two_shapes_are_apart() -> None:
    assert apart(np.zeros(2), np.zeros(3)) == np.inf
    assert apart(np.zeros((0, 2)), np.zeros((0, 2))) == 0.0


@pytest.mark.parametrize("seed", [0, 6, 10, 26])
def test_the_largest_value_over_a_box_is_that_of_its_best_corner(seed: int) -> None:
    """Of a maximum of affine functions; where corners that are best along their gradients are not the best, too."""
    rng = np.random.default_rng(seed)
    slopes, offsets = rng.standard_normal((40, 4)), 1.5 * rng.standard_normal(40)

    def value(points: Any) -> Any:
        return (np.asarray(points) @ slopes.T + offsets).max(-1)

    def gradient(points: Any) -> Any:
        return slopes[np.argmax(np.asarray(points) @ slopes.T + offsets, -1)]

    best, largest = largest_value(value, gradient, np.sign, 0.1 * rng.standard_normal((2, 4)))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    assert largest == pytest.approx(value(corners).max(), rel=1e-12)
    assert value(best) == largest


def test_the_largest_value_over_a_ball_is_an_eigenvalue() -> None:
    """Which is approached slowly where the next one is near: the steps end all the same."""
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    matrix = turned @ np.diag([1.0, 0.98, 0.5, 0.1]) @ turned.T

    def corner(g: Any) -> Any:
        return g / np.linalg.norm(g, axis=-1, keepdims=True)

    best, largest = largest_value(
        lambda x: (np.asarray(x) @ matrix * x).sum(-1),
        lambda x: 2.0 * np.asarray(x) @ matrix,
        corner,
        0.1 * turned[:2] + 0.01,
    )
    assert largest == pytest.approx(1.0, abs=1e-3)
    assert best @ matrix @ best == pytest.approx(largest)


BUILT: list[int] = []


def build() -> Any:
    BUILT.append(1)
    return Robust(3, 0.3), mm.Ball(3, 2.0), finite("costs")


@parametrize_checks(constraint=build)
def test_a_constraint_as_pytest_cases(check: Any) -> None:
    check()
    assert len(BUILT) == 1  # built for the first case, kept for the others


def test_a_problem_as_pytest_cases() -> None:
    mark = parametrize_checks(problem=PROBLEMS["mean_gap"].build).mark
    cases = dict(zip(mark.kwargs["ids"], mark.args[1], strict=True))
    for name in ("primal-center", "block-start", "dual-diameter", "constraint-shapes", "problem-fused"):
        cases[name]()


def test_cases_are_lazy_named_and_fail_with_the_finding() -> None:
    calls: list[int] = []

    def make() -> Any:
        calls.append(1)
        return LowDiameter(3, 1.0)

    mark = parametrize_checks(generator=make).mark
    names, cases = mark.kwargs["ids"], mark.args[1]
    assert not calls
    assert "generator-diameter" in names
    with pytest.raises(CheckFailed, match=r"declared 0\.45"):
        cases[names.index("generator-diameter")]()
    cases[names.index("generator-linear_minimum")]()
    assert calls == [1]
    with pytest.raises(pytest.skip.Exception):
        cases[names.index("generator-penalty_convex")]()  # a check of inner blocks


@pytest.mark.parametrize(
    "given",
    [
        {"constraint": 3},
        {"constraint": (Linear(), mm.Ball(3, 1.0))},
        {"problem": 3},
        {"generator": 3},
        {"oracle": 3},
        {"oracle": (mm.SMD(), 3)},
        {"solver": 3},
        {"problem": quadratic(), "oracle": mm.SMD()},
        {"problem": quadratic, "solver": mm.SFLS()},
    ],
)
def test_cases_of_another_kind_are_refused_at_once(given: Any) -> None:
    with pytest.raises(mm.InvalidInput):
        parametrize_checks(**given)


def test_an_oracle_is_tried_on_the_problem_beside_it() -> None:
    (case,) = [
        case
        for case in parametrize_checks(oracle=(mm.SMD(steps=40), PROBLEMS["mean_gap"].build())).mark.args[1]
        if case.name == "oracle-estimate"
    ]
    (part,) = case.findings().parts
    assert len(part.subject.quiet) == 3
    case()


def test_cases_skip_what_would_repeat_a_failure() -> None:
    problem = quadratic()
    mark = parametrize_checks(constraint=lambda: (WrongSign(), problem.primal, problem.data)).mark
    cases = dict(zip(mark.kwargs["ids"], mark.args[1], strict=True))
    with pytest.raises(CheckFailed):
        cases["constraint-gradient"]()
    with pytest.raises(pytest.skip.Exception, match="until gradient passes"):
        cases["constraint-curvature"]()


def test_cases_need_an_object() -> None:
    with pytest.raises(mm.InvalidInput, match="give a generator"):
        parametrize_checks()
    names = parametrize_checks(
        constraint=lambda: (Linear(), mm.Ball(3, 1.0), finite("costs")), oracle=mm.SMD(), solver=mm.SFLS()
    ).mark.kwargs["ids"]
    assert {"constraint-unbiased", "oracle-upper_bound", "solver-honest_status"} <= set(names)
