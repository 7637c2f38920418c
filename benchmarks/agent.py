"""What an agent adds to the time of its policy: reading a table, ids, what waits for rewards."""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.measuring import Quartiles, Row, in_turns, seconds
from benchmarks.problems import N_COLUMNS, N_OPTIONS
from halfseen import Agent, AmbientOful, InvalidTableError, LatentUcb
from halfseen.agent.database import DURABILITIES, Run

# Budgets in µs: for 8 options with 30 columns, and for a whole choice of a shop.
MOST_NUMBERS = 150.0
MOST_MIXED = 1200.0
MOST_SHOP = 1000.0

_ROUNDS = 200


def rows(quick: bool) -> list[Row]:
    """Return what an agent adds, for every form of a table."""
    random = np.random.default_rng(0)
    plain = problems.numbers(random)
    return [
        *(
            _row(f"{form}, {kind}", options, most, quick)
            for kind, frame, most in (
                ("numbers", plain, MOST_NUMBERS),
                ("with categories and objects", problems.mixed(plain), MOST_MIXED),
            )
            for form, options in problems.forms(frame).items()
        ),
        _shop_row(random, 30 if quick else 300),
        *_linear_rows(200 if quick else 1000),
        *_storage_rows(quick),
    ]


def _shop_row(random: np.random.Generator, n_rounds: int) -> Row:
    """Return the time of a whole choice of `LatentUcb` inside an epoch, from pandas."""
    shop = problems.shop(random)
    agent, taken = Agent(policy=LatentUcb()), []
    for _ in range(n_rounds):
        visitor = problems.visitor(random)
        started = time.process_time()
        decision = agent.choose(shop, context=visitor)
        taken.append(1e6 * (time.process_time() - started))  # few of them open an epoch
        agent.learn(decision, float(random.random() < 0.09))
    found = Quartiles.of(taken)
    return Row(
        "`agent.choose` of `LatentUcb()` inside an epoch, 200 × 5 with categories and a context",
        f"{found} µs",
        f"≤ {MOST_SHOP:g} µs",
        found.median <= MOST_SHOP,
    )


# Costs of a call that are linear in its input

MOST_TENFOLD = 15.0


def _linear_rows(n: int) -> Iterator[Row]:
    """Yield how much longer calls take with ten times as many options, rows or decisions."""
    for name, prepare in {
        "choose among options": _chooses,
        "explain one of the options": _explains,
        "refuse options of which two have one id": _refuses,
        "observe rows of a log": _observes,
        "learn the rewards of decisions": _learns,
        "expire decisions": _expires,
    }.items():
        few, many = (_processor_time(prepare, size) for size in (n, 10 * n))
        what = f"`Agent`: {name}, {10 * n} against {n}"
        ratio = many / few
        yield Row(what, f"{ratio:.1f} ×", f"≤ {MOST_TENFOLD:g} ×", ratio <= MOST_TENFOLD)


def _processor_time(prepare: Callable[[int], Callable[[], Any]], n: int) -> float:
    """Return the shortest of three times; each call is prepared anew, and collects no garbage."""
    calls = [prepare(n) for _ in range(3)]
    gc.disable()
    try:
        return min(seconds(call, time.process_time) for call in calls)
    finally:
        gc.enable()


def _options(n: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    names = [f"item {index}" for index in range(n)]
    return {"sku": names, "price": random.normal(size=n), "size": random.normal(size=n)}


def _started() -> Agent:
    agent = Agent(id="sku", max_pending=10**6)
    agent.observe(_options(50), np.random.default_rng(1).normal(size=50))
    agent.choose(_options(50))
    return agent


def _chooses(n: int) -> Callable[[], Any]:
    agent, options = _started(), _options(n)
    return lambda: agent.choose(options)


def _explains(n: int) -> Callable[[], Any]:
    agent, options = _started(), _options(n)
    return lambda: agent.explain(options)


def _refuses(n: int) -> Callable[[], Any]:
    agent, options = _started(), _options(n)
    options["sku"][-1] = options["sku"][0]

    def refuse() -> None:
        with suppress(InvalidTableError):
            agent.choose(options)

    return refuse


def _observes(n: int) -> Callable[[], Any]:
    agent, options = _started(), _options(n)
    return lambda: agent.observe(options, options["price"])


def _waiting(n: int) -> tuple[Agent, list[str]]:
    agent = Agent(policy=AmbientOful(dim=2), id="sku", max_pending=10**6)
    return agent, [agent.choose(_options(2)).id for _ in range(n)]


def _learns(n: int) -> Callable[[], Any]:
    agent, ids = _waiting(n)
    return lambda: agent.learn(ids, [1.0] * n)


def _expires(n: int) -> Callable[[], Any]:
    agent, _ = _waiting(n)
    return lambda: agent.expire(before=timedelta(0))


# Databases

N_EARLIER = 10**6
"""Events in a database before it is measured."""

# For each problem: decisions per second of four processes, and events per second in catching up.
AT_LEAST = {"8 × 30": (500, 20_000), "a shop of 200 with a context": (250, 5_000)}
LONGEST_OPENING = 2.0


def _serve(
    url: str, problem: str, n_rounds: int, seed: int = 0, durability: str = "crash", name: str = ""
) -> list[float]:
    """Choose and learn through a database; return the µs of each round."""
    random, taken = np.random.default_rng(seed), []
    table = np.random.default_rng(0).normal(size=(N_OPTIONS, N_COLUMNS))
    shop = problems.shop(np.random.default_rng(0))
    with closing(Agent.open(url, name or problem, durability)) as agent:
        for _ in range(n_rounds):
            given: Any = (table, None) if problem == "8 × 30" else (shop, problems.visitor(random))
            started = time.perf_counter()
            decision = agent.choose(given[0], context=given[1])
            agent.learn(decision.id, float(random.random() < 0.09))
            taken.append(1e6 * (time.perf_counter() - started))
    return taken


def _storage_rows(quick: bool) -> Iterator[Row]:
    """Yield how fast agents are that live in SQLite."""
    n_rounds = 100 if quick else 1000
    context = get_context("spawn")
    for problem, (decisions, events) in AT_LEAST.items():
        with tempfile.TemporaryDirectory() as folder:
            url = str(Path(folder) / "shop.db")
            _fill(url, problem)
            _serve(url, problem, 200)
            for durability in DURABILITIES:
                what = f'choose + learn through SQLite, "{durability}", {problem}'
                taken = _serve(url, problem, n_rounds, 0, durability, f"{problem}, {durability}")
                yield Row(what, f"{Quartiles.of(taken)} µs", "", None)
            with context.Pool(4) as pool:
                pool.starmap(_serve, [(url, problem, 1, seed) for seed in range(4)])  # imports
                jobs = [(url, problem, n_rounds, seed) for seed in range(4)]
                rate = 4 * n_rounds / seconds(lambda: pool.starmap(_serve, jobs))  # noqa: B023
            what = f"choose + learn, four processes on SQLite, {problem}"
            yield Row(what, f"{rate:.0f}/s", f"≥ {decisions}/s", rate >= decisions)
            yield _catching_up(url, problem, n_rounds, events)
            took = seconds(lambda: Agent.open(url, problem).close())  # noqa: B023
            what = f"opening after {N_EARLIER:,} events and {5 * n_rounds} rounds, {problem}"
            yield Row(what, f"{took:.2g} s", f"≤ {LONGEST_OPENING:g} s", took <= LONGEST_OPENING)


def _fill(url: str, problem: str) -> None:
    """Let an agent be as if it had seen many events, which its checkpoint includes."""
    with closing(Agent.open(url, problem, "crash")) as agent:
        journal, member = agent.reading(), agent._member

        def fill(run: Run) -> None:
            run(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                "INSERT INTO halfseen_events (agent, number, kind, time, body) "
                "SELECT ?, i, 'choose', 0, '{}' FROM n",
                *(N_EARLIER, journal._agent),
            )
            run("UPDATE halfseen_agents SET last = ? WHERE name = ?", N_EARLIER, problem)

        journal.database.write(fill)
        member.state = member.state._replace(number=N_EARLIER)
        member.publish_if_due(1)


def _catching_up(url: str, problem: str, n_rounds: int, events: int) -> Row:
    """Return how fast a process applies what others have done."""
    with closing(Agent.open(url, problem)) as agent:
        before = agent.health()["events"]
        _serve(url, problem, n_rounds)
        taken = seconds(agent._member.follow, time.process_time)
        rate = (agent.health()["events"] - before) / taken
    what = f"catching up with another process, {problem}"
    return Row(what, f"{rate:.0f} events/s", f"≥ {events}/s", rate >= events)


def _row(name: str, options: Any, most: float, quick: bool) -> Row:
    agent = Agent(policy=AmbientOful(dim=1))
    agent.learn(agent.choose(options), 0.5)
    policy = AmbientOful(dim=agent.policy.dim)
    table = np.random.default_rng(0).normal(size=(N_OPTIONS, policy.dim))
    runs = {
        "agent": lambda: _microseconds(agent, options),
        "policy": lambda: _microseconds(policy, table),
    }
    taken = in_turns(runs, 3 if quick else 15)
    added = Quartiles.of(np.subtract(taken["agent"], taken["policy"]))
    return Row(
        f"added by an agent to choose + learn, {N_OPTIONS} × {N_COLUMNS}, {name}",
        f"{added} µs",
        f"≤ {most:g} µs",
        added.median <= most,
    )


def _microseconds(player: Any, options: Any) -> float:
    """Return the processor time of choose + learn."""

    def play() -> None:
        for _ in range(_ROUNDS):
            player.learn(player.choose(options), 0.5)

    return seconds(play, time.process_time) / _ROUNDS * 1e6
