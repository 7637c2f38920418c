"""Tables to choose from, and what they pay."""

import numpy as np

from halfseen import archive

COLOURS = ("red", "green", "blue")
WORTH = {"red": 0.0, "green": 0.5, "blue": 1.0}


def offers(n_rounds, *, seed=0, sizes=(4, 3, 6, 5)):
    """Return rounds of rows with holes, and the reward of each row."""
    random = np.random.default_rng(seed)
    rounds = []
    for index in range(n_rounds):
        rows, rewards = [], []
        for at in range(sizes[index % len(sizes)]):
            price, weight = random.normal(size=2).round(3).tolist()
            colour = COLOURS[int(random.integers(3))]
            row = {"sku": f"item {at}", "price": price, "weight": weight, "colour": colour}
            hidden = [name for name in ("price", "weight", "colour") if random.random() < 0.3]
            rows.append({name: None if name in hidden else cell for name, cell in row.items()})
            rewards.append(WORTH[colour] - price + 0.1 * float(random.normal()))
        rounds.append((rows, rewards))
    return rounds


def walk(agent, rounds):
    """Choose and learn in every round and return the decisions."""
    decisions = []
    for rows, rewards in rounds:
        decision = agent.choose(rows)
        agent.learn(decision.id, rewards[decision.items.index(decision.item)])
        decisions.append(decision)
    return decisions


def looks(decision):
    """Return everything of a decision but its id."""
    return {name: value for name, value in decision.to_dict().items() if name != "id"}


def state_of(agent):
    """Return the state of an agent after all events, and what is pending, as bytes."""
    plain = agent.to_dict()
    made = [each["made"] for each in plain["decisions"]]
    pending = [[each["id"], each["places"]] for each in made if None in each["places"]]
    return archive.to_bytes({"state": plain["state"], "pending": pending})


def lead(agent):
    """Let an agent be the learner, as if the lease of another one had ended."""
    agent._member.upkeep.ahead["lease"] += 100.0
    agent._member.doubt()
    agent._member.follow()
    assert agent._member.is_learner
    return agent
