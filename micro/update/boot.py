"""The first program of a device: it chooses the slot and starts the server that is in it.

It lies outside of the slots, with the modules that it imports, and is never updated. A board's `main.py`:

    import sys
    sys.path.insert(0, "/boot")
    from micro.update.boot import boot
    boot("", "micro.hosts.device", "machine.json", "")
"""

import hashlib
import sys

from micro.update.store import SlotStore
from micro.update.updater import choose


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).digest()


def boot(folder: str, module: str, *words: str) -> None:
    """Choose the slot in `folder`, and call `start(*words)` of a module in it."""
    store = SlotStore(folder, sha256)
    slot = choose(store)
    for name in [name for name in sys.modules if name == "micro" or name.startswith("micro.")]:
        del sys.modules[name]  # those of this program, which has the same names
    sys.path[0] = store.path(slot)
    program = __import__(module, None, None, ["start"])
    program.start(*words)


if __name__ == "__main__":
    boot(*sys.argv[1:])
