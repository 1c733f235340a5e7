"""Static files, read once, and the Jinja environment, which escapes all values and rejects unknown names."""

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
    """Static files of the shared folder and of `folders`; later folders override files of earlier ones.

    The URL of a file contains a digest of its content, so that it can be cached indefinitely.
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
        """Return the URL of a file; KeyError if it does not exist."""
        return f"/static/{name}?v={self._digests[name]}"

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return content and content type of a file, None if it does not exist."""
        data = self._files.get(name)
        return None if data is None else (data, TYPES[Path(name).suffix])


def cache_control(*, versioned: bool) -> str:
    """Return the Cache-Control value of a file; files at a versioned URL may be cached indefinitely."""
    return "public, max-age=31536000, immutable" if versioned else "no-cache"


def environment(templates: Sequence[Path], assets: Assets) -> Environment:
    """Return a Jinja environment for the folders `templates`, with the shared templates, filters and globals."""
    jinja = Environment(
        loader=FileSystemLoader([*templates, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = (
        words.short, words.api, words.kind, words.model_word, words.dom_id, words.href, words.shorten,
        words.capitalize_first, words.path_in, words.bytes_text, words.ago, words.clock, words.clock_ms,
    )  # fmt: skip
    jinja.filters.update({function.__name__: function for function in filters})
    jinja.globals.update(asset=assets.url)
    return jinja
