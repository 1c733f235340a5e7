"""Who may use a named pipe, as far as Wine shows it: what the system is asked for, and the list that it then has."""

from __future__ import annotations

import ctypes
import sys
from ctypes import wintypes
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "win32":
    pytest.skip("named pipes with access lists exist on Windows only", allow_module_level=True)

from rpc.network import local_windows
from rpc.network.local_windows import PipeListener, name_of, open_local_listener, open_local_stream
from support.windows import OPEN_EXISTING, READ, WRITE, kernel32, open_handle, own_user, owner_of
from support.windows.access_windows import advapi32

KERNEL_OBJECT, LIST = 6, 4
FIRST, NOT_REMOTE = 0x80000, 0x8


def access_list(handle: ctypes.c_void_p) -> str:
    descriptor, text = ctypes.c_void_p(), wintypes.LPWSTR()
    assert not advapi32.GetSecurityInfo(handle, KERNEL_OBJECT, LIST, None, None, None, None, ctypes.byref(descriptor))
    assert advapi32.ConvertSecurityDescriptorToStringSecurityDescriptorW(descriptor, 1, LIST, ctypes.byref(text), None)
    return text.value or ""


async def test_only_the_system_administrators_and_the_own_user_have_access(tmp_path: Path) -> None:
    async with await open_local_listener(tmp_path / "c"):
        handle = open_handle(name_of(tmp_path / "c"), READ | WRITE, OPEN_EXISTING, 0, share=0)
        try:
            text = access_list(handle)
            assert owner_of(handle) == own_user()
        finally:
            kernel32.CloseHandle(handle)
    entries = text.replace(")", "").split("(")[1:]
    allowed = {entry.rpartition(";")[2] for entry in entries if entry.startswith("A;")}
    assert allowed == {"SY", "BA", own_user()}
    assert {entry.rpartition(";")[2] for entry in entries if entry.startswith("D;")} == {"NU"}
    assert text.startswith("D:P"), "it inherits nothing"


async def test_the_first_instance_is_created_alone_and_none_is_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    create = kernel32.CreateNamedPipeW

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return getattr(kernel32, name)

        def CreateNamedPipeW(self, name: str, flags: int, mode: int, *others: Any) -> Any:
            asked.append((flags & FIRST, mode & NOT_REMOTE))
            return create(name, flags, mode, *others)

    monkeypatch.setattr(local_windows, "kernel32", Recorder())
    listener = PipeListener(name_of(tmp_path / "c"))
    client = await open_local_stream(tmp_path / "c")
    async with listener, client, await listener.accept():
        assert asked == [(FIRST, NOT_REMOTE), (0, NOT_REMOTE)]


async def test_the_pipe_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await open_local_listener(tmp_path / "c") as listener:
        monkeypatch.setattr(local_windows, "owner_of", lambda handle: "S-1-5-21-1-2-3-1001")
        with pytest.raises(PermissionError, match="S-1-5-21-1-2-3-1001"):
            await open_local_stream(tmp_path / "c")
        async with await listener.accept() as refused:
            assert await refused.receive_some(1) == b""
        monkeypatch.setattr(local_windows, "owner_of", lambda handle: "S-1-5-80-1-2-3-4-5")
        async with await open_local_stream(tmp_path / "c"):
            pass


def test_a_path_has_one_pipe_whatever_its_case(tmp_path: Path) -> None:
    assert (
        name_of(Path(r"C:\Machine\run\agent.sock")).partition("-")[2].rpartition("-")[2]
        == (name_of(Path(r"c:\machine\run\AGENT.SOCK")).rpartition("-")[2])
    )
    assert name_of(tmp_path / "a") != name_of(tmp_path / "b" / "a")
