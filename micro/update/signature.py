"""RSA signatures (RFC 8017, PKCS #1 v1.5 with SHA-256), verified with Python's integers. Pure.

MicroPython has SHA-256 and powers of large integers, but no SHA-512, which Ed25519 needs.
"""

SIZE = 384  # bytes of the modulus: RSA-3072
EXPONENT = 65537
DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def is_valid(modulus: int, digest: bytes, signature: bytes) -> bool:
    """Return whether `signature` is that of a SHA-256 `digest`. The whole padding is compared, not parsed."""
    if len(signature) != SIZE or len(digest) != 32:
        return False
    number = int.from_bytes(signature, "big")
    if number >= modulus or modulus >> (8 * SIZE - 8) == 0:
        return False
    message = pow(number, EXPONENT, modulus)
    filling = b"\xff" * (SIZE - 3 - len(DIGEST_INFO) - len(digest))
    expected = b"\x00\x01" + filling + b"\x00" + DIGEST_INFO + digest
    return message == int.from_bytes(expected, "big")
