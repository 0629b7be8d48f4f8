"""Print what the page of experiments says of a run of ``minmaxcon reproduce``, and make its figures small.

Run as ``python docs/figures/fronts.py DIR`` on the folder that ``minmaxcon reproduce --out DIR`` has written. With a
second word, a folder, the figures go there, 1,400 pixels wide and in 64 colours.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from PIL import Image

BELOW, ABOVE = 0.003, 0.001
"""Where the gap in training is to lie, seen from the target."""


def band(folder: Path) -> str:
    """Say how many active targets are met closely in training, and how the others ended.

    A target is active where the model without one, which the loosest targets end in, exceeds it by more than 0.001, or
    where the status says that it is out of reach.
    """
    active, missed = 0, []
    for path in sorted((folder / "runs").glob("*-max_gap-*.json")):
        points = [point for point in json.loads(path.read_text())["points"] if point["kind"] == "target"]
        free = max(point["train"]["gap"] for point in points)
        for point in points:
            target, gap = point["asked"], point["train"]["gap"]
            if free <= target + ABOVE and point["status"] != "out_of_reach":
                continue
            active += 1
            if not target - BELOW <= gap <= target + ABOVE:
                missed.append(f"  {path.stem}, target {target:g}: {gap:.4f}, {point['status']}")
    return "\n".join([f"{active - len(missed)} of {active} active targets are met closely in training", *missed])


def ahead(folder: Path) -> str:
    """Say in how many panels one of our series is ahead of the best other or within one paired standard error."""
    with (folder / "ahead.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    good = sum(row["verdict"] != "behind" for row in rows)
    lines = [
        f"  {row['model']}, {row['data']}, {row['metric']}: {float(row['mean']):+.4f}, {row['verdict']}"
        for row in rows
        if row["verdict"] != "ahead"
    ]
    return "\n".join([f"one of our series is ahead or level in {good} of {len(rows)} panels; not ahead:", *lines])


def shrink(folder: Path, to: Path) -> None:
    """Write the figures anew, smaller."""
    for path in sorted(folder.glob("fronts-*.png")):
        with Image.open(path) as image:
            size = 1400, round(1400 * image.height / image.width)
            small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            small.quantize(64).save(to / path.name, optimize=True)


def usage(words: list[str]) -> str | None:
    """Return what is wrong with the words of the command, or None."""
    if not 1 <= len(words) <= 2:
        return f"one folder or two are needed, not {len(words)}"
    folder = Path(words[0])
    if not (folder / "ahead.csv").is_file() or not any((folder / "runs").glob("*.json")):
        return f"{folder} is no folder that minmaxcon reproduce --out DIR has written"
    return None if all(Path(word).is_dir() for word in words) else f"there is no folder {words[1]}: make it first"


if __name__ == "__main__":
    if wrong := usage(sys.argv[1:]):
        print(f"{wrong}; run python docs/figures/fronts.py DIR [FIGURES]", file=sys.stderr)
        sys.exit(2)
    print(band(Path(sys.argv[1])))
    print(ahead(Path(sys.argv[1])))
    if len(sys.argv) > 2:
        shrink(Path(sys.argv[1]), Path(sys.argv[2]))
