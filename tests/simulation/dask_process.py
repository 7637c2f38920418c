"""A scheduler or a worker in a process of its own, forked from one that has imported everything.

Otherwise each of these processes would spend most of its time on imports.
"""

import multiprocessing
import os
from importlib import import_module

COMMANDS = {name: f"distributed.cli.dask_{name}" for name in ("scheduler", "worker")}

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [__name__, *COMMANDS.values(), "halfseen.simulation.simulate", "halfseen.tofu.policy"]
)


def start(name, arguments, folder, failures):
    """Start `dask scheduler` or `dask worker` in a folder and return its process."""
    process = _PROCESSES.Process(target=_run, args=(name, arguments, folder, failures))
    process.start()
    return process


def _run(name, arguments, folder, failures):
    import dask

    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    dask.config.set({"distributed.scheduler.allowed-failures": failures})
    import_module(COMMANDS[name]).main(arguments)
