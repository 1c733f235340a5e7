"""The machine's own fakes, built in and in a module: clients cannot distinguish them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.apis import base_of
from rpc.api.client import ApiClient, methods_for
from schema.errors import MachineError
from schema.names import API
from tests.e2e.module_api.test_same_tests import until_ready
from tests.e2e.sdk.machine import COMPONENTS, SERVICES
from tests.e2e.server.process import server

FIXTURE = Path(__file__).parent / "fixtures" / "fakes_module.py"
NAMES = {item["name"] for item in (*COMPONENTS, *SERVICES)}
VARYING = {"get_images", "get_point_cloud", "get_events", "get_poses", "discover_resources"}
"""Methods whose results change over time or belong to another simulated bench: only the types are compared."""


def in_module(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same entry as a resource of the module, with all its dependencies renamed."""
    subtype = entry["api"].rpartition(":")[2]
    return {
        **entry,
        "name": f"m-{entry['name']}",
        "model": f"acme:every:{subtype}",
        "attributes": {key: renamed(key, value) for key, value in entry.get("attributes", {}).items()},
    }


def renamed(key: str, value: Any) -> Any:
    if key in ("board", "encoder"):
        return f"m-{value}"
    return [f"m-{item}" for item in value] if key in ("left", "right") else value


def plain(value: Any, *, form: bool) -> Any:
    """Return a value without the module's prefix of names and with rounded numbers; with `form`, only its types."""
    if isinstance(value, Mapping):
        return {key.replace("m-", ""): plain(each, form=form) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each, form=form) for each in value[:1]] if form else [plain(each, form=form) for each in value]
    if form:
        return type(value)
    if isinstance(value, float):
        return round(value, 6)
    return value.replace("m-", "") if isinstance(value, str) else value


def simple(api: API) -> list[str]:
    """Return the read-only methods without arguments."""
    base = base_of(api)
    results = []
    for name, method in methods_for(api).items():
        function = getattr(base, name, None)
        if function is None or method.server_streaming or not name.startswith(("get_", "is_", "discover")):
            continue
        parameters = list(inspect.signature(function).parameters.values())[1:]
        if all(parameter.default is not parameter.empty for parameter in parameters):
            results.append(name)
    return results


async def outcome(client: ApiClient, api: API, name: str, method: str) -> Any:
    try:
        return plain(await client.call(api, name, method), form=method in VARYING)
    except MachineError as error:
        return error.kind


async def test_every_reading_method_returns_the_same(tmp_path: Path) -> None:
    path = tmp_path / "fakes"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {FIXTURE} "$@"\n')
    path.chmod(0o755)
    document = {
        "modules": [{"name": "every", "executable_path": str(path), "env": {"MACHINE_HARDWARE": "sim"}}],
        "components": [*COMPONENTS, *map(in_module, COMPONENTS)],
        "services": [*SERVICES, *map(in_module, SERVICES)],
    }
    different, compared = {}, 0
    async with server(tmp_path, document, "-hardware", "sim", running=True) as running, running.client() as client:
        await until_ready(client, *NAMES, *(f"m-{name}" for name in NAMES))
        for entry in (*COMPONENTS, *SERVICES):
            api, name = API.parse(entry["api"]), entry["name"]
            for method in simple(api):
                built_in = await outcome(client, api, name, method)
                of_module = await outcome(client, api, f"m-{name}", method)
                compared += 1
                if built_in != of_module:
                    different[f"{api}.{method}"] = (built_in, of_module)
    assert not different
    assert compared > 90
