"""Calls on many machines: a Dask scheduler hands them to its workers.

The scheduler gives the calls of a worker that died to another one. joblib's own Dask backend is not
used, because it hangs when a call has killed several workers.
"""

import logging
import pickle
import platform
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import halfseen
from halfseen.errors import ClusterError
from halfseen.lazy import from_extra
from halfseen.simulation.fingerprints import library_versions

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 5  # seconds in which a scheduler must answer, and then have a worker

T = TypeVar("T")


def run_on_cluster(calls: Callable[[int], Iterable[Callable[[], T]]], address: str) -> Iterator[T]:
    """Yield what calls return, in the order in which they finish.

    Parameters
    ----------
    calls : callable
        Returns the calls for a number of workers.
    address : str
        Of a Dask scheduler, such as "tcp://10.0.0.1:8786".

    Raises
    ------
    ClusterError
        The scheduler does not answer, was lost or has no workers; or workers have other versions of
        the libraries that compute, or die. Results that were yielded before remain valid.
    """
    with from_extra("cluster"):
        import cloudpickle
        from distributed import KilledWorker, as_completed
    with _silenced("distributed", "distributed.client"), _connected(address) as client:
        n_workers = sum(client.nthreads().values())
        own = _versions()
        # Pickled here: the scheduler unpickles what it is given, and must not import a user's code.
        packed = (cloudpickle.dumps(call) for call in calls(n_workers))
        futures = [client.submit(_call, each, own, pure=False) for each in packed]
        try:
            for future in as_completed(futures, loop=client.loop):
                yield future.result()
                future.release()
        except KilledWorker as error:
            raise ClusterError(
                f"the same cells ended {error.allowed_failures + 1} workers, the last one "
                f"{error.last_worker.address}, most often because memory ran out"
            ) from None
        except CancelledError:
            raise ClusterError(f"the scheduler at {address} was lost") from None


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    """Yield a client that has workers; closing it cancels its calls."""
    from distributed import Client
    from distributed.comm import get_address_host_port

    try:
        # A client takes long to report that nobody answers, and starts a cluster of its own if the
        # address is empty.
        there = get_address_host_port(address, strict=True)
        socket.create_connection(there, timeout=_PATIENCE).close()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, which "
            "prints its address"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {address} has no workers: start some with "
                f"`dask worker {address}`"
            ) from None
        yield client


@contextmanager
def _silenced(*names: str) -> Iterator[None]:
    """Suppress tracebacks of errors that are reported in one sentence."""
    levels = {log: log.level for log in map(logging.getLogger, names)}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _call(packed: bytes, wanted: dict[str, str]) -> Any:
    """Run a call in a worker if its versions are those of the caller."""
    own = _versions()
    differing = [name for name in own if own[name] != wanted[name]]
    if differing:
        other = "; ".join(f"{name} {own[name]}, not {wanted[name]}" for name in differing)
        raise ClusterError(f"a worker on {platform.node()} has {other}: install the same versions")
    return pickle.loads(packed)()


def _versions() -> dict[str, str]:
    return {"halfseen": halfseen.__version__, **library_versions()}
