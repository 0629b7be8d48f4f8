"""The machine that measurements are made on, and whether it was quiet."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["describe_machine", "load_average", "one_thread"]


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
    """Hold NumPy's linear algebra and torch at one thread, so that times compare between machines.

    Both are put back afterwards.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(limits=1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
