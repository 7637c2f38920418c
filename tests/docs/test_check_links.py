"""The check of links finds what is broken, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "docs" / "check_links.py"
SPEC = importlib.util.spec_from_file_location("check_links", FILE)
check_links = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_links)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text('<h1 id="top"></h1><a href="guide/a.html#one">a</a>')
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "a.html").write_text('<p id="one"></p><a href="../#top">up</a>')
    return tmp_path


def added(site, html):
    (site / "b.html").write_text(html)
    return check_links.problems(site)


def test_links_to_files_and_anchors_are_fine(site):
    assert check_links.problems(site) == []
    assert added(site, '<a href="https://www.python.org">elsewhere</a><a href="#">here</a>') == []


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="c.html">c</a>', "b.html: no file c.html"),
        ('<a href="guide/a.html#two">a</a>', "b.html: no anchor guide/a.html#two"),
        ('<img src="c.png">', "b.html: no file c.png"),
        (
            '<script src="https://cdn.example/a.js"></script>',
            "b.html: needs https://cdn.example/a.js from the network",
        ),
    ],
)
def test_what_is_broken_is_named(site, html, found):
    assert added(site, html) == [found]


def test_a_style_that_needs_the_network_is_found(site):
    (site / "a.css").write_text("@font-face { src: url('https://fonts.example/a.woff2') }")
    assert check_links.problems(site) == ["a.css: needs a style or font from the network"]
