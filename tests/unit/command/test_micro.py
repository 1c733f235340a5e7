"""The commands of `machine micro`."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from command.cli import main
from command.micro.flash import MAIN, lay_out
from command.micro.package import ROOT, sources
from micro.update.image import ImageReader, Manifest
from micro.update.slots import Record, decode


def machine(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["micro", *map(str, words)])


def test_images_are_signed_for_the_devices_of_their_key(tmp_path: Path) -> None:
    key, output = tmp_path / "signing.pem", tmp_path / "image"
    assert machine("key", key).exit_code == 0
    assert key.stat().st_mode & 0o777 == 0o600
    again = machine("key", key)
    assert (again.exit_code, "exists" in again.output) == (1, True)
    packed = machine("package", output, "--key", key, "--sequence", "7", "--version", "1.7")
    assert packed.exit_code == 0, packed.output
    modulus = int((tmp_path / "update.key").read_text(), 16)
    begun: list[Manifest] = []
    files: dict[str, bytes] = {}

    def write(name: str, data: bytes) -> None:
        files[name] = files.get(name, b"") + data

    reader = ImageReader(modulus, hashlib.sha256, begun.append, write)
    reader.feed(output.read_bytes())
    assert reader.is_complete
    assert (begun[0].version, begun[0].sequence) == ("1.7", 7)
    assert files == sources()
    assert len(files) == len([*(ROOT / "micro").rglob("*.py")])


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"])
def test_files_without_a_key_are_refused(tmp_path: Path, text: str) -> None:
    key = tmp_path / "key"
    key.write_text(text)
    result = machine("package", tmp_path / "image", "--key", key, "--sequence", "1", "--version", "1")
    assert result.exit_code == 1
    assert f"{key} has no key" in result.output
    assert not (tmp_path / "image").exists()


def test_small_keys_are_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key = tmp_path / "key"
    key.write_bytes(rsa.generate_private_key(65537, 2048).private_bytes(*form))
    result = machine("package", tmp_path / "image", "--key", key, "--sequence", "1", "--version", "1")
    assert "is not an RSA key of 3072 bits" in result.output


def test_the_files_of_a_board(tmp_path: Path) -> None:
    lay_out(tmp_path, b"{}", b"key", 4)
    assert (tmp_path / "main.py").read_text() == MAIN
    assert (tmp_path / "slot-a/micro/hosts/device.py").exists()
    assert (tmp_path / "boot/micro/update/boot.py").exists()
    stored = decode((tmp_path / "record-0").read_bytes(), lambda data: hashlib.sha256(data).digest())
    record = stored[1] if stored else Record()
    assert (record.active, record.highest) == ("a", 4)
    assert (tmp_path / "update.key").read_bytes() == b"key"


def test_flashing_runs_mpremote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "car.json"
    config.write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = machine("flash", "/dev/ttyACM9", config, "--sequence", "1")
    assert (absent.exit_code, "mpremote is not installed" in absent.output) == (1, True)
    program = tmp_path / "mpremote"
    calls = tmp_path / "calls"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"with open({str(calls)!r}, 'a') as file: file.write(json.dumps(sys.argv[1:]) + chr(10))\n"
        "sys.exit(1 if 'bad' in sys.argv[2] else 0)\n"
    )
    program.chmod(0o755)
    assert machine("flash", "/dev/ttyACM9", config, "--sequence", "1").exit_code == 0
    copy, reset = [json.loads(line) for line in calls.read_text().splitlines()]
    assert copy[:5] == ["connect", "/dev/ttyACM9", "fs", "cp", "-r"]
    assert [Path(name).name for name in copy[5:-1]] == ["boot", "machine.json", "main.py", "record-0", "slot-a"]
    assert reset == ["connect", "/dev/ttyACM9", "reset"]
    failed = machine("flash", "/dev/bad", config, "--sequence", "1")
    assert "check that /dev/bad is a board with MicroPython" in failed.output
