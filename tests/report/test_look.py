"""One method, one look; figures repeat byte by byte."""

import itertools
import subprocess
import sys
from dataclasses import replace

import pytest

from halfseen.paper.studies import ORDER, study_named
from halfseen.report.look import house_style, look_of
from halfseen.simulation.methods import MEASURE, METHODS
from made_results import write_results


def test_every_policy_of_a_study_has_a_label_and_a_colour_of_its_own():
    keys = {*METHODS}
    for setting in (each for name in ORDER for each in study_named(name).settings.values()):
        keys |= {key for key in setting.keys if setting.method(key).policy != MEASURE}
    looks = {key: look_of(key) for key in keys}
    assert [key for key, look in looks.items() if look.label == key and key != "uniform"] == []
    assert len({look.label for look in looks.values()}) == len(looks)
    assert len({look.color.lower() for look in looks.values()}) == len(looks)


def distance(one, other):
    parts = [[int(look.color[at : at + 2], 16) / 255 for at in (1, 3, 5)] for look in (one, other)]
    return sum((a - b) ** 2 for a, b in zip(*parts, strict=True)) ** 0.5


@pytest.mark.parametrize("name", ORDER)
def test_methods_of_a_figure_can_be_told_apart(name, tmp_path):
    study = study_named(name)
    results = write_results(tmp_path, replace(study, seeds=[0, 1, 2]), lambda key: 1.0)
    for figure in study.figures(results):
        for panel in figure.panels:
            methods = () if panel is None else panel.methods
            for one, other in itertools.combinations(map(look_of, methods), 2):
                shape = (one.linestyle, one.marker) != (other.linestyle, other.marker)
                assert shape or distance(one, other) > 0.25, (figure.label, one, other)


def test_an_unknown_method_keeps_its_look_in_every_process():
    code = "from halfseen.report.look import look_of; print(look_of('my own'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(look_of("my own"))
    assert look_of("my own").label == "my own"
    assert look_of("my own").color != look_of("another").color


def test_the_style_stays_inside():
    import matplotlib as mpl

    mpl.rcParams["font.size"] = 17.0
    with house_style():
        assert mpl.rcParams["font.size"] < 17
        sizes = [key for key in mpl.rcParams if key.endswith(("labelsize", "fontsize"))]
        small = [key for key in sizes if isinstance(mpl.rcParams[key], float | int)]
        assert all(mpl.rcParams[key] >= 8 for key in small)
        assert mpl.rcParams["savefig.dpi"] >= 150
    assert mpl.rcParams["font.size"] == 17.0
    mpl.rcdefaults()
