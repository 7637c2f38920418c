"""The paper's algorithm, TOFU-POV, and the ingredients that can be exchanged.

Read it in the order of the paper: the corrected covariance (`halfseen.linear.covariance`), the
estimators of the subspace (`subspace`), how many directions are kept (`rank`), latent coordinates
of half-seen arms (`imputation`, by `halfseen.linear.lift`), the epochs and which rewards a new one
learns again (`epoch`), the regression in them with its radius (`halfseen.linear.ridge`), and the
policy (`policy`). `ingredient` has what all exchangeable parts share.
"""

from halfseen.tofu.epoch import Replay, ReplayRule
from halfseen.tofu.imputation import Imputation, LeastSquares, PosteriorMean
from halfseen.tofu.policy import TofuPov, TwoPhase
from halfseen.tofu.rank import Known, RankRule, Selection
from halfseen.tofu.subspace import CorrectedCovariance, LikelihoodFit, SubspaceEstimator

__all__ = [
    "CorrectedCovariance",
    "Imputation",
    "Known",
    "LeastSquares",
    "LikelihoodFit",
    "PosteriorMean",
    "RankRule",
    "Replay",
    "ReplayRule",
    "Selection",
    "SubspaceEstimator",
    "TofuPov",
    "TwoPhase",
]
