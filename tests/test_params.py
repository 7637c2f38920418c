"""Parameters that are declared once, and what a constructor says of mistakes."""

import pytest

from halfseen import Agent, InvalidSettingError, LatentUcb, LowRankWorld, TofuPov


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (lambda: Agent(LatentUcb()), r"Agent\(policy=LatentUcb\(\)\)"),
        (lambda: Agent("sku"), r"Agent\(id='sku'\)"),
        (lambda: Agent(LatentUcb(), "sku"), r"Agent\(policy=LatentUcb\(\), id='sku'\)"),
        (lambda: Agent(LatentUcb(), policy=LatentUcb()), r"Agent\(…=LatentUcb\(\)\)"),
        (lambda: TofuPov(6, rank=2), r"TofuPov\(dim=6\)"),
        (lambda: LowRankWorld(6, 2), r"LowRankWorld\(dim=6, rank=2\)"),
    ],
)
def test_settings_without_a_name_are_refused_with_what_to_write(make, written):
    with pytest.raises(InvalidSettingError, match=f"takes its settings by name: write {written}$"):
        make()
