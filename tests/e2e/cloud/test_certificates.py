"""A cloud with its own authority, a machine that gets its certificate from it, and clients that trust both."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography import x509

from cloud.domain.certificates import authorities
from cloud.domain.certificates.issue import new_leaf, new_root
from cloud.store.commands import opened_for_command
from cloud.values.times import now
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.network.tls import client_context
from schema.errors import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_machine import APP, LIMIT, MACHINE, sensors, until
from tests.e2e.harness import in_namespace, namespace_refusal
from tests.e2e.server.process import Server, server

SDK = Path(__file__).with_name("sdk_over_tls.py")


def ca(folder: Path, *arguments: str) -> str:
    """Return the output of `machine-cloud ca`."""
    command = [sys.executable, "-m", "cloud.server.cli", "--data", str(folder / "data"), "ca", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


class Secured:
    """A cloud that serves TLS, with one machine."""

    def __init__(self, running: CloudProcess, folder: Path, host: str = "localhost") -> None:
        self.running = running
        self.host = host
        self.folder = folder
        self.port = running.address.rpartition(":")[2]
        self.machine_folder = folder / "machine"
        self.machine_folder.mkdir()
        self.authorities = self.machine_folder / "ca.pem"
        self.credentials: dict[str, str] = {}

    def trust(self) -> None:
        """Write the authorities that clients should trust now."""
        self.authorities.write_text(ca(self.folder / "cloud"))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        context = client_context(authorities=self.authorities)
        address = f"https://{self.host}:{self.port}"
        async with Channel(address, tls=context, credentials=ApiKey(*self.running.key)) as channel:
            yield ApiClient(channel)

    async def join(self, **document: Any) -> None:
        async with self.client() as client:
            place = self.running.facts["location"]
            robot = await client.call(APP, "", "new_robot", name="rover", location=place)
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            text = json.dumps(document or sensors("a"))
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
        self.credentials = {
            "id": part["id"],
            "secret": part["secret"],
            "app_address": f"https://{self.host}:{self.port}",
            "ca_file": "ca.pem",
        }

    @asynccontextmanager
    async def machine(self, *options: str, **document: Any) -> AsyncIterator[Server]:
        whole = {"cloud": self.credentials, **document}
        async with server(self.machine_folder, whole, "-disable-mdns", *options) as running:
            yield running

    async def names(self, machine: Server) -> set[str]:
        """Return the resources of the machine, requested over TLS with a key of the cloud; empty if the call fails."""
        context = client_context(authorities=self.authorities)
        try:
            async with Channel(
                f"https://{machine.address}", tls=context, credentials=ApiKey(*self.running.key)
            ) as channel:
                answer = await ApiClient(channel).call(MACHINE, "", "resource_names")
        except MachineError:
            return set()
        return {item.rpartition("/")[2] for item in answer}

    async def signed_otherwise(self, old: str) -> bool:
        """Return whether the port's certificate was signed by none of the authorities `old`."""
        return self.signer() not in _subjects(old)

    def signer(self) -> x509.Name:
        """Return the issuer of the port's certificate."""
        text = ssl.get_server_certificate(("localhost", int(self.port)))
        return x509.load_pem_x509_certificate(text.encode()).issuer

    async def replaced(self) -> x509.Name:
        """Rotate the port's authority at once in the running cloud's database; return its issuer once it is used."""
        async with opened_for_command(self.folder / "cloud" / "data" / "cloud.db", "") as store:
            created = await store.write(lambda sql: authorities.rotate(sql, authorities.PORT, now(), timedelta()))
        newest = _subjects(created.pair.certificate)[0]

        async def shown() -> bool:
            return self.signer() == newest

        await until(shown, "a certificate of the port by the newest authority")
        return newest

    async def certificate(self, machine: Server) -> bytes:
        """Return the certificate of the machine's port."""
        stream = await self.connected(machine)
        try:
            return stream.getpeercert(binary_form=True) or b""
        finally:
            await trio.aclose_forcefully(stream)

    async def connected(self, machine: Server) -> trio.SSLStream[trio.SocketStream]:
        host, _, port = machine.address.rpartition(":")
        context = client_context(authorities=self.authorities, protocols=["http/1.1"])
        with trio.fail_after(LIMIT):
            stream = trio.SSLStream(
                await trio.open_tcp_stream(host, int(port)), context, server_hostname=host, https_compatible=True
            )
            try:
                await stream.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return stream


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    async with cloud(tmp_path / "cloud", "--tls") as running:
        created = Secured(running, tmp_path)
        created.trust()
        await created.join()
        yield created


async def test_a_machine_serves_with_a_certificate_of_the_cloud(secured: Secured) -> None:
    async with secured.machine() as machine:

        async def answers() -> bool:
            return await secured.names(machine) == {"a"}

        await until(answers, "the machine answers by TLS")
        kept = list((secured.machine_folder / "home").glob("cached_cloud_certificate_*.pem"))
        assert [oct(item.stat().st_mode & 0o777) for item in kept] == ["0o600"]
        assert "PRIVATE" not in machine.log()
        # local programs that do not know the cloud keep working
        async with machine.client() as client:
            with pytest.raises(MachineError, match="key"):
                await client.call(MACHINE, "", "resource_names")
        async with Channel(machine.address, credentials=ApiKey(*secured.running.key)) as channel:
            assert await ApiClient(channel).call(MACHINE, "", "resource_names")
        await _sdk(secured, machine)
    secured.running.process.kill()
    async with secured.machine() as machine:  # without the cloud
        await until(lambda: secured.names(machine), "the start without the cloud")


async def _sdk(secured: Secured, machine: Server) -> None:
    """Check that the official SDK trusts both by SSL_CERT_FILE, and finds the machine through the cloud."""
    # upper case, because the SDK verifies no certificate for hosts that begin with `localhost` or `127.`
    cloud, port = f"LOCALHOST:{secured.port}", machine.address.rpartition(":")[2]
    command = [sys.executable, str(SDK), cloud, f"LOCALHOST:{port}", *secured.running.key]

    async def run(authorities: Path) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "SSL_CERT_FILE": str(authorities)}
        return await trio.run_process(command, env=environment, capture_stdout=True, capture_stderr=True, check=False)

    done = await run(secured.authorities)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert done.stdout.split() == [b"rover", b"a"]
    cloud_only = secured.folder / "cloud-only.pem"
    cloud_only.write_text(await _fetched(secured))
    done = await run(cloud_only)
    assert done.stdout.split() == [b"rover"]
    assert b"CERTIFICATE_VERIFY_FAILED" in done.stderr


async def _fetched(secured: Secured) -> str:
    """Return the certificate at /ca.pem, which needs no key."""
    import httpcore

    async with httpcore.AsyncConnectionPool(client_context(authorities=secured.authorities)) as pool:
        answer = await pool.request("GET", f"https://localhost:{secured.port}/ca.pem")
    assert answer.status == 200
    assert answer.content.count(b"BEGIN CERTIFICATE") == 1
    return bytes(answer.content).decode()


async def test_a_new_certificate_does_not_close_connections(secured: Secured) -> None:
    async with secured.machine() as machine:

        async def answers() -> bool:
            return await secured.names(machine) == {"a"}

        await until(answers, "the first certificate")
        living = await secured.connected(machine)
        before, old = await secured.certificate(machine), secured.authorities.read_text()
        ca(secured.folder / "cloud", "rotate", "--yes")
        both = ca(secured.folder / "cloud")
        assert both.count("BEGIN CERTIFICATE") == 2 * old.count("BEGIN CERTIFICATE")
        await until(lambda: secured.signed_otherwise(old), "a certificate of the port by the new authority")

        async def another() -> bool:
            return await secured.certificate(machine) != before

        await until(another, "a certificate of the new authority")  # both were notified at once; the old file suffices
        async with secured.client() as client:
            assert await client.call(APP, "", "list_organizations")
        assert machine.log().count("listening on") == 1
        await living.send_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        with trio.fail_after(LIMIT):
            assert b"200 OK" in await living.receive_some(4096)
        await trio.aclose_forcefully(living)
        secured.authorities.write_text(both)
        assert await secured.names(machine) == {"a"}


async def test_connected_machines_follow_new_authorities_and_others_get_a_remedy(
    secured: Secured,
) -> None:
    text = secured.authorities.read_text()
    kept = secured.machine_folder / "home" / f"cached_cloud_authorities_{secured.credentials['id']}.json"

    async def logged(machine: Server, words: str) -> None:
        async def there() -> bool:
            return words in machine.log()

        await until(there, words)

    async with secured.machine() as machine:

        async def learned() -> bool:
            return kept.exists() and _subjects(json.loads(kept.read_text())["cloud"]) == [newest]

        newest = _subjects(text)[0]
        await until(learned, "the authorities of today")
        newest = await secured.replaced()  # without an overlap
        await until(learned, "the new authorities")
        await logged(machine, "the cloud has changed its authorities")
    async with secured.machine() as machine:
        await logged(machine, "\tconnected to the cloud")
    assert secured.authorities.read_text() == text  # the file belongs to the owner
    await secured.replaced()  # while the machine is not running
    async with secured.machine() as machine:
        await logged(machine, f"with `machine-cloud ca` and replace {secured.authorities}")
        assert "\tconnected to the cloud" not in machine.log()
        secured.trust()
        await logged(machine, "\tconnected to the cloud")


def _subjects(certificates: str) -> list[x509.Name]:
    return [certificate.subject for certificate in x509.load_pem_x509_certificates(certificates.encode())]


async def test_an_untrusted_cloud_is_reported_with_a_remedy(secured: Secured) -> None:
    del secured.credentials["ca_file"]
    async with secured.machine() as machine:

        async def logged() -> bool:
            return "machine-cloud ca" in machine.log()

        await until(logged, "what to do")
        assert "CERTIFICATE_VERIFY_FAILED" in machine.log()
        assert "ca_file" in machine.log()
        assert secured.credentials["secret"] not in machine.log()


async def test_renewed_certificate_files_are_used_without_a_restart(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("cert.pem", "key.pem")]
    root = new_root("test", now())

    def renew() -> None:
        leaf = new_leaf(root, ("localhost", "127.0.0.1"), now())
        for path, text in zip(files, (leaf.certificate, leaf.key), strict=True):
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").replace(path)

    renew()
    context = ssl.create_default_context(cadata=root.certificate)
    async with cloud(tmp_path / "cloud", "--tls-cert", str(files[0]), "--tls-key", str(files[1])) as running:
        host, _, port = running.address.rpartition(":")

        async def shown() -> bytes | None:
            stream = await trio.open_ssl_over_tcp_stream(host, int(port), ssl_context=context, https_compatible=True)
            try:
                await stream.do_handshake()
                return stream.getpeercert(binary_form=True)
            finally:
                await trio.aclose_forcefully(stream)

        before = await shown()
        renew()

        async def another() -> bool:
            return await shown() != before

        await until(another, "the renewed certificate")
        assert running.process.poll() is None


def test_other_computers_find_and_trust_the_machine(tmp_path: Path) -> None:
    refusal = namespace_refusal()
    if refusal:
        pytest.skip(f"no network namespace of our own here: {refusal}")
    done = subprocess.run(
        in_namespace([sys.executable, "-m", "tests.e2e.cloud.network", str(tmp_path)]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reached" in done.stdout
