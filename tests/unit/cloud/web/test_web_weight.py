"""Pages with much data stay small: bytes and queries of each. bench/cloud_pages.py measures times."""

from __future__ import annotations

import re
import threading

import jinja2
import pytest

from bench.cloud_pages import KILOBYTES, Amounts, Measured, measure
from cloud.web.common import site

QUERIES = 80


async def test_templates_are_compiled_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, load = set[int](), jinja2.Environment.get_template

    def watched(self: jinja2.Environment, name: str) -> jinja2.Template:
        threads.add(threading.get_ident())
        return load(self, name)

    monkeypatch.setattr(jinja2.Environment, "get_template", watched)
    await site.compile_pages()
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def by_page(amounts: Amounts) -> dict[str, Measured]:
    """Return the measurements of each page by path, without the id of the part and the number of the delivery."""
    result = await measure(amounts, 1)
    return {re.sub(r"^/machines/[^/]+|\d+$", "", item.path): item for item in result}


async def test_pages_stay_within_their_budget_of_bytes_and_queries() -> None:
    little = await by_page(Amounts(machines=3, lines=300, readings=300, files=40, deliveries=40, revisions=12))
    much = await by_page(Amounts(machines=240, lines=1500, readings=900, files=90, deliveries=90, revisions=24))
    assert much["/"].size > 2 * little["/"].size  # there was more to show
    for path, first in much.items():
        assert first.size <= KILOBYTES * 1000, path
        assert first.queries <= QUERIES, path
        assert first.queries <= little[path].queries, path
