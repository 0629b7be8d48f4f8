"""Problems by name: discovery, options, and plug-ins that are not what they should be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon import registry
from tests.cases import quadratic


class Toy(mm.ProblemPlugin):
    """A plug-in as an outsider would write it."""

    name = "toy"

    def load(self, bound: float = 0.5, *, engine: str = "numpy") -> mm.MinMaxProblem:
        return quadratic(bound, engine)


class Open(mm.ProblemPlugin):
    """A plug-in that hands all options on."""

    name = "open"

    def load(self, **options: Any) -> mm.MinMaxProblem:
        return quadratic(**options)


class Demanding(mm.ProblemPlugin):
    """A plug-in that cannot be made without arguments."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def load(self) -> mm.MinMaxProblem:
        return quadratic()


class Half(mm.ProblemPlugin):
    """A plug-in without load()."""


made: list[str] = []


class Stranger:
    """No plug-in at all; making one would be seen."""

    def __init__(self) -> None:
        made.append("stranger")


def broken() -> Any:
    raise ImportError("first line\nsecond line")


def silent() -> Any:
    raise AssertionError


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Pretend that entry points are installed; the loaders count their calls."""
    calls: list[str] = []

    def put(**loaders: Any) -> list[str]:
        def load(name: str) -> Any:
            calls.append(name)
            return loaders[name]()

        points = {n: SimpleNamespace(name=n, load=lambda n=n: load(n), value=f"package:{n}") for n in sorted(loaders)}
        monkeypatch.setattr(registry, "_entry_points", lambda: points)
        registry._imported.cache_clear()
        return calls

    yield put
    registry._imported.cache_clear()


def test_built_in_problems_are_entry_points() -> None:
    installed = sorted({point.name for point in entry_points(group=registry.ENTRY_POINT_GROUP)})
    assert registry.ENTRY_POINT_GROUP == "minmaxcon.problems"
    assert "fair_auc" in mm.plugin_names()
    assert list(mm.plugin_names()) == installed
    for name in installed:
        found = mm.plugin(name)
        assert isinstance(found, mm.ProblemPlugin)
        assert found.name == name
        assert found.summary
        assert mm.plugin(name) is found


def test_names_import_nothing(install: Any) -> None:
    calls = install(b=broken, a=Toy)
    assert mm.plugin_names() == ("a", "b")
    assert calls == []


def test_import_is_light() -> None:
    heavy = ("torch", "cvxpy", "matplotlib", "scipy", "sklearn", "pandas", "pydantic", "minmaxcon_problems")
    script = (
        "import sys, minmaxcon; names = minmaxcon.plugin_names(); "
        f"print('fair_auc' in names, [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"


@pytest.mark.parametrize("registered", [lambda: Toy, Toy], ids=["class", "instance"])
def test_a_class_or_an_instance_may_be_registered(registered: Any, install: Any) -> None:
    calls = install(toy=registered)
    found = mm.plugin("toy")
    assert isinstance(found, Toy)
    assert found.options() == ("bound", "engine")
    assert mm.load_problem("toy", bound=0.25).bounds()[0, 0] == 0.25
    assert mm.load_problem("toy", engine="torch").data.like.__class__.__module__ == "torch"
    assert calls == ["toy"], "a plug-in is loaded once"


def test_what_a_plugin_need_not_offer(install: Any) -> None:
    install(toy=Toy)
    found, problem = mm.plugin("toy"), mm.load_problem("toy")
    assert not found.evaluate(problem, problem.start)
    assert not found.notes(problem, [])
    assert not found.choices()
    assert not found.measures
    assert not isinstance(found, registry.SavesModels | registry.BringsData)


def test_options_may_be_open(install: Any) -> None:
    install(open=Open)
    assert mm.load_problem("open", bound=0.25).bounds()[0, 0] == 0.25
    assert mm.plugin("open").options() == ()


def test_unknown_names_and_options(install: Any) -> None:
    with pytest.raises(mm.UnknownName, match=r"name='fair_acu'.*did you mean 'fair_auc'"):
        mm.load_problem("fair_acu")
    with pytest.raises(mm.InvalidInput, match=r"metrc='group'.*did you mean 'metric'.*kappa") as caught:
        mm.load_problem("fair_auc", metrc="group")
    assert caught.value.argument == "metrc"
    calls = install(toy=Toy)
    with pytest.raises(mm.UnknownName, match="Known: toy"):
        mm.plugin("fair_auc")
    assert calls == []


@pytest.mark.parametrize(
    "load, message",
    [
        (broken, r"'bad' \(package:bad\) failed to load: ImportError: first line second line"),
        (silent, "failed to load: AssertionError"),
        (lambda: Demanding, "failed to load: TypeError.*folder"),
        (lambda: Half, "failed to load: TypeError.*load"),
        (lambda: 3, "is not a ProblemPlugin"),
        (lambda: Stranger, "is not a ProblemPlugin"),
    ],
)
def test_a_broken_plugin_is_named(load: Any, message: str, install: Any) -> None:
    install(bad=load, toy=Toy)
    with pytest.raises(mm.MinMaxConError, match=message) as caught:
        mm.plugin("bad")
    assert len(str(caught.value).splitlines()) == 1
    assert made == [], "a class that is no plug-in is not made"
    assert isinstance(mm.plugin("toy"), Toy), "the others still work"


def test_a_plugin_is_abstract() -> None:
    with pytest.raises(TypeError, match="load"):
        mm.ProblemPlugin()
