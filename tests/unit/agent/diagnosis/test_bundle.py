"""The archive for support: what it contains, and that secrets are not in it."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path

import pytest

from agent.diagnosis import bundle
from agent.diagnosis.bundle import bundle_contents, write_bundle
from agent.diagnosis.checks import CheckedDevice
from agent.layout import Layout
from tests.unit.agent.diagnosis.test_checks import install

SECRETS = (
    "s3cret-of-the-part", "key-of-the-cloud", "hotspot-password", "signature=abcdef", "wifi-passphrase",
    "value-of-a-variable", "psk-of-the-office",
)  # fmt: skip


@pytest.fixture
def device(tmp_path: Path) -> CheckedDevice:
    config, defaults = tmp_path / "machine.json", tmp_path / "defaults.json"
    cloud = {"app_address": "https://cloud.example", "id": "p1", "secret": SECRETS[0]}
    config.write_text(json.dumps({"cloud": {**cloud, "api_key": {"id": "k1", "key": SECRETS[1]}}}))
    defaults.write_text(json.dumps({"network_configuration": {"hotspot_password": SECRETS[2]}}))
    layout = Layout(tmp_path / "opt", tmp_path / "run")
    install(layout)
    settings = {
        "advanced_settings": {"viam_server_env": {"HARMLESS": SECRETS[5]}},
        "additional_networks": {"office": {"type": "wifi", "ssid": "office", "psk": SECRETS[6]}},
    }
    (layout.state / "settings.json").write_text(json.dumps(settings))
    (layout.state / "machine-server.env").write_text(f'HARMLESS="{SECRETS[5]}"\n')
    return CheckedDevice(layout, config, defaults, systemd=False)


def log(command: tuple[str, ...]) -> str:
    """Return the output of any command: a log that has got hold of secrets."""
    lines = f"connected with {SECRETS[0]} and {SECRETS[1]}\npsk={SECRETS[4]}\nhotspot {SECRETS[2]}\n"
    lines += f"Environment=HARMLESS={SECRETS[5]}\nassociating with {SECRETS[6]}\n"
    return f"{' '.join(command)}\n{lines}"


def test_no_secret_is_in_the_archive(device: CheckedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "output", log)
    path = tmp_path / "bundle.tar.gz"
    status = json.dumps({"error": f"cannot log in with {SECRETS[1]}"}).encode()
    count = write_bundle(path, bundle_contents(device, f"checks {SECRETS[0]}", status))
    with tarfile.open(path) as archive:
        texts = {member.name: archive.extractfile(member).read().decode() for member in archive.getmembers()}  # type: ignore[union-attr]
    assert len(texts) == count > 15
    for name, text in texts.items():
        for secret in SECRETS:
            assert secret not in text, name
    assert {"bundle/checks.txt", "bundle/status.json", "bundle/state/machine-server.json"} <= texts.keys()
    assert "journalctl --unit machine-agent" in texts["bundle/journal/machine-agent.txt"]
    assert "https://cloud.example/file" in texts["bundle/state/machine-agent.json"]
    assert str(device.layout.record("machine-agent")) in texts["bundle/files.txt"]
    assert not any("machine.json" in name for name in texts)


def test_only_the_owner_can_read_the_archive_and_a_file_is_never_replaced(
    device: CheckedDevice, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.tar.gz"
    write_bundle(path, iter([("a", b"b")]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_bundle(path, iter([("a", b"b")]))


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> object:
        yield "a", b"b"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_bundle(tmp_path / "bundle.tar.gz", broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_long_text_is_shortened_to_its_end(device: CheckedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_TEXT", 100)
    texts = dict(bundle_contents(device, "x" * 1000 + "end", None))
    assert texts["checks.txt"] == b"x" * 97 + b"end"


def test_a_device_with_nothing(tmp_path: Path) -> None:
    device = CheckedDevice(
        Layout(tmp_path / "no", tmp_path / "run"), tmp_path / "no.json", tmp_path / "no2.json", systemd=False
    )
    texts = dict(bundle_contents(device, "checks", None))
    assert "checks.txt" in texts
    assert "state/machine-agent.json" not in texts


def test_a_damaged_record_is_named_but_not_included(device: CheckedDevice) -> None:
    device.layout.record("machine-agent").write_bytes(b'{"secret": "' + SECRETS[4].encode())
    assert dict(bundle_contents(device, "", None))["state/machine-agent.json"] == b"the record is damaged\n"
