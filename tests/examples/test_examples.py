"""Programs of examples/ run at a small scale, and what they claim holds there."""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from halfseen.tofu import ingredient
from halfseen.worlds import base

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
sys.path.insert(0, str(EXAMPLES.parent / "docs" / "_ext"))

# What must hold after a run, as a dictionary of claims.
CLAIMS = {
    "shop_with_clicks.py": """{
        "the visitor pays": gained["visitor known"] > 1.3 * gained["visitor unknown"],
        "and more than at random": gained["visitor known"] > 0,
    }""",
    "dosing.py": """{
        "lab values halve what is missed": late["by lab values"] < 0.5 * late["one dose for all"],
        "a lab value is worth measuring": why.best_measurement.column in {*LABS} - {*patient},
        "by more than its cost": why.best_measurement.net > 0,
    }""",
    "own_world.py": """{
        "latent-ucb is best": min(tables.summary, key=lambda row: row["mean_regret"])["method"]
        == "latent-ucb",
        "by far": tables.summary[0]["mean_regret"] < 0.5 * tables.summary[1]["mean_regret"],
        "nothing failed": not tables.failures,
    }""",
    "sensors.py": """{
        "LatentUcb loses less": all(
            final["LatentUcb", share] < final["zeros filled in", share] for share in (0.4, 0.8)
        ),
        "broken sensors cost": final["LatentUcb", 0.4] < final["LatentUcb", 0.8],
        "a sensor is worth repairing": gains[best] > 0.01,
    }""",
    "several_workers.py": """{
        "a shared agent loses less": final["one database"] < 0.8 * final["each on its own"],
    }""",
    "evaluating_a_log.py": """(lambda rows: {
        "imputing the radius pays": rows["largest_imputed"]["value"]
        > rows["largest_known"]["value"],
        "the agent finds more than the clinic": rows["Agent"]["low"] > rows["log"]["high"],
        "the truth is covered": rows["uniform"]["low"] < is_malignant[samples].mean()
        < rows["uniform"]["high"],
    })({row["policy"]: row for row in result.shown})""",
    "imputation_pipeline.py": """{
        "the latent model predicts best": min(losses, key=lambda name: losses[name].mean())
        == "LatentImputer",
        "deviations are right": 0.87 < covered < 0.95,
        "posterior draws differ": (drawn.std(axis=0)[hidden] > 0).all(),
    }""",
    "what_to_measure.py": """{
        "measuring pays": final["at random"] < final["nothing"],
        "choosing what to measure pays more": final["most valuable"] < 0.7 * final["at random"],
    }""",
    "missing_not_at_random.py": """{
        "LatentUcb is lowest everywhere": all(
            (regret["latent-ucb"] < each).all() for name, each in regret.items()
            if name != "latent-ucb"
        ),
        "it costs TOFU most": regret["tofu-fh"][-1] > 5 * regret["tofu-fh"][0],
    }""",
    "drift.py": """{
        "a half-life pays after a change": min(after.values()) < 0.7 * after["no half-life"],
    }""",
    "paper_figure.py": """{
        "regrets are the published ones": len(both) == 12 and largest < 1e-8,
        "LatentUcb is lowest everywhere": all(
            rows.groupby("method")["final_regret"].mean().idxmin() == "latent-ucb"
            for _, rows in regrets.groupby("p")
        ),
    }""",
    "own_ingredient.py": """{
        "ignoring what is hidden costs": regret["rescaled zeros (yours)"][-1]
        > regret["least squares (the paper)"][-1],
    }""",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_what_an_example_claims_holds(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFSEEN_SCALE", "small")
    for module, known in ((base, "_KINDS"), (ingredient, "_CLASSES")):  # what it registers goes
        monkeypatch.setattr(module, known, {**getattr(module, known)})
    path, scope = EXAMPLES / name, {"__name__": "__main__"}
    plt.switch_backend("Agg")
    plt.close("all")
    exec(compile(path.read_text("utf-8"), path, "exec"), scope)
    claims = eval(CLAIMS[name], scope)
    assert [claim for claim, holds in claims.items() if not holds] == []
    axes = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes]
    labels = [axes.get_xlabel() for axes in axes if axes.get_subplotspec().is_last_row()]
    assert labels
    assert all(labels)


def test_every_example_has_a_test_and_a_place_in_the_gallery():
    from gallery import ORDER

    assert {*SCRIPTS} == {*CLAIMS} == {f"{name}.py" for name in ORDER}


def test_figures_and_outputs_are_those_of_the_code():
    from gallery import FIGURES, ORDER, RUNS, Example

    runs = json.loads(RUNS.read_text("utf-8"))
    stale = [name for name in ORDER if runs[name] != Example.read(name).code_digest()]
    assert stale == [], "run `make gallery`"
    assert max(picture.stat().st_size for picture in FIGURES.glob("*.png")) < 60_000
