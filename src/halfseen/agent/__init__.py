"""The front door: tables in, items out, rewards by id.

agent = Agent()
decision = agent.choose(frame)
agent.learn(decision.id, 1.0)
"""

from halfseen.agent.agent import Agent, Pending, Scored, load
from halfseen.agent.explanation import Explanation, Measurement

__all__ = ["Agent", "Explanation", "Measurement", "Pending", "Scored", "load"]
