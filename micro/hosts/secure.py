"""TLS for both sides, by the module `tls` of MicroPython or `ssl` of CPython."""

from micro.hosts.settings import BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise BadFile(f"{path} cannot be read") from None


def server_context(certificate: str, key: str) -> "Any":
    """Return a context for a server with the files of its certificate and its key, in PEM. Raises BadFile."""
    _read(certificate)
    _read(key)
    try:
        import tls
    except ImportError:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context
    context = tls.SSLContext(tls.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(_read(certificate), _read(key))
    except (ValueError, OSError):
        raise BadFile(f"{certificate} or {key} is not a certificate with its key") from None
    return context


def client_context(authorities: str) -> "Any":
    """Return a context for a client that trusts the certificates in the file `authorities`. Raises BadFile.

    There are no certificates of a system to trust: MicroPython has none.
    """
    data = _read(authorities)
    try:
        import tls
    except ImportError:
        import ssl

        return ssl.create_default_context(cadata=data.decode())
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    context.verify_mode = tls.CERT_REQUIRED
    try:
        context.load_verify_locations(data)
    except (ValueError, OSError):
        raise BadFile(f"{authorities} is not a certificate") from None
    return context
