"""Interrupts at every function entry, at some lines, and four threads at once."""

import numpy as np
import pytest

from halfseen import Agent, warm_up
from robustness.faults import DIM, LOST, POLICIES, Cut, calls, moments, run, run_threads

warm_up(progress=False)  # compiling while every line is traced would take minutes

COUNTS_ARMS = ("tofu", "tofu with full history", "latent-ucb")
COUNTS_REWARDS = ("ambient", "greedy", "thompson")
THREADED = [name for name in POLICIES if name != "ambient in many dimensions"]


@pytest.mark.parametrize("name", POLICIES)
def test_an_interrupt_at_any_function_entry_leaves_the_old_state_or_the_new_one(name):
    """Round 5 opens epochs, fits imputers and meets a late reward."""
    failures, n_lost, n_tried = [], 0, 0
    for index, policy, table, late in moments(POLICIES[name], 5):
        if index != 4:
            continue
        for what, call in calls(table, late).items():
            cut = Cut(policy, call, "call")
            entries = range(1, cut.n_points + 1)
            # An opening enters the same few functions over and over.
            for at in [*entries[:8], *entries[8:-6:200], *entries[-6:]]:
                wrong = cut.at(at)
                n_tried += 1
                n_lost += wrong == LOST
                if wrong not in (None, LOST):
                    failures.append(f"round {index + 1}, {what}, entry {at}: {wrong}")
    assert failures == []
    assert n_tried > 15
    assert n_lost <= 0.2 * n_tried  # the rest did cut a call off


def test_an_interrupt_at_any_line_leaves_the_old_state_or_the_new_one():
    tried, failures = run(60, seed=0)
    assert tried >= 60
    assert failures == []


@pytest.mark.parametrize("name", THREADED)
def test_four_threads_lose_nothing_and_mix_nothing(name):
    agent = Agent(policy=POLICIES[name]())
    assert run_threads(agent, n_threads=4, n_rounds=250) == []
    if name in COUNTS_ARMS:
        policy = agent._policy
        n_offered = policy._arms.n_offered if name == "latent-ucb" else policy._offered.n_arms
        assert n_offered == 4 * 250 * 4 + 1
    if name in COUNTS_REWARDS:
        assert agent._policy._model.n_samples == 1001
        assert np.isfinite(agent.choose(np.eye(DIM)).scores).all()
