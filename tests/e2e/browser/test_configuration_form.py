"""The form of a configuration in a real browser: list, fields, pins, references, and the text next to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.e2e.browser.chromium import needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.test_configuration import joined, save
from tests.e2e.browser.writing import CONTENT, move, press_save, write

pytestmark = needs_chromium
BOARD: Final = {"name": "pi", "api": "rdk:component:board", "model": "fake"}
BUTTON: Final = {
    "name": "bell",
    "api": "rdk:component:button",
    "model": "gpio",
    "attributes": {"board": "pi", "pin": "11"},
}
TEXT: Final = """{
  // the shed
  "components": [
    {"name": "pi", "api": "rdk:component:board", "model": "fake"}, /* spare */
    {"name": "bell", "api": "rdk:component:button", "model": "gpio",
     "attributes": {"board": "pi", "pin": "11", "press_ms": 1e2}}
  ]
}
"""


def field(path: str) -> str:
    """Return the selector of the field of a path."""
    return f'[id="field-{path}"]'


async def opened(page: Page, url: str) -> None:
    await page.goto(url)
    await page.until("!!document.querySelector('.list .entry, .list nav p')")


async def press(page: Page, selector: str, words: str) -> None:
    """Press the element that has these words."""
    having = f"(one) => one.innerText.includes({json.dumps(words)})"
    element = f"[...document.querySelectorAll({json.dumps(selector)})].find({having})"
    await page.until(f"!!{element}")
    await page.evaluate(f"{element}.click()")


async def document(page: Page) -> Any:
    return json.loads(await page.value("#document"))


async def test_add_choose_pins_correct_rename_review_and_save(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await save(running, part, {"components": [BOARD, BUTTON]})
        await opened(page, f"http://{running.address}/machines/{part['id']}/config")
        assert await page.unnamed() == []

        # a model by what it does; the only board is filled in
        await page.click(".tools .primary")
        await page.until("document.activeElement.type === 'search'")
        await page.type("dc motor")
        await press(page, ".fields li button", "A DC motor on pins")
        await page.until_text("motor", ".fields h2")
        added = (await document(page))["components"][2]
        assert added == {
            "name": "motor",
            "api": "rdk:component:motor",
            "model": "gpio",
            "attributes": {"board": "pi", "pins": {}},
        }

        # pins from the picture, where those of other entries are marked
        path = "components.2.attributes"
        await page.click(f"{field(f'{path}.pins.a')} ~ [aria-expanded]")
        await page.until_text("11: bell › pin", ".pins")
        assert await page.count(".pin.taken") == 1
        assert await faults(page) == []
        await page.click('.pin[aria-label^="Pin 13"]')
        await page.until(f"document.querySelector({json.dumps(field(f'{path}.pins.a'))}).value === '13'")
        await page.fill(field(f"{path}.pins.b"), "15")

        # an error at its field, and the way to it from the list of problems
        await page.fill(field(f"{path}.max_rpm"), "fast")
        words = 'motor › max_rpm must be a number, not "fast"'
        await page.until_text(words, ".fields .problem")
        await page.until("document.querySelector('.list [aria-current=true] .number')?.innerText.trim() !== '0'")
        await page.evaluate("document.activeElement.blur()")
        await page.click("#findings a")
        await page.until(f"document.activeElement === document.querySelector({json.dumps(field(f'{path}.max_rpm'))})")
        await page.fill(field(f"{path}.max_rpm"), "1.50e2")
        await page.until_text("No problems found", "#findings")
        assert '"max_rpm": 1.50e2' in await page.value("#document")

        # the name of the board, with the fields that refer to it
        await press(page, ".list .entry", "pi")
        await page.until_text("pi", ".fields h2")
        await page.fill(field("components.0.name"), "header")
        await page.press("Enter")
        await page.until_text("bell › board, motor › board refer to pi", ".fields [role=alert]")
        await press(page, ".fields [role=alert] button", "change them too")
        await page.until("document.querySelector('#document').value.includes('\"name\": \"header\"')")
        changed = (await document(page))["components"]
        assert [each.get("attributes", {}).get("board") for each in changed] == [None, "header", "header"]

        # the form is undone like the text
        before = await page.value("#document")
        await page.focus(field("components.0.name"))
        await page.press("Control+z")
        await page.until("document.querySelector('#document').value.includes('\"name\": \"pi\"')")
        await page.press("Control+Shift+z")
        await page.until(f"document.querySelector('#document').value === {json.dumps(before)}")

        await page.click("[value=review]")
        await page.until_text("components.motor", "main")
        await press_save(page)
        await page.until_text("Revision 3")


async def test_all_else_stays_as_it_is_written(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await opened(page, f"http://{running.address}/machines/{part['id']}/config")
        await write(page, TEXT)
        await press(page, ".list .entry", "bell")
        pin = field("components.1.attributes.pin")
        await page.until(f"document.querySelector({json.dumps(pin)})?.value === '11'")
        assert await page.value(field("components.1.attributes.press_ms")) == "1e2"
        await page.fill(pin, "13")
        expected = TEXT.replace('"11"', '"13"')
        assert await page.value("#document") == expected

        # the cursor of the text selects the entry
        await page.focus(CONTENT)
        await move(page, '"name": "pi')
        await page.until("document.querySelector('.list [aria-current=true] strong')?.innerText === 'pi'")

        # to review and back, and saved with its comments
        await page.click("[value=review]")
        await page.until_text("components.bell", "main")
        await press_save(page)
        await page.until_text("Revision 2")
        assert await page.value("#document") == expected
        await page.until("!!document.querySelector('.list .entry')")
        await press(page, ".list .entry", "pi")

        # deleting warns of what refers to the entry
        await press(page, ".fields .danger", "Delete")
        await page.until_text("bell › board refers to pi", ".fields [role=alert]")
        await press(page, ".fields [role=alert] button", "Keep it")
        assert await page.value("#document") == expected


async def test_connected_devices_are_added_with_one_click(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, page, part):
        finder = {"name": "finder", "api": "rdk:service:discovery", "model": "fake"}
        motor = {"name": "left", "api": "rdk:component:motor", "model": "fake"}
        await save(running, part, {"components": [motor], "services": [finder]})
        await opened(page, f"http://{running.address}/machines/{part['id']}/config")
        await page.until("document.querySelector('#running[data-runs=yes][data-online=yes]')")
        await page.until("!!document.querySelector('.list .dot.is-ready')")
        await press(page, ".fields .danger", "Delete")
        await page.until("!document.querySelector('#document').value.includes('left')")
        await page.click(".tools .primary")
        await press(page, ".found button", "Look for devices")
        await page.until_text("left", ".found li")
        await page.click(".found li button")
        await page.until_text("left", ".fields h2")
        assert (await document(page))["components"] == [{**motor, "attributes": {}}]
        await page.click(".tools .primary")
        await press(page, ".found button", "Look for devices")
        await page.until_text("configured already", ".found")


async def test_on_a_phone_there_is_a_switch_between_list_form_and_text(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await save(running, part, {"components": [BOARD, BUTTON]})
        await page.size(360, 780, phone=True)
        await opened(page, f"http://{running.address}/machines/{part['id']}/config")
        shown = "['.list', '.fields', '.draft'].filter((each) => document.querySelector(each).checkVisibility()).join()"
        assert await page.evaluate(shown) == ".list"
        await press(page, ".list .entry", "bell")
        await page.until(f"{shown} === '.fields'")
        await page.click(f"{field('components.1.attributes.pin')} ~ [aria-expanded]")
        await page.until("!!document.querySelector('.pin')")
        assert await page.overflow() == 0
        assert await faults(page) == []
        await page.size(360, 780, phone=True)
        await press(page, ".switches button", "JSON")
        await page.until(f"{shown} === '.draft'")
        assert await page.overflow() == 0


async def test_a_megabyte_is_edited_without_delay(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        entry = {**BUTTON, "attributes": {**BUTTON["attributes"], "notes": "x" * 880}}  # type: ignore[dict-item]
        entries = [BOARD, *({**entry, "name": f"bell-{number}"} for number in range(1000))]
        await save(running, part, {"components": entries})
        await opened(page, f"http://{running.address}/machines/{part['id']}/config")
        assert await page.evaluate("document.querySelector('#document').value.length") > 1_000_000
        assert await page.count(".list .entry") <= 200
        await page.focus(CONTENT)
        await page.press("Control+Home")
        slowest = """
            (async () => {
              const content = document.querySelector(".cm-content"), times = [];
              for (let key = 0; key < 20; key++) {
                const before = performance.now();
                document.execCommand("insertText", false, " ");
                times.push(performance.now() - before);
                await new Promise((done) => setTimeout(done, 30));
              }
              return times.sort((a, b) => a - b)[10];
            })()
        """
        assert float(await page.evaluate(slowest)) < 50  # milliseconds
