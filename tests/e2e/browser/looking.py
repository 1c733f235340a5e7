"""Accessibility checks of a page: axe-core, names for screen readers, contrast, visible focus, width on a phone.

axe-core comes with the packages of tests/e2e/typescript. Where they are missing, a line says so and the others run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from tests.e2e.browser.page import Page

PHONE: Final = 360  # CSS pixels, width of the narrowest phones in use
DESK: Final = 1280
AXE: Final = Path(__file__).parents[1] / "typescript" / "node_modules" / "axe-core" / "axe.min.js"

# Findings of axe-core with an impact of serious or critical. Contrast is checked below, in both color schemes.
_AXE: Final = """
axe.run(document, {
  preload: false, resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } },
}).then((result) => result.violations
  .filter((each) => each.impact === "serious" || each.impact === "critical")
  .flatMap((each) => each.nodes.slice(0, 3).map((node) => `axe, ${each.id}: ${node.html.slice(0, 120)}`)))
"""

_STRUCTURE: Final = """
(() => {
  const said = [], all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (one) => one.checkVisibility({ visibilityProperty: true });
  if (!document.documentElement.lang) said.push("the page does not say its language");
  if (!document.title.trim()) said.push("the page has no title");
  if (all("main").length !== 1) said.push(`${all("main").length} main landmarks`);
  const titles = all("h1").filter(shown);
  if (titles.length !== 1) said.push(`${titles.length} headings of the first level`);
  let level = 1;
  for (const one of all("h1, h2, h3, h4").filter(shown)) {
    const own = Number(one.tagName[1]);
    if (own > level + 1) said.push(`heading ${one.innerText} skips a level`);
    level = own;
  }
  const ids = all("[id]").map((one) => one.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) said.push(`id ${id} is there twice`);
  for (const one of all("[tabindex]")) if (one.tabIndex > 0) said.push(`tabindex ${one.tabIndex} breaks the order`);
  for (const one of all("[aria-labelledby], [aria-describedby], [aria-controls]")) {
    for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
      for (const id of (one.getAttribute(name) || "").split(" ").filter(Boolean)) {
        if (!document.getElementById(id)) said.push(`${name} names ${id}, which is not there`);
      }
    }
  }
  const names = all("nav").filter(shown).map((one) => one.getAttribute("aria-label") || "");
  if (names.length > 1 && (new Set(names).size < names.length || names.includes(""))) said.push(`navigations ${names}`);
  for (const one of all("th")) if (!one.scope && !one.closest("thead")) said.push(`th ${one.innerText} has no scope`);
  for (const one of all("a[target=_blank]")) said.push(`link ${one.innerText} opens a window`);
  return said;
})()
"""

_FOCUS: Final = """
(() => {
  const said = [], before = document.activeElement;
  const can = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]";
  for (const one of document.querySelectorAll(can)) {
    if (one.disabled || one.tabIndex < 0 || !one.checkVisibility({ visibilityProperty: true })) continue;
    one.focus({ focusVisible: true, preventScroll: true });
    const what = `${one.tagName} ${(one.innerText || one.name || one.id).slice(0, 30)}`;
    if (document.activeElement !== one) { said.push(`${what} takes no focus`); continue; }
    const seen = [one, ...one.children, one.closest(".editor")].filter(Boolean).map((each) => getComputedStyle(each));
    const marked = (style) => style.outlineStyle !== "none" || style.strokeWidth === "2px";
    if (!seen.some(marked)) said.push(`${what} shows no focus`);
  }
  if (document.activeElement) document.activeElement.blur();
  if (before && before !== document.body) before.focus({ preventScroll: true });
  return said;
})()
"""

_TARGETS: Final = """
[...document.querySelectorAll("button, input:not([type=hidden], [type=checkbox]), select, textarea, summary")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width < 24 || box.height < 20)
  .map(([one, box]) => `${one.tagName} ${one.name || one.innerText} is ${box.width} x ${box.height}`)
"""

# WCAG 2.2, 1.4.3: contrast of text to its background, 4.5 : 1, large text 3 : 1. Images and SVG are excluded.
_CONTRAST: Final = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }), known = new Map();
  function rgba(color) {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  }
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  function behind(one) {
    const layers = [];
    for (let each = one; each; each = each.parentElement) layers.unshift(rgba(getComputedStyle(each).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  }
  const light = (color) => color.map((value) => value / 255)
    .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const said = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || one.closest("svg, script, template, option, :disabled")) continue;
    if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const style = getComputedStyle(one), back = behind(one), front = over(rgba(style.color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a), ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const where = `${text.slice(0, 40)} (${one.className || one.tagName})`;
    if (ratio < (large ? 3 : 4.5)) said.add(`${where}: ${ratio.toFixed(2)}`);
  }
  return [...said];
})()
"""

# A word of letters in three lines or more: its column is squeezed to a few letters.
_SQUEEZED: Final = """
(() => {
  const said = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, one = text.parentElement;
    if (one.closest("svg, script, template, option, textarea, .cm-tooltip")) continue; // opened before the resize
    if (!one.checkVisibility({ visibilityProperty: true })) continue;
    for (const word of text.data.matchAll(/\\p{L}{6,}/gu)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 2) said.push(`${word[0]} (${one.tagName}) has ${lines.size} lines`);
    }
  }
  return said.slice(0, 5);
})()
"""

_OPENED: Final = """
(() => {
  const closed = [...document.querySelectorAll("details:not([open], [name])")];
  for (const one of closed) one.toggleAttribute("data-looked", one.open = true);
})()
"""

_CLOSED: Final = """
for (const one of document.querySelectorAll("details[data-looked]")) {
  one.open = one.toggleAttribute("data-looked", false);
}
"""

_LINKS: Final = "[...document.links].filter((one) => !one.hasAttribute('download')).map((one) => one.href)"


async def faults(page: Page) -> list[str]:
    """Return the accessibility faults of the open page, for low vision, screen readers, keyboards and phones."""
    problems = [f"unnamed: {element}" for element in await page.unnamed()]
    problems += await page.evaluate(_STRUCTURE)
    problems += await page.evaluate(_FOCUS)
    problems += await axe_faults(page)
    for scheme in ("light", "dark"):
        await page.appearance(scheme)
        problems += [f"contrast, {scheme}: {text}" for text in await page.evaluate(_CONTRAST)]
    if moving := await page.evaluate("document.getAnimations().length"):
        problems.append(f"{moving} animations although motion is not wanted")
    await page.appearance("light")
    await page.size(PHONE, 740, phone=True)
    if wider := await page.overflow():
        problems.append(f"on a phone, the page is {wider} pixels too wide: {await _wide(page)}")
    problems += [f"on a phone: {target}" for target in await page.evaluate(_TARGETS)]
    await page.evaluate(_OPENED)
    if wider := await page.overflow():
        problems.append(f"on a phone with all details open, it is {wider} pixels too wide: {await _wide(page)}")
    problems += [f"on a phone, the word {word}" for word in await page.evaluate(_SQUEEZED)]
    await page.evaluate(_CLOSED)
    await page.size(DESK, 900)
    return problems


async def axe_faults(page: Page) -> list[str]:
    """Return what axe-core finds; for a page with an open dialog, outside of which nothing takes the focus."""
    script = _axe()
    if not script:
        return []
    await page.evaluate(script)
    return list(await page.evaluate(_AXE))


@cache
def _axe() -> str:
    """Return the script of axe-core; "" where it is not installed."""
    if AXE.exists():
        return AXE.read_text() + ";0"
    print(f"axe-core does not check the pages: there is no {AXE}; `make test` installs it")
    return ""


async def _wide(page: Page) -> Any:
    """Return the elements that extend beyond the window."""
    beyond = f"one.getBoundingClientRect().right > {PHONE} + 1"
    name = "`${one.tagName}.${one.className} ${(one.innerText || '').slice(0, 40)}`"
    every = "[...document.querySelectorAll('body *')]"
    return await page.evaluate(f"{every}.filter((one) => {beyond}).slice(0, 4).map((one) => {name})")


async def walk(
    page: Page, start: str, pattern: Callable[[str], str | None], *, skip: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Check every page that is reachable by links from `start`, one of each pattern, and return the faults of each.

    `pattern` returns the same value for pages of the same kind, or None for targets that are not pages.
    Patterns in `skip` are ignored.
    """
    home, ahead = urlsplit(start).netloc, [start]
    problems: dict[str, list[str]] = {}
    while ahead:
        url = ahead.pop(0)
        kind = pattern(url)
        if kind is None or kind in problems or kind in skip:
            continue
        await page.goto(url)
        await page.until("document.readyState === 'complete'")
        problems[kind] = await faults(page)
        links: list[str] = await page.evaluate(_LINKS)
        ahead += [urljoin(url, link).partition("#")[0] for link in links if urlsplit(link).netloc == home]
    return problems


def without_ids(url: str) -> str:
    """Return the path of a page without identifiers, with the names of its query parameters."""
    parts = urlsplit(url)
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/deliveries/)[^/]+|(?<=/modules/)[^/]+", "*", parts.path)
    names = sorted({parameter.partition("=")[0] for parameter in parts.query.split("&") if parameter})
    if "view=readings" in parts.query:
        names.append("readings")
    return path + (f"?{','.join(names)}" if names else "")
