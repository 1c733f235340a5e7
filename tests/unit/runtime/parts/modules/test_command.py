"""Command lines, environments, addresses and log levels, without a process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from runtime.parts.modules.process import LocalProcesses
from runtime.programs import command
from runtime.programs.command import Program
from schema.document.machine import MachineDocument, decode_document_value
from schema.document.modules import Module, ModuleLimits
from schema.errors import ConfigError

PROGRAM = Program(Path("/opt/demo/run.sh"), Path("/opt/demo"))


def module(**entry: object) -> Module:
    return Module(**{"name": "demo", "executable_path": "/opt/demo/run.sh", **entry})  # type: ignore[arg-type]


def document(**keys: object) -> MachineDocument:
    result = decode_document_value(keys).document
    assert result is not None
    return result


@given(
    folder=st.text("ab/ü", min_size=1, max_size=90).map(lambda text: Path("/tmp") / text.strip("/")),
    name=st.text("abcXYZ-_0", min_size=1, max_size=200),
)
def test_an_address_is_never_longer_than_a_socket_may_be(folder: Path, name: str) -> None:
    first, second = command.socket_address(folder, name), command.socket_address(folder, name)
    assert first.parent == folder
    assert first.suffix == ".sock"
    assert first != second or len(name) < 1
    shortest = len(os.fsencode(folder / "-AAAAA-abcde.sock"))
    assert len(os.fsencode(first)) <= max(command.LONGEST_ADDRESS, shortest)


def test_long_names_that_begin_alike_have_different_addresses() -> None:
    folder = Path("/tmp/" + "x" * 60)
    first, other = (command.socket_address(folder, "m" * 100 + end) for end in "ab")
    assert first.name[:-11] != other.name[:-11]


@pytest.mark.parametrize(
    ("level", "tcp", "expected"),
    [
        ("", False, ["/opt/demo/run.sh", "/s"]),
        ("warn", False, ["/opt/demo/run.sh", "/s", "--log-level=warn"]),
        ("debug", True, ["/opt/demo/run.sh", "/s", "--log-level=debug", "--tcp-mode"]),
    ],
)
def test_the_command_line(level: str, tcp: bool, expected: list[str]) -> None:
    assert command.command_line(PROGRAM, "/s", level, tcp=tcp) == expected


def test_of_the_environment_the_entry_has_the_last_word() -> None:
    result = command.environment_of(
        module(env={"VIAM_MODULE_ROOT": "/mine", "A": "entry"}, module_id="acme:demo"),
        PROGRAM,
        "/s",
        Path("/home/m/module-data/local/demo"),
        inherited={"A": "inherited", "B": "inherited", "VIAM_MODULE_NAME": "wrong"},
        facts={"VIAM_MACHINE_ID": "1"},
    )
    assert result.pop("MACHINE_PYTHON")
    assert result == {
        "A": "entry",
        "B": "inherited",
        "VIAM_HOME": "/home/m",
        "VIAM_MACHINE_ID": "1",
        "VIAM_MODULE_ADDRESS": "/s",
        "VIAM_MODULE_DATA": "/home/m/module-data/local/demo",
        "VIAM_MODULE_ID": "acme:demo",
        "VIAM_MODULE_NAME": "demo",
        "VIAM_MODULE_ROOT": "/mine",
    }


@pytest.mark.parametrize(
    ("keys", "entry", "debug", "expected"),
    [
        ({}, {}, False, ""),
        ({}, {"log_level": "warn"}, False, "warn"),
        ({"log": [{"pattern": "demo", "level": "error"}]}, {}, False, "error"),
        ({"log": [{"pattern": "demo", "level": "error"}]}, {"log_level": "info"}, False, "info"),
        ({"log": [{"pattern": "de*", "level": "Warning"}]}, {}, False, "warn"),
        ({"log": [{"pattern": "rdk.modmanager.demo", "level": "debug"}]}, {}, False, "debug"),
        ({"log": [{"pattern": "demo", "level": "warn"}, {"pattern": "*", "level": "debug"}]}, {}, False, "debug"),
        ({"log": [{"pattern": "*", "level": "debug"}, {"pattern": "demo", "level": "warn"}]}, {}, False, "warn"),
        ({"log": [{"pattern": "demo", "level": "warn"}, {"pattern": "[", "level": "debug"}]}, {}, False, "warn"),
        ({"log": [{"pattern": "other", "level": "warn"}]}, {}, False, ""),
        ({"debug": True, "log": [{"pattern": "demo", "level": "error"}]}, {"log_level": "warn"}, False, "debug"),
        ({}, {"log_level": "warn"}, True, "debug"),
    ],
)
def test_the_level(keys: dict[str, object], entry: dict[str, object], debug: bool, expected: str) -> None:
    assert command.log_level(module(**entry), document(**keys), debug=debug) == expected


def test_facts_are_those_that_are_known_and_the_key_the_first_by_id() -> None:
    assert command.machine_facts(document()) == {}
    cloud = {"id": "part", "secret": "s", "machine_id": "machine", "location_id": "place", "fqdn": "a.b"}
    handlers = [{"type": "api-key", "config": {"z": "last", "a": "first", "keys": ["z", "a"]}}]
    assert command.machine_facts(document(cloud=cloud, auth={"handlers": handlers})) == {
        "VIAM_API_KEY": "first",
        "VIAM_API_KEY_ID": "a",
        "VIAM_LOCATION_ID": "place",
        "VIAM_MACHINE_FQDN": "a.b",
        "VIAM_MACHINE_ID": "machine",
        "VIAM_MACHINE_PART_ID": "part",
    }


def test_data_is_kept_by_part() -> None:
    environment = {"MACHINE_HOME": "/home/m"}
    assert command.data_folder(environment, document()) == Path("/home/m/module-data/local")
    cloud = document(cloud={"id": "part", "secret": "s"})
    assert command.data_folder(environment, cloud) == Path("/home/m/module-data/part")


@pytest.mark.parametrize(
    ("entry", "environment", "expected"),
    [
        ({}, {}, False),
        ({"tcp_mode": True}, {}, True),
        ({}, {"VIAM_TCP_SOCKETS": "TRUE"}, True),
        ({}, {"VIAM_TCP_SOCKETS": "1"}, True),
        ({}, {"VIAM_TCP_SOCKETS": "no"}, False),
    ],
)
def test_modules_that_use_tcp(entry: dict[str, object], environment: dict[str, str], expected: bool) -> None:
    assert command.uses_tcp(module(**entry), environment) is expected


def test_a_program_must_be_there_and_executable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"modules\.0\.executable_path.*no such file"):
        command.local_program(module(executable_path=str(tmp_path / "absent")), "modules.0")
    plain = tmp_path / "run.sh"
    plain.touch(mode=0o644)
    with pytest.raises(ConfigError, match="chmod"):
        command.local_program(module(executable_path=str(plain)), "modules.0")
    plain.chmod(0o755)
    assert command.local_program(module(executable_path=str(plain)), "modules.0") == Program(plain, tmp_path)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"watchdog": 0.2}, "watchdog"),
        ({"limits": {"memory_mb": -1}}, "limits.memory_mb"),
        ({"limits": {"nice": 20}}, "limits.nice"),
        ({"limits": {"open_files": "many"}}, "limits.open_files"),
    ],
)
def test_mistakes_in_an_entry_name_the_key(entry: dict[str, object], words: str) -> None:
    decoded = decode_document_value({"modules": [{"name": "demo", "executable_path": "x", **entry}]})
    assert f"modules.0.{words}" in str(decoded.problems[0])


def test_the_keys_of_an_entry() -> None:
    entry = {
        "name": "demo", "executable_path": "x", "watchdog": "1m30s", "reload_on_change": True,
        "limits": {"memory_mb": 256, "processes": 20, "open_files": 100, "nice": 19},
    }  # fmt: skip
    (item,) = document(modules=[entry]).modules
    assert (item.watchdog, item.reload_on_change) == (90.0, True)
    assert item.limits == ModuleLimits(memory_mb=256, processes=20, open_files=100, nice=19)


async def test_sockets_of_modules_fit_whatever_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    processes = LocalProcesses({})
    async with processes.parent({}, tcp=False) as parent:  # serves, so that it could listen
        address = processes.address(module(), parent, tcp=False)
    assert len(os.fsencode(address)) <= command.LONGEST_ADDRESS
    assert not await trio.Path(parent).exists()
