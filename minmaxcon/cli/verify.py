"""``minmaxcon verify``: a result checked by an outsider."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from minmaxcon.checks import number
from minmaxcon.cli.clock import current_clock
from minmaxcon.cli.options import Flag, Place
from minmaxcon.cli.output import Output, table

__all__ = ["verify"]


def verify(
    folder: Annotated[Place, Parameter(name="DIR")],
    /,
    *,
    time_limit: float | None = None,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Check what a result claims, from its point, its multipliers and the data, without the solvers.

    The problem is loaded by the options in result.json, relative paths from the current folder. Objective, constraints,
    true measures and the saved model are computed again at the recorded point; the lower bound, or the claim that no
    point is feasible, that the point is nearly stationary, or that first-order conditions hold, from the recorded
    multipliers. What rounding would decide is not confirmed. Exit status 0 if every claim is confirmed, 1 if one is
    not, 2 for bad input.

    Parameters
    ----------
    folder
        The result folder.
    time_limit
        The check ends after this many seconds, with exit status 1, and then confirms nothing. What a result claims of a
        stream is checked by as many samples as it names.
    json
        Print the findings as JSON on standard output, and nothing else there.
    quiet
        No notes.
    """
    from minmaxcon.results.records import to_json
    from minmaxcon.results.verification import verify as check

    if time_limit is not None:
        number("time_limit", time_limit, "must be a positive number of seconds.", above=0.0)  # the clock has it
    output = Output(json=json, quiet=quiet)
    with output.guarded():
        found = check(folder)
    current_clock().stop()  # before anything is printed, of which half would be worse than nothing
    good = all(one.confirmed for one in found)
    if json:
        rows = [{name: getattr(one, name) for name in ("run", "claim", "confirmed", "text")} for one in found]
        output.result(to_json({"confirmed": good, "findings": rows}))
    else:
        several = any(one.run for one in found)
        shown = [
            [
                *([str(one.run)] if several else []),
                one.claim,
                "confirmed" if one.confirmed else "NOT CONFIRMED",
                one.text,
            ]
            for one in found
        ]
        wrong = sum(not one.confirmed for one in found)
        verdict = f"{len(found)} claims, all confirmed." if good else f"{wrong} of {len(found)} claims not confirmed."
        output.result(table([[*(["run"] if several else []), "claim", "", ""], *shown], left=4) + f"\n{verdict}\n")
    return 0 if good else 1
