"""scikit-learn's imputers by name, and tables filled in by a fitted one.

scikit-learn is imported only when an imputer is created.
"""

import inspect
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.seeding import stream
from halfseen.state import ARMS, Sizes
from halfseen.values import LARGEST, FloatArray

SHORT_NAMES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "zero": ("SimpleImputer", {"strategy": "constant", "fill_value": 0.0}),
    "mean": ("SimpleImputer", {}),
    "knn": ("KNNImputer", {}),
    # Each iteration goes through all features: about 15 ms per choice with 30 features (measured).
    # In the main study at p = .3 the regrets of seeds 0 and 1 were 24.9 and 18.1 with one
    # iteration, 17.9 and 15.4 with two, and the same with three.
    "iterative": ("IterativeImputer", {"max_iter": 2}),
}
"""What the short names stand for."""

# Fixed settings: filling in must keep the shape of a slate and be deterministic.
_FIXED = {"add_indicator": False, "keep_empty_features": True, "sample_posterior": False}


# Errors that overflow inside an imputer can raise.
_FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class ImputerRecipe:
    """Which imputer, with which settings: a class of `sklearn.impute` and plain values.

    Parameters
    ----------
    imputer : str or estimator
        A short name, the name of a class in `sklearn.impute`, or an object of such a class.
    settings : mapping, optional
        Arguments of the class; not allowed with an object, which has its own settings.
    seed : int
        Seed of a random imputer, unless its settings contain one.

    Raises
    ------
    InvalidSettingError
        The class is not one of `sklearn.impute`, or a setting is unknown, out of range, or not a
        plain JSON value.
    """

    def __init__(self, imputer: Any, settings: Mapping[str, Any] | None, seed: int) -> None:
        if isinstance(imputer, str):
            self.name, defaults = SHORT_NAMES.get(imputer, (imputer, {}))
            self.settings = defaults | _checked_mapping(settings)
            make = _imputer_class(self.name)
        else:
            if settings:
                raise InvalidSettingError(
                    f"imputer_settings go with a name, not with an object, got {settings!r}"
                )
            self.name, make = type(imputer).__name__, type(imputer)
            if make is not _imputer_class(self.name):
                raise InvalidSettingError(
                    f"imputer must be of a class in sklearn.impute, which can be saved without "
                    f"pickle, got {imputer!r}"
                )
            self.settings = _differing(imputer)
        known = _parameters(self._made(make, {}))
        for name in _FIXED.keys() & known.keys():
            if self.settings.pop(name, _FIXED[name]) is not _FIXED[name]:
                raise InvalidSettingError(f"imputer setting {name} must be {_FIXED[name]} here")
        hidden = self.settings.pop("missing_values", math.nan)
        if not isinstance(hidden, float) or not math.isnan(hidden):
            raise InvalidSettingError(f"imputer setting missing_values must be NaN, got {hidden!r}")
        self.settings = {name: _plain(name, value) for name, value in self.settings.items()}
        self._arguments = {name: _FIXED[name] for name in _FIXED if name in known} | self.settings
        if "random_state" in known and self.settings.get("random_state") is None:
            state = int(stream(seed, "imputer").integers(2**31))
            self._arguments["random_state"] = state
        self._class = make
        self._made(make, self._arguments)

    def try_out(self, dim: int) -> None:
        """Raise InvalidSettingError if the imputer cannot work in `dim` features."""
        imputer, table = self.fresh(), np.ones((2, dim))
        if "skip_complete" in _parameters(imputer):
            imputer.set_params(skip_complete=True)  # nothing is hidden, so skip the work
        try:
            with _quiet():
                shape = imputer.fit(table).transform(table).shape
        except Exception as error:
            raise InvalidSettingError(
                f"imputer {self.name} with {self.settings} cannot be fitted: {error}"
            ) from None
        if shape != table.shape:
            raise InvalidSettingError(f"imputer {self.name} must keep the shape of a table")

    def fresh(self) -> Any:
        """Return a new imputer, not fitted."""
        return self._class(**self._arguments)

    def _made(self, make: Any, arguments: dict[str, Any]) -> Any:
        try:
            return make(**arguments)
        except TypeError as error:
            raise InvalidSettingError(f"imputer {self.name} cannot be made: {error}") from None


class Filler:
    """Fills in tables with an imputer fitted to rows; deterministic, and seen entries stay.

    A hidden entry becomes 0 if no row shows its feature, or if the imputer fails: some imputers
    fail on very large numbers or on numbers of very different size.

    Parameters
    ----------
    recipe : ImputerRecipe
    rows : ndarray, shape (n, dim)
        NaN where hidden. Without rows every hidden entry becomes 0.
    """

    def __init__(self, recipe: ImputerRecipe, rows: FloatArray) -> None:
        self.rows = rows
        self._known = ~np.isnan(rows).all(axis=0) if len(rows) else np.zeros(rows.shape[1], bool)
        self._constants = np.zeros(rows.shape[1])
        self._imputer: Any = None
        if self._known.any():
            imputer = recipe.fresh()
            with _quiet(), suppress(*_FAILURES):
                imputer.fit(rows)
                self._imputer = imputer
            if self._imputer is not None and recipe.name == "SimpleImputer":
                # Its guess is one number per feature, so it is computed only once.
                guesses = np.asarray(self._imputer.statistics_, dtype=np.float64)
                self._constants = np.where(self._known, _cut_off(guesses), 0.0)
                self._imputer = None

    def state(self) -> FloatArray:
        """Return the rows."""
        return self.rows

    @classmethod
    def restored(cls, policy: Any, saved: Any) -> "Filler":
        """Return the imputer of a policy, fitted to saved rows again."""
        return cls(policy._recipe, ARMS.load("rows", saved, Sizes(policy)))

    def fill(self, table: FloatArray) -> FloatArray:
        """Return a table (n_arms, dim) with nothing hidden."""
        hidden = np.isnan(table)
        filled = np.where(hidden, self._constants, table)
        rows = np.flatnonzero((hidden & self._known).any(axis=1))
        if self._imputer is None or not len(rows):
            return filled
        # Equal arms are filled in once: rounding may depend on an arm's position in the table.
        places: dict[bytes, int] = {}
        which = [places.setdefault(table[row].tobytes(), len(places)) for row in rows]
        firsts = rows[np.unique(which, return_index=True)[1]]
        guesses = np.zeros((len(firsts), table.shape[1]))
        with _quiet(), suppress(*_FAILURES):
            guesses = np.asarray(self._imputer.transform(table[firsts]), dtype=np.float64)
        guesses = _cut_off(guesses)
        guessed = hidden[rows] & self._known
        filled[rows] = np.where(guessed, guesses[which], filled[rows])
        return filled


def _cut_off(guesses: FloatArray) -> FloatArray:
    return np.clip(np.nan_to_num(guesses, nan=0.0), -LARGEST, LARGEST)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about convergence and about overflows, which are clipped later."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def _imputer_class(name: str) -> Any:
    with from_extra("paper"):
        from sklearn import impute
        from sklearn.experimental import enable_iterative_imputer

    assert enable_iterative_imputer  # importing it adds IterativeImputer to sklearn.impute
    # Imputers have the parameter keep_empty_features; a MissingIndicator has not.
    classes = [
        each
        for each in sorted(impute.__all__)
        if "keep_empty_features" in inspect.signature(getattr(impute, each)).parameters
    ]
    if name not in classes:
        checks.one_of("imputer", name, (*SHORT_NAMES, *classes))
    return getattr(impute, name)


def _parameters(imputer: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = imputer.get_params(deep=False)
    return parameters


def _differing(imputer: Any) -> dict[str, Any]:
    """Return the settings of an imputer that differ from its class's defaults."""
    own = _parameters(type(imputer)())
    return {
        name: value for name, value in _parameters(imputer).items() if not _same(value, own[name])
    }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return other != other
    return type(one) is type(other) and bool(np.all(one == other))


def _checked_mapping(settings: Any) -> dict[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise InvalidSettingError(f"imputer_settings must be a mapping by name, got {settings!r}")
    return dict(settings)


def _plain(name: str, value: Any) -> Any:
    """Return a setting as it is after a round trip through JSON."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"imputer setting {name} must be a plain JSON value, so that the policy can be saved "
            f"without pickle, got {value!r}"
        ) from None
