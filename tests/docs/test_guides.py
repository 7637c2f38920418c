"""The pages of the site: every block of Python runs, in order, as it stands.

Blocks of other libraries are fenced with `{code-block} python` and do not run. Pages that other
tests walk through, command by command, are left out here.
"""

import re
from pathlib import Path

import pytest

from halfseen import HalfseenError, errors

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = {
    "deploy.md",  # changes the logging of the process
    "your-data.md",  # tests/docs/test_your_data.py
    "your-own-policy.md",  # tests/testing/test_page.py
}


NUMBER = r"[-+]?\d+\.?\d*"


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


PAGES = {page.name: blocks(page) for page in sorted(DOCS.glob("*.md"))}


def walk(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    for block in PAGES[name]:
        exec(compile(block, name, "exec"), names)
    return names


@pytest.mark.parametrize("name", [name for name in PAGES if PAGES[name] and name not in ELSEWHERE])
def test_the_page_runs(name, tmp_path, monkeypatch):
    walk(name, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "n_lines"), [("start.md", 13), ("evaluate.md", 8), ("imputer.md", 4)]
)
def test_a_page_prints_what_it_shows(name, n_lines, tmp_path, monkeypatch, capsys):
    walk(name, tmp_path, monkeypatch)
    (shown,) = re.findall(r"```text\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL)
    ours, theirs = capsys.readouterr().out.splitlines(), shown.splitlines()
    assert len(theirs) == n_lines
    for mine, line in zip(ours, theirs, strict=True):
        assert re.split(NUMBER, mine.strip()) == re.split(NUMBER, line.strip())
        found, expected = (map(float, re.findall(NUMBER, each)) for each in (mine, line))
        assert list(found) == pytest.approx(list(expected), rel=0.02, abs=1e-4)


def test_guides_from_other_libraries_show_both_sides():
    for name in ("from-personalizer.md", "from-vowpal-wabbit.md", "from-mabwiser.md"):
        theirs = (DOCS / name).read_text("utf-8").count("```{code-block} python")
        assert theirs == len(PAGES[name]) == 1


def test_pages_that_errors_name_exist():
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    for page in {each.page for each in kinds if issubclass(each, HalfseenError) and each.page}:
        file, _, anchor = page.partition("#")
        text = (DOCS.parent / file).read_text("utf-8")
        assert not anchor or f"## {anchor.replace('-', ' ')}" in text.lower(), page
