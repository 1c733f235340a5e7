"""A new user follows the tour of README.md: its literal commands, its pages in a real browser.

Takes about 25 s: two programs start, an upload arrives, and a dozen commands run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import trio
from standardwebhooks.webhooks import Webhook

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.writing import press_save, write
from tests.e2e.tour.readme import Checkout, Ports, blocks, editor, spoken, step
from tests.e2e.triggers.receiver import receiver
from tests.loopback import free_port

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not Path(sys.prefix, "bin", "activate").exists(), reason="needs a virtual environment"),
]
RUNS = "document.querySelector('#running[data-runs=yes]')"


async def test_the_tour_of_the_readme(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, Ports(*(str(free_port()) for _ in range(3))))
    make = spoken(step(1), "make run").replace("make", "make --assume-old=.venv/.run", 1)
    async with checkout.running(make) as started, browser(tmp_path / "browser") as page:
        said = await started.until("Stop them with Ctrl-C")
        await log_in(page, checkout, said)
        await look(checkout)
        await change(page, checkout, '"max_rpm": 200', '"max_rpm": 150', saved="runs revision 3")
        await break_it(page, checkout)
        await hear(page, checkout)
        assert "turned to" in await checkout(". .venv/bin/activate; . .run/env; " + spoken(step(6), "python examples"))
        await page.goto("about:blank")  # the page would report that the server does not answer
        await started.interrupt()
        assert "Traceback" not in started.said


async def log_in(page: Page, checkout: Checkout, said: str) -> None:
    """1: a link opens the machine's pages and another one the cloud, where the machine is online and its graph live."""
    cloud, machine = re.findall(r"http://localhost:\d+/login/link#\S+", said)
    assert f":{checkout.ports.cloud}/" in cloud
    await page.follow(machine)
    await page.until_text("left", "#resources")
    await page.follow(cloud)
    await page.until_text("online", "#machines")
    assert "#" not in await page.evaluate("location.href")
    await page.click("#machines tbody a")
    await page.until("document.querySelectorAll('.graph a').length > 20")
    await page.until("document.querySelectorAll('.sensor').length > 3")


async def look(checkout: Checkout) -> None:
    """2: the commands of the second terminal."""
    (commands,) = blocks(step(2))
    said = await checkout(commands)
    for expected in ("26 ready", "TICKS_COUNT", "bench  ", "rdk.resource_manager"):
        assert expected in said, said


async def change(page: Page, checkout: Checkout, old: str, new: str, *, saved: str) -> None:
    """3: the motor is selected in the list; the change is reviewed, saved and applied."""
    assert "*Configuration*" in step(3)
    await page.click(".tabs a[href$='/config']")
    await page.until("document.querySelector('.list .entry')")
    named = "(one) => one.querySelector('strong').innerText === 'left'"
    await page.evaluate(f"[...document.querySelectorAll('.list .entry')].find({named}).click()")
    await page.until("document.querySelector('.fields h2').innerText === 'left'")
    text = await page.value("#document")
    at = text.index('"name": "left"')
    await write(page, text[:at] + text[at:].replace(old, new, 1))
    await page.until_text("Review changes")
    await page.click("button[value=review]")
    await page.until_text("attributes.max_rpm: ")
    await press_save(page)
    await page.until(RUNS)
    await page.until_text(saved, "#running")


async def break_it(page: Page, checkout: Checkout) -> None:
    """4: the mistake is reported at its line, the machine keeps running without the motor, and two reverts undo it."""
    assert '`"max_rpm": "fast"`' in step(4)
    wrong = '"max_rpm": "fast"'
    await page.until("document.querySelector('#document')")
    text = await page.value("#document")
    await write(page, text.replace('"max_rpm": 150', wrong, 1))
    await page.until_text("must be a number", "#findings")
    assert re.search(r'line \d+ left › max_rpm must be a number, not "fast"', await page.text("#findings"))
    await write(page, text)
    await page.until_text("No problems found", "#findings")
    await change(page, checkout, '"max_rpm": 150', wrong, saved="but has 3 problems")
    await page.until_text('"fast"', "#running")  # it comes with a later report than the number

    # the machine's page links to the field
    await page.click(".tabs a:first-of-type")
    await page.until_text("23 ready")
    await page.click(".reason a")
    await page.until("document.activeElement.id === 'field-components.3.attributes.max_rpm'")
    assert await page.evaluate("document.activeElement.value") == "fast"

    await page.click(".tabs a[href$='/history']")
    await page.click("[aria-label='Revert to this revision, 3']")
    await page.until_text("runs revision 5.", "#running")
    assert '"max_rpm": 150' in await page.value("#document")

    edit, revert = spoken(step(3), "machine cloud config edit"), spoken(step(4), "machine cloud config revert")
    await answered(checkout, edit, EDITOR=editor(checkout.folder, '"max_rpm": 150', '"max_rpm": 151'))
    await page.until_text("runs revision 6", "#running")
    assert "151 -> 150" in await answered(checkout, revert)
    await page.until_text("runs revision 7", "#running")


async def answered(checkout: Checkout, command: str, **environment: str) -> str:
    """Run a command that asks for confirmation, in a terminal that answers yes; return its output."""
    asked = f". .venv/bin/activate; . .run/env; echo y | script -qec '{command}' /dev/null"
    return await checkout(asked, **environment)


async def hear(page: Page, checkout: Checkout) -> None:
    """5: a failed delivery is sent again, and verified by the example and by another program."""
    first, second = blocks(step(5))
    await page.click(".tabs a[href$='/triggers']")
    await page.until_text("next attempt", "#delivery-log")
    await page.click("#delivery-log tbody tr:last-child a")
    await page.until_text("no answer", "#tries")
    async with checkout.running(first) as listening:
        await listening.until("listening at")
        assert "*Retry now*" in step(5)
        await page.until_text("Retry now", "#again")
        await page.click("#again button")
        said = await listening.until("conditional_data_ingested of bench: warm: climate")
        assert "refused" not in said
        await page.until_text("delivered", "#state")
    await verified(page, checkout)
    said = await checkout(". .venv/bin/activate; . .run/env; " + second)
    assert "it would fire" in said
    assert "delivered" in said


async def verified(page: Page, checkout: Checkout) -> None:
    async with receiver(port=int(checkout.ports.webhook)) as other:
        changed = other.changed
        await page.until_text("Send it again", "#again")
        await page.click("#again button")
        with trio.fail_after(60):
            await changed.wait()
        came = other.requests[0]
        assert came.headers["Trigger-Name"] == "warm"
        Webhook(checkout.variables["WEBHOOK_SECRET"]).verify(came.body, came.headers)
