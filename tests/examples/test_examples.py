"""Scripts and notebooks of examples/ run at a small scale, and what they claim holds there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))

RUN = """
import json, sys
path, wanted = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    text = file.read()
if path.endswith(".ipynb"):
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    text = "\\n".join("".join(cell["source"]) for cell in cells)
exec(compile(text, path, "exec"), globals())
import matplotlib.pyplot as plt
axes = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes]
figures = {"labels": [axes.get_xlabel() for axes in axes if axes.get_subplotspec().is_last_row()]}
claims = {claim: bool(holds) for claim, holds in eval(wanted, globals()).items()}
print("\\n" + json.dumps([claims, figures]))
"""

# What must hold after a run, as a dictionary of claims.
CLAIMS = {
    "plot_news_feed.py": """{
        "the visitor pays": gained["visitor known"] > 1.3 * gained["visitor not known"],
        "and more than at random": gained["visitor known"] > 0,
    }""",
    "plot_dosing.py": """{
        "lab values halve what is missed": late["by lab values"] < 0.5 * late["one dose for all"],
        "a lab value is worth measuring": why.best_measurement.column in {*LABS} - {*patient},
        "by more than its cost": why.best_measurement.net > 0,
    }""",
    "plot_own_world.py": """{
        "latent-ucb is best": min(tables.summary, key=lambda row: row["mean_regret"])["method"]
        == "latent-ucb",
        "by far": tables.summary[0]["mean_regret"] < 0.5 * tables.summary[1]["mean_regret"],
        "nothing failed": not tables.failures,
    }""",
    "plot_sensors.py": """{
        "latent UCB loses less": all(
            final["latent UCB", share] < final["zero-filled OFUL", share] for share in (0.4, 0.8)
        ),
        "broken sensors cost": final["latent UCB", 0.4] < final["latent UCB", 0.8],
        "a sensor is worth repairing": gains[best] > 0.01,
    }""",
    "half_empty_table.ipynb": """{
        "holes not at random are found": "worst" in found.findings["Hidden at random?"],
        "the table is low-rank": found.rank < 15 and found.errors[found.rank] < 0.7,
        "inferring the radius pays": earned["value"]["inferred"] > earned["value"]["largest"],
        "the truth is covered": (
            earned["low"]["uniform"] < malignant.mean() < earned["high"]["uniform"]
        ),
        "the agent earns more than the clinic": earned["low"]["agent"] > earned["high"]["log"],
        "the choice is malignant": judged.loc[decision.item, "malignant"],
    }""",
    "imputer_in_a_pipeline.ipynb": """{
        "latent factors predict best": max(scores, key=lambda name: scores[name].mean())
        == "latent factors",
        "the evidence agrees with the grid": abs(
            imputer.n_components_ - search.best_params_["n_components"]
        ) <= 3,
        "deviations are right": 0.87 < covered < 0.95,
        "holes leave something open": (coefficients.std() > 0).all(),
    }""",
    "one_figure.ipynb": """{
        "regrets are the published ones": len(both) == 12 and largest < 1e-8,
        "latent UCB is lowest everywhere": all(
            rows.groupby("method")["final_regret"].mean().idxmin() == "latent-ucb"
            for found in varied.values()
            for _, rows in found.groupby("p")
        ),
    }""",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_what_an_example_claims_holds(name, tmp_path):
    command = [sys.executable, "-W", "error", "-c", RUN, str(EXAMPLES / name), CLAIMS[name]]
    settings = {"HALFSEEN_SCALE": "small", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        env=os.environ | settings,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    claims, figures = json.loads(done.stdout.splitlines()[-1])
    assert [claim for claim, holds in claims.items() if not holds] == []
    assert figures["labels"]
    assert all(figures["labels"])


def test_every_example_has_a_test():
    assert {*SCRIPTS, *NOTEBOOKS} == {*CLAIMS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_at_most_80_lines(name):
    assert len((EXAMPLES / name).read_text("utf-8").splitlines()) <= 80


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(name):
    for cell in json.loads((EXAMPLES / name).read_text("utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
