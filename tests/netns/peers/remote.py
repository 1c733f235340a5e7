"""A peer in a separate process, to be killed: `python -m tests.netns.peers.remote ENGINE` echoes the channel "data"."""

from __future__ import annotations

import json
import subprocess
import sys

import trio

from rpc.peers.port import Description, IceCandidate
from tests.netns.peers.pairs import End, engines, new_end


class RemotePeer:
    """The other process, seen from the test. One line of JSON in each direction: description and all candidates."""

    def __init__(self, engine: str) -> None:
        command = [sys.executable, "-m", __spec__.name, engine]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async def join(self, end: End) -> None:
        """Connect an end to this peer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(await signalled(end, await end.peer.offer()), file=self._process.stdin, flush=True)
        await accept(end, await trio.to_thread.run_sync(self._process.stdout.readline))
        await end.data.wait_open()

    def kill(self) -> None:
        """Kill the process with SIGKILL. Idempotent."""
        self._process.kill()
        self._process.communicate()


async def signalled(end: End, description: Description) -> str:
    """Return a description with all local candidates as one line."""
    candidates = []
    while (candidate := await end.peer.next_candidate()) is not None:
        candidates.append([candidate.text, candidate.mid, candidate.line, candidate.fragment])
    return json.dumps([description.kind, description.sdp, candidates])


async def accept(end: End, line: str) -> None:
    """Apply the description and the candidates of a line."""
    kind, sdp, candidates = json.loads(line)
    await end.peer.accept(Description(kind, sdp))
    for fields in candidates:
        await end.peer.add_candidate(IceCandidate(*fields))


async def main(name: str) -> None:
    """Answer the offer on standard input, then echo messages."""
    async with engines(name) as (engine,):
        end = new_end(engine)
        await accept(end, sys.stdin.readline())
        print(await signalled(end, await end.peer.answer()), flush=True)
        while True:
            await end.data.send(await end.data.receive())


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
