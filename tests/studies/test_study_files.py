"""Studies of one's own: what a file may say, and how each mistake in it is told."""

import json
import tomllib
from copy import deepcopy
from importlib.resources import files
from random import Random
from typing import get_args

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.errors import StudyError
from halfseen.simulation.methods import METHODS
from halfseen.studies import names
from halfseen.studies.claims import AnyClaim
from halfseen.studies.fields import parse_seeds
from halfseen.studies.figures import AnyPanel, Comparison, Figure, Line, Part
from halfseen.studies.reading import read_study, study_from

GOOD = """
name = "mine"
seeds = "0:2"
points = 5
observe_prob = [0.8, 0.4]
methods = ["tofu", "zf-oful"]

[world]
kind = "low-rank"
dim = 6
rank = 1
n_arms = 3
horizon = 40
"""
CSV = "round,mean,a,b\n0,0.5,1,\n0,0.1,,2\n1,0.3,1,1\n1,0.9,2,\n"


def changed(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def with_methods(text):
    return changed('methods = ["tofu", "zf-oful"]\n', "") + text


TABLE_WORLD = changed('kind = "low-rank"', 'kind = "table"\npath = "log.csv"').split("dim =")[0]
FIGURE = GOOD + '[[figures]]\nlabel = "one"\ncaption = "c"\n'

# A file, and how the message about it goes on after the name of the file.
MISTAKES = {
    "no name": (changed('name = "mine"', ""), "name must be given"),
    "name of another type": (changed('"mine"', "3"), "name must be letters, digits"),
    "name that is no folder": (
        changed('"mine"', '"../up"'),
        "name must be letters, digits",
    ),
    "name that is the folder above": (changed('"mine"', '".."'), "name must be letters"),
    "title of another type": ("title = 1\n" + GOOD, "title must be a text, got 1"),
    "unknown key": (
        "sedes = 3\n" + GOOD,
        "sedes is not a key here: did you mean 'seeds'?",
    ),
    "unknown key of a setting": (
        GOOD + "[settings.one]\npoints = 3",
        "settings.one.points is not a key here; there are 'world', 'observe_prob', 'methods'",
    ),
    "unknown key of smoke": (
        GOOD + "[smoke]\nname = 'x'",
        "smoke.name is not a key here; there are 'seeds', 'points'",
    ),
    "settings not a table": (
        "settings = 3\n" + GOOD,
        "settings must be a table, got 3",
    ),
    "settings empty": ("settings = {}\n" + GOOD, "settings must have at least one entry, got {}"),
    "a setting not a table": ("settings = {a = 1}\n" + GOOD, "settings.a must be a table, got 1"),
    "no world": (GOOD.split("[world]")[0], "world.kind must be one of ['bilinear', 'digits'"),
    "world not a table": (
        "world = 3\n" + GOOD.split("[world]")[0],
        "world must be a table, got 3",
    ),
    "unknown kind of world": (
        changed('"low-rank"', '"flat"'),
        "world.kind must be one of ['bilinear', 'digits', 'disjoint-arms'",
    ),
    "kind of another type": (changed('"low-rank"', "[1]"), "world.kind must be one of"),
    "unknown setting of the world": (
        GOOD + "ranks = 2",
        "world.ranks is not a setting of LowRankWorld, which has ['dim', 'rank', 'n_arms'",
    ),
    "unknown setting of a setting's world": (
        GOOD + "[settings.one.world]\nranks = 2",
        "settings.one.world.ranks is not a setting of LowRankWorld",
    ),
    "world's setting out of range": (
        changed("rank = 1", "rank = 7"),
        "world.rank must be an integer in [1, 6], got 7",
    ),
    "world's setting of another type": (
        changed("horizon = 40", 'horizon = "long"'),
        "world.horizon must be an integer in [1, 1e+15], got 'long'",
    ),
    "probability out of range": (
        changed("[0.8, 0.4]", "[0.8, 1.4]"),
        "observe_prob must be a probability in (0, 1] or a list of different ones, got [0.8, 1.4]",
    ),
    "probability out of range in a setting": (
        GOOD + "[settings.one]\nobserve_prob = 0",
        "settings.one.observe_prob must be a probability in (0, 1] or a list",
    ),
    "probability repeated": (
        changed("[0.8, 0.4]", "[0.8, 0.8]"),
        "observe_prob must be a probability in (0, 1] or a list of different ones, got [0.8, 0.8]",
    ),
    "probability a text": (
        changed("[0.8, 0.4]", '"most"'),
        "observe_prob must be a probability in (0, 1] or a list of different ones, got 'most'",
    ),
    "seeds no seeds": (
        changed('"0:2"', '"first two"'),
        'seeds must be different integers from 0 on, at most a million, such as "0:20" or [3, 5], '
        "got 'first two'",
    ),
    "seeds without end": (changed('"0:2"', '"3:"'), "seeds must be different integers"),
    "seeds that are none": (changed('"0:2"', '"5:5"'), "seeds must be different integers"),
    "seeds negative": (changed('"0:2"', "[-1]"), "seeds must be different integers"),
    "seeds repeated": (changed('"0:2"', "[3, 3]"), "seeds must be different integers"),
    "seeds not whole": (changed('"0:2"', "1.5"), "seeds must be different integers"),
    "too few points": (
        changed("points = 5", "points = 1"),
        "points must be an integer in [2, inf), got 1",
    ),
    "notes not texts": ("notes = [1]\n" + GOOD, "notes must be a list of texts, got [1]"),
    "no methods": (
        with_methods(""),
        "methods must name at least one for settings.default, such as [methods.tofu], got none",
    ),
    "methods not tables": (
        changed('["tofu", "zf-oful"]', "7"),
        "methods must be a table, got 7",
    ),
    "a method not a table": (
        with_methods("[methods]\ntofu = 3"),
        "methods.tofu must be a table, got 3",
    ),
    "unknown key of a method": (
        changed('"tofu"', '"tofoo"'),
        "methods.tofoo.method must be one of ['full-oful'",
    ),
    "unknown base of a method": (
        with_methods('[methods.mine]\nmethod = "tofoo"'),
        "methods.mine.method must be one of ['full-oful'",
    ),
    "base of another type": (
        with_methods("[methods.mine]\nmethod = [1]"),
        "methods.mine.method must be one of",
    ),
    "unknown policy": (
        with_methods('[methods.mine]\npolicy = "Clever"'),
        "methods.mine.policy: no policy is called 'Clever', there are ['AmbientOful'",
    ),
    "policy of another type": (
        with_methods("[methods.mine]\npolicy = 1"),
        "methods.mine.policy must be a string, got 1",
    ),
    "unknown setting of a method": (
        with_methods("[methods.tofu]\nburnin = 3"),
        "methods.tofu.burnin is not a setting of TofuPov, which has ['arm_bound'",
    ),
    "method's setting out of range": (
        with_methods("[methods.tofu]\nburn_in = 0"),
        "methods.tofu.burn_in must be an integer in [1, ",
    ),
    "method's setting of another type": (
        with_methods('[methods.tofu]\nfailure_prob = "much"'),
        "methods.tofu.failure_prob must be in (0, 1), got 'much'",
    ),
    "wrong view": (
        with_methods('[methods.tofu]\nview = "half"'),
        "methods.tofu.view must be one of 'masked', 'full', got 'half'",
    ),
    "skip without a reason": (
        with_methods('[methods.tofu]\nskip = ""'),
        "methods.tofu.skip must be true (leave the method out), false, or a text that says why its "
        "cells are not run, got ''",
    ),
    "unknown measure": (
        with_methods('[methods.m]\npolicy = "measure"\nmeasure = "depth"'),
        "methods.m.measure must be one of",
    ),
    "a method that needs what the world does not know": (
        TABLE_WORLD,
        "methods.tofu.rank must be given: TofuPov needs it and this world does",
    ),
    "table that is not there": (
        TABLE_WORLD.replace("log.csv", "gone.csv"),
        "world.path '",
    ),
    "table without a path": (
        TABLE_WORLD.replace('path = "log.csv"', ""),
        "world.path must name a .csv, a .npz or a folder, got None",
    ),
    "table without such a column": (
        TABLE_WORLD + 'features = ["c"]',
        "world: ",
    ),
    "more rounds than the table has": (
        TABLE_WORLD + "horizon = 99",
        "world.horizon must be in [1, 2], as many rounds as are recorded, got 99",
    ),
    "figures not a list": ("figures = 3\n" + GOOD, "figures must be a list of tables, got 3"),
    "figures not tables": ("figures = [3]\n" + GOOD, "figures[0] must be a table, got 3"),
    "claims not a list": ('claims = "all"\n' + GOOD, "claims must be a list of tables, got 'all'"),
    "unknown kind of panel": (
        FIGURE + '[[figures.panels]]\nkind = "pie"',
        "figures[0].panels[0].kind must be one of 'rounds', 'sweep'",
    ),
    "unknown kind of claim": (
        GOOD + '[[claims]]\ntext = "best"\nkind = "surely"',
        "claims[0].kind must be one of 'lower'",
    ),
    "a date": (
        GOOD + "rank_at = 2020-01-01",
        "world.rank_at must be a text, a finite number, true or false, got datetime.date(2020, 1",
    ),
    "not a number": (
        GOOD + "noise_scale = nan",
        "world.noise_scale must be a text, a finite number, true or false, got nan",
    ),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(CSV)
    return tmp_path


def told(here, file, *options):
    """Return what `halfseen run` says about a file that it must refuse."""
    before = set(here.rglob("*"))
    result = CliRunner().invoke(app, ["run", file, *options], env={"COLUMNS": "80"})
    assert result.exit_code == 2, result.output
    assert set(here.rglob("*")) == before  # nothing is written
    (line,) = result.output.splitlines()
    return line


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_with_the_file_the_key_the_range_and_the_value(here, mistake):
    text, message = MISTAKES[mistake]
    (here / "study.toml").write_text(text)
    assert told(here, "study.toml").startswith(f"error: study.toml: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('seeds = "x"', "smoke.seeds must be different integers"),
        ("points = 0", "smoke.points must be an integer in [2, inf), got 0"),
        (
            "observe_prob = 2",
            "smoke.observe_prob must be a probability in (0, 1] or a list of different ones, got 2",
        ),
        (
            'settings = ["two"]',
            "smoke.settings must be one of 'default', got 'two'",
        ),
        ("settings = []", "smoke.settings must be a text or a list of them, got []"),
        ("settings = [[1]]", "smoke.settings must be a text or a list of them, got [[1]]"),
        ("methods = 3", "smoke.methods must be a table, got 3"),
        ("world = 3", "smoke.world must be a table, got 3"),
        ("world = { horizon = 0 }", "smoke.world.horizon must be an integer in [1, 1e+15], got 0"),
    ],
)
def test_a_mistake_in_the_small_form_is_reported_with_its_key(here, line, message):
    (here / "study.toml").write_text(GOOD + "[smoke]\n" + line)
    assert told(here, "study.toml", "--scale", "smoke").startswith(f"error: study.toml: {message}")


MANY = """
nam = "mine"
seeds = "few"
methods = { tofu = { view = 3 } }
world = { kind = "low-rank", rank = 70, dims = 4, horizon = 0 }
observe_prob = 2

[settings.main]
world = { dim = 0 }

[settings.other]
tuning = { seeds = 5, methods = { tofu = { rank = 3 } } }

[[figures]]
label = "one"
panels = [{ kind = "sweep", stting = "a", p = 0.3 }, { kind = "pies" }]

[[claims]]
text = "so"
kind = "regrets"

[[claims]]
kind = "lower"
metod = "tofu"
p = 3
"""


def test_all_mistakes_of_a_file_are_reported_at_once_each_with_its_place(here):
    (here / "study.toml").write_text(MANY)
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    first, *lines = result.output.splitlines()
    assert first == f"error: study.toml has {len(lines)} mistakes:"
    assert [line.split()[0] for line in lines] == [
        "nam",
        "name",
        "seeds",
        "observe_prob",
        "settings.other.tuning.methods.tofu.rank",
        "figures[0].panels[0].stting",
        "figures[0].panels[1].kind",
        "claims[0].kind",
        "claims[1].metod",
        "claims[1].text",
        "claims[1].p",
        "claims[1].method",
        "claims[1].than",
        "methods.tofu.view",
        "world.dims",
        "settings.main.world.dim",
        "world.horizon",
        "world.rank",
    ]
    near = [line.partition("did you mean ")[2] for line in lines if "did you mean" in line]
    assert near == ["'name'?", "'setting'?", "'regret'?", "'method'?", "'dim'?"]
    for text in ("pydantic", "Traceback", "Input should", "validation error"):
        assert text not in result.output


def test_all_mistakes_in_worlds_and_methods_are_reported_at_once(here):
    kept = [line for line in MANY.splitlines() if not line.startswith(("nam", "seeds", "observe"))]
    text = "\n".join(kept).partition("[settings.other]")[0]
    (here / "study.toml").write_text('name = "mine"\n' + text)
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == [
        "methods.tofu.view",
        "world.dims",
        "settings.main.world.dim",
        "world.horizon",
        "world.rank",
    ]


EVERY_KIND = """
name = "mine"
seeds = "0:2"
points = 1
observe_prob = [0.8, 0.4]
sedes = 3

[world]
kind = "low-rank"
dim = 6
rank = 1
n_arms = 3
horizon = 40

[methods]
tofu = { burnin = 3, ridge = -1, rank = 2 }
zf-oful = { view = "half" }
zf-greedy = { noise = 2020-01-01 }
mine = { policy = "Clever" }
two = { policy = "TwoPhase", split = "balanced", rank = 9 }
uniform = {}

[settings.plain]
[settings.wide]
world = { dimm = 60, noise_scale = -1 }
[settings.short]
seeds = "x"
methods = { uniform = { dim = "many" } }
[settings.theirs]
study = "synthetic"
methods = ["tofu", "toffu"]

[tuning]
seeds = "1:3"
methods = { zf-oful = { ridge = [] }, greedy = { ridge = [1.0] } }

[smoke]
settings = ["narrow"]

[[figures]]
label = "one"
methods = ["tofu", "tofoo"]
panels = [
    { kind = "sweep", setting = "plane", log = 3 },
    { kind = "split", total = "a", parts = [] },
]

[[figures]]
label = "fig:one"
panels = [{ kind = "differences", comparison = "none" }]

[[claims]]
text = "so"
kind = "lower"
method = "tofu"
than = "zf-ofull"
setting = ["plain", "plian"]

[[claims]]
text = "so"
kind = "regret"
method = "uniform"

[[comparisons]]
name = "some"
methods = ["uniform", "tofu-fh"]
against = "two"
p = 3
"""


def test_a_mistake_of_every_kind_is_reported_in_one_go(here):
    """Of the schema, of worlds, methods, policies and tuning, and of names in claims and panels."""
    (here / "study.toml").write_text(EVERY_KIND)
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    first, *lines = result.output.splitlines()
    assert first == f"error: study.toml has {len(lines)} mistakes:"
    assert {line.split()[0].removesuffix(":") for line in lines} == {
        "sedes",
        "points",
        "methods.zf-greedy.noise",
        "settings.short.seeds",
        "tuning.methods.zf-oful.ridge",
        "figures[0].panels[0].log",
        "figures[0].panels[1].parts",
        "claims[1].at_most",
        "comparisons[0].p",
        "methods.tofu.burnin",
        "methods.tofu.ridge",
        "methods.zf-oful.view",
        "methods.mine.policy",
        "methods.two.rank",
        "settings.wide.world.dimm",
        "settings.wide.world.noise_scale",
        "settings.short.methods.uniform.dim",
        "settings.theirs.methods",
        "tuning.methods.greedy",
        "figures[0].methods[1]",
        "figures[0].panels[0].setting",
        "figures[0].panels[1].total",
        "figures[1].label",
        "figures[1].panels[0].comparison",
        "claims[0].than",
        "claims[0].setting[1]",
        "comparisons[0].methods[1]",
        "smoke.settings",
    }
    assert "claims[0].than must be one of 'tofu', 'zf-oful'" in result.output
    assert "got 'zf-ofull': did you mean 'zf-oful'?" in result.output


def test_the_mistakes_that_are_left_after_a_correction_were_reported_before(here):
    """Mending one mistake after the other never brings a new one to light."""
    lines = EVERY_KIND.splitlines()
    mended = {
        "points = 1": "points = 5",
        "sedes = 3": "",
        'seeds = "x"': 'seeds = "5:6"',
        "world = { dimm = 60, noise_scale = -1 }": "",
        'methods = ["tofu", "toffu"]': 'methods = ["tofu"]',
    }
    known = None
    for line in [None, *mended]:
        lines = [mended[line] if each == line else each for each in lines]
        with pytest.raises(StudyError) as refused:
            study_from(tomllib.loads("\n".join(lines)), check=True)
        found = {each.split()[0] for each in str(refused.value).splitlines()[1:]}
        assert known is None or found < known
        known = found


def test_for_every_key_of_a_claim_or_panel_it_is_known_whether_its_value_is_a_name():
    """Whoever adds a key to a claim, panel or comparison says here what it is."""
    tables = [*get_args(AnyClaim), *get_args(AnyPanel), Figure, Line, Part, Comparison]
    keys = {key for table in tables for key in table.model_fields}
    assert keys - names._NAMES.keys() == {
        *("kind", "text", "title", "label", "caption", "name", "panels", "lines", "parts", "role"),
        *("p", "value", "x", "to", "xlabel", "ylabel", "xscale", "yscale", "over", "source"),
        *("at_least", "at_most", "at_end", "or_equal", "near", "tolerance", "relation", "share"),
        *("bound", "bounds", "within", "slopes", "powers", "columns", "log", "relative"),
        *("margin", "average", "choose_seeds", "expected"),
    }
    assert names._NAMES.keys() <= keys


def test_a_stored_part_may_name_what_only_the_whole_has(here):
    claim = {"text": "so", "kind": "lower", "method": "tofu", "than": "gone"}
    plain = tomllib.loads(GOOD) | {"claims": [claim]}
    assert study_from(plain).claims[0].than == "gone"
    with pytest.raises(
        StudyError, match=r"claims\[0\]\.than must be one of 'tofu', 'zf-oful', got"
    ):
        study_from(plain, check=True)


def test_an_empty_file_lacks_a_name_a_world_and_methods(here):
    (here / "study.toml").write_text("")
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == [
        "name",
        "methods",
        "world.kind",
    ]


def test_a_wrong_claim_does_not_hide_a_wrong_world(here):
    text = changed("rank = 1", "rank = 7").replace('"0:2"', '"few"')
    (here / "study.toml").write_text(text + '[[claims]]\ntext = "so"\nkind = "surely"')
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == [
        "seeds",
        "claims[0].kind",
        "world.rank",
    ]


JUNK = [3, -1.5, "x", "", True, None, [], {}, [3], {"x": 3}, [[]], float("nan"), {"kind": "lower"}]


def junk_in(random, plain):
    """Replace one value somewhere in plain data, or add one."""
    table, key = plain, None
    while True:
        if isinstance(table, dict) and table:
            key = random.choice(list(table))
        elif isinstance(table, list) and table:
            key = random.randrange(len(table))
        else:
            return
        if random.random() < 0.3 or not isinstance(table[key], dict | list) or not table[key]:
            break
        table = table[key]
    if isinstance(table, dict) and random.random() < 0.2:
        key = "unknown"
    table[key] = deepcopy(random.choice(JUNK))


@pytest.mark.parametrize("name", ["digits", "rank-selection", "two-phase", "synthetic"])
def test_every_file_is_read_or_refused_with_a_named_error(name):
    random = Random(7)
    text = (files("halfseen.studies") / "files" / f"{name}.toml").read_text("utf-8")
    messages = []
    for _ in range(60):
        plain = tomllib.loads(text)
        for _ in range(random.randint(1, 4)):
            junk_in(random, plain)
        try:
            study_from(plain, check=random.random() < 0.2)
        except StudyError as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert "Input should" not in "".join(messages)


def test_all_policies_that_cannot_be_built_are_reported_at_once(here):
    (here / "study.toml").write_text(
        with_methods("[methods]\ntofu = {burnin = 3}\nzf-oful = {ridge = -1}\nuniform = {}")
    )
    result = CliRunner().invoke(app, ["run", "study.toml"], env={"COLUMNS": "80"})
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == [
        "methods.tofu.burnin",
        "methods.zf-oful.ridge",
    ]
    assert "did you mean 'burn_in'?" in result.output


def test_a_file_that_is_no_toml_is_reported_with_the_place(here):
    (here / "study.toml").write_text(GOOD + "dim = = 3")
    line = told(here, "study.toml")
    assert line.startswith("error: study.toml is not valid TOML: ")
    assert "(at line 14, column 7)" in line


def test_a_file_that_is_no_json_is_reported_with_the_place(here):
    (here / "study.json").write_text('{"name": }')
    line = told(here, "study.json")
    assert line.startswith("error: study.json is not valid JSON: Expecting value: line 1 column 10")


@pytest.mark.parametrize("plain", ["[1, 2]", '"study"', "3", "null"])
def test_json_that_is_no_table_is_refused(here, plain):
    (here / "study.json").write_text(plain)
    assert told(here, "study.json").startswith("error: study.json: a study must be a table, got ")


def test_a_file_that_is_not_there_is_reported(here):
    assert told(here, "gone.toml").startswith("error: gone.toml cannot be read: ")


def test_a_folder_is_no_study(here):
    (here / "folder").mkdir()
    assert told(here, "folder").startswith("error: folder cannot be read: ")


def test_a_file_that_is_not_utf_8_is_reported(here):
    (here / "study.toml").write_bytes(GOOD.replace("mine", "mïne").encode("latin-1"))
    assert told(here, "study.toml").startswith("error: study.toml cannot be read: 'utf-8' codec")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "few"], "seeds must be different integers from 0 on"),
        (["--p", "half"], "--p must be numbers separated by commas, such as .2,.3, got 'half'"),
        (["--p", ".3"], "p must be among those of mine, [0.8, 0.4], got 0.3"),
        (["--p", ","], "nothing is left of mine"),
        (["--methods", "tofoo"], "methods must be among those of mine, ['tofu', 'zf-oful'], got"),
        (["--methods", ""], "nothing is left of mine"),
        (["--scale", "large"], "scale must be one of 'paper', 'smoke', got 'large'"),
    ],
)
def test_options_that_do_not_fit_the_study_are_reported(here, options, message):
    (here / "study.toml").write_text(GOOD)
    assert told(here, "study.toml", *options).startswith(f"error: {message}")


def test_a_good_file_is_the_study_that_it_describes(here):
    (here / "study.toml").write_text(GOOD)
    study = read_study(here / "study.toml")
    assert (study.name, study.title, study.seeds, study.points) == ("mine", "mine", (0, 1), 5)
    (setting,) = study.settings.values()
    assert setting.observe_probs == (0.8, 0.4)
    assert setting.methods == {key: METHODS[key] for key in ("tofu", "zf-oful")}
    assert len(study.cells()) == 2 * 2 * 2
    assert study_from(json.loads(json.dumps(study.to_dict()))) == study


def test_a_mark_at_the_beginning_of_a_file_does_no_harm(here):
    (here / "study.toml").write_text(GOOD, encoding="utf-8-sig")
    assert read_study(here / "study.toml").name == "mine"


def test_the_same_study_as_json_is_equal(here):
    (here / "study.toml").write_text(GOOD)
    study = read_study(here / "study.toml")
    (here / "study.json").write_text(json.dumps(study.to_dict()))
    assert read_study(here / "study.json") == study


def test_what_is_left_out_has_a_default():
    study = study_from({"name": "short", "world": {"kind": "low-rank"}, "methods": ["uniform"]})
    assert study.seeds == tuple(range(10))
    assert study.points == 100
    assert study.observe_probs == (0.3,)
    assert list(study.settings) == ["default"]


def test_a_setting_changes_what_all_share():
    study = study_from(
        {
            "name": "two",
            "world": {"kind": "low-rank", "dim": 10, "rank": 2},
            "observe_prob": [0.5, 0.2],
            "methods": {"tofu": {"burn_in": 9}, "uniform": {}},
            "settings": {
                "plain": {},
                "other": {
                    "world": {"dim": 20},
                    "observe_prob": 0.9,
                    "methods": {"tofu": {"rank": 4}, "uniform": {"skip": True}, "zf-oful": {}},
                },
            },
        }
    )
    plain, other = study.settings["plain"], study.settings["other"]
    assert plain.world == {"kind": "low-rank", "dim": 10, "rank": 2}
    assert other.world == {"kind": "low-rank", "dim": 20, "rank": 2}
    assert (plain.observe_probs, other.observe_probs) == ((0.5, 0.2), (0.9,))
    assert list(other.methods) == ["tofu", "zf-oful"]
    assert other.methods["tofu"].settings == {
        "burn_in": 9,
        "rank": 4,
        "replay": "burn-in-once",
    }


def test_another_kind_of_world_takes_nothing_over():
    study = study_from(
        {
            "name": "two",
            "world": {"kind": "low-rank", "dim": 10},
            "methods": ["uniform"],
            "settings": {"hard": {"world": {"kind": "hard-instance", "n_arms": 4}}},
        }
    )
    assert study.settings["hard"].world == {"kind": "hard-instance", "n_arms": 4}


def test_a_path_in_a_file_is_relative_to_the_file(here, monkeypatch):
    folder = here / "deep"
    folder.mkdir()
    (here / "log.csv").rename(folder / "log.csv")
    (folder / "study.toml").write_text(TABLE_WORLD.replace('"tofu", ', ""))
    study = read_study(folder / "study.toml")
    assert study.settings["default"].world["path"] == str((folder / "log.csv").resolve())
    study.check()


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        ("0:3", (0, 1, 2)),
        (":2", (0, 1)),
        ("100:102", (100, 101)),
        ("3, 5,7", (3, 5, 7)),
        ("4", (4,)),
        (4, (4,)),
        ([7, 8], (7, 8)),
    ],
)
def test_seeds_are_written_as_a_range_a_list_or_a_number(given, seeds):
    assert parse_seeds(given) == seeds


@pytest.mark.parametrize("given", ["", ":", "2:1", "1,,2", "a", True, None, 1.0, [True], {}, "-1"])
def test_anything_else_is_no_seeds(given):
    with pytest.raises(StudyError, match="seeds must be different integers from 0 on"):
        parse_seeds(given)
