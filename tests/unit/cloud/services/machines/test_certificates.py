"""Authorities in the database, certificates of machines, and the roots that clients trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import trio
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.certificates import authorities, issue
from cloud.domain.certificates.authorities import OVERLAP, PORT
from cloud.domain.certificates.machine_names import LOOPBACK, MAX_NAMES, names_for
from cloud.domain.organizations.first import create_owner
from cloud.domain.permissions.links import Links
from cloud.server.memory import APP, ROBOT, MemoryCloud
from cloud.services.machines.certificates import CLAIMED
from cloud.services.machines.robot import RobotService
from cloud.services.organizations.authorities import AuthorityService
from cloud.values.author import PART, Author
from rpc.access.credential_types import API_KEY
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.server.target import CallInfo
from rpc.carrier import Identity, Peer
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.domain.certificates.test_issue import verified
from tests.unit.cloud.pages import browser, post, signed_in
from tests.unit.cloud.web.test_web_machine import connected

LIMIT = 30.0  # seconds; each step takes milliseconds


class Port:
    """The properties of a port with a certificate of the cloud's own authority."""

    plain_locally = False
    context = None
    own = True
    names = ("cloud.example", "192.168.7.1")


@pytest.fixture
def secure(cloud: MemoryCloud) -> MemoryCloud:
    """Return the same cloud with a TLS port."""
    links = Links("secret", lambda: "https://cloud.example")
    return MemoryCloud(replace(cloud.cloud, links=links, tls=Port()), cloud.first)


def asking(cloud: MemoryCloud, part: str, *claimed: str) -> ApiClient:
    """Return a client of the machine that sends the names that it claims."""
    metadata = {CLAIMED: ",".join(claimed)} if claimed else None
    return ApiClient(MemoryChannel(cloud.router, identity=Identity(part, PART)), metadata=metadata)


async def asked(cloud: MemoryCloud, part: str, *claimed: str) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await asking(cloud, part, *claimed).call(ROBOT, "", "certificate", id=part)
    return answer


def names_in(chain: str) -> set[str]:
    leaf = x509.load_pem_x509_certificates(chain.encode())[0]
    value = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*value.get_values_for_type(x509.DNSName), *map(str, value.get_values_for_type(x509.IPAddress))}


async def roots(cloud: MemoryCloud, scope: str, clock: Clock) -> str:
    result = await cloud.cloud.store.read(lambda sql: authorities.trusted(sql, scope, clock()))
    return "".join(item.pair.certificate for item in result)


# ---- machines


async def test_a_machine_gets_a_certificate_of_its_organization(secure: MemoryCloud, part: str, clock: Clock) -> None:
    result = await asked(secure, part, "Pi4", "192.168.7.20")
    assert result["id"] == part
    trusted = await roots(secure, secure.first.organization, clock)
    for name in ("pi4", "pi4.local", "192.168.7.20", "localhost", "127.0.0.1"):
        verified(result["tls_certificate"], trusted, name, clock.now)
    last = x509.load_pem_x509_certificates(result["tls_certificate"].encode())[-1]
    assert last == x509.load_pem_x509_certificates(trusted.encode())[0]


async def test_the_cloud_host_name_is_in_the_certificate(secure: MemoryCloud, part: str) -> None:
    record = (await secure.app("get_robot_part", id=part))["part"]
    assert record["local_fqdn"] in names_in((await asked(secure, part))["tls_certificate"])


async def test_a_repeated_request_gets_the_same_certificate_until_renewal(
    secure: MemoryCloud, part: str, clock: Clock
) -> None:
    first = await asked(secure, part, "pi4")
    clock.now += issue.RENEW - timedelta(minutes=1)
    assert await asked(secure, part, "pi4") == first
    clock.now += timedelta(minutes=2)
    again = await asked(secure, part, "pi4")
    assert again["tls_private_key"] != first["tls_private_key"]
    verified(again["tls_certificate"], await roots(secure, secure.first.organization, clock), "pi4", clock.now)


async def test_changed_names_need_a_new_certificate(secure: MemoryCloud, part: str) -> None:
    first = await asked(secure, part, "pi4")
    assert names_in((await asked(secure, part, "pi5"))["tls_certificate"]) >= {"pi5", "pi5.local"}
    saved = {"network": {"fqdn": "rover.example.org"}}
    await secure.app("update_robot_part", id=part, name="", robot_config=saved)
    owned = await asked(secure, part, "pi4")
    assert "rover.example.org" in names_in(owned["tls_certificate"])
    assert owned["tls_certificate"] != first["tls_certificate"]


async def test_reported_names_apply_if_a_request_has_none(secure: MemoryCloud, part: str) -> None:
    info = {"host": "unit7", "os": "linux", "ips": ["10.1.2.3", "8.8.8.8"], "version": "1", "git_revision": ""}
    await asking(secure, part).call(ROBOT, "", "config", id=part, agent_info=info)
    names = names_in((await asked(secure, part))["tls_certificate"])
    assert {"unit7", "unit7.local", "10.1.2.3"} <= names
    assert "8.8.8.8" not in names


@pytest.mark.parametrize(("peer", "here"), [("192.168.7.2", False), ("192.168.7.1", True), ("127.0.0.1", True)])
async def test_a_certificate_names_the_cloud_only_if_the_machine_runs_there(
    secure: MemoryCloud, part: str, peer: str, here: bool
) -> None:
    await secure.app("update_robot_part", id=part, name="", robot_config={"network": {"fqdn": "cloud.example"}})
    service = RobotService(secure.cloud, Author(PART, part))
    said = {CLAIMED: "192.168.7.1,192.168.7.2"}
    service.request = CallInfo(None, "", "certificate", "", False, False, said, peer=Peer((peer, 4711)))
    names = names_in((await service.certificate(part)).tls_certificate)
    assert "192.168.7.2" in names
    assert names & set(Port.names) == (set(Port.names) if here else set())


async def test_the_name_of_a_cloud_behind_a_proxy_is_reserved(secure: MemoryCloud, part: str) -> None:
    proxied = MemoryCloud(replace(secure.cloud, tls=None), secure.first)
    await proxied.app("update_robot_part", id=part, name="", robot_config={"network": {"fqdn": "Cloud.Example."}})
    assert "cloud.example" not in names_in((await asked(proxied, part))["tls_certificate"])


async def test_a_fragment_cannot_name_a_machine(secure: MemoryCloud, part: str) -> None:
    fragment = await secure.app(
        "create_fragment",
        name="f",
        organization_id=secure.first.organization,
        config={"network": {"fqdn": "www.example.org"}},
    )
    await secure.app("update_robot_part", id=part, name="", robot_config={"fragments": [fragment["id"]]})
    assert "www.example.org" not in names_in((await asked(secure, part))["tls_certificate"])


async def test_a_cloud_without_tls_issues_no_certificates(cloud: MemoryCloud, part: str) -> None:
    with pytest.raises(MachineError, match="--tls") as caught:
        await asked(cloud, part)
    assert caught.value.kind is ErrorKind.PRECONDITION
    config = (await asking(cloud, part).call(ROBOT, "", "config", id=part))["cloud"]
    assert config["signaling_insecure"] is True


async def test_a_polling_machine_learns_that_it_gets_a_certificate(secure: MemoryCloud, part: str) -> None:
    assert not (await asking(secure, part).call(ROBOT, "", "config", id=part))["cloud"].get("signaling_insecure")


@pytest.mark.parametrize(("role", "allowed"), [("owner", True), ("operator", False)])
async def test_only_owners_get_a_certificate_with_a_key(
    secure: MemoryCloud, part: str, role: str, allowed: bool
) -> None:
    kind = {"resource_type": "organization", "resource_id": secure.first.organization}
    grant = {"authorization_id": f"organization_{role}", **kind}
    key = (await secure.app("create_key", authorizations=[grant], name=role))["id"]
    client = secure.client(key, API_KEY)
    if allowed:
        assert (await client.call(ROBOT, "", "certificate", id=part))["tls_private_key"]
        return
    with pytest.raises(MachineError) as caught:
        await client.call(ROBOT, "", "certificate", id=part)
    assert caught.value.kind is ErrorKind.PERMISSION


async def test_organizations_trust_different_roots(secure: MemoryCloud, part: str, clock: Clock) -> None:
    mine = await asked(secure, part, "pi4")
    other = await secure.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    theirs = secure.client(other.id)
    robot = await theirs.call(APP, "", "new_robot", name="r", location=other.location)
    their_part = (await theirs.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    result = await asked(secure, their_part, "pi4")
    own, others = [await roots(secure, item, clock) for item in (secure.first.organization, other.organization)]
    verified(mine["tls_certificate"], own, "pi4", clock.now)
    verified(result["tls_certificate"], others, "pi4", clock.now)
    for chain, wrong in ((mine, others), (result, own)):
        with pytest.raises(x509.verification.VerificationError):
            verified(chain["tls_certificate"], wrong, "pi4", clock.now)
    with pytest.raises(MachineError) as caught:
        await asking(secure, part).call(ROBOT, "", "certificate", id=their_part)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_deleted_part_leaves_no_key(secure: MemoryCloud, machine: str, part: str) -> None:
    await asked(secure, part)
    await secure.app("delete_robot", id=machine)
    assert await secure.cloud.store.read(lambda sql: sql.rows("SELECT * FROM part_certificates")) == []


# ---- rotation


async def rotated(cloud: MemoryCloud, clock: Clock, overlap: timedelta = OVERLAP) -> None:
    scope = cloud.first.organization
    await cloud.cloud.store.write(lambda sql: authorities.rotate(sql, scope, clock(), overlap))


async def test_after_a_rotation_old_and_new_clients_trust_the_machine(
    secure: MemoryCloud, part: str, clock: Clock
) -> None:
    scope = secure.first.organization
    before = await asked(secure, part, "pi4")
    old = await roots(secure, scope, clock)
    await rotated(secure, clock)
    both = await roots(secure, scope, clock)
    after = await asked(secure, part, "pi4")
    assert after["tls_certificate"] != before["tls_certificate"]
    new = both.removesuffix(old)
    assert old not in new
    for chain, trusted in ((before, old), (before, both), (after, old), (after, both), (after, new)):
        verified(chain["tls_certificate"], trusted, "pi4", clock.now)


async def test_the_old_authority_is_removed_when_it_expires(secure: MemoryCloud, part: str, clock: Clock) -> None:
    scope = secure.first.organization
    await asked(secure, part)
    old = await roots(secure, scope, clock)
    await rotated(secure, clock)
    clock.now += OVERLAP - timedelta(minutes=1)
    assert old in await roots(secure, scope, clock)
    clock.now += timedelta(minutes=2)
    assert old not in await roots(secure, scope, clock)
    chain = (await asked(secure, part, "pi4"))["tls_certificate"]
    assert len(x509.load_pem_x509_certificates(chain.encode())) == 2
    assert await secure.cloud.store.write(lambda sql: authorities.expire(sql, clock())) == 1


async def test_a_leaked_authority_is_removed_immediately(secure: MemoryCloud, part: str, clock: Clock) -> None:
    scope = secure.first.organization
    await asked(secure, part)
    await rotated(secure, clock)
    old = await roots(secure, scope, clock)
    await rotated(secure, clock, timedelta())
    after = await asked(secure, part, "pi4")
    new = await roots(secure, scope, clock)
    assert new.count("BEGIN") == 1
    verified(after["tls_certificate"], new, "pi4", clock.now)
    with pytest.raises(x509.verification.VerificationError):
        verified(after["tls_certificate"], old, "pi4", clock.now)


async def test_too_many_concurrent_requests_are_refused(secure: MemoryCloud, part: str, clock: Clock) -> None:
    await asked(secure, part)
    first = await roots(secure, secure.first.organization, clock)
    for _ in range(issue.MOST_CROSSED):
        await rotated(secure, clock)
    verified((await asked(secure, part, "pi4"))["tls_certificate"], first, "pi4", clock.now)
    with pytest.raises(MachineError, match="--now"):
        await rotated(secure, clock)


# ---- roots that clients trust


async def test_everyone_gets_the_ports_authority_and_members_those_of_their_machines(
    secure: MemoryCloud, clock: Clock
) -> None:
    await secure.cloud.store.write(lambda sql: create_owner(sql, "Öther", clock()))
    await secure.cloud.store.write(lambda sql: authorities.current(sql, PORT, clock()))
    anonymous = await AuthorityService(secure.cloud, Author("", "")).list_authorities()
    member = await AuthorityService(secure.cloud, Author(API_KEY, secure.first.id)).list_authorities()
    assert anonymous.count("BEGIN CERTIFICATE") == 1
    assert member.count("BEGIN CERTIFICATE") == 2
    assert member.startswith(anonymous)
    assert "PRIVATE" not in member
    assert member.isascii()
    assert secure.first.organization in member
    assert x509.load_pem_x509_certificates(member.encode())[0].extensions


async def test_connected_machines_are_notified_of_every_change(secure: MemoryCloud, part: str, clock: Clock) -> None:
    store, scope = secure.cloud.store, secure.first.organization
    await store.write(lambda sql: authorities.current(sql, PORT, clock()))
    other = await store.write(lambda sql: create_owner(sql, "Other", clock()))
    await store.write(lambda sql: authorities.current(sql, other.organization, clock()))

    async def right() -> dict[str, str]:
        return {"cloud": await roots(secure, PORT, clock), "machines": await roots(secure, scope, clock)}

    with trio.fail_after(LIMIT):
        async with connected(secure, part) as machine:
            assert await machine.hears("authorities") == {"cloud": await roots(secure, PORT, clock), "machines": ""}
            await asked(secure, part)  # creates the authority of the organization
            assert await machine.hears("authorities") == await right()
            for changed in (PORT, scope):
                await store.write(lambda sql, changed=changed: authorities.rotate(sql, changed, clock()))
                heard = await machine.hears("authorities")
                assert heard == await right()
            assert "PRIVATE" not in str(heard)
            clock.now += OVERLAP
            await store.write(lambda sql: authorities.expire(sql, clock()))
            heard = await machine.hears("authorities")
            assert heard == await right()
            assert [text.count("BEGIN") for text in heard.values()] == [1, 1]


async def test_a_machine_gets_no_authorities_for_a_port_with_external_certificates(
    cloud: MemoryCloud, part: str
) -> None:
    await cloud.cloud.store.write(lambda sql: authorities.current(sql, PORT, cloud.cloud.clock()))
    with trio.fail_after(LIMIT):
        async with connected(cloud, part) as machine:
            assert await machine.hears("authorities") == {"machines": ""}


# ---- names


@given(
    st.lists(st.one_of(st.text(max_size=80), st.ip_addresses().map(str), st.sampled_from(["pi", "a.b.c", "*.x"]))),
    st.sampled_from(["", "rover.example", "*.example", "a b", "8.8.8.8", "[::1]"]),
)
def test_any_report_of_a_machine_leads_to_a_certificate(claimed: list[str], fqdn: str) -> None:
    names = names_for("rover.4k0q.local", {"network": {"fqdn": fqdn, "bind_address": fqdn}}, claimed)
    assert len(names) <= MAX_NAMES
    assert names[0] == "rover.4k0q.local"
    assert set(LOOPBACK) <= set(names)
    for name in names:
        issue.alternative(name)


@pytest.mark.parametrize("claimed", ["bank.example", "8.8.8.8", "2001:4860:4860::8888", "224.0.0.1", "*", "0.0.0.0"])
def test_a_machine_cannot_claim_public_names(claimed: str) -> None:
    assert claimed not in names_for("rover.4k0q.local", {}, [claimed])


def test_a_machine_may_not_claim_the_host_name_of_another_one() -> None:
    reserved = ("*.machines.example", "cloud.example")
    for name in ("rover.machines.example", "cloud.example"):
        assert name not in names_for("rover.4k0q.local", {"network": {"fqdn": name}}, (), reserved=reserved)
    names = names_for("rover.4k0q.local", {"network": {"fqdn": "rover.example"}}, (), reserved=reserved)
    assert "rover.example" in names


@pytest.mark.parametrize("network", [None, 5, {"fqdn": 5}, {"bind_address": "nonsense"}, {"bind_address": 7}])
def test_a_malformed_network_section_is_ignored(network: object) -> None:
    assert "pi" in names_for("rover.4k0q.local", {"network": network}, ["pi"])


# ---- pages


async def test_downloads_of_the_page_by_role(secure: MemoryCloud, cloud: MemoryCloud, clock: Clock) -> None:
    await secure.cloud.store.write(lambda sql: authorities.current(sql, PORT, clock()))
    reply = await browser(secure).get("/ca.pem")
    assert (reply.status, reply.text.count("BEGIN CERTIFICATE")) == (200, 1)
    member = await (await signed_in(secure)).get("/ca.pem")
    assert (member.status, member.text.count("BEGIN CERTIFICATE")) == (200, 2)
    plain = await browser(cloud).get("/ca.pem")
    assert plain.status == 404
    assert "no certificate authority of its own" in plain.text


@pytest.mark.parametrize("own", [True, False])
async def test_credentials_of_a_machine_contain_the_authority_to_trust(
    secure: MemoryCloud, cloud: MemoryCloud, part: str, own: bool
) -> None:
    page = await post(await signed_in(secure if own else cloud), f"/machines/{part}/setup")
    assert page.status == 200
    assert ("ca_file" in page.text) is own
    assert ("/ca.pem" in page.text) is own
