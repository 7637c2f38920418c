"""Settings of all tests: properties are checked on the same examples in every run."""

from hypothesis import settings

# No deadline: the first call of a compiled loop takes longer than all later ones together.
settings.register_profile(
    "halfseen", deadline=None, derandomize=True, max_examples=50, database=None
)
settings.load_profile("halfseen")
