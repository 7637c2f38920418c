"""Processes that share a database are killed at random moments, and nothing may be lost.

    PYTHONPATH=tests python -m robustness.kills 40 0 [postgresql://…]

Four children serve decisions and rewards as fast as they can and acknowledge each on a pipe. One is
killed with SIGKILL and started again, over and over. In the end all that was acknowledged must be
in every replica, and no reward may count twice. Decisions have one place or two, and rewards come
at once or in parts, which a child sends again if it cannot know whether they came.
"""

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from agent.servers import Server
from agent.tables import lead, state_of
from halfseen import Agent, AmbientOful, LatentUcb
from halfseen.errors import UnknownDecisionError
from halfseen.policies.abilities import UsesContext

LONGEST = 0.25
"""Seconds between two kills."""

N_CHILDREN = 4
KILLS_PER_AGENT = 20


def run(n, seed):
    """Kill `n` children, half of them on PostgreSQL if it is there; see `kill`."""
    with closing(Server.maybe()) as server:
        if server.url is None:
            return kill(n, seed)
        found = kill(n // 2, seed), kill(n - n // 2, seed, server.url)
    return n, [failure for _, failures in found for failure in failures]


def kill(n, seed, url=None):
    """Kill `n` children; return how many were killed and what was lost."""
    failures = []
    for first in range(0, n, KILLS_PER_AGENT):
        with tempfile.TemporaryDirectory() as folder:
            draws = random.Random(seed + first)
            place = url or str(Path(folder) / "shop.db")
            site = Site(place, f"kills {seed + first} {draws.random()}", draws)
            found = site.kill(min(KILLS_PER_AGENT, n - first))
            failures += [f"seed {seed + first}: {each}" for each in found]
    return n, failures


class Site:
    """One agent, its children, and what they have acknowledged."""

    def __init__(self, url, name, draws):
        self.url, self.name, self.draws = url, name, draws
        policy = draws.choice([AmbientOful(dim=1), LatentUcb(), LatentUcb(refit="background")])
        self.agent = Agent.open(url, name, "crash", policy=policy)
        self.decisions, self.rewarded = set(), set()
        self.children = {}

    def kill(self, n):
        """Kill children one after the other; return what is lost or counted twice."""
        for _ in range(N_CHILDREN):
            self._start()
        for _ in range(n):
            time.sleep(self.draws.random() * LONGEST)
            self._end(self.draws.choice(list(self.children)))
            self._start()
        ends = time.monotonic() + 30.0
        while not self.agent.health()["rewards"]["lately"]["n"] and time.monotonic() < ends:
            time.sleep(0.1)  # on a busy machine all may have been killed at their start
        for child in list(self.children):
            self._end(child)
        return list(self._lost())

    def _start(self):
        reading, writing = os.pipe()
        seed = self.draws.random()
        child = os.fork()
        if child == 0:
            os.close(reading)
            serve(Agent.open(self.url, self.name, "crash"), writing, random.Random(seed))
        os.close(writing)
        self.children[child] = reading

    def _end(self, child):
        reading = self.children.pop(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reading, "rb") as pipe:
            # A word that is cut off was not yet acknowledged.
            lines = pipe.read().decode().split("\n")[:-1]
        for word, id in map(str.split, lines):
            (self.decisions if word == "made" else self.rewarded).add(id)

    def _lost(self):
        agent = lead(self.agent)
        pending = {each.id for each in agent.pending}
        for id in self.decisions - self.rewarded - pending:
            try:
                reward(agent, id)  # accepted: its acknowledgement was on the way
            except UnknownDecisionError as error:
                yield f"decision {id} is lost: {error}"
        for id in self.rewarded & pending:
            yield f"the reward of {id} is lost"
        health = agent.health()
        rewards = health["rewards"]
        learned = sum(part["n"] for part in rewards.values())
        log = agent.log()
        n_rewarded = int((log["status"] == "rewarded").sum())
        if learned != n_rewarded or health["late"]:
            yield f"{learned} rewards learned, {n_rewarded} places rewarded, {health['late']} late"
        if not (log["reward"][log["status"] == "rewarded"] == 1.0).all():
            yield "the parts of a reward do not add up"
        if not self.rewarded:
            yield "nothing was rewarded"
        if {part["mean"] for part in rewards.values()} - {None, 1.0}:
            yield f"the mean of rewards of 1 is {rewards}"
        fresh = Agent.open(self.url, self.name)
        if state_of(fresh) != state_of(agent):
            yield "two replicas have different states"


def in_parts(id):
    """Return whether the reward of a decision comes in parts, in all processes alike."""
    return int(id, 16) % 2 == 0


def is_simple(agent, id):
    """Return whether a decision has one place and one reward, so that many may be sent at once."""
    made = agent.journal.decisions([id]).get(id)
    return made is not None and made.places == (None,) and not in_parts(id)


def reward(agent, id):
    """Reward every place of a decision with 1: some at once, others in parts."""
    made = agent.journal.decisions([id]).get(id)
    items = () if made is None else made.items
    parts = {"click": 0.25, None: 0.75} if in_parts(id) else {None: 1.0}
    for key, value in parts.items():
        rewards = dict.fromkeys(items, value) if items else value
        agent.learn(id, rewards, final=key is None, key=key)


def serve(agent, writing, draws):
    """Serve until killed."""
    waiting = [each.id for each in agent.pending]
    while True:
        chance = draws.random()
        if chance < 0.5 or not waiting:
            options = [{"x": draws.random(), "colour": colour} for colour in "abc"]
            if draws.random() < 0.1:
                options[0]["colour"] = str(draws.randrange(100))
            context = None
            if isinstance(agent.policy, UsesContext) and draws.random() < 0.5:
                context = {"hour": draws.random(), "country": draws.choice(["a", "b", None])}
            waiting.append(agent.choose(options, context=context, k=draws.choice([1, 2])).id)
            os.write(writing, f"made {waiting[-1]}\n".encode())
            continue
        ids = [waiting.pop(draws.randrange(len(waiting)))]
        if chance < 0.6:
            ids, waiting = [*ids, *waiting[:3]], waiting[3:]
        many = [id for id in ids if is_simple(agent, id)]
        agent.learn(many, [1.0] * len(many))
        for id in ids:
            if id not in many:
                reward(agent, id)
            os.write(writing, f"rewarded {id}\n".encode())


if __name__ == "__main__":
    tried, lost = kill(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    print(*lost, f"{tried} kills, {len(lost)} failures", sep="\n")
    sys.exit(bool(lost))
