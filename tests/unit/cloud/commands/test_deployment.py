"""The files in examples/cloud: the program knows the options in them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from cloud.server.cli import command

FOLDER = Path(__file__).resolve().parents[4] / "examples" / "cloud"
OPTIONS = {name for parameter in command.params for name in parameter.opts}


def options(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def unit_words() -> list[str]:
    line = re.search(r"^ExecStart=(.*)$", (FOLDER / "machine-cloud.service").read_text(), re.M)
    assert line is not None
    return shlex.split(line[1])


def image_words() -> list[str]:
    text = (FOLDER / "Containerfile").read_text()
    return [word for name in ("ENTRYPOINT", "CMD") for word in json.loads(re.search(f"^{name} (.*)$", text, re.M)[1])]


def compose_words() -> list[str]:
    command_part = (FOLDER / "compose.yaml").read_text().partition("    command:\n")[2].partition("    environment:")[0]
    return [line.strip().removeprefix("- ") for line in command_part.splitlines()]


@pytest.mark.parametrize("words", [unit_words(), image_words(), compose_words()], ids=["unit", "image", "compose"])
def test_the_program_knows_the_options(words: list[str]) -> None:
    used = options(words)
    assert "--listen" in used
    assert used <= OPTIONS


def test_compose_contains_no_secret() -> None:
    text = (FOLDER / "compose.yaml").read_text()
    secrets = re.findall(r"^.*(?: |(?<!\$)\{)(?:[A-Z]+_)+(?:PASSWORD|SECRET|ACCESS_KEY): *(.*)$", text, re.M)
    assert len(secrets) >= 3
    assert all("${" in secret for secret in secrets)
