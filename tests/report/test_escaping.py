"""A text of a study is shown as it is in every format."""

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from halfseen.paper.claims import lower
from halfseen.report.figures import Figure, drawn, regret_over_p
from halfseen.report.numbers import compare
from halfseen.report.report import markdown_text, write_page
from made_results import setting, small_study, wobble, write_results

pytestmark = pytest.mark.usefixtures("unrendered")

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


class Texts(HTMLParser):
    """All texts of a page, without its scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.raw = [""], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.raw = tag in ("script", "style")
        if tag not in ("code", "strong", "em", "b"):
            self.texts.append("")

    def handle_endtag(self, tag):
        self.raw = False
        if tag not in ("code", "strong", "em", "b"):
            self.texts.append("")

    def handle_data(self, data):
        if not self.raw:
            self.texts[-1] += data


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
    return Texts(MarkdownIt("gfm-like", {"linkify": False}).render(markdown)).texts


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
    texts = Texts(write_page(odd.folder.parent, lambda folder: odd).read_text()).texts
    assert texts.count(ODD) >= 5  # contents, title, claim, table, note
    assert not any("&amp;" in text or "\\" in text for text in texts)


def test_figures_do_not_take_a_dollar_for_mathematics(odd):
    figure = drawn(odd.specs[0])
    label = figure.legends[0].get_texts()[0]
    assert label.get_text() == ODD
    assert not label.get_parse_math()
    assert not figure.axes[0].title.get_parse_math()
