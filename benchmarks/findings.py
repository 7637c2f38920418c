"""Everything that is measured, part by part, each with its progress bar."""

from typing import NamedTuple

from benchmarks import dense, memory, real_tables, rounds, speed
from benchmarks.agent import Added, measure_agent, n_forms
from benchmarks.growth import Growth, horizons, measure_growth
from benchmarks.harness import Compared, Plan, Quartiles, Watch
from benchmarks.large import Large, measure_large, n_large
from benchmarks.latent import Latent, measure_latent
from benchmarks.line_profile import Profile, profile
from benchmarks.machine import Rates, rates
from benchmarks.peers.contest import Standing, hold_contest, steps
from benchmarks.real_tables import Problem, measure_real_tables
from benchmarks.reproduction import Reproduction, measure_reproduction, play_some_cells
from benchmarks.rotation import Size, rotation_of
from benchmarks.service import Service, cases, measure_service
from benchmarks.startup import compile_seconds, import_seconds


class Findings(NamedTuple):
    rates: Rates
    rounds: list[rounds.Outcome]
    lock: Quartiles
    ambient: Compared
    ambient_bandwidth: float
    absorbing: Compared
    opening: Compared
    solver: str
    contest: list[Standing]
    real_tables: list[Problem]
    whole_runs: list[speed.Result]
    reproduction: Reproduction
    growth: Growth
    latent: Latent
    service: list[Service]
    agent: list[Added]
    large: list[Large]
    memory: dict[str, tuple[int, int]]
    start: tuple[float, float]
    profiles: dict[str, Profile]


def measure_all(plan: Plan, watch: Watch) -> Findings:
    with watch.part("floors", len(rounds.CASES) + 2) as advance:
        machine = _and(advance, rates())
        lock = _and(advance, rounds.measure_lock())
        outcomes = [_and(advance, rounds.compare_rounds(case, plan)) for case in rounds.CASES]
    with watch.part("dim 1000", 3) as advance:
        ambient, bandwidth = _and(advance, dense.compare_ambient(plan))
        absorbing = _and(advance, dense.compare_absorbing(plan))
        opening, solver = _and(advance, dense.compare_opening(plan))
    with watch.part("peers (the first time they are installed)", steps(plan)) as advance:
        contest = hold_contest(plan, advance)
    with watch.part("real tables", real_tables.steps(plan)) as advance:
        problems = measure_real_tables(plan, advance)
    repeats = sum(plan.pick(run.repeats, 3) for run in speed.RUNS)
    with watch.part("yardstick", repeats) as advance:
        whole_runs = [speed.measure_run(run, plan, advance) for run in speed.RUNS]
    with watch.part("reproduce synthetic", 4) as advance:
        reproduction = measure_reproduction(plan, advance)
    with watch.part("growth", len(horizons(plan))) as advance:
        growth = measure_growth(plan, advance)
    with watch.part("LatentUcb", 5) as advance:
        latent = measure_latent(plan, advance)
    with watch.part("LatentUcb in long service", len(cases(plan))) as advance:
        service = measure_service(plan, advance)
    with watch.part("agent", n_forms()) as advance:
        agent = measure_agent(plan, advance)
    with watch.part("large dimension", n_large(plan)) as advance:
        large = measure_large(plan, advance)
    with watch.part("memory and start", len(memory.MEMORY_CASES) + 2) as advance:
        held = memory.measure_memory(advance)
        start = _and(advance, import_seconds()), _and(advance, compile_seconds())
    with watch.part("profiles", len(rounds.CASES) + 2) as advance:
        profiles = {str(case.size): _and(advance, _profile_of(case)) for case in rounds.CASES}
        profiles["ambient"] = _and(advance, _profile_of_ambient())
        profiles["cells"] = _and(advance, profile(play_some_cells))
    return Findings(
        machine, outcomes, lock, ambient, bandwidth, absorbing, opening, solver, contest, problems,
        whole_runs, reproduction, growth, latent, service, agent, large, held, start, profiles,
    )  # fmt: skip


def _and(advance, found):
    advance()
    return found


def _profile_of(case: rounds.Case) -> Profile:
    slates = rotation_of(case.size, 4e6).endless()
    policy = rounds.tofu_in_epoch(case.size, slates)
    return profile(lambda: _play(policy, slates, 2 * case.n_rounds))


def _profile_of_ambient() -> Profile:
    rotation = rotation_of(Size(dense.DIM, dense.RANK, dense.AMBIENT_ARMS), 4e6)
    policy = dense.ambient_policies(rotation)[0]
    return profile(lambda: _play(policy, rotation.endless(), 50))


def _play(policy, slates, n_rounds: int) -> None:
    for _ in range(n_rounds):
        rounds.play_round(policy, slates)
