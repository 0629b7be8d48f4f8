"""What each process of tests/test_distributed.py runs: a case by name, and the result as JSON on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.core.linearisation import exact_values
from minmaxcon.distributed import Processes, distribute, join
from tests.cases import PROBLEMS, fair_auc, labelled

SOLVERS: dict[str, Callable[[], mm.Solver]] = {
    "smd": lambda: mm.SFLS(oracle=mm.SMD(steps=20, batch_size=25), levels=2),
    "mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=30), levels=4),
    "variance_reduced": lambda: mm.SFLS(oracle=mm.VarianceReduced(epochs=3, batch_size=10), levels=3),
    "iqrc": lambda: mm.IQRC(mm.SFLS(mm.SMD(steps=30, batch_size=10), levels=2), iterations=2),
    "primal_dual": lambda: mm.PrimalDual(steps=200, batch_size=10),
}


def problem_named(name: str) -> mm.MinMaxProblem:
    """Return a problem of the table; "several" has three runs."""
    if name == "several":
        return fair_auc(kappa=np.array([0.05, 0.1, 0.3]), rows=labelled(n=200))
    return PROBLEMS[name].build()


def joined(parts: list[Any]) -> Any:
    if hasattr(parts[0], "tocsr"):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else torch.cat(parts)


class Union(mm.Source):
    """All shards in one process: a batch is those of the shards, side by side."""

    def __init__(self, shards: list[mm.Source]) -> None:
        self.shards, self.like = shards, shards[0].like
        self.size = sum(int(shard.size or 0) for shard in shards)

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> Any:
        generator, places = position.memory or (None, ())
        if generator != position.generator:
            places = tuple(mm.Position(position.jumped(k + 1).generator) for k in range(len(self.shards)))
        drawn = [shard.draw(place, steps, batch_size) for shard, place in zip(self.shards, places, strict=True)]
        batches = (
            {name: joined([part[name] for part in parts]) for name in parts[0]}
            for parts in zip(*(batches for batches, _ in drawn), strict=True)
        )
        memory = position.generator, tuple(after for _, after in drawn)
        return batches, mm.Position(position.generator, position.samples + steps * batch_size * 2, memory)

    def chunks(self, rows: int | None = None) -> Any:
        for shard in self.shards:
            for share, batch in shard.chunks(rows):
                yield share * shard.size / self.size, batch


def solved(problem: mm.MinMaxProblem, solver: mm.Solver, **options: Any) -> dict[str, Any]:
    found = mm.solve(problem, solver, seed=5, **options)
    like = problem.data.like
    points = namespace(like).asarray(np.atleast_2d(found.x), like)
    return {
        "x": found.x.tolist(),
        "objective": np.asarray(found.objective).tolist(),
        "status": np.atleast_1d([str(s) for s in np.atleast_1d(np.array(found.status, dtype=object))]).tolist(),
        "steps": int(found.steps),
        "values": exact_values(problem.family, points, problem.data).tolist(),
    }


def same(processes: Processes, problem: str, solver: str) -> dict[str, Any]:
    """Solve over all processes, and in each alone with batches of all."""
    made = problem_named(problem)
    shards: list[mm.Source] = [made.data.shard(k, processes.count) for k in range(processes.count)]
    alone = made.over(Union(shards), lambda family: family)
    together = distribute(made, processes, sharded=False)
    return {"together": solved(together, SOLVERS[solver]()), "alone": solved(alone, SOLVERS[solver]())}


def resumed(processes: Processes, folder: str) -> dict[str, Any]:
    """Solve as a whole, and in two parts."""
    solver = mm.SFLS(oracle=mm.SMD(steps=40, batch_size=25), levels=5)
    together = distribute(problem_named("fair_auc_inter"), processes, sharded=False)
    whole = solved(together, solver)
    solved(together, solver, checkpoint=folder, budget=100)
    return {"whole": whole, "rest": solved(together, solver, resume=folder)}


def slow(processes: Processes, folder: str) -> dict[str, Any]:
    """Solve for long, with checkpoints."""

    def wait(_: mm.Progress) -> None:
        time.sleep(0.05)

    solver = mm.SFLS(oracle=mm.SMD(steps=40, batch_size=25), levels=10_000, tolerance=1e-12)
    together = distribute(problem_named("fair_auc_inter"), processes, sharded=False)
    return solved(together, solver, checkpoint=folder, every=0.0, callbacks=[wait])


def continued(processes: Processes, folder: str) -> dict[str, Any]:
    """Go on from a checkpoint, for a while."""
    solver = mm.SFLS(oracle=mm.SMD(steps=40, batch_size=25), levels=10_000, tolerance=1e-12)
    together = distribute(problem_named("fair_auc_inter"), processes, sharded=False)
    return solved(together, solver, resume=folder, time_limit=0.5)


def limited(processes: Processes) -> dict[str, Any]:
    """End after a time of which each process has its own clock."""
    solver = mm.SFLS(oracle=mm.SMD(steps=40, batch_size=25), levels=10_000, tolerance=1e-12)
    together = distribute(problem_named("fair_auc_inter"), processes, sharded=False)
    return solved(together, solver, time_limit=0.2)


def different(processes: Processes) -> dict[str, Any]:
    """Give each process another problem."""
    return solved(distribute(fair_auc(kappa=0.1 + 0.1 * processes.rank), processes), SOLVERS["smd"]())


def unequal(processes: Processes) -> dict[str, Any]:
    """Give the second process a third of the rows: exact values are those of all rows."""
    rows = labelled(n=300)
    part = np.arange(200) if processes.rank == 0 else np.arange(200, 300)
    whole = fair_auc(rows=rows)
    assert isinstance(whole.data, mm.Finite)
    arrays = {name: value[part] for name, value in whole.data.arrays.items()}
    mine = whole.over(mm.Finite(arrays), lambda family: family)
    x = whole.primal.sample(np.random.default_rng(0), 2)
    together = distribute(mine, processes)
    refined = together.family.refine(x, together.data), whole.family.refine(x, whole.data)
    pieces = sum(share * np.asarray(batch["features"]).sum() for share, batch in together.data.chunks(30))
    return {
        "together": exact_values(together.family, x, together.data).tolist(),
        "alone": exact_values(whole.family, x, whole.data).tolist(),
        "refined": [point.tolist() for point in refined],
        "pieces": float(pieces),
    }


def found_of(cases: Any) -> list[Any]:
    """Return what cases give, each a name and its arguments."""
    return [globals()[case](join(20.0), *arguments) for case, *arguments in cases]


if __name__ == "__main__":
    try:
        found = found_of(json.loads(sys.argv[2]))
    except mm.MinMaxConError as failure:
        sys.stderr.write(f"error: {failure}\n")
        sys.exit(2)
    Path(sys.argv[1]).write_text(json.dumps(found))
    join().leave()
