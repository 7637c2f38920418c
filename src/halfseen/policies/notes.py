"""What a hook returns for a round, and what a policy keeps of it until the reward comes."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import archive, checks
from halfseen.values import LARGEST, LARGEST_ITEM, LARGEST_POINT, FloatArray


class Note(NamedTuple):
    """What a policy remembers of a decision until its reward comes.

    Attributes
    ----------
    round, epoch : int
        As in the decision.
    arm : ndarray, shape (dim,)
        The chosen arm as it was seen, NaN where hidden. Empty if the policy was loaded from a file
        of format 2, which did not store it.
    point : ndarray, optional
        The arm's coordinates in its epoch, if the policy computed them.
    inner : Note, optional
        The note of the inner policy, if one made the choice.
    context : ndarray, shape (context_dim,), optional
        That of the round, NaN where hidden.
    item : int, optional
        Who the chosen arm is.

    Examples
    --------
    >>> note = Note(round=1, epoch=-1, arm=np.array([1.0, np.nan]))
    >>> np.nan_to_num(note.arm).tolist()
    [1.0, 0.0]
    """

    round: int
    epoch: int
    arm: FloatArray
    point: FloatArray | None = None
    inner: "Note | None" = None
    context: FloatArray | None = None
    item: int | None = None


class Choice(NamedTuple):
    """What a policy decided in a round.

    Attributes
    ----------
    arm : int
        Index of the chosen arm.
    parts : ndarray, shape (3, n_arms)
        Score, estimate and width of each arm.
    epoch, point, inner
        As in `Note`.
    probabilities : ndarray, shape (n_arms,), optional
        With which the arm was drawn; None if it was not drawn.

    Examples
    --------
    >>> choice = Choice.best(estimates=[0.1, 0.3], widths=[0.5, 0.2])
    >>> choice.arm, choice.parts.round(1).tolist()
    (0, [[0.6, 0.5], [0.1, 0.3], [0.5, 0.2]])
    """

    arm: int
    parts: FloatArray
    epoch: int = -1
    point: FloatArray | None = None
    inner: Note | None = None
    probabilities: FloatArray | None = None

    @classmethod
    def best(cls, estimates: Any, widths: Any = 0.0) -> "Choice":
        """Return the choice of the arm with the largest estimate plus width; ties go to the first.

        >>> Choice.best([0.1, 0.3], [0.5, 0.2]).arm
        0
        """
        parts = np.empty((3, len(estimates)))
        parts[1], parts[2] = estimates, widths
        np.add(parts[1], parts[2], out=parts[0])
        return cls(int(parts[0].argmax()), parts)


class Scores(NamedTuple):
    """What a policy expects of arms, without choosing one.

    Attributes
    ----------
    estimates, widths : ndarray, shape (n_arms,)

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=1)
    >>> policy.learn_logged([[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0])
    >>> policy.score([[1.0], [2.0]]).estimates.tolist()
    [0.75, 1.5]
    """

    estimates: FloatArray
    widths: FloatArray


def widened(note: Note, dim: int, context_dim: int = 0) -> Note:
    """Return a note whose arm and context have more features, the new ones hidden."""
    n = note.arm.size
    if n and n != dim:
        note = note._replace(arm=lengthened(note.arm, dim))
    if note.context is not None and len(note.context) < context_dim:
        note = note._replace(context=lengthened(note.context, context_dim))
    return note


def lengthened(row: FloatArray, dim: int) -> FloatArray:
    """Return a row with more entries, the new ones hidden."""
    longer = np.full(dim, np.nan)
    longer[: len(row)] = row
    return longer


def with_arm(note: Note, arm: FloatArray) -> Note:
    """Return a note with its missing arm, also in the notes of inner policies."""
    inner = None if note.inner is None else with_arm(note.inner, arm)
    return note._replace(arm=note.arm if note.arm.size else arm, inner=inner)


def plain_note(note: Note) -> dict[str, Any]:
    """Return a note as plain values and arrays."""
    inner = None if note.inner is None else plain_note(note.inner)
    return note._asdict() | {"inner": inner}


def restored_note(plain: dict[str, Any]) -> Note:
    """Return the note that `plain_note` made plain."""
    return Note(
        checks.integer("round", plain["round"], 1),
        checks.integer("epoch", plain["epoch"], -1),
        archive.array(plain, "arm", (None,), low=-LARGEST, high=LARGEST, hidden=True),
        None if plain["point"] is None else _restored_point(plain),
        None if plain["inner"] is None else restored_note(plain["inner"]),
        None if plain["context"] is None else _restored_context(plain),
        None if plain["item"] is None else checks.integer("item", plain["item"], 0, LARGEST_ITEM),
    )


def _restored_context(plain: dict[str, Any]) -> FloatArray:
    return archive.array(plain, "context", (None,), low=-LARGEST, high=LARGEST, hidden=True)


def _restored_point(plain: dict[str, Any]) -> FloatArray:
    # NaN is allowed: regressions on zero-filled arms keep it for hidden entries.
    limit = LARGEST_POINT
    return archive.array(plain, "point", (None,), low=-limit, high=limit, hidden=True)
