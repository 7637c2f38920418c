"""What a world is: a distribution over realizations, which are the same for all policies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.params import Value
from halfseen.seeding import stream
from halfseen.values import FloatArray, Slate


class Round(NamedTuple):
    """One round of a realization; a policy sees the slate only.

    Attributes
    ----------
    slate : Slate
        What a policy sees.
    means : ndarray, shape (n_arms,)
        Expected reward of each arm.
    noise : float, or ndarray of shape (n_arms,)
        Added to the mean of the chosen arm; an array where it differs between arms, as with clicks.
    arms : ndarray, shape (n_arms, dim)
        The arms with nothing hidden (NaN where nothing was recorded): what the full view shows.

    Examples
    --------
    >>> arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round = Round(Slate(arms), means=np.array([0.25, 0.5]), noise=0.25, arms=arms)
    >>> round.reward(1)
    0.75
    """

    slate: Slate
    means: FloatArray
    noise: float | FloatArray
    arms: FloatArray

    def reward(self, arm: int) -> float:
        """Return what an arm pays: its mean and its noise.

        >>> arms = np.eye(2)
        >>> Round(Slate(arms), np.array([0.25, 0.5]), np.array([0.75, -0.5]), arms).reward(0)
        1.0
        """
        noise = self.noise.item(arm) if isinstance(self.noise, np.ndarray) else self.noise
        return self.means.item(arm) + noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a policy may know about a realization; None if unknown.

    Attributes
    ----------
    seed : int
    dim, n_arms, horizon : int
        `n_arms` is None where it changes from round to round.
    observe_prob : float, or ndarray of shape (dim,)
        Probability that an entry is seen, one per feature where they differ; the average where it
        depends on more than the feature.
    noise_scale : float
        Standard deviation of the reward noise.
    rank : int
        Dimension of the subspace in which the arms lie, or nearly lie.
    basis : ndarray, shape (dim, rank)
        That subspace, as orthonormal columns; None if it changes. Only policies whose `needs` name
        it get it.
    latent_variances : ndarray, shape (rank,)
        Variance of the arms along each column of the basis: the subspace's spectrum.

    Examples
    --------
    >>> facts = Facts(seed=0, dim=30, horizon=400, rank=3)
    >>> facts.rank, facts.observe_prob
    (3, None)
    """

    seed: int
    dim: int
    horizon: int
    n_arms: int | None = None
    observe_prob: float | FloatArray | None = None
    noise_scale: float | None = None
    rank: int | None = None
    basis: FloatArray | None = None
    latent_variances: FloatArray | None = None


class Realization(Protocol):
    """One draw from a world: `rounds` yields the same rounds every time.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> realization = LowRankWorld(dim=6, rank=2, horizon=5).realize(seed=0)
    >>> realization.facts.dim, len(list(realization.rounds()))
    (6, 5)
    """

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds in order, in bounded memory."""


def streams(seed: int) -> tuple[np.random.Generator, np.random.Generator, np.random.Generator]:
    """Return the random numbers of a realization: of rows, of masks and of noise."""
    rows, masks, noise = (stream(seed, "world", name) for name in ("rows", "masks", "noise"))
    return rows, masks, noise


class World(Value, ABC):
    """A distribution over realizations, with declared parameters.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> world = LowRankWorld(dim=6, rank=2, horizon=5, n_arms=4)
    >>> next(world.realize(seed=0).rounds()).slate.n_arms
    4
    """

    @abstractmethod
    def realize(self, seed: int) -> Realization:
        """Return the realization of a seed."""

    def facts(self, seed: int, **more: Any) -> Facts:
        """Return facts that are settings of the same name, and more, which take precedence."""
        names = ("dim", "n_arms", "horizon", "observe_prob", "noise_scale", "rank")
        known = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return Facts(**{"seed": seed, **known, **more})

    def data_paths(self) -> dict[str, Path]:
        """Return the files or folders that the world reads, by the setting that has their path.

        Stored results are used again only while the contents of these stay the same. Files that
        ship with the world have a name that is no setting.
        """
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the name of its kind and its settings, as plain JSON types.

        >>> from halfseen import LabelsWorld
        >>> LabelsWorld(table="wine").to_dict()
        {'kind': 'labels', 'table': 'wine', 'horizon': 2000, 'observe_prob': 1.0}
        """
        kinds = [kind for kind, world in _KINDS.items() if world is type(self)]
        if not kinds:
            raise InvalidSettingError(
                f"world {type(self).__name__} has no name: put @register_world on its class"
            )
        return {"kind": kinds[0], **self.settings()}


W = TypeVar("W", bound=type[World])

_KINDS: dict[str, type[World]] = {}


def register_world(kind: str) -> Callable[[W], W]:
    """Make a world known by a name, so that its results can be stored (a decorator).

    Raises
    ------
    InvalidSettingError
        It is no subclass of `World`, or a world of halfseen has this name.

    Examples
    --------
    >>> from halfseen import LowRankWorld, params
    >>> @register_world("small")
    ... class SmallWorld(LowRankWorld):
    ...     '''A low-rank world with other defaults.'''
    ...     dim: int = params.size(default=6)
    ...     rank: int = params.integer(default=2, low=1)
    >>> SmallWorld().dim
    6
    """
    if not isinstance(kind, str):
        raise InvalidSettingError(
            f"a world is registered by a name, @register_world('mine'), got {kind!r}"
        )

    def keep(world: W) -> W:
        if not (isinstance(world, type) and issubclass(world, World)):
            raise InvalidSettingError(f"only a subclass of World can be a world, got {world!r}")
        checks.unused_name(kind, world, _KINDS)
        _KINDS[kind] = world
        return world

    return keep


def world_from(plain: Mapping[str, Any]) -> World:
    """Return the world that `to_dict` made plain: its kind, and its settings by name.

    >>> world_from({"kind": "low-rank", "dim": 12}).dim
    12
    """
    settings = dict(plain)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidSettingError(
            f"must be one of {sorted(_KINDS)}, got {kind!r}{checks.did_you_mean(kind, _KINDS)}",
            name="kind",
        )
    return _KINDS[kind](**settings)
