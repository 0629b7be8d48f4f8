"""Arrays, errors and the registry: what everything else stands on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon import registry
from minmaxcon.arrays import Constant, engine, namespace

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
CALLS: dict[str, Any] = {
    "exp": lambda xp, x, _: xp.exp(x),
    "log": lambda xp, x, _: xp.log(xp.abs(x)),
    "sqrt": lambda xp, x, _: xp.sqrt(xp.abs(x)),
    "sign": lambda xp, x, _: xp.sign(x),
    "isfinite": lambda xp, x, _: xp.isfinite(x),
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "maximum with a number": lambda xp, x, _: xp.maximum(x, 0.1),
    "minimum": lambda xp, x, y: xp.minimum(x, y),
    "clip": lambda xp, x, y: xp.clip(x, -xp.abs(y), xp.abs(y)),
    "where": lambda xp, x, y: xp.where(x > 0, x, y),
    "sum": lambda xp, x, _: xp.sum(x),
    "sum kept": lambda xp, x, _: xp.sum(x, keepdims=True),
    "max": lambda xp, x, _: xp.max(x),
    "max kept": lambda xp, x, _: xp.max(x, keepdims=True),
    "argmin": lambda xp, x, _: xp.argmin(x),
    "dot": lambda xp, x, y: xp.dot(x, y),
    "take": lambda xp, x, _: xp.take(x, [2, 0]),
    "take nothing": lambda xp, x, _: xp.take(x, []),
    "rows": lambda xp, x, _: xp.rows(x, np.array([2, 2, 0])),
    "concat": lambda xp, x, y: xp.concat([x, y]),
    "stack": lambda xp, x, y: xp.stack([x, y]),
    "broadcast": lambda xp, x, _: xp.broadcast_to(x[0], (3, 4)),
    "zeros": lambda xp, x, _: xp.zeros((2, 3), x),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS)
def test_engines_agree(call: str, dtype: str) -> None:
    found = []
    for name in ("numpy", "torch"):
        xp = engine(name)
        result = CALLS[call](xp, xp.create(X, dtype), xp.create(Y, dtype))
        assert "float" not in str(result.dtype) or str(result.dtype).endswith(dtype)
        found.append(np.asarray(xp.to_numpy(result)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_constants_take_the_precision_of_what_they_meet(name: str) -> None:
    xp = engine(name)
    constant = pickle.loads(pickle.dumps(Constant([1.0, 2.0])))  # noqa: S301
    for dtype in ("float32", "float64"):
        x = xp.create([0.0], dtype)
        assert constant.like(x).dtype == x.dtype
        assert constant.like(x) is constant.like(x)
        assert namespace(constant.like(x)) is xp


ERRORS = [
    mm.InvalidInput("kappa", [1.0] * 100, "use fewer."),
    mm.UnknownName("metric", "grup", ("group", "inter_group")),
    mm.DataError("file.csv", "row 3 is odd."),
    mm.MissingDependency("cvxpy", "reference", "reference solutions"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_one_line_and_survive_a_pickle(error: Any) -> None:
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert str(copied) == str(error)
    assert type(copied) is type(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 200


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(mm.UnknownName, match="did you mean 'fair_auc'"):
        mm.load_problem("fair_acu")
    with pytest.raises(mm.InvalidInput, match="did you mean 'metric'"):
        mm.load_problem("fair_auc", metrc="group")


class Toy(mm.ProblemPlugin):
    """A plug-in as an outsider would write it."""

    name = "toy"

    def load(self, size: int = 2) -> mm.MinMaxProblem:
        raise mm.InvalidInput("size", size, "only a test.")


@pytest.mark.parametrize("registered", [Toy, Toy()])
def test_a_class_or_an_instance_may_be_registered(registered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda: {"toy": SimpleNamespace(load=lambda: registered, value="t")})
    registry.plugin.cache_clear()
    found = mm.plugin("toy")
    assert found.options() == ("size",)
    with pytest.raises(mm.InvalidInput, match="only a test"):
        mm.load_problem("toy", size=3)
    with pytest.raises(mm.Unsupported):
        found.export(None, None)  # type: ignore[arg-type]
    registry.plugin.cache_clear()


def _broken() -> Any:
    raise RuntimeError("no such thing")


@pytest.mark.parametrize("load, message", [(_broken, "no such thing"), (lambda: 3, "not a ProblemPlugin")])
def test_a_broken_plugin_is_named(load: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda: {"bad": SimpleNamespace(load=load, value="bad:it")})
    registry.plugin.cache_clear()
    with pytest.raises(mm.MinMaxConError, match=message):
        mm.plugin("bad")
    registry.plugin.cache_clear()


def test_import_is_light() -> None:
    script = (
        "import sys, minmaxcon; minmaxcon.plugin_names(); "
        "heavy = ('torch', 'cvxpy', 'matplotlib', 'sklearn', 'pandas', 'minmaxcon_problems'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
