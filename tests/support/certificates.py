"""Certificates for tests, made by the openssl command: an authority, and what can be wrong with a server's."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

CONFIG = """
[ca]
default_ca = here
[here]
dir = {dir}
database = {dir}/index
new_certs_dir = {dir}
serial = {dir}/serial
private_key = {dir}/ca.key
certificate = {dir}/ca.pem
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
organizationName = optional
commonName = supplied
"""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM files."""

    cert: str
    key: str


class Authority:
    """A certificate authority in a directory; `ca` is what clients have to trust."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs the openssl command (Debian package openssl)")
        directory.mkdir(exist_ok=True)
        self._dir = directory
        self.ca = str(directory / "ca.pem")
        (directory / "index").write_text("")
        (directory / "serial").write_text("1000\n")
        (directory / "config").write_text(CONFIG.format(dir=directory))
        subject = ["-subj", f"/CN={name}", "-days", "20000"]
        self._run("req", "-x509", *self._new_key("ca"), *subject, "-out", self.ca)

    def issue(
        self, name: str, names: str = "IP:127.0.0.1", start: str = "200101", end: str = "491231", group: str = ""
    ) -> Pair:
        """A certificate for the alternative `names`, valid between two days (YYMMDD); `group` is its organization."""
        request, cert = str(self._dir / f"{name}.csr"), str(self._dir / f"{name}.pem")
        whole = f"/O={group}/CN={name}" if group else f"/CN={name}"
        subject = ["-subj", whole, "-addext", f"subjectAltName={names}"]
        self._run("req", "-new", *self._new_key(name), *subject, "-out", request)
        self.sign(request, cert, start, end)
        return Pair(cert, str(self._dir / f"{name}.key"))

    def sign(self, request: str, cert: str, start: str = "200101", end: str = "491231") -> None:
        """Sign a request that lies in a file; what it asks for is in the certificate. Days as YYMMDD."""
        self._run(
            "ca", "-batch", "-notext", "-config", str(self._dir / "config"), "-in", request, "-out", cert,
            "-startdate", f"{start}000000Z", "-enddate", f"{end}000000Z",
        )  # fmt: skip

    def _new_key(self, name: str) -> list[str]:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        return [*curve, "-nodes", "-keyout", str(self._dir / f"{name}.key")]

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
