"""grpc probes: header blocks by RFC 7541's own examples, answers of every kind by raw frames on loopback."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core.probes import Outcome
from edgelet.engine import probe_grpc
from edgelet.engine.probe_grpc import ACK, END_HEADERS, END_STREAM, frame
from edgelet.engine.probe_hpack import BadBlock, Decoder, huffman
from edgelet.engine.probe_io import Answer
from tests.engine import probing

OK_HEADERS = frame(1, END_HEADERS, 1, b"\x88")
# grpc-status: 0 and grpc-message as a gRPC server writes them: new names, added to the table.
TRAILERS = b"\x40\x0bgrpc-status\x010\x40\x0cgrpc-message\x00"


def message(status: int | None) -> bytes:
    body = b"" if status is None else bytes([8, status])
    return frame(0, 0, 1, b"\0" + len(body).to_bytes(4, "big") + body)


def trailers(block: bytes = TRAILERS) -> bytes:
    return frame(1, END_HEADERS | END_STREAM, 1, block)


def check(answer: bytes, service: str = "", timeout: float = 20.0, seen: list[bytes] | None = None) -> Answer:
    """Ask a server that gives this after its settings."""

    def serve(conn: socket.socket) -> None:
        conn.sendall(frame(4, 0, 0, b"") + answer)
        while more := conn.recv(65536):
            if seen is not None:
                seen.append(more)

    with probing.server(serve) as port:
        return probing.run(probe_grpc.check("127.0.0.1", port, service, int(timeout) or 1), timeout)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (1, Answer(Outcome.SUCCESS)),
        (2, Answer(Outcome.FAILURE, 'service unhealthy (responded with "NOT_SERVING")')),
        (3, Answer(Outcome.FAILURE, 'service unhealthy (responded with "SERVICE_UNKNOWN")')),
        (0, Answer(Outcome.FAILURE, 'service unhealthy (responded with "UNKNOWN")')),
        (None, Answer(Outcome.FAILURE, 'service unhealthy (responded with "UNKNOWN")')),
    ],
)
def test_only_serving_is_success(status: int | None, expected: Answer) -> None:
    assert check(OK_HEADERS + message(status) + trailers()) == expected


def test_frames_of_every_shape() -> None:
    padded = frame(1, END_HEADERS | 0x8 | 0x20, 1, b"\x03" + b"\0\0\0\0\x10" + b"\x88" + b"\0\0\0")
    split = frame(1, END_STREAM, 1, TRAILERS[:7]) + frame(9, END_HEADERS, 1, TRAILERS[7:])
    body = frame(0, 0x8, 1, b"\x02" + b"\0\0\0\0\x02\x08\x01" + b"\0\0")
    assert check(frame(6, 0, 0, b"12345678") + frame(8, 0, 0, b"\0\0\1\0") + padded + body + split) == Answer(
        Outcome.SUCCESS
    )


def test_the_request_on_the_wire() -> None:
    seen: list[bytes] = []
    check(frame(6, 0, 0, b"12345678") + OK_HEADERS + message(1) + trailers(), "db", seen=seen)
    sent = b"".join(seen)
    assert sent.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
    assert b"/grpc.health.v1.Health/Check" in sent and b"kube-probe/1.36" in sent and b"application/grpc" in sent
    assert frame(0, END_STREAM, 1, b"\0\0\0\0\x04\x0a\x02db") in sent
    assert frame(4, ACK, 0, b"") in sent and frame(6, ACK, 0, b"12345678") in sent


def test_a_server_without_the_health_service() -> None:
    block = b"\x88\x40\x0bgrpc-status\x0212\x40\x0cgrpc-message\x09not%20her"
    assert check(trailers(block)).text == (
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): not her"
    )


@pytest.mark.parametrize(
    "answer",
    [
        trailers(b"\x88\x40\x0bgrpc-status\x015"),
        frame(3, 0, 1, b"\0\0\0\x02"),
        frame(7, 0, 0, b"\0" * 8),
        trailers(b"\xff\xff\xff\xff\xff\xff"),
        frame(0, 0x8, 1, b"\x09"),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        OK_HEADERS + message(1) + frame(1, END_HEADERS | END_STREAM, 1, b"\x88"),
        frame(1, 0, 1, b"x" * 40_000) + frame(9, 0, 1, b"x" * 40_000),
    ],
    ids=["not-found", "reset", "goaway", "bad-block", "bad-padding", "http1", "no-status", "endless"],
)
def test_answers_that_are_none(answer: bytes) -> None:
    assert check(answer) == Answer(Outcome.FAILURE, "error: health rpc probe failed")


def test_timeouts() -> None:
    assert check(b"", timeout=0.2) == Answer(
        Outcome.FAILURE, "timeout: health rpc did not complete within 1s", timed_out=True
    )
    with probing.server(probing.silent) as port:
        text = f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: context deadline exceeded'
        answer = probing.run(probe_grpc.check("127.0.0.1", port, "", 1), 0.2)
        assert answer == Answer(Outcome.FAILURE, text, timed_out=True)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    where = f"127.0.0.1:{port}"
    assert probing.run(probe_grpc.check("127.0.0.1", port, "", 1)).text == (
        f'error: failed to connect service at "{where}": dial tcp {where}: connect: connection refused'
    )
    with probing.server(lambda conn: None) as port:
        assert probing.run(probe_grpc.check("127.0.0.1", port, "", 1)).outcome is Outcome.FAILURE


@pytest.mark.parametrize(
    ("coded", "text"),
    [
        ("f1e3c2e5f23a6ba0ab90f4ff", b"www.example.com"),
        ("a8eb10649cbf", b"no-cache"),
        ("25a849e95ba97d7f", b"custom-key"),
        ("d07abe941054d444a8200595040b8166e082a62d1bff", b"Mon, 21 Oct 2013 20:13:21 GMT"),
        ("9d29ad171863c78f0b97c8e9ae82ae43d3", b"https://www.example.com"),
        ("", b""),
    ],
)
def test_huffman_by_the_rfc(coded: str, text: bytes) -> None:
    assert huffman(bytes.fromhex(coded)) == text


def test_blocks_by_the_rfc_with_the_dynamic_table() -> None:
    """RFC 7541 C.4.1 to C.4.3, on one connection."""
    decoder = Decoder()
    assert decoder.decode(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff"))["#1"] == "www.example.com"
    assert decoder.decode(bytes.fromhex("828684be5886a8eb10649cbf")) == {
        "#2": "", "#6": "", "#4": "", "#1": "www.example.com", "#24": "no-cache",
    }  # fmt: skip
    assert decoder.decode(bytes.fromhex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"))["custom-key"] == (
        "custom-value"
    )


def test_the_dynamic_table_is_bounded_and_status_is_known() -> None:
    decoder = Decoder()
    for number in range(200):
        decoder.decode(b"\x40\x04k%03d\x7f\x01" % number + b"v" * 128)
    assert sum(len(n) + len(v) + 32 for n, v in decoder._table) <= 4096
    assert decoder.decode(b"\x20\x88\x8c\x10\x01a\x01b") == {":status": "400", "a": "b"}


@given(st.binary(max_size=64))
def test_no_block_breaks_the_decoder(data: bytes) -> None:
    try:
        Decoder().decode(data)
    except BadBlock:
        pass
