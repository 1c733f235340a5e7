"""The command agent of the emulated Raspberry Pi: on its first UART, as the first process."""

from __future__ import annotations

import os
import termios
import tty

import trio

from tests.hil.guest import agent

PORT = "/dev/ttyAMA0"


def main() -> None:
    """Set the terminal to raw mode, then serve forever."""
    descriptor = os.open(PORT, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    tty.setraw(descriptor)
    settings = termios.tcgetattr(descriptor)
    settings[2] |= termios.CLOCAL  # ignore the carrier
    termios.tcsetattr(descriptor, termios.TCSANOW, settings)
    termios.tcflush(descriptor, termios.TCIOFLUSH)
    agent.PORT = PORT
    trio.run(agent.main)


if __name__ == "__main__":
    main()
