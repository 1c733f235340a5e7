"""The server for microcontrollers: one program for MicroPython and CPython, which imports nothing else of the project.

`wire` is HTTP/2, HPACK, protobuf and WebSocket as values, without input and output. `engine` has the machine:
configuration, calls, sessions, logs. `components` has the drivers, `update` the two slots of a signed update, and
`hosts` connects all of that to sockets, pins and files.

The code uses only what MicroPython 1.25 has: no dataclasses, no `from __future__ import`, and no unpacking in literals.
Annotations are allowed, since MicroPython does not evaluate them.
"""
