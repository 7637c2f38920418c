"""The constants, conditions and bounds of the paper, each as a documented function.

``problem`` holds the constants of a bandit problem. ``sampling`` describes the effect of masks on
one arm. ``representation`` has the error bounds that policies use, ``rounds`` the same bounds for a
whole problem. ``regret`` bounds one epoch, ``main_theorem`` and ``rank_adaptive`` all epochs,
``two_phase`` the strategy that learns the subspace once, and ``lower_bound`` every policy.
``hidden_sign`` says what a policy that knows the hard family pays in it.
``premises`` says which of all this applies to a problem.
"""

from halfseen.theory.hidden_sign import (
    discovery_cost,
    expected_wait,
    reveal_prob,
    uninformed_loss,
)
from halfseen.theory.lower_bound import (
    COMPLETE_SLATE_FLOOR,
    LEAK_RATE_LIMIT,
    Gaps,
    complete_slate_prob,
    context_limited_applies,
    context_limited_lower_bound,
    divergence_bound,
    explicit_lower_bound,
    gaps_fit,
    hard_instance_gaps,
    hidden_sign_error,
    leak_rate,
    lower_bound_applies,
    lower_bound_at,
    no_reveal_prob,
    optimized_lower_bound,
    reward_sign_error,
)
from halfseen.theory.main_theorem import (
    doubling_sum_bound,
    is_vacuous,
    known_rank_confidence_term,
    main_regret_bound,
    n_epochs_bound,
    naive_regret_bound,
    post_burn_in_regret_bound,
    trivial_regret_bound,
)
from halfseen.theory.premises import (
    Premise,
    Premises,
    burn_in_premise,
    mask_premise,
    premises_of,
)
from halfseen.theory.problem import (
    Problem,
)
from halfseen.theory.rank_adaptive import (
    FirstRankedEpoch,
    first_ranked_epoch_start,
    identification_length,
    rank_adaptive_confidence_term,
    rank_adaptive_n_epochs,
    rank_adaptive_regret_bound,
    rank_identification_length,
    rank_is_separated,
)
from halfseen.theory.regret import (
    confidence_term,
    contracted_bias_bound,
    epoch_regret_bound,
    epoch_regret_raw,
    epoch_regrets,
    growing_radius_sum_bound,
    instant_regret_bound,
    log_det_ratio,
    n_epochs,
    naive_bias_bound,
    potential_bound,
    potential_envelope,
    potential_sums,
    representation_cost,
    steady_radius_sum_bound,
    surrogate_regret_bound,
    theorem_ridge,
    uniform_epoch_regret_bound,
)
from halfseen.theory.representation import (
    C_BURN_IN,
    burn_in_length,
    covariance_error,
    feature_bound,
    imputation_error,
    log_term,
    misspecification,
    subspace_error,
)
from halfseen.theory.rounds import (
    covariance_error_at,
    misspecification_at,
    observe_prob_suffices,
    representation_level,
    subspace_error_at,
    theorem_burn_in,
)
from halfseen.theory.sampling import (
    corrected_sample,
    corrected_sample_second_moment,
    gram_floor_estimated,
    gram_floor_true,
    incoherence_constant,
    observe_prob_condition,
    spectral_norm_bound,
    variance_proxy,
)
from halfseen.theory.two_phase import (
    balanced_split,
    best_split,
    power_split,
    two_phase_regret_bound,
)
