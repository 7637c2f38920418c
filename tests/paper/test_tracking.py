"""Regret with a chosen rank is split by epochs: is the rank right, too large or too small?"""

import pytest

from halfseen import LowRankWorld, TofuPov, play
from halfseen.paper.tracking import tracking

WORLD = LowRankWorld(dim=12, rank=3, horizon=120)


@pytest.mark.parametrize(("threshold", "kind"), [(0.08, "right"), (1e-9, "large"), (9.0, "small")])
def test_epochs_are_sorted_by_their_rank_and_add_up_to_the_regret_after_the_burn_in(
    threshold, kind
):
    prob = 0.8 if kind == "right" else 0.5
    realization = WORLD.replace(observe_prob=prob).realize(5)
    found = tracking(realization, threshold=threshold, cap=6, burn_in=20)
    assert {name for name, values in found.items() if values[0]} == {
        f"{kind}_{what}" for what in ("epochs", "chosen", "known")
    }
    assert found[f"{kind}_epochs"] == [3.0]  # from rounds 21, 42 and 84 on
    known = TofuPov(
        dim=12, rank=3, observe_prob=prob, horizon=120, noise_scale=0.05, burn_in=20, replay="full"
    )
    regret = play(known, realization).regret
    assert found[f"{kind}_known"] == [pytest.approx(regret[-1] - regret[19])]
    is_same = found[f"{kind}_chosen"] == found[f"{kind}_known"]
    assert is_same == (kind == "right")
