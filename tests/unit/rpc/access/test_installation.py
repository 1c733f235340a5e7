"""The line that installs machine-agent, as a shell reads it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from rpc.access.installation import CA_FILE, install_line, user_data

SHA = "0" * 64
TOOL = '#!/bin/sh\nprintf "%s\\n" "{name} $*" >>"$LOG"\n{more}\n'


def run(folder: Path, line: str, *, sums: int = 0) -> tuple[list[str], str]:
    """Execute a line with programs that record their arguments; return these, and what the shell of sudo has read."""
    programs = folder / "bin"
    programs.mkdir()
    more = {"curl": "echo 'echo installer'", "sudo": 'cat >"$LOG.input"', "sha256sum": f'cat >>"$LOG"; exit {sums}'}
    for name, text in more.items():
        (programs / name).write_text(TOOL.format(name=name, more=text))
        (programs / name).chmod(0o755)
    log = folder / "log"
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log), "HOME": str(folder / "my home")}
    subprocess.run(["sh", "-c", line], env=environment, check=False, stdout=subprocess.DEVNULL)
    read = Path(f"{log}.input")
    return log.read_text().splitlines(), read.read_text() if read.exists() else ""


def test_the_key_is_in_the_input_and_in_no_argument(tmp_path: Path) -> None:
    calls, read = run(tmp_path, install_line("https://cloud.example", "p1", "k1", "secret_-1"))
    assert sorted(calls) == ["curl -fsSg https://cloud.example/install.sh", "sudo sh"]
    assert read == "MACHINE_PART_ID=p1 MACHINE_API_KEY_ID=k1 MACHINE_API_KEY=secret_-1\necho installer\n"


def test_an_authority_is_trusted_by_its_hash(tmp_path: Path) -> None:
    line = install_line("https://cloud.example:8090", "p1", "k1", "secret", SHA)
    calls, read = run(tmp_path, line)
    file = f"{tmp_path}/my home/{CA_FILE}"
    assert calls[:2] == [f"curl -fsSkg https://cloud.example:8090/ca.pem -o {file}", "sha256sum -c"]
    assert calls[2] == f"{SHA}  {file}"
    assert f"curl -fsSg --cacert {file} https://cloud.example:8090/install.sh" in calls
    assert read.startswith(f"MACHINE_CA_FILE='{file}' MACHINE_PART_ID=p1 ")
    assert not any("secret" in call for call in calls)


def test_nothing_is_sent_if_the_authority_has_another_hash(tmp_path: Path) -> None:
    calls, read = run(tmp_path, install_line("https://cloud.example", "p1", "k1", "secret", SHA), sums=1)
    assert len(calls) == 3
    assert read == ""


@pytest.mark.parametrize(
    "values",
    [
        ("https://cloud.example$(touch x)", "p", "k", "s"),
        ("https://cloud.example/path", "p", "k", "s"),
        ("file:///etc", "p", "k", "s"),
        ("https://cloud.example", "p;x", "k", "s"),
        ("https://cloud.example", "p", "k`x`", "s"),
        ("https://cloud.example", "p", "k", 's"x'),
        ("https://cloud.example", "p", "k", "s\n"),
        ("https://cloud.example", "", "k", "s"),
        ("https://cloud.example", "p", "k", "s", "x' $(y)"),
    ],
)
def test_values_that_need_quotes_are_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"characters that it cannot have|not a SHA-256"):
        install_line(*values)


def test_user_data_is_a_list_with_a_text() -> None:
    data = user_data(install_line("https://cloud.example", "p1", "k1", "secret"))
    head, kind, item = data.splitlines()
    assert (head, kind, item[:4]) == ("#cloud-config", "runcmd:", "  - ")
    command = json.loads(item[4:])
    assert '(echo "MACHINE_PART_ID=p1' in command
    assert "sudo" not in command
    subprocess.run(["sh", "-n", "-c", command], check=True)
