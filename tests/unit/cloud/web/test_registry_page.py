"""The module pages and archives over HTTP, for a browser and for a machine."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.web.api.ranges import span
from tests.unit.cloud.pages import browser, post, signed_in
from tests.unit.cloud.services.test_registry import ARCHIVE, NOW, upload
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML


@pytest.fixture
async def module(cloud: MemoryCloud) -> str:
    organization = cloud.first.organization
    await cloud.app("update_organization", organization_id=organization, public_namespace="acme")
    return (await cloud.app("create_module", organization_id=organization, name="smooth"))["module_id"]


async def test_a_module_from_its_namespace_to_its_deletion(cloud: MemoryCloud) -> None:
    person, organization = await signed_in(cloud), cloud.first.organization
    assert "There are no modules yet" in (await person.get("/modules")).text
    reply = await post(person, "/modules", action="namespace", organization=organization, namespace="Not One!")
    assert (reply.status, "is not a valid namespace" in reply.text) == (400, True)
    reply = await post(person, "/modules", action="namespace", organization=organization, namespace="acme")
    assert reply.status == 303
    reply = await post(person, "/modules", action="create", organization=organization, name="smooth")
    assert (reply.status, reply.headers["location"]) == (303, "/modules/acme:smooth")
    await upload(cloud.client(), "acme:smooth", "1.0.0", platform="linux/arm64")
    await upload(cloud.client(), "acme:smooth", "1.1.0")
    page = (await person.get("/modules/acme:smooth")).text
    for text in ("linux/arm64", "1.1.0", "&#34;module_id&#34;: &#34;acme:smooth&#34;"):
        assert text in page
    assert ">1.1.0<" in (await person.get("/modules")).text
    form = {"action": "settings", "description": "<b>smooths</b>", "visibility": "PUBLIC"}
    assert (await post(person, "/modules/acme:smooth", **form)).status == 303
    page = (await person.get("/modules/acme:smooth")).text
    assert "&lt;b&gt;smooths" in page
    assert '<option value="PUBLIC" selected>' in page
    await post(person, "/modules/acme:smooth", action="delete-version", version="1.1.0")
    assert "1.1.0" not in (await person.get("/modules/acme:smooth")).text
    reply = await post(person, "/modules/acme:smooth", action="explode")
    assert (reply.status, "no action" in html.unescape(reply.text)) == (400, True)
    assert (await post(person, "/modules/acme:smooth", action="delete")).headers["location"] == "/modules"
    assert (await person.get("/modules/acme:smooth")).status == 404


async def test_a_deprecation_is_shown_and_withdrawn(cloud: MemoryCloud, module: str) -> None:
    for version in ("1.0.0", "1.1.0"):
        await upload(cloud.client(), module, version)
    person, path = await signed_in(cloud), f"/modules/{module}"
    looker = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization))
    assert "deprecated" not in (await looker.get(path)).text
    shaky = {"version": "1.1.0", "message": "it <shakes>"}
    assert (await post(looker, path, action="deprecate", **shaky)).status == 403
    assert (await post(person, path, action="deprecate", **shaky)).headers["location"] == path
    text = (await looker.get(path)).text
    assert re.findall(r"deprecated: ([^<]+)<", text) == ["it &lt;shakes&gt;"]
    assert "deprecated" not in (await looker.get("/modules")).text
    await post(person, path, action="deprecate", version="", message="use smoother")
    assert "Deprecated: use smoother" in (await looker.get(path)).text
    assert f'>{module}</a> <span class="muted">deprecated<' in (await looker.get("/modules")).text
    await post(person, path, action="undeprecate", version="1.1.0")
    assert "shakes" not in (await looker.get(path)).text
    await post(person, path, action="undeprecate", version="")
    assert "eprecated" not in (await looker.get(path)).text
    reply = await post(person, path, action="deprecate", version="9.9.9", message="")
    assert reply.status == 404
    reply = await post(person, path, action="deprecate", version="", message="x" * 5000)
    assert (reply.status, "longer than" in reply.text) == (400, True)
    foreign = {**HTML, "origin": "https://evil.example", "content-type": "application/x-www-form-urlencoded"}
    assert (await person.send("POST", path, foreign, b"action=deprecate&version=&message=")).status == 403
    assert "eprecated" not in (await looker.get(path)).text


async def test_an_owner_changes_nothing_of_another_organization(cloud: MemoryCloud, module: str) -> None:
    now, store = cloud.cloud.clock, cloud.cloud.store
    second = await store.write(lambda sql: create_owner(sql, "Second", now()))
    grants = [Grant("operator", "organization", cloud.first.organization)]
    grants += [Grant("owner", "organization", second.organization)]
    key = await store.write(lambda sql: create_key(sql, second.organization, "both", grants, now()))
    person = await signed_in(cloud, key)
    page = (await person.get("/modules")).text
    assert re.findall(r'name="organization" value="([^"]+)"', page) == [second.organization] * 2
    assert "Delete" not in (await person.get(f"/modules/{module}")).text


async def test_an_operator_reads_and_an_owner_changes(cloud: MemoryCloud, module: str, machine: str) -> None:
    await upload(cloud.client(), module, "1.0.0")
    person = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization))
    page = (await person.get(f"/modules/{module}")).text
    assert "Download" in page
    assert "Delete" not in page
    assert (await post(person, f"/modules/{module}", action="delete")).status == 403
    guest = await signed_in(cloud, await key_at(cloud, "robot", machine))
    assert "1.0.0" in (await guest.get(f"/modules/{module}")).text


async def test_a_download_needs_a_signed_link(cloud: MemoryCloud, module: str) -> None:
    await upload(cloud.client(), module, "1.0.0")
    person = await signed_in(cloud)
    page = (await person.get(f"/modules/{module}")).text
    result = re.search(r'href="([^"]*/download[^"]*)"', page)
    assert result is not None
    link = (await person.get(html.unescape(result[1]))).headers["location"]
    anonymous = browser(cloud)
    reply = await anonymous.get(link)
    assert (reply.status, reply.body) == (200, ARCHIVE)
    assert reply.headers["content-disposition"] == 'attachment; filename="smooth-1.0.0.tar.gz"'
    assert (await person.get(link.partition("?")[0])).body == ARCHIVE
    assert (await anonymous.get(link.partition("?")[0])).status == 401
    assert (await anonymous.get(link.replace("expires=", "expires=9"))).status == 403
    assert (await person.get("/packages/nothing")).status == 404


@pytest.mark.parametrize(
    ("header", "result"),
    [
        ("", None),
        ("bytes=0-", (0, 100)),
        ("bytes=40-", (40, 100)),
        ("bytes=40-49", (40, 50)),
        ("bytes=40-4000", (40, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=9-3", None),
        ("bytes=-", None),
        ("bytes=1-2,4-5", None),
        ("lines=1-2", None),
    ],
)
def test_ranges(header: str, result: tuple[int, int] | None) -> None:
    assert span(header, 100) == result


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_ranges_outside_the_file(header: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        span(header, 100)


@given(st.text(max_size=30), st.integers(0, 1000))
def test_a_range_is_always_inside_the_file(header: str, size: int) -> None:
    try:
        result = span(f"bytes={header}", size)
    except ValueError:
        return
    if result is not None:
        assert 0 <= result[0] < result[1] <= size


async def test_a_key_of_another_organization_gets_no_file(cloud: MemoryCloud, module: str) -> None:
    await upload(cloud.client(), module, "1.0.0")
    person = await signed_in(cloud)
    page = (await person.get(f"/modules/{module}/download?version=1.0.0")).headers["location"]
    file = page.partition("?")[0]
    second = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", NOW))
    await cloud.cloud.authenticator.load()
    other = await signed_in(cloud, (second.id, second.key))
    assert (await other.get(file)).status == 404
    absent = await other.get("/packages/00000000-0000-0000-0000-000000000000")
    assert absent.status == 404
    assert (await other.get(f"/modules/{module}")).status == 404
    assert (await other.get(f"/modules/{module}/download?version=1.0.0")).status == 404
    await cloud.app("update_registry_item", item_id=module, type=3, description="", visibility="VISIBILITY_PUBLIC")
    assert (await other.get(file)).body == ARCHIVE
