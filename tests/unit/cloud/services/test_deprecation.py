"""Deprecated registry items and versions: reported, left out of lists, and without effect on machines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.registry.deprecation import MAX_TEXT
from cloud.editing.findings import findings
from cloud.server.memory import APP, MemoryCloud
from cloud.services.app import AppService
from cloud.services.configurations.editing import Editor
from cloud.values.author import KEY, Author
from cloud.values.times import now
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError

PACKAGES = "viam.app.packages.v1.PackageService"


async def pieces() -> AsyncIterator[bytes]:
    yield b"\x1f\x8b" + b"an archive"


async def upload(client: ApiClient, module: str, version: str, platform: str = "any") -> None:
    await client.call(
        APP, "", "upload_module_file", module_id=module, version=version, platform=platform, pieces=pieces()
    )


@pytest.fixture
async def module(cloud: MemoryCloud) -> str:
    await cloud.app("update_organization", organization_id=cloud.first.organization, public_namespace="acme")
    created = (await cloud.app("create_module", organization_id=cloud.first.organization, name="smooth"))["module_id"]
    for version in ("1.0.0", "1.1.0"):
        await upload(cloud.client(), created, version)
    await cloud.app("update_module", module_id=created, visibility="VISIBILITY_PUBLIC", description="smooths")
    return str(created)


async def status(cloud: MemoryCloud, module: str) -> tuple[Any, dict[str, Any]]:
    """Return the deprecation status of a module, and of each of its versions."""
    answer = await cloud.app("get_module", module_id=module)
    item = await cloud.app("get_registry_item", item_id=module)
    assert item.get("deprecated_status") == answer.get("deprecated_status")
    assert [version.get("deprecated_status") for version in item["module_metadata"]["versions"]] == [
        element.get("deprecated_status") for element in answer["versions"]
    ]
    versions = {result["version"]: result.get("deprecated_status") for result in answer["versions"]}
    return answer.get("deprecated_status"), versions


async def refused(kind: ErrorKind, call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


async def test_a_deprecated_item(cloud: MemoryCloud, module: str) -> None:
    other = cloud.client((await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", now()))).id)
    assert [item["item_id"] for item in await other.call(APP, "", "list_registry_items")] == [module]
    await cloud.app("deprecate_registry_item", item_id=module, message="use smoother")
    said, versions = await status(cloud, module)
    assert said["message"] == "use smoother"
    assert said["deprecated_at"] is not None
    assert versions == {"1.0.0": None, "1.1.0": None}
    assert (await other.call(APP, "", "get_module", module_id=module))["deprecated_status"] == said
    for client in (cloud.client(), other):
        assert await client.call(APP, "", "list_registry_items") == []
    owned = {"show_owned_deprecated": True}
    assert [element["item_id"] for element in await cloud.app("list_registry_items", **owned)] == [module]
    assert await other.call(APP, "", "list_registry_items", **owned) == []
    await upload(cloud.client(), module, "1.2.0")
    assert (await status(cloud, module))[1] == {"1.2.0": None, "1.1.0": None, "1.0.0": None}
    got = await other.call(PACKAGES, "", "get_package", id=module, version="latest")
    assert got["info"]["version"] == "1.2.0", "machines that use it keep it"
    await cloud.app("undeprecate_registry_item", item_id=module)
    assert (await status(cloud, module))[0] is None
    assert [result["item_id"] for result in await other.call(APP, "", "list_registry_items")] == [module]


async def test_a_deprecated_version(cloud: MemoryCloud, module: str) -> None:
    version = {"item_id": module, "version": "1.1.0"}
    await cloud.app("deprecate_registry_item_version", **version, message="it shakes")
    await upload(cloud.client(), module, "1.1.0", "linux/arm64")
    said, versions = await status(cloud, module)
    assert said is None
    assert (versions["1.1.0"]["message"], versions["1.0.0"]) == ("it shakes", None)
    await cloud.app("undeprecate_registry_item_version", **version)
    assert (await status(cloud, module))[1] == {"1.1.0": None, "1.0.0": None}
    for method in ("deprecate_registry_item_version", "undeprecate_registry_item_version"):
        assert "9.9.9" in await refused(ErrorKind.NOT_FOUND, cloud.app(method, item_id=module, version="9.9.9"))


async def test_a_deprecation_is_deleted_with_its_version(cloud: MemoryCloud, module: str) -> None:
    await cloud.app("deprecate_registry_item_version", item_id=module, version="1.1.0", message="it shakes")
    await cloud.client().call(PACKAGES, "", "delete_package", id=module, version="1.1.0")
    await upload(cloud.client(), module, "1.1.0")
    assert (await status(cloud, module))[1]["1.1.0"] is None


async def test_the_editor_warns_about_deprecated_items(cloud: MemoryCloud, module: str, part: str) -> None:
    organization = cloud.first.organization
    await cloud.client().call(
        PACKAGES, "", "create_package",
        organization_id=organization, name="net", version="v1", type="ML_MODEL", pieces=pieces(),
    )  # fmt: skip
    asks = Editor(cloud.cloud, Author(KEY, cloud.first.id))
    assert (await asks.context(part)).advice == {}
    await cloud.app("deprecate_registry_item", item_id=f"{organization}/net", message="use a net that sees")
    await cloud.app("deprecate_registry_item_version", item_id=module, version="1.1.0")
    await upload(cloud.client(), module, "1.1.0", "linux/arm64")
    result = await asks.context(part)
    assert result.advice == {
        (f"{organization}:net", ""): "use a net that sees",
        ("acme:net", ""): "use a net that sees",
        (f"{organization}:smooth", "1.1.0"): "",
        (module, "1.1.0"): "",
    }
    entry = {"name": "smooth", "type": "registry", "module_id": module}
    document = {
        "modules": [
            {**entry, "version": "1.1.0"},
            {**entry, "name": "other", "version": "latest"},
            {"name": "own", "type": "local", "executable_path": "/bin/x", "module_id": module, "version": "1.1.0"},
        ],
        "packages": [{"name": "net", "package": f"{organization}/net"}],
    }
    assert [(finding.severity, finding.path, finding.text) for finding in findings(json.dumps(document), result)] == [
        ("warning", "modules.0.version", f"{module} 1.1.0 is deprecated"),
        ("warning", "packages.0.package", f"{organization}/net is deprecated: use a net that sees"),
    ]
    await cloud.app("undeprecate_registry_item_version", item_id=module, version="1.1.0")
    assert len((await asks.context(part)).advice) == 2
    fragment = await cloud.app("create_fragment", name="all", config={}, organization_id=organization)
    assert len((await asks.fragment_editing(fragment["id"])).context.advice) == 2


async def test_deprecations_of_private_items_are_not_disclosed(cloud: MemoryCloud, module: str) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    robot = await cloud.client(other.id).call(APP, "", "new_robot", name="theirs", location=other.location)
    part = (await cloud.client(other.id).call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    asks = Editor(cloud.cloud, Author(KEY, other.id))
    await cloud.app("deprecate_registry_item", item_id=module, message="use smoother")
    assert (await asks.context(part)).advice[module, ""] == "use smoother"
    assert await AppService(cloud.cloud, Author(KEY, other.id)).list_deprecated_versions(module) == {}
    await cloud.app("update_module", module_id=module, visibility="VISIBILITY_PRIVATE", description="smooths")
    assert (await asks.context(part)).advice == {}
    service = AppService(cloud.cloud, Author(KEY, other.id))
    await refused(ErrorKind.NOT_FOUND, service.list_deprecated_versions(module))


async def test_only_owners_deprecate_and_reasons_are_limited(cloud: MemoryCloud, module: str) -> None:
    other = cloud.client((await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", now()))).id)
    for method in ("deprecate_registry_item", "undeprecate_registry_item"):
        await refused(ErrorKind.NOT_FOUND, other.call(APP, "", method, item_id=module))
    await refused(ErrorKind.INVALID, cloud.app("deprecate_registry_item", item_id=module, message="x" * (MAX_TEXT + 1)))
    assert (await status(cloud, module))[0] is None
