"""Published means: what agrees, and that every kind of comparison flips when numbers change."""

import math
import statistics

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.paper import published as module
from halfseen.paper.published import Summary, compare_means, published_summary
from halfseen.paper.studies import study_named
from halfseen.simulation.results import Results
from shared import read, shared_file

NAMES = {
    "tofu-fh": "TOFU full-history replay fixed-rank best-val",
    "ra-tofu-fh": "TOFU full-history replay adaptive-rank",
    "tofu": "TOFU first-epoch replay fixed-rank best-val",
    "zf-oful": "Zero-imputed OFUL",
    "zf-pslb": "Masked PSLB fixed-rank best-val",
    "zf-pslb-adaptive": "Masked PSLB adaptive-rank",
    "full-oful": "Full-info OFUL",
    "pslb": "Full-info PSLB",
    "uniform": "Random",
}
IRREDUCIBLE = (900.0, 950.0, 1000.0, 1300.0, 850.0)
OFFSETS = (-8.0, 4.0, 0.0, 6.0, -2.0)
ERROR = statistics.stdev(OFFSETS) / math.sqrt(5)

FIGURES = [
    Summary(0.2, "ra-tofu-fh", 5, 1100.0, 4.0, 1000.0),
    Summary(0.2, "zf-oful", 5, 1300.0, 100.0, 1000.0),
]


def rows_of(excess=100.0, of_zf=300.0, ranks=(4, 4, 4, 4, 4), status="ok"):
    """Return rows of both tables; the excesses have mean `excess` and `of_zf`."""
    per_seed, diagnostics = [], []
    for method, level in (("ra-tofu-fh", excess), ("zf-oful", of_zf)):
        for seed in range(7):  # other seeds have no say
            key = {"study": "s", "setting": "default", "p": 0.2, "method": method, "seed": seed}
            unavoidable = IRREDUCIBLE[seed] if seed < 5 else 0.0
            # Each method has its own wobble.
            offset = OFFSETS[seed if method == "zf-oful" else 4 - seed] if seed < 5 else 1e6
            regret = unavoidable + level + offset if status == "ok" or seed != 2 else None
            rank = float(ranks[seed % 5]) if method == "ra-tofu-fh" else 100.0
            told = "ok" if regret is not None else status
            per_seed.append(
                key | {"final_regret": regret, "final_rank": rank, "status": told, "seconds": None}
            )
            diagnostics.append(key | {"name": "irreducible", "position": 0, "value": unavoidable})
            diagnostics.append(key | {"name": "epochs", "position": 0, "value": 3.0})
    return per_seed, diagnostics


def compared(per_seed, diagnostics):
    return compare_means(
        Results(
            settings={},
            per_seed=per_seed,
            diagnostics=diagnostics,
            manifest={"study": {"name": "mnist"}},
        )
    )


def comparison(**changes):
    return compared(*rows_of(**changes))


@pytest.fixture(autouse=True)
def figures(monkeypatch):
    monkeypatch.setattr(module, "published_summary", lambda name: FIGURES)


def with_published_form(rows, ranks):
    """Add the rows of `ra-tofu-fh` again, with the published threshold and other ranks."""
    per_seed, diagnostics = rows
    form = {"method": "ra-tofu-fh-published"}
    again = [
        row | form | {"final_rank": float(ranks[row["seed"] % 5])}
        for row in per_seed
        if row["method"] == "ra-tofu-fh"
    ]
    noted = [row | form for row in diagnostics if row["method"] == "ra-tofu-fh"]
    return per_seed + again, diagnostics + noted


def test_ranks_are_compared_at_the_published_threshold_where_it_was_run():
    tuned = rows_of(ranks=(8, 9, 8, 9, 9))
    assert not compared(*tuned).agrees
    (rank,) = compared(*with_published_form(tuned, (4, 4, 5, 4, 4))).ranks
    assert (rank.method, rank.ours, rank.agrees) == ("ra-tofu-fh-published", 4.2, True)
    (off,) = compared(*with_published_form(tuned, (6, 6, 6, 6, 6))).ranks
    assert not off.agrees


def test_with_the_published_threshold_beside_it_the_tuned_form_is_judged_by_its_regret():
    rows = with_published_form(rows_of(ranks=(8, 9, 8, 9, 9)), (4,) * 5)
    assert compared(*rows).agrees
    worse = with_published_form(rows_of(excess=160.0), (4,) * 5)
    assert not compared(*worse).agrees


@pytest.mark.parametrize(("name", "horizon"), [("mnist", 5000), ("newsgroups", 8000)])
def test_the_packaged_figures_are_the_published_ones(name, horizon):
    told = read(shared_file("reference", "published", f"{name}_summary.csv"))
    reference = {(float(row["p"]), row["method"]): row for row in told}
    shipped = published_summary(name)
    assert {(row.p, NAMES[row.method]) for row in shipped} == set(reference)
    assert len(shipped) == len(reference)
    for row in shipped:
        told = reference[row.p, NAMES[row.method]]
        assert row.n == int(told["n"]) == 5
        assert row.mean_regret == float(told["mean_final_regret"])
        rank = told["mean_final_rank"]
        assert row.mean_rank == (float(rank) if rank else None)
        unavoidable = (1.0 - float(told["mean_heldout_accuracy"])) * horizon
        assert row.irreducible == pytest.approx(unavoidable, abs=1e-6)


def test_the_published_thresholds_of_mnist_are_those_of_its_selections():
    told = read(shared_file("reference", "published", "mnist_selections.csv"))
    expected = {float(row["p"]): float(row["adaptive_threshold"]) for row in told}
    cells = study_named("mnist").narrowed(methods=["ra-tofu-fh-published"]).cells()
    assert {c.key.p: c.method.settings["rank"]["multiplier"] for c in cells} == expected


def test_equal_means_agree_in_everything():
    found = comparison()
    assert found.agrees
    excesses, (rank,) = found.excesses, found.ranks
    assert [(each.published, each.ours) for each in excesses] == [
        pytest.approx((100.0, 100.0)),
        pytest.approx((300.0, 300.0)),
    ]
    assert excesses[0].tolerance == pytest.approx(3.0 * math.sqrt(2.0) * ERROR)
    assert (rank.method, rank.published, rank.ours) == ("ra-tofu-fh", 4.0, 4.0)


@pytest.mark.parametrize("side", [-1, 1])
def test_an_excess_flips_at_three_standard_errors_of_the_difference(side):
    allowed = 3.0 * math.sqrt(2.0) * ERROR
    assert comparison(excess=100.0 + side * 0.99 * allowed).agrees
    found = comparison(excess=100.0 + side * 1.01 * allowed)
    assert not found.agrees
    assert [each.method for each in found.excesses if not each.agrees] == ["ra-tofu-fh"]


@pytest.mark.parametrize(("off", "agrees"), [(54.0, True), (56.0, False)])
def test_a_mean_is_off_by_at_most_five_per_cent_however_large_its_error(monkeypatch, off, agrees):
    monkeypatch.setattr(module, "LEAST_ERROR", 1000.0)
    assert comparison(excess=100.0 + off).excesses[0].agrees is agrees  # published is 1100


@pytest.mark.parametrize(
    ("ranks", "agrees"),
    [
        ((4, 4, 4, 4, 6), True),  # half a rank is always allowed
        ((5, 5, 5, 5, 5), False),
        ((4, 4, 8, 4, 5), True),  # mean 5, but it varies
    ],
)
def test_a_mean_rank_may_differ_by_half_or_by_its_standard_error(ranks, agrees):
    (rank,) = comparison(ranks=ranks).ranks
    assert rank.agrees == agrees


def test_a_mean_that_lacks_a_seed_is_missing_and_nothing_agrees():
    found = comparison(status="failed")
    assert found.missing == FIGURES
    assert not found.agrees


class TestVerify:
    """The command, on made-up results of MNIST."""

    @pytest.fixture
    def call(self, monkeypatch, here):
        def call(*options, **changes):
            asked = []

            def run(study, *arguments, **keywords):
                asked.append(study)
                per_seed, diagnostics = rows_of(**changes)
                manifest = {"study": {"name": "mnist"}}
                return Results(
                    settings={}, per_seed=per_seed, diagnostics=diagnostics, manifest=manifest
                )

            monkeypatch.setattr("halfseen.cli._run", run)
            arguments = ["verify", "mnist", "--p", ".2", *options]
            return CliRunner().invoke(app, arguments, env={"COLUMNS": "150"}), asked

        return call

    def test_it_runs_the_published_part_on_the_published_seeds(self, call):
        result, (study,) = call()
        assert result.exit_code == 0, result.output
        assert study.seeds == (0, 1, 2, 3, 4)
        assert sorted(study.methods) == ["ra-tofu-fh", "ra-tofu-fh-published", "zf-oful"]
        assert study.observe_probs == [0.2]
        assert "mnist agrees with the published results" in result.output

    def test_a_method_is_run_at_its_published_threshold_too_when_it_is_asked_for(self, call):
        _, (study,) = call("--methods", "ra-tofu-fh")
        assert sorted(study.methods) == ["ra-tofu-fh", "ra-tofu-fh-published"]

    def test_a_difference_is_printed_and_ends_with_1(self, call):
        result, _ = call(of_zf=50.0)
        assert result.exit_code == 1
        assert result.output.count("differs") == 1
        assert "mnist DIFFERS" in result.output

    def test_cells_without_a_result_are_reported(self, call):
        result, _ = call(status="failed")
        assert result.exit_code == 1
        assert "no result: zf-oful, p = 0.2" in result.output

    def test_other_seeds_cannot_be_compared(self, call):
        result, _ = call("--seeds", "0:3")
        assert result.exit_code == 2
        assert (
            "--seeds must be left out: only means over 0:5 are published, got 0:3" in result.output
        )
        assert call("--seeds", "0:5")[0].exit_code == 0
