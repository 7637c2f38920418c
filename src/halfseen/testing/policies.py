"""All contracts of a policy together."""

from collections.abc import Collection

from halfseen.testing import choosing, contexts, growing, learning
from halfseen.testing.check import Check, checks_in, run_checks
from halfseen.testing.rounds import Factory


def check_policy(factory: Factory, *, skip: Collection[str] = ()) -> None:
    """Check that policies keep their contracts.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a fresh policy, always with the same parameters. Where
        the policy takes a horizon, 100 rounds are enough.
    skip : names of checks
        Claims that the policy does not make, such as `memory_is_bounded`.

    Raises
    ------
    AssertionError
        A claim does not hold; the message says which one, and how it failed.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> check_policy(lambda: AmbientOful(dim=4))
    """
    run_checks(policy_checks(), factory, skip)


def policy_checks() -> tuple[Check, ...]:
    """Return the single checks, each to be called with a factory.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> first = policy_checks()[0]
    >>> print(first, first(lambda: AmbientOful(dim=4)))
    same_seed_same_trace None
    """
    modules = (choosing, learning, growing, contexts)
    return tuple(check for module in modules for check in checks_in(module))
