"""The core gives the same answers on MicroPython as on CPython, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rpc.http2.codec import frames
from tests.e2e.micro.build import ROOT
from tests.e2e.micro.program import FIRMWARE, PYTHON, STOCK, words_of
from tests.helpers.hostile import HTTP2, SETTINGS
from tests.unit.micro.wire.peer import PATH, Peer, message
from tests.unit.micro.wire.test_web import request


def recorded() -> list[bytes]:
    """Return what peers send: all attacks, calls with compressed headers, and calls of gRPC-Web."""
    peers = [(frames.PREFACE + SETTINGS if row.preface else b"") + (row.data * row.repeat)[:30_000] for row in HTTP2]
    for value in ("plain", "x" * 300, "".join(map(chr, range(33, 127))), "ä€\u0001"):
        client = Peer()
        client.h2 = type(client.h2)(client.h2.config)
        client.h2.initiate_connection()
        for number in range(2):
            client.begin(message(b"question %d" % number), PATH, authorization=f"Bearer {value}", other=value)
        peers.append(client.h2.data_to_send())
    return [*peers, request(b"hello"), request(b"", b"origin: http://evil\r\n")]


@pytest.mark.parametrize("host", [STOCK, FIRMWARE])
def test_the_same_bytes(tmp_path: Path, host: str) -> None:
    script = Path(shutil.copy(Path(__file__).with_name("replay.py"), tmp_path))
    lines = tmp_path / "lines"
    lines.write_text("".join(data.hex() + "\n" for data in recorded()))
    outputs = []
    for each in (PYTHON, host):
        words = [*words_of(each, {STOCK: "400k", FIRMWARE: "700k"}.get(each, "")), str(script), str(lines)]
        environ = {} if each == FIRMWARE else {"PYTHONPATH": str(ROOT), "MICROPYPATH": f"{ROOT}:.frozen"}
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    expected, answers = outputs
    assert len(expected) == len(lines.read_text().splitlines()) + 1
    assert [at for at in range(len(expected)) if answers[at] != expected[at]] == []
