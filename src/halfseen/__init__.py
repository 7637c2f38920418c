"""Contextual bandits for tables with missing values.

The stub `__init__.pyi` is the list of public names: type checkers read it, and so does
`lazy_loader`, which imports each name when it is first used.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
