"""Numbers on the pages are those of the code."""

import re
from pathlib import Path

import pytest

from halfseen import Agent, theory
from halfseen.agent.database import PATIENCE
from halfseen.agent.fitter import _AFTER_FAILURE
from halfseen.agent.health import BLOCK
from halfseen.agent.journal import N_GONE
from halfseen.agent.member import LEASE_SECONDS
from halfseen.frames.encoder import N_SHARED
from halfseen.latent import features
from halfseen.latent.plausible import FARTHEST
from halfseen.latent.row_model import MOST_AMBIENT_FEATURES
from halfseen.linear.covariance import LARGEST_DENSE_DIM
from halfseen.linear.drawing import N_DRAWS
from halfseen.service.serving import _LEAVING
from halfseen.service.settings import Settings
from halfseen.service.threads import N_THREADS, N_WAITING
from halfseen.theory import Problem
from halfseen.tools.evaluate import THIN
from halfseen.tools.inspection import FEWEST_ROWS, MOST_ROWS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZE = {"dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "incoherence": 1.0}
BOUNDS = {"theta_bound": 1.0, "noise_scale": 0.05}
FLAT = {"arm_bound": 3**0.5, "top_eigenvalue": 1.0, "last_eigenvalue": 1.0}
LOADING = {"arm_bound": 3.75, "top_eigenvalue": 1.5625, "last_eigenvalue": 0.5625}
POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def text(page):
    return " ".join((DOCS / page).read_text("utf-8").split())


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("limits.md", f"more than {FARTHEST:.0f} interquartile ranges"),
        ("limits.md", f"Above {MOST_AMBIENT_FEATURES} features"),
        ("limits.md", f"above {features._MOST_ITEM_COEFFICIENTS}/n columns for n options"),
        ("limits.md", f"(but never below {features._ALWAYS_BY_ITEM})"),
        ("limits.md", f"at most {features.MOST_CROSSED:,}, and at most {features.MANY_CROSSED}"),
        ("limits.md", f"refuse more than {LARGEST_DENSE_DIM:,} features"),
        ("agent.md", f"beyond `max_levels` ({Agent().max_levels}) share {N_SHARED} features"),
        ("agent.md", f"frequencies over {N_DRAWS} draws"),
        ("agent.md", f"the latest {N_GONE:,} closed ones"),
        ("agent.md", f"the latest {BLOCK} to {2 * BLOCK:,}"),
        ("agent.md", f"held for {PATIENCE:.0f} seconds"),
        ("agent.md", f"up to {LEASE_SECONDS:.0f} seconds"),
        ("agent.md", f"tried after {_AFTER_FAILURE:.0f} seconds"),
        ("web-page.md", f"{N_THREADS} requests in work and lets {N_WAITING} wait"),
        ("web-page.md", f"gives running ones {_LEAVING} seconds"),
        ("delayed-rewards.md", f"pending ({Agent().max_pending:,} by default)"),
        ("evaluate.md", f"fewer than {THIN:.0f} effective decisions"),
        ("inspect.md", f"more than {MOST_ROWS:,} rows"),
        ("inspect.md", f"At least {FEWEST_ROWS} rows"),
    ],
)
def test_a_limit_on_a_page_is_that_of_the_code(page, sentence):
    assert sentence in text(page)


def test_the_defaults_of_the_service_are_those_of_its_settings():
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", (DOCS / "web-page.md").read_text(), re.M
    )
    shown = {
        name: value
        for names, values in rows
        for name, value in zip(
            re.findall(r"`(\w+)`", names), re.split(r", (?!\d{3}\b)", values), strict=False
        )
        if value != "–"
    }
    assert set(shown) > {"uniform_share", "expire_after", "max_pending", "timeout", "log_level"}
    for name, value in shown.items():
        default = Settings.model_fields[name].default
        assert value.strip("`").replace(",", "") in (
            f"{default}",
            f"{default:g}" if isinstance(default, float) else "",
        ), name


def number(cell):
    mantissa, _, power = cell.replace(" ", "").translate(POWERS).partition("·10")
    return float(mantissa) * 10 ** int(power or 0)


def test_the_table_of_vacuous_bounds_has_what_the_theory_computes():
    page = (DOCS / "theory-in-practice.md").read_text("utf-8")
    rows = [row.split("|")[1:-1] for row in re.findall(r"^\| \.\d \|.+\|$", page, re.M)]
    assert len(rows) == 5
    level = theory.representation_level(0.05 / 2)
    for prob, needed, *cells in rows:
        p, dim = float(prob), int(needed)
        least = {"failure_prob": level, **SIZE} | {"dim": dim}
        assert theory.observe_prob_condition(**least) <= p
        assert theory.observe_prob_condition(**least | {"dim": dim - 1}) > p
        for side, spectrum in enumerate((FLAT, LOADING)):
            here = Problem(observe_prob=p, **SIZE, **BOUNDS, **spectrum)
            *shown, informative = (number(cell.split("/")[side]) for cell in cells)
            assert shown == pytest.approx(
                [
                    theory.burn_in_length(here, failure_prob=level),
                    theory.rank_identification_length(here, failure_prob=0.05 / 4),
                    theory.subspace_error_at(here, round=400, failure_prob=level),
                ],
                rel=0.05,
            )
            for factor in (0.94, 1.06):
                long = here.replace(horizon=round(factor * informative))
                bound = theory.main_regret_bound(long, failure_prob=0.05).total
                assert (bound < theory.trivial_regret_bound(long)) == (factor > 1.0)
