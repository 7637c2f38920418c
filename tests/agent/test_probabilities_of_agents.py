"""An agent explores as it is told and states, keeps and repeats its probabilities."""

import json

import pytest

from agent.tables import looks, offers, walk
from halfseen import Agent, LatentUcb

WAYS = [
    {"explore": "ucb"},
    {"explore": "thompson"},
    {"explore": "inverse-gap"},
    {"explore": "greedy", "uniform_share": 0.2},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_agent_hands_its_exploration_to_the_policy(way):
    policy = LatentUcb(
        exploration=way["explore"], uniform_share=way.get("uniform_share", 0.0), seed=0
    )
    ours, theirs = Agent(id="sku", **way), Agent(id="sku", policy=policy)
    for one, other in zip(walk(ours, offers(20)), walk(theirs, offers(20)), strict=True):
        assert looks(one) == looks(other)


def test_the_chosen_item_leads_the_ranking_and_json_has_its_probability():
    agent = Agent(id="sku", uniform_share=1.0)
    decisions = walk(agent, offers(20))
    for decision in decisions:
        assert decision.ranking[0] == decision.item
        plain = json.loads(json.dumps(decision.to_dict()))
        assert plain["probability"] == pytest.approx(1 / len(decision.items))
        assert plain["probabilities"] == decision.probabilities.tolist()
    assert any(decision.scores.max() > decision.scores[0] for decision in decisions)
