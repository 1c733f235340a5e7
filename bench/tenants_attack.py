"""The attacker of bench.tenants: sends random requests of all kinds until its standard input ends.

`python -m bench.tenants_attack ADDRESS ORGANIZATION LOCATION KEY_ID KEY TASKS SEED [WAY...]` prints the counts of its
answers. Ways are names of methods of Attack; default: all.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import tarfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import trio

from bench.propagation import APP, new_part
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import MachineError

DATA: Final = "viam.app.data.v1.DataService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
SECTIONS: Final = ("components", "services", "modules", "remotes", "packages", "jobs", "triggers", "fragments")
COUNTING: Final = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
QUESTIONS: Final = (
    "SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range < 0",
    "SELECT repeat('a', 900) LIKE repeat('%_', 900)",
    "SELECT printf('%1000000000d', 1)",
    "SELECT repeat('a', 16000000)",
    f"{COUNTING} SELECT COUNT(*) FROM n",
    f"{COUNTING} SELECT string_agg(repeat('a', 100000), '') FROM n",
    f"{COUNTING} SELECT i FROM n",
    "SELECT * FROM readings a, readings b, readings c",
    "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    "SELECT md5(range::VARCHAR) AS a FROM range(100000000) ORDER BY a",
    "SELECT data FROM readings LIMIT 3",
    "ATTACH '/etc/passwd' AS x",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM duckdb_settings()",
)
PATTERNS: Final = ("(a+)+$", "((a?){50}){50}", "a{1000}{1000}", "(.*a){30}", "[" * 300, "(?=a)", "\\u0000")


class Attack:
    """The requests. Every method is one attempt, chosen at random."""

    def __init__(self, facts: Mapping[str, str], client: ApiClient, machine: ApiClient, part: str, seed: int) -> None:
        self._facts, self._client, self._machine, self._part = facts, client, machine, part
        self._random = random.Random(seed)
        self._fragments: list[str] = []
        self.token = ""

    # ---- material

    def value(self, depth: int = 0) -> Any:
        """Return a random value of JSON, possibly an invalid one."""
        chance = self._random.random()
        if depth < 40 and chance < 0.25:
            return {self.text(): self.value(depth + 1) for _ in range(self._random.randrange(4))}
        if depth < 40 and chance < 0.5:
            return [self.value(depth + 1) for _ in range(self._random.randrange(4))]
        return self._random.choice(
            (None, True, 0, -1, 1e308, 2**63, 0.1, float("nan"), self.text(), {"$variable": {"name": "x"}})
        )

    def text(self) -> str:
        """Return a text that is easily misinterpreted."""
        words = (
            "",
            "name",
            "a" * 5000,
            "ü",
            "\u202e",
            "\0",
            "=1+1",
            "$set",
            "id",
            "../..",
            "{{7*7}}",
            "<script>",
            "💥",
        )
        return self._random.choice(words)

    def document(self) -> dict[str, Any]:
        """Return a configuration that is odd, large or deep, or has many values or entries."""
        kind = self._random.randrange(7)
        if kind == 0:
            return {"x": "y" * self._random.choice((1 << 16, 1 << 20, (4 << 20) - 100, 5 << 20))}
        if kind == 1:
            return {"x": [1] * self._random.choice((1000, 20_000, 39_000, 99_000))}
        if kind == 2:
            nested: Any = 1
            for _ in range(self._random.choice((10, 31, 60))):
                nested = [nested]
            return {"x": nested}
        if kind == 3:
            entry = {"api": "rdk:component:sensor", "model": "rdk:builtin:fake"}
            count = self._random.choice((10, 1000, 1999, 3000))
            return {"components": [{**entry, "name": f"c{number}", "notes": "x" * 1000} for number in range(count)]}
        if kind == 4:
            return {"triggers": [self.trigger() for _ in range(self._random.randrange(5))]}
        if kind == 5:
            used = [self._random.choice(self._fragments)] if self._fragments else []
            mods = [
                {"fragment_id": fragment_id, "mods": [{"$set": {self.text(): self.value()}}] * 3}
                for fragment_id in used
            ]
            return {
                "fragments": [{"id": fragment_id, "prefix": "p", "variables": {"x": 1}} for fragment_id in used],
                "fragment_mods": mods,
            }
        return {section: self.value() for section in self._random.sample(SECTIONS, 3)}

    def trigger(self) -> dict[str, Any]:
        """Return a trigger with a condition."""
        evals = [{"operator": "regex", "value": {self.text(): self._random.choice(PATTERNS)}}]
        conditions = {"data_capture_method": "sensor:s:Readings", "conditions": {"evals": evals}}
        event = {"type": "conditional_data_ingested", "conditional": conditions}
        return {"name": self.text(), "event": event, "notifications": [self.value()]}

    # ---- requests

    async def save(self) -> None:
        """Save a configuration, as text or as a structure."""
        document = self.document()
        if self._random.random() < 0.5:
            text = json.dumps(document)
            if self._random.random() < 0.2:
                text = text[: self._random.randrange(len(text) + 1)]
            await self._call("update_robot_part", id=self._part, robot_config_json=text)
        else:
            await self._call("update_robot_part", id=self._part, robot_config=document)

    async def fragment(self) -> None:
        """Create a fragment, or save a new revision of one."""
        document = self.document()
        if self._fragments and self._random.random() < 0.7:
            subject = self._random.choice(self._fragments)
            await self._call("update_fragment", id=subject, fragment_config_json=json.dumps(document))
        else:
            name, owner = f"f{self._random.randrange(10**9)}", self._facts["organization"]
            self._fragments.append((await self._call("create_fragment", name=name, organization_id=owner))["id"])

    async def metadata(self) -> None:
        """Update the metadata of a part."""
        await self._call("update_robot_part_metadata", id=self._part, data=self.document())

    async def property(self) -> None:
        """Set single values of the configuration."""
        change = {"path": f"components.0.{self.text()}", "value": self.value()}
        await self._call("set_config_property", robot_part_id=self._part, property_changes=[change] * 50)

    async def history(self) -> None:
        """Request large answers."""
        method = self._random.choice(("get_robot_part_history", "get_robot_part"))
        await self._call(method, id=self._part)

    async def ask(self) -> None:
        """Run an SQL query."""
        text = self._random.choice(QUESTIONS)
        if self._random.random() < 0.3:
            text = "".join(self._random.sample(text, len(text)))
        await self._client.call(
            DATA, "", "tabular_data_by_sql", organization_id=self._facts["organization"], sql_query=text
        )

    async def upload(self) -> None:
        """Upload captured readings as a machine."""
        now = datetime.now(UTC)
        item = {"metadata": {"time_requested": now, "time_received": now}, "struct": {"readings": {"a": self.text()}}}
        facts = {"part_id": self._part, "component_type": "rdk:component:sensor", "component_name": "s"}
        await self._machine.call(
            SYNC,
            "",
            "data_capture_upload",
            metadata={**facts, "method_name": "Readings", "type": "DATA_TYPE_TABULAR_SENSOR", "tags": [self.text()]},
            sensor_contents=[item] * self._random.choice((1, 100, 2000)),
        )

    async def archive(self) -> None:
        """Upload a package: garbage, an archive bomb, or one with a large header."""
        kind = self._random.randrange(3)
        if kind == 0:
            data = self._random.randbytes(1 << 16)
        elif kind == 1:
            data = gzip.compress(bytes(64 << 20), 1)
        else:
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w:gz") as tar:
                tar.addfile(tarfile.TarInfo("a" * (4 << 20)))
            data = file.getvalue()
        facts = {"organization_id": self._facts["organization"], "name": f"p{self._random.randrange(10**9)}"}

        async def pieces() -> Any:
            for at in range(0, len(data), 1 << 16):
                yield data[at : at + (1 << 16)]

        await self._client.call(
            "viam.app.packages.v1.PackageService",
            "",
            "create_package",
            info={**facts, "version": "1.0.0", "type": "PACKAGE_TYPE_MODULE"},
            contents=pieces(),
        )

    async def look(self) -> None:
        """Request a page of the machine."""
        from bench.tenants import page

        paths = ("config", "history", "logs", "triggers")
        await page(*self._place(), f"/machines/{self._part}/{self._random.choice(paths)}", self.token)

    async def draft(self) -> None:
        """Submit a draft for review, or an incomplete text for a check."""
        from bench.tenants import page

        text = json.dumps(self.document(), indent=self._random.choice((None, 2)))
        path = f"/machines/{self._part}/config"
        if self._random.random() < 0.5:
            body = json.dumps({"text": text[: self._random.randrange(len(text) + 1)], "cursor": 10}).encode()
            await page(*self._place(), f"{path}/{self._random.choice(('check', 'complete'))}", self.token, "POST", body)
        else:
            action = self._random.choice(("review", "check", "save", "add"))
            body = urlencode({"action": action, "document": text, "base": self._random.randrange(1, 50)}).encode()
            await page(*self._place(), path, self.token, "POST", body)

    async def export(self) -> None:
        """Export all readings as CSV."""
        from bench.tenants import page

        await page(*self._place(), "/data/export?format=csv", self.token)

    def _place(self) -> tuple[str, int]:
        host, _, port = self._facts["address"].rpartition(":")
        return host.strip("[]"), int(port)

    async def _call(self, method: str, **arguments: Any) -> Any:
        return await self._client.call(APP, "", method, **arguments)

    def ways(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """Yield every way to attack, by name."""
        for way in (
            self.save, self.fragment, self.metadata, self.property, self.history, self.ask, self.upload, self.archive,
            self.look, self.draft, self.export,
        ):  # fmt: skip
            yield way.__name__, way

    async def go(self, answers: Counter[str], chosen: Sequence[str] = ()) -> None:
        """Attack until cancelled, in the chosen ways or all, often without waiting for the answer."""
        ways = [(name, way) for name, way in self.ways() if not chosen or name in chosen]
        while True:
            name, way = self._random.choice(ways)
            result = "ok"
            with trio.move_on_after(self._random.choice((0.05, 0.5, 30.0))) as patience:
                try:
                    await way()
                except MachineError as error:
                    result = error.kind.value
                except (OSError, trio.BrokenResourceError) as error:
                    result = type(error).__name__
                except Exception as error:  # requests that cannot be encoded
                    result = f"unsent {type(error).__name__}"
            answers[f"{name}: {'left' if patience.cancelled_caught else result}"] += 1
            await trio.sleep(0.01)


async def run(
    address: str, organization: str, location: str, key: str, secret: str, tasks: int, seed: int, ways: Sequence[str]
) -> None:
    """Attack until standard input ends, then print the counts of answers."""
    facts = {"address": address, "organization": organization, "location": location}
    answers: Counter[str] = Counter()
    credentials = ApiKey(key, secret)
    async with Channel(address, credentials=credentials) as channel:
        client = ApiClient(channel)
        part = await new_part(client, location, "victim")
        ((_, bearer),) = await credentials.headers(channel)
        own = ApiKey(part["id"], part["secret"], type="robot-secret")
        async with Channel(address, credentials=own) as machine, trio.open_nursery() as nursery:
            for number in range(tasks):
                attack = Attack(facts, client, ApiClient(machine), part["id"], seed * 1000 + number)
                attack.token = bearer.removeprefix("Bearer ")
                nursery.start_soon(attack.go, answers, ways)
            stdin = trio.lowlevel.FdStream(0)
            while await stdin.receive_some():
                pass
            nursery.cancel_scope.cancel()
    sys.stdout.write(json.dumps(answers))
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    """Run the attacker; return the exit code."""
    address, organization, location, key, secret, tasks, seed, *ways = argv
    trio.run(partial(run, address, organization, location, key, secret, int(tasks), int(seed), ways))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
