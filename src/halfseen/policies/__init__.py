"""The base class of all policies, what only some of them can do, and their registry."""
