"""A fuzz of agents: several replicas on one storage, called and interrupted at random.

What must hold: a call that is refused changes nothing; one that was interrupted may be repeated; in
the end every reward was learned once, and all replicas and a fresh one have the same state.

    PYTHONPATH=tests python -m robustness.agents SEED [postgresql://…]

repeats one case.
"""

import random
import sys
import tempfile
import traceback
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

from agent.servers import Server
from agent.tables import state_of
from halfseen import Agent, AmbientOful, HalfseenError, LatentUcb, Uniform
from halfseen.policies.abilities import UsesContext
from robustness.calls import BrokenRuleError
from robustness.faults import Interrupter
from robustness.hostile import BAD_REWARDS

POLICIES = {
    "ambient": partial(AmbientOful, dim=1),
    "latent": LatentUcb,
    "thompson": partial(LatentUcb, exploration="thompson", memory_bytes=20_000),
    "background": partial(LatentUcb, refit="background", uniform_share=0.1),
    "uniform": partial(Uniform, dim=40),
}
BAD_OPTIONS = (
    [], "hat", None, [{"x": 1.0}], [{"sku": "a"}, {"sku": "a"}], [{"sku": "a", "x": [1]}],
    [{"sku": "a", "x": float("inf")}], [{"sku": None, "x": 1.0}], [{"sku": "\ud800", "x": 1.0}],
)  # fmt: skip


class Case:
    """One agent and a stretch of calls, all of it drawn from one seed."""

    def __init__(self, seed, url):
        self.random = draws = random.Random(seed)
        self.kind = draws.choice(list(POLICIES))
        settings = {"policy": POLICIES[self.kind](), "id": "sku", "max_levels": 6}
        if url is None:
            self.replicas = [Agent(**settings)]
        else:
            make = partial(Agent.open, url, f"case {seed} {draws.random()}", "crash")
            self.replicas = [make(**settings) for _ in range(draws.randint(1, 3))]
            self.fresh = make
        self.is_stored = url is not None
        self.has_context = isinstance(self.replicas[0].learner, UsesContext)
        self.open, self.n_calls, self.n_learned = {}, 0, 0

    def play(self):
        moves = (self.choose, self.learn, self.learn_many, self.refused, self.look, self.rare)
        for _ in range(self.random.randint(20, 60)):
            self.n_calls += 1
            self.random.choices(moves, (8, 7, 1, 2, 1, 1))[0]()
        self._settle()
        first = self.replicas[0]
        others = [*self.replicas[1:], *([self.fresh()] if self.is_stored else [])]
        if any(state_of(each) != state_of(first) for each in others):
            raise BrokenRuleError("two replicas have different states")
        health = first.health()
        learned = sum(part["n"] for part in health["rewards"].values())
        if (learned, health["late"]) != (self.n_learned, 0):
            raise BrokenRuleError(f"{learned} rewards learned, not {self.n_learned}")
        if {each.id for each in first.pending} != self.open.keys():
            raise BrokenRuleError("other decisions wait than those without a reward")

    def _settle(self):
        """Wait for refits, which change an agent whenever they are done."""
        for agent in self.replicas:
            if agent._member.fitter.worker is not None:
                agent._member.fitter.worker.join()

    @property
    def agent(self):
        return self.random.choice(self.replicas)

    def call(self, call):
        """Call an agent, now and then with an interrupt after which the same is done again."""
        if self.random.random() < 0.1:
            # Between the end of a `with` and its `__exit__` no signal is met, but a line begins: an
            # interrupt there would keep a lock for which a thread that refits waits.
            kind, most = ("call", 100) if self.kind == "background" else ("line", 400)
            try:
                with Interrupter(kind, self.random.randint(1, most)):
                    return call()
            except KeyboardInterrupt:
                pass
        return call()

    def rows(self, n):
        draws, rows = self.random, []
        for at in range(n):
            row = {"sku": at, "x": draws.gauss(0, 1), "y": draws.gauss(0, 100)}
            row["colour"] = draws.choice("abcdefghij")
            row[f"rare {draws.randrange(4)}"] = draws.random()
            rows.append({name: row[name] for name in row if name == "sku" or draws.random() < 0.8})
        return rows

    def choose(self):
        draws, agent, id = self.random, self.agent, f"{self.n_calls}"
        rows, given = self.rows(draws.randint(1, 6)), {}
        if self.has_context and draws.random() < 0.5:
            given["context"] = {"hour": draws.random(), "country": draws.choice("abc")}
        given["k"] = draws.randint(1, len(rows)) if draws.random() < 0.3 else 1

        def decide():
            if not self.is_stored and id in {each.id for each in agent.pending}:
                return  # it was made, and then interrupted
            agent.choose(rows, id=id, **given)

        try:
            self.call(decide)
        except HalfseenError as error:
            if "column" not in str(error) and "at least one" not in str(error):
                raise  # else it has nothing to go by, or the first rows had too few columns
            return
        self.open[id] = agent.journal.decisions([id])[id].items

    def learn(self):
        """Learn about all places of a decision, in parts or at once."""
        if not self.open:
            return
        draws = self.random
        id = draws.choice(list(self.open))
        rewards = {item: round(draws.gauss(0, 1), 3) for item in self.open[id]}
        if draws.random() < 0.3:
            key = draws.choice(["click", "†"])
            self.call(lambda: self.agent.learn(id, rewards, final=False, key=key))
        self.call(lambda: self.agent.learn(id, rewards))
        self.agent.learn(id, rewards)
        self._done(id)

    def learn_many(self):
        ids = [id for id, items in self.open.items() if len(items) == 1]
        if ids:
            self.call(lambda: self.agent.learn(ids, [1.0] * len(ids)))
            for id in ids:
                self._done(id)

    def _done(self, id):
        self.n_learned += len(self.open.pop(id))

    def refused(self):
        draws, agent = self.random, self.agent
        self._settle()
        before = state_of(agent)
        id = draws.choice([*self.open, "nobody"])
        calls = (
            lambda: agent.choose(draws.choice(BAD_OPTIONS)),
            lambda: agent.learn(id, draws.choice(BAD_REWARDS)),
            lambda: agent.learn([*self.open, "nobody"], [1.0] * (len(self.open) + 1)),
            lambda: agent.learn(id, {"no such item": 1.0}),
            lambda: agent.observe(self.rows(2), [1.0]),
        )
        try:
            draws.choice(calls)()
        except HalfseenError:
            if state_of(agent) != before:
                raise BrokenRuleError("a refused call has changed the agent") from None
        else:
            raise BrokenRuleError("what must be refused was not")

    def look(self):
        agent = self.agent
        agent.health(), agent.columns, agent.pending
        if self.is_stored:
            agent.log()

    def rare(self):
        """Expire, observe or prune."""
        draws, agent = self.random, self.agent
        what = draws.randrange(3)
        if what == 0:
            for id in list(self.open):
                self._done(id)
            self.call(lambda: agent.expire(before=timedelta(0)))
        elif what == 1 and self.is_stored:
            rows = self.rows(3)
            try:
                self.call(lambda: agent.observe(rows, [1.0] * 3, key=f"log {self.n_calls}"))
            except HalfseenError:
                return  # as in choose
            self.n_learned += 3
        elif self.is_stored:
            agent.prune(keep=timedelta(0))


def one(seed, url=None):
    """Play one case; return its number of calls and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        case = None
        try:
            place = random.Random(seed).choice([None, url, str(Path(folder) / "shop.db")])
            case = Case(seed, place)
            case.play()
        except Exception:
            kind = "" if case is None else case.kind
            return 0, f"agents seed {seed}, {kind}: {traceback.format_exc(limit=-3)}"
        finally:
            for agent in () if case is None else case.replicas:
                agent.close()
    return case.n_calls, ""


def run(n, seed):
    """Make about n calls; return how many were made, and what failed."""
    tried, failures = 0, []
    with closing(Server.maybe()) as server:
        while tried < n and len(failures) < 10:
            n_calls, failure = one(seed, server.url)
            tried, seed = tried + n_calls, seed + 1
            failures += [failure] if failure else []
    return tried, failures


if __name__ == "__main__":
    calls, wrong = one(int(sys.argv[1]), *sys.argv[2:])
    print(f"{calls} calls", wrong)
    sys.exit(bool(wrong))
