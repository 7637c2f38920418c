"""The page over all studies: what it says is what the files say, and it needs nothing else."""

import csv
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from made_results import small_study, wobble, write_results
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.errors import StoreError
from halfseen.reports import context
from halfseen.reports.charts import MOST_POINTS, chart_data, color_in_the_dark, rounded
from halfseen.reports.data import Results
from halfseen.reports.index import PLOTLY_VERSION, asset, study_folders, write_index
from halfseen.reports.look import LOOKS
from halfseen.reports.page import write_report
from halfseen.reports.pictures import half_seen_steps
from halfseen.reports.render import embedded_json
from halfseen.studies.published import Figure, Key
from halfseen.studies.published_summary import Level, SummaryComparison

pytestmark = pytest.mark.usefixtures("unrendered")

EVIL = '<img src=x onerror=alert(1)> & "quoted" </script>'
LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}


def regret(key):
    return LEVELS.get(key.method, 7.0) / (key.p or 1.0) + wobble(key)


def made(home, name="small", **changes):
    """Write the results of a study into a folder, with the manifest of a real run."""
    study = small_study(name=name, **changes)
    write_results(home / name, study, regret)
    tell_study(home / name, study)
    write_report(study, home / name)
    return study


def tell_study(folder, study):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"study": study.to_dict()}))


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.texts, self.raw = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.raw = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.raw = False

    def handle_data(self, data):
        if not self.raw:
            self.texts.append(data)


def data_of(page):
    """Return the data of the charts of a page, one per study."""
    found = re.findall(r'<script type="application/json" class="data">(.*?)</script>', page)
    return [json.loads(text) for text in found]


def test_every_study_has_its_claims_charts_table_and_files(tmp_path):
    made(
        tmp_path,
        "one",
        claims=[{"text": "Better", "kind": "lower", "method": "tofu", "than": "zf-oful"}],
        notes=["Know this."],
    )
    made(tmp_path, "two")
    page = write_index(tmp_path)
    assert page == tmp_path / "index.html"
    text = page.read_text(encoding="utf-8")
    elements = Elements(text)
    assert [a["id"] for tag, a in elements.found if tag == "section" and "id" in a] == [
        "one",
        "two",
    ]
    words = " ".join(elements.texts)
    for told in ("A small study", "Better", "holds", "Know this.", "p = 0.2", "zero-filled OFUL"):
        assert told in words
    links = {a["href"] for tag, a in elements.found if tag == "a"}
    for name in ("summary.csv", "per_seed.csv", "trajectories.csv.gz", "claims.csv"):
        assert f"one/{name}" in links
    local = [link for link in links if not link.startswith("#")]
    assert all((tmp_path / link).exists() for link in local)
    ids = [a["id"] for _, a in elements.found if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(link[1:] in ids for link in links if link.startswith("#"))


def test_nothing_is_loaded_from_anywhere(tmp_path):
    made(tmp_path)
    text = write_index(tmp_path).read_text(encoding="utf-8")
    for tag, attributes in Elements(text).found:
        for name in ("src", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
        if tag == "link":
            assert attributes["href"].startswith("data:")
        if tag == "a":
            assert not re.match(r"(https?:)?//", attributes["href"])
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(", asset("assets/style.css"))


def test_texts_cannot_become_markup(tmp_path):
    claim = {"text": EVIL, "kind": "lower", "method": "tofu", "than": "zf-oful"}
    made(tmp_path, title=EVIL, notes=[EVIL], claims=[claim])
    text = write_index(tmp_path).read_text(encoding="utf-8")
    elements = Elements(text)
    assert not [a for _, a in elements.found if "onerror" in a]
    assert "".join(elements.texts).count(EVIL) == 4  # contents, title, claim, note
    assert text.count("</script>") == text.count("<script")
    assert json.loads(embedded_json({"a": EVIL})) == {"a": EVIL}


def test_methods_and_settings_with_odd_names_stay_texts(tmp_path):
    study = made(
        tmp_path,
        settings={"<b> & co": {}, "other": {}},
        methods={"a<i>b": {"policy": "uniform"}, "tofu": {}},
    )
    text = write_index(tmp_path).read_text(encoding="utf-8")
    assert "<b> & co" not in text
    assert "a<i>b" not in text
    (data,) = data_of(text)
    assert [method["key"] for method in data["methods"]] == list(study.methods)
    assert [setting["name"] for setting in data["settings"]] == ["<b> & co", "other"]


def test_charts_have_the_numbers_of_the_files(tmp_path):
    made(tmp_path)
    (data,) = data_of(write_index(tmp_path).read_text(encoding="utf-8"))
    finals = {
        (data["settings"][s]["name"], p, data["methods"][m]["key"]): (n, mean, error)
        for s, p, m, n, mean, error in data["finals"]
    }
    with open(tmp_path / "small" / "summary.csv") as file:
        summary = list(csv.DictReader(file))
    assert len(summary) == len(finals) == 6
    for row in summary:
        n, mean, error = finals[row["setting"], float(row["p"]), row["method"]]
        assert n == int(row["n"])
        assert mean == float(f"{float(row['mean_regret']):.4g}")
        assert error == float(f"{float(row['se_regret']):.3g}")
    lines = {
        (p, data["methods"][m]["key"], at): mean
        for _, p, m, _, rounds, means, _ in data["lines"]
        for at, mean in zip(data["rounds"][rounds], means, strict=True)
    }
    with gzip.open(tmp_path / "small" / "trajectories.csv.gz", "rt") as file:
        trajectories = list(csv.DictReader(file))
    assert len(lines) == len(trajectories)
    for row in trajectories:
        mean = lines[float(row["p"]), row["method"], int(row["round"])]
        assert mean == float(f"{float(row['mean_regret']):.4g}")


def test_long_lines_are_thinned_to_their_ends(tmp_path):
    study = made(tmp_path, world={"kind": "low-rank", "dim": 8, "rank": 2, "horizon": 400})
    results = Results.load(tmp_path / "small")
    frame = results.trajectories
    longer = frame.loc[frame.index.repeat(30)].reset_index(drop=True)
    longer["round"] = longer.groupby(["p", "method"]).cumcount() + 1
    data = chart_data(study, replace(results, trajectories=longer))
    assert len(data["rounds"]) == 1
    assert len(data["rounds"][0]) == MOST_POINTS
    assert (data["rounds"][0][0], data["rounds"][0][-1]) == (1, longer["round"].max())


def test_labels_and_colours_are_those_of_the_figures(tmp_path):
    made(tmp_path)
    (data,) = data_of(write_index(tmp_path).read_text(encoding="utf-8"))
    for method in data["methods"]:
        look = LOOKS[method["key"]]
        assert (method["label"], method["color"]) == (look.label, look.color)
    for look in LOOKS.values():
        assert re.fullmatch("#[0-9a-fA-F]{6}", color_in_the_dark(look.color))


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [(12345.678, 4, 12346), (0.000123456, 3, 0.000123), (-2.0, 4, -2), (float("inf"), 4, None)],
)
def test_no_digit_before_the_point_is_lost(value, digits, expected):
    assert rounded(value, digits) == expected


def test_published_numbers_stand_below_ours(tmp_path, monkeypatch):
    made(tmp_path)
    per_seed = Results.load(tmp_path / "small").per_seed
    figures = {
        Key(row.setting, row.p, row.method, row.seed): Figure(row.final_regret, exact=True)
        for row in per_seed[per_seed["method"] == "tofu"].itertuples()
    }
    monkeypatch.setattr(context, "published_for", lambda study: figures)
    text = write_index(tmp_path).read_text(encoding="utf-8")
    assert "The published value over the same seeds is below ours" in text
    for mean in ("6.25 ± 0.13", "25 ± 0.13"):
        assert text.count(f">published {mean}</span>") == 1
    assert text.count('<span class="published">equal</span>') == 2
    assert "Δ " not in text.split("<tbody>", 1)[1]


def test_studies_of_the_package_come_first_and_other_folders_are_left_alone(tmp_path):
    for name in ("masks", "synthetic", "another"):
        made(tmp_path, name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "manifest.json").write_text("{}")
    assert [f.name for f in study_folders(tmp_path)] == ["synthetic", "masks", "another"]


def test_a_study_that_cannot_be_read_is_named_and_the_others_are_shown(tmp_path):
    made(tmp_path, "good")
    made(tmp_path, "bad")
    (tmp_path / "bad" / "per_seed.csv").write_text("nothing")
    write_results(tmp_path / "untold", small_study(), regret)
    made(tmp_path, "wrong")
    wrong = tmp_path / "wrong" / "manifest.json"
    plain = json.loads(wrong.read_text())
    plain["study"]["comparisons"] = [{"name": "it"}]
    wrong.write_text(json.dumps(plain))
    words = " ".join(Elements(write_index(tmp_path).read_text(encoding="utf-8")).texts)
    assert "A small study" in words
    assert "per_seed.csv is damaged" in words
    assert "does not say what was run" in words
    assert "comparisons[0].methods must be" in words


def test_failed_cells_are_reported(tmp_path):
    study = small_study()
    write_results(tmp_path / "small", study, lambda key: None if key.seed == 1 else regret(key))
    tell_study(tmp_path / "small", study)
    words = " ".join(Elements(write_index(tmp_path).read_text(encoding="utf-8")).texts)
    assert "6 of these runs failed." in words


def test_a_study_without_regrets_shows_its_figures(tmp_path):
    made(tmp_path)
    for name in ("summary.csv", "trajectories.csv.gz"):
        file = tmp_path / "small" / name
        opened = gzip.open if name.endswith("gz") else open
        with opened(file, "rt") as stream:
            rows = list(csv.DictReader(stream))
        with opened(file, "wt", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(row | {"mean_regret": "", "se_regret": ""} for row in rows)
    text = write_index(tmp_path).read_text(encoding="utf-8")
    images = [a for tag, a in Elements(text).found if tag == "img"]
    assert images
    assert all(a["src"].startswith("data:image/png;base64,") and a["alt"] for a in images)
    assert 'class="charts"' not in text


def test_equal_results_give_equal_bytes(tmp_path):
    made(tmp_path)
    first = write_index(tmp_path).read_bytes()
    assert write_index(tmp_path).read_bytes() == first


def test_without_results_the_remedy_is_reported(tmp_path):
    with pytest.raises(StoreError, match=r"there are no results in .*halfseen reproduce synthetic"):
        write_index(tmp_path / "nowhere")


def test_the_charting_library_is_the_version_it_says_with_its_licence():
    assert f"v{PLOTLY_VERSION}" in asset("vendor/plotly-basic.min.js")[:200]
    assert PLOTLY_VERSION in asset("vendor/README.md")
    assert asset("vendor/LICENSE").startswith("MIT License")


def test_hidden_cells_of_the_picture_are_found_again():
    options, seen, _, filled = half_seen_steps()
    assert [cell[:3] for cell in filled.cells] == [cell[:3] for cell in options.cells]
    kinds = [cell.kind for cell in seen.cells]
    assert 0 < kinds.count("seen") < kinds.count("hidden")
    assert {cell.kind for cell in filled.cells} == {"seen", "guess"}


class TestCommands:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def call(self, *arguments):
        return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})

    def test_page_writes_it_and_says_where(self, here):
        made(here / "results")
        result = self.call("page")
        assert result.exit_code == 0, result.output
        assert "results/index.html" in result.output
        assert (here / "results" / "index.html").exists()

    def test_page_without_results_is_an_error_that_says_what_to_do(self, here):
        result = self.call("page", "elsewhere")
        assert result.exit_code == 2
        assert "there are no results in elsewhere" in result.output

    def test_reproduce_writes_the_page_next_to_the_folders_of_studies(self, here):
        small = ("--scale", "smoke", "--jobs", "1", "--methods", "uniform", "--seeds", "0")
        assert self.call("reproduce", "synthetic", *small).exit_code == 0
        assert (here / "results" / "smoke" / "index.html").exists()
        assert self.call("reproduce", "synthetic", *small, "--out", "mine").exit_code == 0
        assert not (here / "index.html").exists()


def test_published_means_stand_below_ours(tmp_path, monkeypatch):
    found = SummaryComparison(
        orders=[],
        excesses=[Level(0.2, "tofu", 100.0, 101.5, 2.0, 8.0), Level(0.2, "uniform", 9, 80, 1, 4)],
        ranks=[],
        missing=[],
    )
    monkeypatch.setattr(context, "compare_means", lambda study, results: found)
    made(tmp_path)
    text = write_index(tmp_path).read_text(encoding="utf-8")
    assert "101.5 ± 2" in text
    assert ">published 100</span>" in text
    assert text.count(">agrees (") == text.count("<strong>differs</strong>") == 1


def test_skipped_cells_are_no_failures(tmp_path):
    made(tmp_path)
    file = tmp_path / "small" / "per_seed.csv"
    file.write_text(file.read_text().replace(",ok,", ",skipped,", 1))
    words = " ".join(Elements(write_index(tmp_path).read_text(encoding="utf-8")).texts)
    assert "1 of them skipped" in words
    assert "of these runs failed" not in words
