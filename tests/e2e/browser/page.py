"""A tab of the browser, used as a person uses it: read, click, type, wait until something appears."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import trio

from tests.e2e.browser.protocol import LIMIT, Connection, Events, Refused

KEYS: Final[dict[str, tuple[str, int, str]]] = {  # code, virtual key code, text
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Backspace": ("Backspace", 8, ""),
    "Delete": ("Delete", 46, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    "F8": ("F8", 119, ""),
    " ": ("Space", 32, " "),
}
MODIFIERS: Final = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_AS_WIDE = "!document.querySelector('meta[name=viewport]') || Math.abs(document.documentElement.clientWidth - %d) <= 20"
"""Whether the page is laid out for a width; a scroll bar may take a part of it."""
_LOST: Final = ("context was destroyed", "Cannot find context", "navigated or closed", "Promise was collected")
_NEEDS_A_NAME: Final = frozenset(
    {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "listbox", "image", "spinbutton", "tab"}
)

_UNTIL = """
new Promise((resolve) => {
  const events = ["input", "change", "focusin", "focusout", "load", "error"];
  let waiting = true, frames = 0;
  const look = () => {
    let value;
    try { value = (%s); } catch (error) { return; }
    if (!value || !waiting) return;
    waiting = false;
    observer.disconnect();
    for (const name of events) removeEventListener(name, look, true);
    resolve(value);
  };
  const frame = () => {  // no event tells that a box or the content of a canvas has changed
    if (waiting && frames++ %% 6 === 0) look();
    if (waiting) requestAnimationFrame(frame);
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  for (const name of events) addEventListener(name, look, true);
  look();
  frame();
})
"""
_NOW = """
(() => { try { return (%s); } catch (error) { return null; } })()
"""  # a page without scripts changes only by loading
_PLACE = """
(() => {
  const found = document.querySelector(%s);
  if (!found || document.readyState !== "complete") return null;  // without its styles it is elsewhere
  found.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const box = found.getBoundingClientRect();
  if (!box.width || !box.height) return null;
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const hit = document.elementFromPoint(x, y);
  const label = hit && hit.closest("label");
  const free = hit && (found.contains(hit) || hit.contains(found) || (label && label.control === found));
  return free ? [x, y, box.width, box.height] : null;
})()
"""
_AIM = """
(() => {
  const found = document.querySelector(%s), events = ["pointerdown", "mousedown", "mouseup", "click"];
  window.hit = false;
  const heard = (event) => {
    const at = event.target, label = at.closest("label");
    if (found && (found.contains(at) || (label && label.control === found))) {
      if (event.type === "%s") window.hit = true;
    } else {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  };
  for (const name of events) addEventListener(name, heard, true);
  window.aimed = () => {
    for (const name of events) removeEventListener(name, heard, true);
    return window.hit;
  };
})()
"""  # a press that misses does nothing: elsewhere it could open another page


class Page:
    """A browser tab. A console error fails the test at the end, unless `expect` has announced it."""

    def __init__(self, connection: Connection, session: str, errors: list[str]) -> None:
        self._connection = connection
        self._session = session
        self._events = Events()
        self._scripts = True
        # The TypeScript SDK reports a message that was on its way when the page ended its stream.
        self._expected = [re.compile(r"^no stream for id; discarding id \d+n?$")]
        self._errors = errors
        self.dialogs: list[str] = []
        """Kinds of the dialogs that pages have opened, such as `beforeunload`; each is accepted."""
        connection.listen(session, self._hear)

    async def call(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol for this tab."""
        return await self._connection.call(method, self._session, **parameters)

    async def prepare(self) -> None:
        """Set up the tab; call it once, before anything else."""
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            await self.call(f"{domain}.enable")
        await self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def _hear(self, method: str, parameters: dict[str, Any]) -> None:
        text = ""
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            text = " ".join(str(value.get("value", value.get("description", ""))) for value in parameters["args"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            text = f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}"
        if text and not any(pattern.search(text) for pattern in self._expected):
            self._errors.append(text)
        if method == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["type"])
            self._connection.post("Page.handleJavaScriptDialog", self._session, accept=True)
        self._events.put(method, parameters)

    def expect(self, pattern: str) -> None:
        """Ignore console errors that match `pattern` from here on, such as `status of 404`."""
        self._expected.append(re.compile(pattern))

    # ---- navigation

    async def goto(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        answer = await self.call("Page.navigate", url=url)
        assert not answer.get("errorText"), f"{url}: {answer['errorText']}"
        if answer.get("loaderId"):  # absent if only the fragment after # differs
            await self._loaded(lambda loader: loader == answer["loaderId"])

    async def follow(self, url: str) -> None:
        """Open an address whose page leads to another one by itself; wait for what that one shows."""
        answer = await self.call("Page.navigate", url=url)
        assert not answer.get("errorText"), f"{url}: {answer['errorText']}"

    async def reload(self) -> None:
        """Reload the page."""
        before = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["loaderId"]
        await self.call("Page.reload")
        await self._loaded(lambda loader: loader != before)

    async def _loaded(self, true: Callable[[str], bool]) -> None:
        try:
            with trio.fail_after(LIMIT):
                await self._events.until(
                    lambda method, event: (
                        method == "Page.lifecycleEvent" and event["name"] == "load" and true(event["loaderId"])
                    )
                )
        except trio.TooSlowError:
            raise AssertionError(f"the page was not loaded within {LIMIT} s") from None

    async def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Resize the tab, in CSS pixels; with `phone`, emulate a phone: a finger, and no mouse."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        await self.call("Emulation.setTouchEmulationEnabled", enabled=phone, maxTouchPoints=5 if phone else 1)
        await self.until(_AS_WIDE % width)  # the page notices it later

    async def appearance(self, scheme: str) -> None:
        """Emulate a preference for a color scheme, `light` or `dark`, and for pages without motion."""
        features = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")]
        await self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features]
        )

    async def scripts(self, *, enabled: bool) -> None:
        """Allow or forbid scripts in pages that are opened from now on."""
        await self.call("Emulation.setScriptExecutionDisabled", value=not enabled)
        self._scripts = enabled

    # ---- reading

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    async def until(self, expression: str, *, limit: float = LIMIT) -> Any:
        """Wait until an expression is true, and return it. It is evaluated when the page changes or is drawn.

        Survives navigation.
        """
        with trio.move_on_after(limit):
            while True:
                try:
                    if self._scripts:
                        return await self.evaluate(_UNTIL % expression)
                    if value := await self.evaluate(_NOW % expression):
                        return value
                    await self._events.until(lambda method, _: method == "Page.lifecycleEvent")
                except Refused as error:
                    if not any(words in str(error) for words in _LOST):
                        raise
                    await self._events.until(
                        lambda method, parameters: method in ("Runtime.executionContextCreated", "Page.loadEventFired")
                    )
        raise AssertionError(f"not within {limit} s: {expression}\n{await self._summary()}")

    async def until_text(self, words: str, selector: str = "body", *, limit: float = LIMIT) -> str:
        """Wait until the element that matches `selector` shows `words`, and return its whole text."""
        element = f"document.querySelector({json.dumps(selector)})"
        shown = await self.until(
            f"{element}.innerText.includes({json.dumps(words)}) && [{element}.innerText]", limit=limit
        )
        return str(shown[0])

    async def until_gone(self, selector: str, *, limit: float = LIMIT) -> None:
        """Wait until nothing matches `selector`."""
        await self.until(f"!document.querySelector({json.dumps(selector)})", limit=limit)

    async def until_path(self, path: str, *, limit: float = LIMIT) -> None:
        """Wait until the address has this path and is loaded."""
        await self.until(f"location.pathname === {json.dumps(path)} && document.readyState === 'complete'", limit=limit)

    async def path(self) -> str:
        """Return the path of the current address, without host and query."""
        return str(await self.evaluate("location.pathname"))

    async def text(self, selector: str = "body") -> str:
        """Return the visible text of an element; wait until the element exists."""
        shown = await self.until(f"[document.querySelector({json.dumps(selector)}).innerText]")
        return str(shown[0])

    async def texts(self, selector: str) -> Sequence[str]:
        """Return the visible text of each matching element."""
        elements = f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)"
        texts: list[str] = await self.evaluate(elements)
        return texts

    async def value(self, selector: str) -> str:
        """Return the value of a field."""
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)}).value"))

    async def count(self, selector: str) -> int:
        """Return the number of matching elements."""
        return int(await self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length"))

    async def unnamed(self) -> list[str]:
        """Return the controls and images without an accessible name; there should be none."""
        tree = (await self.call("Accessibility.getFullAXTree"))["nodes"]
        shown = [node for node in tree if not node.get("ignored")]
        return [
            f"{node['role']['value']} {node.get('value', {}).get('value', '')!r}"
            for node in shown
            if node.get("role", {}).get("value") in _NEEDS_A_NAME and not node.get("name", {}).get("value")
        ]

    async def overflow(self) -> int:
        """Return how many CSS pixels the page is wider than the window; it should be 0 on a phone."""
        return int(await self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    async def screenshot(self, file: Path) -> None:
        """Save a screenshot of the tab as PNG."""
        picture = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await trio.Path(file).write_bytes(base64.b64decode(picture["data"]))

    async def _summary(self) -> str:
        try:
            return str(await self.evaluate("location.href + '\\n' + document.body.innerText.slice(0, 2000)"))
        except (AssertionError, Refused) as error:
            return f"(the page cannot be read: {error})"

    # ---- input

    async def click(self, selector: str) -> None:
        """Click the middle of the element that matches `selector`, once it is visible and nothing covers it."""
        for _ in range(5):  # elements move while the page is drawn: a click may miss
            x, y, _, _ = await self.until(_PLACE % json.dumps(selector))
            await self.evaluate(_AIM % (json.dumps(selector), "click"))
            for kind in ("mousePressed", "mouseReleased"):
                await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            try:
                if not self._scripts or await self.evaluate("!window.aimed || aimed()"):
                    return
            except Refused as error:
                if not any(words in str(error) for words in _LOST):
                    raise
                return  # the click opened another page
        raise AssertionError(f"{selector} moves all the time")

    async def crash(self) -> None:
        """End the process of the page, so that it cannot say anything. The next `goto` starts another."""
        with trio.move_on_after(0.05):  # there is no answer
            await self.call("Page.crash")

    async def network(self, *, on: bool) -> None:
        """Connect the tab to the network, or cut it off."""
        await self.call(
            "Network.emulateNetworkConditions", offline=not on, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )

    async def hold(self, selector: str, right: float = 0.0, down: float = 0.0) -> None:
        """Press the mouse in the middle of an element and keep it pressed, moved by shares of half its size."""
        common = {"button": "left", "clickCount": 1}
        for _ in range(5):  # elements move while others are filled: a press may miss
            x, y, width, height = await self.until(_PLACE % json.dumps(selector))
            await self.evaluate(_AIM % (json.dumps(selector), "pointerdown"))
            await self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **common)
            if await self.evaluate("hit && aimed()"):
                break
            await self.release()
            await self.evaluate("aimed()")
        else:
            raise AssertionError(f"{selector} moves all the time")
        if right or down:
            x, y = x + right * width / 2, y + down * height / 2
            await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)

    async def release(self) -> None:
        """Release the mouse."""
        await self.call("Input.dispatchMouseEvent", type="mouseReleased", x=1, y=1, button="left", clickCount=1)

    async def key(self, key: str, *, down: bool) -> None:
        """Press a key and keep it pressed, or release it."""
        code, number, _ = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0]), key))
        kind = "rawKeyDown" if down else "keyUp"
        await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number)

    async def press(self, keys: str) -> None:
        """Press a key, such as `Enter`, `Control+ ` or `Shift+Tab`."""
        *held, key = keys.split("+")
        code, number, text = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0]), key))
        mask = sum(MODIFIERS[modifier] for modifier in held)
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": mask}
        with_text = {"text": text} if text and not mask & ~MODIFIERS["Shift"] else {}
        kind = "keyDown" if with_text else "rawKeyDown"
        editing = {"commands": ["selectAll"]} if keys == "Control+a" else {}
        await self.call("Input.dispatchKeyEvent", type=kind, **common, **with_text, **editing)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def type(self, text: str) -> None:
        """Type into the focused element, character by character."""
        for character in text:
            if character == "\n":
                await self.press("Enter")
            else:
                await self.call("Input.insertText", text=character)

    async def fill(self, selector: str, text: str) -> None:
        """Replace the content of a field at once, as pasting does."""
        await self.focus(selector)
        await self.press("Control+a")
        if text:
            await self.call("Input.insertText", text=text)
        else:
            await self.press("Delete")

    async def focus(self, selector: str) -> None:
        """Focus an element."""
        element = f"document.querySelector({json.dumps(selector)})"
        await self.until(
            f"(({element})?.focus(), document.activeElement !== document.body && document.activeElement === {element})"
        )

    async def select(self, selector: str, value: str) -> None:
        """Select an option of a list by its value."""
        element = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{element} && [...{element}.options].some((one) => one.value === {json.dumps(value)})")
        await self.evaluate(
            f"{element}.value = {json.dumps(value)}, {element}.dispatchEvent(new Event('input', {{bubbles: true}})),"
            f" {element}.dispatchEvent(new Event('change', {{bubbles: true}}))"
        )
