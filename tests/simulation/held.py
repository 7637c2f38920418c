"""A plugin: a policy that stops a run in the middle until it is let go."""

import time
from pathlib import Path

from halfseen import Choice, Slate, Uniform, register_policy

GO = Path(__file__).with_name("go")


@register_policy
class Held(Uniform):
    """Uniform; from seed 2 on it waits for a file, but no longer than two minutes."""

    def decide(self, slate: Slate) -> Choice:
        end = time.monotonic() + 120.0
        while self.seed >= 2 and not GO.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return super().decide(slate)
