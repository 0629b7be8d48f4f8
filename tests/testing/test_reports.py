"""Reports that can be read, pages that exist, and the checks as pytest cases."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.testing import (
    CheckFailed,
    check_constraint,
    check_generator,
    check_oracle,
    check_problem,
    check_solver,
    parametrize_checks,
)
from minmaxcon.testing.parts import all_checks
from tests.cases import PROBLEMS, finite, quadratic
from tests.problem_library import Linear
from tests.testing.faulty_functions import WrongSign
from tests.testing.faulty_geometry import LowDiameter

DOCS = Path(__file__).parents[2] / "docs"


def failing() -> Any:
    return check_generator(LowDiameter(3, 1.0))


def test_a_failure_says_what_was_expected_and_seen_with_an_example_and_a_page() -> None:
    report = failing()
    (failure,) = report.failures
    assert failure.check == "diameter"
    text = str(report)
    assert "1 failed" in text.splitlines()[0]
    for part in (failure.expected, "declared 0.45", "0.5", "u = (", failure.page):
        assert " ".join(part.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 110
    assert "linear_minimum" in text  # what passed is told too


def test_a_report_is_a_sequence_and_raises_if_it_failed() -> None:
    report = failing()
    assert len(report) == len(list(report)) == len(report[:])
    assert report[0].check == "contains"
    assert not report.passed
    with pytest.raises(CheckFailed, match=r"declared 0\.45"):
        report.raise_if_failed()
    check_generator(mm.Ball(3, 1.0)).raise_if_failed()
    assert not issubclass(CheckFailed, mm.MinMaxConError)
    assert issubclass(CheckFailed, AssertionError)


def test_a_report_goes_into_json() -> None:
    found = json.loads(json.dumps(failing().to_dict()))
    assert found["passed"] is False
    (failure,) = [finding for finding in found["findings"] if finding["status"] == "failed"]
    assert failure["check"] == "diameter"


def test_the_same_seed_gives_the_same_report() -> None:
    problem = quadratic()
    assert check_problem(problem, seed=3) == check_problem(problem, seed=3)
    first, second = (check_constraint(WrongSign(), problem.primal, problem.data, seed=s) for s in (0, 1))
    assert first.failures[0].counterexample != second.failures[0].counterexample


def test_what_a_plug_in_raises_is_a_failure_that_quotes_it() -> None:
    class Broken(Linear):
        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            raise KeyError("no such column")

    report = check_constraint(Broken(), mm.Ball(3, 1.0), finite("costs"))
    assert "KeyError" in report.failures[0].seen
    assert "no such column" in report.failures[0].seen
    assert "test_reports.py" in report.failures[0].counterexample


def anchors(page: Path) -> set[str]:
    lines = page.read_text().splitlines()
    titles = {
        re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        for title, line in itertools.pairwise(lines)
        if title and re.fullmatch(r"[=\-~^]{3,}", line)
    }
    return titles | set(re.findall(r"^\.\. _([a-z0-9-]+):", page.read_text(), re.MULTILINE))


def test_every_page_that_a_check_names_exists() -> None:
    for check in all_checks():
        name, _, anchor = check.page.partition("#")
        page = DOCS / name.replace(".html", ".rst")
        assert page.is_file(), check.page
        assert not anchor or anchor in anchors(page), check.page


def test_every_check_is_explained() -> None:
    text = (DOCS / "howto" / "conformance.rst").read_text()
    for check in all_checks():
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


@pytest.mark.parametrize("seed", [-1, 0.5, True, "1"])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="seed"):
        check_generator(mm.Ball(3, 1.0), seed=seed)


def test_without_cvxpy_the_rest_is_checked() -> None:
    code = """
import sys
sys.modules["cvxpy"] = None
import minmaxcon as mm
from minmaxcon.testing import check_generator
report = check_generator(mm.Ball(3, 1.0))
skipped = {finding.check: finding.seen for finding in report.having("skipped")}
assert report.passed and set(skipped) == {"reference_forms"}, str(report)
print(skipped["reference_forms"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cvxpy is needed" in done.stdout
    assert "minmaxcon[reference]" in done.stdout


class _Built:
    count = 0


def build() -> mm.MinMaxProblem:
    _Built.count += 1
    return PROBLEMS["mean_gap"].build()


@parametrize_checks(problem=build)
def test_a_problem_as_pytest_cases(check: Any) -> None:
    check()
    assert _Built.count == 1  # built for the first case, kept for the others


@parametrize_checks(generator=mm.Simplex(3))
def test_a_generator_as_pytest_cases(check: Any) -> None:
    check()


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


def test_cases_need_an_object() -> None:
    with pytest.raises(mm.InvalidInput, match="give a generator"):
        parametrize_checks()
    names = parametrize_checks(
        constraint=lambda: (Linear(), mm.Ball(3, 1.0), finite("costs")), oracle=mm.SMD(), solver=mm.SFLS()
    ).mark.kwargs["ids"]
    assert {"constraint-unbiased", "oracle-upper_bound", "solver-honest_status"} <= set(names)
