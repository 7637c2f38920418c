"""Processes that serve with a journal are killed at random moments, and nothing may be lost.

    PYTHONPATH=tests python -m robustness.kills 40 0

A child serves decisions and rewards as fast as it can and acknowledges each on a pipe. It is killed
with SIGKILL and started again on the same files, which may also get a torn last line. Then all that
was acknowledged must be there, and no reward may count twice.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from halfseen import Agent, AlreadyRewardedError, AmbientOful, LatentUcb
from halfseen.errors import HalfseenError

LONGEST = 0.12
"""Seconds that a child may serve."""

KILLS_PER_FOLDER = 10


def run(n, seed):
    """Kill `n` children; return how many were killed and what was lost."""
    failures = []
    for first in range(0, n, KILLS_PER_FOLDER):
        with tempfile.TemporaryDirectory() as folder:
            site = Site(Path(folder), random.Random(seed + first))
            for _ in range(min(KILLS_PER_FOLDER, n - first)):
                failures += [f"seed {seed + first}: {each}" for each in site.kill_one()]
    return n, failures


class Site:
    """The files of one agent, and what its children have acknowledged."""

    def __init__(self, folder, draws):
        self.files = folder / "checkpoint", folder / "events.jsonl"
        self.draws = draws
        self.policy = draws.choice([AmbientOful(dim=1), LatentUcb()])
        self.decisions, self.rewarded = set(), set()

    def kill_one(self):
        """Let a child serve, kill it, and yield what the next agent has lost."""
        acknowledged = self._serve_and_kill()
        for word, id in acknowledged:
            (self.decisions if word == "made" else self.rewarded).add(id)
        if self.draws.random() < 0.3:
            with open(self.files[1], "ab") as file:
                file.write(self.draws.choice([b'{"n":', b"\x00" * 700, b'{"n": 3}', b"{"]))
        try:
            agent = Agent.open(*self.files, policy=self.policy)
        except HalfseenError as error:
            yield f"the agent does not open: {error}"
            return
        yield from self._lost(agent)
        agent.close()

    def _serve_and_kill(self):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            agent = Agent.open(*self.files, policy=self.policy)
            serve(agent, self.files[0], writing, random.Random(self.draws.random()))
        os.close(writing)
        time.sleep(self.draws.random() * LONGEST)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reading, "rb") as pipe:
            # A word that is cut off was not yet acknowledged.
            lines = pipe.read().decode().split("\n")[:-1]
        return [line.split() for line in lines]

    def _lost(self, agent):
        pending = {each.id for each in agent.pending}
        for id in self.decisions - self.rewarded - pending:
            try:
                agent.learn(id, 0.0)
            except AlreadyRewardedError:
                self.rewarded.add(id)  # its acknowledgement was on the way
                continue
            except HalfseenError as error:
                yield f"decision {id} is lost: {error}"
        for id in self.rewarded:
            try:
                agent.learn(id, 0.0)
            except AlreadyRewardedError:
                continue
            except HalfseenError as error:
                yield f"the reward of {id} is lost: {error}"
            else:
                yield f"the reward of {id} counts twice"
        self.decisions |= pending
        health = agent.health()["rewards"]
        learned = sum(part["n"] for part in health.values())
        if learned != len(self.rewarded):
            yield f"{learned} rewards were learned, {len(self.rewarded)} were given"
        if health["lately"]["mean"] not in (None, 1.0):
            yield f"the mean of rewards of 1 is {health['lately']['mean']}"


def serve(agent, checkpoint, writing, draws):
    """Serve until killed."""
    waiting = [each.id for each in agent.pending]
    while True:
        chance = draws.random()
        if chance < 0.5 or not waiting:
            options = [{"x": draws.random(), "colour": colour} for colour in "abc"]
            if agent.policy._can("_grow") and draws.random() < 0.1:
                options[0]["colour"] = str(draws.randrange(100))
            context = None
            if agent.policy._can("_grow_context") and draws.random() < 0.5:
                context = {"hour": draws.random(), "country": draws.choice(["a", "b", None])}
            waiting.append(agent.choose(options, context=context).id)
            os.write(writing, f"made {waiting[-1]}\n".encode())
        elif chance < 0.9:
            id = waiting.pop(draws.randrange(len(waiting)))
            agent.learn(id, 1.0)
            os.write(writing, f"rewarded {id}\n".encode())
        elif chance < 0.95:
            ids, waiting = waiting[:3], waiting[3:]
            agent.learn(ids, [1.0] * len(ids))
            for id in ids:
                os.write(writing, f"rewarded {id}\n".encode())
        else:
            agent.save(checkpoint)


if __name__ == "__main__":
    tried, lost = run(int(sys.argv[1]), int(sys.argv[2]))
    print(*lost, f"{tried} kills, {len(lost)} failures", sep="\n")
    sys.exit(bool(lost))
