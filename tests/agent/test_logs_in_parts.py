"""A log in files, or in partitions of Dask, is learned like the same log in memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from halfseen import Agent, InvalidInputError, InvalidRewardError, InvalidTableError

N = 90


@pytest.fixture
def log():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"price": random.normal(size=N), "hour": random.normal(size=N)})
    frame["colour"] = ["red", "blue", None] * 30
    frame["sku"] = [f"item {at % 7}" for at in range(N)]
    frame.loc[::4, "price"] = np.nan
    frame["paid"] = frame.price.fillna(0.0) + (frame.colour == "red") * frame.hour
    return frame


def in_parts(log, folder):
    """Return the log in files, one without rows, and as two frames of Dask, one with an index."""
    folder.mkdir(exist_ok=True)
    for number, (first, end) in enumerate([(0, 20), (20, 20), (20, N)]):
        log[first:end].to_parquet(folder / f"{number}.parquet")
    frame = dd.from_pandas(log, npartitions=3, sort=False)
    return folder, frame, frame[frame.hour > -1e9].persist(scheduler="synchronous")


def options(log):
    return log[["price", "colour", "sku"]][:7]


@pytest.mark.parametrize("given", [{}, {"id": "sku"}])
def test_a_log_in_parts_is_learned_like_one_in_memory(log, tmp_path, given):
    whole = Agent(**given)
    table = log[["price", "colour", "sku"]]
    whole.observe(table, log.paid, context=log[["hour"]])
    for parts in in_parts(log, tmp_path):
        agent = Agent(**given)
        agent.observe(parts, "paid", context="hour")
        assert agent.columns == whole.columns
        for ours, theirs in zip(
            agent.score(options(log), context={"hour": 1.0}),
            whole.score(options(log), context={"hour": 1.0}),
            strict=True,
        ):
            assert ours.estimate == pytest.approx(theirs.estimate, rel=1e-9)


def test_ids_may_be_in_the_index_of_a_dask_frame(log):
    frame = dd.from_pandas(log.set_index("sku"), npartitions=3, sort=False)
    agent, known = Agent(id="sku"), Agent(id="sku")
    agent.observe(frame, "paid")
    known.observe(log.drop(columns="paid"), log.paid)
    assert agent.columns.keys() == known.columns.keys()


def test_a_log_in_parts_with_a_key_is_learned_once(log, tmp_path):
    folder, *_ = in_parts(log, tmp_path / "log")
    with Agent.open(tmp_path / "shop.db") as agent:
        for _ in range(2):
            agent.observe(folder, "paid", key="monday")
        assert agent.health()["events"] == 2  # one for each file that has rows
        log.assign(paid=0.0)[:20].to_parquet(folder / "0.parquet")
        with pytest.raises(InvalidInputError, match="observed with the key 'monday, part 0'"):
            agent.observe(folder, "paid", key="monday")


def test_nothing_is_learned_if_a_part_cannot_be_read(log, tmp_path):
    folder, *_ = in_parts(log, tmp_path)
    agent = Agent()

    def refused(error, match, **given):
        with pytest.raises(error, match=match):
            agent.observe(folder, **{"rewards": "paid", **given})
        assert agent.columns == {}

    refused(InvalidTableError, "must be names of its columns price, hour", rewards=[1.0] * N)
    refused(InvalidTableError, "must be names of its columns", context=["minute"])
    refused(InvalidInputError, "key= needs a database", key="monday")
    log.assign(paid=np.nan).to_parquet(folder / "3.parquet")
    refused(InvalidRewardError, "a reward must be a finite number")
    log.assign(price="cheap").to_parquet(folder / "3.parquet")
    refused(InvalidTableError, "column 'price'")
