"""Child process (`python -m edgelet.adapters.pki.make DIR NOW NAME...`): the CA, once, and a serving certificate."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edgelet import durable

DAY = 86400
LIFE = 397 * DAY
"""Seconds that a serving certificate is valid; the longest that browsers take."""
BACKDATED = DAY
_ALWAYS = (datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2099, 12, 31, tzinfo=datetime.UTC))

Key = ec.EllipticCurvePrivateKey


def main(arguments: list[str]) -> int:
    """Write the files of `store.Store`; the certificate before what says that it is there."""
    directory, now, names = arguments[0], int(arguments[1]), arguments[2:]
    ca_key, ca = _authority(directory)
    begin, end = now - BACKDATED, now + LIFE
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _serving(key, names, begin, end, ca_key, ca)
    durable.write(os.path.join(directory, "serving.pem"), _pem_key(key) + _pem(cert) + _pem(ca), 0o600)
    facts = {"names": names, "notBefore": begin, "notAfter": end}
    durable.write(os.path.join(directory, "serving.json"), json.dumps(facts).encode(), 0o600)
    return 0


def _authority(directory: str) -> tuple[Key, x509.Certificate]:
    key_path, path = os.path.join(directory, "ca.key"), os.path.join(directory, "ca.pem")
    if os.path.exists(key_path) and os.path.exists(path):
        with open(key_path, "rb") as key_file, open(path, "rb") as file:
            loaded = serialization.load_pem_private_key(key_file.read(), None)
            if not isinstance(loaded, ec.EllipticCurvePrivateKey):
                raise SystemExit(f"{key_path} holds no key for elliptic curves; remove it to have a new one made")
            return loaded, x509.load_pem_x509_certificate(file.read())
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgelet")])
    cert = (
        _base(name, name, key, *_ALWAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    durable.write(key_path, _pem_key(key), 0o600)
    durable.write(path, _pem(cert), 0o644)
    return key, cert


def _serving(key: Key, names: list[str], begin: int, end: int, ca_key: Key, ca: x509.Certificate) -> x509.Certificate:
    times = [datetime.datetime.fromtimestamp(t, datetime.UTC) for t in (begin, end)]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgelet server")])
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _base(subject, ca.subject, key, times[0], times[1])
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False)
        .add_extension(authority, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _base(
    subject: x509.Name, issuer: x509.Name, key: Key, begin: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _usage(sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
