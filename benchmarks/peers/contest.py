"""Other libraries and ours on the same rounds, in turns; time and regret of each.

Other libraries are installed, when first needed, into an environment of their own beside this file.
With HALFSEEN_INSTALL_PEERS=0 nothing is installed: they run if they are there already.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.latent import WORLD
from benchmarks.measuring import Quartiles, Row
from benchmarks.peers.players import PLAYERS, play
from halfseen import AmbientOful, LatentUcb, TofuPov

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = HERE / "requirements.txt"

LEAST_FACTOR = 10


class Standing(NamedTuple):
    """What a contestant did, run by run."""

    title: str
    sees: str  # "all" or "some"
    ours: bool = False
    error: str = ""
    microseconds: tuple[float, ...] = ()
    regrets: tuple[float, ...] = ()

    @property
    def time(self) -> Quartiles:
        return Quartiles.of(self.microseconds)

    def with_run(self, found: dict) -> "Standing":
        if "error" in found:
            return self._replace(error=found["error"])
        return self._replace(
            microseconds=(*self.microseconds, found["microseconds"]),
            regrets=(*self.regrets, found["regret"]),
        )

    def cells(self) -> str:
        """Return time, regret and number of runs as cells of a table, or the error."""
        if self.error:
            return f"{self.error.replace('|', '∣')[:160]} | | 0"
        n = len(self.regrets)
        regret = f"{np.mean(self.regrets):.1f}"
        if n > 1:
            regret += f" ± {np.std(self.regrets, ddof=1) / n**0.5:.1f}"
        return f"{self.time} | {regret} | {n}"


class Ours:
    """One of our policies as a player."""

    def __init__(self, policy) -> None:
        self.policy = policy

    def choose(self, options) -> int:
        self.decision = self.policy.choose(options)
        return self.decision.arm

    def learn(self, options, arm, reward) -> None:
        self.policy.learn(self.decision, reward)


class Own:
    """A policy of this package, in this process."""

    def __init__(self, title: str, sees: str, make: Callable[[], object]) -> None:
        self.standing, self.make = Standing(title, sees, ours=True), make

    def play(self, path: Path) -> None:
        with np.load(path) as rounds:
            options = rounds[self.standing.sees]
            found = play(Ours(self.make()), options, rounds["rewards"], rounds["means"])
        self.standing = self.standing.with_run(found)


class Peer:
    """A player of another library, in a process of the peers' environment."""

    def __init__(self, player: type) -> None:
        self.name = player.__name__
        title = f"{player.TITLE} ({version_of(player.PACKAGE)})"
        self.standing = Standing(title, "all", error=install())

    def play(self, path: Path) -> None:
        if self.standing.error:
            return
        done = run(str(PYTHON), "-m", "benchmarks.peers.players", self.name, str(path))
        lines = done.stdout.splitlines()
        found = json.loads(lines[-1]) if lines else {"error": reason(done)}
        self.standing = self.standing.with_run(found)


def install() -> str:
    """Install all peers at the versions of requirements.txt; return the error, if there was one."""
    marker, wanted = VENV / "installed.txt", REQUIREMENTS.read_text()
    if marker.exists() and marker.read_text() == wanted:
        return ""
    if os.environ.get("HALFSEEN_INSTALL_PEERS") == "0":
        return "not installed for this run"
    pip = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(REQUIREMENTS))
    for command in ((sys.executable, "-m", "venv", str(VENV)), (str(PYTHON), *pip)):
        done = run(*command)
        if done.returncode != 0:
            return reason(done)
    marker.write_text(wanted)
    return ""


def version_of(package: str) -> str:
    """Return the version that requirements.txt asks for."""
    versions = dict(line.lower().split("==") for line in REQUIREMENTS.read_text().splitlines())
    return versions[package]


def run(*command: str, timeout: float | None = None) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=timeout
    )


def reason(done: subprocess.CompletedProcess) -> str:
    """Return the line of the output that says what is wrong."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no reason given"])[-1]


def hold(quick: bool, peers: bool) -> list[Standing]:
    """Let everybody play the main study's world; our first one is TofuPov."""
    noise = {"noise_scale": WORLD.noise_scale}
    given = {"dim": WORLD.dim, "rank": WORLD.rank, "observe_prob": WORLD.observe_prob}
    given |= {"horizon": WORLD.horizon, "burn_in": 30, **noise}
    everybody = [
        Own("**halfseen TofuPov**", "some", lambda: TofuPov(**given)),
        Own("**halfseen AmbientOful**", "all", lambda: AmbientOful(dim=WORLD.dim, **noise)),
        Own("**halfseen LatentUcb**", "some", LatentUcb),
        *(Peer(player) for player in PLAYERS.values() if peers),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.npz"
        for seed in range(3 if quick else 7):
            write_rounds(path, WORLD.realize(seed))
            for each in everybody:
                each.play(path)
    return [each.standing for each in everybody]


def write_rounds(path: Path, realization) -> None:
    """Write all rounds, with every entry and with holes."""
    full, masked, rewards, means = [], [], [], []
    for slate, mean, noise, arms in realization.rounds():
        full.append(arms)
        masked.append(np.where(slate.mask, slate.values, np.nan))
        rewards.append(mean + noise)
        means.append(mean)
    np.savez(path, all=full, some=masked, rewards=rewards, means=means)


def peer_row(standings: Sequence[Standing]) -> Row:
    """Compare ours, with entries hidden, with the fastest peer, whatever that one needs to see.

    A peer that did not run might be faster: without it, the budget can be missed but not met.
    """
    peers = [each for each in standings if not each.ours]
    timed = [each for each in peers if not each.error]
    workload = "`TofuPov` whole runs at (30, 3, 8) against the fastest peer"
    required = f"≥ {LEAST_FACTOR} times as fast"
    if not timed:
        return Row(workload, "no peer ran", required, None)
    best = min(timed, key=lambda each: each.time.median)
    factor = best.time.median / standings[0].time.median
    measured, met = f"{factor:.1f} times as fast as {best.title}", factor >= LEAST_FACTOR
    if len(timed) < len(peers):
        measured += f"; {len(timed)} of {len(peers)} peers ran"
        met = None if met else False
    return Row(workload, measured, required, met)
