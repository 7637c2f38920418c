"""Everything that halfseen raises on purpose.

::

    HalfseenError
    ├── InvalidInputError (also ValueError)    an argument is wrong
    │   ├── InvalidSettingError                a constructor's argument
    │   ├── InvalidSlateError                  offered options
    │   │   └── InvalidTableError              a table; the message names the column or the row
    │   ├── InvalidRewardError                 a reward
    │   └── StudyError                         a study's description
    ├── UnknownDecisionError (also LookupError)  foreign, already learned, or expired
    │   ├── AlreadyRewardedError               an agent has learned its reward
    │   └── ForgottenDecisionError             an agent no longer waits for its reward
    ├── Unidentifiable                         seen entries do not determine an arm
    ├── HorizonReachedError                    all rounds of the horizon are played
    ├── ArchiveError                           a saved policy that cannot be read
    ├── JournalError                           a journal that cannot be read or written
    ├── StoreError                             stored results that cannot be read
    ├── ClusterError                           a cluster that cannot be reached or used
    └── MissingExtraError                      an optional library is not installed

An error raised by a policy leaves that policy exactly as it was.
"""


class HalfseenError(Exception):
    """Root of the tree: catches everything that halfseen raises on purpose."""


class InvalidInputError(HalfseenError, ValueError):
    """An argument is not allowed."""


class InvalidSettingError(InvalidInputError):
    """A constructor's argument is outside of its range.

    Attributes
    ----------
    name : str
        The setting, such as "rank" or "masks.law"; empty if several settings contradict each other.
    text : str
        What is wrong with it. The message is the name followed by the text.
    """

    def __init__(self, text: str, *, name: str = "") -> None:
        super().__init__(f"{name} {text}" if name else text)
        self.name, self.text = name, text


class InvalidSlateError(InvalidInputError):
    """The offered options are not a slate."""


class InvalidTableError(InvalidSlateError):
    """A table of options cannot be used; the message names the column or the row."""


class InvalidRewardError(InvalidInputError):
    """The reward is not a finite number."""


class StudyError(InvalidInputError):
    """A study's description is wrong; the message names the key."""


class UnknownDecisionError(HalfseenError, LookupError):
    """The decision is unknown to this policy, was already learned, or was forgotten."""


class AlreadyRewardedError(UnknownDecisionError):
    """The reward of the decision came before; each counts once."""


class ForgottenDecisionError(UnknownDecisionError):
    """The agent no longer waits for the reward: too many others waited, or it was closed."""


class Unidentifiable(HalfseenError):  # noqa: N818 (a state of the arm, not of the program)
    """The seen entries of an arm do not determine its latent coordinates.

    Attributes
    ----------
    arm : int
        Index of the arm in its slate.
    n_seen : int
        How many of its entries are seen.
    rank : int
        Number of latent coordinates.
    """

    def __init__(self, *, arm: int, n_seen: int, rank: int) -> None:
        self.arm, self.n_seen, self.rank = arm, n_seen, rank
        entries = "entry" if n_seen == 1 else "entries"
        super().__init__(
            f"arm {arm} shows {n_seen} {entries}, which do not determine {rank} latent "
            f"coordinates: set impute_ridge > 0 or lower the rank"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, so that the error can cross processes."""
        return _unidentifiable, (self.arm, self.n_seen, self.rank)


def _unidentifiable(arm: int, n_seen: int, rank: int) -> Unidentifiable:
    return Unidentifiable(arm=arm, n_seen=n_seen, rank=rank)


class HorizonReachedError(HalfseenError):
    """All rounds of the policy's horizon have been played."""


class ArchiveError(HalfseenError):
    """A saved policy is damaged, truncated, not a policy, or from a newer version."""


class JournalError(HalfseenError):
    """A journal is damaged, incomplete, used by another process, or cannot be written."""


class StoreError(HalfseenError):
    """A folder of results is damaged or incomplete."""


class ClusterError(HalfseenError):
    """A Dask cluster cannot be reached, or its workers cannot run the cells."""


class MissingExtraError(HalfseenError):
    """A library is not installed; the message names the extra that installs it."""
