"""The constants, conditions and bounds of the paper, each as a documented function.

``representation`` has the constants of a problem, the effect of masks and the errors of what is
estimated from them, ``regret`` the bounds on one epoch, on all of them and on two
variants, ``epoch`` what happens in one epoch of a run, ``lower_bound`` the bounds on every policy.
"""

from halfseen.theory.epoch import *
from halfseen.theory.lower_bound import *
from halfseen.theory.regret import *
from halfseen.theory.representation import *
