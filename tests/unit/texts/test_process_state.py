"""State that belongs to the whole process is changed only by programs that are alone in theirs."""

from __future__ import annotations

import ast
from pathlib import Path

from rpc.network.listeners import open_unix_listener
from tests.unit.texts.listing import ROOT, packages

CHANGES = {
    "os": {"umask", "chdir", "fchdir", "putenv", "unsetenv", "setuid", "setgid", "chroot", "nice"},
    "locale": {"setlocale"},
    "signal": {"pthread_sigmask", "sigprocmask"},
    "socket": {"setdefaulttimeout"},
    "sys": {"setrecursionlimit"},
}
ALONE = {
    "training/engine/sandbox.py": "starts one program and waits for it",
    "training/engine/disk.py": "copies the checkpoints of one job in a separate process, and ends with the job",
    "support/foreign/child.py": "unpacks one archive, and ends",
    "training/environments/install.py": "installs packages, and ends",
    "cloud/domain/queries/root.py": "confines the process of one query, which ends with it",
}
"""Files of programs that do one thing and end."""


def test_services_do_not_change_the_state_of_their_process() -> None:
    places = set()
    for package in packages():
        for file in sorted((ROOT / package).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            for node in ast.walk(ast.parse(file.read_text())):
                if name not in ALONE and _changes(node):
                    places.add(f"{name}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)[:80]}")
    assert not places, "\n".join(sorted(places))
    assert all(Path(ROOT / name).exists() for name in ALONE)


async def test_permissions_of_a_socket(tmp_path: Path) -> None:
    listener = await open_unix_listener(tmp_path / "s", mode=0o600)
    async with listener:
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return node.func.attr in CHANGES.get(node.func.value.id, ())
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Subscript) and ast.unparse(target.value) == "os.environ" for target in targets)


def test_a_change_is_noticed() -> None:
    assert any(_changes(node) for node in ast.walk(ast.parse("before = os.umask(0o77)")))
    assert any(_changes(node) for node in ast.walk(ast.parse("os.environ['TZ'] = 'UTC'")))
