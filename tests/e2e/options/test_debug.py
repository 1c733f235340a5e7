"""-webprofile on the real process: every page under /debug/, and who may read it."""

from __future__ import annotations

import contextlib
import json
import pstats
import select
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.e2e.harness import Server
from tests.e2e.options.support import LIMIT_S, get, inside, motor, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server({"components": [motor("m")]}, tmp_path_factory.mktemp("debug"), "-webprofile") as server:
        yield server.wait_running()


def test_the_index_lists_all_pages(server: Server) -> None:
    status, body = get(server, "/debug/")
    assert status == 200
    for word in (b"/debug/profile", b"/debug/tasks", b"/debug/memory", b"/debug/graph", b"/debug/metrics"):
        assert word in body


def test_tasks_are_a_tree_with_stacks(server: Server) -> None:
    text = get(server, "/debug/tasks")[1].decode()
    assert text.startswith("<init>\n")
    assert "rdk:component:motor/m" in text
    assert "runtime/parts/web/debug.py" not in text.splitlines()[0]
    assert " _serve\n" in text
    indents = {len(line) - len(line.lstrip()) for line in text.splitlines()}
    assert len(indents) > 5


def test_the_graph_in_all_forms(server: Server) -> None:
    text = get(server, "/debug/graph")[1].decode()
    assert "internal/rpc: ready" in text
    assert "  requires internal/sessions" in text
    dot = get(server, "/debug/graph?format=dot")[1].decode()
    assert dot.startswith("digraph machine {")
    assert '"internal/rpc" -> "internal/sessions";' in dot
    picture = ElementTree.fromstring(get(server, "/debug/graph?format=svg")[1].decode())
    assert "motor/m" in "".join(picture.itertext())


def test_counters_are_those_of_ftdc(server: Server) -> None:
    values = json.loads(get(server, "/debug/metrics")[1])
    assert values["proc.machine-server.RssMB"] > 10
    assert values["rdk:component:motor/m.State"] == 0


def busy(server: Server, path: str) -> bytes:
    """Return the body of a page, while requests for another page keep the server busy."""
    with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)) as connection:
        connection.request("GET", path)
        while not select.select([connection.sock], [], [], 0)[0]:
            get(server, "/debug/graph?format=svg")
        answer = connection.getresponse()
        body = answer.read()
    assert answer.status == 200, body
    return body


def test_a_profile_contains_the_functions_that_ran(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "profile"
    file.write_bytes(busy(server, "/debug/profile?seconds=1&format=pstats"))
    names = {name for _, _, name in pstats.Stats(str(file)).stats}  # type: ignore[attr-defined]
    assert "get_events" in names  # a function of the event loop
    assert "function calls" in get(server, "/debug/pprof/profile?seconds=0.1&format=text")[1].decode()


def test_collapsed_stacks_name_frames_from_outside_in(server: Server) -> None:
    text = busy(server, "/debug/profile?seconds=1").decode()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        assert int(count) > 0
        assert ";" in stack
    assert "runtime/server/app.py:main" in text


def test_memory_lists_allocations(server: Server) -> None:
    text = get(server, "/debug/memory?seconds=0.2")[1].decode()
    assert text.startswith("allocated and not freed")
    assert "objects: " in text
    assert "builtins.dict" in text


LONG_PROFILE = """
import urllib.error, urllib.request
while True:
    try:
        urllib.request.urlopen("http://{}/debug/memory?seconds=5").read()
        break
    except urllib.error.HTTPError as error:
        assert error.code == 409  # a short one of the test's own is being taken
"""


def test_a_second_profile_is_refused_while_one_is_taken(server: Server) -> None:
    with subprocess.Popen([sys.executable, "-c", LONG_PROFILE.format(server.address)]) as first:
        until(lambda: get(server, "/debug/memory?seconds=0.01")[0] == 409, "a second one was let in")
        first.terminate()
    # a profile ends when its client disconnects
    until(lambda: get(server, "/debug/memory?seconds=0.01")[0] == 200, "the first one goes on")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/debug/nothing", 404),
        ("/debug/profile?seconds=soon", 400),
        ("/debug/profile?seconds=1e9", 400),
        ("/debug/graph?format=png", 400),
    ],
)
def test_invalid_requests_are_refused(server: Server, path: str, status: int) -> None:
    assert get(server, path)[0] == status


def test_without_the_option_pages_are_missing_until_the_document_enables_them(tmp_path: Path) -> None:
    with Server({}, tmp_path) as server:
        server.wait_running()
        status, body = get(server, "/debug/")
        assert (status, b"-webprofile" in body) == (404, True)
        server.write({"enable_web_profile": True, "network": {"bind_address": "localhost:0"}})
        until(lambda: get(server, "/debug/")[0] == 200, "the document is not followed")


def test_only_callers_on_this_computer(tmp_path: Path) -> None:
    assert inside("debug", tmp_path) == {
        "localhost": 200,
        "192.0.2.1": 403,
        "a name that leads here": 421,
    }  # Host is not a name of the server


def test_keys_over_plaintext_from_other_hosts_need_allow_insecure_creds(tmp_path: Path) -> None:
    assert inside("credentials", tmp_path) == {
        "without, localhost": "let in",
        "without, 192.0.2.1": "refused",
        "with, localhost": "let in",
        "with, 192.0.2.1": "let in",
    }
