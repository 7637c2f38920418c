"""The pages about studies: every block of code in them runs, in order, as it stands."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.simulation.methods import METHODS
from halfseen.worlds import base
from shared import read

DOCS = Path(__file__).resolve().parents[2] / "docs"
MINE = """
import halfseen

@halfseen.register_policy
class Mine(halfseen.Uniform):
    pass
"""


def blocks(page):
    """Return language and text of every block of code."""
    return re.findall(r"```(\w+)\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def follow(page, folder, *options):
    """Run the blocks of a page in a folder; return what was printed."""
    names, printed = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for language, text in blocks(page):
            if language == "python":
                with redirect_stdout(io.StringIO()) as output:
                    exec(compile(text, page, "exec"), names)
                printed.append(output.getvalue())
            else:
                assert language == "sh"
                program, *arguments = shlex.split(text)
                assert program == "halfseen"
                result = CliRunner().invoke(app, [*arguments, "--jobs", "1", *options])
                assert result.exit_code == 0, result.output
                printed.append(result.output)
    return printed


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Follow docs/your-data.md in an empty folder; return the folder and what was printed."""
    folder = tmp_path_factory.mktemp("your-data")
    return folder, follow("your-data.md", folder)


def summary(folder):
    found = read(folder / "summary.csv")
    return {row["method"]: float(row["mean_regret"]) for row in found}


def test_the_walk_ends_with_a_report(walked):
    folder, printed = walked
    assert "report: results/offers/report.md" in printed[1]
    report = (folder / "results" / "offers" / "report.md").read_text()
    assert report.startswith("# offers.csv")
    for name in re.findall(r"`(\w+\.(?:csv|csv\.gz|json))`", (DOCS / "your-data.md").read_text()):
        assert (folder / "results" / "offers" / name).exists()
    assert set(summary(folder / "part")) == {"tofu-fh", "zf-oful"}


def test_the_page_tells_the_truth_about_its_example(walked):
    folder, _ = walked
    regret = summary(folder / "results" / "offers")
    filled = min(regret["zf-oful"], regret["impute-mean"])
    assert filled > 3.0 * regret["tofu-fh"]
    assert regret["tofu-fh"] < regret["ra-tofu-fh"] < filled
    assert max(regret, key=regret.get) == "uniform"
    assert min(regret, key=regret.get) == "latent-ucb"


@pytest.mark.usefixtures("unrendered")
def test_the_page_about_one_s_own_studies_runs(tmp_path):
    plt.switch_backend("agg")
    (tmp_path / "mine.py").write_text(MINE)
    printed = follow("simulate.md", tmp_path, "--scale", "smoke", "--seeds", "0")
    first = printed[0].split()
    assert first.index("latent-ucb") < first.index("zf-oful") < first.index("uniform")
    assert "mine" in printed[-2]
    for name in ("regret.png", "ranks.png", "my-study/report.md", "my-study/manifest.json"):
        assert (tmp_path / name).exists()


def test_the_page_about_one_s_own_studies_has_every_method_and_world():
    page = (DOCS / "simulate.md").read_text("utf-8")
    words = set(re.findall(r"`(?:paper\.)?([\w-]+)`", page))
    assert set(METHODS) <= words
    shipped = {
        world.__name__
        for world in base._KINDS.values()  # other tests may have registered more
        if world.__module__.startswith("halfseen.")
    }
    assert shipped <= words
