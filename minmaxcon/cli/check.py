"""``minmaxcon check``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Whole, value_of
from minmaxcon.cli.output import Output

__all__ = ["check"]


def check(
    name: str,
    /,
    *,
    seed: Whole = 0,
    json: Flag = False,
    quiet: Flag = False,
    **options: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> int:
    """Check a problem against what the theory needs of it, and say what is wrong with an example.

    Its geometry, inner blocks, objective, constraints and data are tried on drawn points: unbiased terms, gradients,
    convexity, prox, diameter, worst-case values, purity, runs and array engines. The problem's own options follow as
    with `minmaxcon solve`, such as `--kappa 0.1`; without any, each of the problem's examples is checked. Exit status
    0 if all passed, 1 if a check failed, 2 for bad input.

    Parameters
    ----------
    name
        The problem; `minmaxcon problems` lists them.
    seed
        Seed of the points that are drawn.
    json
        Print the reports as JSON, and nothing else on standard output.
    quiet
        No notes.
    options
        Options of the problem.
    """
    import json as codec

    from minmaxcon.testing import check_problem

    output = Output(json=json, quiet=quiet)
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    reports = []
    with output.guarded():
        chosen = _given(name, options) if options else [dict(example) for example in mm.plugin(name).examples()]
        for place, example in enumerate(chosen, start=1):
            if len(chosen) > 1:
                output.note(f"{name} {_words(example)}({place} of {len(chosen)})")
            problem = mm.load_problem(name, **example)
            reports.append((example, check_problem(problem, seed=seed)))
    if json:
        found = [{"problem": name, "options": given, "seed": seed, **report.to_dict()} for given, report in reports]
        output.result(codec.dumps(found, indent=2, default=str) + "\n")
    else:
        heads = [f"minmaxcon check {name} {_words(given)}".rstrip() for given, _ in reports]
        output.result("\n".join(f"{head}\n\n{report}" for head, (_, report) in zip(heads, reports, strict=True)))
    return 0 if all(report.passed for _, report in reports) else 1


def _words(given: Mapping[str, Any]) -> str:
    return "".join(f"--{option.replace('_', '-')} {value} " for option, value in given.items())


def _given(name: str, options: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the options as they stand on the command line, read as their defaults tell."""
    plugin = mm.plugin(name)
    known, parameters = plugin.options(), inspect.signature(plugin.load).parameters
    ours = ("seed", "json", "quiet")
    found = {}
    for word, text in options.items():
        option = word.replace("-", "_")
        if option not in known:
            words = dict.fromkeys(f"--{each.replace('_', '-')}" for each in (*known, *ours))
            raise mm.UnknownName("option", f"--{word}", words)
        found[option] = value_of(text, parameters[option].default)
    return [found]
