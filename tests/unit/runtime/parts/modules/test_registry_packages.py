"""Packages on a machine: downloads, refusals, and the files that stay on the disk."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.home_folder import VARIABLE as HOME_VARIABLE
from engine.planning.node_names import package_node
from engine.views.status import DownloadStatus
from runtime.parts.cloud.live import snapshot
from runtime.parts.packages.part import Packages
from runtime.programs import store
from runtime.programs.configured import configured_packages
from runtime.programs.store import Installed
from runtime.server.memory import MemoryMachine, open_machine
from schema.document.machine import decode_document
from schema.errors import MachineError
from schema.substitution import fill_placeholders
from support.worker import Worker
from tests.loopback import listening
from tests.unit.runtime.parts.modules.web import LIMIT, Web, whole
from tests.unit.support.hostile import BAD, pack

# ---- the disk


def packed(**files: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def put(root: Path, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    path = store.part_of(root, sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return sha256


def unpacked(root: Path, key: tuple[str, str], sha256: str) -> Path:
    """Unpack a download, in a worker and a child process, so by the real clock."""

    async def main() -> Path:
        worker = Worker("packages")
        async with worker.opened():
            return await store.unpacked(root, key, sha256, worker)

    return trio.run(main)


def test_current_packages_are_remembered_and_others_removed(tmp_path: Path) -> None:
    model, module = ("ml_model", "net"), ("module", "arm")
    old, new = put(tmp_path, packed(a=b"1")), put(tmp_path, packed(a=b"2"))
    for sha256 in (old, new):
        folder = unpacked(tmp_path, model, sha256)
        assert (folder / "a").is_file()
        store.activate(tmp_path, model, Installed("org/net", sha256[:3], sha256))
    store.activate(tmp_path, ("ml_model", "gone"), Installed("org/gone", "1", "0" * 64))
    (tmp_path / "ml_model" / "broken.json").write_text("{")
    (tmp_path / "ml_model" / "x-0123456789abcdef.unpacking").mkdir()
    assert store.records(tmp_path) == {model: Installed("org/net", new[:3], new)}
    program = put(tmp_path, packed(**{"meta.json": b'{"entrypoint": "run.sh"}', "run.sh": b"#!/bin/sh\n"}))
    assert (unpacked(tmp_path, module, program) / "run.sh").is_file()
    gone = store.tidy(tmp_path, {(model, new), (module, program)}, {program})
    assert f"net-{old[:16]}" in gone
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")}
    assert left == {f"ml_model/net-{new[:16]}", "ml_model/net.json", f"module/arm-{program[:16]}", f"part/{program}"}


def test_an_archive_that_leads_out_leaves_nothing(tmp_path: Path) -> None:
    sha256 = put(tmp_path, packed(**{"../evil": b"x"}))
    with pytest.raises(MachineError, match="leads out of the folder"):
        unpacked(tmp_path, ("ml_model", "net"), sha256)
    assert not list((tmp_path / "ml_model").iterdir())
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("case", BAD)
def test_bad_packages_are_refused_and_leave_nothing(tmp_path: Path, case: str) -> None:
    sha256 = put(tmp_path, pack(tmp_path / "bad", BAD[case]()).read_bytes())
    with pytest.raises(MachineError, match="is not unpacked"):
        unpacked(tmp_path, ("ml_model", "net"), sha256)
    assert list((tmp_path / "ml_model").iterdir()) == []


# ---- a machine


def document(**packages: tuple[str, bytes]) -> dict[str, Any]:
    """Return a document with packages, each given by its URL and its content."""
    return {
        "packages": [
            {
                "name": name,
                "package": "org/net",
                "source": {
                    "version": "1", "url": url, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data),
                },
            }
            for name, (url, data) in packages.items()
        ],
        "components": [
            {
                "name": "s", "api": "rdk:component:sensor", "model": "fake",
                "attributes": {"at": "${packages.net}/weights"},
            }
        ],
    }  # fmt: skip


@asynccontextmanager
async def machine(home: Path) -> AsyncIterator[MemoryMachine]:
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        environment = {HOME_VARIABLE: str(home)}
        around = replace(memory.configuration.context, environment=environment)
        memory.machine.parts.present["packages"] = Packages(around)
        yield memory


def attribute(memory: MemoryMachine) -> str:
    expected = memory.machine.roster.planned.get("rdk:component:sensor/s")
    return getattr(expected, "version", "")  # a digest of the attributes


async def until(memory: MemoryMachine, what: Callable[[], bool]) -> None:
    with trio.fail_after(LIMIT):
        async for _ in memory.machine.graph.changes():
            if what():
                return


def reason(memory: MemoryMachine, name: str = "net") -> str:
    node = memory.machine.graph.snapshot().nodes.get(package_node("ml_model", name))
    return node.reason if node is not None else ""


async def test_a_placeholder_is_filled_when_its_package_is_there(tmp_path: Path) -> None:
    data = packed(weights=b"1")
    async with Web(lambda headers: whole(headers, data)).open() as web, machine(tmp_path) as memory:
        memory.write(document(net=(web.url, data)))
        await until(memory, lambda: bool(attribute(memory)))
        before = attribute(memory)
        await until(memory, lambda: attribute(memory) not in ("", before))
        (folder,) = (tmp_path / "packages" / "ml_model").glob("net-*")
        assert (folder / "weights").read_bytes() == b"1"
        record = json.loads((tmp_path / "packages" / "ml_model" / "net.json").read_text())
        assert record["named"] == "org/net"


async def test_how_far_a_download_is_stands_in_the_status_until_it_is_there(tmp_path: Path) -> None:
    data, rest = packed(weights=b"1"), trio.Event()
    begin = len(data) // 2

    async def slow(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(f"HTTP/1.1 200 OK\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data[:begin])
        await rest.wait()
        await stream.send_all(data[begin:])
        await stream.aclose()

    async with machine(tmp_path) as memory, listening(slow) as port:
        memory.write(document(net=(f"http://127.0.0.1:{port}/package", data)))
        with trio.fail_after(LIMIT):
            while [download.done for download in memory.machine.status().downloads] != [begin]:
                await trio.lowlevel.checkpoint()
        assert memory.machine.status().downloads == (DownloadStatus("org/net", "1", begin, len(data)),)
        reported = snapshot(memory.machine.status(), {})
        assert reported["downloads"] == [{"name": "org/net", "version": "1", "done": begin, "size": len(data)}]
        rest.set()
        await until(memory, lambda: not reason(memory) and (tmp_path / "packages" / "ml_model" / "net.json").exists())
        assert memory.machine.status().downloads == ()


async def test_a_package_that_cannot_be_had_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    data = packed(weights=b"1")
    async with Web(lambda headers: whole(headers, data)).open() as web, machine(tmp_path) as memory:
        memory.write(document(net=(web.url, data)))
        record = tmp_path / "packages" / "ml_model" / "net.json"
        await until(memory, record.exists)
        kept = record.read_text()
        await until(memory, lambda: not reason(memory))
        filled = attribute(memory)
        memory.write(document(net=(web.url, b"something else")))
        await until(memory, lambda: "bytes, not 14" in reason(memory))
        bad = document(net=(web.url, data))
        bad["packages"][0]["source"] = {"error": "there is no version 7"}
        memory.write(bad)
        await until(memory, lambda: "there is no version 7" in reason(memory))
        assert record.read_text() == kept
        assert attribute(memory) == filled


async def test_another_package_under_the_same_name_does_not_count_as_the_one_before(tmp_path: Path) -> None:
    data = packed(weights=b"1")
    async with Web(lambda headers: whole(headers, data)).open() as web, machine(tmp_path) as memory:
        memory.write(document(net=(web.url, data)))
        await until(memory, lambda: bool(attribute(memory)))
        unfilled = attribute(memory)
        await until(memory, lambda: attribute(memory) not in ("", unfilled))
        other = document(net=(web.url, data))
        other["packages"][0] |= {"package": "org/another", "source": {"error": "there is none"}}
        memory.write(other)
        await until(memory, lambda: "there is none" in reason(memory))
        assert attribute(memory) == unfilled


async def test_a_package_at_a_cloud_needs_a_cloud(tmp_path: Path) -> None:
    async with machine(tmp_path) as memory:
        memory.write(document(net=("/packages/1", b"x")))
        await until(memory, lambda: "this machine has not joined one" in reason(memory))
        bare = document(net=("", b"x"))
        del bare["packages"][0]["source"]
        memory.write(bare)
        await until(memory, lambda: "join the machine to a cloud" in reason(memory))


def test_packages_required_by_a_document() -> None:
    result = decode_document(
        json.dumps(
            {
                "packages": [{"name": "net", "package": "org/net", "source": {"sha256": "a" * 64}}],
                "modules": [
                    {"name": "arm", "type": "registry", "module_id": "acme:arm", "version": "1"},
                    {"name": "own", "executable_path": "/bin/true"},
                ],
            }
        ).encode()
    ).document
    assert result is not None
    expected = configured_packages(result)
    assert {key: first.path for key, first in expected.items()} == {
        ("ml_model", "net"): "packages.0", ("module", "arm"): "modules.0",
    }  # fmt: skip
    assert expected["module", "arm"].package_id == "acme:arm"


def test_missing_packages_are_distinguished_from_unconfigured_ones() -> None:
    text = {"packages": [{"name": "net", "package": "org/net"}],
        "components": [{"name": "s", "api": "rdk:component:sensor", "model": "fake",
                        "attributes": {"a": "${packages.net}", "b": "${packages.other}"}}]
    }  # fmt: skip
    result = decode_document(json.dumps(text).encode()).document
    assert result is not None
    _, warnings = fill_placeholders(result, {})
    assert "is not on this computer yet" in str(warnings[0])
    assert "add it to 'packages'" in str(warnings[1])


def test_an_invalid_digest_is_a_mistake() -> None:
    decoded = decode_document(b'{"packages": [{"name": "n", "package": "p", "source": {"sha256": "../../x"}}]}')
    assert "is not a SHA-256" in str(decoded.problems[0])
