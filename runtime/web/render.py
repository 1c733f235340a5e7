"""Jinja set up once: everything is escaped, an unknown name is an error, nothing is read twice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from runtime.web import words

STATES: Final = ("ready", "configuring", "unhealthy", "removing", "unconfigured")
"""The states of the wire, in the order in which they are counted."""

TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}

_HERE: Final = Path(__file__).parent


class Assets:
    """The static files, read once; each is addressed with a digest of its content and may be cached for ever."""

    def __init__(self, shared: Path | None = None) -> None:
        folders = [_HERE / "static", *([shared] if shared is not None else [])]  # the last one that has a file wins
        self._files = {
            path.name: path.read_bytes()
            for folder in folders
            for path in sorted(folder.iterdir())
            if path.suffix in TYPES and path.is_file()
        }
        self._digests = {name: hashlib.blake2s(data, digest_size=6).hexdigest() for name, data in self._files.items()}

    def url(self, name: str) -> str:
        """Where the pages find a file; KeyError if there is none."""
        return f"/static/{name}?v={self._digests[name]}"

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Content and content type."""
        data = self._files.get(name)
        return None if data is None else (data, TYPES[Path(name).suffix])


class Renderer:
    """Renders pages, and single parts of them for the live connection."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        filters = (
            words.short, words.api, words.kind, words.model_word, words.dom_id, words.href, words.shorten,
            words.capitalize_first, words.ago, words.clock, words.clock_ms,
        )  # fmt: skip
        self._environment.filters.update({function.__name__: function for function in filters})
        self._environment.globals.update(known_states=STATES, asset=assets.url)

    def page(self, template: str, **context: Any) -> str:
        """A whole page."""
        return self._environment.get_template(template).render(now=_now(), **context)

    def part(self, macro: str, *arguments: object) -> str:
        """One macro of parts.html."""
        module = self._environment.get_template("parts.html").make_module({"now": _now()})
        return str(getattr(module, macro)(*arguments))


def _now() -> datetime:
    return datetime.now(UTC)
