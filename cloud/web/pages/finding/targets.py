"""What a search over the whole cloud leads to: pages, pages of machines, fragments and help. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

EACH: Final = 8  # targets of a kind


class SearchTarget(Struct, frozen=True):
    """A page to go to. `detail` is what distinguishes it from others with the same title."""

    kind: str
    title: str
    href: str
    detail: str = ""


ACTIONS: Final = (
    SearchTarget("Action", "New machine", "/#new", "add a machine, install machine-agent"),
    SearchTarget("Action", "New key", "/keys", "for a program or a person"),
    SearchTarget("Action", "Invite a person", "/keys", "members of the organization"),
    SearchTarget("Action", "Organize locations", "/locations"),
    SearchTarget("Action", "Search the logs of all machines", "/logs", "errors and warnings"),
    SearchTarget("Action", "Roll out a version", "/releases", "update machines"),
    SearchTarget("Action", "Train a model", "/datasets", "from a dataset"),
)
"""Things to do, and the pages where they are done."""


def matching(text: str, targets: Iterable[SearchTarget]) -> list[SearchTarget]:
    """Return the first targets with all words of `text` in title or detail, those whose title begins so first."""
    words = text.lower().split()
    ranked: list[tuple[bool, int, SearchTarget]] = []
    for number, target in enumerate(targets):
        title = target.title.lower()
        if all(word in f"{title} {target.detail.lower()}" for word in words):
            ranked.append((not title.startswith(text.lower()), number, target))
    return [target for *_, target in sorted(ranked, key=lambda entry: entry[:2])[:EACH]]


def split_tab(text: str, tabs: Sequence[tuple[str, str]]) -> tuple[str, tuple[str, str] | None]:
    """Return the words for a machine, and the page of it that the last word begins: `rover lo` is the log of rover."""
    first, _, last = text.rpartition(" ")
    tab = next((tab for tab in tabs if tab[0].lower().startswith(last.lower())), None)
    return (first.strip(), tab) if first.strip() and last and tab is not None else (text, None)


def machine_targets(
    machines: Iterable[tuple[str, str, str]], tabs: Sequence[tuple[str, str]], tab: tuple[str, str] | None
) -> Iterator[SearchTarget]:
    """Yield the page of each machine (name, location, id of its main part); with `tab`, that page of it."""
    for name, location, part in machines:
        title, path = tab or tabs[0]
        yield SearchTarget("Machine", f"{name}: {title}" if tab else name, path.format(id=part), location)
