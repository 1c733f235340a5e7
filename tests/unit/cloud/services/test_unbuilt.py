"""Every published call that is not implemented fails with a clear error."""

from __future__ import annotations

import pytest

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


def test_unknown_services_and_callers_without_keys() -> None:
    assert "containers" in str(reason_unsupported("/viam.app.mltraining.v1.MLTrainingService/GetContainer", SERVED))
    assert "billing" in str(reason_unsupported("/viam.app.v1.BillingService/PayInvoice", SERVED))
    assert reason_unsupported("/somebody.Else/Call", SERVED) is None
    assert reason_unsupported("/", SERVED) is None
