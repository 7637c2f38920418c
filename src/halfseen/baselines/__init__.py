"""Policies to compare with: linear ones, pipelines with imputation, one model per item, the truth.

Importing this package registers its policies.
"""

from halfseen.baselines import ambient, estimated, imputed, oracle, per_arm, trivial

__all__ = ["ambient", "estimated", "imputed", "oracle", "per_arm", "trivial"]
