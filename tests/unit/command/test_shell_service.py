"""`machine shell` and `machine copy` name the reason for which there is no shell service."""

from __future__ import annotations

from typing import Any, cast

import pytest

from command.machine.shell import API, service_of
from rpc.api.client import ApiClient
from schema.errors import MachineError

REFUSED = "rdk:builtin:builtin runs programs that the configuration names, which -untrusted-env refuses"


class Machine:
    """A machine whose only resource is a shell service that is not ready."""

    def __init__(self, *resources: dict[str, Any]) -> None:
        self.resources = resources

    async def call(self, service: str, name: str, method: str, **arguments: Any) -> Any:
        return [] if method == "resource_names" else {"resources": list(self.resources), "config": {}}


def resource(name: str, state: int, error: str) -> dict[str, Any]:
    names = {"namespace": "rdk", "type": "service", "subtype": "shell", "name": name}
    return {"name": names, "state": state, "error": error, "last_updated": None, "revision": ""}


async def refusal(*resources: dict[str, Any], service: str = "") -> str:
    with pytest.raises(MachineError) as caught:
        await service_of(cast(ApiClient, Machine(*resources)), service)
    return str(caught.value)


async def test_a_service_that_is_refused_is_named_with_the_reason() -> None:
    text = await refusal(resource("shell", 5, REFUSED))
    assert REFUSED in text
    assert "add {" not in text


async def test_without_a_service_the_remedy_is_to_add_one() -> None:
    assert f'add {{"name": "shell", "api": "{API}"}}' in await refusal()
    assert "add {" in await refusal(resource("shell", 5, REFUSED), service="other")
