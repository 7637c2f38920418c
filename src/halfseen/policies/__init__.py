"""The base class of all policies, their registry, and the baselines.

Importing this package registers its policies.
"""

from halfseen.policies import ambient, imputed, oracle, per_arm, trivial

__all__ = ["ambient", "imputed", "oracle", "per_arm", "trivial"]
