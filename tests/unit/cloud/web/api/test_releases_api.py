"""Downloads of releases by machines."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from cloud.server.memory import MemoryCloud
from cloud.values.author import PART
from cloud.web.app import application
from rpc.carrier import Peer
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, Browser
from tests.unit.cloud.release_help import opened

CONTENT = b"program 1.0.0"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def as_part(cloud: MemoryCloud, part: str) -> dict[str, str]:
    secret = (await cloud.app("get_robot_part", id=part))["part"]["secret"]
    token = await cloud.cloud.authenticator.sign_in(part, PART, secret, peer=Peer())
    return {"authorization": f"Bearer {token}"}


async def test_a_machine_downloads_metadata_and_files(cloud: MemoryCloud, part: str) -> None:
    await opened(cloud, "1.0.0")
    browser, headers = Browser(application(cloud.cloud, loopback=True), host=HOST), await as_part(cloud, part)
    base = f"/machine/v1/parts/{part}/releases"
    answer = await browser.send("GET", f"{base}/metadata/timestamp.json", headers, b"")
    assert answer.status == 200
    assert b'"_type":"timestamp"' in answer.body
    assert (await browser.send("GET", f"{base}/metadata/1.root.json", headers, b"")).status == 200
    for name in ("9.root.json", "1.timestamp.json", "passwd", "..%2f1.root.json", "1.root.json.gz"):
        assert (await browser.send("GET", f"{base}/metadata/{name}", headers, b"")).status == 404
    for path in ("machine-server/1.0.0/linux-x86_64", f"machine-server/1.0.0/{DIGEST}.linux-x86_64"):
        answer = await browser.send("GET", f"{base}/targets/{path}", headers, b"")
        assert (answer.status, answer.body) == (200, CONTENT)
    answer = await browser.send("GET", f"{base}/targets/{path}", {**headers, "range": "bytes=8-"}, b"")
    assert (answer.status, answer.body) == (206, b"1.0.0")
    for path in ("machine-server/9.0.0/linux-x86_64", f"machine-server/1.0.0/{'0' * 64}.linux-x86_64", "x"):
        assert (await browser.send("GET", f"{base}/targets/{path}", headers, b"")).status == 404


async def test_a_signed_link_needs_no_key_and_expires(cloud: MemoryCloud, clock: Clock) -> None:
    await opened(cloud, "1.0.0")
    row = await cloud.cloud.store.read(lambda sql: sql.row("SELECT id FROM release_files"))
    assert row is not None
    path, browser = f"/releases/files/{row['id']}", Browser(application(cloud.cloud, loopback=True), host=HOST)
    link = f"{path}?{cloud.cloud.links.query(path, clock() + timedelta(hours=1))}"
    answer = await browser.send("GET", link, {"range": "bytes=0-6"}, b"")
    assert (answer.status, answer.body) == (206, CONTENT[:7])
    assert (await browser.send("GET", path, {}, b"")).status == 401
    clock.now += timedelta(hours=2)
    assert (await browser.send("GET", link, {}, b"")).status == 403
