"""Who chooses: one policy per file, all under the same contract.

Importing this package registers every policy that ships with it.
"""

from halfseen.policies import (
    ambient,
    greedy,
    imputed,
    latent_ucb,
    oracle,
    per_arm,
    pslb,
    same_arm,
    sign_seeker,
    standardized,
    thompson,
    tofu,
    two_phase,
    uniform,
)

__all__ = [
    "ambient",
    "greedy",
    "imputed",
    "latent_ucb",
    "oracle",
    "per_arm",
    "pslb",
    "same_arm",
    "sign_seeker",
    "standardized",
    "thompson",
    "tofu",
    "two_phase",
    "uniform",
]
