"""machine.cloud.v1, the services of our own: descriptors, the numbers of fields, and who may call what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from grpclib.const import Cardinality

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.server.memory import MemoryCloud
from cloud.services.target import SERVICES
from rpc.access.credential_types import API_KEY
from rpc.api import cloud_v1, messages
from rpc.api.client import ApiClient, find_method, methods_for
from rpc.api.cloud_v1 import INVITATIONS
from rpc.api.memory import MemoryChannel
from rpc.carrier import Identity
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock

ADA = "ada@example.com"


@pytest.fixture
async def organization(cloud: MemoryCloud) -> str:
    """Return the id of an organization that has invited Ada."""
    owner = cloud.first.organization
    await cloud.app("create_organization_invite", organization_id=owner, email=ADA)
    return owner


async def kind_of(client: ApiClient, method: str, **arguments: Any) -> ErrorKind:
    with pytest.raises(MachineError) as caught:
        await client.call(INVITATIONS, "", method, **arguments)
    return caught.value.kind


async def test_invitations_are_listed_and_links_are_created(cloud: MemoryCloud, organization: str) -> None:
    reply = await cloud.client().call(INVITATIONS, "", "list_invites", organization_id=organization)
    (invite,) = reply["invites"]
    assert (invite["email"], invite["mail"], reply["mails"]) == (ADA, "none", False)
    assert invite["grants"] == [{"role": "owner", "kind": "organization", "subject": organization}]
    assert invite["expires"] - invite["created"] == timedelta(days=7)
    link = await cloud.client().call(INVITATIONS, "", "create_invite_link", organization_id=organization, email=ADA)
    assert link.startswith("http://cloud.test/invites/")
    noted = await cloud.cloud.store.read(lambda sql: audit.entries(sql, organization, AuditQuery()))
    assert noted[0].action == "create_invite_link"
    assert link.rpartition("/")[2] not in repr(noted)


async def test_operators_are_refused(cloud: MemoryCloud, organization: str, clock: Clock) -> None:
    grants = [Grant("operator", "organization", organization)]
    key, _ = await cloud.cloud.store.write(lambda sql: create_key(sql, organization, "op", grants, clock()))
    operator, value = cloud.client(key), {"organization_id": organization}
    assert await kind_of(operator, "list_invites", **value) is ErrorKind.PERMISSION
    assert await kind_of(operator, "create_invite_link", **value, email=ADA) is ErrorKind.PERMISSION


async def test_another_organization_is_not_found(cloud: MemoryCloud, organization: str, clock: Clock) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    theirs, value = cloud.client(other.id), {"organization_id": organization}
    assert await kind_of(theirs, "list_invites", **value) is ErrorKind.NOT_FOUND
    assert await kind_of(theirs, "create_invite_link", **value, email=ADA) is ErrorKind.NOT_FOUND
    assert await kind_of(theirs, "create_invite_link", organization_id=other.organization, email=ADA) is (
        ErrorKind.NOT_FOUND
    )


async def test_an_unknown_field_is_refused_by_the_client_and_ignored_by_the_server(
    cloud: MemoryCloud, organization: str
) -> None:
    assert await kind_of(cloud.client(), "list_invites", organisation_id=organization) is ErrorKind.INVALID
    method = find_method(INVITATIONS, "list_invites")
    request: Any = method.request_class()
    request.organization_id = organization
    request.MergeFromString(b"\xfa\x07\x03new")  # field 127, of a later version
    channel = MemoryChannel(cloud.router, identity=Identity(cloud.first.id, API_KEY))
    async with channel.request(method.path, Cardinality.UNARY_UNARY, method.request_class, method.reply_class) as call:
        await call.send_message(request, end=True)
        reply: Any = await call.recv_message()
    assert [invite.email for invite in reply.invites] == [ADA]


@pytest.mark.parametrize("service", cloud_v1.SERVICES)
def test_a_service_has_one_method_in_its_class_for_each_of_its_calls(service: str) -> None:
    descriptor = messages.service(service, "")
    assert [method.name for method in descriptor.methods] == list(cloud_v1.SERVICES[service])
    assert descriptor.file.name == cloud_v1.FILE
    assert [name for name in methods_for(service) if not hasattr(SERVICES[service], name)] == []


@pytest.mark.parametrize("message", cloud_v1.MESSAGES)
def test_numbers_and_names_of_fields_are_unique(message: str) -> None:
    declarations = [text.split() for text in cloud_v1.MESSAGES[message]]
    for position in (-1, -3):
        values = [words[position] for words in declarations]
        assert len(set(values)) == len(values)
