"""The reference pages of the APIs are current and complete."""

import importlib.util
from pathlib import Path

import pytest

from engine.apis import BASES, base_of
from rpc.api.client import methods_for

ROOT = Path(__file__).resolve().parents[4]


def generator():
    spec = importlib.util.spec_from_file_location("gen_api_reference", ROOT / "tools" / "gen_api_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current():
    module = generator()
    assert module.PAGE.read_text() == module.page(), "run make generate"


@pytest.mark.parametrize("api", [pytest.param(api, id=str(api)) for api in BASES])
def test_every_method_is_there_with_its_contract(api):
    module = generator()
    page = module.PAGE.read_text()
    section = page[page.index(f"`{api}`") :].partition("\n## ")[0]
    for name in methods_for(api):
        if name in module.COMMON:
            assert f"`{name}(" in module.HEAD
        else:
            rows = [line for line in section.splitlines() if line.startswith(f"| `{name}(")]
            assert len(rows) == 1
            assert rows[0].split(" | ")[-1].strip(" |")


def test_every_method_has_a_docstring_of_its_own():
    for api in BASES:
        base = base_of(api)
        for name in methods_for(api):
            assert getattr(base, name).__doc__, f"{base.__name__}.{name}"
