"""Reports on a user's own study: they do not speak of the paper, nor of a p that is not there."""

import io
import json
import re

import numpy as np
import pytest
from made_results import small_study, wobble, write_results
from rich.console import Console

from halfseen import TableWorld, simulate
from halfseen.reports.figures import figure_of, figures_of
from halfseen.reports.index import write_index
from halfseen.reports.page import write_report
from halfseen.reports.panels import Scene
from halfseen.reports.published import reproduces_paper
from halfseen.reports.terminal import terminal_tables
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.reading import study_from

pytestmark = pytest.mark.usefixtures("unrendered")

METHODS = {"tofu-fh": {}, "latent-ucb": {}, "impute-mean": {}, "mine": {"policy": "uniform"}}
CLAIM = {"text": "It pays less", "kind": "lower", "method": "tofu-fh", "than": "mine"}


def regret(key):
    return 5.0 + len(key.method) + wobble(key)


@pytest.fixture
def table(tmp_path):
    """Return a table in which 41 of 100 entries are empty."""
    arms = np.arange(1.0, 401.0).reshape(20, 2, 10)
    arms.reshape(-1)[[at for at in range(400) if at % 100 < 41]] = np.nan
    path = tmp_path / "table.npz"
    np.savez(path, arms=arms, means=np.ones((20, 2)))
    return path


def own_study(table, **changes):
    world = {"kind": "table", "path": str(table), "rank": 2}
    return small_study(
        world=world, observe_prob=[], methods=METHODS, **{"claims": [CLAIM]} | changes
    )


def written(home, study):
    """Return report, page without scripts, and terminal output of a made-up run."""
    folder = home / "results" / study.name
    results = write_results(folder, study, regret)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(results.manifest | {"study": study.to_dict()}))
    report = write_report(study, folder).read_text()
    page = write_index(folder.parent).read_text()
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    console = Console(width=100, file=io.StringIO())
    for shown in terminal_tables(results.summary, study):
        console.print(shown)
    return report, page, console.file.getvalue()


def test_a_table_as_recorded_has_no_p_and_says_how_much_of_it_is_seen(tmp_path, table):
    report, page, terminal = written(tmp_path, own_study(table))
    for text in (report, page, terminal):
        assert "p = 1" not in text
        assert "paper" not in text.lower()
    assert "worlds: table; share of entries seen: 59 %\n" in report
    assert "share of entries seen: 59 %" in page
    assert "share seen" not in terminal
    rows = report.split("| method | final regret |")[1].splitlines()[2:6]
    labels = ["TOFU, full history", "latent UCB", "mean-filled OFUL", "mine"]
    assert [row.split(" | ")[0] for row in rows] == [f"| {label}" for label in labels]
    assert re.search(r"\*\*(holds|fails|undecided)\*\* \| \d", report)  # no empty place before it


def test_figures_of_such_a_table_do_not_name_a_p(tmp_path, table):
    study = own_study(table)
    results = write_results(tmp_path / "results", study, regret)
    (spec,) = figures_of(study)
    figure, _ = figure_of(Scene(study, results), spec)
    texts = [figure.axes[0].get_title(), *(t.get_text() for t in figure.legends[0].get_texts())]
    assert texts == ["", "TOFU, full history", "latent UCB", "mean-filled OFUL", "mine"]


def test_where_more_of_a_table_is_hidden_p_is_the_share_of_what_was_recorded(tmp_path, table):
    world = {"kind": "table", "path": str(table), "rank": 2}
    study = small_study(world=world, methods=METHODS, observe_prob=[1.0, 0.5])
    report, page, _ = written(tmp_path, study)
    assert "share of recorded entries seen: 1, 0.5" in report
    assert "share of recorded entries seen: 1, 0.5" in page
    results = write_results(tmp_path / "again", study, regret)
    figure, _ = figure_of(Scene(study, results), figures_of(study)[0])
    assert figure.axes[0].get_xlabel() == "share of recorded entries seen, p"


def test_results_of_simulate_have_the_same_points_as_their_study(tmp_path, table):
    world = TableWorld(path=str(table))
    tables = simulate(["uniform"], world, range(2), jobs=1, out=tmp_path / "home" / "simulated")
    assert {row["p"] for row in tables.summary} == {None}
    text = write_index(tmp_path / "home").read_text()
    manifest = json.loads((tmp_path / "home" / "simulated" / "manifest.json").read_text())
    assert list(study_from(manifest["study"]).settings["default"].worlds()) == [None]
    assert '<th scope="row">uniform</th>' in text


def test_a_study_with_its_own_p_keeps_it_and_does_not_mention_the_paper(tmp_path):
    report, page, _ = written(tmp_path, small_study(methods=METHODS, claims=[CLAIM]))
    assert "share of entries seen: 0.8, 0.2" in report
    assert "p = 0.8: " in report
    assert "paper" not in (report + page).lower()


@pytest.mark.parametrize("name", ORDER)
def test_the_package_s_studies_are_known_at_any_scale_and_in_part(name):
    for scale in ("paper", "smoke"):
        study = builtin_study(name, scale)
        assert reproduces_paper(study)
        assert reproduces_paper(study.narrowed(seeds=[0], methods=study.methods[:1]))
        assert reproduces_paper(study_from(json.loads(json.dumps(study.to_dict()))))


def test_a_study_of_the_same_name_is_not_the_package_s():
    assert not reproduces_paper(small_study(name="synthetic"))
    assert not reproduces_paper(small_study())
