"""All policies by name, for `load` and for the contract tests."""

from importlib import import_module
from typing import Any, TypeVar

from halfseen import checks, state
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.policies.base import Policy
from halfseen.state import Sizes

P = TypeVar("P", bound=Policy)

# Importing one of these packages registers its policies.
_SHIPPED = ("halfseen.baselines", "halfseen.tofu", "halfseen.latent")

_CLASSES: dict[str, type[Policy]] = {}

# Fields that files of earlier versions may have: each decision has its own random streams now.
_RETIRED = {"random_state"}


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
    for package in _SHIPPED:
        import_module(package)
    return dict(_CLASSES)


def registered(name: Any) -> type[Policy]:
    """Return the policy class of a name."""
    if name not in _CLASSES:
        known = all_policies()
        if name not in known:
            raise ArchiveError(
                f"no policy is called {name!r}, there are {sorted(known)}: import the module that "
                "defines it, with @register_policy on the class; halfseen.paper has Pslb and "
                "SignSeeker"
            )
    return _CLASSES[name]


class AnyPolicy:
    """The field of a policy of any kind (`halfseen.state`)."""

    def dump(self, value: Policy) -> dict[str, Any]:
        """Return settings and state of the policy."""
        return policy_to_dict(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Policy:
        """Return the saved policy."""
        return policy_from_dict(plain)


class InnerPolicy(AnyPolicy):
    """The field of a policy inside another one."""

    def load(self, name: str, plain: Any, sizes: Sizes) -> Policy:
        """Return the saved policy, which must be like the one that a fresh owner has."""
        policy, fresh = policy_from_dict(plain), getattr(sizes.owner, name)
        if type(fresh) is not type(policy) or fresh.settings() != policy.settings():
            raise ArchiveError("an inner policy does not fit the settings of the outer one")
        return policy


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Return parameters and state as plain values and arrays."""
    return {
        "policy": type(policy).__name__,
        "settings": policy.settings(),
        "round": policy.round,
        "state": state.dump(policy),
    }


def policy_from_dict(plain: dict[str, Any]) -> Policy:
    """Return the policy that `policy_to_dict` described."""
    return restored(registered(plain["policy"]), plain)


def restored(kind: type[P], plain: dict[str, Any]) -> P:
    """Return a policy of a class, which need not be registered."""
    policy = kind(**plain["settings"])
    policy.round = checks.integer("round", plain["round"], 0, checks.LARGEST_HORIZON)
    kept = {name: value for name, value in plain["state"].items() if name not in _RETIRED}
    state.restore(policy, kept)
    return policy
