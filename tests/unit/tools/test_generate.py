"""`make generate` and its check: every generated file is current; an outdated one is reported with the remedy."""

import sys
from pathlib import Path

import pytest

from tools import generate
from tools.generate import ROOT, Generator, generators


def test_every_generator_of_the_folder_has_a_file_of_its_own() -> None:
    result = list(generators())
    assert {each.name for each in result} == {f"tools/{file.name}" for file in (ROOT / "tools").glob("gen_*.py")}
    assert len({each.path for each in result}) == len(result) > 10


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "page.md"
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "generators", lambda: iter([Generator("tools/gen_page.py", path, lambda: "new\n")]))
    return path


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["generate", *options])
    return generate.main()


def test_the_check_names_what_is_stale(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text("old\n")
    assert run(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == "page.md: stale; run `make generate` (tools/gen_page.py writes it)\n"
    assert page.read_text() == "old\n"


def test_writing_makes_it_current(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0
    assert page.read_text() == "new\n"
    assert run(monkeypatch, "--check") == 0
    capsys.readouterr()
    assert run(monkeypatch) == 0
    assert capsys.readouterr().out == ""
