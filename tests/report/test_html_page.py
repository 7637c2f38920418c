"""The page over all studies: what it says is what the files say."""

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.paper.claims import lower
from halfseen.paper.studies import ORDER, report_on
from halfseen.report.figures import Figure, drawn, regret_over_p
from halfseen.report.numbers import compare
from halfseen.report.report import Report, Verdict, markdown_text, study_folders, write_page
from made_results import regret, setting, small_study, wobble, write_results

pytestmark = pytest.mark.usefixtures("unrendered")

EVIL = '<img src=x onerror=alert(1)> & "quoted" </script>'


def made(home, name="small", settings=None, **shown):
    """Write the results of a study into a folder, with its report; return the report."""
    study = small_study(settings, name=name, title=shown.pop("title", "A small study"))
    report = Report.of(write_results(home / name, study, regret))
    report.write()
    return report


def page_of(home, **shown):
    """Return the text of the page; reports show what is given besides what is on disk."""

    def report(folder):
        found = report_on(folder)
        for name, value in shown.items():
            setattr(found, name, value)
        return found

    return write_page(home, report, ORDER).read_text(encoding="utf-8")


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its texts outside of scripts and styles."""

    INLINE = ("code", "strong", "em", "b")

    def __init__(self, text):
        super().__init__()
        self.found, self.texts, self.raw = [], [""], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.raw = tag in ("script", "style")
        self.texts += [] if tag in self.INLINE else [""]

    def handle_endtag(self, tag):
        self.raw = False
        self.texts += [] if tag in self.INLINE else [""]

    def handle_data(self, data):
        self.texts[-1] += "" if self.raw else data


def test_every_study_has_its_claims_figures_table_and_files(tmp_path):
    made(tmp_path, "one")
    made(tmp_path, "two")
    better = Verdict("Better", "holds", ("p = 0.2: 1 against 2",))
    elements = Elements(page_of(tmp_path, verdicts=[better], notes=["Know this."]))
    assert [a["id"] for tag, a in elements.found if tag == "section" and "id" in a] == [
        "one",
        "two",
    ]
    words = " ".join(elements.texts)
    for told in ("A small study", "Better", "holds", "Know this.", "p = 0.2", "ZF-OFUL"):
        assert told in words
    links = {a["href"] for tag, a in elements.found if tag == "a"}
    for name in ("summary.csv", "per_seed.csv", "trajectories.csv.gz"):
        assert f"one/{name}" in links
    images = [a for tag, a in elements.found if tag == "img"]
    assert len(images) == 4
    assert all(a["alt"] for a in images)
    local = [link for link in links if not link.startswith("#")] + [a["src"] for a in images]
    assert all((tmp_path / link).exists() for link in local)
    ids = [a["id"] for _, a in elements.found if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(link[1:] in ids for link in links if link.startswith("#"))


def test_nothing_is_loaded_from_anywhere(tmp_path):
    made(tmp_path)
    text = page_of(tmp_path)
    for tag, attributes in Elements(text).found:
        assert tag != "script"
        for name in ("src", "srcset", "data", "action", "poster", "href"):
            assert not re.match(r"(https?:)?//", attributes.get(name, "")), (tag, attributes)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(", text)


def test_texts_cannot_become_markup(tmp_path):
    made(tmp_path, title=EVIL)
    text = page_of(tmp_path, notes=[EVIL], verdicts=[Verdict(EVIL, "holds", ())])
    elements = Elements(text)
    assert not [a for _, a in elements.found if "onerror" in a]
    assert "".join(elements.texts).count(EVIL) == 4  # contents, title, claim, note
    assert "</script>" not in text


def test_studies_of_the_package_come_first_and_other_folders_are_left_alone(tmp_path):
    for name in ("masks", "synthetic", "another"):
        made(tmp_path, name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "manifest.json").write_text("{}")
    assert [f.name for f in study_folders(tmp_path, ORDER)] == ["synthetic", "masks", "another"]


def test_a_study_that_cannot_be_read_is_named_and_the_others_are_shown(tmp_path):
    made(tmp_path, "good")
    made(tmp_path, "bad")
    (tmp_path / "bad" / "per_seed.csv").write_text("nothing")
    made(tmp_path, "untold")
    (tmp_path / "untold" / "manifest.json").write_text("{}")
    words = " ".join(Elements(page_of(tmp_path)).texts)
    assert "A small study" in words
    assert "per_seed.csv is damaged" in words
    assert "does not say what was run" in words


def test_failed_cells_are_reported(tmp_path):
    paid = lambda key: None if key.seed == 1 else regret(key)  # noqa: E731
    write_results(tmp_path / "small", small_study(), paid)
    words = " ".join(Elements(page_of(tmp_path)).texts)
    assert "6 of these runs failed." in words


def test_equal_results_give_equal_bytes(tmp_path):
    made(tmp_path)
    assert page_of(tmp_path) == page_of(tmp_path)


class TestCommands:
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


# A string of a study is shown as it is in every format

ODD = "A & B <i>_x_|y% $z$"
TEXTS = [
    ODD,
    "*a* **b** `c` ~~d~~ \\e",
    "[a](b) ![c](d) <https://e.org> &amp; &#35;",
    "# a",
    "> a",
    "- a",
    "a_b __c__ (d) {e} ^f",
]


@pytest.fixture
def odd(tmp_path):
    """Write a report in which everything has an odd name; return it."""
    each = setting(methods={ODD: {"method": "uniform"}, "tofu": {}})
    study = small_study(
        {ODD: each, "other": each},
        title=ODD,
        notes=[ODD],
        claims=lambda results: {ODD: {ODD: lower(results, [ODD], "tofu")}},
        comparisons=lambda results: [compare(results, "it", ODD, [ODD], ["tofu"])],
        figures=lambda results: [
            Figure("it", ODD, [regret_over_p(results, results.methods, setting=ODD)])
        ],
    )
    results = write_results(
        tmp_path / "small", study, lambda key: 5 + len(key.method) + wobble(key)
    )
    report = study.report(results)
    report.write()
    return report


def shown(markdown):
    return Elements(MarkdownIt("gfm-like", {"linkify": False}).render(markdown)).texts


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_shows_a_text_as_it_is(text):
    assert text in shown(f"# {markdown_text(text)}")
    assert text in shown(f"- {markdown_text(text)}")
    assert text in shown(f"| a | b |\n| --- | --- |\n| {markdown_text(text)} | 1 |")


def test_a_report_shows_odd_names_as_they_are(odd):
    texts = shown((odd.folder / "report.md").read_text())
    # Title, claim, note; caption of the comparison; label of the method in two tables.
    assert texts.count(ODD) >= 5
    assert f"it: {ODD}. " in texts
    cells = [text for text in texts if "|" in text]
    assert all(ODD in text for text in cells)


def test_the_page_shows_odd_names_as_they_are(odd):
    texts = Elements(write_page(odd.folder.parent, lambda folder: odd).read_text()).texts
    assert texts.count(ODD) >= 5  # contents, title, claim, table, note
    assert not any("&amp;" in text or "\\" in text for text in texts)


def test_figures_do_not_take_a_dollar_for_mathematics(odd):
    figure = drawn(odd.specs[0])
    label = figure.legends[0].get_texts()[0]
    assert label.get_text() == ODD
    assert not label.get_parse_math()
    assert not figure.axes[0].title.get_parse_math()
