"""How numbers and names of settings are written for readers."""

import math
from typing import NamedTuple


class Words(NamedTuple):
    """A setting in words: its letter in the paper, and the label of an axis."""

    letter: str
    label: str


_WORDS = {
    "horizon": Words("T", "rounds, T"),
    "n_arms": Words("K", "arms per slate, K"),
    "rank": Words("m", "rank, m"),
    "dim": Words("d", "features, d"),
    "conditioning": Words("κ", "conditioning, κ"),
    "p": Words("p", "share of entries seen, p"),
    "split": Words("a", "first phase of T^a rounds, a"),
    "observe_prob": Words("p", "p"),
    "failure_prob": Words("δ", "δ"),
    "far_rank_length": Words("t_rank", "t_rank"),
    "floor": Words("floor", "the floor"),
    "imputation_bound_actual": Words("bound", "the bound at the measured distance"),
    "surrogate_bound_actual": Words("bound", "the bound at the measured distance"),
    "squared_widths_bound": Words("bound", "twice the potential"),
    "reestimated_potential_sum": Words("bound", "the potential bound"),
    "lemma_bound": Words("bound", "the bound of the lemmas"),
    "theorem_bound": Words("bound", "the bound of the theorem"),
}


def words_for(name: str) -> Words:
    """Return the words for a setting; an unknown one stands for itself.

    >>> words_for("n_arms").letter, words_for("half_life").label
    ('K', 'half life')
    """
    plain = name.replace("_", " ")
    return _WORDS.get(name, Words(plain, plain))


def number(value: float, digits: int = 3) -> str:
    """Return a number as people write it: some significant digits, thousands apart, no exponent.

    Whole parts are never rounded. Numbers below a millionth or above a billion have a power of 10.

    >>> number(1265.04), number(0.012345), number(-12.34), number(12.0), number(3.2e15)
    ('1,265', '0.0123', '−12.3', '12', '3.2·10^15')
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    size = abs(value)
    if size and not 1e-6 <= size < 1e9:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{float(mantissa):g}·10^{int(power)}"
    else:
        places = 0 if size == 0 else digits - 1 - math.floor(math.log10(size))
        text = f"{value:,.{max(0, places)}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")
