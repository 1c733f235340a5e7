"""Secrets anywhere in a document appear in no log, difference, error, status or page of the machine."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.components.sensing.sensor import Sensor
from engine.options import Options
from engine.registry import Registry
from engine.resource import Attributes, Started
from models import BUILTIN
from runtime.server.memory import MemoryMachine, open_machine
from runtime.server.pages.app import app
from telemetry.logs import loggers
from telemetry.logs.entry import format_line
from telemetry.logs.loggers import REVEALED, Logs
from tests.unit.runtime.parts.web.client import JSON, Browser

OLD, NEW = "hunter2-of-old", "hunter2-of-new"
EXAMPLES = int(os.environ.get("MACHINE_SECRET_EXAMPLES", "8"))  # half a second each; 25 or more to search for leaks
ROBOT = "viam.robot.v1.RobotService"


class LeakyAttributes(Attributes, frozen=True, kw_only=True):
    """Attributes of a driver that does not protect them."""

    password: str = ""
    url: str = ""
    fails: bool = False


class Leaky(Sensor):
    """Log the attributes and include them in the driver's error."""

    Config = LeakyAttributes

    async def run(self, *, task_status: Started) -> None:
        config = self.attributes
        self.log.warning(f"connecting with {config.password} to {config.url}", config=msgspec.to_builtins(config))
        logging.getLogger("a.library").error("login %s refused", config.password)
        if config.fails:
            try:
                raise ConnectionError(f"{config.url} refuses {config.password}")
            except ConnectionError as error:
                self.log.exception("failed")
                raise RuntimeError(f"no connection as {config.password!r}") from error
        task_status.started()
        await trio.sleep_forever()


def registry() -> Registry:
    return Registry({**BUILTIN, ("rdk:component:sensor", "test:leaky:sensor"): f"{__name__}:Leaky"})


def leaky(name: str, secret: str, **more: Any) -> dict[str, Any]:
    attributes = {"password": secret, "url": f"rtsp://me:{secret}@camera/1", **more}
    return {"name": name, "api": "rdk:component:sensor", "model": "test:leaky:sensor", "attributes": attributes}


def document(secret: str, extra: dict[str, Any]) -> dict[str, Any]:
    """Return a document with secrets in every section that can hold them."""
    whole = {
        "revision": f"of {len(secret)} {secret[-3:]}",
        "modules": [
            {
                "name": "m",
                "executable_path": "/nowhere/m",
                "module_id": "a:b",
                "env": {"API_KEY": secret, "ANYTHING": secret, "DB": f"mqtt://u:{secret}@h"},
            }
        ],
        "remotes": [
            {
                "name": "far",
                "address": f"http://u:{secret}@far:1",  # not a valid address: nothing is dialed
                "secret": secret,
                "auth": {"entity": "e", "credentials": {"type": "api-key", "payload": secret}},
            }
        ],
        "components": [
            leaky("ready", secret),
            leaky("failing", secret, fails=True),
            leaky("odd", secret, token={"deep": [secret]}, settings=[{"name": "API_KEY", "value": secret}]),
            {**leaky("wrong", secret), "attributes": {"password": [secret]}},
            {**leaky("unknown", secret), "model": "nobody:has:this", "service_configs": [
                {"type": "data_manager", "attributes": {"mongo_capture_config": {"uri": f"mongodb://u:{secret}@h"}}}
            ]},
            {**leaky("broken", secret), "name": "no good name"},
        ],
        "services": [{"name": "s", "api": "rdk:service:generic", "model": "fake", "attributes": {"psk": secret}}],
        "auth": {"handlers": [{"type": "api-key", "config": {"operator": secret, "keys": ["operator"]}}]},
        "packages": [{"name": "p", "package": "o/p", "version": "1", "type": "ml_model", "token": secret}],
        "jobs": [{
            "name": "j", "schedule": "1h", "resource": "ready", "method": "DoCommand", "command": {"password": secret},
        }],
        "tracing": {"otlpendpoint": f"http://u:{secret}@collector:4317"},
        "agent": {"network_configuration": {"hotspot_password": secret}, "additional_networks": {"a": {"psk": secret}}},
        "triggers": [{"name": "t", "notifications": [{"type": "webhook", "value": f"https://h/?token={secret}"}]}],
        "unknown_section": {"secret": secret},
    }  # fmt: skip
    return {**whole, **extra}


mistakes = st.fixed_dictionaries(
    {},
    optional={
        "cloud": st.just({"id": "part", "secret": 5}),
        "maintenance": st.just({"sensor_name": f"http://u:{NEW}@h", "maintenance_allowed_key": 1}),
        "modules": st.sampled_from(
            [[{"name": "m", "api_key": NEW, "env": {"A": [NEW]}}], [{"env": {"A": NEW}}], {"secret": NEW}]
        ),
        "auth": st.sampled_from([{"handlers": [{"type": "magic", "config": {"x": NEW}}]}, {"token": NEW}]),
        "remotes": st.just([{"name": "far", "address": f"u:{NEW}@h", "secret": [NEW]}]),
        "jobs": st.just([{"name": "j", "schedule": "soon", "secret": NEW}]),
        "log": st.just([{"pattern": "(", "level": "x", "token": NEW}]),
        "components": st.sampled_from(
            [
                [leaky("ready", NEW), leaky("ready", NEW)],
                [{**leaky("ready", NEW), "password": NEW}],
                [{**leaky("ready", NEW), "attributes": {"secret": NEW, "password": {"a": NEW}}}],
            ]
        ),
    },
)


def texts(logs: Logs) -> list[str]:
    return [f"{format_line(entry)} {dict(entry.fields)!r}" for entry in logs.ring.entries()]


async def everything_shown(memory: MemoryMachine) -> list[str]:
    """Return the machine's status, pages and RobotService answer as text."""
    machine = memory.machine
    browser = Browser(app(machine), state={"authentication": True, "identity": "somebody"})
    shown = [repr(machine.status()), repr(await memory.client().call(ROBOT, "", "get_machine_status"))]
    names = [f"/resources/{resource.name}" for resource in machine.status().resources]
    pages = ("/", "/logs?level=debug", "/status.json", "/logs.json", "/healthz")
    for page in (*pages, *names, *(f"{name}.json" for name in names)):
        headers = JSON if page.endswith("json") else {"accept": "text/html"}
        shown.append((await browser.get(page, headers)).text)
    return shown


async def change(memory: MemoryMachine, data: bytes) -> None:
    """Write a document and wait until the machine has reacted."""
    memory.write(data)
    await trio.testing.wait_all_tasks_blocked(0.05)


async def scenario(logs: Logs, extra: dict[str, Any], *, reveal: bool) -> list[str]:
    """Return everything shown by a machine whose document changes, is truncated and has mistakes."""
    options = Options(config=Path("memory.json"), reveal_sensitive_config_diffs=reveal, debug=True)
    first = {"debug": True, **document(OLD, {})}
    async with open_machine(first, registry=registry(), logs=logs, options=options) as memory:
        with trio.fail_after(60):
            await memory.machine.lifecycle.running.wait()
            shown = await everything_shown(memory)
            await change(memory, json.dumps(document(NEW, {})).encode())
            shown += await everything_shown(memory)
            await change(memory, json.dumps(document(NEW, extra)).encode())
            shown += await everything_shown(memory)
            text = json.dumps(document(NEW, {}), indent=1)
            await change(memory, text[: text.index(NEW) + 4].encode())
            await change(memory, text.replace(NEW, f'{NEW}"', 3).encode())
            shown += await everything_shown(memory)
    return shown


def run(extra: dict[str, Any], *, reveal: bool) -> tuple[list[str], Logs]:
    from telemetry.logs.ring import LogRing

    before = logging.getLogger().level
    pipeline = loggers.configure_logs(ring=LogRing(20_000))
    try:
        shown: list[str] = trio.run(lambda: scenario(pipeline, extra, reveal=reveal))  # modules need the real clock
    finally:
        pipeline.close()
        logging.getLogger().setLevel(before)
    return shown, pipeline


def leaks(texts: list[str]) -> list[str]:
    results = [(text, text.find(secret)) for text in texts for secret in (OLD, NEW)]
    return [text[max(0, place - 300) : place + 60] for text, place in results if place >= 0]


@pytest.mark.limit(300 + 5 * EXAMPLES)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extra=mistakes)
def test_no_secret_is_shown(extra: dict[str, Any]) -> None:
    shown, logs = run(extra, reveal=False)
    lines = texts(logs)
    assert any("connecting with *** to rtsp://me:***@camera" in line for line in lines)  # the test sees these lines
    assert any("no connection as '***'" in page for page in shown)
    assert any("changed (hidden)" in line for line in lines)
    assert leaks(lines) == []
    assert leaks(shown) == []


def test_revealed_differences_show_what_changed_and_nothing_else_does() -> None:
    shown, logs = run({}, reveal=True)
    revealed = [entry for entry in logs.ring.entries() if REVEALED in entry.fields]
    others = [
        f"{format_line(item)} {dict(item.fields)!r}" for item in logs.ring.entries() if REVEALED not in item.fields
    ]
    assert any(f'attributes.password: "{OLD}" -> "{NEW}"' in str(element.fields[REVEALED]) for element in revealed)
    assert any(f"rtsp://me:{OLD}@camera/1" in str(result.fields[REVEALED]) for result in revealed)
    assert leaks(others) == []
    logs_pages = [page for page in shown if "the configuration changed" in page]
    assert leaks([page for page in shown if page not in logs_pages]) == []
