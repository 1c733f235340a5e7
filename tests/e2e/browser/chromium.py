"""Headless Chromium from Debian, controlled through the DevTools protocol.

    async with browser(tmp_path) as page:
        await page.goto(url)
        await page.click("button")
        await page.until_text("saved")

A test fails if the page logs an error to its console. A screenshot of a failure is saved in the folder.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.browser.page import Page
from tests.e2e.browser.protocol import LIMIT, Connection, Refused, connected

PROGRAM: Final = "/usr/bin/chromium"
_OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-sandbox",  # Chromium refuses to run as root with a sandbox; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--metrics-recording-only",
    "--password-store=basic",
    "--window-size=1280,900",
)
_HERE: Final = ("localhost", "127.0.0.1", "[::1]")
_LISTENING: Final = re.compile(rb"DevTools listening on (ws://\S+)")

_THERE: Final = os.path.exists(PROGRAM)

needs_chromium = pytest.mark.skipif(not _THERE, reason=f"there is no {PROGRAM}")


@asynccontextmanager
async def browser(
    folder: Path, *, width: int = 1280, height: int = 900, reachable: Sequence[str] = ()
) -> AsyncIterator[Page]:
    """Run a browser with one tab. `folder` holds its profile, and a screenshot if the block fails.

    The browser connects to this computer and to the `reachable` hosts only.
    """
    if not _THERE:
        pytest.skip(f"there is no {PROGRAM}")
    failure: BaseException | None = None
    async with _process(folder / "profile", reachable) as url, connected(url) as connection:
        errors: list[str] = []
        page = await _tab(connection, errors)
        await page.size(width, height)
        try:
            yield page
            assert not errors, "the console of the page said:\n" + "\n".join(errors)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            failure = error  # raised below, because each nursery would wrap it in a group
            await _keep(page, folder / "failure.png", error)
            if errors:
                error.add_note("the console of the page said:\n" + "\n".join(errors))
        finally:
            with trio.move_on_after(5, shield=True):
                try:
                    await connection.call("Browser.close")
                except (Refused, AssertionError):
                    pass  # the browser is ended below
    if failure is not None:
        raise failure


async def _tab(connection: Connection, errors: list[str]) -> Page:
    target = (await connection.call("Target.createTarget", url="about:blank"))["targetId"]
    session = (await connection.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    page = Page(connection, session, errors)
    await page.prepare()
    return page


async def _keep(page: Page, file: Path, error: BaseException) -> None:
    with trio.move_on_after(10, shield=True):
        try:
            await page.screenshot(file)
            error.add_note(f"a picture of the page: {file}")
        except (Refused, AssertionError) as trouble:
            error.add_note(f"no picture of the page: {trouble}")


@asynccontextmanager
async def _process(profile: Path, reachable: Sequence[str]) -> AsyncIterator[str]:
    """Run a browser process and yield its DevTools address."""
    rules = ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in (*_HERE, *reachable))])
    process = await trio.lowlevel.open_process(
        [PROGRAM, *_OPTIONS, f"--host-resolver-rules={rules}", f"--user-data-dir={profile}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # its helper processes end with it
    )
    assert process.stderr is not None
    try:
        said, match = b"", None
        with trio.move_on_after(LIMIT):
            async for part in process.stderr:
                said += part
                if match := _LISTENING.search(said):
                    break
        assert match, f"{PROGRAM} did not start:\n{said.decode(errors='replace')}"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_drain, process.stderr)
            yield match[1].decode()
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            with trio.move_on_after(5):
                await process.wait()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # all processes have ended
            await process.wait()
            await process.stderr.aclose()


async def _drain(stream: trio.abc.ReceiveStream) -> None:
    async for _ in stream:
        pass
