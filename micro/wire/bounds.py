"""Limits of a micro server, for everything that a peer can make it keep. Pure."""


class Bounds:
    """Limits of one server. Sizes are in bytes, times in milliseconds. `for_heap` chooses them by the memory."""

    connections = 4  # at once; a further one replaces the one that is idle longest, or is refused
    streams = 8  # calls at once of one connection; a further one is answered RESOURCE_EXHAUSTED
    message = 8192  # one request
    reply = 32768  # one reply
    held = 16384  # requests that are being received or carried out, of all connections together
    header_block = 4096  # compressed; a larger one ends the connection
    header_list = 8192  # uncompressed, and 32 bytes for each field; more ends the connection
    header_table = 4096  # RFC 7541: clients may use it before they have read our settings
    output = 4096  # unsent bytes, above which no more of a reply is written
    glitches = 200  # frames without effect, refused and cancelled calls in a burst; see GLITCHES_BACK
    handshake_ms = 10000  # from the beginning to preface and settings
    authentication_ms = 60000  # then until the first call with valid credentials
    request_ms = 15000  # from the first frame of a request to its last
    stall_ms = 30000  # for which a peer may leave a reply unread
    silence_ms = 30000  # then PING is sent
    answer_ms = 20000  # for which its answer may take
    log = 40  # lines that are kept until their upload
    ring = 8192  # captured readings that are kept until their upload
    idle_ms = 30000  # without a call, after which a connection may be replaced by a new one


GLITCHES_BACK = 4  # for each completed call; each second gives 1 back

KIB = 1024


def for_heap(free: int) -> Bounds:
    """Return the limits for a heap with `free` bytes: a client may need 8 KiB, or with large requests 16 KiB."""
    bounds = Bounds()
    if free < 24 * KIB:
        bounds.connections, bounds.streams, bounds.message, bounds.held = 1, 4, 2048, 3072
        bounds.reply, bounds.header_block, bounds.header_list, bounds.output = 8192, 1536, 3072, 1536
        bounds.log, bounds.ring = 8, 1024
    elif free < 64 * KIB:
        bounds.connections, bounds.streams, bounds.message, bounds.held = 2, 4, 4096, 6144
        bounds.reply, bounds.header_block, bounds.header_list, bounds.output = 16384, 2048, 4096, 2048
        bounds.log, bounds.ring = 16, 4096
    elif free >= 192 * KIB:
        bounds.connections, bounds.held = 8, 32768
    return bounds
