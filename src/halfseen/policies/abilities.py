"""What only some policies can do: small classes that a policy inherits beside `Policy`.

`isinstance(policy, Grows)` says whether a policy has an ability. Callers use the verbs of `Policy`,
which raise an error that says what a policy without the ability cannot do.

>>> from halfseen import AmbientOful, LatentUcb
>>> isinstance(LatentUcb(), UsesContext), isinstance(AmbientOful(dim=2), UsesContext)
(True, False)
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from halfseen import checks
from halfseen.params import Declared, integer
from halfseen.seeding import stream
from halfseen.values import Choice, FloatArray, Note, Slate
from halfseen.values.reasons import Gains, Groups, Reasons, checked_groups


class Ability:
    """Something that only some policies can do."""

    lacking: ClassVar[str] = ""
    """What a policy without it cannot do, and the remedy, for the message of an error."""


class Exploits(Ability):
    """Can choose without exploring: `choose(…, explore=False)`."""

    lacking = "choose without exploring: leave out explore=False"

    @abstractmethod
    def exploit(self, slate: Slate) -> Choice:
        """Choose from a valid slate without exploring; like `decide`, it changes nothing."""


class Explains(Ability):
    """Can explain its scores: `explain` and `value_of_seeing`."""

    lacking = "explain its scores"
    context_dim: int

    @abstractmethod
    def reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each arm's score under the present model; change nothing."""

    def moves(
        self, slate: Slate, groups: Groups, context_groups: Groups
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return how estimates move if hidden features are seen; by default not at all.

        First the deviation of each estimate for each group of features, shape (n_arms, n_groups).
        Then for each group of the context's features a matrix (n_arms, n), whose product with n
        standard normals is the move.
        """
        n = slate.n_arms
        return np.zeros((n, len(groups))), [np.zeros((n, 0)) for _ in context_groups]

    def gains(self, slate: Slate, groups: Any = None, context_groups: Any = None) -> Gains:
        """Return the value of seeing groups of hidden features, by default of each one."""
        own = checked_groups(groups, slate.dim)
        moves = self.moves(slate, own, checked_groups(context_groups, self.context_dim))
        return Gains.of(self.reasons(slate).estimates, *moves)


class Grows(Ability):
    """Can use features that arms get later: `widen`."""

    lacking = "use more features: make it with all of them"

    @abstractmethod
    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let arms have `dim` features as if they always had; `self.dim` is the earlier number."""


class UsesContext(Ability, Declared):
    """Can use the context of a round, a row that all arms share."""

    lacking = "use a context: leave it out"

    context_dim: int = integer(
        default=0,
        low=0,
        high=checks.LARGEST_SIZE,
        doc="Number of features of a context; by default taken from the first one.",
    )

    @abstractmethod
    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have `dim` features; `self.context_dim` is still the earlier number."""


class UsesItems(Ability):
    """Learns about items by their ids, besides the features of arms."""


class AwaitsRewards(Ability):
    """Counts decisions whose rewards are pending: `expect` and `forget`."""

    @abstractmethod
    def await_reward(self, note: Note) -> None:
        """Count a decision whose reward will come, until `update` or `give_up` gets its note."""

    @abstractmethod
    def give_up(self, *notes: Note) -> None:
        """Count decisions no longer, where `await_reward` did."""

    def with_notes(self, notes: Iterable[Note]) -> Self:
        """Return this policy with the notes of pending decisions, of which it may need some.

        An agent saves it without notes, and gives it those that its journal has.
        """
        return self


class Refits(Ability):
    """Fits its models now and then; an agent can do that for it, for all processes."""

    refits_itself = True
    """False if an agent calls `fit_models`, on a copy, so `refit_if_due` does nothing."""

    refit: str = "inline"
    """How an agent calls `fit_models`: in the round that needs it, or in a "background" thread."""

    @property
    @abstractmethod
    def is_refit_due(self) -> bool:
        """Whether `fit_models` should be called before the next round."""

    @abstractmethod
    def fit_models(self) -> None:
        """Fit what is fitted now and then."""

    def refit_if_due(self) -> None:
        """Fit the models if that is due and no agent does it; call this in `prepare`."""
        if self.refits_itself and self.is_refit_due:
            self.fit_models()


class Reports(Ability):
    """Has more to say about itself: to `agent.health()`, `agent.columns` and simulations."""

    def diagnostics(self) -> dict[str, Any]:
        """Return facts about the run so far, in plain JSON types."""
        return {}

    def warnings(self) -> tuple[str, ...]:
        """Return what looks wrong, each with a remedy."""
        return ()

    def implausible(self) -> tuple[FloatArray, FloatArray]:
        """Return how many values of each feature, and of the context's, count as hidden."""
        return np.empty(0), np.empty(0)

    @classmethod
    def of(cls, policy: Any) -> "Reports":
        """Return the policy, or if it has nothing to report, what reports nothing."""
        return policy if isinstance(policy, Reports) else Reports()


class Draws(Ability, Declared):
    """Draws random numbers, in each decision from streams of its own: no state is saved."""

    seed: int = integer(default=0, low=0, doc="Seed of all random numbers.")

    round = 0  # of the policy

    def stream(self, slate: Slate, name: str) -> np.random.Generator:
        """Return the random stream of a name for the decision on a slate.

        It depends on the seed and on the id of the decision, which is its round unless the slate
        has one. In one decision equal names give equal streams.
        """
        return stream(self.seed, name, slate.id or str(self.round + 1))
