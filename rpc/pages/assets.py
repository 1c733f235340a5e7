"""Static files, read once, and Jinja set up once: everything is escaped, an unknown name is an error."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rpc.pages import words

TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
SHARED: Final = Path(__file__).parent / "static"
TEMPLATES: Final = Path(__file__).parent / "templates"


class Assets:
    """The shared files and those of `folders`; the last folder that has a file wins.

    Each is addressed with a digest of its content and may be cached for ever.
    """

    def __init__(self, *folders: Path) -> None:
        self._files = {
            path.name: path.read_bytes()
            for folder in (SHARED, *folders)
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


def cache_control(*, versioned: bool) -> str:
    """How long a file may be kept: for ever under the address with its digest."""
    return "public, max-age=31536000, immutable" if versioned else "no-cache"


def environment(templates: Sequence[Path], assets: Assets) -> Environment:
    """Jinja for the folders `templates`, with the templates, filters and names that all pages share."""
    made = Environment(
        loader=FileSystemLoader([*templates, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = (
        words.short, words.api, words.kind, words.model_word, words.dom_id, words.href, words.shorten,
        words.capitalize_first, words.place_in, words.bytes_text, words.ago, words.clock, words.clock_ms,
    )  # fmt: skip
    made.filters.update({function.__name__: function for function in filters})
    made.globals.update(asset=assets.url)
    return made
