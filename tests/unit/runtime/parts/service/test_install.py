"""machine-server as a service of systemd, in a folder whose systemctl records its calls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from runtime.parts.service.install import AGENT, MARK, PROGRAM, UNIT, install, uninstall, unit_text, words_of
from runtime.server.cli import command
from schema.errors import ErrorKind, MachineError
from tests.helpers.release_files import write_release

WORDS = ["-config", "/etc/machine.json", "-debug"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>"{tmp_path}/calls"\n')
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    root = tmp_path / "root"
    for name in ("run/systemd/system", "etc/systemd/system", "usr/local/bin"):
        (root / name).mkdir(parents=True)
    (root / "etc/machine.json").write_text("{}")
    return root


def calls(root: Path) -> list[str]:
    file = root.parent / "calls"
    return file.read_text().splitlines() if file.exists() else []


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def test_a_release_is_copied_and_its_unit_started(root: Path) -> None:
    file = write_release(root.parent / "download", "1.0.0", "exit\n")
    before = tree(root)
    install(root, WORDS, release=file)
    assert (root / PROGRAM).read_bytes() == file.read_bytes()
    assert os.access(root / PROGRAM, os.X_OK)
    unit = (root / UNIT).read_text()
    assert unit.startswith(f"{MARK}\n")
    assert "ExecStart=/usr/local/bin/machine-server -config /etc/machine.json -debug\n" in unit
    assert calls(root) == ["daemon-reload", "enable machine-server.service", "restart machine-server.service"]
    install(root, WORDS, release=root / PROGRAM)
    uninstall(root)
    assert calls(root)[-2:] == ["disable --now machine-server.service", "daemon-reload"]
    assert tree(root) == before
    assert "nothing is installed" in uninstall(root)[0]


def test_a_package_is_started_with_its_interpreter(root: Path) -> None:
    before = tree(root)
    install(root, WORDS, release=None)
    assert " -m runtime.server.start -config " in (root / UNIT).read_text()
    assert not (root / PROGRAM).exists()
    uninstall(root)
    assert tree(root) == before


@pytest.mark.parametrize("name", AGENT)
def test_a_server_that_the_agent_manages_is_left_to_it(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).touch()
    with pytest.raises(MachineError, match="machine-agent manages machine-server") as raised:
        install(root, WORDS, release=None)
    assert "machine-agent --uninstall" in raised.value.remedy
    (root / UNIT).write_text("[Service]\n")
    with pytest.raises(MachineError, match="machine-agent manages machine-server"):
        uninstall(root)
    assert calls(root) == []


def test_files_from_another_source_stay(root: Path) -> None:
    (root / UNIT).write_text("[Service]\nExecStart=/usr/bin/other\n")
    with pytest.raises(MachineError, match="was not written by machine-server -install"):
        install(root, WORDS, release=None)
    with pytest.raises(MachineError, match="was not written by machine-server -install"):
        uninstall(root)
    (root / UNIT).unlink()
    (root / PROGRAM).write_text("#!/bin/sh\n")
    file = write_release(root.parent / "download", "1.0.0", "exit\n")
    with pytest.raises(MachineError, match="is not a release file of machine-server"):
        install(root, WORDS, release=file)
    assert (root / PROGRAM).read_text() == "#!/bin/sh\n"
    assert calls(root) == []


def test_a_configuration_that_does_not_exist_is_refused(root: Path) -> None:
    with pytest.raises(MachineError, match=r"-config /etc/other\.json does not exist"):
        install(root, ["-config", "/etc/other.json"], release=None)
    assert not (root / UNIT).exists()


def test_words_are_quoted_for_systemd() -> None:
    text = unit_text(["/a"], ["-config", "/my files/100%/$x", "a;b"])
    assert 'ExecStart=/a -config "/my files/100%%/$$x" "a;b"\n' in text
    for word in ("a\nExecStartPre=/bin/rm", 'a"b', "a\\b", "a'b"):
        with pytest.raises(MachineError) as raised:
            unit_text(["/a"], [word])
        assert raised.value.kind is ErrorKind.INVALID


def test_the_options_of_the_service_are_those_of_the_command_line() -> None:
    line = "-install -config m.json -debug -ftdc=false -no-tls=false -log-file log -hardware sim -disable-mdns"
    here, parsed = Path.cwd(), command.make_context("machine-server", line.split()).params
    words = f"-config {here}/m.json -debug -disable-mdns -log-file {here}/log -ftdc=false -hardware sim"
    assert words_of(parsed) == words.split()


def test_contradictions_are_usage_errors() -> None:
    result = CliRunner().invoke(command, ["-install", "-uninstall"])
    assert (result.exit_code, "exclude each other" in result.output) == (2, True)
    result = CliRunner().invoke(command, ["-install"])
    assert (result.exit_code, "-config is missing" in result.output) == (2, True)
