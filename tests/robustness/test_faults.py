"""Interrupts at some function entries and lines."""

from halfseen import warm_up
from robustness.faults import run

warm_up(progress=False)  # compiling while every line is traced would take minutes


def test_an_interrupt_at_any_point_leaves_the_old_state_or_the_new_one():
    tried, failures = run(200, seed=0)
    assert tried >= 200
    assert failures == []
