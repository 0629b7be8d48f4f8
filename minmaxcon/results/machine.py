"""The machine that measurements are made on, and whether it was quiet."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minmaxcon.checks import instances, mapping

__all__ = ["describe_machine", "environment", "load_average", "one_thread"]

_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    "NPROC",  # of JAX, which reads it when it first computes
)


def describe_machine() -> dict[str, Any]:
    """Return the processor's name, the number of cores, and the system."""
    return {"cpu": _processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def load_average() -> float | None:
    """Return the mean number of busy processes over the last minute; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold linear algebra at one thread, also that of libraries which are loaded meanwhile; put all back afterwards.

    Times then compare between machines, and last bits do not depend on the number of threads.
    """
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None else 1
    try:
        with environment(dict.fromkeys(_THREADS, "1")), threadpool_limits(limits=1):
            if torch is not None:
                torch.set_num_threads(1)
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for this process and those that it starts; put all back afterwards."""
    remedy = "must map names of variables to texts."
    instances("values", mapping("values", values, remedy).values(), str, remedy)
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
