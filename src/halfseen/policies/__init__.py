"""Who chooses: one policy per file, all under the same contract.

Importing this package registers every policy that ships with it.
"""

from halfseen.policies import ambient, pslb, tofu, uniform

__all__ = ["ambient", "pslb", "tofu", "uniform"]
