"""The constants, conditions and bounds of the paper, each as a documented function.

``problem`` holds the constants of a bandit problem, ``representation`` the effect of masks and the
errors of what is estimated from them, ``regret`` the bounds on one epoch and on all of them,
``variants`` those with unknown rank and with a single estimate, ``lower_bound`` those on every
policy. ``premises`` says which of all this applies to a problem.
"""

from halfseen.theory.lower_bound import *
from halfseen.theory.premises import *
from halfseen.theory.problem import *
from halfseen.theory.regret import *
from halfseen.theory.representation import *
from halfseen.theory.variants import *
