"""The official TypeScript SDK against a cloud, in Node and in a page of Chromium, over gRPC-Web."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.server.memory import APP, ROBOT
from cloud.services.target import SERVICES
from cloud.services.unbuilt import reason_unsupported
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.sdk_calls import FILE, answered, calls, is_served, refused
from tests.e2e.cloud.sdk_others import others
from tests.e2e.cloud.sdk_table import CALLS
from tests.e2e.cloud.sdk_walk_training import script
from tests.e2e.typescript import expected

UNIMPLEMENTED = 12
PACKAGES = "viam.app.packages.v1.PackageService"
OVER = (ErrorKind.NOT_FOUND, ErrorKind.UNAUTHENTICATED, ErrorKind.UNAVAILABLE)  # the walk finally deletes everything
HERE = Path(__file__).parent
SDK = HERE / "node_modules" / "@viamrobotics" / "sdk" / "dist" / "main.es.js"
TRANSPORT = HERE / "node_modules" / "@connectrpc" / "connect-node"
PAGE = """<!doctype html><title>walk</title><script type="module">
import * as sdk from '/sdk.js';
import {{ walk }} from '/walk.mjs';
const [serviceHost, authEntity, payload, ...places] = {words};
const client = await sdk.createViamClient({{ serviceHost, credentials: {{ type: 'api-key', authEntity, payload }} }});
const number = (_, value) => (typeof value === 'bigint' ? Number(value) : value);
let text;
try {{
  text = JSON.stringify(await walk(client, sdk, ...places), number);
}} catch (error) {{
  text = JSON.stringify({{ failed: `${{error}} ${{error.stack}}` }});
}}
const result = document.createElement('pre');
result.id = 'result';
result.textContent = text;
document.body.append(result);
</script><body>"""


@pytest.fixture(autouse=True)
def _sdk() -> None:
    if not (SDK.exists() and TRANSPORT.exists()):
        pytest.skip("the TypeScript SDK is not installed: run tools/setup-node tests/e2e/typescript")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[CloudProcess]:
    """Run a cloud with a training script, whose machine logs an error repeatedly: a follower receives the next one."""
    noted, module = tmp_path / "calls", "tests.e2e.cloud.sdk_recorded"
    options = (f"--training-python={sys.executable}",)
    async with (
        cloud(tmp_path / "cloud", *options, module=module, environ={FILE: str(noted)}) as first,
        first.client() as owner,
        trio.open_nursery() as nursery,
    ):
        first.facts["calls"] = str(noted)
        first.facts["second"] = await others(first, tmp_path / "cloud")
        machine = await owner.call(APP, "", "new_robot", name="talker", location=first.facts["location"])
        first.facts["talker"] = (await owner.call(APP, "", "get_robot_parts", robot_id=machine))[0]["id"]
        values = {"organization_id": first.facts["organization"], "name": "lines", "version": "1"}
        await owner.call(PACKAGES, "", "create_package", **values, type="ML_TRAINING", pieces=pieces())
        nursery.start_soon(talk, owner, first.facts["talker"])
        yield first
        nursery.cancel_scope.cancel()


async def pieces() -> AsyncIterator[bytes]:
    yield script(1)


async def talk(client: ApiClient, part: str) -> None:
    while True:
        entry = {"level": "error", "logger_name": "talker", "message": "loud", "host": "h"}
        try:
            await client.call(ROBOT, "", "log", id=part, logs=[entry])
        except MachineError as error:
            if error.kind in OVER:
                return
            raise
        await trio.sleep(0.1)


def words(item: CloudProcess) -> list[str]:
    address = f"http://localhost:{item.address.rpartition(':')[2]}"
    return [address, *item.key, *(item.facts[name] for name in ("organization", "location", "talker", "second"))]


def refusals(kind: str) -> dict[str, list[Any]]:
    """Return the expected refusals of methods whose call this cloud does not serve."""
    values = {}
    for service, rows in CALLS.items():
        for call, _, methods in rows:
            text = reason_unsupported(f"{service}/{call}", frozenset(SERVICES))
            if methods and not is_served(service, call) and (service == "viam.app.v1.AppService") == (kind == "app"):
                values |= {method: [UNIMPLEMENTED, text] for method in methods.split()}
    return values


async def check(result: dict[str, Any], item: CloudProcess, *, web: bool) -> None:
    """Check every result, and that the calls in the SDK's source are those of the table and were reached."""
    assert "failed" not in result, result
    assert result["app"] == {**expected.APP, **refusals("app")}
    assert result["training"] == expected.TRAINING
    assert result["data"] == {**expected.DATA, **refusals("data"), **(expected.WEB if web else {})}
    table = {method: call.lower() for rows in CALLS.values() for call, _, names in rows for method in names.split()}
    sources = {method: call for client in result["methods"].values() for method, call in client.items()}
    assert {method: call.lower() for method, call in sources.items()} == table
    await item.stop()
    created = calls(Path(item.facts["calls"]))
    reached = answered(created) | refused(created, UNIMPLEMENTED)
    rows = [(service, call, set(methods.split())) for service, some in CALLS.items() for call, _, methods in some]
    required = {
        f"{service}/{call}" for service, call, methods in rows if methods - (expected.WEB.keys() if web else set())
    }
    assert required - reached == set()
    served = {element for element in required if is_served(*element.split("/"))}
    assert served - answered(created) == set()


@pytest.mark.parametrize("transport", ["web", "grpc"])
async def test_in_node(running: CloudProcess, transport: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed and could not be installed by tools/setup-node")
    with trio.fail_after(60):
        done = await trio.run_process(
            ["node", "cloud.mjs", transport, *words(running)],
            cwd=HERE,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode()
    await check(json.loads(done.stdout.splitlines()[-1]), running, web=transport == "web")


class Files(http.server.BaseHTTPRequestHandler):
    """Serve the page, the SDK and the walk from an origin other than the cloud's, like a user's own page."""

    def __init__(self, page: bytes, *args: Any) -> None:
        self.files = {
            "/": (page, "text/html"),
            "/sdk.js": (SDK.read_bytes(), "text/javascript"),
            **{f"/{path.name}": (path.read_bytes(), "text/javascript") for path in HERE.glob("*.mjs")},
        }
        super().__init__(*args)

    def do_GET(self) -> None:
        body, kind = self.files.get(self.path, (b"", "text/plain"))
        self.send_response(200 if body else 204)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def site(running: CloudProcess) -> Iterator[str]:
    page = PAGE.format(words=json.dumps(words(running))).encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, page))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@needs_chromium
async def test_in_a_page(running: CloudProcess, site: str, tmp_path: Path) -> None:
    async with browser(tmp_path / "chromium") as page:
        await page.goto(site)
        with trio.fail_after(60):
            await page.until("document.querySelector('#result')")
        await check(json.loads(await page.text("#result")), running, web=True)
