"""One peer plays rounds from a file; this module runs inside of the peers' environment.

Reads one line of JSON per run from standard input, {"rounds": path, "budget": seconds}, and answers
with one line: time per round in µs, rounds played within the budget, cumulative regret at each
quarter of them; or {"error": ...}.
"""

import importlib
import json
import sys
import time
import traceback
import warnings

import numpy as np


def play(adapter, path: str, budget: float) -> dict:
    with np.load(path) as rounds:
        options = rounds["full" if adapter.SEES == "all" else "masked"]
        rewards, means = rounds["rewards"].tolist(), rounds["means"]
    player = adapter.Player(*options.shape[1:])
    regrets = means.max(axis=1, keepdims=True) - means
    arms: list[int] = []
    started = time.perf_counter()
    for slate, pays in zip(options, rewards, strict=True):
        arm = player.choose(slate)
        player.learn(slate, arm, pays[arm])
        arms.append(arm)
        if time.perf_counter() - started > budget:
            break
    taken = time.perf_counter() - started
    regret = np.cumsum(regrets[np.arange(len(arms)), arms])
    return {
        "microseconds": taken / len(arms) * 1e6,
        "n_rounds": len(arms),
        "regret": float(regret[-1]),
    }


def main(name: str) -> None:
    answer = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints
    warnings.simplefilter("ignore")
    try:
        adapter = importlib.import_module(f"benchmarks.peers.adapters.{name}")
    except Exception as error:
        print(json.dumps({"error": _last_line(error)}), file=answer, flush=True)
        return
    print(json.dumps({"ready": adapter.TITLE}), file=answer, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told = play(adapter, asked["rounds"], asked["budget"])
        except Exception as error:
            told = {"error": _last_line(error)}
        print(json.dumps(told), file=answer, flush=True)


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip()


if __name__ == "__main__":
    main(sys.argv[1])
