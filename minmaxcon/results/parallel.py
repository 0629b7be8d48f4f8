"""Work divided among processes: on this machine, or on the workers of a cluster, by the backends of joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from minmaxcon.checks import flag, instance, whole
from minmaxcon.errors import InvalidInput, MinMaxConError, MissingDependency

__all__ = ["in_parallel"]

BACKEND = 'must be a name that joblib knows, such as "loky".'
"""The remedy in the error for a backend that is no name."""

_SPAWNED = "distributed.nanny.pre-spawn-environ"
"""The setting of Dask for the environment in which it starts the processes of its workers."""


def in_parallel(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    *,
    jobs: int,
    backend: str = "loky",
    ordered: bool = True,
    remedy: str = "run it again.",
) -> Generator[Any, None, None]:
    """Yield what a function gives for the arguments of each task.

    Parameters
    ----------
    function : callable
        A function of a module.
    tasks : sequence of tuple
        Its arguments.
    jobs : int
        Processes at a time, where the backend starts any.
    backend : str
        ``"loky"`` for processes of this machine; ``"dask"`` for the workers of the client at hand or of the cluster
        that ``DASK_SCHEDULER_ADDRESS`` names, else of a cluster on this machine; or another that was registered.
    ordered : bool
        Whether results come in the order of the tasks, else as they end.
    remedy : str
        What to do after workers have failed, for the message.

    Raises
    ------
    InvalidInput
        If joblib has no such backend.
    MissingDependency
        If the backend's package is not installed.
    MinMaxConError
        What the function raised, or in one line why the workers have failed.
    """
    from joblib import Parallel, delayed, parallel_config

    jobs, ordered = whole("jobs", jobs), flag("ordered", ordered)
    instance("backend", backend, str, BACKEND)
    with ExitStack() as open_ones:
        if backend == "dask":
            open_ones.enter_context(_dask_client(jobs))
        try:
            open_ones.enter_context(parallel_config(backend=backend, n_jobs=jobs))
            workers = Parallel(return_as="generator" if ordered else "generator_unordered", batch_size=1)
        except (ValueError, ImportError) as failure:
            raise InvalidInput("backend", backend, f"joblib has none of this name ({failure}).") from None
        try:
            yield from workers(delayed(function)(*task) for task in tasks)
        except MinMaxConError:
            raise
        except Exception as failure:
            cause = " ".join(f"{type(failure).__name__}: {failure}".split())[:160]
            raise MinMaxConError(f"the workers of {backend} have failed ({cause}); {remedy}") from failure


@contextmanager
def _dask_client(jobs: int) -> Iterator[None]:
    """Open a client: that of the caller, of the cluster that is named, or of a cluster of as many workers here."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster, default_client
    except ImportError:
        raise MissingDependency("dask", "cluster", "the backend dask") from None
    try:
        default_client()
    except ValueError:
        pass
    else:
        yield
        return
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    try:
        cluster = None
        if not address:
            with dask.config.set({_SPAWNED: _kept_memory(dask.config.get(_SPAWNED, {}))}):
                cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        client = Client(address or cluster)
    except (OSError, TimeoutError) as failure:
        cause = " ".join(str(failure).split())[:100]
        raise MinMaxConError(
            f"the scheduler {address} of dask cannot be reached ({cause}); check its address."
        ) from None
    try:
        yield
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def _kept_memory(environ: dict[str, Any]) -> dict[str, Any]:
    """Return an environment of workers without Dask's threshold of free memory.

    With it glibc gives every large array back to the system when it is freed: a solve, whose steps need arrays of the
    same size over and over, then spends a third of its time on new pages.
    """
    return {name: value for name, value in environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
