"""Rendering of the pages' templates."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from engine.views import health_word
from rpc.pages import Assets, template_compilers, template_environment

STATES: Final = ("ready", "configuring", "unhealthy", "removing", "unconfigured")
"""The states of the published API, in display order."""

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"


def compile_pages() -> None:
    """Compile the templates, in a thread; see `compilers`."""
    for compiled in template_compilers(Renderer(Assets(STATIC)).environment):
        compiled()


class Renderer:
    """Renders whole pages, and parts of them for live updates."""

    def __init__(self, assets: Assets) -> None:
        self.environment = template_environment([_HERE / "templates"], assets)
        self.environment.globals.update(known_states=STATES)
        self.environment.filters["health_word"] = health_word

    def page(self, template: str, **context: Any) -> str:
        """Render a page."""
        return self.environment.get_template(template).render(now=_now(), **context)

    def part(self, macro: str, *arguments: object) -> str:
        """Render one macro of parts.html."""
        module = self.environment.get_template("parts.html").make_module({"now": _now()})
        return str(getattr(module, macro)(*arguments))


def _now() -> datetime:
    return datetime.now(UTC)
