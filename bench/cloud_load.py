"""The load on a cloud: simulated machines in a separate process. Prints a JSON object for each command on stdin.

`python -m bench.cloud_load HOST PORT < commands`; see bench.cloud. Every answer has `busy`, the share of one core that
this process used. If it is near 1, the load was the bottleneck, not the cloud.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bench.cloud_requests import AUTHENTICATE, Template, sign_in, template_for, upload
from bench.cloud_wire import Caller, Crowd, Follower, Line, token_of

SECRET = "robot-secret"
PUSH = "/machine/v1/follow"
TOGETHER = 50  # machines that connect at the same time
AGAIN = 0.05  # seconds until a rejected machine retries


class Machine:
    """One simulated machine."""

    def __init__(self, crowd: Crowd, address: tuple[str, int], part: str, secret: str) -> None:
        self.crowd = crowd
        self.address = address
        self.part = part
        self.heard = 0.0  # time of the last message
        self.reports: int | None = None  # problems that it reports with each configuration; None: it does not report
        self.connected = False  # whether the push channel has delivered its configuration
        self.follower: Follower | None = None
        self.caller: Caller | None = None
        self._opening: Callable[[], None] | None = None  # called when the connection for calls is open
        self._sign_in = sign_in(part, SECRET, secret)
        self._arrived: Callable[[], None] = lambda: None

    # ---- the push channel

    def follow(self, arrived: Callable[[], None]) -> None:
        """Log in and hold the push channel, reconnecting when it ends; call `arrived` for each connection."""
        self._arrived = arrived
        signing = Caller(self.crowd, self.address, self._later)

        def signed(reply: bytes) -> None:
            signing.close()
            token = token_of(reply)
            if not token:  # the secret may be too new
                self._later()
                return
            target = f"{PUSH}?part={self.part}&platform=linux/arm64"
            self.follower = Follower(self.crowd, self.address, target, token, self._hear, self._later)

        signing.call(AUTHENTICATE, self._sign_in, signed)

    def _later(self) -> None:
        self.connected = False
        self.crowd.at(time.perf_counter() + AGAIN * random.uniform(0.5, 1), lambda: self.follow(self._arrived))

    def _hear(self, text: bytes) -> None:
        if b'"revision"' in text:
            self.heard = time.perf_counter()
            if self.reports is not None and self.follower is not None:
                revision = text.partition(b'"revision":"')[2].partition(b'"')[0]
                more = b',"problems":%d,"rejected":"%s"' % (self.reports, b"no such arm" if self.reports else b"")
                self.follower.tell(b'{"report":{"revision":"' + revision + b'"' + more + b"}}")
            if not self.connected:
                self.connected = True
                self._arrived()

    # ---- calls

    def open(self, then: Callable[[], None]) -> None:
        """Open a connection for calls and log in, again if it is lost before, then call `then`."""
        if self.caller is not None:
            then()
            return

        def signed(reply: bytes) -> None:
            self._opening = None
            then()

        self._opening = then
        self.caller = Caller(self.crowd, self.address, self._gone)
        self.caller.sign_in(self._sign_in, signed)

    def _gone(self) -> None:
        self.caller = None
        if (then := self._opening) is not None:
            self.crowd.at(time.perf_counter() + AGAIN, lambda: self.open(then))


class Load:
    """The simulated machines, and the commands."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.crowd = Crowd()
        self.machines: list[Machine] = []
        self._commands: deque[bytes] = deque()
        self._numbers = int(time.time()) % 10**6 * 40  # number of calls, so that no call is sent twice
        self.refused: list[str] = []
        self.took: list[float] = []
        self.lost = 0

    def run(self) -> None:
        """Execute commands from stdin until it ends."""
        _Stdin(self.crowd, self._commands)
        while True:
            self.crowd.run(lambda: bool(self._commands))
            if not (line := self._commands.popleft()):
                return
            command = json.loads(line)
            before, begin = time.process_time(), time.perf_counter()
            self.refused = []
            answer = getattr(self, f"do_{command.pop('do')}")(**command)
            busy = (time.process_time() - before) / (time.perf_counter() - begin)
            print_answer({**answer, "busy": busy, "refused": self.refused[:3]})

    def number(self) -> int:
        """Return the number of the next call."""
        self._numbers += 1
        return self._numbers

    def refuse(self, machine: Machine) -> None:
        """Record a call that was not answered."""
        self.refused.append(machine.caller.refusal() if machine.caller is not None else "the connection was lost")

    def do_connect(self, parts: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Connect new machines, a few at a time, and keep them connected."""
        new = [Machine(self.crowd, self.address, part, secret) for part, secret in parts]
        self.machines += new
        waiting, missing = deque(new), len(new)

        def arrived() -> None:
            nonlocal missing
            missing -= 1
            if waiting:
                waiting.popleft().follow(arrived)

        begin = time.perf_counter()
        for _ in range(min(TOGETHER, len(waiting))):
            waiting.popleft().follow(arrived)
        self.crowd.run(lambda: not missing)
        return {"seconds": time.perf_counter() - begin}

    def do_storm(self) -> dict[str, Any]:
        """Wait until the cloud has ended and all machines have reconnected; return the times of their connections."""
        moments: list[float] = []
        for machine in self.machines:
            machine._arrived = lambda: moments.append(time.perf_counter())
        self.crowd.run(lambda: not any(machine.connected for machine in self.machines))
        print_answer({})
        self.crowd.run(lambda: all(machine.connected for machine in self.machines))
        return {"moments": sorted(moments)}

    def do_heard(self) -> dict[str, Any]:
        """Return when each machine last received its configuration."""
        return {"heard": {machine.part: machine.heard for machine in self.machines}}

    def do_poll(self, every: float, seconds: float) -> dict[str, Any]:
        """Log in on separate connections, then poll with all machines for `seconds`."""
        self._open(self.machines)
        print_answer({})
        took: list[float] = []
        end = time.perf_counter() + seconds

        def poll(machine: Machine, template: Template, due: float) -> None:
            asked = time.perf_counter()
            if asked >= end or machine.caller is None:
                return

            def answered(reply: bytes) -> None:
                if not reply:
                    self.refuse(machine)
                took.append(time.perf_counter() - asked)
                self.crowd.at(due + every, lambda: poll(machine, template, due + every))

            machine.caller.call(template.path, template.request(0), answered)

        for machine in self.machines:
            first = time.perf_counter() + random.uniform(0, every)
            template = template_for("config", machine.part)
            self.crowd.at(first, partial(poll, machine, template, first))
        self.crowd.run(lambda: False, end)
        self._finish(self.machines)  # late answers count too
        return {**percentiles(took), "calls": len(took), "late": time.perf_counter() - end}

    def do_polls(self, every: float) -> dict[str, Any]:
        """Log in on separate connections; from then on, poll with all machines while other commands are awaited."""
        self._open(self.machines)

        def poll(machine: Machine, template: Template, due: float) -> None:
            if machine.caller is None:  # the cloud closes connections that make no call for long after their login
                self.lost += 1
                machine.open(lambda: poll(machine, template, due))
                return
            if machine.caller.busy:
                self.lost += 1
                self.crowd.at(due + every, lambda: poll(machine, template, due + every))
                return
            asked = time.perf_counter()

            def answered(reply: bytes) -> None:
                if reply:
                    self.took.append(time.perf_counter() - asked)
                else:
                    self.refuse(machine)
                self.crowd.at(due + every, lambda: poll(machine, template, due + every))

            machine.caller.call(template.path, template.request(0), answered)

        for machine in self.machines:
            first = time.perf_counter() + random.uniform(0, every)
            self.crowd.at(first, partial(poll, machine, template_for("config", machine.part), first))
        return {}

    def do_taken(self) -> dict[str, Any]:
        """Return the times of the polls since the last call."""
        took, self.took = self.took, []
        return {**percentiles(took), "calls": len(took), "lost": self.lost}

    def do_report(self, problems: Mapping[str, int]) -> dict[str, Any]:
        """Let all machines report what they receive from now on, those of these parts with problems."""
        for machine in self.machines:
            machine.reports = problems.get(machine.part, 0)
        return {}

    def do_flat(self, what: str, callers: int, seconds: float) -> dict[str, Any]:
        """Make calls for `seconds`, one after the other on each of `callers` machines, then await the answers."""
        chosen = self.machines[:callers]
        self._open(chosen)
        counts = dict.fromkeys((machine.part for machine in chosen), 0)
        took: list[float] = []
        begin = time.perf_counter()
        end = begin + seconds

        def call(machine: Machine, template: Template) -> None:
            asked = time.perf_counter()
            if asked >= end or machine.caller is None:
                return

            def answered(reply: bytes) -> None:
                now = time.perf_counter()
                if not reply:
                    self.refuse(machine)
                else:
                    counts[machine.part] += 1
                    took.append(now - asked)
                call(machine, template)

            machine.caller.call(template.path, template.request(self.number()), answered)

        for machine in chosen:
            call(machine, template_for(what, machine.part))
        self.crowd.run(lambda: False, end)
        self._finish(chosen)
        ordered = sorted(counts.values())
        spread = {"least": ordered[0], "most": ordered[-1]}
        return {"calls": sum(ordered), "seconds": time.perf_counter() - begin, **spread, **percentiles(took)}

    def do_some(self, parts: Sequence[Sequence[str]], calls: int, readings: int) -> dict[str, Any]:
        """Make `calls` uploads from machines without push channel, as fast as they are answered."""
        chosen, left = [Machine(self.crowd, self.address, part, secret) for part, secret in parts], calls
        self._open(chosen)
        begin = time.perf_counter()
        waiting = 0

        def call(machine: Machine, template: Template) -> None:
            nonlocal left, waiting
            if not left or machine.caller is None:
                return
            left -= 1
            waiting += 1

            def answered(reply: bytes) -> None:
                nonlocal waiting
                waiting -= 1
                if not reply:
                    self.refuse(machine)
                call(machine, template)

            machine.caller.call(template.path, template.request(self.number()), answered)

        for machine in chosen:
            call(machine, upload(machine.part, readings))
        self.crowd.run(lambda: not left and not waiting)
        return {"begin": begin, "seconds": time.perf_counter() - begin}

    def _open(self, machines: Sequence[Machine]) -> None:
        missing, waiting = len(machines), deque(machines)

        def opened() -> None:
            nonlocal missing
            missing -= 1
            if waiting:
                waiting.popleft().open(opened)

        for _ in range(min(TOGETHER, len(waiting))):
            if waiting:  # those that are open already call `opened` at once
                waiting.popleft().open(opened)
        self.crowd.run(lambda: not missing)

    def _finish(self, machines: Sequence[Machine]) -> None:
        """Wait for the calls in progress."""
        self.crowd.run(lambda: not any(machine.caller is not None and machine.caller.busy for machine in machines))


class _Stdin(Line):
    """Reader of commands, one per line; adds an empty command at the end of input."""

    def __init__(self, crowd: Crowd, commands: deque[bytes]) -> None:
        self.crowd = crowd
        self._commands = commands
        self._in = b""
        crowd.add(self, writing=False)

    def fileno(self) -> int:
        return 0

    def serve(self, events: int) -> None:
        data = os.read(0, 1 << 20)
        *lines, self._in = (self._in + data).split(b"\n")
        self._commands += lines
        if not data:
            self._commands.append(b"")
            self.crowd.remove(self)


def percentiles(durations: list[float]) -> Mapping[str, float]:
    """Return p50 and p99 of durations."""
    durations.sort()
    return {
        name: durations[round((len(durations) - 1) * share)]
        for name, share in (("p50", 0.5), ("p99", 0.99))
        if durations
    }


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print an answer as one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Load((sys.argv[1], int(sys.argv[2]))).run()
