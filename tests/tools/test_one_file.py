"""One file has the same features for an agent, `compare`, `evaluate` and `inspect`."""

import numpy as np
import pandas as pd
import pytest

from halfseen import Agent, TableWorld
from halfseen.frames import Encoder, Reader
from halfseen.tools import logs
from halfseen.tools.inspection import Inspector

N = 180


@pytest.fixture(params=["csv", "parquet"])
def file(request, tmp_path):
    """Return a file of numbers, strings, codes and more than 50 levels, with missing cells."""
    random = np.random.default_rng(0)
    features = pd.DataFrame(
        {
            "price": random.normal(size=N).round(3),
            "colour": random.choice(["red", "blue", "green"], N),
            "century": random.choice(["19", "20", "21"], N),
            "code": random.choice(["3", "3;4", "19"], N),
            "town": [f"town {n}" for n in random.integers(0, 70, N)],
        }
    )
    features = features.where(random.random(features.shape) < 0.8)
    features["rare"] = random.random(N) < 0.05
    others = {"round": np.arange(N) // 3, "mean": random.random(N).round(3), "chance": 0.5}
    path = tmp_path / f"offers.{request.param}"
    getattr(features.assign(**others), f"to_{request.param}")(path, index=False)
    return path


def features(names, table):
    """Return features by name, with their values."""
    assert len(set(names)) == len(names) == table.shape[1]
    return {name: table[:, at].tobytes() for at, name in enumerate(names)}


def names_in(columns):
    """Return the names of features in their order."""
    return [
        name
        for _, name in sorted(
            pair
            for column in columns
            if column.features
            for pair in zip(column.features, column.names, strict=True)
        )
    ]


def agent_of(file):
    """Return the columns of an agent that is offered all rows, and these as features."""
    frame, others = getattr(pd, f"read_{file.suffix[1:]}")(file), ["round", "mean", "chance"]
    agent = Agent(ignore=others)
    agent.choose(frame)
    slate, encoder = Encoder().encode(Reader(ignore=frozenset(others)).read(frame))
    assert {name: agent.columns[name] for name in encoder.columns} == encoder.columns
    return encoder.columns, slate.table


def test_agents_and_tools_see_the_same_features_of_a_file(file):
    columns, table = agent_of(file)
    expected = features(names_in(columns.values()), table)
    n_centuries = 3 if file.suffix == ".parquet" else 1  # a CSV file has no types
    assert len(expected) == 1 + 3 + n_centuries + 3 + (50 + 16) + 1

    world = TableWorld(path=file)
    arms = np.concatenate([round.arms for round in world.realize(0).rounds()])
    compared = features(list(world.shares()), arms)
    assert compared.pop("chance") == np.full(N, 0.5).tobytes()
    assert compared == expected

    names = ["price", "colour", "century", "code", "town", "rare"]
    log = logs.read(
        file, item="round", propensity="chance", reward="mean", context=names, offered=None
    )
    contexts = log.contexts(np.arange(N))
    assert features(names_in(log.encoder.columns.values()), contexts) == expected

    inspector = Inspector(file)
    kept = {name: columns[name] for name in names}
    assert {name: inspector.kinds[name].split()[0] for name in names} == {
        name: column.kind for name, column in kept.items()
    }
    # One level of a category follows from the others; "chance" is constant.
    n_features = [len(column.features) - (column.kind == "category") for column in kept.values()]
    assert inspector.table.shape[1] == sum(n_features) + len(["round", "mean"])
