"""Rewards of played arms in bounded memory."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.core.context_features import AnyFeatures
from halfseen.core.factors import row_keys
from halfseen.core.item_sums import ItemSums
from halfseen.core.offers import Layout, Offer
from halfseen.core.samples import Samples
from halfseen.core.summary import Summary, carrying, joined
from halfseen.linear.history import Played
from halfseen.values import LARGEST_POINT, FloatArray

DEFAULT_MEMORY = 128_000_000
"""Bytes for offered and played arms."""

MOST_ARMS = 5000
"""Largest number of offered arms to which a latent model is fitted, and of played arms that are
kept one by one: more add little and cost time."""

_FEWEST_ARMS = 16
# Arms on which the map into the features of a new model is fitted.
_CARRYING_ARMS = 2000
# A summary is given up if the mean square of its features exceeds that of these arms so many times.
_LARGEST_CARRIED = 100.0


def arms_kept(dim: int, memory_bytes: int) -> int:
    """Return how many offered arms, and how many played ones, are kept in some memory.

    A third of it is for offered arms, a third for played ones, and a third for those that were
    played since the others were summed up.
    """
    return min(MOST_ARMS, max(_FEWEST_ARMS, memory_bytes // (3 * 8 * dim)))


class Merged(NamedTuple):
    """Different arms in the order in which they were first played.

    Attributes
    ----------
    rows : ndarray, shape (n, width)
    rounds : ndarray, shape (n,)
        In which each was first played.
    samples : Samples
    """

    rows: FloatArray
    rounds: NDArray[np.int64]
    samples: Samples


class Plays(NamedTuple):
    """Played arms with their rewards: as many as fit, and a summary of the others.

    Rewards of equal arms are merged into their number and mean, which loses nothing. If there are
    still too many arms, those played least, and of these the oldest, enter a summary.

    Attributes
    ----------
    layout : Layout
        Of the rows that hold an arm, its context and the number of its item.
    played : Played
        These rows, rounds and rewards, or mean rewards.
    counts : ndarray, shape (n,)
        Number of rewards of each of the first n arms; of the others it is 1.
    within : float
        Root of the sum of squared differences between merged rewards and their means.
    summaries : tuple of Summary
        In the features of the present epoch.
    """

    layout: Layout
    played: Played
    counts: FloatArray
    within: float = 0.0
    summaries: tuple[Summary, ...] = ()

    @classmethod
    def none(cls, layout: Layout) -> "Plays":
        """Return no plays."""
        return cls(layout, Played(layout.width), np.empty(0))

    @property
    def n_rows(self) -> int:
        """Number of rows that are kept: arms that were merged, and later rewards."""
        return len(self.played)

    def _all_counts(self) -> FloatArray:
        return np.append(self.counts, np.ones(self.n_rows - len(self.counts)))

    def offers(self, rows: FloatArray) -> Offer:
        """Return what rows hold."""
        return self.layout.unpacked(rows)

    def append(self, round: int, row: FloatArray, reward: float) -> "Plays":
        """Return the plays with one more row (width,); these must not be changed any more."""
        played = self.played.fork()
        played.append(round, row, reward)
        return Plays(self.layout, played, self.counts, self.within, self.summaries)

    def merged(self, weights: FloatArray | None = None) -> Merged:
        """Return the different arms that are kept; `weights` (n,) say how much each row counts."""
        arms, rewards, rounds = self.played.columns()
        counts = self._all_counts()
        if weights is not None:
            counts = counts * weights
        if (rounds[1:] <= rounds[:-1]).any():  # rewards came late
            order = np.argsort(rounds, kind="stable")
            arms, rewards, rounds, counts = (
                arms[order],
                rewards[order],
                rounds[order],
                counts[order],
            )
        _, first, numbers = np.unique(row_keys(arms), return_index=True, return_inverse=True)
        # In the order of first plays: that of keys depends on the arms' units, and sums in another
        # order are rounded differently.
        order = np.argsort(first)
        places = np.argsort(order)
        samples = Samples.of(places[numbers], rewards, counts)
        samples = samples._replace(within=math.hypot(samples.within, self.within))
        first = first[order]
        return Merged(np.ascontiguousarray(arms[first]), rounds[first], samples)

    def since(self, round: float) -> "Plays":
        """Return the plays from a round on."""
        arms, rewards, rounds = self.played.columns()
        late = rounds >= round
        plays = self._replace(
            summaries=tuple(each for each in self.summaries if each.round >= round)
        )
        if late.all():
            return plays
        played = Played.of(arms[late], rewards[late], rounds[late])
        return plays._replace(played=played, counts=self._all_counts()[late])

    def compacted(self, features: AnyFeatures, most: int, span: float = math.inf) -> "Plays":
        """Return the same plays with at most `most` arms.

        Parameters
        ----------
        features : Features or JointFeatures
            Of the present epoch, not scaled.
        most : int
        span : float
            Rounds whose rewards may share a summary. If it is finite, equal arms are not merged,
            because the round of every reward matters.
        """
        plays = self._merged_rows() if span == math.inf else self
        arms, means, rounds = plays.played.columns()
        n_extra = len(rounds) - most
        if n_extra <= 0:
            return plays
        counts = plays._all_counts()
        order = np.lexsort((rounds, counts))
        extra, kept = order[:n_extra], np.sort(order[n_extra:])
        summary = self._summary(features, arms[extra], counts[extra], means[extra], rounds[extra])
        earlier, summaries = plays.summaries, (*plays.summaries, summary)
        if earlier and summary.round - earlier[-1].round <= span:
            summaries = (*earlier[:-1], joined(summaries[-2:]))
        played = Played.of(arms[kept], means[kept], rounds[kept])
        return plays._replace(played=played, counts=counts[kept], summaries=summaries)

    def _summary(
        self,
        features: AnyFeatures,
        rows: FloatArray,
        counts: FloatArray,
        means: FloatArray,
        rounds: NDArray[np.int64],
    ) -> Summary:
        offer = self.offers(np.ascontiguousarray(rows))
        points = features.points_of(offer)
        summary = Summary.of(points, counts, means, rounds, intercept=features.intercept)
        if offer.contexts is None and offer.items is None:
            return summary
        given = offer.keys, features.parts_of(offer), points, counts, means
        return summary._replace(items=ItemSums.of(*given, summary.shift))

    def _merged_rows(self) -> "Plays":
        rows, rounds, samples = self.merged()
        if len(rows) == self.n_rows:
            return self
        played = Played.of(rows, samples.means, rounds)
        return self._replace(played=played, counts=samples.counts, within=samples.within)

    def carried(self, old: AnyFeatures, new: AnyFeatures) -> tuple["Plays", float]:
        """Return the plays for the features of a new epoch, and the error of the summaries."""
        if not self.summaries:
            return self, 0.0
        offer = self.offers(np.ascontiguousarray(self.played.columns()[0][-_CARRYING_ARMS:]))
        points = new.points_of(offer)
        matrix, error = carrying(old.points_of(offer), points, new.alike(old))
        parts, _ = carrying(old.parts_of(offer), new.parts_of(offer), new.parts_alike(old))
        carried = [each.carried(matrix, parts) for each in self.summaries]
        # Few arms may show the map so badly that it blows up features.
        limit = _LARGEST_CARRIED * float((points * points).sum()) / len(points)
        kept = tuple(each for each in carried if each.mean_square() <= limit)
        return self._replace(summaries=kept), error if len(kept) == len(carried) else 1.0

    def widened(
        self,
        layout: Layout,
        rows: FloatArray,
        old: AnyFeatures | None,
        new: AnyFeatures | None,
    ) -> "Plays":
        """Return the plays with more features: of their rows (n, new width), and of the epoch."""
        before, rewards, rounds = self.played.columns()
        plays = self._replace(layout=layout, played=Played.of(rows, rewards, rounds))
        if old is None or new is None:
            return plays
        keys = self.offers(before).keys, plays.offers(rows).keys
        matrix, parts = new.alike(old), new.parts_alike(old)
        carried = [each.carried(matrix, parts) for each in self.summaries]
        return plays._replace(
            summaries=tuple(
                each if each.items is None else each._replace(items=each.items.renamed(*keys))
                for each in carried
            )
        )

    def state(self) -> dict[str, Any]:
        """Return everything as numbers and arrays."""
        return {
            "played": self.played.state(),
            "counts": self._all_counts(),
            "within": self.within,
            "summaries": [each.state() for each in self.summaries],
        }

    @classmethod
    def restored(
        cls, state: dict[str, Any], layout: Layout, features: AnyFeatures | None
    ) -> "Plays":
        """Return what `state` described; `features` are those of the present epoch."""
        played = Played(layout.width)
        played.restore(state["played"])
        shape = (len(played),)
        counts = archive.array(state, "counts", shape, low=1.0, high=checks.LARGEST_HORIZON)
        within = checks.real("within", state["within"], 0.0, LARGEST_POINT)
        sizes = (0, 1) if features is None else (features.n_features, features.n_parts)
        summaries = tuple(Summary.restored(each, *sizes) for each in state["summaries"])
        return cls(layout, played, counts, within, summaries)
