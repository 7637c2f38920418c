"""Tables and the page: what a person reads is what the files say."""

import gzip
import io
import json
import re

import pandas as pd
import pytest
from made_results import small_study, wobble, write_results
from rich.console import Console

from halfseen.errors import StoreError
from halfseen.reports.context import Report
from halfseen.reports.data import Point, Results
from halfseen.reports.page import write_report
from halfseen.reports.published import published_for
from halfseen.reports.render import LATEX, MARKDOWN, render
from halfseen.reports.table import FinalTable
from halfseen.reports.terminal import terminal_tables
from halfseen.simulation.methods import METHODS
from halfseen.simulation.simulate import run
from halfseen.simulation.store import Store
from halfseen.studies.builtin import builtin_study
from halfseen.studies.published import Figure, Key, compare

LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}


def regret(key):
    return LEVELS.get(key.method, 7.0) / (key.p or 1.0) + wobble(key)


@pytest.fixture
def study():
    return small_study(
        figures=[{"label": "fig:it", "caption": "It", "panels": [{"kind": "sweep"}]}],
        claims=[{"text": "a | b", "kind": "lower", "method": "tofu", "than": "zf-oful"}],
        notes=["Know this."],
    )


class TestResults:
    def test_a_missing_file_is_named(self, tmp_path, study):
        write_results(tmp_path, study, regret)
        (tmp_path / "summary.csv").unlink()
        with pytest.raises(StoreError, match=r"summary\.csv is not there: run the study again"):
            Results.load(tmp_path)

    @pytest.mark.parametrize(
        ("name", "damage"),
        [
            ("per_seed.csv", b""),
            ("per_seed.csv", b"study,setting\nsmall,default\n"),
            ("summary.csv", b"\xff\xfe\x00"),
            ("trajectories.csv.gz", b"not gzip"),
            ("trajectories.csv.gz", gzip.compress(b"study\n", mtime=0)[:-4]),
            ("manifest.json", b"{"),
            ("manifest.json", b"[]"),
        ],
    )
    def test_a_damaged_file_is_named(self, tmp_path, study, name, damage):
        write_results(tmp_path, study, regret)
        (tmp_path / name).write_bytes(damage)
        with pytest.raises(StoreError, match=re.escape(name) + r" is damaged"):
            Results.load(tmp_path)

    def test_a_word_in_place_of_a_number_is_damage(self, tmp_path, study):
        write_results(tmp_path, study, regret)
        path = tmp_path / "per_seed.csv"
        path.write_text(path.read_text().replace(",ok,", ",ok,soon", 1))
        with pytest.raises(StoreError, match=r"per_seed\.csv is damaged"):
            Results.load(tmp_path)

    def test_numbers_come_back_to_the_last_bit(self, tmp_path, study):
        results = write_results(tmp_path, study, lambda key: regret(key) / 3 + key.seed * 1e-13)
        cell = study.cells()[1].key
        found = results.regrets(Point(cell.setting, cell.p), cell.method)[cell.seed]
        assert found == regret(cell) / 3 + cell.seed * 1e-13

    def test_no_probability_is_a_place_too(self, tmp_path):
        study = small_study(observe_prob=[], world={"kind": "low-rank", "horizon": 20})
        results = write_results(tmp_path, study, regret)
        results.per_seed["p"] = float("nan")
        assert results.mean(Point("default", None), "tofu").mean is not None
        assert results.mean(Point("default", 0.3), "tofu").mean is None

    def test_a_method_may_be_called_nan(self, tmp_path):
        study = small_study(methods={"nan": {"method": "uniform"}})
        assert write_results(tmp_path, study, regret).has(Point("default", 0.8), "nan")


class TestTables:
    def rendered(self, template, folder, study):
        return render(template, report=Report(study, write_results(folder, study, regret)))

    def test_rows_are_methods_and_columns_probabilities(self, tmp_path, study):
        text = self.rendered(MARKDOWN, tmp_path, study)
        lines = text.split("## Final regret\n\n")[1].splitlines()[2:]
        assert lines[0] == "| method | p = 0.8 | p = 0.2 |"
        assert lines[2].startswith("| TOFU | **6.2 ± 0.1** | ")
        assert lines[5] == ""

    def test_many_methods_are_one_table(self, tmp_path):
        study = small_study(methods=list(METHODS))
        text = self.rendered(MARKDOWN, tmp_path, study)
        assert text.count("| method | p = 0.8 | p = 0.2 |") == 1

    def test_the_best_method_that_can_be_played_is_bold_and_oracles_stand_below(self, tmp_path):
        study = small_study(methods=["oracle-masked", "full-oful", "tofu", "uniform"])
        paid = {"oracle-masked": 1.0, "full-oful": 2.0, "tofu": 3.0, "uniform": 1265.0}
        results = write_results(tmp_path, study, lambda key: paid[key.method])
        text = render(MARKDOWN, report=Report(study, results))
        lines = text.split("| method | p = 0.8 | p = 0.2 |")[1].splitlines()[2:7]
        assert [line.split(" | ")[0] for line in lines] == [
            "| TOFU",
            "| uniform",
            "| *sees or knows more:*",
            "| subspace given",
            "| OFUL, nothing hidden",
        ]
        assert [line.split(" | ")[1] for line in lines[:2]] == ["**3.0 ± 0.0**", "1,265.0 ± 0.0"]
        assert "**" not in "".join(lines[1:])
        tex = render(LATEX, report=Report(study, results))
        assert tex.count(r"\midrule") == 2
        assert tex.count(r"\textbf{") == 2
        (table,) = terminal_tables(results.summary, study)
        assert [row.end_section for row in table.rows] == [False, True, False, False]

    def test_the_best_mean_of_a_column_is_bold(self, tmp_path, study):
        text = self.rendered(LATEX, tmp_path, study)
        assert text.count(r"\textbf{") == 2
        assert r"\textbf{25.0 $\pm$ 0.1}" in text

    def test_latex_is_balanced_and_escaped(self, tmp_path):
        odd = {"100% & #1_{x}^2 ~ $\\": {"method": "uniform"}, "b": {"method": "uniform"}}
        settings = {"50%_a": {}, "b&c": {}}
        study = small_study(methods=odd, settings=settings)
        text = self.rendered(LATEX, tmp_path, study)
        code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        bare = re.sub(r"\\[&%$#_{}]", "", code)
        assert bare.count("{") == bare.count("}")
        assert bare.count(r"\begin{tabular}") == bare.count(r"\end{tabular}") == 2
        assert "%" not in bare
        assert "#" not in bare
        assert "_" not in bare
        assert bare.count("$") % 2 == 0
        rows = [line for line in bare.splitlines() if line.endswith(r" \\")]
        assert {line.count("&") for line in rows} == {0, 2}  # captions, and two probabilities

    def test_many_methods_fit_the_terminal(self, tmp_path):
        study = small_study(methods=list(METHODS), settings={"a-long-setting": {}, "b": {}})
        tables = terminal_tables(write_results(tmp_path, study, regret).summary, study)
        assert len(tables) > 1
        seen = ""
        for table in tables:
            console = Console(width=250, file=io.StringIO())
            console.print(table)
            text = console.file.getvalue()
            assert max(len(row) for row in text.splitlines()) <= 80
            assert "…" not in text
            seen += text
        assert seen.count("±") >= len(METHODS) * 4

    def test_rows_of_a_run_do_as_well_as_a_frame(self, tmp_path, study):
        frame = write_results(tmp_path, study, regret).summary
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        assert FinalTable.of(rows, study) == FinalTable.of(frame, study)

    def test_small_regrets_keep_their_digits(self, tmp_path, study):
        results = write_results(tmp_path, study, lambda key: 0.0123)
        table = FinalTable.of(results.summary, study)
        assert table.text(Point("default", 0.8), "tofu").startswith("0.012")

    def test_nothing_run_makes_an_empty_table(self, tmp_path, study):
        results = write_results(tmp_path, study, lambda key: None)
        table = FinalTable.of(results.summary, study)
        assert (table.points, table.methods) == ([], [])
        assert "tabular" not in render(LATEX, report=Report(study, results))
        assert terminal_tables(results.summary, study) == []


def published(kind, shift):
    return {
        Key("default", 0.8, "tofu", seed): Figure(6.25 + shift(seed), kind == "exact")
        for seed in range(6)
    }


class TestPublished:
    def test_exact_figures_differ_by_their_worst_seed(self, tmp_path, study):
        results = write_results(tmp_path, study, lambda key: 6.25)
        figures = published("exact", lambda seed: -0.5 * (seed == 2))
        (found,) = compare(results.per_seed.to_dict("records"), figures).groups
        assert found.deviation == pytest.approx(0.5)
        assert found.n == 4

    def test_others_differ_in_standard_errors(self, tmp_path, study):
        results = write_results(tmp_path, study, lambda key: 6.25)
        figures = published("statistical", lambda seed: (-3.0, -1.0, -1.0, 1.0, 9.0, 9.0)[seed])
        (found,) = compare(results.per_seed.to_dict("records"), figures).groups
        # Differences 3, 1, 1, −1: mean 1, deviation √(8/3), over 4 seeds.
        assert found.deviation == pytest.approx(1 / ((8 / 3) ** 0.5 / 2))

    def test_only_what_repeats_the_published_study_is_compared(self):
        assert len(published_for(builtin_study("synthetic-fh"))) > 300
        assert published_for(builtin_study("synthetic-fh", "smoke")) == {}
        assert published_for(small_study()) == {}
        assert published_for(small_study(name="synthetic")) == {}


class TestPage:
    def test_it_tells_everything(self, tmp_path, study):
        write_results(
            tmp_path,
            study,
            lambda key: (
                None if (key.method, key.seed, key.p) == ("uniform", 3, 0.2) else regret(key)
            ),
        )
        page = write_report(study, tmp_path, published("exact", lambda seed: 0.0))
        text = page.read_text(encoding="utf-8")
        assert page == tmp_path / "report.md"
        for told in (
            "# A small study",
            "seeds: 0–3",
            "1.5 s",
            "halfseen ",
            "![It](it.png)",
            "Claims (1 holds)",
            "| a \\| b | **holds** |",
            "| method | p = 0.8 | p = 0.2 |",
            "Published results and ours",
            "| default | 0.8 | TOFU | 4 | 6.25 ± 0 |",
            "- Know this.",
            "- uniform, p = 0.2, seed 3",
            "[failures.txt](failures.txt)",
            "[per_seed.csv](per_seed.csv)",
        ):
            assert told in text
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert (tmp_path / link).exists()
        claims = pd.read_csv(tmp_path / "claims.csv")
        assert claims["verdict"].tolist() == ["holds"]
        assert (tmp_path / "table.tex").exists()

    def test_it_repeats_byte_by_byte(self, tmp_path, study):
        write_results(tmp_path, study, regret)
        first = write_report(study, tmp_path).read_bytes()
        assert write_report(study, tmp_path).read_bytes() == first

    def test_a_run_in_which_all_failed_has_a_page(self, tmp_path, study):
        write_results(tmp_path, study, lambda key: None)
        text = write_report(study, tmp_path).read_text(encoding="utf-8")
        assert "Nothing was run." in text
        assert "**not run**" in text
        assert "Not drawn: `fig:it`, because nothing of it was run." in text
        assert "- and 4 more" in text

    def test_a_real_run_has_a_page(self, tmp_path):
        study = builtin_study("synthetic-fh", "smoke").narrowed(
            methods=["tofu-fh", "tofu", "zf-oful"]
        )
        run(study.cells(), Store(tmp_path), jobs=1, manifest={"scale": "smoke"})
        text = write_report(study, tmp_path).read_text(encoding="utf-8")
        assert "at smoke scale" in text
        assert "(app_synthetic_fh.png)" in text
        assert "Published results and ours" not in text
        assert json.loads((tmp_path / "manifest.json").read_text())["cells_failed"] == 0
        assert (tmp_path / "app_synthetic_fh.svg").stat().st_size > 10_000
