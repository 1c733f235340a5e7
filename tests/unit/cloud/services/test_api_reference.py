"""The reference page of published calls that the cloud serves is current and complete."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from cloud.services.target import SERVICES
from cloud.services.unbuilt import reason_unsupported
from rpc.api.methods import methods_of
from rpc.api.table import SERVICES as PUBLISHED

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "tools" / "gen_cloud_api_reference.py"
    spec = importlib.util.spec_from_file_location("gen_cloud_api_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(generator: ModuleType) -> None:
    assert generator.PAGE.read_text() == generator.page(), "run make generate"


@pytest.mark.parametrize("service", SERVICES)
def test_every_published_call_has_one_row(generator: ModuleType, service: str) -> None:
    section = generator.page().partition(f"## {service}\n")[2].partition("\n## ")[0]
    for method in methods_of(PUBLISHED[service]).values():
        call = method.path.rpartition("/")[2]
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{call}` |")]
        assert len(row.removeprefix(f"| `{call}` |").strip(" |")) > 5


def test_services_without_a_class_are_refused_as_a_whole(generator: ModuleType) -> None:
    page = generator.page()
    for service, _ in generator.REFUSED:
        assert service not in SERVICES
        assert f"`{service}`" in page
        assert reason_unsupported(f"/{service}/Any", frozenset(SERVICES))
