"""The registry, a real cloud and a real machine: a module is uploaded, runs and is updated; downloads fail."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from runtime.sdk.packing import pack
from schema.errors import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import Server, server
from tests.loopback import listening

APP = "viam.app.v1.AppService"
PACKAGES = "viam.app.packages.v1.PackageService"
SENSOR = "rdk:component:sensor"
LIMIT = 60.0  # seconds; a module's Python takes some of them on a busy computer

DRIVER = """
import asyncio
from typing import ClassVar
from viam.components.sensor import Sensor
from viam.module.module import Module
from viam.resource.easy_resource import EasyResource

class Spoken(Sensor, EasyResource):
    MODEL: ClassVar = "acme:spoken:sensor"
    async def get_readings(self, **kwargs):
        return {"version": "VERSION"}

if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
"""


def module_archive(folder: Path, version: str, *, first_run: str = "", extra: bytes = b"") -> bytes:
    """Return the archive of a module on the official SDK whose sensor returns its version."""
    source = folder / f"module-{version}"
    source.mkdir(parents=True)
    programs = {"run.sh": '#!/bin/sh\nexec "$MACHINE_PYTHON" "$(dirname "$0")/driver.py" "$@"\n'}
    meta: dict[str, Any] = {
        "module_id": "acme:spoken",
        "visibility": "private",
        "url": "",
        "description": "tells its version",
        "models": [{"api": SENSOR, "model": "acme:spoken:sensor"}],
        "entrypoint": "run.sh",
    }
    if first_run:
        programs["first.sh"] = f"#!/bin/sh\n{first_run}\n"
        meta["first_run"] = "first.sh"
    for name, text in programs.items():
        (source / name).write_text(text)
        (source / name).chmod(0o755)
    (source / "driver.py").write_text(DRIVER.replace("VERSION", version))
    (source / "extra.bin").write_bytes(extra)
    (source / "meta.json").write_text(json.dumps(meta))
    archive = folder / f"{version}.tar.gz"
    pack(source, archive)
    return archive.read_bytes()


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 64 * 1024):
        yield data[start : start + 64 * 1024]


class World:
    """A cloud with a namespace, a module `acme:spoken` and a machine."""

    def __init__(self, running: CloudProcess, client: ApiClient, part: dict[str, Any], folder: Path) -> None:
        self.running = running
        self.client = client
        self.part = part["id"]
        self.credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        self.folder = folder
        self.home = folder / "home"

    async def upload(self, version: str, **fields: Any) -> bytes:
        data = await trio.to_thread.run_sync(partial(module_archive, self.folder / "source", version, **fields))
        await self.client.call(
            APP, "", "upload_module_file", module_id="acme:spoken", version=version, platform="linux/any",
            pieces=pieces(data),
        )  # fmt: skip
        return data

    async def save(self, version: str, **more: Any) -> None:
        module = {"name": "spoken", "type": "registry", "module_id": "acme:spoken", "version": version}
        component = {"name": "voice", "api": SENSOR, "model": "acme:spoken:sensor"}
        document = {"modules": [module], "components": [component], **more}
        await self.client.call(
            APP, "", "update_robot_part", id=self.part, name="", robot_config_json=json.dumps(document)
        )

    @asynccontextmanager
    async def machine(self, **text: Any) -> AsyncIterator[Server]:
        self.folder.mkdir(exist_ok=True)
        environment = {**os.environ, "MACHINE_HOME": str(self.home)}
        document = {"cloud": {**self.credentials, **text}}
        async with server(self.folder, document, "-disable-mdns", env=environment) as running:
            yield running

    async def readings(self, machine: Server, name: str = "voice") -> Any:
        """Return the reading of the sensor, as a client of the machine receives it; None if the call fails."""
        try:
            async with Channel(machine.address, credentials=ApiKey(*self.running.key)) as channel:
                return await ApiClient(channel).call(SENSOR, name, "get_readings")
        except MachineError:
            return None

    async def says(self, machine: Server, version: str) -> bool:
        return await self.readings(machine) == {"version": version}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with cloud(tmp_path / "cloud") as running, running.client() as client:
        organization = running.facts["organization"]
        await client.call(APP, "", "update_organization", organization_id=organization, public_namespace="acme")
        await client.call(APP, "", "create_module", organization_id=organization, name="spoken")
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        yield World(running, client, part, tmp_path / "machine")


async def until(true: Callable[[], Awaitable[Any]], what: str, machine: Server) -> None:
    """Repeat a check until it is true, as a client does."""
    with trio.move_on_after(LIMIT):
        while True:
            if await true():
                return
            await trio.sleep(0.05)
    raise AssertionError(f"not within {LIMIT} s: {what}\n{machine.log()[-6000:]}")


async def logged(machine: Server, text: str) -> bool:
    return text in machine.log()


async def test_a_module_of_the_registry_runs_rolls_over_and_works_offline(world: World) -> None:
    await world.upload("1.0.0", first_run="echo prepared > made.txt")
    await world.save("latest")
    async with world.machine() as machine:
        await until(lambda: world.says(machine, "1.0.0"), "the first version", machine)
        folders = sorted((world.home / "packages" / "module").glob("spoken-*/"))
        assert len(folders) == 1
        assert (folders[0] / "made.txt").read_text() == "prepared\n"
        await world.upload("1.1.0")  # no configuration is saved: `latest` now means this version
        await until(lambda: world.says(machine, "1.1.0"), "the second version", machine)
        await until(lambda: logged(machine, "no longer needed was removed"), "the old one is removed", machine)
        assert not folders[0].exists()
        await world.save("1.0")
        await until(lambda: world.says(machine, "1.0.0"), "back to the first", machine)
    world.running.process.kill()
    async with world.machine() as machine:
        await until(lambda: world.says(machine, "1.0.0"), "without the cloud", machine)


async def test_a_bad_version_keeps_the_old_one_running_with_a_reason(world: World) -> None:
    await world.upload("1.0.0")
    await world.save("1.0.0")
    async with world.machine() as machine:
        await until(lambda: world.says(machine, "1.0.0"), "the first version", machine)
        await world.save("9.9.9")
        await until(lambda: logged(machine, "acme:spoken has no version '9.9.9'; available: 1.0.0"), "spoken", machine)
        assert await world.says(machine, "1.0.0")
        await world.upload("2.0.0", first_run="echo no such wheel >&2; exit 3")
        await world.save("latest")
        await until(lambda: logged(machine, "no such wheel"), "the reason of the first run", machine)
        await until(lambda: logged(machine, '"in_force":"1.0.0"'), "what stays", machine)
        assert await world.says(machine, "1.0.0")
        assert machine.log().count("module started") == 1
        await world.upload("2.0.1")
        await until(lambda: world.says(machine, "2.0.1"), "the one that is better", machine)


async def test_a_package_fills_its_placeholder(world: World) -> None:
    data = world.folder / "model.tar.gz"
    world.folder.mkdir()
    (world.folder / "weights.txt").write_text("w")
    with tarfile.open(data, "w:gz") as tar:
        tar.add(world.folder / "weights.txt", "weights.txt")
    await world.client.call(
        PACKAGES, "", "create_package", organization_id=world.running.facts["organization"], name="net",
        version="2026-01", type="ML_MODEL", pieces=pieces(data.read_bytes()),
    )  # fmt: skip
    await world.upload("1.0.0")
    package = {"name": "my-net", "package": f"{world.running.facts['organization']}/net", "version": "latest"}
    model = {"name": "told2", "type": "local", "executable_path": "${packages.my-net}/weights.txt"}
    await world.save("latest", packages=[package])
    async with world.machine() as machine:
        await until(lambda: world.says(machine, "1.0.0"), "runs", machine)
        (folder,) = (world.home / "packages" / "ml_model").glob("my-net-*/")
        assert (folder / "weights.txt").read_text() == "w"
        registry = {"name": "spoken", "type": "registry", "module_id": "acme:spoken", "version": "latest"}
        await world.save("latest", packages=[package], modules=[registry, model])
        await until(lambda: logged(machine, f"{folder}/weights.txt"), "the path is filled in", machine)


class Cut:
    """A proxy between machine and cloud that corrupts the first `times` downloads."""

    def __init__(self, port: int, spoil: Callable[[bytes, bytes], bytes | None], times: int) -> None:
        self.target = port
        self.spoil = spoil
        self.times = times
        self.ranges: list[str] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        try:
            first = await stream.receive_some(65536)
            async with await trio.open_tcp_stream("127.0.0.1", self.target) as cloud_side:
                package = first.startswith(b"GET /packages/")
                if package:
                    lines = first.decode("latin-1").lower().split("\r\n")
                    self.ranges.append(next((line for line in lines if line.startswith("range:")), ""))
                await cloud_side.send_all(first)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._copy, stream, cloud_side)
                    if package and self.times:
                        self.times -= 1
                        await self._spoiled(cloud_side, stream)
                    else:
                        await self._copy(cloud_side, stream)
                    nursery.cancel_scope.cancel()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _copy(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        async for data in source:
            await target.send_all(data)

    async def _spoiled(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        seen = b""
        async for data in source:
            answer = self.spoil(seen, data)
            if answer is None:
                await target.send_all(data[: max(1, len(data) // 2)])
                return  # close the connection in the middle
            await target.send_all(answer)
            seen += data


async def test_an_interrupted_download_is_resumed(world: World) -> None:
    data = await world.upload("1.0.0", extra=os.urandom(6_000_000))
    await world.save("1.0.0")
    half = len(data) // 2
    port = int(world.running.address.rpartition(":")[2])
    cut = Cut(port, lambda seen, data: None if len(seen) > half else data, times=1)
    async with (
        listening(cut.serve) as proxied,
        world.machine(app_address=f"http://localhost:{proxied}") as machine,
    ):
        await until(lambda: world.says(machine, "1.0.0"), "runs all the same", machine)
        assert cut.ranges[0] == ""
        begin = int(cut.ranges[1].removeprefix("range: bytes=").rstrip("-"))
        assert 1_000_000 < begin < len(data)
        assert len(cut.ranges) == 2


async def test_a_changed_archive_is_refused(world: World) -> None:
    data = await world.upload("1.0.0", extra=os.urandom(500_000))
    await world.save("1.0.0")

    def spoil(seen: bytes, data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if len(seen) > 100_000 else data

    port = int(world.running.address.rpartition(":")[2])
    cut = Cut(port, spoil, times=1)
    async with (
        listening(cut.serve) as proxied,
        world.machine(app_address=f"http://localhost:{proxied}") as machine,
    ):
        await until(lambda: logged(machine, "is not the file that was published"), "refused", machine)
        assert hashlib.sha256(data).hexdigest() in machine.log()
        assert not list((world.home / "packages" / "module").glob("spoken-*"))
        await until(lambda: world.says(machine, "1.0.0"), "the second attempt is whole", machine)
