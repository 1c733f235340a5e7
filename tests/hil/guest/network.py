"""Network management in a guest, without the rest of the agent: `python3 -m tests.hil.guest.network FOLDER`.

Each line on standard input is a request of JSON, each line on standard output an answer or news:

    {"settings": {...}}                  the configuration of the agent, with additional_networks
    {"cloud": {"url": ..., "part": ..., "key": ...}}   the cloud to ask for proofs
    {"call": "status" | "scan" | "join" | "forget" | "explain", ...}   a command: {"answer": [...]} or {"error": ...}
    {"force": true}                      the hotspot

News are {"mode": ..., "at": seconds since the start}, {"effect": name} before each effect is applied, and
{"credentials": ...} that were entered.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import structlog
import trio

from agent.network.settings import entered, network_settings, networks_of
from netmgr.applying.executor import Executor, Handlers
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import NetworkSettings
from netmgr.portal.access import Lock
from netmgr.provisioning.states import Forced
from netmgr.service.backend import PortalBackend, Product
from netmgr.service.commands import NetworkCommands
from netmgr.service.core import Inputs, NetworkService, stores_of
from netmgr.service.proofs import ProofCloud
from schema.agent.reading import read_settings
from schema.agent.records import Settings
from schema.errors import MachineError
from tests.hil.guest.cables import count_as_hardware

HOSTNAME = "rover"


def say(**news: Any) -> None:
    print(json.dumps(news), flush=True)


class Guest:
    """The parts that the agent provides otherwise."""

    def __init__(self, folder: Path) -> None:
        self.current, self.credentials, self.cloud = Settings(), b"", None
        self.known: ProofCloud | None = None
        store, runtime = stores_of(folder, Path("/run"), self.inline)
        self.store = store
        self.service = NetworkService(
            Inputs(
                self.settings, lambda: networks_of(self.current.additional_networks), lambda: bool(self.credentials),
                lambda: self.known, self.reboot, HOSTNAME,
            ),
            store, runtime, self.inline,
        )  # fmt: skip
        self.service.backend = PortalBackend(
            self.service, lambda: Product("acme", "rover-1"), "1.0.0", HOSTNAME, lambda: bool(self.credentials),
            Lock(lambda: bool(self.credentials), lambda: (store.stored.device_secret,), str), self.configure,
            self.entered, lambda: "http://cloud.example/",
        )  # fmt: skip
        self.commands = NetworkCommands(self.service, self.entered)

    async def inline(self, function: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return function()

    def settings(self, cloud: tuple[UsableNetwork, ...], adopted: tuple[UsableNetwork, ...]) -> NetworkSettings:
        stored = self.store.stored
        return network_settings(
            self.current, cloud, stored.networks, adopted, hostname=HOSTNAME, password=stored.password
        )

    def entered(self, networks: tuple[UsableNetwork, ...], network: UsableNetwork) -> tuple[UsableNetwork, ...]:
        tries_all = self.current.network_configuration.turn_on_hotspot_if_wifi_has_no_internet
        return entered(networks, network, tries_all=tries_all)

    async def reboot(self) -> None:
        say(reboot=True)

    async def configure(self, document: bytes) -> None:
        self.credentials = document
        say(credentials=document.decode())

    async def follow(self) -> None:
        """Report each change of the mode."""
        began, mode = trio.current_time(), ""
        while True:
            changed, outcome = self.service.board.changed, self.service.outcome
            if outcome is not None and outcome.state.mode.value != mode:
                mode = outcome.state.mode.value
                say(mode=mode, at=round(trio.current_time() - began, 1))
            await changed.wait()

    async def carry_out(self, request: Mapping[str, Any]) -> None:
        if "settings" in request:
            self.current, problems = read_settings(None, request["settings"])
            say(problems=[str(problem) for problem in problems])
        if request.get("configured"):
            self.credentials = b"{}"
        if "cloud" in request:
            self.known = ProofCloud(**request["cloud"])
        if request.get("force"):
            self.service.post(Forced())
        self.service.poke()
        if "call" in request:
            await self.call(getattr(self.commands, request["call"]), request)

    async def call(
        self, command: Callable[[Mapping[str, Any]], AsyncGenerator[Any, None]], request: Mapping[str, Any]
    ) -> None:
        try:
            say(answer=[value async for value in command(request)])
        except MachineError as error:
            say(error=str(error))


def announce_effects() -> None:
    """Print each effect before it is applied."""
    create = Executor.__init__

    def announcing(handler: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        async def apply(effect: Any) -> None:
            say(effect=type(effect).__name__)
            await handler(effect)

        return apply

    def initialize(executor: Executor, handlers: Handlers) -> None:
        create(executor, {kind: announcing(handler) for kind, handler in handlers.items()})

    Executor.__init__ = initialize  # type: ignore[method-assign, assignment]


async def main(folder: Path) -> None:
    count_as_hardware()
    announce_effects()
    structlog.configure(
        processors=[structlog.processors.TimeStamper(fmt="%H:%M:%S"), structlog.dev.ConsoleRenderer(colors=False)],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    guest = Guest(folder)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(guest.service.run)
        nursery.start_soon(guest.follow)
        pending = b""
        async for data in trio.lowlevel.FdStream(0):
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                nursery.start_soon(guest.carry_out, json.loads(line))
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
