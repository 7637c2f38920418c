"""Per-seed final regrets on the published instances, against the published implementation's."""

import csv
from pathlib import Path

import pytest

from halfseen.simulation.runner import play
from halfseen.studies.rank_selection import RANK_SELECTION
from halfseen.studies.spec import Study
from halfseen.studies.synthetic import FULL_HISTORY, MAIN
from halfseen.studies.warm_start import WARM_START
from shared import shared_file

TOLERANCE = 1e-6
SHIPPED = Path(__file__).parent / "data" / "published_regrets.csv"

# How the published tables call our studies' settings and methods.
MAIN_METHODS = {
    "tofu": "Known-rank TOFU",
    "ra-tofu": "Adaptive TOFU",
    "zf-oful": "Zero-imputed OFUL",
    "tofu-fh": "Known-rank TOFU-FH",
    "ra-tofu-fh": "Adaptive TOFU-FH",
}
WARM_START_METHODS = {
    "replay-none": "TOFU zero-OFUL burn-in, no replay",
    "replay-burn-in-once": "TOFU warm-start first-epoch",
    "replay-burn-in": "TOFU warm-start every-epoch (burn-in rewards)",
    "replay-full": "TOFU full-history every-epoch (not in authors' sweep)",
    "zf-oful": "Zero-imputed OFUL",
}
RANK_SCENARIOS = {
    "d=12, p=0.8": ("dense_d12_m3_p08", 2, 3, 6),
    "d=30, p=0.3": ("sparse_d30_m3_p03", 2, 3, 6),
    "d=50, p=0.2": ("sparse_d50_m5_p02", 4, 5, 10),
}


def read(path):
    with path.open(newline="") as file:
        return {
            (row["scenario"], float(row["p"]), row["method"], int(row["seed"])): float(
                row["final_regret"]
            )
            for row in csv.DictReader(file)
        }


def deviations(study: Study, label, published):
    """Yield the deviation of every cell of a study that the table has."""
    for name, setting in study.settings.items():
        for method in setting.methods:
            for seed in study.seeds:
                key = (*label(name, setting, method), seed)
                if key in published:
                    regret = play(setting.build(method), setting.world.realize(seed)).final_regret
                    yield abs(regret - published[key])


def main_label(name, setting, method):
    return "main_d30_m3", setting.world.observe_prob, MAIN_METHODS.get(method)


def warm_start_label(name, setting, method):
    return "d12_m3_T300", setting.world.observe_prob, WARM_START_METHODS[method]


def rank_label(name, setting, method):
    scenario, under, true, over = RANK_SCENARIOS[name]
    family, _, kind = method.rpartition("-")
    ranks = {"under": under, "true": true, "over": over}
    if method == "zf-oful":
        label = "Zero-imputed OFUL (ambient)"
    elif kind == "adaptive":
        label = f"{family.upper()} adaptive-rank"
    else:
        label = f"{family.upper()} fixed-rank ({kind} r={ranks[kind]})"
    return scenario, setting.world.observe_prob, label


@pytest.mark.parametrize(
    ("study", "cells"), [(MAIN, 60), (FULL_HISTORY, 40)], ids=["main", "full-history"]
)
def test_regrets_equal_the_shipped_part_of_the_published_ones(study, cells):
    found = list(deviations(study, main_label, read(SHIPPED)))
    assert len(found) == cells
    assert max(found) <= TOLERANCE


@pytest.mark.parametrize(
    ("study", "label", "cells"),
    [
        (MAIN, main_label, 300),
        (FULL_HISTORY, main_label, 200),
        (RANK_SELECTION, rank_label, 270),
        (WARM_START, warm_start_label, 400),
    ],
    ids=["main", "full-history", "rank-selection", "warm-start"],
)
def test_regrets_equal_all_published_ones(study, label, cells):
    published = read(shared_file("reference", "results", "all_per_seed.csv"))
    found = list(deviations(study, label, published))
    assert len(found) == cells
    assert max(found) <= TOLERANCE
