"""Everything that halfseen raises on purpose.

::

    HalfseenError
    ├── InvalidInputError (also ValueError)    something handed in is wrong
    │   ├── InvalidSettingError                a constructor's argument
    │   ├── InvalidSlateError                  offered options
    │   ├── InvalidRewardError                 a reward
    │   └── StudyError                         a study's description
    ├── UnknownDecisionError (also LookupError)  foreign, already learned, or expired
    ├── Unidentifiable                         seen entries do not determine an arm
    ├── HorizonReachedError                    more rounds than the horizon promised
    ├── ArchiveError                           a saved policy that cannot be read
    ├── StoreError                             stored results that cannot be read
    ├── ClusterError                           a cluster that cannot be reached or used
    └── MissingExtraError                      a library that an extra of the package brings

An error raised by a policy leaves that policy exactly as it was.
"""


class HalfseenError(Exception):
    """Root of the tree: catch it to catch everything that halfseen raises on purpose."""


class InvalidInputError(HalfseenError, ValueError):
    """Something handed in is outside of what is allowed."""


class InvalidSettingError(InvalidInputError):
    """A constructor's argument is outside of its range.

    Attributes
    ----------
    name : str
        The setting, such as "rank" or "masks.law"; empty where several do not fit together.
    text : str
        What is wrong with it. The message is both.
    """

    def __init__(self, text: str, *, name: str = "") -> None:
        super().__init__(f"{name} {text}" if name else text)
        self.name, self.text = name, text


class InvalidSlateError(InvalidInputError):
    """Offered options that are not a slate."""


class InvalidRewardError(InvalidInputError):
    """A reward that is not a finite number."""


class StudyError(InvalidInputError):
    """A study's description is wrong; the message names the key."""


class UnknownDecisionError(HalfseenError, LookupError):
    """A decision that this policy did not make, has already learned, or no longer keeps open."""


class Unidentifiable(HalfseenError):  # noqa: N818 (a state of the arm, not of the program)
    """The seen entries of an arm do not determine its latent coordinates.

    Attributes
    ----------
    arm : int
        Index of the arm in its slate.
    n_seen : int
        How many of its entries are seen.
    rank : int
        How many coordinates they would have to determine.
    """

    def __init__(self, *, arm: int, n_seen: int, rank: int) -> None:
        self.arm, self.n_seen, self.rank = arm, n_seen, rank
        entries = "entry" if n_seen == 1 else "entries"
        super().__init__(
            f"arm {arm} shows {n_seen} {entries}, which do not determine {rank} latent "
            f"coordinates: set impute_ridge > 0 or lower the rank"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes."""
        return _unidentifiable, (self.arm, self.n_seen, self.rank)


def _unidentifiable(arm: int, n_seen: int, rank: int) -> Unidentifiable:
    return Unidentifiable(arm=arm, n_seen=n_seen, rank=rank)


class HorizonReachedError(HalfseenError):
    """The policy was built for a number of rounds and they have all been played."""


class ArchiveError(HalfseenError):
    """A saved policy that is damaged, truncated, of another kind, or from a newer version."""


class StoreError(HalfseenError):
    """A folder of results that is damaged or lacks what is asked for."""


class ClusterError(HalfseenError):
    """A Dask cluster that cannot be reached, or whose workers cannot run the cells."""


class MissingExtraError(HalfseenError):
    """A library that is not installed; the message names the extra that brings it."""
