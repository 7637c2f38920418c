"""LatentUcb.

To follow one opening, read

    `LatentUcb._open_if_due` → `Epoch.open`
    → `RowModel.fitted`: `factors.model.RankSearch`, `kernels.factors.em`   (1. rows)
    → `epoch._features`                                                     (2. features φ and c)
    → `History.levelled`, `.compacted`, `.projected`                        (earlier rewards)
    → `RewardModel.fitted`: `Features.design`, `Evidence.maximise`,         (4. scales)
      then `_regression`                                                    (3. rewards)
    → `RewardModel.score`                                                   (5. choice)

The numbers are those of docs/latent-ucb.md, which has the formulas with the same symbols.
`items` integrates out what differs by item, `history` bounds memory, `explanation` splits scores.
Importing this package registers the policy.
"""

from halfseen.latent import policy

__all__ = ["policy"]
