"""The exchangeable parts of TOFU-POV: shipped ones, and those of a stranger."""

import math

import numpy as np
import pytest

from halfseen import (
    ArchiveError,
    FixedRank,
    InvalidSettingError,
    LowRankWorld,
    TofuPov,
    TwoPhase,
    params,
)
from halfseen.linear.eigen import distance
from halfseen.policies import registry
from halfseen.testing import check_policy
from halfseen.tofu import (
    CorrectedCovariance,
    Imputation,
    LeastSquares,
    LikelihoodFit,
    PosteriorMean,
    Radius,
    RankRule,
    Replay,
    ReplayRule,
    SelfNormalized,
    SubspaceEstimator,
)
from policy_runs import few_arms, looks, tofu, walk


class Blended(SubspaceEstimator):
    """Zero-filled arms, and some of the identity."""

    share: float = params.real(default=0.1, low=0.0, high=1.0)

    def covariance(self, rows):
        filled = np.nan_to_num(rows / 1e100) * 1e100
        return (1.0 - self.share) * filled.T @ filled / len(rows) + self.share * np.eye(6)


class Turned(RankRule):
    """A fixed rank of 2 in another basis of the same subspace."""

    angle: float = params.real(default=0.7)
    flips: bool = params.flag(default=False)

    def select(self, covariance, known):
        found = FixedRank(rank=2).select(covariance, known)
        turn, tilt = math.cos(self.angle), math.sin(self.angle)
        by = np.diag([-1.0, 1.0]) if self.flips else np.array([[turn, -tilt], [tilt, turn]])
        return found._replace(basis=found.basis @ by)


class ZeroFilledArms(Imputation):
    """Hidden entries count as zero."""

    def lift(self, basis, eigenvalues):
        return lambda arms: np.where(arms == arms, arms, 0.0) @ basis


class OnlyEpochs(ReplayRule):
    """All rewards but those of the burn-in policy, except in the first epoch."""

    def replays(self, *, by_burn_in, is_first):
        return is_first or not by_burn_in


SHIPPED = {
    "likelihood": {"subspace": LikelihoodFit(max_arms=30)},
    "likelihood of given rank": {"subspace": LikelihoodFit(rank=2, max_arms=30)},
    "posterior mean": {"imputation": PosteriorMean()},
}
STRANGERS = {
    "subspace": {"subspace": Blended(share=0.3, max_arms=20)},
    "rank": {"rank": Turned()},
    "imputation": {"imputation": ZeroFilledArms()},
    "replay": {"replay": OnlyEpochs()},
}


@pytest.mark.parametrize("name", SHIPPED | STRANGERS)
def test_the_contracts_of_policies_hold_with_every_ingredient(name):
    settings = {"replay": "burn-in-once"} | (SHIPPED | STRANGERS)[name]
    skip = ("memory_is_bounded",) if name == "replay" else ()  # it keeps all rewards
    check_policy(lambda: tofu(**settings), skip=skip)


@pytest.mark.parametrize("settings", [{"angle": 0.7}, {"flips": True}], ids=["rotation", "sign"])
def test_scores_do_not_depend_on_which_basis_of_the_subspace_is_frozen(settings):
    ours, theirs = (walk(tofu(rank=rank), few_arms(40)) for rank in (2, Turned(**settings)))
    for decision, turned in zip(ours, theirs, strict=True):
        assert turned.arm == decision.arm
        assert turned.scores == pytest.approx(decision.scores, rel=1e-9, abs=1e-9)


def test_a_rule_of_ones_own_decides_which_rewards_are_replayed():
    found = []
    for n_rounds in (5, 11, 23):
        policy = tofu(replay=OnlyEpochs())
        walk(policy, few_arms(n_rounds))
        policy.choose(few_arms(n_rounds + 1)[-1].table)
        found.append(policy._epoch.model.n_samples)
    assert found == [5, 6, 18]


def test_rewards_of_some_rounds_are_replayed_and_arms_of_others_span_the_subspace():
    class OfOddRounds(ReplayRule):
        def replays(self, *, round):
            return round % 2 == 1

    class OfEvenRounds(CorrectedCovariance):
        def uses(self, round):
            return round % 2 == 0

    policy = tofu(replay=OfOddRounds(), subspace=OfEvenRounds())
    rounds = few_arms(11)
    walk(policy, rounds)
    policy.choose(few_arms(12)[-1].table)  # opens an epoch with the rewards of 11 rounds
    assert policy.epoch_log[-1].round == 12
    assert policy._epoch.model.n_samples == 6
    assert policy._played.samples().rounds.tolist() == [1, 3, 5, 7, 9, 11]
    assert policy.epoch_log[-1].n_arms == sum(len(each.table) for each in rounds[1::2])


def test_a_replay_rule_sees_the_arm_of_a_reward():
    class ThatShowTheFirst(ReplayRule):
        def replays(self, *, arm, **others):
            return not np.isnan(arm[0])

    policy = tofu(replay=ThatShowTheFirst())
    walk(policy, few_arms(30))
    kept = policy._played.samples().arms
    assert 0 < len(kept) < 30
    assert not np.isnan(kept[:, 0]).any()


def test_a_replay_rule_that_asks_for_what_there_is_not_is_refused():
    with pytest.raises(
        InvalidSettingError, match=r"Wishful\.replays must be one of 'round', 'arm'"
    ):

        class Wishful(ReplayRule):
            def replays(self, *, reward):
                return reward > 0


class Twice(Radius):
    """Twice the paper's radius, or something that is no radius."""

    factor: float = params.real(default=2.0)

    def radius(self, record, assumed):
        ours = SelfNormalized().radius(record, assumed)
        return lambda log_det, n_samples: self.factor * ours(log_det, n_samples)


def test_a_radius_of_ones_own_is_the_factor_of_widths():
    check_policy(lambda: tofu(radius=Twice(), replay="burn-in-once"))
    policy, other = tofu(), tofu(radius=Twice())
    for each in (policy, other):
        walk(each, few_arms(5))
    table = few_arms(1, seed=3)[0].table
    ours, theirs = policy.choose(table), other.choose(table)
    assert ours.epoch == theirs.epoch == 0
    bonus = ours.scores - ours.estimates
    assert np.allclose(theirs.estimates, ours.estimates)
    assert np.allclose(theirs.scores - theirs.estimates, 2 * bonus)


@pytest.mark.parametrize("factor", [-1.0, 1.7e308])
def test_a_radius_that_is_none_is_refused(factor):
    policy = tofu(radius=Twice(factor=factor))
    walk(policy, few_arms(5))
    with pytest.raises(InvalidSettingError, match="a radius must be finite and not negative, got"):
        policy.choose(few_arms(1)[0].table)


@pytest.mark.parametrize("word", ["none", "burn-in-once", "burn-in", "full"])
def test_a_word_and_a_rule_with_the_same_answers_replay_the_same(word):
    class Same(ReplayRule):
        def replays(self, *, by_burn_in, is_first):
            return Replay(word).replays(by_burn_in=by_burn_in, is_first=is_first)

    ours, theirs = (tofu(replay=replay) for replay in (word, Same()))
    assert [looks(each) for each in walk(ours, few_arms(30))] == [
        looks(each) for each in walk(theirs, few_arms(30))
    ]
    assert ours.epoch_log == theirs.epoch_log
    assert len(ours._played) == len(theirs._played)


def test_a_likelihood_fit_finds_the_subspace_long_before_the_corrected_covariance():
    world = LowRankWorld(dim=30, rank=3, observe_prob=0.3, n_arms=20, horizon=41)
    truth = world.realize(0)
    found = []
    for settings in ({}, {"subspace": LikelihoodFit()}):
        policy = TofuPov(dim=30, rank=3, observe_prob=0.3, burn_in=40, **settings)
        for round in truth.rounds():
            policy.choose(round.slate)
        found.append(distance(policy.basis, truth.basis))
    assert found[0] > 0.1
    assert found[1] < 0.01


def test_the_posterior_mean_does_not_inflate_an_arm_that_shows_little():
    basis = np.array([[0.5, 0.01], [0.5, -0.01], [0.5, 0.7], [0.5, -0.7]])
    basis[:, 1] /= np.linalg.norm(basis[:, 1])
    table = np.array([[0.6, 0.4, np.nan, np.nan]])  # near the first direction
    sizes = [
        np.linalg.norm(each.lift(basis, np.ones(2))(table))
        for each in (LeastSquares(), PosteriorMean())
    ]
    assert sizes[0] > 5.0
    assert sizes[1] < 1.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"subspace": LeastSquares()}, "subspace must be one of .*'CorrectedCovariance'.*'Grouse'"),
        ({"subspace": {"rule": "Magic"}}, "subspace .* whose module is imported, got 'Magic'"),
        ({"imputation": 3}, r"imputation must be one of \['LeastSquares', 'PosteriorMean'"),
        ({"replay": {"rule": "FixedRank", "rank": 1}}, "replay .* got 'FixedRank'"),
        ({"subspace": Blended(), "dim": 8193}, "got 8193"),
    ],
)
def test_ingredients_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        tofu(**settings)


def test_a_stranger_cannot_take_the_name_of_an_ingredient_of_halfseen():
    with pytest.raises(InvalidSettingError, match="belongs to halfseen's LeastSquares"):
        type("LeastSquares", (Imputation,), {"__module__": "mine"})


def test_an_ingredient_can_be_given_by_the_name_of_its_class():
    policy = tofu(subspace="LikelihoodFit", imputation="PosteriorMean")
    assert (policy.subspace, policy.imputation) == (LikelihoodFit(), PosteriorMean())
    with pytest.raises(InvalidSettingError, match="subspace must be one of"):
        tofu(subspace="PosteriorMean")


def test_a_redeclared_parameter_stays_one_and_is_checked_when_the_class_is_made():
    class OfMine(TofuPov):
        replay = "burn-in-once"
        subspace = LikelihoodFit(rank=2)

    given = {"dim": 6, "rank": 2, "observe_prob": 0.7}
    policy = OfMine(**given)
    assert policy.replay is Replay.BURN_IN_ONCE
    assert policy.settings()["replay"] == "burn-in-once"
    assert policy.settings()["subspace"] == LikelihoodFit(rank=2).to_dict()
    assert OfMine(**given, replay="none").replay is Replay.NONE
    assert TofuPov(**given).replay is Replay.FULL
    with pytest.raises(InvalidSettingError, match=r"^Wrong: replay must be one of 'none'"):

        class Wrong(TofuPov):
            replay = "burn-in-twice"

    assert "growth" not in TwoPhase(**given, horizon=10).settings()  # a ClassVar


def test_a_subspace_of_the_wrong_shape_is_refused():
    class Short(RankRule):
        def select(self, covariance, known):
            found = FixedRank(rank=2).select(covariance, known)
            return found._replace(basis=found.basis[:3])

    policy = tofu(rank=Short())
    walk(policy, few_arms(5))
    with pytest.raises(ValueError, match="expected an array of shape"):
        policy.choose(few_arms(1)[0].table)


def test_a_rank_rule_that_returns_no_selection_is_told_so():
    class Wrong(RankRule):
        def select(self, covariance, known):
            return FixedRank(rank=2).select(covariance, known).basis

    policy = tofu(rank=Wrong())
    walk(policy, few_arms(5))
    with pytest.raises(ValueError, match=r"^Wrong\.select must return a Selection, got array"):
        policy.choose(few_arms(1)[0].table)


def test_loading_a_policy_of_the_paper_names_the_import_that_is_missing(monkeypatch):
    classes = {name: each for name, each in registry._CLASSES.items() if name != "Pslb"}
    monkeypatch.setattr(registry, "_CLASSES", classes)
    with pytest.raises(ArchiveError, match=r"no policy is called 'Pslb'.*halfseen\.paper has Pslb"):
        registry.policy_from_dict({"policy": "Pslb"})
