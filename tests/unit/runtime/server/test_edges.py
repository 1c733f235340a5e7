"""Edge cases of the server: forwarded logs, keys without TLS, the file of all models, options."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from engine.nodes import Bench
from engine.options import EXIT_USAGE, Options
from engine.registry import Registry
from hal.sim import World
from hal.sim.hardware import SimHardware
from models import BUILTIN
from nursery_graph import Graph
from rpc.access.auth import credentials_of, digest_of
from rpc.access.credential_types import API_KEY, LOCATION_SECRET
from rpc.carrier import Peer
from rpc.network.tls import InMemoryTls
from runtime.server import cli
from runtime.server.dump import dump_resources
from runtime.server.machine import Machine
from runtime.server.port.authentication import MachineAuthenticator
from runtime.server.port.gate import Gate
from schema.document.machine import MachineDocument, decode_document
from telemetry.logs.ring import LogRing


def bare(**options: Any) -> Machine:
    """Return a machine without any part."""
    value, world = Options(config=Path("m.json"), **options), World()
    bench = Bench(world, SimHardware(world))
    return Machine(value, registry=Registry({}), graph=Graph(), log_ring=LogRing(), bench=bench)


@pytest.mark.parametrize(
    ("local", "secure", "allowed", "accepted"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
    ],
)
async def test_keys_travel_over_the_network_only_under_tls(
    local: bool, secure: bool, allowed: bool, accepted: bool
) -> None:
    machine = bare(allow_insecure_creds=allowed)
    if secure:
        machine.endpoint.tls = tls = InMemoryTls()
        tls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    result, problems = credentials_of([{"type": "api-key", "config": {"id": "a secret word", "keys": ["id"]}}])
    assert not problems
    authenticator = MachineAuthenticator(machine.options, machine.endpoint)
    authenticator.configure(result)
    peer = Peer(("127.0.0.1" if local else "192.0.2.7", 4711))
    if accepted:
        assert authenticator.authenticate("id", "api-key", "a secret word", peer=peer)
        return
    with pytest.raises(GRPCError, match="-allow-insecure-creds") as caught:
        authenticator.authenticate("id", "api-key", "a secret word", peer=peer)
    assert caught.value.status is Status.UNAUTHENTICATED
    assert "a secret word" not in str(caught.value)


HERE = Peer(("127.0.0.1", 4711))
ACCEPTED = {
    "as a digest": {"location_secrets": [{"secret": digest_of("hush")}]},
    "one of several": {"location_secrets": [{"id": "1", "secret": digest_of("other")}, {"secret": digest_of("hush")}]},
    "as a text": {"location_secrets": [{"id": "1", "secret": "hush"}]},
    "in the older form": {"location_secret": "hush"},
}


def accepting(**cloud: Any) -> MachineDocument:
    decoded = decode_document(json.dumps({"cloud": {"id": "part", "secret": "own", **cloud}}).encode())
    assert decoded.document is not None, decoded.problems
    return decoded.document


@pytest.mark.parametrize("cloud", ACCEPTED.values(), ids=[*ACCEPTED])
@pytest.mark.parametrize("entity", ["rover.local:8080", "localhost", "192.168.7.5"])
async def test_a_secret_of_the_location_opens_a_machine_under_each_of_its_names(
    cloud: dict[str, Any], entity: str
) -> None:
    machine = bare()
    gate = Gate(machine.options, machine.endpoint)
    gate.configure(gate.credentials(accepting(**cloud)))
    token = gate.authenticator.authenticate(entity, LOCATION_SECRET, "hush", peer=HERE)
    who = gate.authorize("/a/b", {"authorization": f"Bearer {token}"})
    assert who is not None
    assert (who.kind, who.entity) == (LOCATION_SECRET, "location")
    for kind, name, shown, status in (
        (LOCATION_SECRET, entity, "guess", Status.UNAUTHENTICATED),
        (LOCATION_SECRET, entity, digest_of("hush"), Status.UNAUTHENTICATED),
        (LOCATION_SECRET, "", "hush", Status.INVALID_ARGUMENT),
        ("robot-secret", "part", "own", Status.INVALID_ARGUMENT),
        (API_KEY, "location", "hush", Status.INVALID_ARGUMENT),
    ):
        with pytest.raises(GRPCError) as caught:
            gate.authenticator.authenticate(name, kind, shown, peer=HERE)
        assert caught.value.status is status
        assert "hush" not in str(caught.value)
    gate.configure(gate.credentials(accepting(location_secrets=[{"secret": digest_of("another")}])))
    with pytest.raises(GRPCError):  # the secret was deleted
        gate.authorize("/a/b", {"authorization": f"Bearer {token}"})


def test_without_a_secret_of_the_location_a_machine_is_as_open_as_before() -> None:
    machine = bare()
    gate = Gate(machine.options, machine.endpoint)
    assert gate.credentials(accepting()) == []
    assert gate.credentials(accepting(location_secret="", location_secrets=[{"id": "1"}])) == []


def test_the_file_of_models_is_private_even_if_it_was_not(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text("x" * 1_000_000)
    path.chmod(0o644)
    dump_resources(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entries = json.loads(path.read_text())
    assert "\n\t{" in path.read_text()
    assert [(entry["api"], entry["model"]) for entry in entries] == Registry(BUILTIN).pairs()
    assert any("attribute_schema" in item for item in entries)


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["debug"], "debug", True),
        (["debug=true"], "debug", True),
        (["debug=false"], "debug", False),
        (["ftdc=false"], "ftdc", False),
        (["webrtc"], "webrtc", True),
        (["config=a.json"], "config", Path("a.json").absolute()),
        (["config", "a.json"], "config", Path("a.json").absolute()),
        (["log-file=x"], "log_file", Path("x").absolute()),
        ([], "debug", False),
        ([], "ftdc", True),
    ],
)
def test_options_in_one_dash_or_two(dashes: str, words: list[str], name: str, value: object) -> None:
    arguments = [f"{dashes}{words[0]}", *words[1:]] if words else []
    assert cli.command.make_context("machine-server", arguments).params[name] == value


@pytest.mark.parametrize("arguments", [["-de"], ["-confg=x"], ["--debu"], ["stray"], ["-debug=2.5"], ["-config"]])
def test_unknown_options_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == EXIT_USAGE
    assert "Error" in capsys.readouterr().err


def test_an_unknown_option_in_two_dashes_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--confg=x"])
    assert "config" in capsys.readouterr().err.partition("No such option")[2]


@pytest.mark.parametrize("value", ["seven", "-1", "987654"])
def test_a_ready_descriptor_that_is_not_open_is_refused(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MACHINE_READY_FD", value)
    with pytest.raises(SystemExit) as caught:
        cli.main(["-config", str(tmp_path / "m.json")])
    assert caught.value.code == EXIT_USAGE
    assert "not an open descriptor" in capsys.readouterr().err
