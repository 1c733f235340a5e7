"""Stand-in for wpa_supplicant: `fake_wpa_supplicant.py -g SOCKET`. Joins every network whose password is not wrong.

It ends at the request `DIE` to an interface, does not answer `HANG`, and writes a message before it ends.
"""

from __future__ import annotations

import selectors
import socket
import sys
from pathlib import Path

WRONG = '"wrong password"'
REFUSED = 'CTRL-EVENT-SSID-TEMP-DISABLED id=0 ssid="x" auth_failures=1 duration=10 reason=WRONG_KEY'
JOINED = "CTRL-EVENT-CONNECTED - Connection to 02:00:00:00:01:00 completed [id=0 id_str=]"


class Server:
    """Control sockets: the global one, and those of added interfaces."""

    def __init__(self, path: Path) -> None:
        self.selector = selectors.DefaultSelector()
        self.listeners: dict[str, str] = {}  # client's path by socket
        self.settings: dict[str, str] = {}
        self.open(path)

    def open(self, path: Path) -> None:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.bind(str(path))
        self.selector.register(server, selectors.EVENT_READ, path)

    def run(self) -> None:
        while True:
            for key, _ in self.selector.select():
                server = key.fileobj
                assert isinstance(server, socket.socket)
                request, sender = server.recvfrom(8192)
                answer, event = self.answer(key.data, request.decode(), sender)
                if answer is not None and sender:
                    server.sendto(answer.encode(), sender)
                if event:
                    server.sendto(f"<3>{event}".encode(), self.listeners[str(key.data)])

    def answer(self, path: Path, request: str, sender: str) -> tuple[str | None, str]:
        word, _, rest = request.partition(" ")
        if word == "ATTACH":
            self.listeners[str(path)] = sender
        elif word == "INTERFACE_ADD":
            name, _, _, folder = rest.split("\t")
            if (Path(folder) / name).exists():
                return "FAIL\n", ""
            self.open(Path(folder) / name)
        elif word == "SET_NETWORK":
            _, name, value = rest.split(" ", 2)
            self.settings[name] = value
        elif word == "ADD_NETWORK":
            return "0\n", ""
        elif word == "HANG":
            return None, ""
        elif word in ("DIE", "TERMINATE"):
            print(f"ended by {word}", flush=True)
            path.unlink()
            sys.exit(3)
        elif word == "SELECT_NETWORK":
            return "OK\n", REFUSED if self.settings["psk"] == WRONG else JOINED
        return "OK\n", ""


if __name__ == "__main__":
    Server(Path(sys.argv[2])).run()
