"""What every test may use: hypothesis profiles, one BLAS thread a process, and the folder of shared data."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest
from _pytest.doctest import DoctestModule

from tests.figures import Figure
from tests.promises import select

# Set before anything imports numpy: with two workers on two cores, more threads only fight for the cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# XLA's optimisations of a compiled block take longer than a test runs it for; what is traced is the same.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# No test may open a window.
os.environ.setdefault("MPLBACKEND", "Agg")

# nohup and shells that start the tests in the background let them ignore signals; the product answers them, and what it
# starts would inherit it.
for answered in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(answered) is signal.SIG_IGN:
        signal.signal(answered, signal.default_int_handler if answered == signal.SIGINT else signal.SIG_DFL)

hypothesis.settings.register_profile("dev", max_examples=30, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=30, deadline=None, derandomize=True)
hypothesis.settings.register_profile("deep", max_examples=5000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of the shared data sets (a9a, bank, COMPAS), or skip where there is none."""
    named = os.environ.get("MINMAXCON_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    if not folder.is_dir():
        pytest.skip(f"no shared data: {folder} is not a folder; set MINMAXCON_DATA to the one that holds a9a.gz")
    return folder


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Give what keeps the figures of a promise in the report of the tests."""
    return Figure(record_property)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the docstrings of the packages alone: tests have none, and each module is searched long."""
    found = yield
    if Path(__file__).parent in file_path.parents:
        found = [one for one in found if not isinstance(one, DoctestModule)]
    return found


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected: it would look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)  # many numbers and names live for one test alone


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select by promise, and refuse names with an address in memory: two workers would collect two different suites."""
    moving = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if moving:
        raise pytest.UsageError(f"give ids to the parameters of {moving[0]}: its name changes from run to run.")
    select(config, items)
    items.sort(key=lambda item: "spoilt_files" not in item.name)  # minutes each: at the end one core would wait
