"""LatentUcb.

docs/latent-ucb.md has the model in five steps, with the symbols of these modules, and the functions
to read in order to follow one opening. `items` integrates out what differs by item, `history`
bounds memory, `explanation` splits scores, and `saving` has the fields of saved policies.
Importing this package registers the policy.
"""

from halfseen.latent import policy

__all__ = ["policy"]
