"""Network management as a part of the agent, without its task: credentials, secrets, and requests by file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from agent.control.settings import SettingsState
from agent.layout import Layout
from agent.network.agent_network import ALLOW, FORCE, AgentNetwork
from netmgr.portal.state import CredentialsEntry
from netmgr.provisioning.states import Forced
from schema.document.cloud import Cloud
from schema.errors import ConfigError, MachineError
from support.worker import Worker
from tests.helpers.waiting import until

SECRET = "the part's secret"
OTHER = json.dumps(
    {"cloud": {"id": "other", "secret": "another secret", "app_address": "http://other.example"}}
).encode()


class Inline:
    """A worker that runs functions at once."""

    async def run(self, function: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return function()


async def part(folder: Path, *, configured: bool = False) -> AgentNetwork:
    layout = Layout(folder / "opt", folder / "run")
    for path in (layout.state, layout.run):
        path.mkdir(parents=True)
    worker = cast("Worker", Inline())
    settings = SettingsState(folder / "defaults.json", layout.state / "settings.json", worker.run)
    await settings.load()
    network = AgentNetwork(layout, settings, folder / "etc" / "machine.json", worker)
    await network.service.store.load()
    if configured:
        network.use(Cloud(id="part", secret=SECRET, app_address="http://cloud.example"))
    return network


async def test_a_new_device_stores_what_a_person_enters_for_root_only(tmp_path: Path) -> None:
    network = await part(tmp_path)
    await network.service.backend.enter_credentials(CredentialsEntry(document=OTHER))
    file = tmp_path / "etc" / "machine.json"
    assert file.read_bytes() == OTHER
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


@pytest.mark.parametrize(
    "document",
    [b"", b"4711s", b"[]", b'{"cloud": {"id": "x", "secret": "4711s"}}', b'{"cloud": {"secret": "4711s"', b"{}"],
)
async def test_invalid_credentials_are_refused_and_not_shown(tmp_path: Path, document: bytes) -> None:
    network = await part(tmp_path)
    with pytest.raises(ConfigError) as caught:
        await network.service.backend.enter_credentials(CredentialsEntry(document=document))
    assert caught.value.path == "credentials"
    assert "4711s" not in str(caught.value)
    assert not (tmp_path / "etc" / "machine.json").exists()


async def test_a_configured_device_needs_a_proof(tmp_path: Path) -> None:
    network = await part(tmp_path, configured=True)
    backend, stored = network.service.backend, network.service.store.stored
    for proof in ("", "guess", stored.password):
        with pytest.raises(MachineError, match="belongs to a cloud already"):
            await backend.enter_credentials(CredentialsEntry(document=OTHER, proof=proof))
    assert not (tmp_path / "etc" / "machine.json").exists()
    for proof in (stored.device_secret, SECRET):
        await backend.enter_credentials(CredentialsEntry(document=OTHER, proof=proof))
        assert (tmp_path / "etc" / "machine.json").read_bytes() == OTHER


async def test_the_owner_allows_new_credentials_once(tmp_path: Path) -> None:
    network = await part(tmp_path, configured=True)
    backend = network.service.backend
    folder = tmp_path / "opt" / "etc"
    folder.mkdir()
    (folder / ALLOW).touch()
    assert backend.state().replaceable
    await backend.enter_credentials(CredentialsEntry(document=OTHER))
    assert not (folder / ALLOW).exists()
    with pytest.raises(MachineError, match="belongs to a cloud already"):
        await backend.enter_credentials(CredentialsEntry(document=OTHER))


async def test_a_file_requests_the_hotspot(tmp_path: Path) -> None:
    network = await part(tmp_path)
    posted: list[object] = []
    network.service.post = posted.append  # type: ignore[method-assign]
    file = tmp_path / "opt" / "etc" / FORCE
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(network._watch_requests)
            await until(file.parent.exists)
            file.touch()
            await until(lambda: posted)
            nursery.cancel_scope.cancel()
    assert posted == [Forced()]
    assert not file.exists()


async def test_the_key_of_the_cloud_is_kept(tmp_path: Path) -> None:
    network = await part(tmp_path, configured=True)
    assert network._cloud() is None
    network.learned_key("a" * 64)
    (change, _) = network.service._inbox.popleft()
    assert change is not None
    await network.service.store.change(change)
    cloud = network._cloud()
    assert cloud is not None
    assert (cloud.url, cloud.part, cloud.key) == ("http://cloud.example", "part", "a" * 64)
    assert "a" * 64 not in repr(cloud)
