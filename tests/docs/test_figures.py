"""The page of figures shows what the paper has, with the verdicts of the table of claims."""

import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from halfseen.paper.studies import study_named
from halfseen.report.report import OUTCOMES

DOCS = Path(__file__).resolve().parents[2] / "docs"
INDEX = json.loads((DOCS / "figures" / "figures.json").read_text("utf-8"))
PAPER_MAP = (DOCS / "paper-map.md").read_text("utf-8")


def imported(path):
    spec = importlib.util.spec_from_file_location("it", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_figure_on_the_site_keeps_the_colours_by_which_methods_differ(tmp_path):
    colours = [(200 - n // 2, 80 + n // 3, 50 + n // 4, 255) for n in range(200)]
    drawn = np.array([colours] * 10, dtype=np.uint8)
    Image.fromarray(drawn).save(tmp_path / "drawn.png")
    imported(DOCS / "make_figures.py")._shrink(tmp_path / "drawn.png", tmp_path / "small.png")
    found = np.asarray(Image.open(tmp_path / "small.png").convert("RGBA"))
    assert np.array_equal(found, drawn)


@pytest.fixture(scope="module")
def extension():
    return imported(DOCS / "_ext" / "paper_figures.py")


@pytest.fixture(scope="module")
def made_figures():
    return imported(DOCS / "make_figures.py")


def on_page(page):
    (studies,) = re.findall(r"<!-- figures: (.+) -->", (DOCS / page).read_text("utf-8"))
    return studies.split()


def test_every_study_with_a_figure_of_the_paper_is_on_the_page():
    studies = set(re.findall(r"^\| `(?:fig|tab):\w+` \| .+? \| `([\w-]+)` \|", PAPER_MAP, re.M))
    assert len(studies) == 7
    assert studies <= set(on_page("figures.md")) <= set(INDEX)


def test_every_figure_on_the_page_is_a_committed_picture_and_says_its_scale(tmp_path):
    for name, study in INDEX.items():
        assert study["command"].startswith(f"halfseen reproduce {name}")
        assert study["scale"] in ("paper", "smoke")
        whole = study_named(name)
        labels = {figure.label for figure in whole.figures(whole.no_results(tmp_path))}
        assert study["figures"]
        for figure in study["figures"]:
            assert figure["label"] in labels
            assert (DOCS / "figures" / figure["file"]).stat().st_size > 1000


def test_the_pictures_stay_small():
    assert sum(each.stat().st_size for each in (DOCS / "figures").iterdir()) < 3_000_000


def test_all_verdicts_of_the_table_of_claims_are_read(extension):
    claims = (DOCS / "claims.md").read_text("utf-8")
    judged = extension.verdicts(claims)
    rows = [row for _, _, found in judged.values() for row in found]
    assert len(rows) == len(re.findall(r"^\|.* \*\*[\w ]+\*\* \|", claims, re.M)) > 50
    assert {verdict for _, verdict in rows} <= set(OUTCOMES)


def test_the_first_screen_has_the_numbers_of_the_table():
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    row = re.search(r"^\| 40 % \|(.+)\|$", readme, re.M)[1].split("|")
    zeros, _, _, history, short, ours, _, uniform = (cell.split()[0] for cell in row)
    (bold,) = re.findall(r"\*\*(With 40 % .+?)\*\*", readme, re.DOTALL)
    shown = [*map(float, re.findall(r"[\d.]+\d", bold)[2:])]
    assert shown == [*map(float, (ours, zeros, history)), round(float(uniform))]
    assert f"rounds it has {short}." in " ".join(readme.split())
    assert 'start-after: "<!-- headline -->"' in (DOCS / "index.md").read_text("utf-8")


def test_the_headline_has_the_regrets_of_the_table(made_figures):
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    row = re.search(r"^\| 40 % \| (.+)$", readme, re.M)[1].split(" | ")
    columns = dict(zip(made_figures.COLUMNS, row, strict=True))
    point = SimpleNamespace(p=0.4)
    results = SimpleNamespace(
        points=lambda: [SimpleNamespace(p=0.8), point],
        mean=lambda _, method: SimpleNamespace(mean=float(columns[method].split()[0])),
        seeds=range(20),
    )
    written = made_figures.headline(results)
    assert f"<!-- headline -->\n\n{written}\n<!-- end of headline -->" in readme


def test_the_page_about_latent_ucb_has_the_regrets_of_the_table():
    readme, page = (
        path.read_text("utf-8") for path in (DOCS.parent / "README.md", DOCS / "latent-ucb.md")
    )
    table = [row.split("|")[2:-1] for row in re.findall(r"^\| \d0 % .+$", readme, re.M)]
    columns = [
        " / ".join(cell.split()[0] for cell in column) for column in zip(*table, strict=True)
    ]
    _, _, _, history, _, ours, oracle, _ = columns
    row = re.search(r"^\| synthetic, .+$", page, re.M)[0].split(" | ")
    assert [row[1], *row[3:]] == [ours, oracle, f"{history} |"]
