"""The first request for a page loads the pages in a thread, once, and no template is compiled on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jinja2
import pytest
import trio

from rpc.pages.assets import Assets
from runtime.parts.web.render import STATIC, Renderer, compile_pages
from runtime.server.port.serving import LazyApp


async def test_an_application_is_loaded_once_in_a_thread() -> None:
    threads, answered = list[int](), list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await trio.lowlevel.checkpoint()
        answered.append(scope)

    def make() -> Callable[[Any, Any, Any], Any]:
        assert threading.get_ident() not in threads
        return app

    def load() -> Callable[[], Callable[[Any, Any, Any], Any]]:
        threads.append(threading.get_ident())
        return make

    lazy = LazyApp(load)
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(lazy, name, None, None)
    await lazy("d", None, None)
    assert sorted(answered) == ["a", "b", "c", "d"]
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_a_failure_to_load_is_reported_and_the_next_request_tries_again() -> None:
    attempts = 0

    def load() -> Callable[[], Any]:
        nonlocal attempts
        attempts += 1
        raise ImportError("no pages")

    lazy = LazyApp(load)
    for _ in range(2):
        with pytest.raises(ImportError, match="no pages"):
            await lazy({}, None, None)
    assert attempts == 2


def test_templates_are_compiled_before_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_pages()
    renderer = Renderer(Assets(STATIC))
    names = renderer.environment.list_templates()
    assert "overview.html" in names

    def compiled(*arguments: Any) -> None:
        raise AssertionError("a template is compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", compiled)
    for name in names:
        renderer.environment.get_template(name)
