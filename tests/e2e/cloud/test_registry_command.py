"""`machine cloud modules` and `packages`, and the official SDK, against a real cloud."""

from __future__ import annotations

import hashlib
import json
import tarfile
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from command.modules.new import write
from runtime.sdk.packing import pack
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    async with cloud(tmp_path / "cloud", "--max-package", "1") as running:
        user = Terminal(running, tmp_path / "home")
        await user("login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1])
        yield user


async def get(url: str, *headers: tuple[str, str]) -> tuple[int, bytes]:
    def ask() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers))) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    return await trio.to_thread.run_sync(ask)


async def test_a_new_module_is_created_tested_and_uploaded(terminal: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "arm"
    write(folder, "rover-arm", "acme")
    assert "begin with acme:" in await terminal("modules", "namespace", "acme")
    said = await terminal("modules", "upload", str(folder), "--version", "1.0.0", status=1)
    assert "machine cloud modules create rover-arm" in said
    assert await terminal("modules", "create", "rover-arm") == "acme:rover-arm\n"
    said = await terminal("modules", "upload", str(folder), "--version", "1.0.0")
    assert "acme:rover-arm 1.0.0 for linux/any was uploaded" in said
    said = await terminal("modules", "upload", str(folder), "--version", "1.0.0", status=1)
    assert "exists already and cannot be replaced" in said
    archive = tmp_path / "arm.tar.gz"
    pack(folder, archive)
    assert await terminal("modules", "upload", str(archive), "--version", "1.1.0", "--quiet") == ""
    await several_platforms(terminal, folder)
    (listed,) = json.loads(await terminal("modules", "ls", "--json"))
    assert listed["module_id"] == "acme:rover-arm"
    assert listed["entrypoint"] == "run.sh"
    assert listed["models"][0]["model"].startswith("acme:rover-arm:")
    content = json.loads(await terminal("modules", "versions", "acme:rover-arm", "--json"))
    assert [item["version"] for item in content] == ["1.1.0", "1.0.0"]
    said = await terminal("modules", "deprecate", "acme:rover-arm", "--version", "1.0.0", "--message", "it shakes")
    assert said == "acme:rover-arm 1.0.0 is deprecated\n"
    assert await terminal("modules", "deprecate", "acme:rover-arm", "--quiet") == ""
    listed = await terminal("modules", "ls")
    assert "1.1.0" in listed
    assert listed.endswith("deprecated\n")
    await terminal("modules", "undeprecate", "acme:rover-arm")
    newest, oldest = (await terminal("modules", "versions", "acme:rover-arm")).splitlines()[1:]
    assert "linux/any" in newest
    assert "deprecated" not in newest
    assert oldest.endswith("deprecated: it shakes")
    await terminal("modules", "delete", "acme:rover-arm", "--version", "1.1.0", "--yes")
    assert "1.1.0" not in await terminal("modules", "versions", "acme:rover-arm")
    await terminal("modules", "delete", "acme:rover-arm", "--yes")
    assert json.loads(await terminal("modules", "ls", "--json")) == []


async def several_platforms(terminal: Terminal, folder: Path) -> None:
    meta = folder / "meta.json"
    before = meta.read_text()
    meta.write_text(json.dumps({**json.loads(before), "build": {"arch": ["linux/amd64", "linux/arm64"]}}))
    (folder / "native.so").write_bytes(b"\x7fELF\x02\x01")
    said = await terminal("modules", "upload", str(folder), "--version", "0.9.0", status=2)
    assert "native.so contains native code for one platform" in said
    (folder / "native.so").unlink()
    said = await terminal("modules", "upload", str(folder), "--version", "0.9.0")
    assert "0.9.0 for linux/amd64 was uploaded" in said
    assert "0.9.0 for linux/arm64 was uploaded" in said
    await terminal("modules", "delete", "acme:rover-arm", "--version", "0.9.0", "--yes")
    meta.write_text(before)


async def test_an_invalid_module_is_refused_before_the_upload(terminal: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "arm"
    write(folder, "rover-arm", "acme")
    archive = tmp_path / "arm.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "meta.json", "meta.json")
    said = await terminal("modules", "upload", str(archive), "--version", "1.0.0", status=1)
    assert "does not contain its entrypoint 'run.sh'" in said
    (folder / "run.sh").chmod(0o644)
    said = await terminal("modules", "upload", str(folder), "--version", "1.0.0", status=1)
    assert "chmod +x" in said


async def test_packages_and_their_links(terminal: Terminal, tmp_path: Path) -> None:
    file, data = tmp_path / "net.tar.gz", bytes(range(256)) * 2000
    file.write_bytes(data)
    said = await terminal("packages", "upload", "net", str(file), "--version", "2026-01")
    organization = terminal.running.facts["organization"]
    assert said == f"{organization}/net 2026-01 was uploaded\n"
    assert "ml_model" in await terminal("packages", "ls", "--type", "ml_model")
    assert "net" not in await terminal("packages", "ls", "--type", "slam_map")
    said = await terminal("packages", "link", f"{organization}/net", "latest")
    url, digest = said.splitlines()[0], said.splitlines()[1].split()[1]
    assert digest == hashlib.sha256(data).hexdigest()
    assert await get(url) == (200, data)
    assert await get(url, ("Range", "bytes=300-")) == (206, data[300:])
    assert await get(url, ("Range", "bytes=10-19")) == (206, data[10:20])
    assert await get(url, ("Range", "bytes=-5")) == (206, data[-5:])
    assert await get(url, ("Range", "bytes=300-"), ("If-Range", '"other"')) == (200, data)
    assert (await get(url, ("Range", f"bytes={len(data)}-")))[0] == 416
    assert (await get(url.partition("?")[0]))[0] == 401
    assert (await get(url[:-1] + ("0" if url[-1] != "0" else "1")))[0] == 403
    other = url.replace("/packages/", "/packages/x")
    assert (await get(other))[0] == 403
    file.write_bytes(data * 3)
    said = await terminal("packages", "upload", "net", str(file), "--version", "2026-02", status=1)
    assert "larger than 1 MiB" in said
    await terminal("packages", "delete", f"{organization}/net", "2026-01", "--yes")
    assert (await get(url))[0] == 404
