"""Natural mistakes: each has a message that names the column or the id, and the remedy."""

import copy
import datetime
import tempfile
from pathlib import Path

import pytest

from halfseen import Agent, AmbientOful, HalfseenError, TofuPov

ROWS = [{"sku": "a", "price": 1.0, "colour": "red"}, {"sku": "b", "price": 2.0, "colour": "blue"}]
DAY = datetime.datetime(2026, 1, 1)


def agent():
    made = Agent(policy=AmbientOful(dim=1), id="sku")
    made.learn(made.choose(ROWS), 0.5)
    return made


# What was done; whom the message names; what it says to do.
MISTAKES = {
    "exploration beside a policy": (
        lambda: Agent(policy=AmbientOful(dim=1), explore="thompson"),
        "explore",
        "leave it out",
    ),
    "a request without exploring that the policy cannot fulfil": (
        lambda: Agent(policy=TofuPov(dim=1, rank=1, observe_prob=0.5)).choose(
            [{"price": 1.0}], explore=False
        ),
        "TofuPov",
        "leave out explore=False",
    ),
    "reasons of a policy that has none": (
        lambda: Agent(policy=TofuPov(dim=1, rank=1, observe_prob=0.5)).explain([{"price": 1.0}]),
        "TofuPov",
        "use LatentUcb",
    ),
    "a context for a policy that has no use for it": (
        lambda: agent().choose(ROWS, context={"age": 3}),
        "AmbientOful",
        "leave it out",
    ),
    "the position instead of the decision": (
        lambda: agent().learn(0, 1.0),
        "got int 0",
        r"pass decision or decision\.id",
    ),
    "a number of places that is no whole number": (
        lambda: agent().choose(ROWS, k=1.0),
        r"must be an integer in \[1, 2\]",
        r"got 1\.0",
    ),
    "a reward of too many digits": (
        lambda: agent().learn(agent().choose(ROWS), 10**5000),
        "a number of 16610 bits",
        "finite number",
    ),
    "a time instead of a duration": (
        lambda: agent().expire(before=DAY),
        "2026",
        "must be a timedelta",
    ),
    "a class instead of a policy": (
        lambda: Agent(policy=AmbientOful),
        "AmbientOful",
        r"such as LatentUcb\(\)",
    ),
    "a name instead of a list of names": (
        lambda: Agent(ignore="url"),
        "'url'",
        "list of column names",
    ),
    "a database in a folder that is not there": (
        lambda: Agent.open("no/such/folder/shop.db"),
        "no/such/folder",
        "unable to open",
    ),
    "a database of another kind": (
        lambda: Agent.open("mysql://shop:secret@host/shop"),
        "^mysql:// is not a halfseen database",
        "name a file or postgresql://",
    ),
    "a password that is not escaped": (
        lambda: Agent.open("postgresql://shop:a/b@127.0.0.1:1/shop"),
        r"^postgresql://shop:\*\*\*@127",
        "cannot be used",
    ),
    "a password that is also the name of a user": (
        lambda: Agent.open("postgresql://postgres:postgres@127.0.0.1:1/shop"),
        r"^postgresql://postgres:\*\*\*@127.0.0.1:1/shop cannot be used",
        "refused",
    ),
    "a database in memory": (lambda: Agent.open(":memory:"), "is not a file", r"use Agent\(\)"),
    "a copy of an agent in a database": (
        lambda: copy.copy(Agent.open(Path(tempfile.mkdtemp()) / "shop.db")),
        "cannot be copied or pickled",
        r"use Agent\.open again",
    ),
    "a wait that is no time": (lambda: Agent(expire_after=-1), "expire_after", "timedelta above 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_a_message_that_names_it_and_the_remedy(mistake):
    make, named, remedy = MISTAKES[mistake]
    with pytest.raises((HalfseenError, TypeError)) as raised:
        make()
    assert raised.match(named)
    assert raised.match(remedy)
