"""A check: one claim, and the error that it raises if the claim does not hold."""

from collections.abc import Callable, Collection, Iterable
from types import ModuleType
from typing import Any


class Check:
    """One claim about what a factory makes, as a function that takes the factory.

    Any error inside becomes an AssertionError that names the check and its claim.

    Attributes
    ----------
    name : str
        As in `skip`.
    claim : str
        One sentence.

    Examples
    --------
    >>> @Check
    ... def three_is_made(factory):
    ...     '''The factory makes 3.'''
    ...     expect(factory() == 3, f"got {factory()}")
    >>> three_is_made(lambda: 3)
    >>> three_is_made(lambda: 4)
    Traceback (most recent call last):
    AssertionError: three_is_made: The factory makes 3. Failed: got 4
    """

    def __init__(self, run: Callable[[Callable[[], Any]], None]) -> None:
        self._run = run
        self.name = run.__name__
        self.claim = (run.__doc__ or "").partition("\n")[0]

    def __call__(self, factory: Callable[[], Any]) -> None:
        """Raise an AssertionError unless the claim holds."""
        try:
            self._run(factory)
        except Exception as error:
            how = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{self.name}: {self.claim} Failed: {how}") from error

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<check {self.name}>"


def expect(condition: object, how: str) -> None:
    """Raise an AssertionError unless the condition holds (also where `assert` is switched off)."""
    if not condition:
        raise AssertionError(how)


def expect_refusal(
    call: Callable[..., object], *arguments: Any, error: type[Exception], what: str
) -> None:
    """Raise an AssertionError unless the call raises the error."""
    try:
        call(*arguments)
    except error:
        return
    except Exception as other:
        raise AssertionError(f"{what} must raise {error.__name__}, got {other!r}") from other
    raise AssertionError(f"{what} must raise {error.__name__}, but was accepted")


def checks_in(module: ModuleType) -> tuple[Check, ...]:
    """Return the checks of a module in their order."""
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


def run_checks(checks: Iterable[Check], factory: Callable[[], Any], skip: Collection[str]) -> None:
    """Run all checks but those that are skipped by name."""
    by_name = {check.name: check for check in checks}
    for name in skip:
        if name not in by_name:
            raise ValueError(f"skip must name checks of {list(by_name)}, got {name!r}")
    for name, check in by_name.items():
        if name not in skip:
            check(factory)
