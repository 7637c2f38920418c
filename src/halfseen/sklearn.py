"""Missing values in scikit-learn: imputation with standard deviations, and principal components.

Both are transformers that take NaN, and work in pipelines, grid searches and on data frames.
They need scikit-learn (extra `sklearn`).

Both also take tables larger than memory: data frames of Dask, and Parquet files or folders by their
path. What would be a table of as many rows is then a lazy Dask frame, or an iterator over pyarrow
tables.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial, wraps
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import InvalidTableError
from halfseen.factors.model import Factors
from halfseen.factors.table import RowPosterior, blocks, fit_table, posterior
from halfseen.frames.parts import Parts, parts_of, whole
from halfseen.latent.plausible import limits_of, plausible
from halfseen.lazy import from_extra
from halfseen.linear.covariance import check_dense, corrected_covariance
from halfseen.linear.eigen import top_eigenpairs
from halfseen.linear.lift import Lift
from halfseen.values import LARGEST, FloatArray

with from_extra("sklearn"):
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
    from sklearn.impute import MissingIndicator
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.extmath import svd_flip
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["LatentImputer", "MaskedPCA"]

# `partial_fit` chooses the rank again when this many times as many rows have come.
_RANK_GROWTH = 2.0
# Of the least-squares fit of a row, so that few seen entries determine its coordinates, too.
_IMPUTE_RIDGE = 1e-5


# Random numbers that are drawn at once.
_BLOCK = 1_000_000
# Methods that return a row for each row.
_BY_ROW = ("predict_std", "to_latent", "transform")


def _by_parts(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a method that also takes tables in parts."""

    @wraps(method)
    def whole_or_parts(self: Any, X: Any) -> Any:  # noqa: N803
        if parts_of(X) is None:
            return method(self, X)
        parts = self._parts(X)
        name = method.__name__  # the function itself could not be pickled by reference
        return parts.transformed(getattr(self._light(), name), self._names_of(name))

    return whole_or_parts


class _TakesHoles(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of tables with NaN."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _BY_ROW:
            if name in vars(cls):
                setattr(cls, name, _by_parts(vars(cls)[name]))

    def _parts(self, X: Any, *, reset: bool = False) -> Parts:  # noqa: N803
        """Return a table in parts, for `_table`; a table in memory is a single one."""
        parts = parts_of(X)
        if parts is None:
            return whole(self._checked(X, reset=reset))
        if not reset:
            check_is_fitted(self)
        validate_data(self, parts.empty, reset=reset, skip_check_array=True)
        return parts

    def _table(self, part: Any) -> FloatArray:
        """Return a part as numbers; one in memory has been checked."""
        return part if isinstance(part, np.ndarray) else self._checked(part)

    def _light(self) -> Self:
        """Return what workers need of it."""
        return self

    def _names_of(self, method: str) -> list[str]:
        """Return the names of the columns that a method returns."""
        return list(self.get_feature_names_out())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: Any, *, reset: bool = False) -> FloatArray:  # noqa: N803
        """Return a table of finite numbers, NaN where hidden."""
        if not reset:
            check_is_fitted(self)
        table: FloatArray = validate_data(
            self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan"
        )
        size = max(np.fmax.reduce(table, axis=None), -np.fmin.reduce(table, axis=None))
        if size > LARGEST:
            raise InvalidTableError(f"entries must be at most {LARGEST:g} in size, got {size:g}")
        return table


class LatentImputer(OneToOneFeatureMixin, _TakesHoles):  # type: ignore[misc]
    """Imputation by a latent factor model, with a standard deviation for each imputed entry.

    A row is x = μ + Wz + ε with z standard normal and a noise variance for each feature, fitted by
    maximum likelihood to the seen entries. Units and offsets do not matter. A missing entry is
    imputed by its expectation given the seen entries of its row; seen entries do not change. A
    feature that was never seen is imputed as 0. Values more than 20 interquartile ranges from the
    quartiles, such as the code -999, say nothing, in the fit or about their rows.

    Parameters
    ----------
    n_components : int, optional
        Number of latent dimensions; by default the evidence chooses. Fewer are used if the table
        does not determine that many.
    max_samples : int
        Largest number of rows to which the model is fitted: a uniform sample of all rows so far,
        which the imputer keeps for `partial_fit`.
    add_indicator : bool
        Whether `transform` appends an indicator for each feature with missing values in `fit`.
    random_state : int, RandomState or None
        Seed of that sample and of `sample`.

    Attributes
    ----------
    n_components_ : int
    components_ : ndarray, shape (n_components, n_features)
        W', in the features' units. In standardised units its rows are orthogonal, the longest
        first.
    mean_, noise_variance_ : ndarray, shape (n_features,)
    explained_variance_ratio_ : ndarray, shape (n_components,)
        Share of the standardised variance that each component explains.
    n_samples_seen_ : int
    indicator_ : MissingIndicator or None

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = 5.0 + random.normal(size=(60, 1)) * [1.0, 2.0, -1.0]
    >>> X[random.random(X.shape) < 0.3] = np.nan
    >>> imputer = LatentImputer().fit(X)
    >>> imputer.transform([[6.0, np.nan, np.nan]]).round(2).tolist(), imputer.n_components_
    ([[6.0, 7.0, 4.0]], 1)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_samples: int = 10_000,
        add_indicator: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_samples = max_samples
        self.add_indicator = add_indicator
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "LatentImputer":  # noqa: N803
        """Fit the model to the seen entries of a table."""
        return self._absorb(X, afresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> "LatentImputer":  # noqa: N803
        """Fit the model to more rows; memory is bounded by `max_samples` rows."""
        return self._absorb(X, afresh=not hasattr(self, "n_samples_seen_"))

    def _absorb(self, X: Any, *, afresh: bool) -> "LatentImputer":  # noqa: N803
        parts = self._parts(X, reset=afresh)
        most = checks.integer("max_samples", self.max_samples, 1)
        rank = self.n_components
        rank = None if rank is None else checks.integer("n_components", rank, 0)
        random = check_random_state(self.random_state) if afresh else self._random
        # A uniform sample: each row has a random number, and the rows with the smallest ones stay.
        drawn, numbers = _drawn(random, len(parts), most)
        some = self._table(parts.take(drawn))
        if afresh:
            self._random: Any = random
            self._rows, self._numbers = np.empty((0, some.shape[1])), np.empty(0)
            self.n_samples_seen_ = self._n_ranked = 0
        rows = np.vstack([self._rows, some])
        numbers = np.concatenate([self._numbers, numbers])
        stay = _smallest(numbers, most)
        rows, self._rows, self._numbers = rows[stay], rows[stay], numbers[stay]
        self.n_samples_seen_ += len(parts)
        is_due = afresh or (rank is None and self.n_samples_seen_ >= _RANK_GROWTH * self._n_ranked)
        known: Factors | None = None if afresh else self._model
        self._limits = limits_of(rows)
        usual = plausible(rows, self._limits)
        model = _rotated(fit_table(usual, rank, known, is_due=is_due))
        self._model: Factors = model
        if is_due:
            self._n_ranked = self.n_samples_seen_
        self.indicator_ = None
        if self.add_indicator:
            self.indicator_ = MissingIndicator(error_on_new=False).fit(rows)
        strengths = (model.loadings**2).sum(axis=1)
        total = strengths.sum() + model.noise[model.scale > 0.0].sum()
        self.n_components_ = model.rank
        self.components_ = model.loadings * model.scale
        self.mean_ = model.location
        self.noise_variance_ = model.noise * model.scale**2
        self.explained_variance_ratio_ = strengths / max(total, 1e-300)
        # As in a regression on n_j rows: the fit makes the noise too small, and has errors itself.
        counts, n_fitted = (usual == usual).sum(axis=0), model.rank + 1
        self._fresh_noise = (counts + n_fitted) / np.maximum(counts - n_fitted, 1)
        self._is_known = counts > 1
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the table with missing values imputed; seen entries are unchanged."""
        table = self._checked(X)
        filled = table.copy()
        for place, found in self._posteriors(table):
            np.copyto(filled[place], found.filled, where=np.isnan(table[place]))
        if self.indicator_ is None:
            return filled
        return np.hstack([filled, self.indicator_.transform(table)])

    def _posteriors(self, table: FloatArray) -> Iterator[tuple[slice, RowPosterior]]:
        """Yield what rows say, as in the fit: implausible values say nothing."""
        for place in blocks(len(table)):
            yield place, posterior(self._model, plausible(table[place], self._limits))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features, followed by those of the indicators."""
        names = super().get_feature_names_out(input_features)
        if self.indicator_ is None:
            return names
        return np.concatenate([names, self.indicator_.get_feature_names_out(names)])

    def predict_std(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the standard deviation of each imputed entry, 0 where it is seen.

        It is infinite for a feature with fewer than two seen values in `fit`. The interval
        `transform(X) ± 1.645 * predict_std(X)` covers 90 % of missing values if the model holds.
        """
        table = self._checked(X)
        deviations = np.zeros(table.shape)
        for place, found in self._posteriors(table):
            variance = self.noise_variance_ * (found.share + self._fresh_noise)
            deviation = np.where(self._is_known, np.sqrt(variance), np.inf)
            np.copyto(deviations[place], deviation, where=np.isnan(table[place]))
        return deviations

    def sample(self, X: Any, n: int = 10) -> FloatArray:  # noqa: N803
        """Return imputed tables drawn from the posterior, shape (n, n_rows, n_features).

        Multiple imputation: repeating an analysis on each table shows the uncertainty due to
        missing values.
        """
        table, random = self._checked(X), check_random_state(self.random_state)
        tables, model = np.tile(table, (checks.integer("n", n, 1), 1, 1)), self._model
        for place, found in self._posteriors(table):
            root, hidden = np.linalg.cholesky(found.covariance), np.isnan(table[place])
            for drawn in tables[:, place]:
                latent = np.einsum("nab,nb->na", root, random.normal(size=found.latent.shape))
                noise = np.sqrt(model.noise * self._fresh_noise) * random.normal(size=drawn.shape)
                entries = found.filled + model.scale * (latent @ model.loadings + noise)
                np.copyto(drawn, entries, where=hidden)
        return tables

    def to_latent(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the posterior means of z, shape (n_rows, n_components)."""
        table = self._checked(X)
        return np.concatenate([found.latent for _, found in self._posteriors(table)])

    def inverse_transform(self, Z: Any) -> FloatArray:  # noqa: N803
        """Return the rows that belong to latent coordinates of shape (n_rows, n_components)."""
        check_is_fitted(self)
        latent = check_array(Z, dtype=np.float64, ensure_min_features=0)
        n = self.n_components_
        checks.integer("the number of latent coordinates", latent.shape[1], n, n)
        return np.asarray(self.mean_ + latent @ self.components_)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean log-likelihood of the rows' seen entries, in the features' units."""
        total, n = self._parts(X).sum(self._light()._likelihood)
        return float(total / n)

    def _likelihood(self, part: Any) -> FloatArray:
        """Return the log-likelihood of rows, and their number."""
        table = self._table(part)
        total = sum(float(found.log_likelihood.sum()) for _, found in self._posteriors(table))
        return np.array([total, len(table)])

    def _light(self) -> Self:
        """Return it without its sample of rows, which only fits need."""
        light = copy(self)
        del light._rows, light._numbers
        return light

    def _names_of(self, method: str) -> list[str]:
        if method == "transform":
            return super()._names_of(method)
        if method == "to_latent":
            return [f"latent{at}" for at in range(self.n_components_)]
        return list(super().get_feature_names_out())


def _drawn(
    random: np.random.RandomState, n: int, most: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return a uniform sample of n rows, in order, and its random numbers."""
    rows, numbers = np.empty(0, dtype=np.int64), np.empty(0)
    for first in range(0, n, _BLOCK):
        new = random.random_sample(min(_BLOCK, n - first))
        rows = np.concatenate([rows, np.arange(first, first + len(new))])
        numbers = np.concatenate([numbers, new])
        stay = _smallest(numbers, most)
        rows, numbers = rows[stay], numbers[stay]
    return rows, numbers


def _smallest(numbers: FloatArray, most: int) -> NDArray[np.int64]:
    """Return the places of the smallest numbers, in order."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    return np.sort(np.argpartition(numbers, most)[:most])


def _rotated(model: Factors) -> Factors:
    """Return the same model with orthogonal loadings, the longest first, of fixed signs."""
    left, lengths, directions = np.linalg.svd(model.loadings, full_matrices=False)
    _, directions = svd_flip(left, directions, u_based_decision=False)
    return model._replace(loadings=lengths[:, None] * directions)


class MaskedPCA(ClassNamePrefixFeaturesOutMixin, _TakesHoles):  # type: ignore[misc]
    """Principal components of a table with missing values, by a corrected covariance.

    Entry (j, k) of the second moment of the zero-filled, centred table is divided by the
    probability of seeing both features. If entries are hidden independently of each other and of
    their values, the result is unbiased. The coordinates of a row are those of the least-squares
    fit of its seen entries, with a small ridge. On a complete table it equals
    `sklearn.decomposition.PCA`.

    Parameters
    ----------
    n_components : int
        At most as many as there are features.
    observe_prob : float, array-like of shape (n_features,), or "counted"
        Probability that an entry is seen; by default each feature's share of the rows that show it.

    Attributes
    ----------
    components_ : ndarray, shape (n_components, n_features)
    explained_variance_, explained_variance_ratio_ : ndarray, shape (n_components,)
        The corrected covariance may be indefinite, so late ones may be negative.
    mean_, observe_prob_ : ndarray, shape (n_features,)
    n_components_ : int

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = 5.0 + random.normal(size=(2000, 1)) * [1.0, 2.0, -2.0]
    >>> X[random.random(X.shape) < 0.3] = np.nan
    >>> pca = MaskedPCA(n_components=1).fit(X)
    >>> pca.components_.round(1).tolist()
    [[0.3, 0.7, -0.7]]
    >>> pca.inverse_transform(pca.transform([[6.0, np.nan, np.nan]])).round(0).tolist()
    [[6.0, 7.0, 3.0]]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        observe_prob: Any = "counted",
    ) -> None:
        self.n_components = n_components
        self.observe_prob = observe_prob

    def fit(self, X: Any, y: Any = None) -> "MaskedPCA":  # noqa: N803
        """Compute the components from the seen entries of a table."""
        parts = self._parts(X, reset=True)
        n, dim = len(parts), self.n_features_in_
        check_dense(dim)
        count = checks.integer("n_components", self.n_components, 1, dim)
        counts, sums = parts.sum(self._seen)
        counts = np.maximum(counts, 1)
        prob = self._checked_prob(counts / n)
        mean = sums / counts
        moment = parts.sum(partial(self._moment, mean=mean))
        covariance = corrected_covariance(moment, max(1, n - 1), prob)
        values, vectors = top_eigenpairs(covariance, count)
        self.mean_, self.observe_prob_, self.n_components_ = mean, prob, count
        self.components_, self.explained_variance_ = vectors.T, values
        self.explained_variance_ratio_ = values / max(covariance.trace(), 1e-300)
        self._n_features_out = count
        return self

    def _seen(self, part: Any) -> FloatArray:
        """Return how many entries of each column are seen, and their sum, shape (2, dim)."""
        table = self._table(part)
        seen = table == table
        return np.stack([seen.sum(axis=0), np.where(seen, table, 0.0).sum(axis=0)])

    def _moment(self, part: Any, mean: FloatArray) -> FloatArray:
        """Return the second moment of the zero-filled, centred rows, times their number."""
        rest = self._table(part) - mean
        rest = np.where(rest == rest, rest, 0.0)
        return np.asarray(rest.T @ rest)

    def _checked_prob(self, shares: FloatArray) -> FloatArray:
        given, n = self.observe_prob, len(shares)
        if isinstance(given, str):
            checks.one_of("observe_prob (numbers or a word)", given, ("counted",))
            return shares
        probs = [given] * n if isinstance(given, Real) else list(given)
        checks.integer("the number of observation probabilities", len(probs), n, n)
        return np.array([checks.probability("observe_prob", each) for each in probs])

    def transform(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the coordinates of rows, shape (n_rows, n_components)."""
        table = self._checked(X) - self.mean_
        return Lift.least_squares(self.components_.T, _IMPUTE_RIDGE).coordinates(table)

    def inverse_transform(self, Z: Any) -> FloatArray:  # noqa: N803
        """Return the full rows that coordinates (n_rows, n_components) stand for."""
        check_is_fitted(self)
        return np.asarray(self.mean_ + check_array(Z, dtype=np.float64) @ self.components_)
