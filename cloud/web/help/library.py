"""The pages of the documentation: their titles and headings, search in these, and their text as HTML.

Reading and rendering block for some milliseconds a page: call them in a thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from posixpath import normpath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from schema import ErrorKind, MachineError

FOLDERS: Final = ("tutorial", "howto", "reference")  # of the documentation that is shown; design is for developers
_INSTALLED: Final = Path(__file__).parent / "pages"  # in a wheel
_SOURCES: Final = Path(__file__).parents[3] / "docs"  # in a checkout
_HEADING: Final = re.compile(r"(#{1,3}) (.*)")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_LABEL: Final = re.compile(r"^\([a-z-]+\)=\n", re.MULTILINE)
_INCLUDE: Final = re.compile(r"```\{literalinclude\} ([a-z.-]{1,99}+)\n[^`]{0,999}+```")
_MARKUP: Final = re.compile(r"[`*]|\]\([^)]{0,300}+\)|\[")
MOST_FOUND: Final = 8  # pages that a search returns


@dataclass(frozen=True, slots=True)
class HelpHeading:
    """A heading of a page, and the anchor of its place there; "" for the title."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class HelpPage:
    """A page: its path (`howto/triggers`), its title, and its other headings."""

    path: str
    title: str
    headings: tuple[HelpHeading, ...]


@dataclass(frozen=True, slots=True)
class HelpGroup:
    """Pages under a caption, in the order in which to read them."""

    caption: str
    pages: tuple[HelpPage, ...]


class HelpLibrary:
    """The documentation in a folder. `groups` has the pages that index.md lists, `pages` all of them by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: Mapping[str, HelpPage] = {
            page.path: page
            for name in FOLDERS
            for path in sorted((folder / name).glob("*.md"))
            for page in [_page(f"{name}/{path.stem}", path.read_text("utf-8"))]
        }
        self.groups = tuple(_groups((folder / "index.md").read_text("utf-8"), self.pages))

    def search(self, text: str) -> list[tuple[HelpPage, HelpHeading]]:
        """Return the best headings with all words of `text`, one for each page: titles come before other headings."""
        words = text.lower().split()
        if not words:
            return []
        ranked = []
        for page in self.pages.values():
            for number, heading in enumerate((HelpHeading(page.title, ""), *page.headings)):
                content = f"{page.title} {heading.text}".lower()
                if all(word in content for word in words):
                    begins = any(heading.text.lower().startswith(word) for word in words)
                    ranked.append(((number > 0, not begins, page.path.startswith("reference")), page, heading))
                    break
        ranked.sort(key=lambda entry: (entry[0], entry[1].title.lower()))
        return [(page, heading) for _, page, heading in ranked[:MOST_FOUND]]

    def html(self, path: str) -> str:
        """Return the text of a page as HTML; NOT_FOUND if there is none."""
        if path not in self.pages:
            raise MachineError(f"there is no help page {path!r}", kind=ErrorKind.NOT_FOUND, remedy="search at /help")
        return _rendered(self, path)


@cache
def help_library() -> HelpLibrary:
    """Return the documentation of this version."""
    return HelpLibrary(_INSTALLED if _INSTALLED.is_dir() else _SOURCES)


def _page(path: str, text: str) -> HelpPage:
    headings = list(_headings(text))
    title = headings[0].text if headings else path
    return HelpPage(path, title, tuple(headings[1:]))


def _headings(text: str) -> Iterator[HelpHeading]:
    is_code, anchors = False, _Anchors()
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and (match := _HEADING.fullmatch(line)):
            plain = _MARKUP.sub("", match[2]).strip()
            yield HelpHeading(plain, anchors.next(plain))


def _groups(index: str, pages: Mapping[str, HelpPage]) -> Iterator[HelpGroup]:
    """Yield the pages of each toctree of index.md, under its caption."""
    caption, listed = "", list[HelpPage]()
    for line in index.splitlines():
        if line.startswith(":caption: "):
            caption = line.removeprefix(":caption: ")
        elif line in pages:
            listed.append(pages[line])
        elif line == "```" and listed:
            yield HelpGroup(caption, tuple(listed))
            listed.clear()


class _Anchors:
    """The anchors of a page's headings, as the documentation's own links have them; repeated ones are numbered."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def next(self, heading: str) -> str:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
        self._counts[anchor] += 1
        return anchor if self._counts[anchor] == 1 else f"{anchor}-{self._counts[anchor] - 1}"


@lru_cache(maxsize=32)
def _rendered(library: HelpLibrary, path: str) -> str:
    text = _LABEL.sub("", (library.folder / f"{path}.md").read_text("utf-8"))
    directory = (library.folder / path).parent
    text = _INCLUDE.sub(lambda match: f"```\n{(directory / match[1]).read_text('utf-8')}```", text)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    _mark(tokens)
    for token in tokens:
        if token.children:
            token.children = list(_linked(token.children, path, library.pages))
    html = str(parser.renderer.render(tokens, parser.options, {}))
    return html.replace("<pre><code", '<pre tabindex="0"><code')


def _mark(tokens: Sequence[Token]) -> None:
    """Add anchors to headings, and make what may be wider than the page reachable by keyboard."""
    anchors = _Anchors()
    for token, content in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "heading_open" and token.tag in {"h1", "h2", "h3"}:
            token.attrSet("id", anchors.next(_MARKUP.sub("", content.content).strip()))
        elif token.type == "table_open":
            token.attrSet("tabindex", "0")


def _linked(tokens: Sequence[Token], path: str, pages: Mapping[str, HelpPage]) -> Iterator[Token]:
    """Yield tokens of a line. Links lead to pages of the help; those to files that are not here become plain text.

    A link without a text has the title of its page.
    """
    is_plain = False
    for token, following in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "link_open":
            target = _target(str(token.attrGet("href") or ""), path, pages)
            is_plain = not target
            if is_plain:
                continue
            token.attrSet("href", target)
            if following.type == "link_close":
                page = pages.get(target.removeprefix("/help/").partition("#")[0])
                yield token
                yield Token("text", "", 0, content=page.title if page else target)
                continue
        elif token.type == "link_close" and is_plain:
            is_plain = False
            continue
        yield token


def _target(href: str, path: str, pages: Mapping[str, HelpPage]) -> str:
    """Return the address of a link of a page; "" if it leads to nothing that the cloud serves."""
    place, _, anchor = href.partition("#")
    if ":" in place or href.startswith("#"):
        return href
    page = normpath(f"{path.rpartition('/')[0]}/{place}").removesuffix(".md")
    return f"/help/{page}{'#' if anchor else ''}{anchor}" if page in pages else ""
