"""The map from the paper to the code is complete, true, and in step with the code's own labels."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from halfseen.paper.claims import BEYOND, OURS
from halfseen.paper.studies import ORDER, study_named
from shared import ROOT, shared_file

MAP = ROOT / "docs" / "paper-map.md"
LABEL = r"(?:eq|lemma|lem|thm|cor|def|ass|alg|fig|tab): ?[\w-]+"
MOST_WITHOUT_CODE = 15


class Row(NamedTuple):
    """One line of the table; `name` is empty where there is no code, `file` then is the reason."""

    label: str
    what: str
    name: str
    file: str

    def __str__(self):
        return f"{self.label} -> {self.name or 'no code'}"


def read_rows():
    rows = []
    for line in MAP.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            label, what, name, file = (cell.replace("`", "") for cell in cells)
            rows.append(Row(label, what, "" if name == "—" else name, file))
    return rows


ROWS = read_rows()
WITH_CODE = [row for row in ROWS if row.name]
WITHOUT_CODE = [row for row in ROWS if not row.name]


@cache
def definitions(file):
    """Return the text of each function, class, `Class.method` and constant of a module.

    A module of a study defines the study.
    """
    text = (ROOT / file).read_text(encoding="utf-8")
    found = {}
    if "/paper/studies/" in file:
        found[Path(file).stem.replace("_", "-")] = text
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = ast.get_source_segment(text, node)
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    found[f"{node.name}.{member.name}"] = ast.get_source_segment(text, member)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            # What is said about a constant stands somewhere around it.
            found |= {target.id: text for target in targets if isinstance(target, ast.Name)}
    return found


def labels_in(text):
    """Return the labels of all lines of the form `Paper: <label>`."""
    return [
        label
        for line in re.findall(r"^[\s#]*Paper: (.*)$", text, flags=re.MULTILINE)
        for label in re.findall(LABEL, line)
    ]


def sources():
    return sorted((ROOT / "src").rglob("*.py"))


def labels_in_code():
    return {
        (label, file.relative_to(ROOT).as_posix())
        for file in sources()
        for label in labels_in(file.read_text(encoding="utf-8"))
    }


def test_the_table_is_read():
    assert len(ROWS) > 100
    assert all(re.fullmatch(LABEL, row.label) for row in ROWS)
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize("row", WITH_CODE, ids=str)
def test_every_name_of_the_map_exists_and_carries_its_label(row):
    assert (ROOT / row.file).is_file(), f"{row.file} does not exist"
    defined = definitions(row.file)
    assert row.name in defined, f"{row.name} is not defined in {row.file}"
    if row.file.startswith("src/"):
        assert row.label in labels_in(defined[row.name]), f"no line 'Paper: {row.label}'"


def test_every_label_in_the_code_is_in_the_map_with_its_file():
    mapped = {(row.label, row.file) for row in WITH_CODE}
    assert labels_in_code() - mapped == set()


def test_every_line_that_cites_the_paper_names_a_label():
    for file in sources():
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip(" #").startswith("Paper:"):
                assert labels_in(line), f"{file.name}: {line.strip()!r} names no label"


def test_few_labels_lack_code_and_each_says_why():
    assert len(WITHOUT_CODE) <= MOST_WITHOUT_CODE
    assert all(row.file for row in WITHOUT_CODE)
    assert not {row.label for row in WITHOUT_CODE} & {row.label for row in WITH_CODE}


def test_the_map_has_exactly_the_labels_of_the_paper():
    sources = sorted(shared_file("paper").glob("*.txt"))
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    labels = {
        label for label in re.findall(r"\\label\{([^}]*)\}", text) if re.fullmatch(LABEL, label)
    }
    assert {row.label for row in ROWS} == labels


def test_what_has_no_label_is_where_the_map_says():
    rows = re.findall(r"^\| [^`|].* \| (`.+`) \| `(.+)` \|$", MAP.read_text("utf-8"), re.MULTILINE)
    assert len(rows) >= 7
    for names, file in rows:
        defined = {name.rpartition(".")[2] for name in definitions(file)}
        assert set(re.findall(r"`(\w+)`", names)) <= defined


def test_every_place_of_a_claim_is_a_label_of_the_paper(tmp_path):
    text = "\n".join(file.read_text("utf-8") for file in shared_file("paper").glob("*.txt"))
    labels = set(re.findall(r"\\label\{([^}]*)\}", text))
    for study in map(study_named, ORDER):
        for place in study.claims(study.no_results(tmp_path)):
            assert place in (OURS, BEYOND) or set(place.split(" and ")) <= labels
