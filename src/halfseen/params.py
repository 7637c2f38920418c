"""Declare the parameters of a class once: type, range, default and meaning.

A class lists its parameters as class attributes::

    class Greedy(Policy):
        ridge: float = real(default=1.0, low=1e-50, high=1e100, doc="λ > 0.")

From these come the keyword-only constructor, its checks and error messages, `settings()`, `repr`
and the section "Parameters" of the docstring. A subclass inherits the parameters of its bases. A
value in their place is another default, checked when the class is made. What a subclass overrides
by a property or a `ClassVar` is no longer a parameter.

Examples
--------
>>> class Walk(Declared):
...     length: float = real(default=0.5, low=0.0, doc="Length of a step.")
>>> Walk(length=2).length
2.0
"""

import inspect
import math
import re
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self, dataclass_transform

from halfseen import checks
from halfseen.errors import InvalidSettingError

_REQUIRED: Any = inspect.Parameter.empty
_SECTION = re.compile(r"\n\s*(Attributes|Raises|Notes|Examples)\n\s*-{3,}\n")


class Param:
    """One parameter: how it is checked, shown and explained.

    The value is stored in the object's `__dict__`, which is fast to read, and cannot be reassigned.
    """

    def __init__(
        self,
        default: Any,
        check: Callable[[str, Any], Any],
        kind: str,
        doc: str,
        plain: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.default, self.kind, self.doc = default, kind, doc
        self._check, self._plain = check, plain
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, instance: object, value: Any) -> None:
        raise AttributeError(
            f"{self.name} of a {type(instance).__name__} cannot be changed: make another one"
        )

    def checked(self, value: Any) -> Any:
        """Return a value after its check; None is allowed if it is the default."""
        if value is None and self.default is None:
            return None
        return self._check(self.name, value)

    def plain(self, value: Any) -> Any:
        """Return a checked value as plain JSON types."""
        return None if value is None else self._plain(value)

    def described(self) -> str:
        """Return the parameter's entry in the docstring."""
        kind = self.kind
        if self.default is None:
            kind += ", optional"
        elif self.default is not _REQUIRED:
            kind += f", default {self.default!r}"
        return f"{self.name} : {kind}\n    {self.doc}"


def integer(
    *, default: Any = _REQUIRED, low: int | None = None, high: int | None = None, doc: str = ""
) -> Any:
    """Declare a whole number in a range.

    Examples
    --------
    >>> class Walk(Declared):
    ...     steps: int = integer(default=3, low=1)
    >>> Walk().steps, Walk(steps=5).steps
    (3, 5)
    """
    return Param(default, lambda name, value: checks.integer(name, value, low, high), "int", doc)


def real(
    *,
    default: Any = _REQUIRED,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
    doc: str = "",
) -> Any:
    """Declare a number in a range.

    Examples
    --------
    >>> class Walk(Declared):
    ...     length: float = real(default=0.5, low=0.0, high=2.0)
    >>> Walk(length=3)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: length must be in [0, 2], got 3
    """
    ends = {"low_open": low_open, "high_open": high_open}
    return Param(
        default, lambda name, value: checks.real(name, value, low, high, **ends), "float", doc
    )


def size(*, default: Any = _REQUIRED, low: int = 1, doc: str = "") -> Any:
    """Declare a number of features or arms.

    Examples
    --------
    >>> class Walk(Declared):
    ...     n_arms: int = size(default=8)
    >>> Walk().n_arms
    8
    """
    return integer(default=default, low=low, high=checks.LARGEST_SIZE, doc=doc)


def horizon(*, default: Any = _REQUIRED, doc: str = "") -> Any:
    """Declare a number of rounds.

    Examples
    --------
    >>> class Walk(Declared):
    ...     rounds: int = horizon(default=400)
    >>> Walk().rounds
    400
    """
    return integer(default=default, low=1, high=checks.LARGEST_HORIZON, doc=doc)


def probability(*, default: Any = _REQUIRED, doc: str = "") -> Any:
    """Declare a number in (0, 1].

    Examples
    --------
    >>> class Walk(Declared):
    ...     share: float = probability(default=0.3)
    >>> Walk().share
    0.3
    """
    return real(default=default, low=0.0, high=1.0, low_open=True, doc=doc)


def choice(*, default: Any = _REQUIRED, words: tuple[str, ...], doc: str = "") -> Any:
    """Declare a choice among words.

    Examples
    --------
    >>> class Walk(Declared):
    ...     pace: str = choice(default="slow", words=("slow", "fast"))
    >>> Walk(pace="fast").pace
    'fast'
    """
    listed = ", ".join(f'"{word}"' for word in words[:-1]) + f' or "{words[-1]}"'
    return Param(default, lambda name, value: checks.one_of(name, value, words), listed, doc)


def flag(*, default: bool, doc: str = "") -> Any:
    """Declare True or False.

    Examples
    --------
    >>> class Walk(Declared):
    ...     uphill: bool = flag(default=False)
    >>> Walk(uphill=True).uphill
    True
    """
    return Param(default, checks.boolean, "bool", doc)


def custom(
    *,
    default: Any = _REQUIRED,
    check: Callable[[str, Any], Any],
    kind: str,
    plain: Callable[[Any], Any] = lambda value: value,
    doc: str = "",
) -> Any:
    """Declare a parameter with a custom check, called with its name and value.

    Examples
    --------
    >>> def even(name, value):
    ...     return checks.integer(name, value) // 2 * 2
    >>> class Walk(Declared):
    ...     turns: int = custom(default=2, check=even, kind="even int")
    >>> Walk(turns=5).turns
    4
    """
    return Param(default, check, kind, doc, plain)


@dataclass_transform(
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(integer, real, size, horizon, probability, choice, flag, custom),
)
class Declared:
    """A class whose constructor takes its declared parameters, by name."""

    parameters: ClassVar[dict[str, Param]] = {}
    """The parameters by name, those of base classes first."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _redeclare(cls)
        cls.parameters = _params_of(cls)
        declared = cls.parameters.values()
        if "__init__" not in cls.__dict__:
            keyword = inspect.Parameter.KEYWORD_ONLY
            cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
                [inspect.Parameter(each.name, keyword, default=each.default) for each in declared]
            )
        if cls.__doc__ and declared and "\n    Parameters\n" not in cls.__doc__:
            cls.__doc__ = _with_parameters(cls.__doc__, list(declared))

    def __init__(self, *unnamed: Any, **given: Any) -> None:
        if unnamed:
            raise _unnamed(type(self), unnamed, given)
        for name, param in self.parameters.items():
            value = given.pop(name, param.default)
            if value is _REQUIRED:
                raise InvalidSettingError(f"must be given to {type(self).__name__}", name=name)
            self.__dict__[name] = param.checked(value)
        if given:
            raise _unknown(type(self), next(iter(given)))
        self.setup()

    def setup(self) -> None:
        """Create what a fresh object has besides its parameters; refuse those that contradict."""

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        values = self.__dict__
        return {name: param.plain(values[name]) for name, param in self.parameters.items()}

    def __repr__(self) -> str:
        """Return the constructor call, without parameters that have their default value."""
        shown = (
            f"{name}={value!r}"
            for name, param in self.parameters.items()
            if not _is_default(value := self.__dict__[name], param)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _redeclare(cls: type) -> None:
    """Turn values in the place of inherited parameters into parameters with another default."""
    annotations = inspect.get_annotations(cls)
    inherited = {name: param for base in cls.__mro__[:0:-1] for name, param in _own(base).items()}
    for name, value in dict(vars(cls)).items():
        is_constant = "ClassVar" in str(annotations.get(name)) or hasattr(value, "__get__")
        if name in inherited and not isinstance(value, Param) and not is_constant:
            try:
                default = inherited[name].checked(value)
            except InvalidSettingError as error:
                raise InvalidSettingError(f"{cls.__name__}: {error}") from None
            param = copy(inherited[name])
            param.default = default
            setattr(cls, name, param)


def _own(base: type) -> dict[str, Param]:
    return {name: value for name, value in vars(base).items() if isinstance(value, Param)}


def _params_of(cls: type) -> dict[str, Param]:
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in _own(base))
    found = ((name, inspect.getattr_static(cls, name)) for name in names)
    return {name: param for name, param in found if isinstance(param, Param)}


def _is_default(value: Any, param: Param) -> bool:
    if value is None or param.default is _REQUIRED or param.default is None:
        return value is param.default
    return bool(param.plain(value) == param.plain(param.checked(param.default)))


def _with_parameters(text: str, declared: list[Param]) -> str:
    """Return a docstring with a section "Parameters" before its first other section."""
    entries = "\n".join(each.described() for each in declared)
    section = inspect.cleandoc(f"Parameters\n----------\n{entries}").replace("\n", "\n    ")
    place = _SECTION.search(text)
    at = len(text.rstrip()) if place is None else place.start()
    return f"{text[:at].rstrip()}\n\n    {section}\n{text[at:]}"


def _unknown(cls: type[Declared], name: str) -> InvalidSettingError:
    names = list(cls.parameters)
    known = f"is not a parameter of {cls.__name__}, which takes {', '.join(names)}"
    return InvalidSettingError(known + checks.did_you_mean(name, names), name=name)


def _unnamed(
    cls: type[Declared], values: tuple[Any, ...], given: dict[str, Any]
) -> InvalidSettingError:
    """Return an error that names the first parameters which take some values."""
    free = {name: param for name, param in cls.parameters.items() if name not in given}
    written = []
    for value in values:
        name = next((name for name, param in free.items() if _takes(param, value)), "…")
        free.pop(name, None)
        written.append(f"{name}={value!r:.60}")
    return InvalidSettingError(
        f"{cls.__name__} takes its settings by name: write {cls.__name__}({', '.join(written)})"
    )


def _takes(param: Param, value: Any) -> bool:
    try:
        param.checked(value)
    except Exception:  # of a check of any kind
        return False
    return True


class Value(Declared):
    """Parameters that never change, such as a world: equal to all values that have the same ones.

    Examples
    --------
    >>> class Walk(Value):
    ...     length: float = real(default=0.5, low=0.0)
    ...     steps: int = integer(default=3, low=1)
    >>> walk = Walk(steps=5)
    >>> walk == Walk(length=0.5, steps=5), walk.replace(length=2)
    (True, Walk(length=2.0, steps=5))
    """

    def replace(self, **settings: Any) -> Self:
        """Return the value with other settings."""
        return type(self)(**{name: self.__dict__[name] for name in self.parameters} | settings)

    def __eq__(self, other: object) -> bool:
        """Return whether class and parameters are the same."""
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        """Return a hash of class and parameters."""
        return hash((type(self), self._values()))

    def _values(self) -> tuple[Any, ...]:
        return tuple([self.__dict__[name] for name in self.parameters])
