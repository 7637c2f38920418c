"""Everything that halfseen raises on purpose.

::

    HalfseenError
    ├── InvalidInputError (also ValueError)    an argument is wrong
    │   ├── InvalidSettingError                a constructor's argument
    │   ├── InvalidSlateError                  offered options
    │   │   └── InvalidTableError              a table; the message names the column or the row
    │   ├── InvalidRewardError                 a reward
    │   ├── ReusedIdError                      the id of an earlier, different request
    │   └── StudyError                         the description of a study
    ├── UnknownDecisionError (also LookupError)  foreign, already learned, or expired
    │   ├── AlreadyRewardedError               an agent has learned its reward
    │   └── ForgottenDecisionError             dropped: too many others were pending
    ├── Unidentifiable                         seen entries do not determine an arm
    ├── HorizonReachedError                    all rounds of the horizon are played
    ├── ArchiveError                           a saved policy or agent that cannot be read
    ├── StorageError                           a database that cannot be read or written
    ├── StoreError                             stored results that cannot be read
    └── MissingExtraError                      an optional library is not installed

An error raised by a policy leaves that policy exactly as it was. Where a page of the documentation
explains more than the message, the message ends with its name.
"""


class HalfseenError(Exception):
    """Base class of all errors that halfseen raises on purpose.

    Attributes
    ----------
    page : str
        The page of the documentation that explains the error; empty if the message says it all.

    Examples
    --------
    >>> from halfseen import AmbientOful, HalfseenError
    >>> try:
    ...     AmbientOful(dim=2).choose([[1.0]])
    ... except HalfseenError as error:
    ...     print(error)
    a slate must have 2 features per arm, got 1
    """

    page: str = ""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} (see {self.page})" if self.page else message


class InvalidInputError(HalfseenError, ValueError):
    """An argument is not allowed.

    Examples
    --------
    >>> issubclass(InvalidInputError, ValueError)
    True
    """


class InvalidSettingError(InvalidInputError):
    """An argument of a constructor is out of range.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> AmbientOful(dim=0)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: dim must be an integer in [1, 1e+07], got 0
    """

    def __init__(self, text: str, *, name: str = "") -> None:
        super().__init__(f"{name} {text}" if name else text)


class InvalidSlateError(InvalidInputError):
    """The offered options are not a slate.

    Examples
    --------
    >>> from halfseen import Slate
    >>> Slate([[1.0, float("inf")]])
    Traceback (most recent call last):
    halfseen.errors.InvalidSlateError: seen entries must be finite and at most 1e+100 ...
    """


class InvalidTableError(InvalidSlateError):
    """A table of options cannot be used; the message names the column or the row.

    Examples
    --------
    >>> from halfseen import Agent
    >>> Agent().choose([{"price": 3.0}, {"price": "cheap"}])
    Traceback (most recent call last):
    halfseen.errors.InvalidTableError: column 'price' must be numbers or strings, not both, ...
    """

    page = "docs/agent.md#tables"


class InvalidRewardError(InvalidInputError):
    """The reward is not a finite number.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=1)
    >>> policy.learn(policy.choose([[1.0]]), float("nan"))
    Traceback (most recent call last):
    halfseen.errors.InvalidRewardError: a reward must be a finite number ...
    """


class ReusedIdError(InvalidInputError):
    """The id belongs to an earlier decision with a different request.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent()
    >>> decision = agent.choose(["hat", "coat"], id="visit 1")
    >>> try:
    ...     agent.choose(["hat"], id="visit 1")
    ... except ReusedIdError:
    ...     print("each request has its own id")
    each request has its own id
    """


class StudyError(InvalidInputError):
    """A study's description is wrong; the message names the key."""


class UnknownDecisionError(HalfseenError, LookupError):
    """Unknown decision: made by another policy or agent, already rewarded, or expired.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> AmbientOful(dim=1).learn("some id", 1.0)
    Traceback (most recent call last):
    halfseen.errors.UnknownDecisionError: AmbientOful.learn needs one of its own decisions, got ...
    """

    page = "docs/delayed-rewards.md"


class AlreadyRewardedError(UnknownDecisionError):
    """The decision has already been rewarded.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent()
    >>> decision = agent.choose([{"price": 3.0}])
    >>> agent.learn(decision, 1.0)
    >>> try:
    ...     agent.learn(decision, 0.0)
    ... except AlreadyRewardedError:
    ...     print("each reward counts once")
    each reward counts once
    """


class ForgottenDecisionError(UnknownDecisionError):
    """The decision has expired: too many others were pending, or it was closed.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent(max_pending=1)
    >>> first, second = (agent.choose([{"price": 3.0}]) for _ in range(2))
    >>> try:
    ...     agent.learn(first, 1.0)
    ... except ForgottenDecisionError:
    ...     print("only one decision can be pending here")
    only one decision can be pending here
    """


class Unidentifiable(HalfseenError):  # noqa: N818 (a state of the arm, not of the program)
    """The seen entries of an arm do not determine its latent coordinates.

    Examples
    --------
    >>> from halfseen import Slate
    >>> from halfseen.tofu.imputation import fill
    >>> import numpy as np
    >>> fill(np.eye(2), Slate([[1.0, float("nan")]]))
    Traceback (most recent call last):
    halfseen.errors.Unidentifiable: arm 0 shows 1 entry, too few to determine 2 latent ...
    """

    page = "docs/algorithm.md#two-phases"


class HorizonReachedError(HalfseenError):
    """All rounds of the policy's horizon have been played.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> policy = TofuPov(dim=2, rank=1, observe_prob=0.5, horizon=3, burn_in=1)
    >>> for _ in range(3):
    ...     policy.learn(policy.choose([[1.0, 0.0]]), 0.0)
    >>> policy.choose([[1.0, 0.0]])
    Traceback (most recent call last):
    halfseen.errors.HorizonReachedError: all 3 rounds of the horizon are played: ...
    """


class ArchiveError(HalfseenError):
    """A saved policy or agent is damaged, or from a newer version, or the file is something else.

    Examples
    --------
    >>> import halfseen
    >>> halfseen.load(halfseen.__file__)
    Traceback (most recent call last):
    halfseen.errors.ArchiveError: ... is not a complete halfseen archive ...
    """

    page = "docs/deploy.md#files"


class StorageError(HalfseenError):
    """A database cannot be used: it is damaged, locked, unreachable, or not halfseen's.

    The agent is as it was before the call, unless the message says that a decision may be stored.
    If the cause goes away, the next call succeeds.

    Examples
    --------
    >>> from halfseen import Agent
    >>> try:
    ...     Agent.open("no/such/folder/shop.db")
    ... except StorageError:
    ...     print("there is no such folder")
    there is no such folder
    """

    page = "docs/agent.md#databases"


class StoreError(HalfseenError):
    """A folder of results is damaged or incomplete."""


class MissingExtraError(HalfseenError):
    """A library is not installed; the message says what to install.

    Examples
    --------
    >>> raise MissingExtraError("joblib is missing (extra paper): pip install 'joblib>=1.5'")
    Traceback (most recent call last):
    halfseen.errors.MissingExtraError: joblib is missing (extra paper): pip install ...
    """

    page = "docs/start.md#install"
