"""How an agent is made, saved, and continued from a checkpoint and a journal."""

import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from halfseen import archive, checks
from halfseen.agent.asked import Asked
from halfseen.agent.core import Core
from halfseen.agent.journal import Event, Journal, packed, sync_folder, unpacked
from halfseen.agent.settings import AgentSettings, Path
from halfseen.errors import ArchiveError, HalfseenError, InvalidSettingError, JournalError
from halfseen.policies.registry import policy_from_dict
from halfseen.progress import with_bar
from halfseen.frames import Encoder, Reader


class AgentFiles(AgentSettings):
    """The state of an agent, behind a lock, and its files."""

    def setup(self) -> None:
        """Create the state of a fresh agent; its parameters are already set as attributes."""
        if both := set(self.ignore) & {*self.categorical, self.id}:
            raise InvalidSettingError(
                f"must not have columns that are used, got {sorted(both)}", name="ignore"
            )
        self._reader = Reader(self.id, frozenset(self.ignore), frozenset(self.categorical))
        encoder = Encoder(max_levels=self.max_levels, max_columns=self.max_columns)
        has_ids = self.id is not None
        self._core = Core(self.fresh_policy(), encoder, self.max_pending, has_ids=has_ids)
        self._lock = threading.RLock()
        # Makes the ids of this agent differ from those of every other, and of copies from a file.
        self._token = secrets.token_hex(6)
        self._journal: Journal | None = None
        self._n_events = 0  # that were in the journal when this agent was saved
        if self.journal is not None:
            self._start_journal(Journal(self.journal))

    def save(self, path: Path) -> None:
        """Write the agent to a file, with names, levels and decisions that wait.

        If it has a journal, this is a checkpoint: the journal starts anew.

        Raises
        ------
        JournalError
            The journal was closed, or belongs to the process from which this one was forked.
        """
        with self._lock:
            if self._journal is not None:
                self._journal.check_usable()
            archive.write(path, self._tree())
            if self._journal is not None:
                sync_folder(path)
                self._journal.rotate()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return a saved agent, which continues as the original would.

        Raises
        ------
        ArchiveError
            The file is damaged, not a saved agent, or from a newer version.
        """
        return cls._from_tree(archive.read(path), str(path))

    @classmethod
    def open(cls, checkpoint: Path, journal: Path, **settings: Any) -> Self:
        """Continue from a checkpoint and a journal, or start if there is neither.

        Nothing that a call has returned for is lost, and no reward is learned twice.

        Parameters
        ----------
        checkpoint : path
            What `save` wrote last, if it did.
        journal : path
        **settings
            Of a new agent; those of an agent that continues must be the same.

        Raises
        ------
        ArchiveError, JournalError
            A file is damaged or incomplete.
        """
        book = Journal(journal)
        try:
            agent = cls.load(checkpoint) if os.path.exists(checkpoint) else None
            after = 0 if agent is None else agent._n_events
            bar = "replaying the journal", book.n_lines(after)
            for event in with_bar(*bar, book.events(after), lambda _: 1):
                agent = cls._replayed(agent, event, str(journal))
            if agent is None:
                agent = cls(**settings)
                agent._start_journal(book)
            else:
                agent._check_settings(settings)
                agent._journal = book
        except BaseException:
            book.close()
            raise
        agent.__dict__["journal"] = os.fspath(journal)
        return agent

    def close(self) -> None:
        """Close the journal, if there is one; calls that would write to it fail from now on."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    def _start_journal(self, journal: Journal) -> None:
        if journal.size:
            journal.close()
            raise JournalError(
                f"the journal {journal.path} has events: continue from it with "
                "Agent.open(checkpoint, journal), or name another file"
            )
        self._journal = journal
        # The first event holds the agent as it starts, so that no checkpoint is needed.
        with self._change() as events:
            events.append({"event": "start", "agent": packed(archive.to_bytes(self._tree()))})

    @contextmanager
    def _change(self) -> Iterator[list[Event]]:
        """Make one change, or none: write its events to the journal, undo everything on failure."""
        with self._lock:
            events: list[Event] = []
            journal, before = self._journal, self._core.begin()
            size, n_events = (0, 0) if journal is None else (journal.size, journal.n_events)
            try:
                yield events
                if journal is not None:
                    journal.append(events)
            except BaseException:
                self._core.undo(before)
                if journal is not None:
                    journal.cut(size, n_events)
                raise

    @classmethod
    def _replayed(cls, agent: Self | None, event: Event, name: str) -> Self:
        """Return an agent after one more event."""
        if agent is None:
            if event["event"] != "start":
                raise JournalError(f"{name} continues a checkpoint, which is missing: restore it")
            agent = cls._from_tree(archive.from_bytes(unpacked(event["agent"]), name), name)
        else:
            try:
                agent._replay(event)
            except (KeyError, TypeError, HalfseenError) as error:
                raise JournalError(f"event {event['n']} of {name} is wrong: {error}") from None
        agent._n_events = event["n"]
        return agent

    def _replay(self, event: Event) -> None:
        core, kind = self._core, event["event"]
        if kind == "choose":
            arm, explore = event.get("arm"), event.get("explore", True)
            asked = Asked.from_plain(event)
            core.choose_again(asked, event["id"], event["time"], arm, explore=explore)
        elif kind == "learn":
            core.learn([(event["id"], event["reward"])])
        elif kind == "close":
            core.close([event["id"]])
        elif kind == "observe":
            core.observe(Asked.from_plain(event), event["rewards"])
        else:
            raise JournalError(f"it is a {kind!r}, which is not known")

    def _tree(self) -> dict[str, Any]:
        settings = self.settings()
        del settings["policy"], settings["journal"]
        n_events = self._n_events if self._journal is None else self._journal.n_events
        return {"agent": settings, "core": self._core.state(), "n_events": n_events}

    @classmethod
    def _from_tree(cls, tree: dict[str, Any], name: str) -> Self:
        if "agent" not in tree:
            raise ArchiveError(f"{name} is no agent: halfseen.load reads a saved policy")
        try:
            agent = cls(**tree["agent"])
            agent._core.restore(tree["core"])
            agent._n_events = checks.integer("n_events", tree["n_events"], 0)
        except ArchiveError:
            raise
        except Exception as error:  # an invalid state can raise anything
            raise ArchiveError(f"{name} does not describe an agent: {error}") from None
        policy = agent._core.policy
        agent.__dict__["policy"] = type(policy)(**policy.settings())
        return agent

    def _check_settings(self, given: Mapping[str, Any]) -> None:
        """Raise an error if settings for a new agent differ from those of this one."""
        wanted, ours = type(self)(**given).settings(), self.settings()
        for name in given:
            mine, theirs = ours[name], wanted[name]
            if name == "policy" and theirs is not None:
                for dim in mine["settings"].keys() & {"dim", "context_dim"}:
                    theirs["settings"][dim] = mine["settings"][dim]  # it may have grown
            if mine != theirs:
                raise InvalidSettingError(
                    f"is {mine!r} in the checkpoint or journal, got {theirs!r}: leave it out, or "
                    "start with other files",
                    name=name,
                )


def load(path: Path) -> Any:
    """Return whatever was saved, a policy or an agent, which continues as the original would.

    Bit for bit: every later decision is the same.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, not from halfseen, or from a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from halfseen import AmbientOful
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AmbientOful(dim=3).save(pathlib.Path(folder) / "policy")
    ...     load(pathlib.Path(folder) / "policy")
    AmbientOful(dim=3)
    """
    tree = archive.read(path)
    if "agent" in tree:
        from halfseen.agent.agent import Agent  # a subclass of what this module has

        return Agent._from_tree(tree, str(path))
    try:
        return policy_from_dict(tree)
    except ArchiveError:
        raise
    except Exception as error:  # an invalid state can raise anything
        raise ArchiveError(f"{path} does not describe a policy: {error}") from None
