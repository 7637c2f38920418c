"""Peers, the yardstick and ours on the same rounds, in turns; time and regret of each."""

import ast
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Advance, Plan, Quartiles
from benchmarks.peers import adapters, environment
from benchmarks.peers.filling import filled_by_means
from benchmarks.yardstick import Yardstick
from halfseen import AmbientOful, LatentUcb, LowRankWorld, TofuPov

WORLD = LowRankWorld(dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.3, noise_scale=0.05)
BURN_IN = 30
# Seconds after which a run is cut off, and above which it is not repeated.
BUDGET = 60.0
_SLOW = 4.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Standing(NamedTuple):
    """What a contestant did, run by run."""

    title: str
    sees: str  # "all" or "some"
    ours: bool
    error: str = ""
    microseconds: tuple[float, ...] = ()
    n_rounds: tuple[int, ...] = ()
    regrets: tuple[float, ...] = ()

    @property
    def time(self) -> Quartiles:
        return Quartiles.of(self.microseconds)

    @property
    def short_error(self) -> str:
        """Return the error as a cell of a table."""
        return self.error.replace("|", "∣")[:160]

    @property
    def finished(self) -> bool:
        return min(self.n_rounds) == WORLD.horizon

    def with_run(self, told: dict) -> "Standing":
        if "error" in told:
            return self._replace(error=told["error"])
        return self._replace(
            microseconds=(*self.microseconds, told["microseconds"]),
            n_rounds=(*self.n_rounds, told["n_rounds"]),
            regrets=(*self.regrets, told["regret"]),
        )


class Peer:
    """A peer in a process of its own, which stays for all its runs."""

    def __init__(self, name: str, budget: float, slow: float = _SLOW) -> None:
        told = constants(name)
        self.budget, self.slow = budget, slow
        self.process: subprocess.Popen | None = None
        version = environment.version_of(told["PACKAGES"][0])
        self.standing = Standing(f"{told['TITLE']} ({version})", told["SEES"], ours=False)
        error = environment.install(name, told["PACKAGES"]).error
        if not error:
            error = self._start(name)
        self.standing = self.standing._replace(error=error)

    def _start(self, name: str) -> str:
        one_thread = dict.fromkeys(_THREADS, "1")
        self.process = subprocess.Popen(
            [str(environment.PYTHON), "-m", "benchmarks.peers.play", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=environment.ROOT,
            env={**os.environ, **one_thread, "PYTHONPATH": str(environment.ROOT)},
        )
        return self._answer().get("error", "")

    def _answer(self) -> dict:
        assert self.process is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "its process ended without an answer"}

    def play(self, path: Path) -> None:
        before = self.standing
        if before.error or self._is_slow():
            return
        self.process.stdin.write(json.dumps({"rounds": str(path), "budget": self.budget}) + "\n")
        self.process.stdin.flush()
        self.standing = before.with_run(self._answer())

    def _is_slow(self) -> bool:
        played = self.standing
        return (
            bool(played.n_rounds) and played.microseconds[0] * played.n_rounds[0] > self.slow * 1e6
        )

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


class Own:
    """One of ours, or the yardstick, in this process."""

    def __init__(self, title: str, sees: str, play_run, ours: bool = True) -> None:
        self.standing, self.play_run = Standing(title, sees, ours), play_run

    def play(self, path: Path) -> None:
        with np.load(path) as rounds:
            options = rounds["full" if self.standing.sees == "all" else "masked"]
            rewards, means = rounds["rewards"].tolist(), rounds["means"]
        started = time.perf_counter()
        arms = self.play_run(options, rewards)
        taken = time.perf_counter() - started
        lost = means.max(axis=1) - means[np.arange(len(arms)), arms]
        told = {"microseconds": taken / len(arms) * 1e6, "n_rounds": len(arms)}
        self.standing = self.standing.with_run({**told, "regret": float(lost.sum())})

    def close(self) -> None:
        """Nothing to end."""


def hold_contest(plan: Plan, advance: Advance = lambda: None) -> list[Standing]:
    """Let everybody play the same rounds in turns; the quickest of ours comes first."""
    everybody: list[Own | Peer] = own_contestants()
    if plan.peers:
        for name in adapters.NAMES:
            everybody.append(Peer(name, plan.pick(BUDGET, 5.0)))
            advance()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(plan.pick(7, 3)):
                path = write_rounds(Path(folder) / f"{seed}.npz", WORLD.realize(seed))
                for each in everybody:
                    each.play(path)
                advance()
    finally:
        for each in everybody:
            each.close()
    return [each.standing for each in everybody]


def steps(plan: Plan) -> int:
    return plan.pick(7, 3) + len(adapters.NAMES) * plan.peers


def write_rounds(path: Path, realization, *, fill: bool = False) -> Path:
    """Write all rounds; with `fill`, who needs every entry gets column means for hidden ones."""
    full, masked, rewards, means = [], [], [], []
    for slate, mean, noise, arms in realization.rounds():
        full.append(arms)
        masked.append(np.where(slate.mask, slate.values, np.nan))
        rewards.append(mean + noise)
        means.append(mean)
    if fill:
        full = filled_by_means(np.array(masked))
    np.savez(path, full=full, masked=masked, rewards=rewards, means=means)
    return path


def own_contestants() -> list[Own]:
    settings = {
        "dim": WORLD.dim,
        "rank": WORLD.rank,
        "observe_prob": WORLD.observe_prob,
        "horizon": WORLD.horizon,
        "burn_in": BURN_IN,
        "noise_scale": WORLD.noise_scale,
    }
    return [
        Own("**halfseen TofuPov**", "some", lambda *run: play_policy(TofuPov(**settings), *run)),
        Own("**halfseen AmbientOful**", "all", lambda *run: play_policy(_ambient(), *run)),
        Own("yardstick", "some", lambda *run: _yardstick(Yardstick(**settings), *run), ours=False),
        Own("**halfseen LatentUcb**", "some", lambda *run: play_policy(LatentUcb(), *run)),
    ]


def _ambient() -> AmbientOful:
    return AmbientOful(dim=WORLD.dim, noise_scale=WORLD.noise_scale)


def play_policy(policy, options, rewards) -> list[int]:
    arms = []
    for table, pays in zip(options, rewards, strict=True):
        decision = policy.choose(table)
        policy.learn(decision, pays[decision.arm])
        arms.append(decision.arm)
    return arms


def _yardstick(policy: Yardstick, options, rewards) -> list[int]:
    arms = []
    masks = ~np.isnan(options)
    filled = np.nan_to_num(options)
    for values, mask, pays in zip(filled, masks, rewards, strict=True):
        arm = policy.choose(values, mask)
        policy.learn(pays[arm])
        arms.append(arm)
    return arms


def constants(name: str) -> dict:
    """Return an adapter's constants without loading it: its library is not in this environment."""
    source = (Path(adapters.__file__).parent / f"{name}.py").read_text()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found
