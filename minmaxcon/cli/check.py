"""``minmaxcon check``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Whole, words_of
from minmaxcon.cli.output import Output
from minmaxcon.cli.solve import load_problem

__all__ = ["check"]


def check(
    name: str,
    /,
    *,
    seed: Whole = 0,
    json: Flag = False,
    quiet: Flag = False,
    **options: Any,
) -> int:
    """Check a problem against what the theory needs of it, and say what is wrong with an example.

    Its geometry, inner blocks, objective, constraints and data are tried on drawn points: unbiased terms, gradients,
    convexity, prox, diameter, worst-case values, purity, runs and array engines. `minmaxcon check NAME --help` also
    shows the options of that problem; without any, each of the problem's examples is checked. Exit status 0 if all
    passed, 1 if a check failed, 2 for bad input.

    Parameters
    ----------
    name
        The problem; `minmaxcon problems` lists them.
    seed
        Seed of the problem's data, where it has one, and of the points that are drawn.
    json
        Print the reports as JSON, and nothing else on standard output.
    quiet
        No notes.
    """
    import json as codec

    from minmaxcon.testing import check_problem

    output = Output(json=json, quiet=quiet)
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    reports = []
    with output.guarded():
        plugin = mm.plugin(name)
        seeded = {"seed": seed} if "seed" in plugin.options() else {}
        chosen = [{**example, **seeded} for example in ([options] if options else plugin.examples())]
        for place, example in enumerate(chosen, start=1):
            if len(chosen) > 1:
                output.note(f"{_headline(name, example)} ({place} of {len(chosen)})")
            problem = load_problem(name, example)
            reports.append((example, check_problem(problem, seed=seed)))
    if json:
        found = [{"problem": name, "options": given, "seed": seed, **report.to_dict()} for given, report in reports]
        output.result(codec.dumps(found, indent=2, default=str) + "\n")
    else:
        heads = [f"minmaxcon check {_headline(name, given)}" for given, _ in reports]
        output.result("\n".join(f"{head}\n\n{report}" for head, (_, report) in zip(heads, reports, strict=True)))
    return 0 if all(report.passed for _, report in reports) else 1


def _headline(name: str, options: Mapping[str, Any]) -> str:
    return f"{name} {words_of(options)}".rstrip()
