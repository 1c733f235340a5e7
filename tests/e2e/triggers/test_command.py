"""`machine cloud triggers` and whole deliveries, against a real cloud and a real receiver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import trio
from standardwebhooks.webhooks import Webhook

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.triggers.receiver import answering, receiver
from tests.unit.triggers.make import SECRET, conditional, raw

EXAMPLE = Path(__file__).parents[3] / "examples" / "webhook_receiver.py"
LIMIT = 60.0


async def settled(terminal: Terminal, delivery: str) -> dict[str, object]:
    """Return a delivery after its first attempt; repeat the query until then, as a person would."""
    with trio.fail_after(LIMIT):
        while True:
            content = json.loads(await terminal("triggers", "deliveries", "mill", delivery, "--json"))
            if content["attempts"]:
                return dict(content)


async def test_list_explain_test_deliveries_replay(tmp_path: Path) -> None:
    hot = {"operator": "gt", "value": {"t": 30}}
    async with cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running, receiver(answering(503)) as other:
        terminal = Terminal(running, tmp_path / "home")
        await terminal(
            "login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1]
        )
        await terminal("new", "mill")
        document = {
            "triggers": [
                raw(conditional(hot), {"type": "webhook", "value": other.url(), "secret": SECRET}, name="hot"),
                raw({"type": "part_onlin"}, name="broken"),
            ]
        }
        file = tmp_path / "machine.json"
        file.write_text(json.dumps(document))
        async with running.client() as client:
            app = "viam.app.v1.AppService"
            (place,) = await client.call(app, "", "list_organizations")
            (location,) = await client.call(app, "", "list_locations", organization_id=place["id"])
            (robot,) = await client.call(app, "", "list_robots", location_id=location["id"])
            (part,) = await client.call(app, "", "get_robot_parts", robot_id=robot["id"])
            await client.call(
                app, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document)
            )

        # the current triggers
        said = await terminal("triggers", "ls", "mill")
        assert 'sensor:t:Readings gt {"t": 30}' in said
        assert other.url() in said
        assert "problem: triggers.1.event.type" in said
        assert await terminal("triggers", "ls", "mill", "-q") == "hot\n"
        printed = json.loads(await terminal("triggers", "ls", "mill", "--json"))
        assert list(printed) == ["triggers", "problems", "warnings"]
        (trigger,) = printed["triggers"]
        assert trigger == {
            "name": "hot",
            "event": "conditional_data_ingested",
            "condition": {"data_capture_method": "sensor:t:Readings", "evals": [hot]},
            "notes": "",
            "targets": [
                {
                    "type": "webhook",
                    "value": other.url(),
                    "seconds": trigger["targets"][0]["seconds"],
                    "signed": True,
                    "until": None,
                    "stopped": "",
                }
            ],
        }

        # dry runs
        said = await terminal("triggers", "explain", "mill", "hot", "--reading", '{"t": 31}')
        assert "it would fire" in said
        assert "31 is greater than 30" in said
        said = await terminal("triggers", "explain", "mill", "hot", "--reading", "-", source='{"t": 29}', status=1)
        assert "29 is not greater than 30" in said
        printed = json.loads(await terminal("triggers", "explain", "mill", "hot", "--json", status=1))
        assert list(printed) == ["explanation", "targets", "reading"]
        assert (printed["explanation"]["fires"], printed["reading"]) == (False, None)
        assert "not JSON" in await terminal("triggers", "explain", "mill", "hot", "--reading", "{", status=2)
        assert not other.requests

        # a test, its delivery, and a replay with the same id
        sent = (await terminal("triggers", "test", "mill", "hot", "--reading", '{"t": 1}', "-q")).strip()
        first = await settled(terminal, sent)
        assert first["state"] == "failed"
        assert sorted(first) == [
            "attempts", "body", "component", "created", "event", "headers", "id", "method", "next", "number", "state",
            "target", "test", "tried", "trigger", "type",
        ]  # fmt: skip
        assert str(first["created"]).endswith("Z")
        (attempt,) = json.loads(await terminal("triggers", "deliveries", "mill", sent, "--json"))["tried"]
        assert sorted(attempt) == ["attempt", "error", "seconds", "started", "status"]
        (listed,) = json.loads(await terminal("triggers", "deliveries", "mill", "--json"))
        assert sorted(first.keys() - listed.keys()) == ["body", "headers", "tried"]
        assert sent in await terminal("triggers", "deliveries", "mill", "--state", "failed")
        assert await terminal("triggers", "deliveries", "mill", "-q") == f"{sent}\n"
        said = await terminal("triggers", "deliveries", "mill", sent)
        assert "answered 503, unavailable" in said
        assert '"component_name": "t"' in said or '"component_name":"t"' in said
        assert "was queued" in await terminal("triggers", "replay", "mill", sent)
        with trio.fail_after(LIMIT):
            while len(other.requests) < 2:
                await settled(terminal, sent)
        for came in other.requests:
            Webhook(SECRET).verify(came.body, came.headers)
            assert came.headers["webhook-id"] == sent
        assert other.requests[0].body == other.requests[1].body

        # failures are in the machine's own logs
        assert "a webhook was not delivered: answered 503" in await terminal("logs", "mill")

        # mistakes
        assert "there is no" in await terminal("triggers", "test", "mill", "cold", status=1)
        assert "there is no" in await terminal("triggers", "replay", "mill", "x", status=1)


async def test_the_example_verifies_what_the_cloud_sends(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running, trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(
            [sys.executable, str(EXAMPLE), "--port", "0", "--secret", SECRET], stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            lines = Lines(process.stdout)
            url = (await lines.next()).split()[-1]
            async with running.client() as client:
                app = "viam.app.v1.AppService"
                robot = await client.call(app, "", "new_robot", name="mill", location=running.facts["location"])
                (part,) = await client.call(app, "", "get_robot_parts", robot_id=robot)
                targets = ({"type": "webhook", "value": url, "secret": SECRET}, {"type": "webhook", "value": f"{url}x"})
                document = {"triggers": [raw({"type": "part_offline"}, *targets, name="gone")]}
                await client.call(
                    app, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document)
                )
            terminal = Terminal(running, tmp_path / "home")
            await terminal(
                "login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1]
            )
            sent = (await terminal("triggers", "test", "mill", "gone", "-q")).split()
            said = sorted([await lines.next(), await lines.next()])
            assert said[0] == "part_offline of mill: gone"
            assert said[1].startswith("refused: ")
            states = {(await settled(terminal, message))["state"] for message in sent}
            assert states == {"delivered", "failed"}
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
        nursery.cancel_scope.cancel()


class Lines:
    """The output lines of a program."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._read = b""

    async def next(self) -> str:
        with trio.fail_after(LIMIT):
            while b"\n" not in self._read:
                piece = await self._stream.receive_some()
                assert piece, "the program has ended"
                self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()
