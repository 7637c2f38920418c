"""Collect the figures and the main table from a folder of results: `make figures`.

    python docs/make_figures.py RESULTS

RESULTS holds the folders of studies, as `halfseen reproduce STUDY` leaves them. A study without a
folder there keeps the figures that it has. `docs/figures/figures.json` says what each figure shows
and how it was made; the page itself is made when the site is built (`_ext/paper_figures.py`). The
table of the README is that of the study `synthetic`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from halfseen.paper.claims import seeds_of
from halfseen.paper.studies import ORDER, report_on, study_named
from halfseen.simulation.results import Results

FOLDER = Path(__file__).resolve().parent / "figures"
INDEX = FOLDER / "figures.json"
README = FOLDER.parents[1] / "README.md"
COLUMNS = {
    "zf-oful": "OFUL, zeros filled in",
    "impute-mean": "OFUL, means filled in",
    "tofu": "TOFU",
    "tofu-fh": "TOFU, full history",
    "latent-ucb": "**`LatentUcb()`** *",
    "oracle-masked": "OFUL, subspace given",
    "uniform": "random choice",
}
WIDTH = 1400  # pixels, at most
COLOURS = 128


def main(results: Path) -> None:
    """Copy the figures of all studies in the folder and write the index."""
    known = json.loads(INDEX.read_text("utf-8")) if INDEX.exists() else {}
    index = {
        name: _collected(results / name) if _has_run(results / name) else known[name]
        for name in ORDER
        if _has_run(results / name) or name in known
    }
    INDEX.write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", "utf-8")
    wanted = {each["file"] for study in index.values() for each in study["figures"]}
    for picture in FOLDER.glob("*.png"):
        if picture.name not in wanted:
            picture.unlink()
    if _has_run(results / "synthetic"):
        text = README.read_text("utf-8")
        place = re.compile("(?<=<!-- results -->\n\n).*?(?=\n<!-- end of results -->)", re.DOTALL)
        table = main_table(Results.load(results / "synthetic"))
        README.write_text(place.sub(lambda _: table, text), "utf-8")
    size = sum(each.stat().st_size for each in FOLDER.iterdir())
    print(f"{len(wanted)} figures of {len(index)} studies, {size / 1e6:.1f} MB")


def main_table(results: Results) -> str:
    """Return the mean regrets of some methods, one row for each share of entries seen."""
    rows = [f"| seen | {' | '.join(COLUMNS.values())} |", "|---" * (1 + len(COLUMNS)) + "|"]
    for point in results.points():
        means = [results.mean(point, method) for method in COLUMNS]
        cells = " | ".join(f"{mean:.1f} ± {error:.1f}" for mean, error in means)
        rows.append(f"| {100 * (point.p or 1):.0f} % | {cells} |")
    return "\n".join(rows) + "\n"


def _has_run(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _collected(folder: Path) -> dict[str, Any]:
    """Copy the figures of one study and describe them."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    study, seeds = manifest["study"], manifest["seeds"]
    figures = []
    for figure, source, _ in report_on(folder).figures:
        if source is not None:  # a panel can need more than a small run has
            _shrink(source, FOLDER / source.name)
            row = {"label": figure.label, "caption": figure.caption, "file": source.name}
            figures.append(row)
    return {
        "title": study["title"],
        "scale": manifest["scale"],
        "seeds": seeds_of(Results.load(folder)),
        "command": _command(study["name"], manifest["scale"], seeds),
        "figures": figures,
    }


def _command(name: str, scale: str, seeds: list[int]) -> str:
    if scale != "paper":
        return f"halfseen reproduce {name} --scale {scale}"
    if set(seeds) == {cell.key.seed for cell in study_named(name).cells()}:
        return f"halfseen reproduce {name}"
    return f"halfseen reproduce {name} --seeds {','.join(map(str, sorted(seeds)))}"


def _shrink(source: Path, target: Path) -> None:
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((WIDTH, 10 * WIDTH), Image.Resampling.LANCZOS)
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
