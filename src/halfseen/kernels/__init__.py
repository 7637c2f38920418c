"""Compiled loops. Each file is complete in itself.

numba notices a change of a compiled function's own file only. So a compiled function calls
functions and reads constants of its own file only; the types of arguments, which are part of the
signature, come from `types`. Nothing here validates or raises: callers hand over C-contiguous
arrays of the right shape. Signatures are explicit, so that a file compiles once, when it is first
imported, and is cached (`compiling`). Inputs are typed read-only, which accepts writeable arrays
as well.

Half-seen arms travel as one table with NaN where hidden.
"""
