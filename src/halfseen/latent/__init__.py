"""LatentUcb.

To follow one opening, read

    `LatentUcb._open_if_due` → `Epoch.open` → `RowModel.fitted` (`factors.model.Search`,
    `kernels.factors.climb`) → `features` → `RewardModel.fitted` (`Evidence.maximise`,
    `Rewards.fit`) → `RewardModel.score`;

`items` integrates out what differs by item, `history` bounds memory, `explanation` splits scores.
Importing this package registers the policy.
"""

from halfseen.latent import policy

__all__ = ["policy"]
