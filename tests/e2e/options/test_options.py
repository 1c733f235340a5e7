"""Each option of machine-server on the real process: its effect as seen from outside."""

from __future__ import annotations

import json
import pstats
import stat
from pathlib import Path
from typing import Any

import pytest

from engine.options import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from tests.e2e.harness import Server
from tests.e2e.options.support import get, motor, until_logged
from tests.e2e.server.process import run

OPTIONS = (
    "allow-insecure-creds", "config", "cpuprofile", "debug", "disable-mdns", "dump-resources", "ftdc", "log-file",
    "network-check", "no-tls", "output-telemetry", "reveal-sensitive-config-diffs", "shareddir", "untrusted-env",
    "version", "webprofile", "webrtc",
)  # fmt: skip
"""Section 4.3 of the specification."""
OWN_OPTIONS = ("allow-open-shell", "hardware", "h", "install", "uninstall")


def test_version() -> None:
    done = run("-version")
    assert (done.returncode, done.stdout.split()[0]) == (EXIT_OK, "machine-server")


@pytest.mark.parametrize("word", ["-help", "--help", "-h"])
def test_help_has_one_line_per_option(word: str) -> None:
    done = run(word)
    assert done.returncode == EXIT_OK
    listed = done.stdout.partition("Options:")[2].partition("\n\n")[0].strip("\n").splitlines()
    assert all(line.startswith("  -") for line in listed), "an option has a second line"
    assert {line.split()[0].lstrip("-") for line in listed} == {*OPTIONS, *OWN_OPTIONS}
    assert all(len(line.split(None, 1)[1]) > 10 for line in listed)


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("-confg=x", "-config"),
        ("--confg", "-config"),
        ("-no-tsl", "-no-tls"),
        ("-webprofil", "-webprofile"),
        ("-Debug", "-debug"),
        ("-untrusted_env", "-untrusted-env"),
    ],
)
def test_a_mistyped_option_gets_a_suggestion(mistyped: str, meant: str) -> None:
    done = run("-debug", mistyped)
    assert done.returncode == EXIT_USAGE
    assert f"Did you mean '{meant}'?" in done.stderr


def test_the_word_after_an_option_with_a_value_is_its_value(tmp_path: Path) -> None:
    done = run("-config", "-confg.json", "--", "-nonsense")
    assert done.returncode == EXIT_USAGE
    assert "-nonsense" in done.stderr  # as an unexpected argument
    done = run("-config", str(tmp_path / "-confg.json"))
    assert (done.returncode, "does not exist" in done.stderr) == (EXIT_FAILED, True)


@pytest.mark.parametrize("words", [("-webrtc",), ("-webrtc=true",), ("--webrtc", "true"), ("-webrtc=false",)])
def test_webrtc_has_no_effect_without_a_cloud(words: tuple[str, ...], tmp_path: Path) -> None:
    with Server({}, tmp_path, *words) as server:
        server.wait_running()
        assert "cloud.webrtc" not in server.log()
        assert server.stop() == EXIT_OK


def test_switches_that_are_off_have_no_effect(tmp_path: Path) -> None:
    off = (
        "debug",
        "no-tls",
        "allow-insecure-creds",
        "untrusted-env",
        "webprofile",
        "output-telemetry",
        "webrtc",
        "ftdc",
    )
    with Server({}, tmp_path, *(f"-{word}=false" for word in off)) as server:
        server.wait_running()
        assert get(server, "/debug/")[0] == 404
        assert server.stop() == EXIT_OK
    assert not list((tmp_path / "home").rglob("*.ftdc"))


def test_debug_overrides_the_levels_of_the_document(tmp_path: Path) -> None:
    document = {"log": [{"pattern": "*", "level": "error"}], "components": [motor("m")]}
    with Server(document, tmp_path, "-debug") as server:
        server.wait_running()
        assert "\tDEBUG\t" in server.log()


def test_without_debug_there_are_no_debug_lines(tmp_path: Path) -> None:
    with Server({"components": [motor("m")]}, tmp_path) as server:
        server.wait_running()
        assert "\tINFO\t" in server.log()
        assert "\tDEBUG\t" not in server.log()


def test_log_file_replaces_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "machine.log"
    with Server({}, tmp_path, "-log-file", str(file)) as server:
        server.wait_running()
    assert "listening on" in file.read_text()
    assert server.log() == ""


def test_an_unwritable_log_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{}")
    done = run("-config", str(tmp_path / "machine.json"), "-log-file", str(tmp_path / "no" / "machine.log"))
    assert done.returncode == EXIT_FAILED
    assert "-log-file" in done.stderr


def test_no_tls_serves_plaintext_though_a_certificate_is_configured(
    certificate: dict[str, str], tmp_path: Path
) -> None:
    network = {key: certificate[key] for key in ("tls_cert_file", "tls_key_file")}
    with Server({"network": network}, tmp_path, "-no-tls") as server:
        assert get(server, "/")[0] == 200
        assert server.command("status").returncode == 0


@pytest.mark.parametrize("reveal", [False, True])
def test_secrets_in_differences_are_masked_unless_revealed(reveal: bool, tmp_path: Path) -> None:
    def document(password: str) -> dict[str, Any]:
        return {"network": {"bind_address": "localhost:0"}, "components": [motor("m", password=password)]}

    with Server(document("red-herring"), tmp_path, *["-reveal-sensitive-config-diffs"] * reveal) as server:
        server.wait_running()
        server.write(document("white-whale"))
        changed = until_logged(server, "components.m.attributes.password").partition("the configuration changed")[2]
        assert ("white-whale" in changed.partition("\n")[0]) is reveal


def test_cpuprofile_writes_a_profile_of_the_whole_run(tmp_path: Path) -> None:
    file = tmp_path / "cpu.pstats"
    with Server({"components": [motor("m")]}, tmp_path, "-cpuprofile", str(file)) as server:
        server.wait_running()
        assert server.stop() == EXIT_OK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    names = {name for _, _, name in pstats.Stats(str(file)).stats}  # type: ignore[attr-defined]
    assert {"_serve", "take"} <= names


def test_an_unwritable_profile_is_reported_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{}")
    done = run("-config", str(tmp_path / "machine.json"), "-cpuprofile", str(tmp_path / "no" / "cpu"))
    assert done.returncode == EXIT_FAILED
    assert "cannot be written" in done.stderr


def test_shareddir_has_static_files_that_take_precedence(tmp_path: Path) -> None:
    shared = tmp_path / "assets"
    shared.mkdir()
    (shared / "app.css").write_text("body { color: teal }")
    (shared / "logo.svg").write_text("<svg/>")
    (shared / "secret.txt").write_text("not served")
    with Server({}, tmp_path, "-shareddir", str(shared)) as server:
        assert get(server, "/static/app.css") == (200, b"body { color: teal }")
        assert get(server, "/static/logo.svg") == (200, b"<svg/>")
        assert get(server, "/static/secret.txt")[0] == 404
        assert get(server, "/static/..%2Fmachine.json")[0] == 404
        assert get(server, "/static/app.js")[0] == 200  # a file of the program itself


def test_a_shareddir_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{}")
    done = run("-config", str(tmp_path / "machine.json"), f"-shareddir={tmp_path / 'no'}")
    assert (done.returncode, "is not a folder" in done.stderr) == (EXIT_FAILED, True)


@pytest.mark.parametrize("untrusted", [False, True])
def test_untrusted_env_refuses_models_that_run_programs(untrusted: bool, tmp_path: Path) -> None:
    sensor = {
        "name": "s",
        "api": "rdk:component:sensor",
        "model": "command",
        "attributes": {"command": ["echo", "value=1"]},
    }
    with Server({"components": [sensor]}, tmp_path, *["-untrusted-env"] * untrusted) as server:
        server.wait_running()
        listed = json.loads(server.command("resources", "--json").stdout)
        (item,) = [element for element in listed if element["name"] == "rdk:component:sensor/s"]
        assert ("-untrusted-env refuses" in json.dumps(item)) is untrusted


def test_hardware_names_the_family(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{}")
    done = run("-config", str(tmp_path / "machine.json"), "-hardware=abacus")
    assert done.returncode == EXIT_FAILED
    assert "-hardware abacus" in done.stderr


def test_dump_resources_has_a_schema_for_every_model(tmp_path: Path) -> None:
    file = tmp_path / "resources.json"
    assert run(f"-dump-resources={file}").returncode == EXIT_OK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.startswith("[\n\t{\n\t\t")
    entries = json.loads(text)
    keys = [(entry["api"], entry["model"]) for entry in entries]
    assert keys == sorted(keys)
    (gpio,) = [entry for entry in entries if entry["model"] == "rdk:builtin:gpio" and "servo" in entry["api"]]
    servo = gpio["attribute_schema"]["$defs"]["GpioServoConfig"]
    assert servo["required"] == ["board", "pin"]
    assert servo["properties"]["frequency_hz"] == {
        "description": servo["properties"]["frequency_hz"]["description"],
        "type": "integer",
        "minimum": 50,
        "maximum": 450,
        "default": 300,
    }
    assert servo["properties"]["at_stop"]["enum"] == ["hold", "release"]
    assert "per second" in servo["properties"]["frequency_hz"]["description"]


def test_dump_resources_into_a_missing_folder_is_reported(tmp_path: Path) -> None:
    done = run("-dump-resources", str(tmp_path / "no" / "file"))
    assert (done.returncode, "cannot be written" in done.stderr) == (EXIT_FAILED, True)
