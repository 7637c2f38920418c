"""Recorded arms and rewards, from a file or from arrays."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.masking import MaskLaw, mask_param
from halfseen.worlds.recorded import Columns, Recorded, load, record_arrays, save

STANDARDIZATIONS = ("none", "scale")


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise InvalidSettingError(f"must be a string, got {value!r}", name=name)
    return str(os.fspath(value))


def _column_names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not value:
        raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
    return tuple(str(each) for each in value)


@register_world("table")
class TableWorld(World):
    """Recorded rounds: every arm with its features, holes included, and its mean or reward.

    A file is read at the first `realize`, and once per process.

    - `.csv`: one line per offered arm, with a column for the round, one of mean and reward, maybe
      one for the arm's name and one called `chosen`; all other columns are features. A column of
      texts is a category, one feature per text. Empty cells, NaN and NA are holes. Rounds may have
      different numbers of arms.
    - `.npz`: `arms` (rounds, n_arms, dim) with NaN holes and `means` or `rewards`
      (rounds, n_arms); or `arms` (n_rows, dim), `means` or `rewards` (n_rows,) and `rounds`
      (n_rows,); maybe names in `features` (dim,).
    - a folder with the same arrays as `.npy` files, which are memory-mapped: `save` writes either.

    Parameters
    ----------
    path : str
    features : sequence of str, optional
        The columns to use.
    round_column, arm_column, mean_column, reward_column : str
        Names of the other columns of a `.csv`.
    observe_prob : float
        Probability that a recorded entry is shown; 1 shows all of them.
    masks : MaskLaw, str or mapping
        Which recorded entries are shown.
    noise_scale : float, optional
        Standard deviation of Gaussian noise that is added to means (by default none). Recorded
        rewards get no noise: there it is a fact for policies that need it.
    horizon : int, optional
        Use only that many rounds, the first after a shuffle.
    shuffle : bool
        Rounds come in an order drawn from the seed. Without it, without masks and without noise
        all seeds are the same.
    standardize : "none" or "scale"
        "scale" divides each feature by the root mean square of its recorded entries. Means are not
        subtracted: the second moment about zero is low-rank, and rewards are linear in the arms.
    rank : int, optional
        A fact for methods that need one.
    recorded : Recorded, optional
        Instead of a path: see `from_arrays`.

    Examples
    --------
    >>> arms = [[[1.0, 2.0], [3.0, float("nan")]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> world = TableWorld.from_arrays(arms, means=[[0.1, 0.7], [0.5, 0.2]])
    >>> [round.means.tolist() for round in world.realize(seed=0).rounds()]
    [[0.1, 0.7], [0.5, 0.2]]
    """

    path: str | None = params.custom(default=None, check=_path, kind="str")
    features: tuple[str, ...] | None = params.custom(
        default=None, check=_column_names, kind="sequence of str", plain=list
    )
    round_column: str = params.custom(default="round", check=checks.text, kind="str")
    arm_column: str = params.custom(default="arm", check=checks.text, kind="str")
    mean_column: str = params.custom(default="mean", check=checks.text, kind="str")
    reward_column: str = params.custom(default="reward", check=checks.text, kind="str")
    observe_prob: float = params.probability(default=1.0)
    masks: MaskLaw = mask_param()
    noise_scale: float | None = params.real(default=None, low=0.0)
    horizon: int | None = params.horizon(default=None)
    shuffle: bool = params.flag(default=False)
    standardize: str = params.choice(default="none", words=STANDARDIZATIONS)
    rank: int | None = params.integer(default=None, low=1)
    recorded: Recorded | None = params.custom(
        default=None, check=lambda _, value: value, kind="Recorded", plain=lambda it: it.to_dict()
    )

    def validate(self) -> None:
        """Raise InvalidSettingError unless there is either a file or arrays."""
        if (self.path is None) == (self.recorded is None):
            raise InvalidSettingError(
                f"must name a .csv, a .npz or a folder, got {self.path!r}: for arrays, use "
                f"TableWorld.from_arrays without a path",
                name="path",
            )

    @classmethod
    def from_arrays(
        cls, arms: Any, *, means: Any = None, rewards: Any = None, **settings: Any
    ) -> "TableWorld":
        """Return the world of arrays, which are copied.

        Parameters
        ----------
        arms : array_like, shape (rounds, n_arms, dim), or list of (n_arms, dim)
            NaN where nothing was recorded.
        means, rewards : array_like, shape (rounds, n_arms), or list of (n_arms,)
            One of the two.
        **settings
            All others of the class except for those of files.
        """
        found = {"arms": arms, "means": means, "rewards": rewards}
        given = {name: value for name, value in found.items() if value is not None}
        table = record_arrays(given, settings.pop("features", None), "the arrays given")
        table = replace(table, values=np.array(table.values), payoffs=np.array(table.payoffs))
        return cls(recorded=table, **settings)

    def table(self) -> Recorded:
        """Return the recorded table; a file is read if it has not been read yet."""
        if self.recorded is not None:
            return self.recorded
        names = (self.round_column, self.arm_column, self.mean_column, self.reward_column)
        return load(str(self.path), Columns(*names, self.features))

    def shares(self) -> dict[str, float]:
        """Return which features the table has, and the share of recorded entries of each.

        >>> arms = [[[1.0, 2.0], [3.0, float("nan")]]]
        >>> TableWorld.from_arrays(arms, means=[[0.1, 0.7]]).shares()
        {'0': 1.0, '1': 0.5}
        """
        table = self.table()
        return dict(zip(table.names, table.shares.tolist(), strict=True))

    def save(self, path: str | os.PathLike[str]) -> "TableWorld":
        """Write the table to a .npz file (without a suffix: a folder); return its world."""
        save(self.table(), os.fspath(path))
        return self.replace(path=path, recorded=None, features=None)

    def data_paths(self) -> dict[str, Path]:
        """Return the file or folder of the table."""
        return {} if self.path is None else {"path": Path(self.path)}

    def realize(self, seed: int) -> "TableRealization":
        """Return the realization of a seed."""
        return TableRealization(self, checks.integer("seed", seed, 0))


class TableRealization:
    """All rounds of a `TableWorld` in the order, with the masks and with the noise of a seed."""

    def __init__(self, world: TableWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, world.table()
        dim, n_rounds = len(self.table.names), self.table.n_rounds
        if world.horizon is not None and world.horizon > n_rounds:
            raise InvalidSettingError(
                f"must be in [1, {n_rounds}], as many rounds as are recorded, got "
                f"{world.horizon}: lower it or leave it out",
                name="horizon",
            )
        if world.rank is not None:
            checks.integer("rank", world.rank, 1, dim)
        world.masks.stated_prob(world.observe_prob, dim)

    @property
    def facts(self) -> Facts:
        """Facts about this realization.

        Where the whole table has holes, `observe_prob` is, for each feature, its share of recorded
        entries times the probability that one of these is shown.
        """
        world, table = self.world, self.table
        shown = world.masks.stated_prob(world.observe_prob, len(table.names))
        return Facts(
            seed=self.seed,
            dim=len(table.names),
            n_arms=table.n_arms,
            horizon=world.horizon or table.n_rounds,
            observe_prob=shown if table.shares.min() == 1.0 else table.shares * shown,
            noise_scale=world.noise_scale if table.noisy else world.noise_scale or 0.0,
            rank=world.rank,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; the full view of arms has the recorded holes."""
        world, table, seed = self.world, self.table, self.seed
        masks, noises = (seeding.stream(seed, "world", name) for name in ("masks", "noise"))
        order: Any = range(table.n_rounds)
        if world.shuffle:
            order = seeding.stream(seed, "world", "order").permutation(table.n_rounds)
        scale = np.where(table.sizes > 0, table.sizes, 1.0) if world.standardize == "scale" else 1.0
        noise_scale = 0.0 if table.noisy else world.noise_scale or 0.0
        for index in order[: world.horizon]:
            rows = slice(table.starts[index], table.starts[index + 1])
            arms = np.divide(table.values[rows], scale, dtype=np.float64)
            mask = world.masks.mask(masks, arms, world.observe_prob)
            noise = noise_scale * noises.standard_normal()
            slate = Slate(np.where(mask, arms, np.nan))
            yield Round(slate, table.payoffs[rows].copy(), float(noise), arms)
