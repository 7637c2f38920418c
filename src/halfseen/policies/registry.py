"""All policies by name, for `load` and for the contract tests."""

import os
from typing import Any, TypeVar

from halfseen import archive, checks
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.policies.base import Policy
from halfseen.policies.upgrades import upgraded

P = TypeVar("P", bound=Policy)

_CLASSES: dict[str, type[Policy]] = {}


def register_policy(policy: type[P]) -> type[P]:
    """Make a policy known to `load` by the name of its class (a decorator).

    Raises
    ------
    InvalidSettingError
        It is no policy, or a policy of halfseen has this name.

    Examples
    --------
    >>> from halfseen import Uniform
    >>> @register_policy
    ... class Coin(Uniform):
    ...     '''Chooses at random.'''
    >>> Coin(dim=2)
    Coin(dim=2)
    """
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise InvalidSettingError(f"only a subclass of Policy can be registered, got {policy!r}")
    checks.unused_name(policy.__name__, policy, _CLASSES)
    _CLASSES[policy.__name__] = policy
    return policy


def all_policies() -> dict[str, type[Policy]]:
    """Return all registered policies by name."""
    return dict(_CLASSES)


def registered(name: Any) -> type[Policy]:
    """Return the policy class of a name."""
    if name not in _CLASSES:
        raise ArchiveError(
            f"no policy is called {name!r}, there are {sorted(_CLASSES)}: import the module that "
            "defines it, with @register_policy on the class"
        )
    return _CLASSES[name]


def policy_from_tree(tree: dict[str, Any]) -> Policy:
    """Return the policy that `Policy.to_tree` described."""
    return registered(tree["policy"]).from_tree(tree)


def restored_inner(fresh: Policy, tree: dict[str, Any]) -> Policy:
    """Return the saved inner policy that replaces a fresh one."""
    restored = policy_from_tree(tree)
    if type(fresh) is not type(restored) or fresh.settings() != restored.settings():
        raise ArchiveError("an inner policy does not fit the settings of the outer one")
    return restored


def load(path: str | os.PathLike[str]) -> Policy:
    """Return a saved policy, which continues exactly as the original would, bit for bit.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, not a policy, or from a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from halfseen import AmbientOful
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AmbientOful(dim=3).save(pathlib.Path(folder) / "policy")
    ...     load(pathlib.Path(folder) / "policy")
    AmbientOful(dim=3)
    """
    tree, version = archive.read(path)
    if "agent" in tree:
        raise ArchiveError(f"{path} holds an agent: read it with Agent.load")
    try:
        return policy_from_tree(upgraded(tree, version, str(path)))
    except ArchiveError:
        raise
    except Exception as error:  # an invalid state can raise anything
        raise ArchiveError(f"{path} does not describe a policy: {error}") from None
