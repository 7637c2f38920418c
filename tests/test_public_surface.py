"""The public names are few, listed, light to import, and the README's example runs."""

import importlib
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import halfseen
from halfseen.policies.abilities import Ability

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("narwhals", "pandas", "matplotlib", "sklearn", "numba", "scipy", "joblib", "rich", "typer")

STUB = Path(halfseen.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
HOME = {name: home for home, name in re.findall(r"from \.(\S*) import (\w+)", STUB)}


def loaded_after(statement):
    """Return the top-level packages that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", HOME)
def test_every_public_name_resolves_to_the_object_of_its_module(name):
    home, value = HOME[name], getattr(halfseen, name)
    if home:
        module = importlib.import_module(f"halfseen.{home}")
        assert value is getattr(module, name)
        assert value.__module__ == module.__name__
    else:
        assert value is importlib.import_module(f"halfseen.{name}")
    assert value.__doc__


USER = """
import halfseen
from halfseen import Choice, Note, Policy, Slate, World

world: World = halfseen.LowRankWorld(dim=6, rank=2)


@halfseen.register_policy
class MostSeen(Policy):
    bonus: float = halfseen.params.real(default=1.0, low=0.0)

    def setup(self) -> None: ...
    def decide(self, slate: Slate) -> Choice:
        return Choice.best(self.bonus * slate.mask.sum(axis=1))
    def update(self, note: Note, reward: float) -> None: ...
    def state(self) -> dict[str, float]:
        return {}
    def restore(self, state: dict[str, float]) -> None: ...


MostSeen(dim=6, bonus=2.0)
halfseen.TofuPov(dim=6, rank=2, observe_prob=0.7).choose([[1.0] * 6]).arm
halfseen.TofuPov(dim=6, rnk=2, observe_prob=0.7)  # "rnk" for "TofuPov"
MostSeen(dim=6, bonsu=2.0)  # "bonsu" for "MostSeen"
agent = halfseen.Agent(policy=halfseen.LatentUcb(), id="sku")
decision = agent.choose([{"sku": "hat", "price": 1.0}])
item: str | int = decision.item
agent.learn([decision, decision.id], [1.0, 2.0])
width: float = agent.score([{"price": 1.0}])[0].width
number: int = decision.id  # expression has type "str"
agent.learn(decision, "1.0 €")  # incompatible type "str"
halfseen.Agent(ignored=["url"])  # "ignored" for "Agent"
halfseen.LatentUbc()  # no attribute "LatentUbc"
"""


def test_a_type_checker_knows_the_public_names_and_their_arguments(tmp_path, cache):
    file = tmp_path / "user.py"
    file.write_text(USER)
    options = ["--strict", "--config-file=", f"--cache-dir={cache.mkdir('mypy')}"]
    command = [sys.executable, "-m", "mypy", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    expected = [line.split("# ")[1] for line in USER.splitlines() if "# " in line]
    assert len(errors) == len(expected), done.stdout
    assert all(part in error for part, error in zip(expected, errors, strict=True)), done.stdout


def test_dir_lists_all_public_names():
    assert set(HOME) == set(halfseen.__all__) == set(dir(halfseen))


def test_importing_the_package_loads_little_but_the_standard_library():
    loaded = loaded_after("import halfseen") - loaded_after("pass")
    assert loaded - sys.stdlib_module_names == {"halfseen", "lazy_loader"}


PLOTS = {"pandas", "matplotlib", "sklearn", "joblib", "rich", "typer"}


@pytest.mark.parametrize(
    ("statement", "not_loaded"),
    [
        ("from halfseen import Slate, Decision, HalfseenError", set(HEAVY)),
        ("from halfseen import Imputed, Oracle; Oracle(basis=[[1.0]])", {*PLOTS, "narwhals"}),
        ("import halfseen.worlds, halfseen.testing", {*PLOTS, "pytest"}),
        ("import halfseen.report.look", PLOTS),
        (
            "from halfseen import Agent; Agent().choose([{'price': 1.0}])",
            {"pandas", "polars", "pyarrow", "rich", "narwhals"},
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(statement, not_loaded):
    assert not loaded_after(statement) & not_loaded


def python_blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize(("at", "name"), [(0, "agent"), (1, "policy")])
def test_the_readmes_two_examples_of_about_fifteen_lines_run(at, name):
    examples, names, printed = python_blocks(), {}, io.StringIO()
    assert len(examples) == 2
    assert len([line for line in examples[at].splitlines() if line.strip()]) <= 16
    with redirect_stdout(printed):
        exec(compile(examples[at], "README.md", "exec"), names)
    assert names["decision"].round > 0
    assert names[name]
    assert printed.getvalue()


def test_a_policy_has_few_public_names_besides_parameters_and_abilities():
    policy = halfseen.LatentUcb()
    known = {name for kind in Ability.__subclasses__() for name in vars(kind)}
    public = {name for name in dir(policy) if not name.startswith("_")}
    assert len(public - known - policy.parameters.keys()) <= 32
