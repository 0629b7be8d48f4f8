"""Fuzzing that is guided by coverage: ``python -m tests.fuzzing.guided KIND SECONDS FOLDER``, with Atheris.

It chooses the changes by the branches of minmaxcon that they reach, of files' own bytes and of what Hypothesis draws
files by. The folder takes the files; ``counts`` in it holds how many were tried and how many refused.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

READING = {
    "checkpoint",
    "codec",
    "datasets",
    "evidence",
    "files",
    "labelled",
    "own_files",
    "results",
    "streamed",
    "sweep",
}
READING |= {"tables"}
"""Modules and packages that take files apart: those alone are watched, since to prepare a module takes long."""


def tried(kind: str, seconds: float, folder: Path) -> tuple[int, int]:
    """Try files for so long in a process of its own; return how many there were, and how many were refused.

    AssertionError, with the end of what was written, where one is neither read nor refused.
    """
    words = [sys.executable, "-m", "tests.fuzzing.guided", kind, str(seconds), str(folder)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "problems"), *filter(None, [os.environ.get("PYTHONPATH")])])
    surroundings = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise AssertionError(f"{kind}, by Atheris: {done.stdout[-4000:]}\n{done.stderr[-1000:]}")
    files, refused = (folder / "counts").read_text().split()
    return int(files), int(refused)


def main(kind: str, seconds: str, place: str) -> None:
    """Try files until the time is over; the process then ends by itself."""
    import atheris

    with atheris.instrument_imports(include=["minmaxcon", "minmaxcon_problems"], exclude=_others()):
        from hypothesis import HealthCheck, given, seed, settings

        from tests.fuzzing.readers import Case, attempt, cases_of, tried

        tried(kind, 0.5, _new(Path(place) / "first"))  # what is imported when it is needed counts too
        work, corpus = _new(Path(place) / "work"), _new(Path(place) / "corpus")
        known = cases_of(kind, work)
    counts, told = [0, 0], os.open(Path(place) / "counts", os.O_WRONLY | os.O_CREAT)

    def attempted(case: Case, content: bytes) -> None:
        counts[1] += attempt(case, content, work)
        counts[0] += 1
        os.pwrite(told, b"%20d %20d" % tuple(counts), 0)

    def drawing(files: Any, count: int, into: Callable[[bytes], Any]) -> Any:
        @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(files)
        def each(content: bytes) -> None:
            into(content)

        return each

    by_hypothesis: list[Any] = []
    rng = random.Random(0)
    for number, case in enumerate(known):
        good: list[bytes] = []
        seed(0)(drawing(case.inner or case.files, 16, good.append))()
        seeds = [b"\0" + bytes([number]) + content for content in good]
        seeds += [b"\1" + bytes([number]) + rng.randbytes(2000) for _ in range(2)]
        for which, content in enumerate(seeds):
            (corpus / f"{number}-{which}").write_bytes(content)
        by_hypothesis.append(drawing(case.files, 1, partial(attempted, case)).hypothesis.fuzz_one_input)

    def one(data: bytes) -> None:
        """The first byte says whether Hypothesis draws a file by the rest or it is one, the second of which case."""
        if len(data) < 2:
            return
        number = data[1] % len(known)
        if data[0] % 2:
            by_hypothesis[number](data[2:])
        else:
            attempted(known[number], known[number].frame(data[2:]))

    limits = [f"-max_total_time={int(float(seconds))}", "-max_len=6000", "-timeout=60", "-rss_limit_mb=4096", "-seed=1"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={place}/", str(corpus)], one)
    atheris.Fuzz()


def _others() -> list[str]:
    """Return the modules that take no file apart."""
    files = [*(ROOT / "minmaxcon").rglob("*.py"), *(ROOT / "problems" / "minmaxcon_problems").rglob("*.py")]
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in files]
    names = {".".join(each[each[0] == "problems" :]).removesuffix(".__init__") for each in parts}
    return [name for name in names if not READING & set(name.split("."))]


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main(*sys.argv[1:])
