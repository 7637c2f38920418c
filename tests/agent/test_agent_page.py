"""The page on the agent runs as it is."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agent.md"


def test_the_page_on_the_agent_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "zip: category of 2 levels" in printed
    assert "scarf" in printed
    assert len(blocks) == 9
