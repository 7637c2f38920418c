"""The four problems behind the lower bound, and a policy that discovers their hidden sign."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.policies.abilities import Reports
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy
from halfseen.state import Whole
from halfseen.theory import Gaps, Problem, expected_wait, hard_instance_gaps
from halfseen.values import Choice, FloatArray, Note, Slate
from halfseen.worlds.base import Facts, Realization, Round, World, register_world

MASKINGS = ("oracle-augmented", "fully-masked")
_N_DECISIONS = 4  # of the eight equally likely arms


def _sign(name: str, value: Any) -> int:
    sign = checks.integer(name, value, -1, 1)
    if sign == 0:
        raise InvalidSettingError("must be 1 or -1, got 0", name=name)
    return sign


@register_world("hard-instance")
class HardInstanceWorld(World):
    """The hard family in four dimensions e_s, e_0, e_1, e_2 (features 0 to 3), of rank three.

    With probability 1/8 for each a, b = ±1 an arm is the decision arm (B_X/2)(a e_s + b e_0), of
    mean aνγ + bσΔ; otherwise it is the side arm ±(B_X/2)(e_1 + σ e_2)/√2, of mean 0, which
    reveals σ when both of its entries are seen. The gaps γ and Δ are those of the proof.

    Parameters
    ----------
    n_arms : int
        At least 4, so that a slate can show all four labels (a, b).
    horizon : int
    observe_prob : float
        In (0, 1/2].
    noise_scale : float
        R > 0. It moves means too: γ is at most R/√(8T).
    arm_bound, theta_bound : float
        B_X and S.
    reward_sign, hidden_sign : 1 or −1, optional
        ν and σ; by default drawn from the seed.
    masking : "oracle-augmented" or "fully-masked"
        As in the proof, where decision arms are never masked (so that the kind of every arm is
        known), or with every arm masked.

    Examples
    --------
    >>> realization = HardInstanceWorld(n_arms=5, horizon=3).realize(seed=0)
    >>> [round.slate.n_arms for round in realization.rounds()]
    [5, 5, 5]
    """

    n_arms: int = params.size(default=8, low=_N_DECISIONS)
    horizon: int = params.horizon(default=400)
    observe_prob: float = params.real(default=0.2, low=0.0, high=0.5, low_open=True)
    noise_scale: float = params.real(default=1.0, low=0.0, low_open=True)
    arm_bound: float = params.real(default=1.0, low=0.0, low_open=True)
    theta_bound: float = params.real(default=1.0, low=0.0, low_open=True)
    reward_sign: int | None = params.custom(default=None, check=_sign, kind="1 or −1")
    hidden_sign: int | None = params.custom(default=None, check=_sign, kind="1 or −1")
    masking: str = params.choice(default="oracle-augmented", words=MASKINGS)

    def realize(self, seed: int) -> "HardInstanceRealization":
        """Return the realization of a seed."""
        return HardInstanceRealization(self, checks.integer("seed", seed, 0))


class HardInstanceRealization:
    """One of the four problems and all rounds of a `HardInstanceWorld`.

    No policy sees the signs ν and σ. `gaps` are γ and Δ, `theta` is (2/B_X)(γν, Δσ, 0, 0), `basis`
    e_s, e_0 and (e_1 + σ e_2)/√2; `catalogue` has the eight equally likely arms: labels (+, +),
    (+, −), (−, +), (−, −), then both side arms twice.
    """

    def __init__(self, world: HardInstanceWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        drawn = seeding.stream(seed, "world", "signs").choice([-1, 1], 2).tolist()
        self.reward_sign: int = world.reward_sign or drawn[0]
        self.hidden_sign: int = world.hidden_sign or drawn[1]
        half, root = world.arm_bound / 2, math.sqrt(0.5)
        self.basis: FloatArray = np.zeros((4, 3))
        self.basis[0, 0] = self.basis[1, 1] = 1.0
        self.basis[2:, 2] = root, root * self.hidden_sign
        side = half * self.basis[:, 2]
        labels = [(a, b, 0.0, 0.0) for a in (half, -half) for b in (half, -half)]
        self.catalogue: FloatArray = np.array([*labels, side, side, -side, -side])
        self.gaps: Gaps = hard_instance_gaps(self.problem())
        signed = (self.gaps.reward_gap * self.reward_sign, self.gaps.hidden_gap * self.hidden_sign)
        self.theta: FloatArray = np.array([*signed, 0.0, 0.0]) / half

    @property
    def facts(self) -> Facts:
        """Facts; with unmasked decision arms half of all arms are seen entirely."""
        world = self.world
        augmented = world.masking == "oracle-augmented"
        prob = (1 + world.observe_prob) / 2 if augmented else world.observe_prob
        return world.facts(self.seed, dim=4, observe_prob=prob, rank=3, basis=self.basis)

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; per round arms, masks, noise are drawn."""
        world, random = self.world, seeding.stream(self.seed, "world", "rounds")
        means = self.catalogue @ self.theta
        augmented = world.masking == "oracle-augmented"
        for _ in range(world.horizon):
            drawn = random.integers(len(self.catalogue), size=world.n_arms)
            arms = self.catalogue[drawn]
            mask = random.random(arms.shape) < world.observe_prob
            if augmented:
                mask |= (drawn < _N_DECISIONS)[:, None]
            noise = world.noise_scale * random.standard_normal()
            yield Round(Slate(np.where(mask, arms, np.nan)), means[drawn], float(noise), arms)

    def problem(self) -> Problem:
        """Return the constants of the problem; E[xx'] has the eigenvalue B_X²/8 three times."""
        world = self.world
        return Problem(
            dim=4,
            rank=3,
            n_arms=world.n_arms,
            horizon=world.horizon,
            observe_prob=world.observe_prob,
            arm_bound=world.arm_bound,
            top_eigenvalue=world.arm_bound**2 / 8,
            last_eigenvalue=world.arm_bound**2 / 8,
            incoherence=math.sqrt(4 / 3),
            theta_bound=world.theta_bound,
            noise_scale=world.noise_scale,
        )


@register_policy
class SignSeeker(Reports, Policy):
    """Waits for the hidden sign σ of `HardInstanceWorld`, which a side arm reveals.

    It knows the family: features 0 and 1 label decision arms, of mean aνγ + bσΔ with Δ ≥ γ, and the
    signs of features 2 and 3 of a side arm agree if σ = 1. It is told ν and ignores rewards. So its
    regret is the cost of discovering σ from slates (`halfseen.theory.discovery_cost`).

    Examples
    --------
    >>> policy, nan = SignSeeker(dim=4), float("nan")
    >>> policy.choose([[0.5, -0.5, 0, 0], [nan, nan, 0.35, nan]]).arm, policy.hidden_sign
    (0, 0)
    >>> policy.choose([[0.5, -0.5, 0, 0], [nan, nan, 0.35, 0.35]]).arm, policy.hidden_sign
    (1, 1)
    """

    STATE: ClassVar = {"hidden_sign": Whole(-1, 1), "_wait": Whole()}

    reward_sign: int = params.custom(default=1, check=_sign, kind="1 or −1", doc="ν.")

    def setup(self) -> None:
        """Start without the hidden sign."""
        checks.integer("dim", self.dim, 4)
        self.hidden_sign, self._wait = 0, 0

    @property
    def current_rank(self) -> int:
        """The rank of the family."""
        return 3

    def diagnostics(self) -> dict[str, Any]:
        """Return how many rounds were played without the hidden sign."""
        return {"wait": [self._wait]}

    def prepare(self, slate: Slate) -> None:
        """Look for the hidden sign; count the round if it is not found."""
        self.collect(slate)
        self._wait += self.hidden_sign == 0

    def collect(self, slate: Slate) -> None:
        """Look for side arms with both entries; if they disagree, the majority counts."""
        if not self.hidden_sign:
            sides = np.sign(np.nan_to_num(slate.table[:, 2:4]))
            self.hidden_sign = int(np.sign(sides.prod(axis=1).sum()))

    def decide(self, slate: Slate) -> Choice:
        """Play the best decision arm as far as the signs are known; a side arm counts as 0."""
        labels = np.sign(np.nan_to_num(slate.table[:, :2]))
        decisive = (labels != 0).all(axis=1)
        # Δ ≥ γ, so σ counts first.
        scores = self.reward_sign * labels[:, 0] + 2 * self.hidden_sign * labels[:, 1]
        return Choice.best(np.where(decisive, scores, 0.0))

    def update(self, note: Note, reward: float) -> None:
        """Learn nothing from rewards."""


def wait_for_sign(realization: Realization) -> dict[str, list[float]]:
    """Return how many rounds are played before a side arm shows both entries, and with them σ.

    `expected` is the mean of this number that the construction implies.
    """
    wait = 0
    for round in realization.rounds():
        if (round.slate.values[:, 2:] != 0).all(axis=1).any():  # hidden entries are 0
            break
        wait += 1
    if not isinstance(realization, HardInstanceRealization):
        raise InvalidSettingError(f"needs a hard instance, got {type(realization).__name__}")
    world = realization.world
    expected = expected_wait(
        n_arms=world.n_arms, observe_prob=world.observe_prob, horizon=world.horizon
    )
    return {"wait": [float(wait)], "expected": [expected]}
