"""The laws that need no reference of a problem's own, for every plug-in of the gallery."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import minmaxcon as mm
from tests.cases import promises
from tests.figures import Figure
from tests.problems import plugin_laws as laws


@dataclass(frozen=True)
class Case:
    """Options that make it small, the option of the bound with several values, and a measure that a report shows."""

    bound: Mapping[str, Any]
    measure: str
    small: Mapping[str, Any] = field(default_factory=dict)
    smaller: Mapping[str, Any] | None = None  # where both engines are tried at every point
    oracle: mm.Oracle | None = None

    @property
    def smallest(self) -> Mapping[str, Any]:
        return self.small if self.smaller is None else self.smaller


GALLERY = {
    "cvar_portfolio": Case(
        {"bound": [4.0, 5.0]}, "expected_return", {"assets": 6, "scenarios": 400}, oracle=mm.MirrorProx()
    ),
    "fair_regression": Case({"bound": [0.02, 0.05]}, "r2"),
    "group_dro": Case({"slack": [0.004, 0.01]}, "worst_mse", oracle=mm.MirrorProx()),
    "group_parity": Case({"bound": [0.1, 0.3]}, "norm", {"rows": 400}, {"rows": 200}),
    "neyman_pearson": Case({"bound": [0.3, 0.5]}, "error_0"),
    "robust_diet": Case(
        {"need": [0.8, 1.0]},
        "cost",
        {"nutrients": ("energy", "protein", "calcium", "vitamin_c"), "samples": 200},
        oracle=mm.SMD(steps=400, batch_size=60),
    ),
    "toy": Case({"bound": [0.5, 1.0, 1.5]}, "distance_to_target", {"samples": 200}, {"samples": 50}),
    "worst_group": Case({"bound": [0.65, 0.68]}, "worst_error"),
}
every_plugin = pytest.mark.parametrize("name", GALLERY)


def plugin(name: str) -> mm.ProblemPlugin:
    return importlib.import_module(f"minmaxcon_problems.{name}").plugin


@cache
def problem(name: str) -> mm.MinMaxProblem:
    return plugin(name).load(**GALLERY[name].small)


def test_no_plugin_is_left_out() -> None:
    folder = Path(importlib.import_module("minmaxcon_problems").__path__[0])
    assert {path.parent.name for path in folder.glob("*/__init__.py")} == {*GALLERY, "fair_auc"}


@every_plugin
def test_gradients(name: str, figure: Figure) -> None:
    figure.largest("relative distance of gradients from differences", laws.gradients_match_differences(problem(name)))
    torch = plugin(name).load(**GALLERY[name].small, engine="torch")
    figure.largest("from autograd", laws.gradients_match_autograd(torch))


@every_plugin
def test_single_samples(name: str, figure: Figure) -> None:
    figure.largest("of the mean of single samples from the whole", laws.single_samples_are_unbiased(problem(name)))


@every_plugin
def test_engines(name: str) -> None:
    laws.engines_and_shapes_agree(plugin(name).load, **GALLERY[name].smallest)


@pytest.mark.parametrize("name", promises(GALLERY, ["toy"]))
def test_several_bounds(name: str) -> None:
    case = GALLERY[name]
    laws.several_bounds_in_one_solve(plugin(name).load(**case.bound, **case.small), case.oracle)


@every_plugin
@pytest.mark.parametrize(
    "option, value", [("seed", -1), ("seed", True), ("seed", 1.0), ("engine", "cupy"), ("dtype", "int8")]
)
def test_common_refusals(name: str, option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin(name).load(**{option: value})


@pytest.mark.parametrize("name", promises(GALLERY, ["toy"]))
def test_command_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--assets", "6", "--scenarios", "400"] if name == "cvar_portfolio" else []
    laws.command_line_solves(name, GALLERY[name].measure, tmp_path, capsys, options)
