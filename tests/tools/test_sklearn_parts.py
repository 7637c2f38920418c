"""The transformers on tables in parts do what they do on the same table in memory."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import NotFittedError

from halfseen.errors import InvalidTableError
from halfseen.sklearn import LatentImputer, MaskedPCA
from halfseen.tools.inspection import inspect

N, NAMES = 900, list("abcdef")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    table = random.normal(size=(N, 2)) @ random.normal(size=(2, 6)) + 5.0
    table += 0.2 * random.normal(size=table.shape)
    table[random.random(table.shape) < 0.4] = np.nan
    return pd.DataFrame(table, columns=NAMES)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    for number, (first, end) in enumerate([(0, 300), (300, 300), (300, N)]):
        frame[first:end].to_parquet(folder / f"{number}.parquet", row_group_size=70)
    return folder


def tables(frame, folder):
    """Return the table as a folder, and in Dask with partitions of two kinds, some empty."""
    frames = dd.from_pandas(frame, npartitions=4), dd.read_parquet(folder)
    return folder, *frames, dd.concat([frames[0][frames[0].a > 1e9], frames[0]])


def read(found):
    """Return lazy or streamed results as an array."""
    if isinstance(found, dd.DataFrame):
        return found.compute().to_numpy()
    return pa.concat_tables(list(found)).to_pandas().to_numpy()


@pytest.mark.parametrize("most", [250, 10_000])
def test_a_fit_is_bit_for_bit_that_of_the_table_in_memory(frame, folder, most):
    make = LatentImputer(max_samples=most, random_state=3)
    known = make.fit(frame)
    for table in tables(frame, folder):
        fitted = LatentImputer(**make.get_params()).fit(table)
        assert fitted.n_samples_seen_ == N
        assert list(fitted.feature_names_in_) == NAMES
        assert np.array_equal(fitted.components_, known.components_)
        assert np.array_equal(fitted.mean_, known.mean_)
    halves = LatentImputer(**make.get_params()).partial_fit(frame[:400])
    halves.partial_fit(dd.from_pandas(frame[400:], npartitions=3))
    assert np.array_equal(halves._rows, known._rows, equal_nan=True)


def test_every_row_is_transformed_as_in_memory(frame, folder):
    imputer = LatentImputer(random_state=0, add_indicator=True).fit(frame)
    pca = MaskedPCA(2).fit(frame)
    for table in tables(frame, folder):
        for method in (imputer.transform, imputer.predict_std, imputer.to_latent, pca.transform):
            assert np.allclose(read(method(table)), method(frame), rtol=0.0, atol=1e-9)
        assert imputer.score(table) == pytest.approx(imputer.score(frame), rel=1e-12)


def test_the_sums_of_principal_components_are_those_of_all_rows(frame, folder):
    known = MaskedPCA(3).fit(frame)
    for table in tables(frame, folder):
        fitted = MaskedPCA(3).fit(table)
        assert np.allclose(fitted.mean_, known.mean_, rtol=1e-13)
        assert np.allclose(fitted.components_, known.components_, atol=1e-12)
        assert np.allclose(fitted.explained_variance_, known.explained_variance_, rtol=1e-12)
        assert fitted.observe_prob_.tolist() == known.observe_prob_.tolist()


def test_a_transformed_dask_frame_is_lazy_and_has_types_and_its_index(frame):
    imputer = LatentImputer(add_indicator=True).fit(frame).set_output(transform="polars")

    def never(part):
        raise AssertionError("computed")

    kept = frame.set_index(pd.Index(range(50, 50 + N), name="sku"))
    lazy = dd.from_pandas(kept, npartitions=3)
    for found, names in (
        (imputer.transform(lazy), imputer.get_feature_names_out().tolist()),
        (imputer.predict_std(lazy), NAMES),
        (imputer.to_latent(lazy), ["latent0", "latent1"]),
        (MaskedPCA(1).fit(frame).transform(lazy), ["maskedpca0"]),
    ):
        assert list(found.columns) == names
        assert set(map(str, found.dtypes)) == {"float64"}
        computed = found.compute()
        assert list(computed.columns) == names
        assert computed.index.equals(kept.index)
    imputer.transform(lazy.map_partitions(never, meta=kept))  # nothing is computed


def test_what_does_not_fit_is_refused_before_anything_is_computed(frame, folder):
    imputer = LatentImputer().fit(frame)
    for table in (dd.from_pandas(frame, npartitions=2), folder):
        with pytest.raises(NotFittedError):
            LatentImputer().transform(table)
    lazy = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- c"):
        imputer.transform(lazy.drop(columns="c"))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- z"):
        imputer.transform(lazy.assign(z=1.0))
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        LatentImputer().fit(lazy[lazy.a > 1e9])


def test_other_types_are_numbers_or_refused(frame, folder, tmp_path):
    whole = frame.assign(f=(frame.a > 5.0), e=range(N))
    known = LatentImputer().fit(whole).transform(whole)
    lazy = dd.from_pandas(whole, npartitions=2)
    assert np.allclose(read(LatentImputer().fit(lazy).transform(lazy)), known)
    words = dd.from_pandas(frame.assign(c="red"), npartitions=2)
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        LatentImputer().fit(words)
    pq.write_table(pa.Table.from_pandas(frame.assign(c="red")), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        list(LatentImputer().fit(frame).transform(tmp_path))


def test_a_sample_of_a_table_in_parts_is_inspected_as_in_memory(frame, folder, monkeypatch):
    monkeypatch.setattr("halfseen.tools.inspection.MOST_ROWS", 300)
    known = inspect(frame, "f")
    assert "of which a random sample of 300 was used" in known.findings["Rows"]
    for table in tables(frame, folder):
        assert inspect(table, "f") == known
    with pytest.raises(InvalidTableError, match="at least 20 rows, got 10"):
        inspect(dd.from_pandas(frame[:10], npartitions=2))
