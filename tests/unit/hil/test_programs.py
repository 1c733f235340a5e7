"""The selection of programs that the guest's warm interpreter runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.hil.rig.programs import NAMED, program_of


@pytest.mark.parametrize(
    ("command", "module", "arguments"),
    [
        ("machine hal check", "command.cli", ("hal", "check")),
        ("machine data ls /tmp/a-b_c --json", "command.cli", ("data", "ls", "/tmp/a-b_c", "--json")),
        (["machine-server", "-config", "/a b/m.json"], "runtime.server.cli", ("-config", "/a b/m.json")),
        (["python3", "-m", "tests.hil.guest.plant"], "tests.hil.guest.plant", ()),
        ("machine", "command.cli", ()),
    ],
)
def test_programs_in_python(command: str | Sequence[str], module: str, arguments: tuple[str, ...]) -> None:
    result = program_of(command)
    assert result is not None
    assert (result.module, result.arguments) == (module, arguments)


@pytest.mark.parametrize(
    "command",
    [
        *("", "ls /dev", "exec machine-server", "machines hal", "python3 -c pass", "python3 -m", "python3 script.py"),
        *("machine hal | wc -l", "machine hal; true", "machine hal > file", "machine hal $HOME", "machine hal '*'"),
        *(
            "machine hal &",
            "machine hal *.json",
            "A=1 machine hal",
            "machine hal `id`",
            "machine hal ~",
            "machine\nhal",
        ),
        *([], ["echo", "machine"], ["/usr/local/bin/machine", "hal"]),
    ],
)
def test_everything_else_is_started_as_it_stands(command: str | Sequence[str]) -> None:
    assert program_of(command) is None


def test_programs_import_their_code_only_when_run() -> None:
    """Otherwise the module would exist twice, and Python would warn."""
    assert all(program.module not in program.imports for program in NAMED.values())
