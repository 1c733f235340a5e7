"""Programs that connect to a machine, ready to copy. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

ID: Final = "YOUR KEY ID"
KEY: Final = "YOUR KEY"

_TOKEN: Final = r"""sed 's/.*"accessToken": *"\([^"]*\).*/\1/'"""  # filters it from the answer


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """What a program needs to know of a machine.

    `host` is its name in the cloud's domain, "" without such a domain; `pages` is the URL at which the machine itself
    serves, "" if it is unknown; `sensor` is one of its sensors, "" if it has none.
    """

    machine: str
    part: str
    cloud: str  # URL
    host: str = ""
    pages: str = ""
    sensor: str = ""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program: `needs` are commands that install what it uses, and `note` is a condition, "" if there is none."""

    id: str
    title: str
    needs: str
    text: str
    note: str = ""


def snippets(target: ConnectTarget, key_id: str = ID, key: str = KEY) -> list[Snippet]:
    """Return a program for each way to call a machine, with a key."""
    return [
        _python(target, key_id, key),
        _typescript(target, key_id, key),
        _command(target, key_id),
        _curl(target, key_id, key),
    ]


def _direct(target: ConnectTarget) -> tuple[str, bool, str]:
    """Return the address for an SDK, whether it is dialled without TLS, and the condition under which it works."""
    if target.host:
        port = urlsplit(target.cloud).port
        return target.host + (f":{port}" if port else ""), target.cloud.startswith("http:"), ""
    if target.pages:
        plain = target.pages.startswith("http:")
        note = "In the network of the machine only." + (" It is not encrypted." if plain else "")
        return urlsplit(target.pages).netloc, plain, note
    return "ADDRESS OF THE MACHINE", False, "The machine has not reported its address yet."


def _python(target: ConnectTarget, key_id: str, key: str) -> Snippet:
    address, plain, note = _direct(target)
    dial = ["    options.dial_options.insecure = True  # without TLS"] if plain else []
    if not target.host and not plain:  # viam-sdk 0.85 cannot do both without TLS
        dial += ["    options.dial_options.disable_webrtc = True  # this address is the machine itself"]
    lines = [
        "import asyncio",
        "",
        *(["from viam.components.sensor import Sensor"] if target.sensor else []),
        "from viam.robot.client import RobotClient",
        "",
        "",
        "async def main():",
        "    options = RobotClient.Options.with_api_key(",
        f"        api_key={_text(key)},",
        f"        api_key_id={_text(key_id)},",
        "    )",
        *dial,
        f"    address = {_text(address)}",
        "    connection = RobotClient.at_address(address, options)",
        "    async with await connection as machine:",
        "        print(machine.resource_names)",
    ]
    if target.sensor:
        lines.append(f"        sensor = Sensor.from_robot(machine, {_text(target.sensor)})")
        lines.append("        print(await sensor.get_readings())")
    lines += ["", "", "asyncio.run(main())"]
    return Snippet("python", "Python", "pip install viam-sdk", "\n".join(lines), note)


def _typescript(target: ConnectTarget, key_id: str, key: str) -> Snippet:
    lines = [
        "import * as VIAM from '@viamrobotics/sdk';",
        "",
        # Not createRobotClient: it takes a connection whose ICE is already "completed" for none (SDK 0.61.1).
        "const machine = await new VIAM.RobotClient().dial({",
        f"  host: {_text(target.host or target.part)},",  # the id alone names a part, too
        f"  signalingAddress: {_text(target.cloud)},",
        "  credentials: {",
        '    type: "api-key",',
        f"    authEntity: {_text(key_id)},",
        f"    payload: {_text(key)},",
        "  },",
        "});",
        "console.log(await machine.resourceNames());",
    ]
    if target.sensor:
        lines.append(f"const sensor = new VIAM.SensorClient(machine, {_text(target.sensor)});")
        lines.append("console.log(await sensor.getReadings());")
    lines.append("await machine.disconnect();")
    return Snippet(
        "typescript",
        "TypeScript",
        "npm install @viamrobotics/sdk",
        "\n".join(lines),
        "In a browser, or in Node.js with @roamhq/wrtc.",
    )


def _command(target: ConnectTarget, key_id: str) -> Snippet:
    name = shlex.quote(target.machine)
    lines = [
        f"machine cloud login {shlex.quote(target.cloud)} \\",
        f"  --key-id {shlex.quote(key_id)}  # asks for the key",
        f"machine --cloud {name} status",
        f"machine open {name}",
    ]
    if target.sensor:
        lines.insert(3, f"machine --cloud {name} call {shlex.quote(target.sensor)} get_readings")
    return Snippet("command", "Command line", "", "\n".join(lines), "From anywhere.")


def _curl(target: ConnectTarget, key_id: str, key: str) -> Snippet:
    credentials = json.dumps({"type": "api-key", "payload": key}, ensure_ascii=False)
    body = f'{{"entity": {_text(key_id)},\n    "credentials": {credentials}}}'
    name = quote(target.sensor, safe="")
    path = f"/viam/api/v1/component/sensor/{name}/readings" if target.sensor else "/viam/api/v1/resources/list"
    lines = [
        f"token=$(curl -s {shlex.quote(target.cloud + '/rpc/v1/authenticate')} \\",
        f"  -d {shlex.quote(body)} \\",
        f"  | {_TOKEN})",
        'curl -H "Authorization: Bearer $token" \\',
        f"  -H {shlex.quote('machine-part: ' + target.part)} \\",
        f"  {shlex.quote(target.cloud + path)}",
    ]
    return Snippet("curl", "curl", "", "\n".join(lines), "From anywhere.")


def _text(value: str) -> str:
    """Return a string literal of Python and of TypeScript."""
    return json.dumps(value, ensure_ascii=False)


def first_sensor(names: Iterable[str]) -> str:
    """Return the short name of the first sensor among names such as `rdk:component:sensor/air`; "" if there is none."""
    return next((name.partition("/")[2] for name in names if name.startswith("rdk:component:sensor/")), "")
