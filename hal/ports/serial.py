"""Serial ports: plain byte streams.

An open port is a `trio.abc.Stream`: `receive_some` returns the received bytes, `send_all` returns when the kernel has
accepted all data, `aclose` may be called at any time, and waiting tasks then raise `trio.ClosedResourceError`. If the
device vanishes, HalError (gone) is raised; a read never returns empty data, since a serial line has no end.
"""

from __future__ import annotations

from schema import Parity as Parity
from schema import SerialIdentity as SerialIdentity
from schema import SerialSettings as SerialSettings
