"""Pages of the examples, with figures and outputs from runs at full size.

`make gallery` runs the programs in examples/ and keeps, for each, a small picture and what it
prints in `figures/gallery/`, with a fingerprint of its code in `runs.json`. Building the site runs
nothing: it writes a page for each program, and the page `examples.md` lists them as cards.
"""

import ast
import contextlib
import hashlib
import io
import json
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
EXAMPLES = DOCS.parent / "examples"
FIGURES = DOCS / "figures" / "gallery"
RUNS = FIGURES / "runs.json"
PAGES = DOCS / "gallery"
PLACE = "<!-- gallery -->"
ORDER = (
    "shop_with_clicks",
    "dosing",
    "sensors",
    "several_workers",
    "evaluating_a_log",
    "imputation_pipeline",
    "what_to_measure",
    "missing_not_at_random",
    "drift",
    "paper_figure",
    "own_ingredient",
    "own_world",
)
SIZE, DOTS_PER_INCH = (4.5, 3.0), 200  # inches; legible at a third of the width


class Example(NamedTuple):
    """A program: its name, title and caption, and cells of a text and code."""

    name: str
    title: str
    caption: str
    cells: list[tuple[str, str]]

    @classmethod
    def read(cls, name: str) -> "Example":
        """Read a program whose docstring is a title and a caption, and whose cells begin `# %%`."""
        head, *cells = (EXAMPLES / f"{name}.py").read_text("utf-8").split("\n# %%\n")
        title, _, caption = ast.literal_eval(head).strip().split("\n", 2)
        parts = [re.fullmatch(r"((?:#[^\n]*\n)*)(.*)", cell, re.DOTALL) for cell in cells]
        texts = [
            (re.sub("^# ?", "", part[1], flags=re.MULTILINE), part[2]) for part in parts if part
        ]
        joined = [(text.strip(), code.strip()) for text, code in texts]
        return cls(name, title, " ".join(caption.split()), joined)

    def page(self) -> str:
        """Return the page: each cell as text and code, figure and output under the code."""
        lines = [f"# {self.title}", self.caption]
        printed = FIGURES / f"{self.name}.txt"
        last = max(
            (at for at, (_, code) in enumerate(self.cells) if "print(" in code), default=None
        )
        for at, (text, code) in enumerate(self.cells):
            lines.append(text)
            if code:
                lines.append(f"```python\n{code}\n```")
            if "plt.show()" in code:
                picture = f"../figures/gallery/{self.name}.png"
                lines.append(f":::{{image}} {picture}\n:alt: {self.caption}\n:width: 38rem\n:::")
            if at == last:
                lines.append(f"```text\n{printed.read_text('utf-8').rstrip()}\n```")
        lines.append(f"{{download}}`{self.name}.py <../../examples/{self.name}.py>`")
        return "\n\n".join(lines) + "\n"

    def card(self) -> str:
        """Return the entry of the gallery."""
        return (
            f":::{{grid-item-card}} {self.title}\n:link: gallery/{self.name}\n:link-type: doc\n"
            f":img-top: figures/gallery/{self.name}.png\n\n{self.caption}\n:::"
        )

    def code_digest(self) -> str:
        """Return a fingerprint of the code, without texts and layout."""
        code = ast.parse("\n".join(code for _, code in self.cells))
        return hashlib.sha256(ast.dump(code).encode()).hexdigest()[:16]


def run(example: Example) -> None:
    """Run a program at full size, and keep its figure and output."""
    import matplotlib.pyplot as plt
    from PIL import Image

    plt.rcParams.update({"figure.figsize": SIZE, "figure.dpi": DOTS_PER_INCH, "font.size": 10})
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / f"{example.name}.py"), run_name="__main__")
    drawn = io.BytesIO()
    plt.gcf().savefig(drawn)
    plt.close("all")
    # 256 colours keep those of the lines; fewer would merge some.
    picture = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(FIGURES / f"{example.name}.png", optimize=True)
    if printed.getvalue():
        (FIGURES / f"{example.name}.txt").write_text(printed.getvalue(), "utf-8")


def main(names: list[str]) -> None:
    """Run those programs that are named, or else those that have changed since their last run."""
    FIGURES.mkdir(exist_ok=True)
    runs = json.loads(RUNS.read_text("utf-8")) if RUNS.exists() else {}
    for example in map(Example.read, ORDER):
        digest = example.code_digest()
        if example.name in names or (not names and runs.get(example.name) != digest):
            print(example.name, flush=True)
            run(example)
            runs[example.name] = digest
            RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")


def write_pages(app: object, config: object) -> None:
    """Write a page for each program."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir()
    for example in map(Example.read, ORDER):
        (PAGES / f"{example.name}.md").write_text(example.page(), "utf-8")


def list_cards(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Replace the place for the gallery by cards."""
    if PLACE in source[0]:
        cards = [Example.read(name).card() for name in ORDER]
        grid = "\n\n".join(["::::{grid} 1 2 3 3\n:gutter: 3", *cards, "::::"])
        names = "\n".join(f"gallery/{name}" for name in ORDER)
        pages = f"```{{toctree}}\n:hidden:\n\n{names}\n```"
        source[0] = source[0].replace(PLACE, f"{grid}\n\n{pages}")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", write_pages, priority=1)
    app.connect("source-read", list_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main(sys.argv[1:])
