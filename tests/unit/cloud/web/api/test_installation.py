"""What a new computer gets from the cloud: the script, credentials, the newest agent; and who gets it."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from typing import Any

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, Kind, create_key
from cloud.server.memory import MemoryCloud
from cloud.web.app import application
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, browser, post, signed_in
from tests.unit.cloud.release_help import opened, publish, service
from tests.unit.runtime.parts.web.client import Browser, Reply

CONFIG = "/api/json1/config?client=true&id={part}"
INSTALLER = "/machine/v1/installer?part={part}&platform=linux/x86_64"


def basic(subject: str, key: str) -> dict[str, str]:
    return {"authorization": f"Basic {b64encode(f'{subject}:{key}'.encode()).decode()}"}


async def ask(cloud: MemoryCloud, path: str, headers: dict[str, str], host: str = HOST) -> Reply:
    return await browser(cloud).send("GET", path, {"host": host, **headers})


async def redeem(cloud: MemoryCloud, subject: str, secret: str, nonce: str = "a" * 32) -> Reply:
    headers = {"host": HOST, **basic(subject, secret)}
    return await browser(cloud).send("POST", f"/machine/v1/install?nonce={nonce}", headers)


async def key_of(cloud: MemoryCloud, role: str, kind: Kind, subject: str) -> tuple[str, str]:
    owner, now = cloud.first.organization, cloud.cloud.clock()
    grants = [Grant(role, kind, subject)]
    return await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "k", grants, now))


async def actions(cloud: MemoryCloud) -> list[dict[str, Any]]:
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT action, subject, detail FROM audit "))
    return [dict(row) for row in rows]


async def test_the_published_headers_open_the_credentials(cloud: MemoryCloud, part: str) -> None:
    reply = await ask(cloud, CONFIG.format(part=part), {"key_id": cloud.first.id, "key": cloud.first.key})
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    assert reply.status == 200
    assert json.loads(reply.text) == {"cloud": {"id": part, "secret": secret, "app_address": f"http://{HOST}"}}
    assert reply.headers["cache-control"] == "no-store"


async def test_reading_the_credentials_is_recorded_without_them(cloud: MemoryCloud, part: str) -> None:
    reply = await ask(cloud, CONFIG.format(part=part), basic(cloud.first.id, cloud.first.key))
    (entry,) = [entry for entry in await actions(cloud) if entry["action"] == "install_part"]
    assert entry["subject"] == part
    assert json.loads(reply.text)["cloud"]["secret"] not in str(entry)


async def test_other_callers_get_no_credentials(cloud: MemoryCloud, part: str, machine: str) -> None:
    path, other = CONFIG.format(part=part), await cloud.app("new_robot", name="other", location=cloud.first.location)
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", cloud.cloud.clock()))
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    for caller, status in (
        (await key_of(cloud, "operator", "robot", machine), 403),
        (await key_of(cloud, "owner", "robot", other), 404),
        ((stranger.id, stranger.key), 404),
        ((part, secret), 401),
        ((cloud.first.id, "wrong"), 401),
    ):
        reply = await ask(cloud, path, basic(*caller))
        assert (reply.status, secret in reply.text) == (status, False), caller
    assert (await ask(cloud, path, {})).status == 401
    assert (await ask(cloud, path, basic(*await key_of(cloud, "owner", "robot", machine)))).status == 200
    assert not [entry for entry in await actions(cloud) if entry["action"] == "install_part"][1:]


async def test_id_and_key_open_no_other_path(cloud: MemoryCloud, part: str) -> None:
    for headers in (basic(cloud.first.id, cloud.first.key), {"key_id": cloud.first.id, "key": cloud.first.key}):
        for path in ("/keys", f"/machines/{part}", "/api/json1/config/", "/machine/v1/installers"):
            assert (await ask(cloud, path, headers)).status == 401, path
        reply = await browser(cloud).send("POST", CONFIG.format(part=part), {"host": HOST, **headers})
        assert reply.status == 401


async def test_the_offer_names_the_newest_agent_with_its_hash(cloud: MemoryCloud, part: str) -> None:
    headers = basic(cloud.first.id, cloud.first.key)
    nothing = await ask(cloud, INSTALLER.format(part=part), headers)
    assert nothing.status == 404
    assert "no release of machine-agent for linux/x86_64" in nothing.text
    assert "machine cloud releases upload" in nothing.text
    person = await opened(cloud)
    person.add("1.0.0", b"old", ("stable",), "machine-agent")
    person.add("1.1.0", b"new", ("stable",), "machine-agent")
    person.add("1.2.0", b"test", ("dev",), "machine-agent")
    await publish(cloud, person)
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    for caller in (headers, basic(part, secret)):
        reply = await ask(cloud, INSTALLER.format(part=part), caller)
        lines = dict(line.split(" ") for line in reply.text.splitlines())
        assert (lines["version"], lines["sha256"]) == ("1.1.0", hashlib.sha256(b"new").hexdigest())
        assert (await ask(cloud, lines["path"], {})).body == b"new"
    other = await ask(cloud, INSTALLER.format(part=part).replace("x86_64", "aarch64"), headers)
    assert other.status == 404
    assert (await ask(cloud, INSTALLER.format(part=part).replace("x86_64", "vax"), headers)).status == 400


@pytest.mark.parametrize(
    ("version", "reason", "remedy"),
    [
        ("9.9.9", "version 9.9.9 of machine-agent is not published for linux/x86_64", "(1.0.0), stable or dev"),
        ("banana", "'banana' (text) is not a version", "write a string: stable, dev"),
    ],
)
async def test_a_version_that_cannot_be_offered_is_the_reason(
    cloud: MemoryCloud, part: str, version: str, reason: str, remedy: str
) -> None:
    person = await opened(cloud)
    person.add("1.0.0", b"old", ("stable",), "machine-agent")
    await publish(cloud, person)
    section = json.dumps({"agent": {"version_control": {"agent": version}}})
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=section)
    reply = await ask(cloud, INSTALLER.format(part=part), basic(cloud.first.id, cloud.first.key))
    assert reply.status == 404
    assert f"agent.version_control.agent offers no machine-agent: {reason}: " in reply.text
    assert remedy in reply.text
    assert "keeps the version" not in reply.text, "nothing runs on a new device"


async def test_a_rollout_decides_whether_a_new_machine_gets_a_version(cloud: MemoryCloud, part: str) -> None:
    person = await opened(cloud)
    person.add("1.0.0", b"old", ("stable",), "machine-agent")
    person.add("1.1.0", b"new", ("dev",), "machine-agent")
    await publish(cloud, person)
    await service(cloud).start_rollout(person.owner, "machine-agent", "1.1.0", 0.0001)
    person.add("1.1.0", b"new", ("dev", "stable"), "machine-agent")
    await publish(cloud, person)
    reply = await ask(cloud, INSTALLER.format(part=part), basic(cloud.first.id, cloud.first.key))
    assert "version 1.0.0" in reply.text


async def test_the_script_is_public_and_names_this_cloud(cloud: MemoryCloud, clock: Clock) -> None:
    reply = await ask(cloud, "/install.sh", {})
    assert reply.status == 200
    assert f"cloud='http://{HOST}'" in reply.text
    assert f"difference=$((now - {int(clock.now.timestamp())}))" in reply.text
    assert "@CLOUD@" not in reply.text
    assert reply.text.endswith("\nmain\n")
    assert reply.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("host", ["localhost'; touch /pwned; '", "localhost$(x)", "a b"])
async def test_a_host_that_a_shell_would_interpret_is_refused(cloud: MemoryCloud, host: str) -> None:
    everywhere = Browser(application(cloud.cloud, loopback=False), host=host)  # the guard checks no names then
    reply = await everywhere.get("/install.sh", {})
    assert reply.status == 400
    assert "cloud='" not in reply.text


async def test_the_page_shows_the_line_once(cloud: MemoryCloud, part: str, machine: str) -> None:
    visitor = await signed_in(cloud)
    page = (await post(visitor, f"/machines/{part}/install")).text
    assert "curl -fsSg http://cloud.test/install.sh) | sudo sh" in page  # and not localhost
    assert "It uses the address http://cloud.test" in page
    assert "without TLS" in page
    assert await cloud.app("get_robot_api_keys", robot_id=machine) == []
    subject = page.partition("MACHINE_API_KEY_ID=")[2].partition(" ")[0]
    value = page.partition("MACHINE_API_KEY=")[2].partition("&#34;")[0]
    reply = await redeem(cloud, subject, value)
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    assert json.loads(reply.text) == {"cloud": {"id": part, "secret": secret, "app_address": f"http://{HOST}"}}
    for path in (f"/machines/{part}", f"/machines/{part}/install"):
        assert value not in (await visitor.get(path)).text
    assert value not in str(await actions(cloud))


async def test_an_operator_creates_no_key(cloud: MemoryCloud, part: str, machine: str) -> None:
    visitor = await signed_in(cloud, await key_of(cloud, "operator", "robot", machine))
    assert (await post(visitor, f"/machines/{part}/install")).status == 403
    assert "Install machine-agent" not in (await visitor.get(f"/machines/{part}")).text
