"""Every published call that is not implemented fails with a clear error."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import viam.gen.app

from cloud.services.app import AppService
from cloud.services.target import SERVICES
from cloud.services.unbuilt import reason_unsupported
from rpc.api import table
from rpc.api.methods import methods_of

SERVED = frozenset(SERVICES)
ENTRY = table.SERVICES["viam.app.v1.AppService"]
UNBUILT = sorted(first.path for name, first in methods_of(ENTRY).items() if not hasattr(AppService, name))


@pytest.mark.parametrize("path", UNBUILT)
def test_every_unsupported_call_has_a_sentence(path: str) -> None:
    result = reason_unsupported(path, SERVED)
    assert result is not None
    assert result.startswith(path.rpartition("/")[2])


def test_every_sentence_says_more_than_not_built() -> None:
    assert len(UNBUILT) < 50
    assert not [path for path in UNBUILT if "this cloud does not support" in str(reason_unsupported(path, SERVED))]


def published() -> list[str]:
    """Return the paths of all calls of the cloud that the official SDK knows."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(viam.gen.app.__path__, "viam.gen.app.")
        if module.name.endswith("_pb2")
    ]
    services = [service for module in modules for service in module.DESCRIPTOR.services_by_name.values()]
    return [f"/{service.full_name}/{method.name}" for service in services for method in service.methods]


def test_every_published_service_is_served_or_has_a_sentence() -> None:
    paths = [path for path in published() if path.split("/")[1] not in SERVED]
    assert len(paths) > 20
    assert not [path for path in paths if reason_unsupported(path, SERVED) is None]


def test_unknown_services_and_callers_without_keys() -> None:
    assert "containers" in str(reason_unsupported("/viam.app.mltraining.v1.MLTrainingService/GetContainer", SERVED))
    assert "billing" in str(reason_unsupported("/viam.app.v1.BillingService/PayInvoice", SERVED))
    assert reason_unsupported("/somebody.Else/Call", SERVED) is None
    assert reason_unsupported("/", SERVED) is None
