"""Power cuts at every step of updates: the device always starts a complete program, and an update ends at last."""

from __future__ import annotations

import hashlib
from functools import cache
from random import Random
from typing import Any

import pytest

from micro.update.image import BadImage
from micro.update.slots import TRIES, Record, boot, confirmed, decode, encode, installed, refusal
from micro.update.store import SlotStore
from micro.update.updater import Updater, choose
from tests.unit.micro.update.packing import image, modulus, sha256

OLD = {"main.py": b"old" * 700, "micro/a.py": b"one"}
NEW = {"main.py": b"new" * 900, "micro/b.py": b"two" * 50, "micro/wire/c.py": b"three"}


class PowerCut(BaseException):
    """The power is gone."""


class Disk:
    """Files that survive; `cut` is the number of operations until the power is gone, none without."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = {""}
        self.cut = -1
        self.operations = 0

    def step(self) -> None:
        self.operations += 1
        if self.cut >= 0:
            self.cut -= 1
            if self.cut < 0:
                raise PowerCut

    def open(self, path: str, mode: str) -> DiskFile:
        if mode == "rb" and path not in self.files:
            raise FileNotFoundError(path)
        if mode == "wb":
            if path.rpartition("/")[0] not in self.folders:
                raise FileNotFoundError(path)
            self.step()
            self.files[path] = b""
        return DiskFile(self, path, mode)

    def flush(self, file: DiskFile) -> None:
        file.flush()

    def mkdir(self, path: str) -> None:
        if path in self.folders:
            raise FileExistsError(path)
        self.step()
        self.folders.add(path)

    def listdir(self, path: str) -> list[str]:
        if path not in self.folders:
            raise FileNotFoundError(path)
        names = [name for name in (*self.files, *self.folders) if name.rpartition("/")[0] == path and name]
        return [name.rpartition("/")[2] for name in names]

    def remove(self, path: str) -> None:
        if path not in self.files:
            raise IsADirectoryError(path)
        self.step()
        del self.files[path]

    def rmdir(self, path: str) -> None:
        if self.listdir(path):
            raise OSError(path)
        self.step()
        self.folders.discard(path)

    def program(self, slot: str) -> dict[str, bytes]:
        start = f"/slot-{slot}/"
        return {name.removeprefix(start): data for name, data in self.files.items() if name.startswith(start)}


class DiskFile:
    """A file; what was not flushed is lost or torn by a power cut."""

    def __init__(self, disk: Disk, path: str, mode: str) -> None:
        self.disk, self.path, self.mode = disk, path, mode
        self.buffer = b"" if mode == "wb" else disk.files[path]
        self.place = 0
        self.is_flushed = False

    def __enter__(self) -> DiskFile:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.close()

    def read(self, size: int = -1) -> bytes:
        end = len(self.buffer) if size < 0 else self.place + size
        data, self.place = self.buffer[self.place : end], end
        return data

    def write(self, data: bytes) -> None:
        self.buffer += data
        self.is_flushed = False

    def flush(self) -> None:
        torn = self.buffer[: self.disk.random.randrange(len(self.buffer) + 1)]
        self.disk.files[self.path] = torn + bytes(self.disk.random.choice((0, len(self.buffer) - len(torn))))
        self.disk.step()
        self.disk.files[self.path] = self.buffer
        self.is_flushed = True

    def close(self) -> None:
        if self.mode == "wb" and not self.is_flushed:
            self.flush()


def device(seed: int) -> tuple[Disk, SlotStore]:
    """Return a device with the program OLD in slot a."""
    disk = Disk(Random(seed))
    store = SlotStore("", sha256, disk)
    for name, data in OLD.items():
        store._mkdir("/slot-a")
        store.write("a", name, data)
    store.finish()
    return disk, store


def install(store: SlotStore, data: bytes) -> None:
    updater = Updater(store, modulus(), hashlib.sha256)
    reader = updater.install()
    for at in range(0, len(data), 512):
        reader.feed(data[at : at + 512])
    updater.complete(reader)


def test_an_update_is_tried_and_confirmed() -> None:
    disk, store = device(1)
    assert disk.program(choose(store)) == OLD
    install(store, image(NEW, 5))
    assert disk.program(choose(store)) == NEW
    assert Updater(store, modulus(), hashlib.sha256).confirm()
    for _ in range(5):
        assert disk.program(choose(store)) == NEW
    with pytest.raises(BadImage, match="sequence 5 is not above 5"):
        install(store, image(OLD, 5))
    install(store, image(OLD, 6))
    assert disk.program(choose(store)) == OLD


def test_a_program_that_is_never_healthy_is_rolled_back_and_not_installed_again() -> None:
    disk, store = device(2)
    install(store, image(NEW, 5))
    assert [disk.program(choose(store)) == NEW for _ in range(TRIES + 2)] == [True] * TRIES + [False] * 2
    with pytest.raises(BadImage, match="was not healthy"):
        install(store, image(NEW, 5))
    install(store, image(NEW, 6))
    assert disk.program(choose(store)) == NEW


def test_an_image_is_not_installed_over_the_program_on_trial() -> None:
    disk, store = device(3)
    install(store, image(NEW, 5))
    choose(store)
    with pytest.raises(BadImage, match="another image is on trial"):
        install(store, image(OLD, 6))
    assert disk.program("b") == NEW


def test_a_cut_off_image_changes_nothing() -> None:
    disk, store = device(4)
    with pytest.raises(BadImage, match="cut off"):
        install(store, image(NEW, 5)[:-1])
    assert disk.program(choose(store)) == OLD


def test_a_disk_that_stores_something_else_is_noticed() -> None:
    disk, store = device(5)
    flush = disk.flush

    def rot(file: DiskFile) -> None:
        flush(file)
        if file.path.endswith("c.py"):
            disk.files[file.path] = b"thrEe"

    disk.flush = rot  # type: ignore[method-assign]
    with pytest.raises(BadImage, match="was not stored"):
        install(store, image(NEW, 5))
    assert disk.program(choose(store)) == OLD


def numbered(sequence: int) -> dict[str, bytes]:
    return {"main.py": b"%d." % sequence * 700, "micro/a.py": b"%d" % sequence, "micro/wire/c.py": b"three"}


@cache
def signed(sequence: int) -> bytes:
    return image(numbered(sequence), sequence)


@pytest.mark.parametrize("seed", range(100))
def test_power_cuts(seed: int) -> None:
    """Life of a device: it starts, installs the next image, and confirms it when it runs, until the power is gone."""
    random = Random(seed)
    disk, store = device(seed)
    programs = [OLD]
    highest = confirmations = 0
    for turn in range(60):
        disk.cut = random.randrange(80) if turn < 50 else -1
        try:
            program = disk.program(choose(store))
            assert program in programs, "a program that is not complete would be started"
            record = store.load()
            assert record.highest >= highest, "an older image could be installed again"
            highest = record.highest
            if record.trial:
                Updater(store, modulus(), hashlib.sha256).confirm()
                confirmations += 1
            sequence = len(programs)
            programs.append(numbered(sequence))
            install(store, signed(sequence))
        except PowerCut:
            store = SlotStore("", sha256, disk)
    assert confirmations > 5
    assert disk.program(choose(store)) == programs[-1], "the last update has ended"


def test_records_that_were_torn_are_not_read() -> None:
    data = encode(Record("b", "a", 2, 7, 9, 4), 12, sha256)
    count, record = decode(data, sha256) or (0, Record())
    assert (count, record.values()) == (12, ["b", "a", 2, 7, 9, 4])
    for size in range(len(data)):
        assert decode(data[:size], sha256) is None
    assert decode(data.replace(b'"b"', b'"a"'), sha256) is None


def test_decisions() -> None:
    record = Record("a", highest=3)
    assert boot(record) == ("a", record)
    trial = installed(record, 4)
    assert (trial.trial, trial.inactive) == ("b", "b")
    assert confirmed(trial).values() == ["b", "", 0, 4, 0, 0]
    assert refusal(record, 3)
    assert not refusal(record, 4)
