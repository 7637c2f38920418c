"""Collect figures and tables from a folder of results: `make figures`.

    python docs/make_figures.py RESULTS

RESULTS holds the folders of studies, as `halfseen reproduce STUDY` leaves them. A study without a
folder there keeps the figures that it has. `docs/figures/figures.json` says what each figure shows
and how it was made; the page itself is made when the site is built (`_ext/paper_figures.py`).
The headline and the table of the README and the tables of `latent-ucb.md` stand between the lines
`<!-- NAME -->` and `<!-- end of NAME -->`.
"""

import csv
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from PIL import Image

from halfseen.paper.claims import seeds_of
from halfseen.paper.published import published_summary
from halfseen.paper.studies import ORDER, report_on, study_named, synthetic
from halfseen.report.look import label_of
from halfseen.simulation.results import Point, Results, mean_of
from halfseen.simulation.simulate import simulate
from halfseen.worlds.base import world_from

FOLDER = Path(__file__).resolve().parent / "figures"
INDEX = FOLDER / "figures.json"
README = FOLDER.parents[1] / "README.md"
LATENT_UCB = FOLDER.parent / "latent-ucb.md"
RESULTS = FOLDER.parent / "results.md"
COLUMNS = {
    "zf-oful": "OFUL, zeros filled in",
    "impute-mean": "OFUL, means filled in",
    "tofu": "TOFU",
    "tofu-fh": "TOFU, full history",
    "tofu-fh-short": "the same, burn-in of 4 rounds",
    "latent-ucb": "**`LatentUcb()`** *",
    "oracle-masked": "OFUL, subspace given",
    "uniform": "random choice",
}
STUDIES = {
    "synthetic": "synthetic",
    "digits": "digits",
    "mnist": "MNIST",
    "newsgroups": "newsgroups",
}
WORLDS = {
    "rank-8": "rank 8",
    "rank-15": "rank 15",
    "noise-large": "noise 1",
    "perturbed": "perturbed",
    "heavy-tails": "heavy tails",
    "change": "a subspace that changes",
    "blocks": "entries hidden in blocks",
    "full-rank": "full rank",
    "full-rank-tail": "full rank, spectrum 1/j, θ in its tail",
}
AGAINST = {
    "tofu-fh": "TOFU, full history",
    "tofu-fh-pairwise": "TOFU, full history, pairs counted",
    "zf-oful": "OFUL, zeros filled in",
}
BURN_IN = 30  # rounds of zero-filled OFUL in the paper's main study
WIDTH = 1400  # pixels, at most


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
        main_study = Results.load(results / "synthetic")
        _write(README, "headline", headline(main_study))
        _write(README, "results", main_table(main_study))
    if _has_run(results / "newsgroups"):
        _write(RESULTS, "newsgroups", newsgroups_table(Results.load(results / "newsgroups")))
    _write(LATENT_UCB, "studies", studies_table(results))
    for name, folder in (("worlds", "beyond"), ("tables", "tables"), ("contexts", "contexts")):
        if _has_run(results / folder):
            table = worlds_table if name == "worlds" else problems_table
            _write(LATENT_UCB, name, table(results / folder))
    size = sum(each.stat().st_size for each in FOLDER.iterdir())
    print(f"{len(wanted)} figures of {len(index)} studies, {size / 1e6:.1f} MB")


def headline(results: Results) -> str:
    """Return the sentences of the first screen."""
    (point,) = (each for each in results.points() if each.p == 0.4)
    ours, zeros, history, short, uniform = (
        results.mean(point, method).mean
        for method in ("latent-ucb", "zf-oful", "tofu-fh", "tofu-fh-short", "uniform")
    )
    burn_in = world_from({**synthetic.WORLD, "observe_prob": point.p, "horizon": BURN_IN})
    paid = simulate(["zf-oful"], burn_in, results.seeds, jobs=1).summary[0]["mean_regret"]
    text = (
        f"**With 40 % of the entries seen, its regret after 400 rounds is {ours:.1f}. OFUL with "
        f"zeros filled in has {zeros:.1f}, the best method of the paper behind this package "
        f"{history:.1f}, and random choice {uniform:.0f}** (30 features of rank 3, 8 options, "
        f"{len(results.seeds)} seeds). Of these {history:.1f}, {paid:.1f} are paid in the paper's "
        f"{BURN_IN} rounds of burn-in, which are set by hand; with 4 rounds it has {short:.1f}."
    )
    return textwrap.fill(text, 120) + "\n"


def main_table(results: Results) -> str:
    """Return the mean regrets of some methods, one row for each share of entries seen."""
    rows = [f"| seen | {' | '.join(COLUMNS.values())} |", "|---" * (1 + len(COLUMNS)) + "|"]
    for point in results.points():
        means = [results.mean(point, method) for method in COLUMNS]
        cells = " | ".join(f"{mean:.1f} ± {error:.1f}" for mean, error in means)
        rows.append(f"| {100 * (point.p or 1):.0f} % | {cells} |")
    return "\n".join(rows) + "\n"


def newsgroups_table(results: Results) -> str:
    """Return the paper's table of newsgroups, with our regrets and ranks on the same seeds."""
    rows = ["| seen | method | paper | here | rank, paper | rank, here |", "|---" * 6 + "|"]
    for theirs in published_summary("newsgroups"):
        point, seeds = Point("default", theirs.p), range(theirs.n)
        regrets, ranks = (
            [found[seed] for seed in seeds]
            for found in (
                results.regrets(point, theirs.method),
                results.final_ranks(point, theirs.method),
            )
        )
        ours, error = mean_of(regrets)
        cells = (
            f"{100 * theirs.p:.0f} %",
            label_of(theirs.method),
            f"{theirs.mean_regret:,.1f} ± {theirs.se_regret:.1f}",
            f"{ours:,.1f} ± {error:.1f}",
            f"{theirs.mean_rank:,.1f}",
            f"{sum(ranks) / len(ranks):,.1f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def studies_table(results: Path) -> str:
    """Return the mean regrets of `LatentUcb` in the studies of the paper, by share seen.

    The row of a study without results stays as it is.
    """
    page = LATENT_UCB.read_text("utf-8").partition("<!-- end of studies -->")[0]
    columns = ["`LatentUcb()`", "given rank and zero means", "OFUL given the subspace"]
    rows = [f"| | {' | '.join(columns)} | TOFU, full history |", "|---" * 5 + "|"]
    for name, title in STUDIES.items():
        if not _has_run(results / name):
            rows += re.findall(rf"^\| {title}, .+$", page, re.MULTILINE)
            continue
        found = Results.load(results / name)
        digits = 1 if name in ("synthetic", "digits") else 0
        cells = [
            " / ".join(f"{found.mean(point, method).mean:.{digits}f}" for point in found.points())
            for method in ("latent-ucb", "latent-ucb-told", "oracle-masked", "tofu-fh")
        ]
        shown = " / ".join(f"{point.p:g}".lstrip("0") for point in found.points())
        rows.append(f"| {title}, p = {shown}, {len(found.seeds)} seeds | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def worlds_table(folder: Path) -> str:
    """Return the regrets of `LatentUcb` in other worlds, as shares of another method's."""
    found = {(row["setting"], row["p"]): row for row in _rows(folder / "robustness.csv")}
    rows = ["| world | against | p = .6 | p = .3 |", "|---|---|---|---|"]
    for name, title in WORLDS.items():
        both = [found[name, p] for p in ("0.6", "0.3")]
        shares = " | ".join(f"{float(row['ratio']):.2f}" for row in both)
        rows.append(f"| {title} | {AGAINST[both[0]['against']]} | {shares} |")
    return "\n".join(rows) + "\n"


def problems_table(folder: Path) -> str:
    """Return the regrets of `LatentUcb` and of the best other method of each problem."""
    rows = ["| problem | `LatentUcb()` | best other | difference, 95 % |", "|---|---|---|---|"]
    for row in _rows(folder / "best-other.csv"):
        prob = f", p = {float(row['p']):g}" if row["p"] else ""
        ours, other, difference, low, high = (
            f"{float(row[name]):.3g}".replace("-", "−")
            for name in ("mean_regret", "against_regret", "difference", "low", "high")
        )
        cells = f"{ours} | {other} ({row['against']}) | {difference} [{low}, {high}]"
        rows.append(f"| {row['setting']}{prob} | {cells} |")
    return "\n".join(rows) + "\n"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(page: Path, name: str, table: str) -> None:
    """Write a table into its place on a page."""
    place = re.compile(f"(?<=<!-- {name} -->\n\n).*?(?=\n<!-- end of {name} -->)", re.DOTALL)
    text, n = place.subn(lambda _: table, page.read_text("utf-8"))
    if n != 1:
        raise ValueError(f"{page.name} must have one place for {name!r}, got {n}")
    page.write_text(text, "utf-8")


def _has_run(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _collected(folder: Path) -> dict[str, Any]:
    """Copy the figures of one study and describe them."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    study, seeds = manifest["study"], manifest["seeds"]
    figures = []
    for figure in report_on(folder).figures:
        name = f"{figure.name}.png"
        _shrink(folder / name, FOLDER / name)
        figures.append({"label": figure.label, "caption": figure.caption, "file": name})
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
    if set(seeds) >= {cell.key.seed for cell in study_named(name).cells()}:
        return f"halfseen reproduce {name}"
    return f"halfseen reproduce {name} --seeds {','.join(map(str, sorted(seeds)))}"


def _shrink(source: Path, target: Path) -> None:
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((WIDTH, 10 * WIDTH), Image.Resampling.LANCZOS)
    picture.save(target, optimize=True)  # all colours: methods differ by shades


if __name__ == "__main__":
    main(Path(sys.argv[1]))
