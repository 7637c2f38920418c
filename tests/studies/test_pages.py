"""The pages about studies: every block of code in them runs, in order, as it stands."""

import csv
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.simulation.methods import METHODS
from halfseen.studies.reading import read_study
from halfseen.studies.schema import StudyFile
from halfseen.worlds import base as registry

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page):
    """Return language and text of every block of code."""
    return re.findall(r"```(\w+)\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Follow docs/your-data.md in an empty folder; return the folder and what was printed."""
    folder, names, printed = tmp_path_factory.mktemp("your-data"), {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for language, text in blocks("your-data.md"):
            if language == "toml":
                Path("my-study.toml").write_text(text)
            elif language == "python":
                with redirect_stdout(io.StringIO()) as output:
                    exec(compile(text, "your-data.md", "exec"), names)
                printed.append(output.getvalue())
            else:
                assert language == "sh"
                program, *arguments = shlex.split(text)
                assert program == "halfseen"
                result = CliRunner().invoke(app, [*arguments, "--jobs", "1"])
                assert result.exit_code == 0, result.output
                printed.append(result.output)
    return folder, printed


def summary(folder):
    with (folder / "summary.csv").open(newline="") as file:
        return {row["method"]: float(row["mean_regret"]) for row in csv.DictReader(file)}


def test_the_walk_ends_with_a_report(walked):
    folder, printed = walked
    assert "report: results/my-study/report.md" in printed[1]
    report = (folder / "results" / "my-study" / "report.md").read_text()
    assert "Offers with holes" in report
    assert "features, with the share recorded of each: feature 0 " in report
    for name in re.findall(r"`(\w+\.(?:csv|csv\.gz|json))`", (DOCS / "your-data.md").read_text()):
        assert (folder / "results" / "my-study" / name).exists()
    assert set(summary(folder / "part")) == {"tofu-fh", "zf-oful"}


def test_the_page_tells_the_truth_about_its_example(walked):
    folder, _ = walked
    regret = summary(folder / "results" / "my-study")
    filled = min(regret["zf-oful"], regret["impute-mean"])
    assert filled > 3.0 * regret["tofu-fh"]
    assert regret["tofu-fh"] < regret["ra-tofu-fh"] < filled
    assert max(regret, key=regret.get) == "uniform"
    assert min(regret, key=regret.get) == "latent-ucb"


def test_the_study_on_the_page_about_studies_runs(tmp_path):
    ((language, text),) = blocks("studies.md")
    assert language == "toml"
    file = tmp_path / "example.toml"
    file.write_text(text)
    arguments = ["--jobs", "1", "--scale", "smoke", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["run", str(file), *arguments])
    assert result.exit_code == 0, result.output
    study = read_study(file)
    assert list(study.settings["noisy"].methods) == ["zf-oful", "tofu", "tofu-over"]
    assert study.settings["noisy"].observe_probs == (0.3,)


def test_the_page_about_studies_has_every_key_method_and_world():
    page = (DOCS / "studies.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(StudyFile.model_fields)
    words = set(re.findall(r"`([\w-]+)`", page))
    assert set(METHODS) <= words
    shipped = {
        kind
        for kind, world in registry._KINDS.items()  # other tests may have registered more
        if world.__module__.startswith("halfseen.")
    }
    assert shipped <= words
