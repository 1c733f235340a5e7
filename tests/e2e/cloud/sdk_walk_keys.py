"""A walk through the calls of AppClient of the official Python SDK for keys, roles, registry and packages."""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import Any, Final

from grpclib import Status
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.packages.v1.packages_grpc import PackageServiceStub
from viam.gen.app.v1 import app_pb2 as pb
from viam.utils import dict_to_struct

from tests.e2e.cloud.sdk_client import signed_in
from tests.e2e.cloud.sdk_seen import Seen
from tests.e2e.cloud.sdk_table import CALLS
from tests.e2e.cloud.sdk_walk_app import Place

APP: Final = "viam.app.v1.AppService"
MODULE: Final = packages_pb2.PACKAGE_TYPE_MODULE
MODEL: Final = packages_pb2.PACKAGE_TYPE_ML_MODEL
PRIVATE: Final = pb.VISIBILITY_PRIVATE


async def roles_of(app: AppClient, at: Place, key: str) -> list[tuple[str, str]]:
    authorizations = await app.list_authorizations(at.organization)
    return sorted((grant.authorization_id, grant.resource_id) for grant in authorizations if grant.identity_id == key)


async def keys(app: AppClient, seen: Seen, at: Place, address: str, robot: str) -> None:
    operator = APIKeyAuthorization("operator", "organization", at.organization)
    key, subject = await app.create_key(at.organization, [operator], "guard")
    guard = await signed_in(address, subject, key)
    seen("create_key", [listed.id for listed in await guard.app_client.list_organizations()], [at.organization])
    await seen.refused(guard.app_client.list_keys(at.organization), Status.PERMISSION_DENIED)
    listed = {entry.api_key.name: entry for entry in await app.list_keys(at.organization)}
    (role,) = listed["guard"].authorizations
    seen("list_keys", sorted(listed), ["guard", "owner"])
    assert (role.authorization_id, role.resource_id) == ("organization_operator", at.organization)
    assert listed["guard"].api_key.key == ""

    await app.add_role(at.organization, subject, "operator", "robot", robot)
    both = [("organization_operator", at.organization), ("robot_operator", robot)]
    seen("add_role", await roles_of(app, at, subject), both)
    (there,) = await app.get_robot_api_keys(robot)
    seen("get_robot_api_keys", there.api_key.id, subject)
    await app.change_role(
        at.organization, subject, "operator", "robot", robot, subject, "owner", "location", at.location
    )
    changed = sorted([both[0], ("location_owner", at.location)])
    seen("change_role", await roles_of(app, at, subject), changed)
    some = await app.list_authorizations(at.organization, [at.location])
    seen("list_authorizations", [grant.identity_id for grant in some], [subject])
    assert await guard.app_client.new_robot("temporary", at.location)
    await app.remove_role(at.organization, subject, "owner", "location", at.location)
    seen("remove_role", await roles_of(app, at, subject), both[:1])
    asked = pb.AuthorizedPermissions(
        resource_type="organization",
        resource_id=at.organization,
        permissions=["control_robot", "read_robot_logs", "configure_robot", "no_such_thing"],
    )
    (mine,), (allowed,) = await app.check_permissions([asked]), await guard.app_client.check_permissions([asked])
    assert list(allowed.permissions) == ["control_robot", "read_robot_logs"]
    await seen.refused(app.check_permissions([]), Status.INVALID_ARGUMENT)
    seen("check_permissions", list(mine.permissions), ["control_robot", "read_robot_logs", "configure_robot"])

    stub = app._app_client
    renamed = await stub.RenameKey(pb.RenameKeyRequest(id=subject, name="porter"), metadata=app._metadata)
    assert renamed.name == "porter"
    copy, copied = await app.create_key_from_existing_key_authorizations(subject)
    assert copy != key
    seen("create_key_from_existing_key_authorizations", await roles_of(app, at, copied), both[:1])
    rotated, same = await app.rotate_key(subject)
    await seen.refused(guard.app_client.list_organizations(), Status.UNAUTHENTICATED)
    guard.close()
    again = await signed_in(address, same, rotated)
    seen("rotate_key", (same, len(await again.app_client.list_organizations())), (subject, 1))
    await app.delete_key(subject)
    await app.delete_key(copied)
    await seen.refused(again.app_client.list_organizations(), Status.UNAUTHENTICATED)
    again.close()
    seen("delete_key", [entry.api_key.name for entry in await app.list_keys(at.organization)], ["owner"])
    for candidate in await app.list_robots(at.location):
        if candidate.name == "temporary":
            await app.delete_robot(candidate.id)


def archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as file:
        file.addfile(tarfile.TarInfo("run.sh"))
    return content.getvalue()


async def registry(app: AppClient, seen: Seen, at: Place) -> None:
    owner = at.organization
    await app.create_registry_item(owner, "cats", MODEL)
    await app.update_registry_item("acme:cats", MODEL, "knows cats", PRIVATE)
    item = await app.get_registry_item("acme:cats")
    seen("create_registry_item", (item.item_id, item.name, item.type), ("acme:cats", "cats", MODEL))
    seen("update_registry_item", (item.description, item.visibility), ("knows cats", PRIVATE))
    subject, url = await app.create_module(owner, "smooth")
    seen("create_module", (subject, url.endswith("/modules/acme:smooth")), ("acme:smooth", True))
    model = pb.Model(api="rdk:component:sensor", model="acme:smooth:mean")
    page = await app.update_module(subject, "https://example.com", "smooths", [model], "run.sh", public=True)
    info = pb.ModuleFileInfo(module_id=subject, version="1.0.0", platform="linux/amd64")
    seen("upload_module_file", await app.upload_module_file(info, archive()), page)
    await seen.refused(app.upload_module_file(info, archive()), Status.ALREADY_EXISTS, "1.0.0")
    module = await app.get_module(subject)
    facts = (module.description, module.url, module.visibility)
    seen("update_module", facts, ("smooths", "https://example.com", pb.VISIBILITY_PUBLIC))
    (version,) = module.versions
    (file,) = version.files
    got = (version.version, file.platform, [model.model for model in version.models], version.entrypoint)
    seen("get_module", got, ("1.0.0", "linux/amd64", ["acme:smooth:mean"], "run.sh"))
    seen("list_modules", [listed.module_id for listed in await app.list_modules(owner)], [subject])
    seen("get_registry_item", (await app.get_registry_item(subject)).type, MODULE)
    await app.deprecate_registry_item_version(subject, "1.0.0", "it shakes")
    (shaking,) = (await app.get_module(subject)).versions
    seen("deprecate_registry_item_version", shaking.deprecated_status.message, "it shakes")
    await app.undeprecate_registry_item_version(subject, "1.0.0")
    (calm,) = (await app.get_module(subject)).versions
    seen("undeprecate_registry_item_version", calm.HasField("deprecated_status"), False)
    everything: Any = ([], [], [], [])
    both = [entry.item_id for entry in await app.list_registry_items(owner, *everything)]
    assert both == ["acme:cats", subject]
    there = [pb.REGISTRY_ITEM_STATUS_PUBLISHED]
    published = await app.list_registry_items(owner, [MODULE], [], ["linux/amd64"], there, "smooths")
    seen("list_registry_items", [entry.item_id for entry in published], [subject])
    assert [entry.item_id for entry in await app.list_registry_items(owner, *everything, page_token=both[0])] == both[
        1:
    ]
    renamed = pb.RenameRegistryItemRequest(item_id="acme:cats", new_name="felines")
    assert (await app._app_client.RenameRegistryItem(renamed, metadata=app._metadata)).item.name == "felines"
    await app.deprecate_registry_item(subject, "use smoother")
    left = [entry.item_id for entry in await app.list_registry_items(owner, *everything)]
    advice = (await app.get_registry_item(subject)).deprecated_status.message
    seen("deprecate_registry_item", (left, advice), (["acme:felines"], "use smoother"))
    await app.undeprecate_registry_item(subject)
    again = [entry.item_id for entry in await app.list_registry_items(owner, *everything)]
    seen("undeprecate_registry_item", again, ["acme:felines", subject])
    await app.delete_registry_item("acme:felines")
    await app.delete_registry_item(subject)
    seen("delete_registry_item", await app.list_registry_items(owner, *everything), [])


async def packages(app: AppClient, at: Place) -> None:
    """Test packages by the stub: the SDK has no methods for them."""
    stub, headers = PackageServiceStub(app._channel), {"metadata": app._metadata}
    body = archive()
    info = packages_pb2.PackageInfo(
        organization_id=at.organization,
        name="map",
        version="2",
        type=packages_pb2.PACKAGE_TYPE_ARCHIVE,
        metadata=dict_to_struct({"made": "today"}),
    )
    async with stub.CreatePackage.open(**headers) as stream:
        await stream.send_message(packages_pb2.CreatePackageRequest(info=info))
        for start in range(0, len(body), 64):
            await stream.send_message(packages_pb2.CreatePackageRequest(contents=body[start : start + 64]))
        await stream.end()
        created = await stream.recv_message()
    assert created is not None
    assert created.version == "2"
    got = (await stub.GetPackage(packages_pb2.GetPackageRequest(id=created.id, version="latest"), **headers)).package
    assert (got.info.name, got.info.version, got.info.metadata["made"]) == ("map", "2", "today")
    assert got.checksum == hashlib.sha256(body).hexdigest()
    listing = packages_pb2.ListPackagesRequest(organization_id=at.organization)
    assert [package.id for package in (await stub.ListPackages(listing, **headers)).packages] == [created.id]
    await stub.DeletePackage(packages_pb2.DeletePackageRequest(id=created.id, version="2"), **headers)
    assert not (await stub.ListPackages(listing, **headers)).packages
    await app.delete_registry_item("acme:map")


def unbuilt_arguments(app: AppClient, at: Place) -> dict[str, tuple[Any, ...]]:
    """Return the arguments for the methods of AppClient that this cloud does not have."""
    here, user = at.organization, ("x", "y", "a@example.com", "A", "B", "secret")
    return {
        "create_organization": ("Second",),
        "create_oauth_app_user": user,
        "get_rover_rental_robots": (here,),
        "upload_device_push_token": ("x", "y", "z"),
        "delete_device_push_token": ("x", "y"),
        "get_device_push_tokens": ("x",),
        "set_firebase_config": (here, "x", "{}"),
        "get_firebase_config": (here,),
        "delete_firebase_config": (here, "x"),
    }


async def unbuilt(client: Any, seen: Seen, arguments: dict[str, tuple[Any, ...]], refusing: set[str]) -> None:
    """Check that each method of a client whose call is in `refusing` fails with its explanation."""
    for service, rows in CALLS.items():
        for call, methods, _ in rows:
            for method in methods.split():
                if f"{service}/{call}" in refusing and method in arguments:
                    await seen.unbuilt(f"{service}/{call}", method, getattr(client, method)(*arguments[method]))


async def end(app: AppClient, seen: Seen, at: Place, robot: str) -> None:
    """Delete the organization, and with it its last key."""
    await seen.refused(app.delete_organization(at.organization), Status.FAILED_PRECONDITION)
    await app.delete_robot(robot)
    await app.delete_location(at.location)
    await app.delete_organization(at.organization)
    await seen.refused(app.list_organizations(), Status.UNAUTHENTICATED)
    seen.methods.add("delete_organization")
