"""Compiled loops. Each file is complete in itself.

numba only notices changes in the file of a compiled function. So a compiled function only calls
functions and reads constants of its own file; the types of arguments, which are part of the
signature, come from `compiling`. Nothing here validates or raises: callers pass C-contiguous arrays
of the right shape. Signatures are explicit, so a file is compiled once, at its first import, and
then cached. Inputs are typed read-only, which accepts writeable arrays as well.

Half-seen arms are passed as one table with NaN where hidden.
"""
