"""The constants, conditions and bounds of the paper, each as a documented function.

``problem`` holds the constants of a bandit problem, ``representation`` the effect of masks and the
errors of what is estimated from them, ``regret`` the bounds on one epoch, on all of them and on two
variants, ``lower_bound`` those on every policy.
"""

from halfseen.theory.lower_bound import *
from halfseen.theory.problem import *
from halfseen.theory.regret import *
from halfseen.theory.representation import *
