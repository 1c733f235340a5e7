"""Which authorities of `ca_file` stand for the cloud: all but those for machines."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloud.domain.certificates.issue import CertificatePair, crossed, new_leaf, new_root
from command.connection import Connection, tls_context
from rpc.network.tls import MACHINE_AUTHORITY
from training.client.http import AsyncHttp
from uplink.dial import CloudAddress

NOW = datetime.now(UTC)


def accepts(client: ssl.SSLContext, leaf: CertificatePair, folder: Path) -> bool:
    """Return whether a client trusts a server at localhost with this certificate, in memory."""
    (folder / "leaf.pem").write_text(leaf.certificate)
    (folder / "leaf.key").write_text(leaf.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return True


@pytest.mark.parametrize("user", ["uplink", "command", "training"])
def test_the_certificate_of_a_machine_is_not_that_of_the_cloud(user: str, tmp_path: Path) -> None:
    port, machines = new_root("machine-cloud", NOW), new_root(MACHINE_AUTHORITY, NOW)
    newer = new_root(MACHINE_AUTHORITY, NOW)
    file = tmp_path / "ca.pem"
    file.write_text(f"# the cloud itself\n{port.certificate}\n# machines of Örg\n{machines.certificate}"
                    f"{newer.certificate}{crossed(machines, newer)}")  # fmt: skip
    url = "https://localhost:1"
    contexts = {
        "uplink": lambda: CloudAddress(url, "p", "p", "t", "s", file).tls(),
        "command": lambda: tls_context(Connection(url, ca=file, cloud=True)),
        "training": lambda: AsyncHttp(url, file)._cloud.options["ssl_context"],
    }
    client = contexts[user]()
    assert isinstance(client, ssl.SSLContext)
    assert accepts(client, new_leaf(port, ["localhost"], NOW), tmp_path)
    client = contexts[user]()
    assert isinstance(client, ssl.SSLContext)
    for authority in (machines, newer):
        assert not accepts(client, new_leaf(authority, ["localhost"], NOW), tmp_path)


def test_a_command_for_a_machine_trusts_its_authority(tmp_path: Path) -> None:
    machines = new_root(MACHINE_AUTHORITY, NOW)
    file = tmp_path / "ca.pem"
    file.write_text(machines.certificate)
    client = tls_context(Connection("https://localhost:1", ca=file))
    assert client is not None
    assert accepts(client, new_leaf(machines, ["localhost"], NOW), tmp_path)
