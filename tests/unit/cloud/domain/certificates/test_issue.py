"""Certificate chains pass strict verifiers: the cryptography library (WebPKI profile) and openssl."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from cloud.domain.certificates import issue
from cloud.domain.certificates.issue import (
    LIFE,
    MOST_CROSSED,
    RENEW,
    CertificatePair,
    crossed,
    fingerprint,
    is_dns_name,
    new_leaf,
    new_root,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = ("rover.4k0q.local", "rover", "192.168.7.5", "::1")


def certificates(*texts: str) -> list[x509.Certificate]:
    return [certificate for text in texts for certificate in x509.load_pem_x509_certificates(text.encode())]


def verified(chain: str, roots: str, name: str, now: datetime = NOW) -> list[x509.Certificate]:
    """Return the path from the leaf to a root, or raise VerificationError."""
    leaf, *between = certificates(chain)
    subject = x509.IPAddress(ip_address(name)) if ":" in name or name[0].isdigit() else x509.DNSName(name)
    verifier = PolicyBuilder().store(Store(certificates(roots))).time(now).build_server_verifier(subject)
    return verifier.verify(leaf, between)


def openssl(folder: Path, chain: str, roots: str, *options: str) -> str:
    """Return the error of `openssl verify -x509_strict`, or "" on success."""
    leaf, *between = certificates(chain)
    pem = issue._pem
    (folder / "leaf.pem").write_text(pem(leaf))
    (folder / "between.pem").write_text("".join(map(pem, between)) or roots)
    (folder / "roots.pem").write_text(roots)
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-attime", str(int(NOW.timestamp()))]
    files = ["-CAfile", "roots.pem", "-untrusted", "between.pem", *options, "leaf.pem"]
    done = subprocess.run([*command, *files], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else done.stderr


def test_a_leaf_is_valid_for_exactly_its_names(tmp_path: Path) -> None:
    root = new_root("test", NOW)
    leaf = new_leaf(root, NAMES, NOW)
    for name in NAMES:
        assert len(verified(leaf.certificate, root.certificate, name)) == 2
    with pytest.raises(VerificationError):
        verified(leaf.certificate, root.certificate, "other.local")
    assert openssl(tmp_path, leaf.certificate, root.certificate, "-verify_ip", "192.168.7.5") == ""
    assert "mismatch" in openssl(tmp_path, leaf.certificate, root.certificate, "-verify_ip", "192.168.7.6")


def test_a_wildcard_name_covers_one_label() -> None:
    root = new_root("Test", NOW)
    leaf = new_leaf(root, ("*.machines.example",), NOW)
    assert len(verified(leaf.certificate, root.certificate, "rover.machines.example")) == 2
    with pytest.raises(VerificationError):
        verified(leaf.certificate, root.certificate, "a.rover.machines.example")


def test_a_leaf_is_not_valid_under_another_root(tmp_path: Path) -> None:
    leaf, other = new_leaf(new_root("test", NOW), NAMES, NOW), new_root("test", NOW)
    with pytest.raises(VerificationError):
        verified(leaf.certificate, other.certificate, NAMES[0])
    assert openssl(tmp_path, leaf.certificate, other.certificate)


def test_validity_begins_early_and_ends_after_weeks_or_with_the_root() -> None:
    root = new_root("test", NOW)
    leaf = new_leaf(root, NAMES, NOW)
    verified(leaf.certificate, root.certificate, "rover", NOW - timedelta(hours=20))
    verified(leaf.certificate, root.certificate, "rover", NOW + LIFE - timedelta(seconds=1))
    with pytest.raises(VerificationError):
        verified(leaf.certificate, root.certificate, "rover", NOW + LIFE + timedelta(seconds=1))
    late = issue.ends_of(root.certificate) - timedelta(days=3)
    assert issue.ends_of(new_leaf(root, NAMES, late).certificate) == issue.ends_of(root.certificate)
    assert timedelta(days=14) <= LIFE <= timedelta(days=60)
    assert RENEW < LIFE / 2


def test_extensions_are_those_of_an_authority_and_of_a_server() -> None:
    root = new_root("test", NOW)
    (authority,), (leaf,) = certificates(root.certificate), certificates(new_leaf(root, NAMES, NOW).certificate)
    basic = x509.BasicConstraints
    assert authority.extensions.get_extension_for_class(basic).value == basic(ca=True, path_length=MOST_CROSSED)
    assert leaf.extensions.get_extension_for_class(basic).value == basic(ca=False, path_length=None)
    assert leaf.extensions.get_extension_for_class(basic).critical
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature
    assert not usage.key_cert_sign
    assert authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == identifier
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in purposes] == ["1.3.6.1.5.5.7.3.1"]


def test_a_leaf_cannot_sign(tmp_path: Path) -> None:
    root = new_root("test", NOW)
    leaf = new_leaf(root, NAMES, NOW)
    false = new_leaf(leaf, ["bank.example"], NOW)
    assert openssl(tmp_path, false.certificate + leaf.certificate, root.certificate)
    with pytest.raises(VerificationError):
        verified(false.certificate + leaf.certificate, root.certificate, "bank.example")


@pytest.mark.parametrize("turns", [1, 2, MOST_CROSSED])
def test_after_a_rotation_both_roots_lead_to_the_new_leaf(turns: int, tmp_path: Path) -> None:
    roots = [new_root("test", NOW)]
    crosses = ""
    for _ in range(turns):
        created = new_root("test", NOW)
        crosses = crossed(roots[-1], created) + crosses
        roots.append(created)
    chain = new_leaf(roots[-1], NAMES, NOW).certificate + crosses + roots[-1].certificate
    for root in roots:
        assert verified(chain, root.certificate, "rover")
        assert openssl(tmp_path, chain, root.certificate) == ""
    with pytest.raises(VerificationError):
        verified(chain, new_root("test", NOW).certificate, "rover")


def test_the_length_of_a_chain_is_limited() -> None:
    roots = [new_root("test", NOW) for _ in range(MOST_CROSSED + 2)]
    crosses = "".join(reversed([crossed(old, new) for old, new in pairwise(roots)]))
    chain = new_leaf(roots[-1], NAMES, NOW).certificate + crosses
    assert verified(chain, roots[1].certificate, "rover")
    with pytest.raises(VerificationError):
        verified(chain, roots[0].certificate, "rover")


def test_roots_have_unique_names_and_keys_are_not_shown() -> None:
    first, other = new_root("test", NOW), new_root("test", NOW)
    assert issue.subject_of(first.certificate) != issue.subject_of(other.certificate)
    assert fingerprint(first.certificate) != fingerprint(other.certificate)
    assert "PRIVATE" not in repr(first)
    assert first.key not in repr(CertificatePair(first.certificate, first.key))


@pytest.mark.parametrize(
    "name", ["", "a b", "*", "a.*.example", "*.*.example", "-a", "a-", "a..b", "x" * 64, "ä.local", "a_b", "-"]
)
def test_an_invalid_name_is_refused(name: str) -> None:
    assert not is_dns_name(name)
    with pytest.raises(ValueError, match="name"):
        new_leaf(new_root("test", NOW), [name], NOW)


def test_a_leaf_without_names_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        new_leaf(new_root("test", NOW), [], NOW)
