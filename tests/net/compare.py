"""Compare results of studies with those of the code as it was before version 0.3.

    python tests/net/compare.py results

`regrets.csv.gz` has the final regret per cell of full runs. Regrets of deterministic policies must
agree to 1e-9; those of `LatentUcb` are compared in the mean, with their standard error.
"""

import csv
import gzip
import sys
from collections import defaultdict
from math import sqrt
from pathlib import Path

HERE = Path(__file__).parent
CELL = ("study", "setting", "p", "method", "seed")


def read(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def regrets(rows):
    return {tuple(row[name] for name in CELL): row["final_regret"] for row in rows}


def main(folder):
    known, n_equal, wrong = regrets(read(HERE / "regrets.csv.gz")), 0, []
    latent = defaultdict(list)
    for path in sorted(Path(folder).glob("*/per_seed.csv")):
        for cell, value in regrets(read(path)).items():
            if cell not in known or not value or not known[cell]:
                continue
            ours, theirs = float(value), float(known[cell])
            if "latent" in cell[3]:
                latent[cell[:4]].append(ours - theirs)
            elif abs(ours - theirs) <= 1e-9 * max(1.0, abs(theirs)):
                n_equal += 1
            else:
                wrong.append((*cell, theirs, ours))
    print(f"{n_equal} regrets agree to 1e-9, {len(wrong)} do not")
    for row in wrong:
        print("  differs:", *row)
    for cell, differences in latent.items():
        n = len(differences)
        mean = sum(differences) / n
        error = sqrt(sum((each - mean) ** 2 for each in differences) / max(1, n - 1) / n)
        print("  latent:", *cell, f"{mean:+.3f} ± {error:.3f} over {n} seeds")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
