"""The policy without settings: likelihood subspace, posterior coordinates, scales from the data."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from halfseen.core.held_out import HeldOutRank
from halfseen.core.rank import RankRule, as_rule
from halfseen.policies.registry import register
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_settings import COUNTED, ESTIMATED
from halfseen.values import Decision, Slate

RADIUS_SCALE = 0.3
"""Chosen by benchmarks/choose_defaults.py on worlds and seeds that no study reports."""


@register
class LatentUcb(TofuPov):
    """Learns in the most likely subspace of the arms, and needs to be told nothing.

    All of it are parts of `TofuPov`, which can be switched on there one at a time:

    - the subspace by maximum likelihood of what is seen (`subspace="likelihood"`), its rank by
      held-out entries (`HeldOutRank`), so that no observation probability and no rank is needed;
    - coordinates by posterior mean (`features="posterior-mean"`);
    - noise, size of the parameter and penalty from the rewards (`"estimated"`);
    - epochs that grow by a quarter from the second round on, all rewards replayed in each;
    - where low rank does not help to predict rewards, zero-filled OFUL plays (`fallback=True`).

    Nothing depends on the units of features or rewards.

    Parameters
    ----------
    dim : int, optional
        Number of features; by default that of the first slate.
    rank : int or RankRule, optional
        By default chosen by held-out entries, and again when there are clearly more arms.
    observe_prob : float or array of shape (dim,), optional
        Only helps to find a first subspace; by default counted.
    exploration : "ucb", "thompson" or "greedy"
        How far from the estimates a choice may be.
    radius_scale : float
        Multiplies the radius of "ucb", and the noise scale of "thompson".
    noise_scale, theta_bound, ridge : float, optional
        R, S, λ; by default estimated. With a λ of your own, coordinates are in the arms' units.
    subspace : "likelihood" or "covariance"
    features : "posterior-mean" or "least-squares"
    growth : float
        Factor between epoch starts.
    burn_in : int
        Rounds before the first epoch.
    replay : "full", "burn-in", "burn-in-once" or "none"
        Which earlier rewards an epoch starts from; the fallback needs them all.
    fallback : bool
        Whether zero-filled OFUL may play.
    memory_bytes : int
        Room for a uniform sample of the offered arms.
    seed : int
        Of that sample and of "thompson".
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LatentUcb()
    >>> random = np.random.default_rng(0)
    >>> directions = random.normal(size=(2, 12))
    >>> for _ in range(20):
    ...     arms = random.normal(size=(6, 2)) @ directions
    ...     decision = policy.choose(np.where(random.random(arms.shape) < 0.5, arms, np.nan))
    ...     policy.learn(decision, float(arms[decision.arm].sum()))
    >>> policy.dim, policy.current_rank
    (12, 2)
    """

    told: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(
        self,
        *,
        dim: int | None = None,
        rank: int | RankRule | None = None,
        observe_prob: Any = None,
        exploration: str = "ucb",
        radius_scale: float = RADIUS_SCALE,
        noise_scale: float | None = None,
        theta_bound: float | None = None,
        ridge: float | None = None,
        subspace: str = "likelihood",
        features: str = "posterior-mean",
        growth: float = 1.25,
        burn_in: int = 1,
        replay: str = "full",
        fallback: bool = True,
        memory_bytes: int = 64_000_000,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        self._choices: dict[str, Any] = {
            "rank": HeldOutRank() if rank is None else rank,
            "observe_prob": COUNTED if observe_prob is None else observe_prob,
            "exploration": exploration,
            "radius_scale": radius_scale,
            "noise_scale": ESTIMATED if noise_scale is None else noise_scale,
            "theta_bound": ESTIMATED if theta_bound is None else theta_bound,
            "ridge": ESTIMATED if ridge is None else ridge,
            "subspace": subspace,
            "features": features,
            "growth": growth,
            "burn_in": burn_in,
            "replay": replay,
            "fallback": fallback,
            "memory_bytes": memory_bytes,
            "seed": seed,
            "max_open": max_open,
        }
        self._begun = dim is not None
        # Until the first slate, the smallest dimension for which all settings make sense.
        super().__init__(
            dim=_least_dim(rank, observe_prob) if dim is None else dim, **self._choices
        )

    @property
    def is_begun(self) -> bool:
        """Whether the number of features is known: given, or taken from the first slate."""
        return self._begun

    def diagnostics(self) -> dict[str, Any]:
        """Return ranks and scales of all epochs, and how often zero-filled OFUL played."""
        log = self.epoch_log
        last = log[-1] if log else None
        return super().diagnostics() | {
            "fallback_rounds": self.fallback_rounds,
            "noise_scale": last.noise_scale if last else None,
            "theta_bound": last.theta_bound if last else None,
        }

    def settings(self) -> dict[str, Any]:
        """Return arguments that rebuild the policy, as plain JSON types."""
        plain = super().settings()
        mine = {name: plain[name] for name in self._choices}
        for name, word in (
            ("observe_prob", COUNTED),
            ("noise_scale", ESTIMATED),
            ("theta_bound", ESTIMATED),
            ("ridge", ESTIMATED),
        ):
            if isinstance(mine[name], str) and mine[name] == word:
                mine[name] = None
        return mine | {"dim": self.dim if self._begun else None}

    def choose(self, options: Any) -> Decision:
        """Choose one of the offered arms.

        Parameters
        ----------
        options : Slate or array_like, shape (n_arms, dim)
            NaN where hidden. The first ones say what `dim` is, unless it was given.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        if self._begun:
            return super().choose(options)
        decision: Decision = self._first(super().choose, options)
        return decision

    def absorb(self, options: Any) -> None:
        """Take note of offered arms without choosing: a catalogue, an old log.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        if self._begun:
            super().absorb(options)
        else:
            self._first(super().absorb, options)

    def _first(self, call: Callable[[Slate], Any], options: Any) -> Any:
        """Make the first call, whose slate says what `dim` is; if it fails, `dim` stays open."""
        slate = Slate.of(options)
        settings, burner = self._settings, self._burner
        self._begin(TofuPov(dim=slate.dim, **self._choices)._settings)
        self._burner._token = burner._token
        try:
            answer = call(slate)
        except BaseException:
            self._begin(settings, burner)
            raise
        self._begun = True
        return answer


def _least_dim(rank: Any, observe_prob: Any) -> int:
    if isinstance(observe_prob, np.ndarray | list | tuple):
        return max(1, len(observe_prob))
    rule = HeldOutRank() if rank is None else as_rule(rank)
    return max(1, getattr(rule, "rank", 1), getattr(rule, "floor", 1))
