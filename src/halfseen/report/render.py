"""Reports in Markdown, LaTeX and HTML: three templates over one context.

Every value that a template shows is escaped for its format, unless it is marked as `Markup`.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from halfseen.report.look import NAMES, label_of
from halfseen.report.numbers import format_mean, number, seed_ranges
from halfseen.simulation.results import Mean

MARKDOWN, LATEX, HTML = "report.md.j2", "table.tex.j2", "index.html.j2"
CLAIMS = "claims.md.j2"
"""The templates."""

RULE = (
    "Claims are judged at full scale, and claims about means only with three seeds or more; a "
    "smaller run is too small to judge. Means over seeds are judged by Student's 95 % interval, "
    "given in brackets: a claim holds where the whole interval is within the claimed limits, fails "
    "where all of it is outside, and is undecided otherwise. A bound that is not below the trivial "
    "one says nothing: it is vacuous."
)
"""How a claim is judged, for readers of a report."""

_MARKDOWN = re.compile(
    r"[\\`*|~$]"  # everywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # at the edge of a word; inside, it is only a character
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)"  # HTML
    r"|\](?=[(\[:])|!(?=\[)"  # links and images
    r"|^[#>+-](?=\s)"  # headings, quotes and lists
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "θ": r"$\theta$",
}
_ROUNDING = 1e-6  # a smaller difference of two regrets is due to rounding
_SPACE = re.compile(r"\s+")
_CODE = re.compile(r"`([^`]+)`")


def render(template: str, **context: Any) -> str:
    """Return a template filled with a context."""
    return _environment(template).get_template(template).render(rule=RULE, names=NAMES, **context)


def markdown_text(text: str) -> str:
    r"""Return a text that Markdown shows as it is, also inside a table.

    >>> print(markdown_text("A & B <i>_x_|y% $z$, d_1 < 2 [0, 1]"))
    A & B \<i>\_x\_\|y% \$z\$, d_1 < 2 [0, 1]
    """
    return _MARKDOWN.sub(lambda found: "\\" + found[0], _SPACE.sub(" ", text))


def latex_text(text: str) -> str:
    r"""Return a text that LaTeX prints as it is.

    >>> print(latex_text("A & B <i>_x_|y% $z$"))
    A \& B \textless{}i\textgreater{}\_x\_\textbar{}y\% \$z\$
    """
    return "".join(_LATEX.get(character, character) for character in _SPACE.sub(" ", text))


def embedded_json(data: Any) -> Markup:
    r"""Return JSON that is safe inside a script element, whatever texts it holds.

    >>> print(embedded_json({"a": "</script>"}))
    {"a":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def counted(outcome: str, n: int) -> str:
    """Return how many verdicts have an outcome, as a string.

    >>> counted("holds", 2), counted("holds", 1), counted("undecided", 5)
    ('2 hold', '1 holds', '5 undecided')
    """
    plural = {"holds": "hold", "fails": "fail"}.get(outcome, outcome)
    return f"{n} {outcome if n == 1 else plural}"


@cache
def _environment(template: str) -> Environment:
    """Return the environment of a template: how it escapes, and its filters."""
    escapes: dict[str, Callable[[str], str]]
    escapes = {
        MARKDOWN: markdown_text,
        CLAIMS: markdown_text,
        LATEX: latex_text,
        HTML: lambda text: str(escape(text)),
    }

    def safe(value: Any) -> Any:
        return value if hasattr(value, "__html__") else Markup(escapes[template](str(value)))

    def prose(text: str) -> Markup:
        """Return a text in which `words` between backticks are code."""
        parts = [code(part) if at % 2 else safe(part) for at, part in enumerate(_CODE.split(text))]
        return Markup("".join(parts))

    def code(text: str) -> Markup:
        return Markup(f"<code>{escape(text)}</code>" if template == HTML else f"`{text}`")

    tex = template == LATEX
    environment = Environment(
        loader=PackageLoader("halfseen.report"),
        autoescape=True,  # `safe` has already escaped what is shown; this keeps macros as they are
        finalize=safe,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        variable_start_string="<<" if tex else "{{",  # braces are LaTeX's own
        variable_end_string=">>" if tex else "}}",
    )
    environment.filters |= {
        "label": label_of,
        "mean": lambda mean, digits=3: format_mean(Mean(*mean), digits),
        "ranges": seed_ranges,
        "prose": prose,
        "code": code,
        "url": lambda text: Markup(quote(text)),
        "minus": lambda text: text.replace("-", "−"),
        "number": number,
        "counted": counted,
        "deviation": lambda size: "rounding" if size < _ROUNDING else number(size, 2),
        "plain": lambda text: text.replace("`", ""),
        "json": embedded_json,
    }
    return environment
