"""How methods look everywhere: the one place for labels, colours and styles.

A method has one colour, line and marker in every figure. Colours are those of Okabe and Ito, which
people with colour-blindness can tell apart, and shades of them; line and marker differ as well.
"""

import colorsys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

Dashes = tuple[int, tuple[float, ...]]

SOLID: Dashes = (0, ())
DASHED: Dashes = (0, (4.0, 1.5))
DOTTED: Dashes = (0, (1.2, 1.4))
MIXED: Dashes = (0, (5.0, 1.4, 1.2, 1.4))
SPARSE: Dashes = (0, (2.0, 2.4))

_BLUE, _SKY, _GREEN, _ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
_RED, _BROWN, _GREY = "#D55E00", "#8C5A2B", "#7F7F7F"


class Look(NamedTuple):
    """How a method is labelled and drawn, by the names that matplotlib has for it."""

    label: str
    color: str  # as "#rrggbb"
    linestyle: Dashes = SOLID  # as matplotlib takes it
    marker: str = "o"


def shade(color: str, by: float) -> str:
    """Return a colour made lighter (by > 0, at 1 white) or darker (by < 0, at −1 black).

    >>> shade("#0072B2", 0.5), shade("#0072B2", -1)
    ('#80b8d8', '#000000')
    """
    parts = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    mixed = [part + (255 - part) * by if by > 0 else part * (1 + by) for part in parts]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


_VARIANTS: dict[str, tuple[str, float, Dashes]] = {
    "under": ("rank too small", 0.55, DOTTED),
    "true": ("rank known", -0.12, SOLID),
    "over": ("rank too large", -0.5, DASHED),
    "adaptive": ("constant threshold", 0.36, MIXED),
    "pairwise": ("pairs counted", 0.5, SPARSE),
    "third": ("radius × 0.3", 0.3, DASHED),
    "tenth": ("radius × 0.1", 0.6, DOTTED),
    "seen": ("nothing hidden", 0.45, DOTTED),
    "shrunk": ("penalty 20", 0.4, MIXED),
    "grouse": ("GROUSE", -0.35, DASHED),
    "oja": ("Oja's rule", 0.35, MIXED),
    "petrels": ("PETRELS", 0.6, DOTTED),
}
"""What the suffix of a key means: words, shade, line."""

_VARIANT_MARKERS = {"under": "1", "over": "s"}  # others have that of the family

_OWN_VARIANTS = ("grouse", "oja", "petrels")  # not from the paper

_STANDARD = {
    "tofu": Look("TOFU", _BLUE),
    "ra-tofu": Look("RA-TOFU", _SKY, DASHED, "s"),
    "tofu-fh": Look("TOFU-FH", _GREEN, SOLID, "D"),
    "tofu-fh-short": Look("TOFU-FH, burn-in of 4 rounds", "#6BC7A6", MIXED, "D"),
    "ra-tofu-fh": Look("RA-TOFU-FH", "#A1C935", DASHED, "d"),
    "ra-tofu-fh-published": Look("RA-TOFU-FH, published threshold", "#6E8B1E", DOTTED, "d"),
    "latent-ucb": Look("latent UCB", "#5B2A86", SOLID, "*"),
    "latent-ucb-no-mask": Look("latent UCB: no masks", "#D2527F", DASHED, "o"),
    "latent-ucb-told": Look("latent UCB, given rank and zero means", "#9B6FC4", DASHED, "P"),
    "zf-oful": Look("ZF-OFUL", _RED, SOLID, "^"),
    "zf-oful-untuned": Look("ZF-OFUL, not tuned", "#F2A37A", DOTTED, "^"),
    "full-oful": Look("OFUL, nothing hidden", "#8F3F00", DOTTED, ">"),
    "zf-pslb": Look("ZF-PSLB", "#AA4499", SOLID, "v"),
    "zf-pslb-adaptive": Look("ZF-PSLB, rank chosen", "#5E1A3C", DASHED, "<"),
    "pslb": Look("PSLB, nothing hidden", "#DDA0C8", DOTTED, "1"),
    "oracle-masked": Look("subspace given", "#000000", DASHED, "X"),
    "oracle-full": Look("subspace given, nothing hidden", "#4A4A4A", DOTTED, "x"),
    "two-phase": Look("two phases, τ = T^(2/3)", _ORANGE, SOLID, "s"),
    "two-phase-best": Look("two phases, best τ", "#B33C86", MIXED, "D"),
    "two-phase-zf-best": Look("two phases, best τ, zero-filled first", "#6A4FB3", DOTTED, "v"),
    "two-phase-zf": Look("two phases, τ = T^(2/3), zero-filled first", "#9C6C00", DASHED, "p"),
    "impute-mean": Look("mean-filled OFUL", _BROWN, MIXED, "h"),
    "clbbf": Look("OFUL on expected features (CLBBF)", "#B07A00", DOTTED, "H"),
    "scaled-zero": Look("ZF-OFUL, scaled", "#C05A72", SOLID, "v"),
    "scaled-mean": Look("mean-filled OFUL, scaled", "#3D7F5F", SOLID, "h"),
    "scaled-indicators": Look("OFUL with indicators, scaled", "#3F6FB5", SOLID, "s"),
    "scaled-iterative": Look("iteratively filled OFUL, scaled", "#7A4B8C", DASHED, "8"),
    "scaled-greedy": Look("mean-filled greedy, scaled", "#A39A1E", DASHED, "p"),
    "scaled-thompson": Look("mean-filled Thompson, scaled", "#C9853A", MIXED, "P"),
    "per-arm": Look("ridge per arm", "#2E8B9A", SOLID, "d"),
    "per-arm-greedy": Look("ridge per arm, greedy", "#1C4F58", DASHED, "p"),
    "per-arm-thompson": Look("Thompson per arm", "#63B7C4", MIXED, "P"),
    "boosted-trees": Look("boosted trees, ε-greedy", "#5B8C1A", SOLID, "^"),
    "forest": Look("forest, ε-greedy", "#2F5D0A", DASHED, "v"),
    "sign-seeker": Look("knows all but the hidden sign", "#117733", MIXED, "P"),
    "row-memory": Look("ridge with a memory of rows", "#8A6FB0", MIXED, "D"),
    "same-arm": Look("always the first arm", "#B0B0B0", DOTTED, "x"),
    "zf-thompson": Look("ZF-Thompson", "#F0B84D", MIXED, "P"),
    "zf-greedy": Look("ZF-greedy", "#C9B800", DASHED, "p"),
    "algorithm-1": Look("Algorithm 1", "#14507A", SOLID, "o"),
    "algorithm-1-rank-chosen": Look("Algorithm 1, rank chosen", "#5AA5D1", MIXED, "o"),
    "wait": Look("measured", "#117733", MIXED, "P"),
    "uniform": Look("uniform", _GREY, SPARSE, "."),
    "random-burn-in": Look("uniform burn-in, no replay", "#A6761D", SPARSE, "p"),
    "replay-none": Look("no replay", "#E3B505", DASHED, "v"),
    "replay-burn-in-once": Look("burn-in replayed once", "#3F8FC9", SOLID, "o"),
    "replay-burn-in": Look("burn-in replayed at every epoch", "#1B3F8B", MIXED, "s"),
    "replay-full": Look("everything replayed", "#00805E", SOLID, "D"),
    "theory-radius": Look("theoretical bonus on", "#7A0F3C", MIXED, "X"),
}

_LATENT_UCB_WITH = {
    "no-filled": "no filled arms",
    "no-item": "no item effects",
    "no-context": "no context",
    "growth-2": "epochs double",
    "rank-told": "true rank given",
    "through-origin": "means known to be 0",
    "thompson": "Thompson sampling",
    "greedy": "greedy",
}
"""Suffixes of the keys of latent UCB with one part changed, and their labels."""

_NOT_IN_PAPER = (
    "latent-ucb",
    "oracle-",
    "impute-",
    "clbbf",
    "zf-thompson",
    "zf-greedy",
    "scaled-",
    "per-arm",
    "boosted-trees",
    "forest",
    "sign-seeker",
    "row-memory",
    "same-arm",
)
"""Prefixes of the keys of methods that are not from the paper."""

_FALLBACK_DASHES = (SOLID, DASHED, DOTTED, MIXED, SPARSE)
_FALLBACK_MARKERS = "os^vDPX*"


def look_of(key: str) -> Look:
    """Return how a method is drawn; an unknown key is its own label and gets its own colour.

    >>> look_of("tofu").label, look_of("tofu-fh-under").label, look_of("mine").label
    ('TOFU', 'TOFU-FH, rank too small', 'mine')
    """
    if key in _STANDARD:
        return _STANDARD[key]
    changed = key.removeprefix("latent-ucb-")
    if changed != key and changed in _LATENT_UCB_WITH:
        return _fallback(key)._replace(label=f"latent UCB: {_LATENT_UCB_WITH[changed]}")
    base, _, end = key.rpartition("-")
    if base in _STANDARD and end in _VARIANTS:
        words, by, dashes = _VARIANTS[end]
        family = _STANDARD[base]
        color = shade(family.color, by)
        name = f"RA-{family.label}" if end == "adaptive" else family.label
        marker = _VARIANT_MARKERS.get(end, family.marker)
        return Look(f"{name}, {words}", color, dashes, marker)
    return _fallback(key)


def label_of(key: str) -> str:
    """Return the label of a method."""
    return look_of(key).label


def in_paper(key: str) -> bool:
    """Tell whether a method is one of the paper's, or a variant of one.

    >>> in_paper("tofu-fh"), in_paper("ra-tofu-fh-over")
    (True, True)
    >>> in_paper("latent-ucb-greedy"), in_paper("mine"), in_paper("tofu-mine")
    (False, False, False)
    """
    base, _, end = key.rpartition("-")
    is_variant = base in _STANDARD and end in _VARIANTS and end not in _OWN_VARIANTS
    known = key in _STANDARD or is_variant
    return known and not key.startswith(_NOT_IN_PAPER)


def _fallback(key: str) -> Look:
    """Return a look derived from the key alone, the same in every process."""
    digest = zlib.crc32(key.encode())
    hue, digest = (digest % 997) / 997, digest // 997
    parts = colorsys.hls_to_rgb(hue, 0.36 + 0.06 * (digest % 4), 0.6)
    color = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
    dashes = _FALLBACK_DASHES[digest % len(_FALLBACK_DASHES)]
    return Look(key, color, dashes, _FALLBACK_MARKERS[digest % len(_FALLBACK_MARKERS)])


_STYLE = Path(__file__).parent / "assets" / "figures.mplstyle"


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of the package inside the block, whatever the user's own settings."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()  # a user's own style file must not change our figures
        # Ids in SVG are the same in every run; a dollar in a name is a dollar.
        mpl.rcParams.update(mpl.rc_params_from_file(_STYLE, use_default_template=False))
        yield
