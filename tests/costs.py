"""Processor time and memory of a piece of work, measured in a process that is forked for it alone."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What was raised, and what it took.

    Attributes
    ----------
    raised, said : str
        The name of the class that was raised, and its message; empty where nothing was.
    seconds : float
        Processor time.
    megabytes : float
        By how much the most memory in use at once, of NumPy, Arrow and Python alike, grew.
    """

    raised: str
    said: str
    seconds: float
    megabytes: float


def cost_of(work: Callable[[], object]) -> Cost:
    """Do the work in a process of its own."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        raised = said = ""
        began, held = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            work()
        except BaseException as error:  # whatever it is, the caller judges it
            raised, said = type(error).__name__, str(error)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) / 2**10
        os.write(write, json.dumps([raised, said, time.process_time() - began, grown]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        content = told.read()
    os.waitpid(process, 0)
    return Cost(*json.loads(content))
