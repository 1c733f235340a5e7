"""Network management as a part of machine-agent: it also runs before there are credentials."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio
from msgspec.structs import replace

from agent.console.server import Command
from agent.control.report import NetworkReport, ProblemReport, network_report
from agent.control.settings import SettingsState
from agent.layout import Layout
from agent.network.settings import entered, network_settings, networks_of
from agent.parts import part
from netmgr import programs
from netmgr.model import NetworkSettings, UsableNetwork
from netmgr.portal import Lock
from netmgr.provisioning import Forced
from netmgr.service import (
    Inputs,
    NetworkCommands,
    NetworkService,
    PortalBackend,
    Product,
    ProofCloud,
    network_explanation,
    network_status,
    stores_of,
)
from nursery_graph import Node, Restart
from schema import ConfigError, ErrorKind, MachineError
from schema.document import Cloud as Credentials
from schema.document import decode_document
from support import Worker, version
from support.files import Inotify, replace_file

FORCE: Final = "force_provisioning_mode"
"""File below the root of the installation that starts the hotspot; it is deleted on sight."""
ALLOW: Final = "allow_new_credentials"
"""File next to it with which the owner of a configured device allows other credentials."""
NAME: Final = "network"
RESTART: Final = Restart(intensity=1_000_000, first_delay=10.0, max_delay=60.0)
START_TIMEOUT: Final = 300.0  # seconds; every program that manages networks may be asked, and wpa_supplicant started
STOP_TIMEOUT: Final = 15.0  # seconds; tasks of the network may take 10
PI: Final = Path("/proc/device-tree/model")

_log = structlog.get_logger("agent.network")


class AgentNetwork:
    """Manages the network while `run` runs. `settings` must be loaded; `worker` runs short calls, and must be open."""

    def __init__(self, layout: Layout, settings: SettingsState, credentials: Path, worker: Worker) -> None:
        self.credentials: Credentials | None = None
        """Credentials in use; None before there are any. Set with `use`."""
        self._layout, self._settings, self._file, self._worker = layout, settings, credentials, worker
        self._hostname = socket.gethostname()
        self._is_pi = False
        self._answers = False  # the cloud has answered the agent's own calls
        store, runtime = stores_of(layout.state, layout.run, worker.run)
        self._store = store
        self.service = NetworkService(
            Inputs(
                self._network_settings, self._cloud_networks, self._is_configured, self._cloud, self._reboot,
                self._hostname,
            ),
            store, runtime, worker.run, separate=True,
        )  # fmt: skip
        self.service.backend = PortalBackend(
            self.service, self._product, version(), self._hostname, self._is_configured,
            Lock(self._is_configured, self._secrets, self._opened), self._store_credentials,
            self._entered, self._page,
        )  # fmt: skip
        self._etc = layout.root / "etc"

    def node(self) -> Node:
        """Return the part, which also runs before there are credentials."""
        return part(NAME, self._run, restart=RESTART, start_timeout=START_TIMEOUT, stop_timeout=STOP_TIMEOUT)

    async def _run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self._is_pi = await self._worker.run(_is_raspberry_pi)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_settings)
            nursery.start_soon(self._watch_requests)
            await self.service.run(task_status=task_status)

    def use(self, credentials: Credentials) -> None:
        """Use credentials: the device is configured."""
        self.credentials = credentials
        self.service.poke()

    def learned_key(self, key: str) -> None:
        """Keep the key with which answers of the cloud are verified."""
        if key and key != self._store.stored.connectivity_key:
            self.service.enter(lambda stored: replace(stored, connectivity_key=key))

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of the control socket."""
        commands = NetworkCommands(self.service, self._entered)
        return {
            "network-status": commands.status,
            "network-scan": commands.scan,
            "network-join": commands.join,
            "network-forget": commands.forget,
            "network-explain": commands.explain,
            "provision": self._provision,
        }

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What keeps the network from being as it should be."""
        return tuple(ProblemReport("network", text) for text in self.service.problems)

    def report(self) -> NetworkReport:
        """Return the state of the network for the cloud, without secrets."""
        state = network_status(self.service)
        addresses = {entry["name"]: entry["addresses"] for entry in state["interfaces"]}
        return network_report(state["mode"], network_explanation(self.service), addresses)

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield after each change of what is observed, until the caller is cancelled."""
        changed = self.service.board.changed
        while True:
            await changed.wait()
            changed = self.service.board.changed
            yield

    # ---- inputs of the service

    def _network_settings(
        self, cloud: tuple[UsableNetwork, ...], adopted: tuple[UsableNetwork, ...]
    ) -> NetworkSettings:
        stored = self._store.stored
        return network_settings(
            self._settings.current, cloud, stored.networks, adopted,
            hostname=self._hostname, password=stored.password, is_pi=self._is_pi,
        )  # fmt: skip

    def _cloud_networks(self) -> tuple[UsableNetwork, ...] | None:
        return networks_of(self._settings.current.additional_networks)

    def _is_configured(self) -> bool:
        return self.credentials is not None

    def _cloud(self) -> ProofCloud | None:
        key = self._store.stored.connectivity_key
        if self.credentials is None or not key:
            return None
        return ProofCloud(self.credentials.app_address, self.credentials.id, key)

    async def _reboot(self) -> None:
        with suppress(MachineError):  # it is repeated
            await programs.run(["systemctl", "reboot"])

    def _product(self) -> Product:
        section = self._settings.current.network_configuration
        return Product(section.manufacturer, section.model, section.fragment_id)

    def _page(self) -> str:
        return self.credentials.app_address if self.credentials is not None else ""

    def _entered(self, networks: tuple[UsableNetwork, ...], network: UsableNetwork) -> tuple[UsableNetwork, ...]:
        section = self._settings.current.network_configuration
        return entered(networks, network, tries_all=section.turn_on_hotspot_if_wifi_has_no_internet)

    # ---- credentials

    def _secrets(self) -> tuple[str, ...]:
        mine = self.credentials
        return (self._store.stored.device_secret, *((mine.secret,) if mine is not None else ()))

    def _opened(self) -> str:
        path = self._etc / ALLOW
        return f"the file {path} exists" if path.exists() else ""

    async def _store_credentials(self, document: bytes) -> None:
        """Check credentials, and store them for the agent, which waits for a change of the file."""
        decoded = decode_document(document)
        cloud = decoded.document.cloud if decoded.document is not None else None
        if cloud is None or not cloud.app_address or not cloud.id:
            raise ConfigError(
                "credentials", "are not JSON with `id`, `secret` and `app_address` of a `cloud`",
                remedy="paste the whole text from the machine's page in the cloud",
            )  # fmt: skip
        try:
            await self._worker.run(partial(_write, self._file, document))
        except OSError as error:
            raise MachineError(
                f"{self._file} cannot be written: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
                remedy="check the disk of the device",
            ) from None  # fmt: skip
        with suppress(OSError):
            await self._worker.run((self._etc / ALLOW).unlink)

    # ---- tasks

    async def _follow_settings(self) -> None:
        async for _ in self._settings.changes():
            self.service.poke()

    async def _watch_requests(self) -> None:
        """Start the hotspot when the file FORCE is created."""
        path = self._etc / FORCE
        try:
            await self._worker.run(partial(self._etc.mkdir, mode=0o755, parents=True, exist_ok=True))
        except OSError as error:
            _log.warning("the hotspot cannot be requested by a file", error=error.strerror, path=str(path))
            return
        watcher = Inotify()
        try:
            watcher.watch({self._etc})
            while True:
                if await self._worker.run(partial(_taken, path)):
                    _log.info("the hotspot was requested", file=str(path))
                    self.service.post(Forced())
                await watcher.wait({path})
        finally:
            watcher.close()

    async def _provision(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Start the hotspot; with `new_credentials`, accept other credentials there once."""
        if arguments.get("new_credentials") is True:
            await self._worker.run((self._etc / ALLOW).touch)
        self.service.post(Forced())
        hotspot = self.service.settings.hotspot
        yield {
            "ssid": hotspot.ssid.decode(errors="replace") if hotspot is not None else "",
            "password": hotspot.password if hotspot is not None else "",
        }


def _write(path: Path, document: bytes) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace_file(path, document)


def _taken(path: Path) -> bool:
    """Delete a file; return whether it existed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        _log.warning("a file cannot be deleted", path=str(path), error=error.strerror)
        return False
    return True


def _is_raspberry_pi() -> bool:
    try:
        return b"Raspberry Pi" in PI.read_bytes()
    except OSError:
        return False
