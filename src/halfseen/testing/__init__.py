"""Checks for your own policies, worlds, agents and journals.

::

    check_policy(lambda: MyPolicy(dim=6))
    check_world(lambda: MyWorld(horizon=20))
    check_agent(lambda: Agent(policy=MyPolicy(dim=6)))
    check_journal(MyJournal)

Each check makes one claim. With pytest, one test per claim::

    @pytest.mark.parametrize("check", policy_checks(), ids=str)
    def test_my_policy(check):
        check(lambda: MyPolicy(dim=6))

Examples
--------
>>> from halfseen import AmbientOful
>>> check_policy(lambda: AmbientOful(dim=4))
"""

from halfseen.testing.agents import agent_checks, check_agent
from halfseen.testing.journals import check_journal, journal_checks
from halfseen.testing.policies import Check, check_policy, policy_checks
from halfseen.testing.worlds import check_world, world_checks

__all__ = [
    "Check",
    "agent_checks",
    "check_agent",
    "check_journal",
    "check_policy",
    "check_world",
    "journal_checks",
    "policy_checks",
    "world_checks",
]
