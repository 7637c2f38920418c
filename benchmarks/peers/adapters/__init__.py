"""One adapter per peer: `PACKAGES` to install, `TITLE`, `SEES` and a class `Player`.

A player is made once per run with (n_arms, dim) and has `choose(options) -> arm` and
`learn(options, arm, reward)`, by the library's documented online path and with its default settings
unless a line says otherwise. `SEES` is "all" for players that need every entry, "some" for those
that get NaN where hidden. Imports of the library stand at the top of the adapter, which is only
ever loaded inside of the peers' environment.
"""

NAMES = (
    "coba_linucb",
    "mabwiser_linucb",
    "vowpal_squarecb",
    "bayesianbandits_ucb",
    "obp_linucb",
    "river_linucb",
    "sklearn_iterative",
    "ppca",
)
"""All adapters, by the names of their modules."""
