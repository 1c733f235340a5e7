"""The browser harness reads pages, waits, and reports failures."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
import trio

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults

pytestmark = needs_chromium
PAGE = """
<!doctype html><title>x</title><body><label>Name <input id=name></label><button id=go>Go</button><p id=out></p>
<script>document.getElementById("go").onclick = () => setTimeout(() => {
  document.getElementById("out").textContent = "hello " + document.getElementById("name").value; }, 50);</script>
"""


def address(text: str) -> str:
    return "data:text/html," + quote(text)


async def test_a_page_is_filled_clicked_and_read(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.goto(address(PAGE))
        await page.fill("#name", "wrong")
        await page.fill("#name", "Ada")
        await page.type(" L")
        await page.press("Backspace")
        await page.click("#go")
        assert await page.until_text("hello", "#out") == "hello Ada"
        assert await page.unnamed() == []


async def test_an_error_of_the_console_fails_the_test(tmp_path: Path) -> None:
    async def faulty() -> None:
        async with browser(tmp_path) as page:
            await page.goto(address("<body><script>nonsense()</script>"))
            await page.until_text("")

    with pytest.raises(AssertionError, match="nonsense") as caught:
        await faulty()
    assert (tmp_path / "failure.png").read_bytes().startswith(b"\x89PNG")
    assert "picture" in "".join(caught.value.__notes__)


async def test_a_timeout_reports_the_content_of_the_page(tmp_path: Path) -> None:
    async def waiting() -> None:
        async with browser(tmp_path) as page:
            await page.goto(address(PAGE))
            await page.until_text("never", limit=0.2)

    with pytest.raises(AssertionError, match=re.escape("Go")):
        await waiting()


async def test_unnamed_controls_and_wide_pages_are_detected(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.size(390, 800, phone=True)
        meta = "<!doctype html><meta name=viewport content='width=device-width'>"
        await page.goto(address(f"{meta}<body style='margin:0'><input><p style='width:500px;margin:0'>x"))
        assert [item.split()[0] for item in await page.unnamed()] == ["textbox"]
        assert 100 < await page.overflow() < 120  # the width of a scroll bar varies


BAD = """
<!doctype html><meta name=viewport content='width=device-width'><style>
  button:focus-visible { outline: none } .pale { color: #999 } @keyframes turn { to { rotate: 1turn } }
  .moving { animation: turn 1s infinite } @media (prefers-color-scheme: dark) { .dim { color: #333; background: #000 } }
</style><body><h1>One</h1><h1>Two</h1><h4>Four</h4><p class=pale>pale</p><p class=dim>dim</p><p class=moving>moving</p>
<button tabindex=2 style='padding:0;width:12px'>x</button><input aria-describedby=nothing>
<i id=a></i><i id=a></i><nav></nav><nav></nav><a href=/ target=_blank>out</a><table><tr><th>x</table>
<div style='width:700px'>wide</div>
"""


async def test_defects_of_a_page_are_detected(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.goto(address(BAD))
        result = "\n".join(await faults(page))
        for fault in (
            "unnamed: textbox", "does not say its language", "has no title", "0 main landmarks", "2 headings",
            "heading Four skips", "id a is there twice", "tabindex 2", "aria-describedby names nothing", "navigations",
            "th x has no scope", "opens a window", "BUTTON x shows no focus", "contrast, light: pale",
            "contrast, dark: dim", "1 animations", "pixels too wide", "on a phone: BUTTON x is 12",
        ):  # fmt: skip
            assert fault in result, (fault, result)
        assert "contrast, light: dim" not in result


LATE = """
<!doctype html><title>late</title>
<script>
const states = [], place = document.elementFromPoint.bind(document);
document.elementFromPoint = (x, y) => { states.push(document.readyState); return place(x, y); };
</script>
<link rel=stylesheet href=/styles.css><link rel=icon href=data:>
<body><button id=second>Second</button><button id=first>First</button>
"""
STYLES = "#first { position: absolute; top: 400px; left: 400px }"


async def test_a_click_waits_for_styles_that_arrive_after_the_text(tmp_path: Path) -> None:
    """When they do, a button moves to where another one was pressed."""
    released = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            request = (await stream.receive_some(65536)).split(b" ")
            if request[1] == b"/styles.css":
                await released.wait()
            kind, body = ("css", STYLES) if request[1] == b"/styles.css" else ("html", LATE)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/{kind}\r\nContent-Length: {len(body)}\r\n"
            await stream.send_all(f"{head}Connection: close\r\n\r\n{body}".encode())

    async with browser(tmp_path) as page, trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        await page.follow(f"http://127.0.0.1:{port}/")
        await page.until("document.querySelector('#first')")

        async def release() -> None:
            with trio.move_on_after(0.5):  # time in which a click that does not wait looks for the button
                while not await page.evaluate("states.length"):
                    pass
            released.set()

        nursery.start_soon(release)
        await page.click("#first")
        assert await page.evaluate("states[0]") == "complete"
        nursery.cancel_scope.cancel()


MOVING = """
<!doctype html><title>moving</title><style>button { position: absolute; top: 0; left: 0; width: 80px }</style><body>
<button id=second>Second</button><button id=first>First</button>
<script>
const pressed = [], place = document.elementFromPoint.bind(document);
for (const name of ["pointerdown", "mousedown", "mouseup", "click"])
  document.body.addEventListener(name, (event) => pressed.push(event.target.id));
document.elementFromPoint = (x, y) => {
  setTimeout(() => { document.getElementById("first").style.top = "300px"; });
  return place(x, y);
};
</script>
"""


async def test_a_press_that_misses_does_nothing(tmp_path: Path) -> None:
    """The element moves between aiming and pressing, and leaves another one in its place."""
    async with browser(tmp_path) as page:
        await page.goto(address(MOVING))
        await page.click("#first")
        assert await page.evaluate("pressed") == ["first"] * 4
        await page.goto(address(MOVING))
        await page.hold("#first")
        assert await page.evaluate("pressed") == ["first"] * 2


DRAWN = """
<!doctype html><title>drawn</title><body><canvas id=canvas width=10 height=10></canvas><script>
setTimeout(() => { document.getElementById("canvas").getContext("2d").fillRect(0, 0, 10, 10); }, 300);
</script>
"""


async def test_waiting_notices_what_changes_without_an_event(tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.goto(address(DRAWN))
        await page.until("canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] > 0", limit=20)
