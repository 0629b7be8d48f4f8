"""`import minmaxcon` loads nothing heavy, not even NumPy: each public name comes when it is first used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "numpy",
    "torch",
    "cvxpy",
    "clarabel",
    "matplotlib",
    "scipy",
    "sklearn",
    "pandas",
    "narwhals",
    "pydantic",
    "tqdm",
)


def run(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_importing_loads_nothing_heavy() -> None:
    code = f"import sys, minmaxcon; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(code) == "[]"


def test_solving_with_numpy_loads_neither_torch_nor_cvxpy() -> None:
    code = (
        "import sys, minmaxcon as mm\n"
        "from minmaxcon_problems.fair_auc import build_problem, Dataset, resolve_metric\n"
        "from minmaxcon_problems.fair_auc.labelled import LabelledData\n"
        "import numpy as np\n"
        "rng = np.random.default_rng(0)\n"
        "rows = LabelledData(rng.normal(size=(40, 2)), np.tile([1, -1], 20), np.repeat([1, -1], 20), ('a', 'b'))\n"
        "p = build_problem(Dataset('d', rows, None, rows), resolve_metric('inter_group'), 0.5)\n"
        "mm.solve(p, mm.SFLS(oracle=mm.SMD(steps=50), levels=2))\n"
        "print([name for name in ('torch', 'cvxpy', 'matplotlib') if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_every_public_name_is_there() -> None:
    code = "import minmaxcon as mm; print([name for name in mm.__all__ if getattr(mm, name) is None])"
    assert run(code) == "[]"


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    code = "import minmaxcon as mm\ntry:\n    mm.Sfls\nexcept AttributeError as error:\n    print(error)"
    assert "Sfls" in run(code)
