"""`LatentImputer` beside other imputers: error on hidden entries, and seconds."""

import json
import tempfile
import warnings
from pathlib import Path
from subprocess import TimeoutExpired

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from benchmarks.measuring import Row
from benchmarks.peers import contest
from benchmarks.peers.imputers import PEERS, fill
from halfseen.sklearn import LatentImputer
from halfseen.worlds.public_tables import read_table, table_names

OURS, THEIRS = "**LatentImputer**", "IterativeImputer"
OWN = {
    OURS: LatentImputer,
    "SimpleImputer": lambda: SimpleImputer(keep_empty_features=True),
    "KNNImputer": lambda: KNNImputer(keep_empty_features=True),
    THEIRS: lambda: IterativeImputer(random_state=0, keep_empty_features=True),
}
_SPEED, _LARGE = "2,000 × 30, rank 5", "100,000 × 200, rank 10, 80 % hidden"
# Beyond, the slow ones are left out.
_MOST_ENTRIES = 10**6
_PATIENCE = 60
LARGEST_RATIO, LEAST_FACTOR = 1.02, 10


def measure(quick, peers):
    """Return for each table, by name of imputer, a list of what `fill` returned by seed."""
    names = ("wine", "digits") if quick else table_names()
    found = {name: _contest(_public(name), 1 if quick else 3, peers) for name in names}
    found[_SPEED] = _contest(lambda seed: _low_rank(seed, 2000, 30, 5, 0.5), 3, peers)
    if not quick:
        found[_LARGE] = _contest(lambda seed: _low_rank(seed, 100_000, 200, 10, 0.8), 1, peers)
    return found


def _contest(make, n_seeds, peers):
    found = {}
    for seed in range(n_seeds):
        full, table = make(seed)
        is_large = table.size > _MOST_ENTRIES
        rank = LatentImputer().fit(table).n_components_
        for name in list(OWN)[: 2 if is_large else None]:
            imputer = OWN[name]()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # theirs did not converge
                done = fill(
                    lambda x, _, imputer=imputer: imputer.fit_transform(x), full, table,
                    standardise=name == "KNNImputer",
                )  # fmt: skip
            found.setdefault(name, []).append(done)
        if not peers or seed:  # peers may be slow: once is enough
            continue
        for peer in PEERS.values():
            found.setdefault(peer.TITLE, []).append(_by_peer(peer, full, table, rank))
    return found


def _by_peer(peer, full, table, rank):
    failure = contest.install()
    if failure:
        return {"reason": failure}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, full=full, table=table, rank=rank)
        command = ["-m", "benchmarks.peers.imputers", peer.__name__, str(path)]
        try:
            done = contest.run(str(contest.PYTHON), *command, timeout=_PATIENCE)
        except TimeoutExpired:
            return {"reason": f"not within {_PATIENCE} s"}
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {"reason": contest.reason(done)}


def _public(name):
    """Return a function that hides half of the entries of a public table."""

    def make(seed):
        full = read_table(name).values
        full = full[:, np.nanstd(full, axis=0) > 0.0]
        hides = np.random.default_rng(seed).random(full.shape) < 0.5
        return full, np.where(hides, np.nan, full)

    return make


def _low_rank(seed, n, dim, rank, hidden):
    random = np.random.default_rng(seed)
    full = random.normal(size=(n, rank)) @ random.normal(size=(rank, dim)) / rank**0.5
    full += 0.3 * random.normal(size=full.shape)
    return full, np.where(random.random(full.shape) < hidden, np.nan, full)


def _mean(runs, key):
    values = [run[key] for run in runs if key in run]
    return float(np.mean(values)) if values else np.nan


def rows(found):
    """Return the rows of the budget."""
    public = {name: each for name, each in found.items() if name not in (_SPEED, _LARGE)}
    ratios = {
        name: _mean(each[OURS], "error") / _mean(each[THEIRS], "error")
        for name, each in public.items()
    }
    worst, speed = max(ratios, key=ratios.get), found[_SPEED]
    factor = _mean(speed[THEIRS], "seconds") / _mean(speed[OURS], "seconds")
    return [
        Row(
            f"`LatentImputer`, error on hidden entries of {len(public)} public tables",
            f"at most {ratios[worst]:.2f} × that of `{THEIRS}` ({worst})",
            f"≤ {LARGEST_RATIO} ×",
            ratios[worst] <= LARGEST_RATIO,
        ),
        Row(
            f"`LatentImputer`, fit and fill {_SPEED}, half hidden",
            f"{factor:.1f} times as fast as `{THEIRS}`",
            f"≥ {LEAST_FACTOR} times as fast",
            factor >= LEAST_FACTOR,
        ),
    ]


def lines(found):
    """Return a table in Markdown: a row per table, a column per imputer."""
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    listed = [f"| table | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for table, each in found.items():
        cells = [_cell(each.get(name, ())) for name in names]
        listed.append(f"| {table} | {' | '.join(cells)} |")
    return listed


def _cell(runs):
    if not any("error" in run for run in runs):
        return runs[0]["reason"].replace("|", "∣")[:80] if runs else "–"
    return f"{_mean(runs, 'error'):.3f} ({_mean(runs, 'seconds'):.2g} s)"
