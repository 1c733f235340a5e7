"""A guest with machine-agent as a service, joined to a real machine-cloud on this computer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from agent.layout import AGENT, SERVER
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.agent.support import Part
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.hil.agent.releases import SOURCE
from tests.hil.image.contents import SITE
from tests.hil.rig.guest import Guest
from tools.release.pack import Packed

APP: Final = "viam.app.v1.AppService"
LIMIT: Final = 120.0  # seconds without a line in the journal; one update takes about 20
PORT: Final = 8080
PROXY: Final = 8081
"""Port for calls from this computer: to machine-server, they come from the guest, so that they need no TLS."""
SPEED: Final = 60
"""How much faster the times of updates pass: ten minutes of a trial are ten seconds."""
FOLDER: Final = "/root/releases"
"""Where release files are put in the guest."""

_INSIDE: Final = ["python3", "-I", "-S", f"{SOURCE}/tests/hil/agent/inside.py"]
_DROP_IN: Final = f"[Service]\nEnvironment=MACHINE_AGENT_CLOCK_SPEED={SPEED}\nRestartSec=1\n"
_PROXY: Final = f"[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd 127.0.0.1:{PORT}\n"
_OVERRIDE: Final = "/etc/systemd/system/{program}.service.d/test.conf"
_JOURNAL: Final = "journalctl -b -n {lines} -u machine-agent -u machine-server -o short-monotonic --no-pager"
_SHOWN: Final = 150  # lines of the journal


class Device:
    """A guest in which machine-agent is installed, or can be. `part` is its machine in the cloud."""

    def __init__(self, guest: Guest, running: CloudProcess, client: ApiClient, part: Part, address: str) -> None:
        self.guest, self.cloud, self.client, self.part = guest, running, client, part
        self.address = address  # of the cloud, as the guest sees it

    async def put(self, *releases: Packed) -> list[str]:
        """Copy release files into the guest; return their paths there."""
        await self.guest.run(["mkdir", "-p", FOLDER])
        paths = []
        for release in releases:
            await self.guest.write(f"{FOLDER}/{release.path.name}", release.path.read_bytes())
            paths.append(f"{FOLDER}/{release.path.name}")
        return paths

    async def prepare(self) -> None:
        """Let the times of updates pass faster, and mount the source at boot."""
        for program in (AGENT, SERVER):
            path = Path(_OVERRIDE.format(program=program))
            await self.guest.run(["mkdir", "-p", str(path.parent)])
            await self.guest.write(path, _DROP_IN)
        share = self.guest.vm.share
        await self.guest.write("/etc/fstab", f"none {SOURCE} hostfs {share},ro 0 0\n")
        await self.guest.write("/etc/systemd/system/calls.socket", f"[Socket]\nListenStream={PROXY}\n")
        await self.guest.write("/etc/systemd/system/calls.service", _PROXY)
        await self.guest.run("rmdir /opt/machine; systemctl daemon-reload; systemctl start calls.socket; sync")

    async def install(self, *releases: Packed, root: bytes | None = None) -> None:
        """Install machine-agent and machine-server from their release files, with the credentials of the part."""
        credentials = {"id": self.part.id, "secret": self.part.secret, "app_address": f"http://{self.address}"}
        await self.guest.write("/root/mine.json", json.dumps({"cloud": credentials}), 0o600)
        agent, server = await self.put(*releases)
        words = ["--install", "--agent", agent, "--server", server, "--credentials", "/root/mine.json"]
        if root is not None:
            await self.guest.write("/root/root.json", root)
            words += ["--release-root", "/root/root.json"]
        await self.python("agent.start", *words)

    async def python(self, module: str, *words: str, check: bool = True) -> str:
        """Run a module of the source in the guest; return its output."""
        environment = {"PYTHONPATH": f"{SOURCE}:{SITE}"}
        done = await self.guest.run(["python3", "-m", module, *words], env=environment, fresh=True, check=check)
        return done.output

    async def save(self, document: Mapping[str, Any] | None = None, **versions: str) -> None:
        """Save the configuration of the part, with these versions of `agent` and `machine_server`."""
        choice = {name.replace("_", "-"): version for name, version in versions.items()}
        settings = {"agent": {"version_control": choice}} if choice else {}
        await self.part.save({"network": {"bind_address": f"localhost:{PORT}"}, **settings, **(document or {})})

    # ---- the agent

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Return the agent's answer; AssertionError if it is an error."""
        answer = await self.try_to_ask(command, **arguments)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    async def try_to_ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Return {"value": …} or {"error": …}."""
        done = await self.guest.run([*_INSIDE, "ask", command, json.dumps(arguments)])
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    async def status(self) -> Mapping[str, Any]:
        """Return the status of the agent, empty while it does not answer."""
        status: Mapping[str, Any] = (await self.try_to_ask("status")).get("value") or {}
        return status

    async def until(self, condition: Callable[[Mapping[str, Any]], object], limit: float = LIMIT) -> Mapping[str, Any]:
        """Return the first status that fulfils a condition.

        AssertionError if none does, and nothing was logged for `limit` seconds: a guest on a busy computer is slow, but
        goes on. The limit of the test, `time_limit`, ends a guest that logs without end.
        """
        status: Mapping[str, Any] = {}
        logged, last = "", await self.journal(1)
        while logged != last:
            logged = last
            with trio.move_on_after(limit):
                while True:
                    status = await self.status()
                    if status and condition(status):
                        return status
                    await trio.sleep(0.3)  # another computer, in effect: nothing reports changes
            last = await self.journal(1)
        raise AssertionError(f"for {limit:g} s, the status stays {json.dumps(status)}\n{await self.journal()}")

    async def settled(self, program: str, version: str, limit: float = LIMIT) -> Mapping[str, Any]:
        """Return the status of a program once this version serves, and no update of it is in progress."""
        key = "agent" if program == AGENT else "server"

        def condition(status: Mapping[str, Any]) -> object:
            own = status[key]
            return own.get("version") == version and own.get("serving") and "step" not in own

        status: Mapping[str, Any] = (await self.until(condition, limit))[key]
        return status

    async def update(self, program: str, file: str) -> None:
        """Install a release file of the guest, as a person at the device does."""
        await self.ask("update", program=program, choice=f"file://{file}")

    async def state(self) -> Mapping[str, Any]:
        """Return what runs; see `inside.state`."""
        state: Mapping[str, Any] = json.loads((await self.guest.run([*_INSIDE, "state"])).stdout)
        return state

    async def moment(self, program: str, step: str, count: int, seconds: float) -> AsyncGenerator[str, None]:
        """Yield "ready", then the step of the update at the moment that `inside.wait` describes."""
        process = await self.guest.start([*_INSIDE, "wait", program, step, str(count), str(seconds)])
        await process.wait_output("ready\n")
        yield "ready"
        await process.wait_output("now ")
        yield process.stdout.rpartition("now ")[2].strip()

    async def journal(self, lines: int = _SHOWN) -> str:
        """Return the last lines that both programs have logged since the boot."""
        return (await self.guest.run(_JOURNAL.format(lines=lines), check=False)).output

    # ---- the server, from this computer

    @asynccontextmanager
    async def calls(self) -> AsyncIterator[ApiClient]:
        """Yield a client of machine-server, authenticated as the part."""
        port = await self.guest.forward(PROXY)
        async with Channel(f"127.0.0.1:{port}", credentials=ApiKey(*self.cloud.key)) as channel:
            yield ApiClient(channel)
        await self.guest.unforward(port)


@asynccontextmanager
async def joined(guest: Guest, folder: Path, *, options: Sequence[str] = ()) -> AsyncIterator[Device]:
    """Start a cloud on this computer, and create a machine there for the guest. Nothing is installed yet."""
    exposed = guest.expose()
    url = ("--url", f"http://{exposed.address}")
    async with cloud(folder / "cloud", *url, *options) as running, running.client() as client:
        exposed.port = int(running.address.rpartition(":")[2])
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        (entry, *_) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
        part = Part(client, entry["id"], entry["secret"], folder / "machine.json")
        device = Device(guest, running, client, part, exposed.address)
        await device.prepare()
        await device.save()
        yield device
