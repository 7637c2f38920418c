"""The premises of the theorems in a world."""

from halfseen.core.theory import Premises, premises_of
from halfseen.errors import InvalidSettingError
from halfseen.worlds.base import World


def premises(
    world: World, *, failure_prob: float = 0.05, burn_in: int | None = None, seed: int = 0
) -> Premises:
    """Return which premises of the theorems hold in a world, and which bounds say nothing there.

    Parameters
    ----------
    world : LowRankWorld or HardInstanceWorld
        A world that knows the constants of the theory.
    failure_prob : float
        δ.
    burn_in : int, optional
        Rounds of burn-in of a policy; by default the whole horizon.
    seed : int
        The realization whose constants count.

    Returns
    -------
    Premises
        `upper` and `lower`: each premise with `holds`, the `factor` by which it does not, and a
        sentence. `shares`: each bound relative to the trivial one. `vacuous`: those at 1 or above.

    Raises
    ------
    InvalidSettingError
        The world has no such constants, because its masks are not independent, its arms do not
        lie in a subspace, or it is another kind of world.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> found = premises(LowRankWorld(latent="uniform"))
    >>> [premise.name for premise in found.upper if not premise.holds]
    ['condition on p', 'burn-in']
    >>> found.vacuous
    ('known rank', 'unknown rank', 'one estimate', 'subspace error', 'misspecification')
    """
    realization = world.realize(seed)
    problem = getattr(realization, "problem", None)
    if problem is None:
        raise InvalidSettingError(
            "the premises need the constants of the theory, which only LowRankWorld and "
            f"HardInstanceWorld have, got {type(world).__name__}"
        )
    return premises_of(problem(), failure_prob=failure_prob, burn_in=burn_in)
