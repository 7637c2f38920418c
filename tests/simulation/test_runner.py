"""The runner: regret by hand, and what a policy gets to see."""

from typing import NamedTuple

import numpy as np

from halfseen import Decision, LowRankWorld, Note, Slate, Uniform, play
from halfseen.worlds.base import Facts, Round


class FakeRealization(NamedTuple):
    """Three rounds with two arms of one feature each."""

    means: tuple = ((1.0, 4.0), (2.0, 2.5), (-1.0, -3.0))
    noise: tuple = (0.5, -10.0, 100.0)

    @property
    def facts(self):
        return Facts(seed=0, dim=1, horizon=len(self.means))

    def rounds(self):
        for index, (means, noise) in enumerate(zip(self.means, self.noise, strict=True)):
            values = np.array([[index + 10.0], [index + 20.0]])
            mask = np.array([[True], [index != 1]])
            yield Round(Slate(values, mask), np.array(means), noise, values)


class Scripted:
    """Plays what it was told and writes down all that it gets."""

    current_rank = 1

    def __init__(self, *arms):
        self.arms = iter(arms)
        self.seen, self.learned = [], []

    def choose(self, options):
        self.seen.append(options)
        arm = next(self.arms)
        n_arms = options.n_arms
        return Decision(
            "Scripted", arm, Note(len(self.seen), -1, np.zeros(1)), np.zeros((3, n_arms))
        )

    def learn(self, decision, reward):
        self.learned.append((decision.round, reward))


def test_regret_sums_the_means_that_were_missed_and_noisy_rewards_are_learned_once():
    policy = Scripted(0, 1, 1)
    trace = play(policy, FakeRealization())
    assert trace.regret.tolist() == [3.0, 3.0, 5.0]
    assert trace.final_regret == 5.0
    assert policy.learned == [(1, 1.5), (2, -7.5), (3, 97.0)]


def test_the_truth_never_reaches_the_policy():
    policy = Scripted(0, 0, 0)
    play(policy, FakeRealization())
    assert [type(options) for options in policy.seen] == [Slate] * 3
    assert [slate.values.tolist() for slate in policy.seen] == [
        [[10.0], [20.0]],
        [[11.0], [0.0]],
        [[12.0], [22.0]],
    ]
    assert not policy.seen[1].mask[1, 0]
    assert all(isinstance(reward, float) for _, reward in policy.learned)


def test_on_the_full_view_nothing_is_hidden():
    policy = Scripted(0, 0, 0)
    play(policy, FakeRealization(), "full")
    assert all(slate.mask.all() for slate in policy.seen)
    assert policy.seen[1].values.tolist() == [[11.0], [21.0]]


def test_a_trace_tells_in_how_many_dimensions_each_choice_was_made():
    assert play(Scripted(0, 0, 0), FakeRealization()).ranks.tolist() == [1.0, 1.0, 1.0]
    realization = LowRankWorld(dim=5, rank=2, n_arms=3, horizon=3).realize(0)
    assert np.isnan(play(Uniform(dim=5), realization).ranks).all()
