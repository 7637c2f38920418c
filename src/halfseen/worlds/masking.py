"""Which entries of the offered arms are seen: mask laws by name.

Every law turns one table of uniform numbers, of the shape of the arms, into a mask. So a world
draws the same arms, means and noise whichever law it has.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.params import Value
from halfseen.values import BoolArray, FloatArray

_LAWS: dict[str, type["MaskLaw"]] = {}


class MaskLaw(Value, ABC):
    """Decides which entries of the offered arms are seen.

    A law of your own has a name, `law`, and writes `seen`. If that takes `round` as well, the law
    may change with time.

    Attributes
    ----------
    law : str
        Its name.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> class Fading(MaskLaw):
    ...     '''Twice as much is seen at first as after `rounds` rounds.'''
    ...     law = "fading"
    ...     rounds: int = params.integer(default=100, low=1)
    ...     def seen(self, uniforms, arms, observe_prob, round):
    ...         return uniforms < observe_prob * 2 / (1 + min(1, round / self.rounds))
    >>> LowRankWorld(observe_prob=0.4, masks={"law": "fading", "rounds": 50}).masks
    Fading(rounds=50)
    """

    law: ClassVar[str]
    _sees_round: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._sees_round = "round" in inspect.signature(cls.seen).parameters
        if "law" in cls.__dict__:
            checks.unused_name(cls.law, cls, _LAWS)
            _LAWS[cls.law] = cls

    @abstractmethod
    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen.

        `uniforms` has the shape of the arms, and may be overwritten. An argument `round`, counted
        from 1, may follow.
        """

    def drawn(
        self, uniforms: FloatArray, arms: FloatArray, observe_prob: float, round: int
    ) -> BoolArray:
        """Return what `seen` does in a round."""
        more = {"round": round} if self._sees_round else {}
        return self.seen(uniforms, arms, observe_prob, **more)

    def stated_prob(self, observe_prob: float, dim: int) -> float | FloatArray:
        """Return the probability that facts state: an array (dim,) where features differ."""
        return observe_prob

    def to_dict(self) -> dict[str, Any]:
        """Return the law's name and its settings, as plain JSON types."""
        return {"law": self.law, **self.settings()}


def mask_law(name: str, value: Any) -> MaskLaw:
    """Return the mask law that a name, a mapping with the key "law", or a law itself describes.

    >>> mask_law("masks", "bernoulli")
    Bernoulli()
    >>> mask_law("masks", {"law": "blocks", "size": 5})
    Blocks(size=5)
    """
    if isinstance(value, MaskLaw):
        return value
    settings = dict(value) if isinstance(value, Mapping) else {"law": value}
    law = checks.one_of(f"{name}.law", settings.pop("law", None), tuple(_LAWS))
    return _LAWS[law](**settings)


class Bernoulli(MaskLaw):
    """Every entry is seen with the same probability, independently: the law of the paper.

    Notes
    -----
    Paper: eq:missing_model_bernoulli
    """

    law = "bernoulli"

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen."""
        return uniforms < observe_prob


_PARTS = 2.0**26  # a double's 53 random bits, cut in two, are two independent uniform numbers


class PerFeature(MaskLaw):
    """Every feature has its own probability, the same in all rounds and realizations.

    The probabilities are low + (high − low) u^k at evenly spaced u in (0, 1), in an order that is
    the same in all worlds. The power k makes their average the world's `observe_prob`; if that is
    midway, k = 1 and the probabilities themselves are evenly spaced.

    Parameters
    ----------
    low, high : float, optional
        Range of the probabilities. By default `observe_prob` ∓ half its distance from 0 or 1,
        whichever is nearer.

    Examples
    --------
    >>> PerFeature(low=0.1, high=0.9).stated_prob(0.5, 4).round(3).tolist()
    [0.2, 0.4, 0.8, 0.6]
    """

    law = "per-feature"
    low: float | None = params.probability(default=None)
    high: float | None = params.probability(default=None)

    def setup(self) -> None:
        """Raise InvalidSettingError unless low ≤ high."""
        if self.low is not None and self.high is not None:
            checks.real("high", self.high, self.low, 1.0)

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen."""
        return uniforms < self.stated_prob(observe_prob, arms.shape[1])

    @lru_cache(maxsize=64)  # noqa: B019 (of equal laws one is kept)
    def stated_prob(self, observe_prob: float, dim: int) -> FloatArray:
        """Return the probability of each feature, shape (dim,), read-only."""
        half = min(observe_prob, 1.0 - observe_prob) / 2
        low = observe_prob - half if self.low is None else self.low
        high = observe_prob + half if self.high is None else self.high
        if not low <= observe_prob <= high:
            raise InvalidSettingError(
                f"must be in {checks.interval(low, high)}, the range of the per-feature law, got "
                f"{observe_prob!r}: set masks.low and masks.high around it",
                name="observe_prob",
            )
        probs = np.full(dim, observe_prob)
        if low < observe_prob < high:
            grid = (np.arange(dim) + 0.5) / dim
            target = (observe_prob - low) / (high - low)
            # As the logarithm of k grows, the average falls from 1 to 0.
            power = root_of(
                lambda log_k: target - float((grid ** math.exp(log_k)).mean()), -40.0, 40.0
            )
            probs = low + (high - low) * grid ** math.exp(power)
        order = seeding.stream(0, "masks", "per-feature").permutation(dim)
        probs = probs[order]
        probs.setflags(write=False)
        return probs


class PerArm(MaskLaw):
    """Every arm has its own probability, drawn in every round: some arms show more than others.

    It is uniform on `observe_prob` ± spread · min(`observe_prob`, 1 − `observe_prob`).

    Parameters
    ----------
    spread : float
        In [0, 1].
    """

    law = "per-arm"
    spread: float = params.real(default=0.5, low=0.0, high=1.0)

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen."""
        # The first uniform of an arm is used twice: its leading bits give the arm's probability.
        scaled = uniforms[:, 0] * _PARTS
        place = np.floor(scaled)
        uniforms[:, 0] = scaled - place
        half = self.spread * min(observe_prob, 1.0 - observe_prob)
        probs = observe_prob + half * ((2.0 * place + 1.0) / _PARTS - 1.0)
        return uniforms < probs[:, None]


class Blocks(MaskLaw):
    """Neighbouring features are seen or hidden together, as when a whole source is missing.

    Parameters
    ----------
    size : int
        Number of features per block; the last block may be smaller.
    """

    law = "blocks"
    size: int = params.integer(default=3, low=1)

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen."""
        together = uniforms[:, :: self.size] < observe_prob
        return np.repeat(together, self.size, axis=1)[:, : arms.shape[1]]


class ValueDependent(MaskLaw):
    """Whether a value is seen depends on the value itself: missing not at random.

    P(seen | x) = 1 / (1 + exp(−c − strength · |x|/scale)), or with x itself if `signed`; scale is
    the root mean square of the slate, and c is such that the average is `observe_prob` if x/scale
    is standard normal. For other laws of x it is
    close to that: in the low-rank world .29 at strength 1, .27 at 3 and .34 at −3, instead of .3.

    Parameters
    ----------
    strength : float
        In [−20, 20]. Positive: large values are seen more often; negative: less often; 0: the
        Bernoulli law.
    signed : bool
        Whether the sign counts, so that a missing entry is probably on one side of zero.
    """

    law = "value-dependent"
    strength: float = params.real(default=1.0, low=-20.0, high=20.0)
    signed: bool = params.flag(default=False)

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen; NaN is not."""
        if observe_prob == 1.0:
            return ~np.isnan(arms)
        known = arms[~np.isnan(arms)]
        scale = math.sqrt(float(known @ known) / max(known.size, 1)) or 1.0
        lift = _intercept(self.strength, observe_prob, self.signed)
        sizes = arms / scale if self.signed else np.abs(arms / scale)
        return uniforms < logistic(lift + self.strength * sizes)


@lru_cache(maxsize=64)
def _intercept(strength: float, observe_prob: float, signed: bool) -> float:
    """Return c with E[logistic(c + strength·|Z|)] = p for a standard normal Z, or Z if `signed`."""
    sizes = (np.arange(4000, dtype=np.float64) + 0.5) * (8.5 / 4000)
    if signed:
        sizes = np.concatenate([-sizes, sizes])
    weights = np.exp(-(sizes**2) / 2)
    weights /= weights.sum()
    bound = 50.0 + 8.5 * abs(strength)
    return root_of(
        lambda c: float(weights @ logistic(c + strength * sizes)) - observe_prob, -bound, bound
    )


def logistic(values: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)), by tanh, which cannot overflow."""
    return 0.5 + 0.5 * np.tanh(values / 2)


def root_of(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of an increasing function by bisection, to about the last bit."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
