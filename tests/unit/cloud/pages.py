"""A browser for the pages of a cloud in memory, through the guard, logged in with a key through the form."""

from __future__ import annotations

from urllib.parse import urlencode

from cloud.server.memory import MemoryCloud
from cloud.web.app import application
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

HOST = "localhost:8090"


def browser(cloud: MemoryCloud) -> Browser:
    """Return a browser that is not logged in."""
    return Browser(application(cloud.cloud, loopback=True), host=HOST)


async def signed_in(cloud: MemoryCloud, key: tuple[str, str] | None = None) -> Browser:
    """Return a browser that logged in through the form, by default with the owner's key."""
    visitor = browser(cloud)
    subject, secret = key or (cloud.first.id, cloud.first.key)
    reply = await post(visitor, "/login", id=subject, key=secret, next="/")
    assert reply.status == 303, reply.text
    return visitor


async def post(created: Browser, path: str, **form: str) -> Reply:
    """Submit a form with the headers of the same origin."""
    headers = {**HTML, "origin": f"http://{HOST}", "content-type": "application/x-www-form-urlencoded"}
    return await created.send("POST", path, headers, urlencode(form).encode())
