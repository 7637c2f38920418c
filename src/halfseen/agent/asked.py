"""What an agent is asked about: options and a context, as rows and for a policy."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from halfseen.policies.base import Policy
from halfseen.frames import Encoder, Rows
from halfseen.values import FloatArray, Slate


class Asked(NamedTuple):
    """What an agent is asked about.

    Attributes
    ----------
    rows : Rows
        The options.
    context : Rows or None
        One row that they share; for a log one for each of its rows.
    """

    rows: Rows
    context: Rows | None = None

    def part(self, start: int, stop: int) -> "Asked":
        """Return some of the rows; a log's contexts go with them."""
        context = self.context
        if context is not None and len(context.items) > 1:
            context = context.part(start, stop)
        return Asked(self.rows.part(start, stop), context)

    def to_plain(self) -> dict[str, Any]:
        """Return rows and context as plain JSON types."""
        plain = {"rows": self.rows.to_plain()}
        return plain if self.context is None else plain | {"context": self.context.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Asked":
        """Return what `to_plain` made plain."""
        context = plain.get("context")
        rows = Rows.from_plain(plain["rows"])
        return cls(rows, None if context is None else Rows.from_plain(context))


class Encoders(NamedTuple):
    """Encoders of options and of contexts."""

    options: Encoder
    context: Encoder


class Ready(NamedTuple):
    """What was asked, for a policy.

    Attributes
    ----------
    policy : Policy
        A fork that knows all columns.
    encoders : Encoders
    slate : Slate
    contexts : ndarray, shape (n, context_dim), or None
    """

    policy: Policy
    encoders: Encoders
    slate: Slate
    contexts: FloatArray | None
