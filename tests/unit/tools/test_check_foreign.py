"""The check that only support/foreign removes, walks and unpacks what strangers may have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_foreign import breaches


def messages(root: Path, text: str, name: str = "cloud/x.py") -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return list(breaches(root, path))


@pytest.mark.parametrize(
    "line",
    [
        "shutil.rmtree(folder, ignore_errors=True)",
        "worker.run(partial(shutil.rmtree, folder))",
        "for parent, folders, names in os.walk(folder): pass",
        "for path in folder.rglob('*'): pass",
        "tarfile.open(path)",
        "tarfile.open(fileobj=file, mode='r|xz')",
        "tarfile.open(path, mode)",
        "zipfile.ZipFile(path)",
        "from shutil import rmtree",
    ],
)
def test_it_reports(tmp_path: Path, line: str) -> None:
    assert len(messages(tmp_path, line)) == 1
    assert messages(tmp_path, line, "support/foreign/x.py") == []


@pytest.mark.parametrize(
    "line",
    [
        "tarfile.open(path, 'w:gz')",
        "tarfile.open(fileobj=file, mode='w')",
        "zipfile.ZipFile(path, 'w')",
        "shutil.copyfile(a, b)",
        "ast.walk(tree)",
    ],
)
def test_it_accepts(tmp_path: Path, line: str) -> None:
    assert messages(tmp_path, line) == []
