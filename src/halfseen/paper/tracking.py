"""How a chosen rank fares against the known one, epoch by epoch."""

import numpy as np

from halfseen.errors import InvalidSettingError
from halfseen.simulation.cells import play
from halfseen.tofu.policy import TofuPov
from halfseen.tofu.rank import ConstantThreshold
from halfseen.worlds.base import Realization


def tracking(
    realization: Realization, *, threshold: float, cap: int, burn_in: int
) -> dict[str, list[float]]:
    """Return the regrets of RA-TOFU-FH and TOFU-FH in epochs whose chosen rank is right or not.

    `right_chosen` and `right_known` are sums over the epochs in which RA-TOFU-FH has the true rank,
    `large_…` and `small_…` those over the others; `…_epochs` are the numbers of epochs.
    """
    facts = realization.facts
    if facts.rank is None:
        raise InvalidSettingError("tracking needs a world that knows its rank")
    rule = ConstantThreshold(value=threshold, cap=cap)
    known = {name: getattr(facts, name) for name in ("dim", "observe_prob", "horizon")}
    settings = known | {"noise_scale": facts.noise_scale, "burn_in": burn_in}
    adaptive = TofuPov.full_history(rank=rule, **settings)
    regrets = [
        play(policy, realization).regret
        for policy in (adaptive, TofuPov.full_history(rank=facts.rank, **settings))
    ]
    starts = [epoch.round - 1 for epoch in adaptive.epoch_log]
    kinds = [int(np.sign(epoch.rank - facts.rank)) for epoch in adaptive.epoch_log]
    found = {}
    for kind, name in ((0, "right"), (1, "large"), (-1, "small")):
        picked = [each == kind for each in kinds]
        found[f"{name}_epochs"] = [float(sum(picked))]
        for regret, method in zip(regrets, ("chosen", "known"), strict=True):
            ends = np.append(regret[[start - 1 for start in starts]], regret[-1])
            found[f"{name}_{method}"] = [float(np.diff(ends)[picked].sum())]
    return found
