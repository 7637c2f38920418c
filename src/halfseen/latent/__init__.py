"""LatentUcb: features, items, evidence, reward model, history, explanation, policy.

Importing this package registers the policy.
"""

from halfseen.latent import policy

__all__ = ["policy"]
