"""The contracts between engines: the hash of users and the bins of values."""

import duckdb
import numpy as np
import pytest

from slowpath_fleet import bins, identity, reference_distributions
from slowpath_fleet.histogram import Histogram

# Published with the specification in docs/fleet.md.
VECTORS = {
    "u1": (374103673352314091, 235),
    "anna": (549008801727214836, 244),
    "Ünïcode ✓": (327797328918808383, 831),
}


def test_the_hash_of_users_gives_the_published_vectors() -> None:
    for user, (key, bucket) in VECTORS.items():
        assert (identity.user_key(user), identity.user_bucket(user)) == (key, bucket), user


def test_duckdb_computes_the_same_keys_as_python() -> None:
    for user in VECTORS:
        sql = f"SELECT {identity.key_sql('u')} FROM (SELECT $1::VARCHAR AS u)"
        assert duckdb.execute(sql, [user]).fetchall()[0][0] == identity.user_key(user)


def test_every_value_is_within_one_percent_of_the_centre_of_its_bin() -> None:
    for value in np.exp(np.random.default_rng(1).uniform(-20, 40, 2000)):
        centre = 2 * bins.GAMMA ** bins.bin_of(float(value)) / (bins.GAMMA + 1)
        assert abs(centre / value - 1) < 0.0100


def test_duckdb_puts_values_into_the_same_bins_and_places_as_python() -> None:
    values = [0.0, 1e-13, 1.0, 1.02, 3.7, 864.0, 5e6, 1e200, *np.exp(np.random.default_rng(2).uniform(-5, 15, 500))]
    for value in values:
        sql = f"SELECT {bins.bin_sql('v')}, {bins.place_sql('v')} FROM (SELECT {float(value)!r}::DOUBLE AS v)"
        assert duckdb.execute(sql).fetchall()[0] == (bins.bin_of(float(value)), bins.place_of(float(value))), value


def histogram(values: np.ndarray) -> Histogram:
    found = [(bins.bin_of(float(v)), bins.place_of(float(v))) for v in values]
    b, p = (np.array(column, np.int64) for column in zip(*found, strict=True))
    return Histogram.of(b, np.ones(len(b), np.int64), p)


def test_quantiles_are_within_one_percent_of_the_exact_ones() -> None:
    values = np.random.default_rng(3).lognormal(6, 0.7, 20_000)
    made = histogram(values)
    for share in (0.01, 0.25, 0.5, 0.75, 0.95, 0.99):
        exact = float(np.quantile(values, share, method="inverted_cdf"))
        assert abs(made.quantile(share) / exact - 1) < 0.003


def test_a_value_that_repeats_is_its_own_quantile_within_one_percent() -> None:
    for value in (0.3, 864.0, 1.02**300):
        assert abs(histogram(np.full(50, value)).quantile(0.5) / value - 1) < 0.01


def test_histograms_add_up_in_any_order() -> None:
    values = np.random.default_rng(4).lognormal(6, 1, 1000)
    whole, a, b = histogram(values), histogram(values[:300]), histogram(values[300:])
    merged = Histogram.of(*(np.concatenate([getattr(b, f), getattr(a, f)]) for f in ("bins", "counts", "places")))
    assert all(np.array_equal(getattr(whole, f), getattr(merged, f)) for f in ("bins", "counts", "places"))


@pytest.mark.parametrize("freedom", [1, 7, 63, 5000])
def test_reference_distributions_are_those_of_scipy_stats(freedom: int) -> None:
    from scipy import stats

    assert reference_distributions.t_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom))
    assert reference_distributions.t_two_sided(-2.5, freedom) == pytest.approx(2 * stats.t.sf(2.5, freedom))
    assert reference_distributions.chi_squared_above(9.0, freedom) == pytest.approx(stats.chi2.sf(9.0, freedom))
    assert reference_distributions.normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975))
