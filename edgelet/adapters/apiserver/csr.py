"""Child process that makes keys and signing requests, because the library that signs costs memory for good.

``python -m edgelet.adapters.apiserver.csr request KEYFILE NODE`` writes a new private key and prints the request, PEM.
``... install KEYFILE TARGET < CERTIFICATE`` writes key and certificate to TARGET, if they belong together, and prints
``[not before, not after]`` in epoch seconds.  A failure is one line on standard error and exit status 1.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgelet import durable, errors

GROUP = "system:nodes"


def main(arguments: list[str]) -> int:
    """Run one of the two."""
    try:
        if arguments[0] == "request":
            sys.stdout.buffer.write(request(arguments[1], arguments[2]))
        else:
            print(json.dumps(install(arguments[1], arguments[2], sys.stdin.buffer.read())))
    except (errors.StateError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def request(key_file: str, node: str) -> bytes:
    """A new key in `key_file` and the request for user system:node:NODE in group system:nodes."""
    key = ec.generate_private_key(ec.SECP256R1())
    durable.write(
        key_file,
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        0o600,
    )
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, GROUP),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
        ]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def install(key_file: str, target: str, certificate: bytes) -> tuple[int, int]:
    """Raises ValueError when the certificate is not of that key."""
    with open(key_file, "rb") as file:
        key = file.read()
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    found = x509.load_pem_x509_certificate(certificate)
    own = serialization.load_pem_private_key(key, None).public_key().public_bytes(*form)
    if found.public_key().public_bytes(*form) != own:
        raise ValueError("the certificate is not for the key that it was asked for")
    durable.write(target, certificate.rstrip() + b"\n" + key, 0o600)
    os.unlink(key_file)
    return _epoch(found, "not_valid_before"), _epoch(found, "not_valid_after")


def _epoch(certificate: x509.Certificate, name: str) -> int:
    """The oldest version of the library that we support gives UTC without saying so, the newest complains of that."""
    moment: datetime = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    return int(moment.replace(tzinfo=UTC).timestamp())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
