"""The node's own client certificate: asked for with a bootstrap kubeconfig, renewed before it ends.

The kubelet's flow (certificates.k8s.io), only where a bootstrap kubeconfig is configured.  ``client.pem``
(certificate, then key) and ``client.json`` (its life) stand in the mirror's state directory; the kubeconfig
that is written refers to the former, so that a renewed one is used by itself.
"""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import sys
from typing import Any

import yaml

from ... import durable
from ...core import backoff, mirror_certs, mirror_link
from ...errors import LinkError, Refused, StateError, cause
from ...ports import Clock
from . import api, kubeconfig
from .node import NodeState
from .parts import Options, node_ref

log = logging.getLogger(__name__)
Json = dict[str, Any]

CHILD = f"{__package__}.csr"
CHILD_SECONDS = 120
NAME = "certificate"
CHECK_SECONDS = 3600.0
"""Longest seconds between looks at the certificate's age: the clock may be set."""


class CertificateTask:
    """One request at a time. `first` uses the bootstrap kubeconfig, `asked` the node's own."""

    name = NAME

    def __init__(self, options: Options, clock: Clock, first: api.Api, asked: api.Api, state: NodeState) -> None:
        self._o = options
        self._clock = clock
        self._first, self._own = first, asked
        self._state = state
        self._target = os.path.join(options.state_dir, "client.pem")
        self._life = os.path.join(options.state_dir, "client.json")
        self._key = os.path.join(options.state_dir, "client.key.new")
        self._draw = random.random()
        self._due = 0.0
        self._failures = 0
        self._csr = ""
        self._asked_at = 0.0
        self._looks = 0

    @property
    def needed(self) -> bool:
        """Nothing else can be done before there is a certificate: it is missing, or has ended while the box was off."""
        if self._missing:
            return True
        life = self._read_life()
        return life is not None and self._clock.time() >= life[1]

    @property
    def _missing(self) -> bool:
        return not os.path.exists(self._o.kubeconfig)

    def _read_life(self) -> tuple[float, float] | None:
        """Beginning and end; None where the kubeconfig was not made here: whoever made it renews it."""
        try:
            with open(self._life, encoding="utf-8") as file:
                begin, end = json.load(file)
        except (OSError, ValueError):
            return None
        return float(begin), float(end)

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        return self._due

    def lost(self) -> None:
        """See parts.Task."""

    def run(self, now: float) -> None:
        """See parts.Task."""
        try:
            self._due = now + self._round(now)
        except Refused as error:
            self._csr = ""
            self._failures += 1
            self._due = now + mirror_link.object_retry(self._failures, random.random())
            self._state.problems.set(NAME, node_ref(self._o.node), str(error))
            return
        self._failures = 0
        if not self._csr:
            self._state.problems.clear(NAME)

    def _round(self, now: float) -> float:
        """One step; the seconds to the next. Raises LinkError."""
        if self._csr:
            return self._look(now)
        wait = self._renew_in()
        if wait > 0:
            return min(wait, CHECK_SECONDS)
        self._request(now)
        return mirror_certs.FIRST_LOOK

    @property
    def _api(self) -> api.Api:
        return self._first if self.needed else self._own

    def _renew_in(self) -> float:
        life = None if self._missing else self._read_life()
        if life is None:
            return 0.0 if self._missing else float("inf")
        return mirror_certs.renew_at(*life, self._draw) - self._clock.time()

    def _request(self, now: float) -> None:
        durable.make_directory(self._o.state_dir)
        request = _child(["request", self._key, self._o.node])
        body = mirror_certs.body(request)
        reply = self._api.create_csr(body)
        if reply.code not in (201, 409):
            raise api.refused("ask for a client certificate", reply)
        self._csr = str(body["metadata"]["name"])
        self._asked_at, self._looks = now, 0
        log.info("asked for a client certificate: %s", self._csr)

    def _look(self, now: float) -> float:
        reply = self._api.csr(self._csr)
        if reply.code != 200:
            raise api.refused(f"read the request {self._csr} for a client certificate", reply)
        certificate, refusal = mirror_certs.answer(reply.document)
        if refusal:
            raise Refused(f"cannot get a client certificate: {refusal}", 403)
        if certificate:
            self._install(certificate)
            self._csr = ""
            life = self._read_life()
            rest = mirror_certs.rest(*life, self._draw, self._clock.time()) if life else 0.0
            return min(rest, CHECK_SECONDS)
        if now - self._asked_at > mirror_certs.GIVE_UP:
            self._csr = ""
            return 0.0
        self._looks += 1
        if self._looks > 2:
            text = f"the request for a client certificate waits: kubectl certificate approve {self._csr}"
            self._state.problems.set(NAME, node_ref(self._o.node), text)
        return backoff.steps(self._looks, mirror_certs.FIRST_LOOK, mirror_certs.LOOK_CAP)

    def _install(self, certificate: bytes) -> None:
        life = _child(["install", self._key, self._target], certificate)
        try:
            durable.write(self._life, life, 0o600)
            if self._missing:
                durable.write(self._o.kubeconfig, self._kubeconfig(), 0o600)
        except StateError as error:
            raise LinkError(str(error)) from error
        log.info("there is a new client certificate in %s", self._target)

    def _kubeconfig(self) -> bytes:
        """The bootstrap kubeconfig's cluster, with the certificate as user."""
        access = kubeconfig.read(self._o.bootstrap)
        cluster = {
            "server": access.server,
            "certificate-authority": access.ca_file,
            "certificate-authority-data": access.encoded_ca,
            "insecure-skip-tls-verify": access.insecure,
            "tls-server-name": access.tls_server_name,
            "proxy-url": access.proxy_url,
        }
        user = {"client-certificate": self._target, "client-key": self._target}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default", "cluster": {k: v for k, v in cluster.items() if v}}],
            "users": [{"name": "default", "user": user}],
            "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
            "current-context": "default",
        }
        return yaml.safe_dump(document, sort_keys=False).encode()


def _child(arguments: list[str], given: bytes = b"") -> bytes:
    """What the child prints. Raises LinkError: the rest of the box does not need it."""
    command = [sys.executable, "-m", CHILD, *arguments]
    try:
        return subprocess.run(command, input=given, check=True, capture_output=True, timeout=CHILD_SECONDS).stdout
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().splitlines()
        raise LinkError(f"cannot make a client certificate: {why[-1] if why else error}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(f"cannot make a client certificate: {cause(error)}") from error
