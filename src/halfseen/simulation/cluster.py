"""Cells on a Dask cluster: what a worker needs travels with the cell.

joblib's own backend for Dask waits forever for a task that has ended several workers, and workers
do not run its `initializer`.
"""

import logging
import socket
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import halfseen
from halfseen.errors import HalfseenError
from halfseen.lazy import from_extra
from halfseen.simulation.cells import library_versions, package_digest

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 10  # seconds in which a scheduler must answer, and then have a worker
_INSTALLED = {"site-packages", "dist-packages"}


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Make a Dask cluster the joblib backend, so that its workers run all cells.

    Parameters
    ----------
    address : str
        Of a scheduler, such as "tcp://10.0.0.1:8786".

    Raises
    ------
    HalfseenError
        No scheduler answers, or it has no workers.
    """
    with from_extra("cluster"), _silenced():
        import joblib
        from distributed import Client
        from distributed.comm import get_address_host_port
    try:
        # A client takes long to report that nobody answers, and logs it at length.
        there = get_address_host_port(address, strict=True)
        socket.create_connection(there, timeout=_PATIENCE).close()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise HalfseenError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, which "
            "prints its address"
        ) from None
    with _silenced(), client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise HalfseenError(
                f"the scheduler at {address} has no workers: start some with "
                f"`dask worker {address} --nworkers auto --nthreads 1`"
            ) from None
        with joblib.parallel_config("dask", client=client):
            yield


def run_on(client: "Client", calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield what calls return, each a function and its arguments, in the order in which they end.

    Raises
    ------
    HalfseenError
        The scheduler was lost, a call ended several workers, or a worker cannot run what it is
        sent. Results that were yielded before remain valid.
    """
    import cloudpickle
    from distributed import KilledWorker, as_completed

    with _own_modules_by_value():  # pickled here: a scheduler has no code of the user's
        packed = [cloudpickle.dumps(call) for call in calls]
    futures = [client.submit(_unpacked, each, _code(), pure=False) for each in packed]
    try:
        for future in as_completed(futures, loop=client.loop):
            found, reason = future.result()
            if reason:
                raise HalfseenError(f"a worker cannot run what it is sent: {reason}")
            yield found
    except KilledWorker as error:
        raise HalfseenError(
            f"a cell ended {error.allowed_failures + 1} workers, the last one "
            f"{error.last_worker.address}, most often because memory ran out"
        ) from None
    except CancelledError:
        raise HalfseenError(
            "the Dask scheduler was lost: start it again; what is finished is kept"
        ) from None
    finally:
        if client.status == "running":
            client.cancel(futures)  # also after Ctrl-C: what waits is not begun


def _unpacked(packed: bytes, code: dict[str, str]) -> tuple[Any, str]:
    """Make a call in a worker, and return what it returns, or why it cannot be made."""
    own = _code()
    if own != code:
        differing = (
            f"{name} {own[name]}, not {code[name]}" for name in own if own[name] != code[name]
        )
        return None, f"it has {'; '.join(differing)}: install the same versions"
    import cloudpickle

    try:
        function, *given = cloudpickle.loads(packed)
    except Exception as error:  # of any import
        return None, f"{type(error).__name__}: {error}"
    return function(*given), ""


def _code() -> dict[str, str]:
    """Return the versions of all that computes, as fingerprints have them."""
    own = {"halfseen": halfseen.__version__, "the code of halfseen": package_digest()}
    return own | library_versions()


@contextmanager
def _own_modules_by_value() -> Iterator[None]:
    """Pickle classes and functions of modules that are not installed with their code."""
    import cloudpickle

    known = {*map(Path, (sysconfig.get_path("stdlib"), halfseen.__path__[0]))}
    with ExitStack() as stack:
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            folders = Path(file or "").parents
            installed = _INSTALLED & set(Path(file or "").parts)
            if (
                file
                and module.__name__ != "__main__"
                and not installed
                and known.isdisjoint(folders)
            ):
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress what Dask logs about errors that are reported in one sentence."""
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
