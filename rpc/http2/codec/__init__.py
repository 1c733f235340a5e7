"""Codec of HTTP/2: frames, header lists and HPACK."""
