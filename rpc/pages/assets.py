"""Static files, and the Jinja environment, which escapes all values and rejects unknown names.

Files are read when they are first needed and then kept, with a compressed form for browsers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from starlette.requests import Request
from starlette.responses import Response

from rpc.pages.compression import LEAST, compress
from support.text import words

TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
SHARED: Final = Path(__file__).parent / "static"
BUILT: Final = SHARED / "built"
"""Folder of what `web/` builds; it is checked in."""
TEMPLATES: Final = Path(__file__).parent / "templates"


class Assets:
    """Static files of the shared folder and of `folders`; later folders override files of earlier ones.

    `url` and `get` know a file by its name, such as base.css. Files that `web/` builds are known by the name of their
    island, such as control.js; `styles` returns the style sheets of an island. Their own names contain a digest,
    because modules import each other by name.
    """

    def __init__(self, *folders: Path) -> None:
        self._paths = {
            path.name: path
            for folder in (SHARED, *folders)
            for path in sorted(folder.iterdir())
            if path.suffix in TYPES and path.is_file()
        }
        self._built = {path.name: path for path in sorted(BUILT.iterdir()) if path.suffix in TYPES}
        self._urls: dict[str, str] = {}
        self._data: dict[str, bytes] = {}
        self._compressed: dict[str, bytes] = {}

    def url(self, name: str) -> str:
        """Return the URL of a file, which changes with its content; KeyError if it does not exist."""
        if name not in self._urls:
            digest = hashlib.blake2s(self._read(name), digest_size=6).hexdigest() if name in self._paths else ""
            self._urls[name] = f"/static/{name}?v={digest}" if digest else f"/static/{self._islands[name]}"
        return self._urls[name]

    def styles(self, island: str) -> Sequence[str]:
        """Return the URLs of the style sheets of an island, also of those of modules that it imports; KeyError."""
        return [f"/static/{name}" for name in self._styles[island]]

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return content and content type of a file, None if it does not exist."""
        if name not in self._paths and name not in self._built:
            return None
        return self._read(name), TYPES[Path(name).suffix]

    async def respond(self, request: Request, name: str) -> Response | None:
        """Return the response with a file, compressed if the client accepts it; None if it does not exist."""
        if (asset := self.get(name)) is None:
            return None
        data, media_type = asset
        versioned = "v" in request.query_params or name in self._built
        headers = {
            "content-type": media_type,
            "cache-control": "public, max-age=31536000, immutable" if versioned else "no-cache",
            "vary": "accept-encoding",
        }
        if "gzip" in request.headers.get("accept-encoding", "") and len(data) >= LEAST:
            if name not in self._compressed:
                self._compressed[name] = await compress(data)
            data, headers["content-encoding"] = self._compressed[name], "gzip"
        return Response(data, headers=headers)

    def _read(self, name: str) -> bytes:
        if name not in self._data:
            self._data[name] = (self._paths.get(name) or self._built[name]).read_bytes()
        return self._data[name]

    @cached_property
    def _islands(self) -> Mapping[str, str]:
        """Names of built scripts by the name of their island."""
        return {f"{entry['name']}.js": entry["file"] for entry in self._manifest.values() if entry.get("isEntry")}

    @cached_property
    def _styles(self) -> Mapping[str, Sequence[str]]:
        """Names of built style sheets by the name of their island, those of imported modules first."""
        return {
            entry["name"]: list(dict.fromkeys(self._styles_of(key, frozenset())))
            for key, entry in self._manifest.items()
            if entry.get("isEntry")
        }

    def _styles_of(self, key: str, above: frozenset[str]) -> Iterator[str]:
        entry = self._manifest[key]
        for imported in entry.get("imports", ()):
            if imported not in above:  # modules may import each other
                yield from self._styles_of(imported, above | {key})
        yield from entry.get("css", ())

    @cached_property
    def _manifest(self) -> Mapping[str, Any]:
        manifest: dict[str, Any] = msgspec.json.decode((BUILT / "manifest.json").read_bytes())
        return manifest


class _Compiled(BytecodeCache):
    """Compiled templates, shared by all environments of the process."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED: Final = _Compiled()


def template_compilers(jinja: Environment) -> list[Callable[[], object]]:
    """Return functions that compile each template of an environment, for all environments of the process.

    Call them in a thread before the first page: a template takes up to 0.1 s, for which it would hold up the event
    loop.
    """
    return [partial(jinja.get_template, name) for name in jinja.list_templates()]


def template_environment(templates: Sequence[Path], assets: Assets) -> Environment:
    """Return a Jinja environment for the folders `templates`, with the shared templates, filters and globals."""
    jinja = Environment(
        loader=FileSystemLoader([*templates, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_COMPILED,
    )
    filters = (
        words.short, words.api, words.kind, words.model_word, words.dom_id, words.href, words.shorten,
        words.capitalize_first, words.pairs_text, words.path_in, words.bytes_text, words.ago, words.clock,
        words.clock_ms,
    )  # fmt: skip
    jinja.filters.update({function.__name__: function for function in filters})
    jinja.globals.update(asset=assets.url, styles=assets.styles)
    return jinja
