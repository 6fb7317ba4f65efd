"""The TLS port: who gets in, as what, and what is refused."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edgelet import errors
from edgelet.adapters.pki.store import Store
from edgelet.adapters.server import bounds, secure
from edgelet.adapters.server.secure import Secure
from tests.support.certificates import Authority, Pair
from tests.support.ports import free_port
from tests.support.serving import Rig, pod, running, serving

pytest.importorskip("cryptography")

ADMIN, VIEW, NONE = "a" * 40, "v" * 40, "n" * 40
PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Port:
    """A server on a TLS port of its own."""

    rig: Rig
    plan: Secure
    port: int

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """What a client trusts, and shows."""
        context = ssl.create_default_context(cafile=self.plan.ca_file)
        if pair:
            context.load_cert_chain(pair.cert, pair.key)
        return context

    def ask(
        self, path: str, token: str = "", method: str = "GET", host: str = "", pair: Pair | None = None
    ) -> tuple[int, Any]:
        """Code and JSON."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context(pair), timeout=20)
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **({"Host": host} if host else {})}
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def port(tmp_path: Path, authority: Authority) -> Iterator[Port]:
    store = Store(str(tmp_path / "pki"), ["edge1", "localhost", "127.0.0.1"])
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(
        f'{ADMIN},root,1,"edgelet:admin"\n{VIEW},eye,2,"x,edgelet:view"\n{NONE},none,3\nshort,s,4,"edgelet:admin"\n'
    )
    plan = Secure(
        "127.0.0.1", free_port(), store.serving, "", store.ca, authority.ca, str(tokens), ("edge1", "localhost"),
        lambda: store.ensure_certificate(time.time()),
    )  # fmt: skip
    with serving(tmp_path, secure=plan) as rig:
        rig.store.put(pod(), running())
        yield Port(rig, plan, _listening(plan.port))


def _listening(port: int) -> int:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return port
        except OSError:
            assert time.monotonic() < until, "the TLS port does not answer"
            time.sleep(0.05)


def test_a_token_opens_the_door_and_says_the_role(port: Port) -> None:
    assert port.ask(PODS, VIEW)[0] == 200
    assert port.ask(PODS, ADMIN)[0] == 200
    assert port.ask(f"{PODS}/web-edge1", VIEW, "DELETE")[0] == 403
    code, status = port.ask(f"{PODS}/web-edge1/exec?command=sh", VIEW)
    assert (code, status["message"]) == (
        403,
        'pods/exec "web-edge1" is forbidden: User "eye" cannot create resource "pods/exec" in API group "" '
        'in the namespace "default"',
    )
    assert "it comes from" in port.ask(f"{PODS}/web-edge1", ADMIN, "DELETE")[1]["message"]
    assert port.ask(PODS, NONE)[0] == 403


@pytest.mark.parametrize("token", ["", "wrong" * 8, VIEW, ADMIN])
def test_whoever_may_change_nothing_sends_no_large_body(port: Port, token: str) -> None:
    """256 callers with 4 MiB each would be a gigabyte before anybody asks who they are."""
    length = bounds.SMALL_BODY_BYTES + 1
    head = f"POST /apis/edgelet.io/v1/apply HTTP/1.1\r\nHost: edge1\r\nContent-Length: {length}\r\n"
    head += f"Authorization: Bearer {token}\r\n"
    head += "Expect: 100-continue\r\n\r\n" if token == ADMIN else "\r\n"
    with _connected(port) as sock:
        sock.sendall(head.encode())
        answer = sock.recv(100)
    assert answer.startswith(b"HTTP/1.1 100 " if token == ADMIN else b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "path", ["/healthz", "/version", "/api", "/pods", PODS, "/nosuch", "/apis/edgelet.io/v1/status"]
)
def test_without_a_good_token_nothing_is_told(port: Port, path: str) -> None:
    for token in ("", "wrong" * 8, "short"):
        code, status = port.ask(path, token)
        assert (code, status["reason"], status["message"]) == (401, "Unauthorized", "Unauthorized")


def test_tokens_are_read_again_when_their_file_changes(port: Port) -> None:
    assert port.ask(PODS, VIEW)[0] == 200
    Path(port.plan.token_file).write_text(f'{"z" * 40},eye,2,"edgelet:view"\n')
    assert port.ask(PODS, VIEW)[0] == 401
    assert port.ask(PODS, "z" * 40)[0] == 200
    Path(port.plan.token_file).unlink()
    assert port.ask(PODS, "z" * 40)[0] == 401


def test_client_certificates_say_name_and_role(port: Port, authority: Authority, tmp_path: Path) -> None:
    named = authority.issue("api-server")
    code, status = port.ask(PODS, pair=named)
    assert (code, 'User "api-server" cannot list' in status["message"]) == (403, True)
    with pytest.raises((ssl.SSLError, OSError)):
        port.ask(PODS, pair=authority.issue("old", end="220101"))
    with pytest.raises((ssl.SSLError, OSError)):
        port.ask(PODS, pair=Authority(tmp_path / "other").issue("stranger"))


@pytest.mark.parametrize("host", ["evil.example:10250", "evil.example", "127.0.0.1.evil.example", "", "a" * 300])
def test_a_foreign_host_name_is_refused(port: Port, host: str) -> None:
    if host:
        assert port.ask(PODS, ADMIN, host=host)[0] == 403
    for ours in ("localhost:1", "127.0.0.1", "[::1]:10250", "EDGE1"):
        assert port.ask(PODS, ADMIN, host=ours)[0] == 200


def test_plain_http_and_old_tls_get_nothing(port: Port) -> None:
    with socket.create_connection(("127.0.0.1", port.port), 10) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"HTTP/1.1 200" not in plain.recv(4096)
    assert port.ask(PODS, VIEW)[0] == 200


def test_clients_that_say_nothing_are_cut_off_and_leave_the_unix_socket_alone(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutes = [socket.create_connection(("127.0.0.1", port.port), 10) for _ in range(bounds.CONNECTIONS + 44)]
    assert port.rig.client.get(PODS)["kind"] == "PodList"
    closed = 0
    for mute in mutes:
        mute.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            try:
                closed += mute.recv(1) == b""
            except ConnectionError:
                closed += 1
    for mute in mutes:
        mute.close()
    assert closed >= 44
    assert _asked(port) == 200


def test_any_number_of_strangers_keeps_nobody_out_and_ends_no_known_caller(port: Port) -> None:
    """Who holds a connection without saying who he is, or with a bad token, makes room for the next one."""
    known = _connected(port)
    assert _says(known, VIEW) == b"HTTP/1.1 200"
    strangers = []
    for number in range(bounds.CONNECTIONS + 100):
        strangers.append(socket.create_connection(("127.0.0.1", port.port), 20))
        if number % 64 == 0:
            strangers.append(_connected(port))
            assert _says(strangers[-1], "wrong" * 8) == b"HTTP/1.1 401"
    assert port.ask(PODS, VIEW)[0] == 200
    assert _says(known, VIEW) == b"HTTP/1.1 200"
    for stranger in (known, *strangers):
        stranger.close()


def _connected(port: Port) -> socket.socket:
    context = ssl.create_default_context(cafile=port.plan.ca_file)
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port.port), 20), server_hostname="edge1")


def _says(sock: socket.socket, token: str) -> bytes:
    """The status line's beginning of one more request on that connection, which stays open."""
    sock.sendall(f"GET /version HTTP/1.1\r\nHost: edge1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    answer = b""
    while not answer.rstrip().endswith(b"}"):
        answer += sock.recv(4096)
    return answer[:12]


def _asked(port: Port) -> int:
    """The answer, once the server has seen that the mutes are gone."""
    until = time.monotonic() + 30
    while True:
        try:
            return port.ask(PODS, VIEW)[0]
        except OSError:
            assert time.monotonic() < until, "nobody gets in any more"
            time.sleep(0.05)


def test_a_clock_that_is_set_has_the_certificate_made_anew_at_once(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a boot in 1970: what was made then is long over, and the next regular look is an hour away."""
    monkeypatch.setattr(secure, "CLOCK_SECONDS", 0.05)
    store = Store(str(tmp_path / "pki"), ["edge1", "localhost", "127.0.0.1"])
    clock = [10.0]
    plan = Secure(
        "127.0.0.1", free_port(), store.serving, "", store.ca, authority.ca, str(tmp_path / "tokens"), ("edge1",),
        lambda: store.ensure_certificate(clock[0]),
    )  # fmt: skip
    with serving(tmp_path, secure=plan):
        _listening(plan.port)
        context = ssl.create_default_context(cafile=store.ca)
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            _greet(context, plan.port)
        clock[0] = time.time()
        monkeypatch.setattr(secure, "_offset", lambda: 0.0)
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(ssl.SSLCertVerificationError):
                _greet(context, plan.port)
                return
            assert time.monotonic() < until, "the certificate of 1970 is still served"
            time.sleep(0.1)


def _greet(context: ssl.SSLContext, port: int) -> None:
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 20), server_hostname="localhost"):
        pass


def test_what_was_made_is_kept_and_renewed_in_time(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    store = Store(str(directory), ["localhost"])
    now, year = 1_800_000_000.0, 365 * 86400.0
    store.ensure_certificate(now)
    ca, first = (directory / "ca.pem").read_bytes(), (directory / "serving.pem").read_bytes()
    assert (directory / "serving.pem").stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    store.ensure_certificate(now + year / 2)
    assert (directory / "serving.pem").read_bytes() == first
    store.ensure_certificate(now + year)
    second = (directory / "serving.pem").read_bytes()
    assert second != first
    store.ensure_certificate(now - 10 * year)  # the clock went back: not valid yet is not valid
    assert (directory / "serving.pem").read_bytes() != second
    Store(str(directory), ["localhost", "more"]).ensure_certificate(now - 10 * year)
    assert (directory / "ca.pem").read_bytes() == ca
    (directory / "ca.key").write_text("damaged")
    with pytest.raises(errors.StateError, match="cannot make a certificate"):
        Store(str(directory), ["other"]).ensure_certificate(now)


def test_without_the_library_that_signs_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cryptography.py").write_text("raise ModuleNotFoundError(\"No module named 'cryptography'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(errors.StateError, match=r"is not installed; install it, or give a certificate \(tlsCertFile\)"):
        Store(str(tmp_path / "pki"), ["localhost"]).ensure_certificate(time.time())


def test_tokens_are_made_once(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "pki"), [])
    store.ensure_tokens()
    first = Path(store.tokens).read_text()
    store.ensure_tokens()
    assert Path(store.tokens).read_text() == first
    assert [row.split(",")[3] for row in first.splitlines()] == ['"edgelet:admin"', '"edgelet:view"']
    assert Path(store.tokens).stat().st_mode & 0o777 == 0o600


def test_a_port_that_is_taken_hurts_nobody_and_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        plan = Secure("127.0.0.1", number, "x", "", "", "", "", (), lambda: None)
        with serving(tmp_path, secure=plan) as rig:
            until = time.monotonic() + 20
            while not rig.client.get("/apis/edgelet.io/v1/status")["notes"] and time.monotonic() < until:
                time.sleep(0.02)
            notes = rig.client.get("/apis/edgelet.io/v1/status")["notes"]
            assert notes[0].startswith(f"cannot serve TLS on 127.0.0.1:{number}: ")


def test_a_kubeconfig_has_all_that_is_needed(port: Port) -> None:
    found = port.rig.client.post("/apis/edgelet.io/v1/kubeconfig", {"role": "view", "server": "box.example"})
    assert found["clusters"][0]["cluster"]["server"] == f"https://box.example:{port.port}"
    assert found["users"][0]["user"]["token"] == VIEW
    own = port.rig.client.post("/apis/edgelet.io/v1/kubeconfig", {"role": "admin"})
    assert (own["clusters"][0]["cluster"]["server"], own["users"][0]["user"]["token"]) == (
        f"https://127.0.0.1:{port.port}",
        ADMIN,
    )
    assert port.ask("/apis/edgelet.io/v1/kubeconfig", ADMIN, "POST")[0] == 404
