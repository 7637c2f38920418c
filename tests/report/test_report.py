"""Tables and the page about a run: what a person reads is what the files say."""

import gzip
import io
import math
import re

import pytest
from rich.console import Console
from rich.markdown import Markdown
from scipy.stats import ttest_rel

from halfseen import LowRankWorld, World, paper, simulate
from halfseen.errors import InvalidInputError, StoreError
from halfseen.paper import published
from halfseen.paper.claims import lower
from halfseen.paper.published import PublishedCell, Summary
from halfseen.report.figures import Figure, regret_over_p
from halfseen.report.numbers import FinalTable, compare
from halfseen.report.report import MARKDOWN, TABLE, Report, render
from halfseen.simulation.cells import CellKey
from halfseen.simulation.methods import METHODS
from halfseen.simulation.results import Point, Results, mean_of
from made_results import LEVELS, regret, setting, small_study, wobble, write_results
from made_results import METHODS as THREE
from shared import read

IRREDUCIBLE = (10.0, 60.0, 30.0, 20.0)


STUDY = small_study(
    figures=lambda results: [Figure("fig:it", "It", [regret_over_p(results, list(THREE))])],
    claims=lambda results: {"fig:a": {"a | b": lower(results, "tofu", "zf-oful")}},
    comparisons=lambda results: [
        compare(results, "beside", "Beside each other", ["tofu", "uniform"], ["other", "zf-oful"])
    ],
    notes=["Know this."],
)


# Files


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("per_seed.csv", b""),
        ("per_seed.csv", b"study,setting\nsmall,default\n"),
        ("diagnostics.csv", b"\xff\xfe\x00"),
        ("trajectories.csv.gz", b"not gzip"),
        ("trajectories.csv.gz", gzip.compress(b"study\n", mtime=0)[:-4]),
        ("manifest.json", b"{"),
        ("manifest.json", b"[]"),
        ("manifest.json", b'{"versions": 3}'),
    ],
)
def test_a_damaged_or_missing_file_is_named(tmp_path, name, damage):
    write_results(tmp_path, STUDY, regret)
    (tmp_path / name).write_bytes(damage)
    with pytest.raises(StoreError, match=re.escape(name) + r" is damaged"):
        Results.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(StoreError, match=re.escape(name) + r" is not there: run the study again"):
        Results.load(tmp_path)


def test_a_word_in_place_of_a_number_is_damage(tmp_path):
    write_results(tmp_path, STUDY, regret)
    path = tmp_path / "per_seed.csv"
    path.write_text(path.read_text().replace(",ok,", ",ok,soon", 1))
    with pytest.raises(StoreError, match=r"per_seed\.csv is damaged"):
        Results.load(tmp_path)


def test_results_on_disk_are_those_of_the_run(tmp_path):
    def told(key):
        return {"values": [key.seed / 3, math.pi], "irreducible": 2.0}

    made = write_results(tmp_path, STUDY, lambda key: regret(key) / 3, diagnostics=told)
    found = Results.load(tmp_path)
    assert (found.name, found.title, found.methods) == ("small", "A small study", list(THREE))
    assert found.points() == made.points()
    for point in made.points():
        assert found.irreducible(point) == dict.fromkeys(range(4), 2.0)
        for key in THREE:
            assert found.regrets(point, key) == made.regrets(point, key)
            assert found.over_time(point, key) == made.over_time(point, key)
            values = found.diagnostic(point, key, "values")
            assert values == made.diagnostic(point, key, "values")
            assert values[1] == {0: 1 / 3, 1: math.pi}


def test_a_method_may_be_called_nan(tmp_path):
    study = small_study({"default": setting(methods={"nan": {"method": "uniform"}})})
    write_results(tmp_path, study, regret)
    assert Results.load(tmp_path).regrets(Point("default", 0.8), "nan")


# Tables


def test_the_best_method_that_can_be_played_is_bold_and_oracles_stand_below(tmp_path):
    paid = {"oracle-masked": 1.0, "full-oful": 2.0, "tofu": 3.0, "uniform": 1265.0}
    study = small_study({"default": setting(methods={key: {} for key in paid})})
    results = write_results(tmp_path, study, lambda key: paid[key.method])
    text = render(MARKDOWN, report=Report.of(results))
    lines = text.split("| method | p = 0.8 | p = 0.2 |")[1].splitlines()[2:7]
    assert [line.split(" | ")[0] for line in lines] == [
        "| TOFU",
        "| uniform",
        "| *sees or knows more:*",
        "| subspace given",
        "| OFUL, nothing hidden",
    ]
    assert [line.split(" | ")[1] for line in lines[:2]] == ["**3.0 ± 0.0**", "1,265.0 ± 0.0"]
    assert "**" not in "".join(lines[1:])


def test_many_methods_fit_the_terminal(tmp_path):
    each = setting(methods={key: {} for key in METHODS})
    study = small_study({"a-long-setting": each, "b": each})
    report = Report.of(write_results(tmp_path, study, regret))
    console = Console(width=80, file=io.StringIO())
    console.print(Markdown(render(TABLE, report=report)))
    text = console.file.getvalue()
    assert "…" not in text
    assert text.count("±") == 1 + len(METHODS) * 4


def test_small_regrets_keep_their_digits_and_nothing_run_makes_an_empty_table(tmp_path):
    table = FinalTable.of(write_results(tmp_path, STUDY, lambda key: 0.0123))
    assert table.text(Point("default", 0.8), "tofu").startswith("0.012")
    results = write_results(tmp_path, STUDY, lambda key: None)
    assert FinalTable.of(results)[:2] == ([], [])
    assert render(TABLE, report=Report.of(results)).strip() == ""


# The page


def test_the_page_tells_everything(tmp_path):
    broken = ("uniform", 3, 0.2)
    paid = lambda key: None if (key.method, key.seed, key.p) == broken else regret(key)  # noqa: E731
    report = STUDY.report(write_results(tmp_path, STUDY, paid))
    keys = [CellKey("small", "default", 0.8, "tofu", seed) for seed in range(6)]
    cells = dict.fromkeys(keys, PublishedCell(6.25, False))
    report.published = published.compare_seeds(report.results, cells).groups
    page = report.write()
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / "report.md"
    for told in (
        "# A small study",
        "seeds: 0–3",
        "1.5 s",
        "halfseen ",
        "![It](it.png)",
        "Claims (1 holds)",
        "| a \\| b | fig:a | **holds** |",
        "| method | p = 0.8 | p = 0.2 |",
        "**Beside each other** ([beside.csv](beside.csv))",
        "Published results and ours",
        "| default | 0.8 | TOFU | 4 | 6.25 ± 0 |",
        "- Know this.",
        "- uniform, p = 0.2, seed 3",
        "[failures.txt](failures.txt)",
    ):
        assert told in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (tmp_path / link).exists()
    first = page.read_bytes()
    assert report.write().read_bytes() == first


def test_a_run_in_which_all_failed_has_a_page(tmp_path):
    (tmp_path / "beside.csv").write_text("of an earlier run")
    results = write_results(tmp_path, STUDY, lambda key: None)
    text = STUDY.report(results).write().read_text(encoding="utf-8")
    assert "Nothing was run." in text
    assert "**not run**" in text
    assert "## Figures" not in text
    assert "- and 4 more" in text
    assert not (tmp_path / "beside.csv").exists()


# Comparisons seed by seed


def test_an_interval_is_that_of_the_paired_t_test(tmp_path):
    def paid(key):
        return LEVELS[key.method] / key.p + (1 if key.method == "tofu" else -2) * wobble(key)

    results = write_results(tmp_path, STUDY, paid)
    pair = compare(results, "a", "b", ["tofu"], ["zf-oful"]).pairs[1]
    ours, theirs = (list(results.regrets(pair.point, key).values()) for key in ("tofu", "zf-oful"))
    expected = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert pair.difference == pytest.approx((-20.0, expected.low, expected.high, 4), rel=1e-12)
    assert (pair.mean, pair.other) == pytest.approx((25.0, 45.0))
    assert (pair.against, pair.point) == ("zf-oful", Point("default", 0.2))
    assert (pair.text, pair.decided) == ("−20 [−21.2, −18.8]", True)
    STUDY.report(results).write()
    rows = read(tmp_path / "beside.csv")
    assert len(rows) == 4
    assert float(rows[2]["ratio"]) == pytest.approx(25 / 45)


def test_only_common_seeds_count_and_a_single_one_has_no_interval(tmp_path):
    alone = write_results(
        tmp_path, STUDY, regret, run=lambda key: key.method != "tofu" or key.seed == 2
    )
    pair = compare(alone, "a", "b", ["tofu"], ["zf-oful"]).pairs[0]
    assert (pair.seeds, pair.text, pair.decided) == ((2,), "−5", False)
    assert math.isnan(pair.difference.low)
    nothing = write_results(tmp_path, STUDY, regret, run=lambda key: key.method == "tofu")
    assert compare(nothing, "a", "b", ["tofu"], ["zf-oful"]).pairs == []


# Excess over the irreducible regret, and published means


def irreducible(key):
    return {"irreducible": IRREDUCIBLE[key.seed]}


def above(key):
    return IRREDUCIBLE[key.seed] + LEVELS[key.method] + wobble(key)


def test_the_excess_is_paired_seed_by_seed(tmp_path):
    report = Report.of(write_results(tmp_path, STUDY, above, diagnostics=irreducible))
    mean, error = report.excess.cells[Point("default", 0.8), "tofu"]
    assert mean == pytest.approx(5.0)
    # The irreducible part differs by far more from seed to seed.
    assert error == pytest.approx(mean_of([-0.3, 0.1, 0.3, -0.1]).standard_error)
    text = report.write().read_text(encoding="utf-8")
    section = text.split("## Excess over the irreducible regret")[1].split("##")[0]
    assert "| TOFU | **5.0 ± 0.1** |" in section
    text = Report.of(write_results(tmp_path, STUDY, regret)).write().read_text(encoding="utf-8")
    assert "irreducible" not in text


MEANS = [
    Summary(0.8, "tofu", 4, 1000.0, 4.0, 995.0),
    Summary(0.8, "zf-oful", 4, 1004.0, None, 995.0),
]


def means_section(folder, monkeypatch, means, **more):
    monkeypatch.setattr(published, "published_summary", lambda name: means)
    results = write_results(folder, STUDY, above, diagnostics=irreducible, **more)
    text = STUDY.report(results).write().read_text(encoding="utf-8")
    return text.partition("## Published results and ours")[2].split("\n##")[0]


def test_published_means_are_shown_next_to_ours(tmp_path, monkeypatch):
    section = means_section(tmp_path, monkeypatch, MEANS)
    assert "| 0.8 | TOFU | 5.0 | 5.0 ± 0.1 | 4.2 | agrees |\n" in section
    other = [MEANS[0]._replace(mean_regret=1010.0), MEANS[1]]
    section = means_section(tmp_path, monkeypatch, other)
    assert "| 0.8 | TOFU | 15.0 | 5.0 ± 0.1 | 4.2 | **differs** |" in section
    assert means_section(tmp_path, monkeypatch, MEANS, run=lambda key: key.seed < 3) == ""
    assert means_section(tmp_path, monkeypatch, MEANS, scale="smoke") == ""


# One's own study


def test_a_script_gets_tables_figures_and_a_report(tmp_path):
    world = LowRankWorld(dim=6, rank=2, horizon=30)
    results = simulate(["uniform", "zf-oful"], world, range(2), jobs=1)
    assert results.table().index.tolist() == ["zf-oful", "uniform"]
    assert len(results.plot().axes) == 1
    with pytest.raises(InvalidInputError, match="a report needs a folder"):
        results.report()
    page = results.report(tmp_path / "mine")
    assert page == tmp_path / "mine" / "report.md"
    text = page.read_text(encoding="utf-8")
    assert "# simulation" in text
    assert "(regret_over_time.png)" in text
    assert "paper" not in text.lower()
    assert (page.parent / "per_seed.csv").exists()
    assert Report.of(Results.load(page.parent)).table == Report.of(results).table
    stored = simulate(["uniform"], world, range(2), jobs=1, out=tmp_path / "out")
    assert stored.report().parent == tmp_path / "out"


def test_a_function_of_facts_and_an_unnamed_world_have_a_report_too(tmp_path):
    from halfseen import Uniform

    class Unnamed(World):
        def realize(self, seed):
            return LowRankWorld(dim=4, rank=1, horizon=20).realize(seed)

    own = {"mine": lambda facts: Uniform(dim=facts.dim, seed=facts.seed)}
    results = simulate(own, Unnamed(), range(2), jobs=1)
    assert "| mine | " in results.report(tmp_path).read_text(encoding="utf-8")


def test_a_policy_of_one_s_own_joins_a_study_of_the_paper():
    from halfseen import Uniform

    own = {"tofu": None, "mine": lambda facts: Uniform(dim=facts.dim, seed=facts.seed)}
    tables = paper.run("synthetic", methods=own, seeds=[0], scale="smoke", jobs=1)
    assert [(row["p"], row["method"], row["status"]) for row in tables.per_seed] == [
        (p, key, "ok") for p in (0.8, 0.3) for key in own
    ]
