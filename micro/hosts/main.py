"""The program: `micropython -m micro.hosts.main CONFIG`, or the same with python, or `run` from a board's main.py."""

import asyncio
import gc
import hashlib
import sys

from micro.engine.calls import Calls
from micro.engine.machine import Machine
from micro.hosts import settings
from micro.hosts.fake import FakePort
from micro.hosts.loop import Clock, Host
from micro.wire.bounds import for_heap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.hosts.port import Port
    from micro.hosts.updating import Updating

PORT = 8080
BACKLOG = 4


class SimulatedPort(Clock, FakePort):
    """A host without hardware, on this computer's clocks."""

    def __init__(self) -> None:
        FakePort.__init__(self)
        Clock.__init__(self)
        self.platform = sys.implementation.name


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).digest()


class Program:
    """A micro server with its files and its network."""

    def __init__(self, port: "Port", path: str) -> None:
        self.path = path
        bounds = for_heap(port.free())
        self.machine = Machine(port, sha256, bounds)
        self.machine.print = print
        self.host = Host(Calls(self.machine), bounds)
        self._document: dict[str, Any] = {}
        self._updating: Updating | None = None
        self._changed = (0, 0)

    def follow_updates(self, folder: str) -> None:
        """Look for updates of this program, which is in one of the slots in `folder`."""
        from micro.hosts.updating import Updating  # only where there are slots, to save memory

        try:
            self._updating = Updating(self.machine, folder, sha256)
        except settings.BadFile as error:
            self.machine.log("warn", "update", str(error))

    def read(self) -> None:
        """Apply the configuration file if it has changed."""
        changed = settings.changed(self.path)
        if changed == self._changed:
            return
        self._changed = changed
        try:
            self._document = settings.read_json(self.path)
        except settings.BadFile as error:
            self.machine.log("error", "config", f"{error}: the last configuration stays in force")
            return
        if not self._section():  # otherwise the cloud's document counts
            self.apply(self._document, str(changed[0]))

    def _section(self) -> "dict[str, Any]":
        """Return the identity of the machine at its cloud, empty without one."""
        section = self._document.get("cloud")
        return section if isinstance(section, dict) and section.get("id") else {}

    def _pushed(self, data: "dict[str, Any]") -> None:
        """Apply what the cloud has sent."""
        section = self._section()
        cloud = data.get("cloud")
        self.machine.cloud = cloud if isinstance(cloud, dict) else {}
        self.machine.cloud["id"] = section["id"]
        keys = data.get("keys")
        self.apply(data["document"], str(data.get("revision")), keys if isinstance(keys, dict) else {})
        self.machine.access.closed = False

    def apply(self, document: "dict[str, Any]", revision: str, more: "dict[str, str] | None" = None) -> None:
        """Apply a document with the keys in it, and those of the cloud."""
        keys: dict[str, str] = {} if more is None else dict(more)
        auth = document.get("auth")
        for handler in (auth.get("handlers") or []) if isinstance(auth, dict) else []:
            config = handler.get("config") if isinstance(handler, dict) else None
            if isinstance(config, dict):
                keys.update({entity: config[entity] for entity in config if isinstance(config[entity], str)})
        if self._updating is not None:
            self._updating.configure(document)
        self.machine.access.set_keys(keys)
        self.machine.apply(document, revision)
        gc.collect()

    def _tls(self) -> "Any":
        """Return the context for TLS, None without certificate; a bad file must not open the port without TLS."""
        network = self._document.get("network")
        names = [network.get(name) for name in ("tls_cert_file", "tls_key_file")] if isinstance(network, dict) else []
        if not any(names):
            return None
        from micro.hosts.secure import server_context

        return server_context(str(names[0]), str(names[1]))

    async def run(self, address: str, number: int) -> None:
        """Serve until the machine restarts. BadFile if the files for TLS cannot be used."""
        machine = self.machine
        self.read()
        context = self._tls()
        link = None
        if self._section():
            from micro.hosts.cloud import CloudLink

            link = CloudLink(self.host, self._section(), self.path + ".cloud", self._pushed)
            link.start()
        self.host.each_second.append(self.read)
        server = await asyncio.start_server(self.host.accept, address, number, backlog=BACKLOG, ssl=context)
        machine.log("info", "server", f"listening on {address}:{number}, {machine.port.free()} bytes free")
        tasks = [asyncio.create_task(self._capture())]
        if not address.startswith(("0.", "127.")):
            from micro.hosts.announcing import Announcing

            name = str(self._section().get("id") or machine.port.platform)
            tasks.append(asyncio.create_task(Announcing(machine, f"micro-{name}", address, number).run()))
        if self._updating is not None:
            tasks.append(asyncio.create_task(self._updating.run()))
            if link is not None:
                self._updating.healthy = link.is_connected
        if link is not None:
            tasks += [asyncio.create_task(link.run()), asyncio.create_task(link.upload())]
        try:
            await self.host.run()
        finally:
            for task in tasks:
                task.cancel()
            server.close()
            machine.close()

    async def _capture(self) -> None:
        machine = self.machine
        while True:
            try:
                await machine.port.sleep(50)
                await machine.capture_due()
            except MemoryError:
                gc.collect()


def run(port: "Port", path: str, address: str = "0.0.0.0", number: int = PORT, slots: "str | None" = None) -> None:
    """Run a micro server, and restart the host when it ends. `slots` is the folder of the slots, if there are some."""
    try:
        program = Program(port, path)
        if slots is not None:
            program.follow_updates(slots)
        asyncio.run(program.run(address, number))
    finally:
        port.restart()


def start(path: str, address: str, number: str, slots: str) -> None:
    """Run a simulated micro server from a slot; see micro.update.boot."""
    run(SimulatedPort(), path, address, int(number), slots)


def main(words: "list[str]") -> None:
    """Run a simulated micro server: CONFIG [ADDRESS [PORT]]."""
    if not words:
        print("usage: micro.hosts.main CONFIG [ADDRESS [PORT]]")
        sys.exit(2)
    run(SimulatedPort(), words[0], words[1] if words[1:] else "127.0.0.1", int(words[2]) if words[2:] else PORT)


if __name__ == "__main__":
    main(sys.argv[1:])
