"""The base class of all policies, their registry, and the baselines.

Importing this package registers its policies.
"""

from halfseen.policies import ambient, estimated, imputed, oracle, per_arm, trivial

__all__ = ["ambient", "estimated", "imputed", "oracle", "per_arm", "trivial"]
