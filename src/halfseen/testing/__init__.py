"""Whether a policy or a world keeps its contracts: checks to run on a class of your own.

    check_policy(lambda: MyPolicy(dim=6))
    check_world(lambda: MyWorld(horizon=20))

Each check makes one claim. With pytest, one test per claim:

    @pytest.mark.parametrize("check", policy_checks(), ids=str)
    def test_my_policy(check):
        check(lambda: MyPolicy(dim=6))
"""

from halfseen.testing.check import Check
from halfseen.testing.policies import check_policy, policy_checks
from halfseen.testing.worlds import check_world, world_checks

__all__ = ["Check", "check_policy", "check_world", "policy_checks", "world_checks"]
