"""The URL source against a web server that fails in every way: no bad reply ever changes what runs."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import durable
from edgelet.adapters import url as urls
from edgelet.adapters.url import Access, UrlSource, fetch
from edgelet.adapters.url.failures import FetchError
from edgelet.adapters.url.fetch import PLAIN, Fetcher, Reply, Validators
from edgelet.adapters.url.source import display, source_name
from tests.fakes import FakeClock
from tests.support import web
from tests.support.certificates import Authority
from tests.support.shaky import PowerCut, ShakyFiles
from tests.support.sources import NODE, Sink, manifest, many
from tests.support.web import Answer, Request, WebServer

EMPTY_LIST = "apiVersion: v1\nkind: PodList\nitems: []\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class Box:
    """One URL source on one scripted server."""

    def __init__(self, tmp: Path, server: WebServer, access: Access = PLAIN) -> None:
        self.tmp, self.server = tmp, server
        self.patient = Fetcher(server.url, access, 60)
        self.fetcher = self.patient
        self.clock = FakeClock()
        self.sink = Sink()
        self.source: UrlSource = self.start()

    def start(self) -> UrlSource:
        """A fresh agent with the store of the one before."""
        self.sink = Sink()
        self.source = UrlSource(
            self.server.url,
            NODE,
            self.sink,
            self.clock,
            str(self.tmp / "store"),
            fetch=self.fetch,
            draw=lambda: 0.5,
        )
        self.source.begin()
        return self.source

    def fetch(self, validators: Validators) -> Reply:
        """By the fetcher of the moment."""
        return self.fetcher(validators)

    def poll(self, reply: Answer | None = None) -> dict[str, str]:
        """The next request, whenever it is due; `reply` is what the server says from now on."""
        if reply is not None:
            self.server.script = lambda _: reply
        self.clock.advance(max(0.0, self.source.wake_at() - self.clock.monotonic()))
        self.source.step()
        return self.sink.images()


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer(lambda _: web.answer(manifest("web"))) as made:
        yield made


@pytest.fixture
def box(tmp_path: Path, server: WebServer) -> Box:
    return Box(tmp_path, server)


# -- good replies -----------------------------------------------------------------------------


def test_pain_116_pods_of_a_url_run_and_follow_it(box: Box) -> None:
    assert box.poll() == {"web": "one"}
    assert [s.seen for s in box.sink.snapshots] == [False, True]
    assert {p.source for p in box.sink.last.pods} == {source_name(box.server.url)}
    assert box.poll(web.answer(manifest("web", "two"))) == {"web": "two"}
    state = box.source.state()
    assert (state.ok, state.pods, state.read_at, state.tried_at) == (True, 1, box.clock.time(), box.clock.time())


def listed(*names: str) -> str:
    """A PodList in YAML."""
    items = ("- " + manifest(name).rstrip().replace("\n", "\n  ") for name in names)
    return "apiVersion: v1\nkind: PodList\nitems:\n" + "\n".join(items) + "\n"


def as_json(*names: str) -> str:
    """A List in JSON."""
    spec = {"containers": [{"name": "c", "image": "one"}]}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in names]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})


@pytest.mark.parametrize("body", [many(manifest("a"), manifest("b")), listed("a", "b"), as_json("a", "b")])
def test_all_shapes_of_a_body_are_read(box: Box, body: str) -> None:
    assert box.poll(web.answer(body)) == {"a": "one", "b": "one"}
    assert box.sink.errors() == []


def test_compressed_and_chunked_bodies_are_read(box: Box) -> None:
    assert box.poll(web.zipped(manifest("web", "zipped"))) == {"web": "zipped"}
    assert box.server.requests[-1].headers["accept-encoding"] == "gzip"
    assert box.poll(web.chunked(manifest("web", "chunked"))) == {"web": "chunked"}
    assert box.poll(web.unmeasured(manifest("web", "unmeasured"))) == {"web": "unmeasured"}


def test_an_unchanged_body_costs_a_304_by_etag_or_date(box: Box) -> None:
    for header, sent in (("ETag", "if-none-match"), ("Last_Modified", "if-modified-since")):
        box.poll(web.answer(manifest("web"), **{header: "Sat, 1 Jan 2022 00:00:00 GMT"}))
        delivered = len(box.sink.snapshots)
        assert box.poll(web.answer(status="304 Not Modified", Content_Length="")) == {"web": "one"}
        assert box.server.requests[-1].headers[sent] == "Sat, 1 Jan 2022 00:00:00 GMT"
        assert len(box.sink.snapshots) == delivered
        assert box.source.state().ok


def test_only_a_valid_empty_list_ends_the_pods(box: Box) -> None:
    box.poll()
    assert box.poll(web.answer(EMPTY_LIST)) == {}
    assert box.sink.errors() == []
    assert box.poll(web.answer(manifest("web"))) == {"web": "one"}


def test_one_bad_pod_of_a_reply_costs_that_pod_only(box: Box) -> None:
    box.poll(web.answer(many(manifest("a"), manifest("b"))))
    assert box.poll(web.answer(many(manifest("a", '""'), manifest("b", "two"), manifest("c")))) == {
        "a": "one",
        "b": "two",
        "c": "one",
    }
    assert len(box.sink.errors()) == 1 and not box.source.state().ok and box.source.state().from_last_good
    box.start()
    assert box.sink.images() == {"a": "one", "b": "two", "c": "one"}


def test_a_half_valid_first_reply_has_not_spoken(box: Box) -> None:
    assert box.poll(web.answer(many(manifest("a", '""'), manifest("b")))) == {"b": "one"}
    assert not box.sink.last.seen


# -- bad replies ------------------------------------------------------------------------------

ZIPPED = gzip.compress(manifest("web", "two").encode())
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"

BAD = {
    "401": (web.answer(status="401 Unauthorized"), "answers 401 Unauthorized: it wants credentials"),
    "403": (web.answer(status="403 Forbidden"), "answers 403"),
    "404": (web.answer("gone", status="404 Not Found"), "there is nothing at this address"),
    "429": (web.answer(status="429 Too Many Requests"), "it is asked too often"),
    "500": (web.answer(status="500 Oops"), "the server answers 500 Oops"),
    "204": (web.answer(status="204 No Content", Content_Length=""), "the server answers 204"),
    "304 unasked": (web.answer(status="304 Not Modified", Content_Length=""), "304"),
    "empty": (web.answer(""), "it is empty"),
    "blank": (web.answer("\n\n"), "it is empty"),
    "comments": (web.answer("# nothing here\n---\n"), "only comments; to end all pods serve a PodList without items"),
    "HTML": (web.answer("<html>log in</html>", Content_Type="text/html; charset=utf-8"), "a web page"),
    "HTML unmarked": (web.answer("<html><body>log in</body></html>"), ""),
    "no pod": (web.answer("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"), "it names no pod"),
    "huge": (web.answer("#" * (fetch.MAX_BYTES + 1)), "larger than 10 MiB"),
    "bomb": (web.zipped("#" * 60_000_000), "larger than 10 MiB"),
    "cut": (web.cut(manifest("web", "two"), 60), "the reply was cut"),
    "cut in chunks": (web.chunked(manifest("web", "two"), finished=False), "the connection broke"),
    "cut unmeasured": (web.unmeasured(manifest("web", "two-and-a-half")[:-4]), "may have been cut"),
    "cut gzip": (web.answer(ZIPPED[:-20], Content_Encoding="gzip"), ""),
    "not gzip": (web.answer(manifest("web", "two"), Content_Encoding="gzip"), ""),
    "NUL": (web.answer("\0" * 200), "NUL"),
    "nothing": (web.NOTHING, ""),
    "rubbish": (Answer((b"\x16\x03\x01 what is this\r\n\r\n",)), ""),
    "hang": (web.HANG, "no complete answer within 0.3 s"),
    "hang in the body": (Answer((HEAD + b"kind: Pod",), hang=True), "within 0.3 s"),
    "slow drip": (web.drip(web.answer(manifest("web", "two")), 0.02), "within 0.3 s"),
    "slow drip, no length": (web.drip(web.unmeasured(manifest("web", "two")), 0.02), "within 0.3 s"),
    "redirect loop": (web.answer(status="302 Found", Location="/pods"), "redirects more than 5 times"),
    "redirect to a file": (web.answer(status="302 Found", Location="file:///etc/passwd"), "to a file address"),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_reply_changes_nothing_and_is_said_and_healed(
    tmp_path: Path, server: WebServer, reply: Answer, said: str
) -> None:
    box = Box(tmp_path, server)
    box.poll()
    before = box.sink.last.pods
    box.fetcher = Fetcher(server.url, timeout=0.3 if "0.3 s" in said else 60)
    box.poll(reply)
    assert box.sink.last.pods == before
    assert box.sink.last.seen
    state = box.source.state()
    assert not state.ok and said in state.message and state.from_last_good
    assert any(said in error for error in box.sink.errors())
    box.start()
    assert box.sink.last.pods == before
    box.poll()
    assert box.sink.last.pods == before
    box.fetcher = box.patient
    assert box.poll(web.answer(manifest("web", "restored"))) == {"web": "restored"}
    assert box.sink.errors() == [] and box.source.state().ok


def test_content_that_comes_back_after_an_empty_reply_runs_again(box: Box) -> None:
    box.poll()
    box.poll(web.answer(""))
    assert box.poll(web.answer(manifest("web"))) == {"web": "one"}
    assert box.sink.errors() == []


def test_a_server_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    with WebServer(lambda _: web.answer(manifest("web"))) as server:
        box = Box(tmp_path, server)
        box.poll()
    assert box.poll() == {"web": "one"}
    assert "the server cannot be reached: Connection refused" in box.source.state().message


# -- pace -------------------------------------------------------------------------------------


def due(box: Box) -> float:
    return round(box.source.wake_at() - box.clock.monotonic(), 3)


def test_retry_after_of_429_and_503_is_respected(box: Box) -> None:
    box.poll(web.answer(status="429 Too Many Requests", Retry_After="200"))
    assert due(box) == 200 * 1.125
    date = {"Date": "Sat, 01 Jan 2022 00:00:00 GMT", "Retry_After": "Sat, 01 Jan 2022 00:10:00 GMT"}
    box.poll(web.answer(status="503 Busy", **date))
    assert due(box) == 600 * 1.125
    box.poll(web.answer(status="503 Busy", Retry_After="soon"))
    assert due(box) == 80 * 0.75
    box.poll(web.answer(status="503 Busy", Retry_After="99999999"))
    assert due(box) == 3600 * 1.125


def test_failures_back_off_and_success_resets(box: Box) -> None:
    assert due(box) == 0
    delays = []
    for _ in range(6):
        box.poll(web.answer(status="500 Oops"))
        delays.append(due(box))
    assert delays == [15, 30, 60, 90, 90, 90]
    box.poll(web.answer(manifest("web")))
    assert due(box) == 12.5
    box.poll()
    assert due(box) == 20


def test_complaints_are_throttled(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for _ in range(9):
        box.poll(web.answer(status="500 Oops"))
    assert len(caplog.records) == 4 and "not logged again until it works" in caplog.messages[-1]
    box.poll(web.answer(manifest("web")))
    assert "answers again after 9 failures" in caplog.messages[-1]


# -- offline ----------------------------------------------------------------------------------


def test_pain_220_after_a_reboot_without_link_the_last_known_good_pods_run_at_once(tmp_path: Path) -> None:
    with WebServer(lambda _: web.answer(many(manifest("a"), manifest("b")))) as server:
        box = Box(tmp_path, server)
        box.poll()
        before = box.sink.last.pods
    box.start()
    assert box.sink.last.pods == before
    assert not box.sink.last.seen
    assert box.source.state().from_last_good
    for _ in range(5):
        box.poll()
    assert box.sink.last.pods == before


def test_power_cut_at_any_operation_leaves_whole_last_known_good_pods(tmp_path: Path) -> None:
    """Replies one, then two, the power cut at every operation, then no link: pods of one of them run."""

    def boot(files: ShakyFiles, *images: str) -> tuple[list[str], dict[str, str]]:
        sink, clock, replies = Sink(), FakeClock(), iter(images)
        done: list[str] = []

        def fetch(_: Validators) -> Reply:
            return Reply(manifest("web", next(replies)).encode())

        made = UrlSource("http://x/", NODE, sink, clock, "/var/sources", fetch=fetch, files=files)
        made.begin()
        with contextlib.suppress(PowerCut):
            for image in images:
                clock.advance(made.wake_at() - clock.monotonic())
                made.step()
                done.append(image)
        return done, sink.images()

    whole = ShakyFiles()
    boot(whole, "one", "two")
    for cut in range(len(whole.operations) + 1):
        files = ShakyFiles(cut_after=cut)
        done, _ = boot(files, "one", "two")
        for booted in files.after_power_cut():
            found = boot(booted)[1].get("web", "")
            assert found in [["", "one"], ["one", "two"], ["two"]][len(done)]


def test_a_box_with_last_known_good_waits_for_its_turn(box: Box) -> None:
    box.poll()
    box.start()
    assert due(box) == 5


def test_what_is_kept_is_private_and_written_only_when_it_changes(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.poll()
    kept = [p for p in (box.tmp / "store").rglob("*") if p.is_file()]
    assert kept and {stat.S_IMODE(p.stat().st_mode) for p in kept} == {0o600}
    written: list[str] = []
    monkeypatch.setattr(durable, "write_checked", lambda path, *a, **k: written.append(path))
    for reply in (web.answer(manifest("web")), web.answer("{", status="500 Oops"), web.answer("kind: ["), None):
        box.poll(reply)
    assert written == []


def test_a_disk_that_fails_stops_no_pod(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(durable.DISK, "sync", full)
        assert box.poll() == {"web": "one"}
        assert "No space left on device" in box.sink.errors()[0]
    box.poll()
    assert box.sink.errors() == []
    assert box.start() and box.sink.images() == {"web": "one"}


def test_a_damaged_store_is_said_and_healed_by_the_next_reply(box: Box) -> None:
    box.poll()
    for path in (box.tmp / "store").rglob("s*"):
        if path.is_file():
            path.write_bytes(b"rubbish")
    box.start()
    assert (box.sink.last.pods, box.sink.last.seen) == ((), False)
    assert box.poll() == {"web": "one"}


def test_urls_taken_out_of_the_configuration_are_forgotten(tmp_path: Path, box: Box) -> None:
    box.poll()
    urls.prune(str(tmp_path / "store"), [box.server.url])
    assert box.start() and box.sink.images() == {"web": "one"}
    urls.prune(str(tmp_path / "store"), ["http://other/"])
    assert box.start() and box.sink.images() == {}


def test_the_name_is_of_the_url_and_shows_no_secret() -> None:
    assert source_name("http://a/") == source_name("http://a/") != source_name("http://b/")
    assert display("https://user:pw@host:1/path?token=x#f") == "https://host:1/path?..."


# -- secrets ----------------------------------------------------------------------------------


def test_pain_118_headers_and_token_files_are_sent_and_read_again(tmp_path: Path, server: WebServer) -> None:
    headers, token = tmp_path / "headers", tmp_path / "token"
    headers.write_text("# for the fleet\nX-Site: north\n\nX-Role: a\n")
    token.write_text("first\n")
    access = Access((("X-Role", "b"),), header_file=str(headers), token_file=str(token))
    box = Box(tmp_path, server, access)
    box.poll()
    sent = box.server.requests[-1].headers
    assert (sent["x-site"], sent["x-role"], sent["authorization"]) == ("north", "b, a", "Bearer first")
    token.write_text("second\n")
    box.poll()
    assert box.server.requests[-1].headers["authorization"] == "Bearer second"
    assert "first" not in repr(access) and "b" not in repr(access.headers and Access(access.headers))


def test_credentials_in_the_url_are_sent_as_a_header(server: WebServer) -> None:
    Fetcher(server.url.replace("127", "me:p%40ss@127"))(Validators())
    assert server.requests[-1].headers["authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("text", ["no colon\n", ": value\n"])
def test_a_bad_header_file_is_named_with_its_line(tmp_path: Path, server: WebServer, text: str) -> None:
    (tmp_path / "headers").write_text("A: b\n" + text)
    box = Box(tmp_path, server, Access(header_file=str(tmp_path / "headers")))
    box.poll()
    assert f"line 2 of {tmp_path}/headers is not NAME: VALUE" in box.source.state().message
    assert server.requests == []


def test_a_missing_token_file_is_named(tmp_path: Path, server: WebServer) -> None:
    box = Box(tmp_path, server, Access(token_file="/nowhere/token"))
    box.poll()
    assert "/nowhere/token cannot be read: No such file" in box.source.state().message


def test_netrc_and_cookies_are_not_used(tmp_path: Path, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    box.poll(web.answer(manifest("web"), Set_Cookie="id=1"))
    box.poll()
    assert not {"authorization", "cookie"} & set(box.server.requests[-1].headers)


def test_a_proxy_of_the_environment_is_used(tmp_path: Path, server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/pods"))
    fetched = Fetcher("http://far.away.invalid/pods")(Validators())
    assert fetched.data == manifest("web").encode()
    assert server.requests[-1].path == "http://far.away.invalid/pods"


def test_redirects_are_followed_with_secrets_for_the_same_host_only(tmp_path: Path, server: WebServer) -> None:
    access = Access((("X-Token", "secret"),))
    with WebServer(lambda _: web.answer(manifest("web", "elsewhere"))) as other:

        def script(request: Request) -> Answer:
            if request.path == "/pods":
                return web.answer(status="307 Moved", Location="/here")
            if request.path == "/here":
                return web.answer(status="301 Moved", Location=other.url)
            raise AssertionError(request)

        server.script = script
        box = Box(tmp_path, server, access)
        assert box.poll() == {"web": "elsewhere"}
        assert [r.headers.get("x-token") for r in server.requests] == ["secret", "secret"]
        assert "x-token" not in other.requests[0].headers


# -- TLS --------------------------------------------------------------------------------------


def secure(authority: Authority, **options: str) -> WebServer:
    return WebServer(lambda _: web.answer(manifest("web")), authority.issue("server", **options))


def test_https_with_an_own_authority(tmp_path: Path, authority: Authority) -> None:
    with secure(authority) as server:
        box = Box(tmp_path, server, Access(ca_file=authority.ca))
        assert box.poll() == {"web": "one"}
        box.poll()
        assert (len(server.requests), server.connections) == (2, 1)


def test_304s_share_one_connection_and_its_handshake(tmp_path: Path, authority: Authority) -> None:
    with secure(authority) as server:
        box = Box(tmp_path, server, Access(ca_file=authority.ca))
        box.poll(web.answer(manifest("web"), ETag='"1"'))
        for _ in range(3):
            box.poll(web.answer(status="304 Not Modified", Content_Length=""))
        assert (len(server.requests), server.connections) == (4, 1)


@pytest.mark.parametrize(
    ("options", "trusted", "said"),
    [
        ({}, False, "the server's certificate is not accepted: "),
        ({"names": "DNS:other.example"}, True, "the server's certificate is not accepted: IP address mismatch"),
        ({"end": "210101"}, True, "the server's certificate has expired by this machine's clock"),
        ({"start": "450101"}, True, "not valid yet by this machine's clock, which may be wrong"),
    ],
    ids=["unknown authority", "wrong name", "expired", "not yet valid"],
)
def test_a_certificate_that_is_not_accepted_is_named(
    tmp_path: Path, authority: Authority, options: dict[str, str], trusted: bool, said: str
) -> None:
    with secure(authority, **options) as server:
        box = Box(tmp_path, server, Access(ca_file=authority.ca) if trusted else Access())
        assert box.poll() == {}
        assert said in box.source.state().message
        assert server.requests == []


def test_plain_http_where_https_is_expected_is_named(tmp_path: Path, server: WebServer, authority: Authority) -> None:
    with pytest.raises(FetchError, match="TLS failed"):
        Fetcher(server.url.replace("http:", "https:"), Access(ca_file=authority.ca))(Validators())


def test_https_never_redirects_to_http(tmp_path: Path, authority: Authority, server: WebServer) -> None:
    with secure(authority) as start:
        start.script = lambda _: web.answer(status="302 Found", Location=server.url)
        box = Box(tmp_path, start, Access(ca_file=authority.ca))
        box.poll()
        assert "from https to http" in box.source.state().message
        assert server.requests == []


def test_a_client_certificate_is_shown_and_changed_ones_are_used(tmp_path: Path, authority: Authority) -> None:
    client = authority.issue("client")
    cert, key = shutil.copy(client.cert, tmp_path / "cert.pem"), shutil.copy(client.key, tmp_path / "key.pem")
    with secure(authority) as server:
        server.client_ca = authority.ca
        box = Box(tmp_path, server, Access(ca_file=authority.ca, client_cert=str(cert), client_key=str(key)))
        assert box.poll() == {"web": "one"}
        renewed = authority.issue("renewed")
        shutil.copy(renewed.cert, cert)
        shutil.copy(renewed.key, key)
        box.poll()
        assert (server.connections, box.source.state().ok) == (2, True)
        without = Box(tmp_path / "without", server, Access(ca_file=authority.ca))
        without.poll()
        assert not without.source.state().ok


def test_a_hanging_handshake_ends_with_the_deadline(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(FetchError, match=r"no complete answer within 0\.3 s"):
            Fetcher(f"https://127.0.0.1:{silent.getsockname()[1]}/", Access(ca_file=authority.ca), 0.3)(Validators())
        assert time.monotonic() - began < 5


# -- clock ------------------------------------------------------------------------------------


class Scripted:
    """A fetch that fails over the clock until it is set."""

    def __init__(self, clock: FakeClock, good_from: float) -> None:
        self.clock, self.good_from, self.calls = clock, good_from, 0

    def __call__(self, validators: Validators) -> Reply:
        self.calls += 1
        if self.clock.time() < self.good_from:
            raise FetchError("the certificate is not valid yet", clock=True)
        return Reply(manifest("web").encode())


def clocked(tmp_path: Path) -> tuple[UrlSource, Sink, FakeClock, Scripted]:
    clock, sink = FakeClock(time=100.0), Sink()
    scripted = Scripted(clock, 1_700_000_000.0)
    made = UrlSource("https://far/", NODE, sink, clock, str(tmp_path), fetch=scripted, draw=lambda: 0.5)
    made.begin()
    return made, sink, clock, scripted


def test_pain_68_certificates_are_tried_again_at_once_when_the_clock_jumps(tmp_path: Path) -> None:
    made, sink, clock, scripted = clocked(tmp_path)
    for _ in range(8):
        clock.advance(max(0.0, made.wake_at() - clock.monotonic()))
        made.step()
    assert (sink.images(), scripted.calls) == ({}, 1)
    clock.jump(1_700_000_000.0)
    clock.advance(made.wake_at() - clock.monotonic())
    made.step()
    assert (sink.images(), scripted.calls) == ({"web": "one"}, 2)
    assert made.wake_at() - clock.monotonic() > 2


def test_pain_67_it_keeps_trying_for_ever(tmp_path: Path) -> None:
    made, _, clock, scripted = clocked(tmp_path)
    end = clock.monotonic() + 24 * 3600
    while clock.monotonic() < end:
        clock.advance(max(1.0, made.wake_at() - clock.monotonic()))
        made.step()
    assert scripted.calls > 24 * 3600 / 120


def test_pain_71_a_clock_that_jumps_moves_no_poll(tmp_path: Path, box: Box) -> None:
    box.poll()
    box.poll()
    before = due(box)
    for jump in (-1e9, 3e9):
        box.clock.jump(jump)
        assert due(box) == before
    box.source.step()
    assert len(box.server.requests) == 2


# -- the thread -------------------------------------------------------------------------------


class RealClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


def test_the_thread_asks_at_once_and_stops_in_the_middle_of_a_request(tmp_path: Path) -> None:
    asked = threading.Event()

    def script(_: Request) -> Answer:
        asked.set()
        return web.HANG

    with WebServer(script) as server:
        running = UrlSource(server.url, NODE, Sink(), RealClock(), str(tmp_path))
        running.start()
        assert asked.wait(10)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 4
    assert not [t for t in threading.enumerate() if t.name.startswith("source-http")]


def test_a_fault_does_not_end_the_thread(tmp_path: Path) -> None:
    again = threading.Event()
    calls: list[int] = []

    def fail(_: Validators) -> Reply:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        again.set()
        return Reply(manifest("web").encode())

    running = UrlSource("http://x/", NODE, Sink(), RealClock(), str(tmp_path), check_frequency=0.01, fetch=fail)
    running.start()
    assert again.wait(10)
    running.stop()


def test_no_descriptor_is_lost_over_many_requests(box: Box) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    answers = [web.answer(manifest("web")), web.unmeasured(manifest("web")), web.NOTHING, web.cut("xxxx", 1)]
    counted = []
    for _ in range(4):
        for reply in answers:
            box.poll(reply)
        counted.append(descriptors())
    assert counted[-1] <= counted[1] + 1


def test_asked_to_look_it_asks_at_once(box: Box) -> None:
    box.poll()
    before = len(box.server.requests)
    box.source.start()
    try:
        box.source.look()
        deadline = time.monotonic() + 20
        while len(box.server.requests) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(box.server.requests) > before
    finally:
        box.source.stop()
