"""The transformers keep scikit-learn's contracts, fill well, and know how well."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from halfseen.errors import InvalidInputError
from halfseen.factors.table import fit_table
from halfseen.sklearn import LatentImputer, MaskedPCA
from halfseen.tofu.subspace import CorrectedCovariance
from halfseen.worlds.public_tables import read_table


def low_rank(n, dim=12, rank=3, *, noise=0.3, hidden=0.5, seed=0):
    """Return a table in uneven units, which entries are hidden, and the table with holes."""
    random = np.random.default_rng(seed)
    full = random.normal(size=(n, rank)) @ random.normal(size=(rank, dim))
    full += noise * full.std(axis=0) * random.normal(size=full.shape)
    full = 10.0 + np.exp(random.normal(size=dim)) * full
    hides = random.random(full.shape) < hidden
    return full, hides, np.where(hides, np.nan, full)


def error(filled, full, hides):
    """Return the root mean square over hidden entries, in deviations."""
    return np.sqrt(np.mean((((filled - full) / full.std(axis=0))[hides]) ** 2))


@pytest.mark.parametrize(
    "estimator", [LatentImputer(), LatentImputer(2, add_indicator=True), MaskedPCA()]
)
def test_they_keep_scikit_learns_contracts(estimator):
    check_estimator(estimator, on_skip=None)


@pytest.mark.filterwarnings("ignore:.*Early stopping criterion not reached")
@pytest.mark.parametrize("name", ["wine", "breast-cancer", "diabetes"])
def test_no_development_table_is_filled_worse_than_by_iterative_imputer(name):
    full = read_table(name).values
    full = full[:, full.std(axis=0) > 0.0]
    hides = np.random.default_rng(0).random(full.shape) < 0.5
    table = np.where(hides, np.nan, full)
    theirs = error(IterativeImputer(random_state=0).fit_transform(table), full, hides)
    assert error(LatentImputer().fit_transform(table), full, hides) < 1.02 * theirs


def test_seen_entries_do_not_change_and_frames_keep_their_names():
    _, hides, table = low_rank(80, 4, 1)
    hides[:, 3], table[:, 3] = False, 1.0 / 3.0
    for frame, kind in ((pd.DataFrame, "pandas"), (pl.DataFrame, "polars")):
        offers = frame(table, **{"columns" if kind == "pandas" else "schema": list("abcd")})
        imputer = LatentImputer(add_indicator=True).set_output(transform=kind)
        filled = imputer.fit_transform(offers)
        assert list(filled.columns) == [*"abcd", *(f"missingindicator_{name}" for name in "abc")]
        values = filled.to_numpy()
        assert np.array_equal(values[:, :4][~hides], table[~hides])
        assert np.array_equal(values[:, 4:], hides[:, :3])
        assert not np.isnan(values).any()


def test_a_grid_search_finds_the_rank_and_a_pipeline_predicts():
    full, _, table = low_rank(400)
    search = GridSearchCV(LatentImputer(), {"n_components": [1, 2, 3, 5]}, cv=3).fit(table)
    assert search.best_params_["n_components"] == 3 == LatentImputer().fit(table).n_components_
    worth = full[:, 0] > 10.0
    pipe = make_pipeline(LatentImputer(), LogisticRegression(max_iter=1000))
    assert pipe.fit(table[:300], worth[:300]).score(table[300:], worth[300:]) > 0.8


@pytest.mark.parametrize(
    "shape",
    [{"n": 300, "dim": 60, "hidden": 0.8}, {"n": 1000, "dim": 30, "rank": 5, "noise": 1.0}],
)
def test_intervals_of_90_percent_have_85_to_95_percent_of_hidden_entries(shape):
    covered = []
    for seed in range(4):
        full, hides, table = low_rank(seed=seed, **shape)
        imputer = LatentImputer().fit(table)
        near = np.abs(imputer.transform(table) - full) <= 1.645 * imputer.predict_std(table)
        assert near[~hides].all()
        covered.append(near[hides].mean())
    assert 0.85 < np.mean(covered) < 0.95


def test_draws_have_the_mean_and_deviation_that_are_stated():
    _, hides, table = low_rank(60)
    imputer = LatentImputer(3, random_state=1).fit(table)
    tables = imputer.sample(table, 2000)
    assert np.array_equal(tables[:, ~hides], np.tile(table[~hides], (2000, 1)))
    deviations = imputer.predict_std(table)[hides]
    off = (tables.mean(axis=0) - imputer.transform(table))[hides] / deviations
    assert np.abs(off).max() < 5.0 / np.sqrt(2000)
    ratio = tables.std(axis=0)[hides] / deviations
    assert np.abs(ratio - 1.0).max() < 5.0 / np.sqrt(2 * 2000)


def test_the_score_is_the_likelihood_of_seen_entries():
    _, hides, table = low_rank(50, 5, 2)
    imputer = LatentImputer(2).fit(table)
    covariance = imputer.components_.T @ imputer.components_ + np.diag(imputer.noise_variance_)
    logs = [
        multivariate_normal(imputer.mean_[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
        for row, seen in zip(table, ~hides, strict=True)
        if seen.any()
    ]
    assert imputer.score(table) == pytest.approx(np.sum(logs) / 50)


def test_latent_coordinates_stand_for_rows_and_components_are_ordered():
    full, _, table = low_rank(300, noise=0.0)
    imputer = LatentImputer().fit(table)
    back = imputer.inverse_transform(imputer.to_latent(full))
    assert error(back, full, np.ones(full.shape, bool)) < 1e-3
    shares = imputer.explained_variance_ratio_
    assert (np.diff(shares) < 0.0).all()
    assert shares.sum() == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(InvalidInputError, match=r"coordinates must be .*, got 2"):
        imputer.inverse_transform(np.zeros((1, 2)))


def test_a_stream_is_learned_in_bounded_memory_as_well_as_a_table():
    full, hides, table = low_rank(3000)
    imputer = LatentImputer(max_samples=500, random_state=0)
    for part in np.split(table, 10):
        imputer.partial_fit(part)
    assert (imputer.n_samples_seen_, len(imputer._rows), imputer.n_components_) == (3000, 500, 3)
    # A uniform sample: the mean place is 1500 ± 37.
    places = [np.flatnonzero((row == table).any(axis=1))[0] for row in imputer._rows]
    assert abs(np.mean(places) - 1500.0) < 5 * 37
    whole = error(LatentImputer().fit_transform(table), full, hides)
    assert error(imputer.transform(table), full, hides) < 1.02 * whole


def test_one_entry_that_the_others_contradict_does_not_spoil_its_row():
    _, _, table = low_rank(400, hidden=0.3)
    imputer = LatentImputer().fit(table)
    model = fit_table(table)
    assert np.allclose(imputer.transform(table), model.fill(table))  # no entry is contradicted
    row = table[:1].copy()
    row[0, 0], wrong = imputer.mean_[0], row.copy()
    row[0, 1] = wrong[0, 1] = np.nan
    for size in (10.0, 1e6):
        wrong[0, 0] += size * np.sqrt(imputer.noise_variance_[0])
        moved = np.abs(imputer.transform(wrong) - imputer.transform(row))[0, 1]
        assert moved < 3.0 * imputer.predict_std(row)[0, 1]


def test_a_code_for_missing_does_not_enter_the_fit():
    random = np.random.default_rng(4)
    full = 5.0 + random.normal(size=(400, 3)) @ random.normal(size=(3, 10))
    table = np.where(random.random(full.shape) < 0.3, np.nan, full)
    coded = np.where(random.random(full.shape) < 0.01, -999.0, table)
    imputer = LatentImputer().fit(coded)
    assert imputer.n_components_ == 3
    assert np.abs(imputer.transform(table) - full).mean() < 0.1
    seen = coded == coded
    assert (imputer.transform(coded)[seen] == coded[seen]).all()


def test_what_was_never_seen_is_filled_with_0_and_an_infinite_deviation():
    _, _, table = low_rank(50, 3, 1)
    table = np.column_stack([table, np.full(50, np.nan), np.where(table[:, 0] > 0, 7.0, np.nan)])
    imputer = LatentImputer().fit(table)
    hidden = np.full((1, 5), np.nan)
    assert imputer.transform(hidden)[0, 3:].tolist() == [0.0, 7.0]
    assert imputer.predict_std(hidden)[0, 3:].tolist() == [np.inf, 0.0]
    assert np.isfinite(imputer.sample(hidden, 3)).all()
    assert np.isfinite(imputer.score(hidden))


def test_masked_pca_is_pca_without_holes_and_the_papers_estimate_with_holes():
    full, _, table = low_rank(400, 6, 2, hidden=0.3)
    ours, theirs = MaskedPCA(2).fit(full), PCA(2).fit(full)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    assert np.allclose(ours.components_, signs[:, None] * theirs.components_)
    assert np.allclose(ours.transform(full), signs * theirs.transform(full))
    for name in ("explained_variance_", "explained_variance_ratio_", "mean_"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name))
    assert list(ours.get_feature_names_out()) == ["maskedpca0", "maskedpca1"]

    estimator = CorrectedCovariance()
    moments = estimator.no_arms(6, seed=0, observe_prob="counted")
    moments.add(table - np.nanmean(table, axis=0))
    for prob in (0.7, np.linspace(0.5, 0.9, 6), "counted"):
        covariance = estimator.estimate(moments, prob)[0]
        values = np.linalg.eigvalsh(covariance)[::-1]
        pca = MaskedPCA(6, observe_prob=prob).fit(table)
        assert np.allclose(pca.explained_variance_ * 399 / 400, values)


def test_masked_pca_recovers_coordinates_from_half_of_the_entries():
    full, _, table = low_rank(20_000, 30, 2, noise=0.0)
    pca = MaskedPCA(2).fit(table)
    exact = pca.transform(full)
    close = np.abs(pca.transform(table) - exact).mean() / np.abs(exact).mean()
    assert close < 0.1
    assert error(pca.inverse_transform(pca.transform(table)), full, full > 0.0) < 0.2


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LatentImputer(-1), "n_components must be an integer .* got -1"),
        (LatentImputer(max_samples=0), "max_samples must be an integer .* got 0"),
        (MaskedPCA(9), r"n_components must be an integer in \[1, 4\], got 9"),
        (MaskedPCA(observe_prob=1.4), r"observe_prob must be in \(0, 1\], got 1.4"),
        (MaskedPCA(observe_prob=[0.5, 0.5]), "number of observation probabilities .* got 2"),
        (MaskedPCA(observe_prob="counts"), "a word. must be one of 'counted', got 'counts'"),
    ],
)
def test_settings_out_of_range_are_refused_with_the_range(estimator, message):
    with pytest.raises(InvalidInputError, match=message):
        estimator.fit(low_rank(20, 4, 1)[2])
    with pytest.raises(InvalidInputError, match="entries must be at most"):
        MaskedPCA().fit([[1e301, 1.0], [2.0, 3.0]])


def test_an_implausible_value_says_nothing_about_its_row():
    random = np.random.default_rng(0)
    table = random.normal(size=(200, 1)) @ random.normal(size=(1, 5))
    table += 0.1 * random.normal(size=table.shape)
    table[random.random(table.shape) < 0.3] = np.nan
    table[random.random(table.shape) < 0.02] = -999.0
    imputer = LatentImputer().fit(table)
    coded, hidden = table[:20].copy(), table[:20].copy()
    coded[:, 0], hidden[:, 0] = -999.0, np.nan
    np.testing.assert_array_equal(imputer.transform(coded)[:, 1:], imputer.transform(hidden)[:, 1:])
    assert (imputer.transform(coded)[:, 0] == -999.0).all()
