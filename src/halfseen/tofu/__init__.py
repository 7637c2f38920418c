"""The paper's algorithm, TOFU-POV, and the ingredients that can be exchanged.

Read it in the order of the paper: the corrected covariance (`halfseen.linear.covariance`), the
estimators of the subspace (`subspace`, and `sequential` for those that follow the arms), how many
directions are kept (`rank`), latent coordinates of half-seen arms (`imputation`, by
`halfseen.linear.lift`), the epochs with their radius and which rewards a new one learns again
(`epoch`), the regression in them (`halfseen.linear.ridge`), and the policy (`policy`). `ingredient`
has what all exchangeable parts share.
"""

from halfseen.linear.eigen import Directions
from halfseen.tofu.epoch import Radius, Replay, ReplayRule, SelfNormalized
from halfseen.tofu.imputation import Imputation, LeastSquares, PosteriorMean
from halfseen.tofu.policy import TofuPov, TwoPhase
from halfseen.tofu.rank import Known, RankRule, Selection
from halfseen.tofu.sequential import Grouse, Oja, Petrels, SequentialEstimator
from halfseen.tofu.subspace import CorrectedCovariance, LikelihoodFit, SubspaceEstimator

__all__ = [
    "CorrectedCovariance",
    "Directions",
    "Grouse",
    "Imputation",
    "Known",
    "LeastSquares",
    "LikelihoodFit",
    "Oja",
    "Petrels",
    "PosteriorMean",
    "Radius",
    "RankRule",
    "Replay",
    "ReplayRule",
    "Selection",
    "SelfNormalized",
    "SequentialEstimator",
    "SubspaceEstimator",
    "TofuPov",
    "TwoPhase",
]
