"""The registry: items, versions, uploads, and permission to read them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cloud.blobs import sizes
from cloud.domain.organizations.first import create_owner
from cloud.domain.registry.resolution import with_sources
from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.services.common.base import UploadLimits
from cloud.values.author import PART
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import days_later

PACKAGES = "viam.app.packages.v1.PackageService"
AGENT = "viam.app.agent.v1.AgentDeviceService"
ARCHIVE = b"\x1f\x8b" + b"an archive" * 100
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def pieces(data: bytes, size: int = 100) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def upload(client: ApiClient, module: str, version: str, data: bytes = ARCHIVE, **fields: Any) -> str:
    async with aclosing(pieces(data)) as sent:  # a refusal leaves some pieces unsent
        return await client.call(
            APP, "", "upload_module_file", module_id=module, version=version, pieces=sent, **fields
        )


@pytest.fixture
async def module(cloud: MemoryCloud) -> str:
    organization = cloud.first.organization
    await cloud.app("update_organization", organization_id=organization, public_namespace="acme")
    return (await cloud.app("create_module", organization_id=organization, name="smooth"))["module_id"]


@pytest.fixture
async def other(cloud: MemoryCloud) -> ApiClient:
    second = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", NOW))
    return cloud.client(second.id)


async def refused(kind: ErrorKind, call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


async def blobs(cloud: MemoryCloud) -> int:
    return len(await sizes(cloud.cloud.blobs))


async def test_a_module_with_its_versions(cloud: MemoryCloud, module: str) -> None:
    assert module == "acme:smooth"
    model = {"api": "rdk:component:sensor", "model": "acme:smooth:mean", "description": "a mean"}
    url = await cloud.app(
        "update_module", module_id=module, visibility="VISIBILITY_PRIVATE", url="", description="smooths",
        models=[model], entrypoint="run.sh",
    )  # fmt: skip
    assert url.endswith("/modules/acme:smooth")
    await upload(cloud.client(), module, "1.0.0", platform="linux/amd64")
    await upload(cloud.client(), module, "1.0.0", platform="linux/arm64", platform_tags=["pi:5"])
    await upload(cloud.client(), module, "1.10.0", platform="any")
    await upload(cloud.client(), module, "1.9.0")
    answer = await cloud.app("get_module", module_id=module)
    assert (answer["description"], answer["entrypoint"], answer["public_namespace"]) == ("smooths", "run.sh", "acme")
    assert [version["version"] for version in answer["versions"]] == ["1.10.0", "1.9.0", "1.0.0"]
    files = answer["versions"][2]["files"]
    assert [file["platform"] for file in files] == ["linux/amd64", "linux/arm64"]
    assert answer["versions"][2]["models"][0]["model"] == "acme:smooth:mean"
    assert [element["module_id"] for element in await cloud.app("list_modules")] == [module]
    item = await cloud.app("get_registry_item", item_id=module)
    assert item["type"] == "MODULE"
    assert len(item["module_metadata"]["versions"]) == 3


async def test_a_version_is_never_overwritten(cloud: MemoryCloud, module: str) -> None:
    await upload(cloud.client(), module, "1.0.0", platform="linux/amd64")
    said = await refused(ErrorKind.EXISTS, upload(cloud.client(), module, "1.0.0", platform="linux/x86_64"))
    assert "1.0.0" in said
    assert "linux/amd64" in said
    assert await blobs(cloud) == 1


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"", ErrorKind.INVALID), (b"\x1f", ErrorKind.INVALID), (b"PK\x03\x04", ErrorKind.INVALID),
     (ARCHIVE * 3, ErrorKind.EXHAUSTED)],
)  # fmt: skip
async def test_refused_uploads_leave_no_files(cloud: MemoryCloud, module: str, data: bytes, kind: ErrorKind) -> None:
    small = MemoryCloud(replace(cloud.cloud, limits=UploadLimits(package=2000)), cloud.first)
    await refused(kind, upload(small.client(), module, "1.0.0", data))
    assert await blobs(cloud) == 0
    assert (await cloud.app("get_module", module_id=module))["versions"] == []


async def test_concurrent_uploads_of_one_version(cloud: MemoryCloud, module: str) -> None:
    """The second upload begins before the first has ended: one of them wins, the other leaves no file."""

    async def slow() -> AsyncIterator[bytes]:
        yield ARCHIVE[:100]
        await upload(cloud.client(), module, "1.0.0")
        yield ARCHIVE[100:]

    call = cloud.client().call(APP, "", "upload_module_file", module_id=module, version="1.0.0", pieces=slow())
    await refused(ErrorKind.EXISTS, call)
    assert await blobs(cloud) == 1


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 61, "a:b", "a/b"])
async def test_invalid_names_are_refused(cloud: MemoryCloud, name: str) -> None:
    await refused(ErrorKind.INVALID, cloud.app("create_module", organization_id=cloud.first.organization, name=name))


async def test_a_name_identifies_one_item(cloud: MemoryCloud, module: str) -> None:
    organization = cloud.first.organization
    await refused(ErrorKind.EXISTS, cloud.app("create_module", organization_id=organization, name="smooth"))
    await cloud.app("create_registry_item", organization_id=organization, name="net", type="PACKAGE_TYPE_ML_MODEL")
    await refused(ErrorKind.EXISTS, cloud.app("rename_registry_item", item_id="acme:net", new_name="smooth"))
    await cloud.app("rename_registry_item", item_id="acme:net", new_name="network")
    await refused(ErrorKind.NOT_FOUND, cloud.app("get_registry_item", item_id="acme:net"))
    assert (await cloud.app("get_registry_item", item_id="acme:network"))["name"] == "network"


async def test_a_public_item_needs_a_namespace(cloud: MemoryCloud) -> None:
    created = await cloud.app("create_module", organization_id=cloud.first.organization, name="open")
    assert created["module_id"] == f"{cloud.first.organization}:open"
    change = {"item_id": created["module_id"], "description": "", "visibility": "VISIBILITY_PUBLIC"}
    said = await refused(
        ErrorKind.PRECONDITION, cloud.app("update_registry_item", type="PACKAGE_TYPE_MODULE", **change)
    )
    assert "namespace" in said


async def test_private_items_are_not_found_by_other_organizations(
    cloud: MemoryCloud, module: str, other: ApiClient
) -> None:
    await upload(cloud.client(), module, "1.0.0")
    calls = [
        ("get_module", {"module_id": module}),
        ("get_registry_item", {"item_id": module}),
        ("update_module", {"module_id": module, "description": "mine", "models": []}),
        ("delete_registry_item", {"item_id": module}),
        ("rename_registry_item", {"item_id": module, "new_name": "mine"}),
    ]  # fmt: skip
    for method, arguments in calls:
        private_answer = await refused(ErrorKind.NOT_FOUND, other.call(APP, "", method, **arguments))
        absent_answer = await refused(
            ErrorKind.NOT_FOUND,
            other.call(APP, "", method, **{**arguments, next(iter(arguments)): "acme:absent"}),
        )
        assert private_answer == absent_answer.replace("absent", "smooth"), method
    await refused(ErrorKind.NOT_FOUND, upload(other, module, "2.0.0"))
    await refused(ErrorKind.NOT_FOUND, other.call(PACKAGES, "", "get_package", id=module, version="latest"))
    assert await other.call(APP, "", "list_modules") == []
    await refused(ErrorKind.NOT_FOUND, other.call(APP, "", "list_modules", organization_id=cloud.first.organization))
    assert await other.call(APP, "", "list_registry_items") == []


async def test_public_items_are_readable_by_all_and_changed_by_their_owner(
    cloud: MemoryCloud, module: str, other: ApiClient
) -> None:
    await cloud.app(
        "update_registry_item", item_id=module, type="PACKAGE_TYPE_MODULE", description="for all",
        visibility="VISIBILITY_PUBLIC",
    )  # fmt: skip
    assert (await other.call(APP, "", "get_module", module_id=module))["description"] == "for all"
    assert [item["item_id"] for item in await other.call(APP, "", "list_registry_items")] == [module]
    assert await other.call(APP, "", "list_registry_items", search_term="nothing such") == []
    await refused(ErrorKind.NOT_FOUND, other.call(APP, "", "delete_registry_item", item_id=module))
    await refused(ErrorKind.NOT_FOUND, upload(other, module, "2.0.0"))


async def test_deleting_removes_the_files(cloud: MemoryCloud, module: str) -> None:
    await upload(cloud.client(), module, "1.0.0")
    await upload(cloud.client(), module, "1.1.0")
    await cloud.client().call(PACKAGES, "", "delete_package", id=module, version="1.0.0", type="PACKAGE_TYPE_MODULE")
    await days_later(cloud)
    assert await blobs(cloud) == 1
    assert [version["version"] for version in (await cloud.app("get_module", module_id=module))["versions"]] == [
        "1.1.0"
    ]
    await refused(
        ErrorKind.NOT_FOUND, cloud.client().call(PACKAGES, "", "delete_package", id=module, version="1.0.0", type=3)
    )
    await cloud.app("delete_registry_item", item_id=module)
    assert await blobs(cloud) == 1
    await days_later(cloud)
    assert await blobs(cloud) == 0


async def package(cloud: MemoryCloud, name: str, version: str, data: bytes, kind: str, **fields: Any) -> dict[str, Any]:
    return await cloud.client().call(
        PACKAGES, "", "create_package", organization_id=cloud.first.organization, name=name, version=version,
        type=f"PACKAGE_TYPE_{kind}", pieces=pieces(data), **fields,
    )  # fmt: skip


async def test_packages(cloud: MemoryCloud, part: str) -> None:
    listed = [{"name": "model.tflite", "size": 4, "is_directory": False}]
    created = await package(cloud, "net", "2026-01", b"data", "ML_MODEL", files=listed, metadata={"labels": 3})
    assert created == {"id": f"{cloud.first.organization}/net", "version": "2026-01"}
    await package(cloud, "net", "2026-02", b"newer", "ML_MODEL")
    answer = await cloud.client(part, PART).call(PACKAGES, "", "get_package", id=created["id"], version="latest")
    assert answer["info"]["version"] == "2026-02"
    assert answer["checksum"] == hashlib.sha256(b"newer").hexdigest()
    assert "signature=" in answer["url"]
    old = (await cloud.client().call(PACKAGES, "", "list_packages", organization_id=cloud.first.organization))[0]
    assert (old["info"]["metadata"], old["info"]["files"][0]["name"], old["url"]) == ({"labels": 3}, "model.tflite", "")
    await refused(ErrorKind.PRECONDITION, package(cloud, "net", "2026-03", b"x", "ARCHIVE"))
    await refused(ErrorKind.EXISTS, package(cloud, "net", "2026-01", b"x", "ML_MODEL"))
    said = await refused(
        ErrorKind.NOT_FOUND, cloud.client().call(PACKAGES, "", "get_package", id=created["id"], version="3")
    )
    assert "2026-02" in said


async def sources(cloud: MemoryCloud, organization: str, platform: str, *entries: Any, **more: Any) -> list[Any]:
    document = {"modules": list(entries), **more}
    result = await cloud.cloud.store.read(lambda sql: with_sources(sql, document, organization, platform))
    return [item.get("source") if isinstance(item, dict) else item for item in result["modules"]]


def entry(version: str, module: str = "acme:smooth", **more: Any) -> dict[str, Any]:
    return {"name": "m", "type": "registry", "module_id": module, "version": version, **more}


async def test_a_machine_gets_its_packages(cloud: MemoryCloud, module: str, other: ApiClient) -> None:
    mine = cloud.first.organization
    for version, platform in (("1.0.0", "any"), ("1.1.0", "linux/arm64"), ("1.2.0-rc.1", "any")):
        await upload(cloud.client(), module, version, platform=platform)
    got = await sources(cloud, mine, "linux/x86_64", entry("latest"), entry("1.1.0"), entry("latest-with-prerelease"))
    assert (got[0]["version"], got[2]["version"]) == ("1.0.0", "1.2.0-rc.1")
    assert got[0]["sha256"] == hashlib.sha256(ARCHIVE).hexdigest()
    assert got[0]["size"] == len(ARCHIVE)
    assert got[0]["url"].startswith("/packages/")
    assert got[0]["package"] == module
    assert "no version '1.1.0'" in got[1]["error"]
    assert "1.0.0" in got[1]["error"]
    assert (await sources(cloud, mine, "linux/aarch64", entry("1")))[0]["version"] == "1.1.0"
    forged = entry("latest", source={"url": "http://elsewhere"})
    assert (await sources(cloud, mine, "", forged))[0]["version"] == "1.0.0"
    assert await sources(cloud, mine, "", {"name": "x", "type": "local"}, 5, None) == [None, 5, None]
    absent, broken = await sources(cloud, mine, "", entry("1", "acme:absent"), entry("1", module=None))  # type: ignore[arg-type]
    assert "there is no registry item 'acme:absent'" in absent["error"]
    assert "error" in broken


async def test_a_package_of_another_type_is_not_used(cloud: MemoryCloud, module: str) -> None:
    await package(cloud, "net", "1.0.0", b"x", "ML_MODEL")
    (source,) = await sources(cloud, cloud.first.organization, "", entry("latest", "acme:net"))
    assert source == {"error": "acme:net has the type ml_model, not module"}


async def test_a_machine_of_another_organization_gets_nothing_private(
    cloud: MemoryCloud, module: str, other: ApiClient
) -> None:
    await upload(cloud.client(), module, "1.0.0")
    theirs = (await other.call(APP, "", "list_organizations"))[0]["id"]
    refusal, absent = await sources(cloud, theirs, "", entry("latest"), entry("latest", "acme:absent"))
    assert refusal["error"] == absent["error"].replace("absent", "smooth")
    await cloud.app("update_registry_item", item_id=module, type=3, description="", visibility="VISIBILITY_PUBLIC")
    assert (await sources(cloud, theirs, "", entry("latest")))[0]["version"] == "1.0.0"


async def test_an_agent_gets_its_packages(cloud: MemoryCloud, part: str) -> None:
    document = {
        "agent": {
            "version_control": {"agent": "stable", "machine-server": "http://example.test/server"},
            "advanced_settings": {"debug": True, "maintenance_windows": [{"start": "22:00", "end": "04:00"}]},
            "additional_networks": {"home": {"type": "wifi"}},
            "network_configuration": 5,
        }
    }
    await cloud.app("update_robot_part", id=part, name="", robot_config=document)
    agent = cloud.client(part, PART)
    asked = {
        "id": part,
        "host_info": {"platform": "linux/arm64", "distro": "debian:12", "tags": ["rpi"]},
        "version_info": {"agent_running": "1.0.0", "viam_server_running": "0.5.0"},
    }
    answer = await agent.call(AGENT, "", "device_agent_config", **asked)
    assert answer["advanced_settings"] == document["agent"]["advanced_settings"]
    assert answer["additional_networks"]["home"] == {"type": "wifi"}
    assert answer["network_configuration"] == {}
    assert answer["system_configuration"] == {}
    assert answer["check_interval"].total_seconds() >= 5
    assert answer["viam_server_update_info"]["url"] == "http://example.test/server"
    assert answer["viam_server_update_info"]["version"] == "customURL"
    assert not answer.get("agent_update_info")
    for version in ("1.0.0", "1.1.0", "1.2.0-dev.1"):
        await package(cloud, "machine-agent", version, b"elf" + version.encode(), "ARCHIVE", platform="linux/arm64")
    answer = (await agent.call(AGENT, "", "device_agent_config", **asked))["agent_update_info"]
    assert (answer["version"], answer["filename"]) == ("1.1.0", "machine-agent-v1.1.0-arm64")
    assert answer["sha256"] == hashlib.sha256(b"elf1.1.0").digest()
    assert answer["format"] == "EXECUTABLE"
    kept = await cloud.cloud.store.read(lambda sql: sql.row("SELECT reported, seen FROM parts WHERE id = ?", part))
    assert kept is not None
    assert '"agent_running": "1.0.0"' in kept["reported"]
    assert kept["seen"] is not None
    await refused(ErrorKind.NOT_FOUND, agent.call(AGENT, "", "device_agent_config", id="another"))


async def test_a_polling_machine_gets_versions_or_the_reason_why_there_is_none(
    cloud: MemoryCloud, part: str, module: str
) -> None:
    await upload(cloud.client(), module, "1.0.0", platform="linux/arm64")
    document = {
        "modules": [entry("latest"), {"name": "own", "executable_path": "/bin/true"}],
        "packages": [{"name": "net", "package": "acme/absent", "version": "latest"}],
    }
    await cloud.app("update_robot_part", id=part, name="", robot_config=document)
    info = {"host": "h", "os": "linux", "ips": [], "version": "1", "git_revision": "", "platform": "linux/arm64"}
    answer = await cloud.client(part, PART).call(ROBOT, "", "config", id=part, agent_info=info)
    net, smooth = answer["packages"]
    assert (smooth["name"], smooth["package"], smooth["version"]) == ("m", "acme/smooth", "1.0.0")
    assert smooth["type"] == "module"
    assert "there is no registry item" in net["status"]["error"]
    assert [item["path"] for item in answer["modules"]] == ["${packages.module.m}", "/bin/true"]
    result = await cloud.client(part, PART).call(PACKAGES, "", "get_package", id="acme/smooth", version="1.0.0")
    assert result["info"]["platform"] == "linux/arm64"


async def test_an_organization_with_modules_is_not_deleted(cloud: MemoryCloud, module: str) -> None:
    organization = cloud.first.organization
    await cloud.app("delete_location", location_id=cloud.first.location)
    said = await refused(ErrorKind.PRECONDITION, cloud.app("delete_organization", organization_id=organization))
    assert "modules or packages" in said
    await cloud.app("delete_registry_item", item_id=module)
    await cloud.app("delete_organization", organization_id=organization)
