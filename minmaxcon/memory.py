"""How much memory may be used, and the check of what something needs before it is allocated."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from minmaxcon.errors import InvalidInput, OutOfMemory

__all__ = ["VARIABLE", "memory_limit", "parsed", "require_memory"]

VARIABLE = "MINMAXCON_MEMORY"
"""The environment variable that holds the limit, as ``--memory`` sets it: ``4G``, ``500M`` or ``50%`` of the memory."""

_SHARE = 0.5
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?)(i?B)?|([0-9]+(?:\.[0-9]*)?)\s*%", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parsed(name: str, text: str) -> float:
    """Return the bytes that a text such as ``4G``, ``500M`` or ``50%`` means.

    Raises
    ------
    InvalidInput
        If it means none, or is a share of more than 100%.

    Examples
    --------
    >>> parsed("memory", "1.5K")
    1536.0
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or not any(character in "123456789" for character in text):
        raise InvalidInput(name, text, "must be a size such as 4G or 500M, or a share of the memory such as 50%.")
    if found[4] is not None:
        if (share := float(found[4])) > 100.0:
            raise InvalidInput(name, text, "must be at most 100% of the memory; half of it is the default.")
        return share / 100.0 * _total()
    return float(found[1]) * _UNITS[found[2].upper()]


def memory_limit() -> float:
    """Return the bytes that may be used: what the environment variable says, else half of the memory."""
    text = os.environ.get(VARIABLE)
    return _SHARE * _total() if not text else parsed(VARIABLE, text)


def require_memory(size: float, what: str, remedy: str) -> None:
    """Refuse what would need more memory than there may be used, before it is allocated.

    Parameters
    ----------
    size : float
        Bytes, about.
    what : str
        What needs them, such as "30,000,000 rows of 5 columns".
    remedy : str
        What would fit.

    Raises
    ------
    OutOfMemory
        If it is more than :func:`memory_limit`.
    """
    limit = memory_limit()
    if size > limit:
        need = f"{what} need about {_shown(size)} of memory, and {_shown(limit)} may be used"
        raise OutOfMemory(f"{need} (--memory, {VARIABLE}): {remedy}")


def _shown(size: float) -> str:
    unit = next(unit for unit in "TGMK" if size >= _UNITS[unit] or unit == "K")
    return f"{size / _UNITS[unit]:.3g} {unit}B"


def _total() -> float:
    """Return the memory of the machine, or of the container that this process runs in."""
    sizes = [float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))]
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            sizes.append(float(Path(place).read_text(encoding="ascii")))
    return min(sizes)
