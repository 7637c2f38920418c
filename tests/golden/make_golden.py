"""Write golden files: policies saved in the format of today, with what they do afterwards.

Run it once per format, with the version of halfseen that writes it, before the format changes:

    python tests/golden/make_golden.py

It makes a folder named after the format, which tests load for ever after.
"""

import json
import sys
from pathlib import Path

import numpy as np

import halfseen
from halfseen import archive
from halfseen.paper import Pslb

DIM = 6
N_BEFORE = 23
N_AFTER = 12

FACTORIES = {
    "ambient": lambda: halfseen.AmbientOful(dim=DIM),
    "uniform": lambda: halfseen.Uniform(dim=DIM, seed=4),
    "greedy": lambda: halfseen.Greedy(dim=DIM),
    "thompson": lambda: halfseen.LinearThompson(dim=DIM, seed=2),
    "tofu": lambda: tofu(),
    "tofu-in-burn-in": lambda: tofu(burn_in=N_BEFORE + 3),
    "two-phase": lambda: halfseen.TwoPhase(dim=DIM, rank=2, observe_prob=0.7, split=5),
    "pslb": lambda: Pslb(dim=DIM, rank=2, burn_in=5),
    "oracle": lambda: halfseen.Oracle(basis=np.eye(DIM)[:, :2]),
    "imputed": lambda: halfseen.Imputed(dim=DIM, imputer="mean", first_fit=3),
    "standardized": lambda: halfseen.Standardized(dim=DIM, imputer="mean", first_fit=3),
    "per-arm": lambda: halfseen.PerArmRidge(dim=DIM),
    "latent-ucb": lambda: halfseen.LatentUcb(),
}


def tofu(**settings):
    basics = {"dim": DIM, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
    return halfseen.TofuPov(**(basics | settings))


def rounds(n_rounds, seed):
    """Yield slates of rank 2 with about a third hidden, and what each arm pays."""
    random = np.random.default_rng(seed)
    directions = np.linalg.qr(np.random.default_rng(99).standard_normal((DIM, 2)))[0]
    for _ in range(n_rounds):
        latent = random.standard_normal((5, 2))
        arms = latent @ directions.T + 0.05 * random.standard_normal((5, DIM))
        seen = random.random(arms.shape) < 0.7
        seen[:, :2] |= ~seen.any(axis=1, keepdims=True)
        yield np.where(seen, arms, np.nan), latent @ np.array([0.8, -0.6])


def play_on(policy, decisions):
    """Learn the open decisions, then play; return what was chosen and the scores."""
    for decision, reward in decisions:
        policy.learn(decision, reward)
    played = []
    for table, rewards in rounds(N_AFTER, seed=1):
        decision = policy.choose(table)
        policy.learn(decision, float(rewards[decision.arm]))
        played.append({"arm": decision.arm, "scores": decision.scores.tolist()})
    return played


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, factory in FACTORIES.items():
        policy, open_decisions = factory(), []
        for index, (table, rewards) in enumerate(rounds(N_BEFORE, seed=0)):
            decision, reward = policy.choose(table), None
            reward = float(rewards[decision.arm])
            if index in (2, N_BEFORE - 4, N_BEFORE - 1):
                open_decisions.append((decision, reward))
            else:
                policy.learn(decision, reward)
        policy.save(folder / f"{name}.npz")
        facts = {
            "open": [[decision.to_dict(), reward] for decision, reward in open_decisions],
            "played": play_on(policy, open_decisions),
        }
        (folder / f"{name}.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    make(home / f"format-{archive.FORMAT}")
