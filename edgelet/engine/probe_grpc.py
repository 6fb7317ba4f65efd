"""Speaks grpc.health.v1.Health/Check for grpc probes (semantics 4.2): one call on one plaintext connection.

Just enough HTTP/2 (RFC 9113): our preface, one request, the frames of one answer.
"""

from __future__ import annotations

import socket
import struct
import urllib.parse
from collections.abc import Generator
from dataclasses import dataclass, field

from ..core import probe_request
from ..core.probes import Outcome
from . import probe_io
from .probe_hpack import BadBlock, Decoder
from .probe_io import READ, WRITE, Answer, Deadline, DialError, Ready, Steps, Wants

MAX_ANSWER = 64 * 1024
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20

UNIMPLEMENTED = "12"
STATES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

RPC_FAILED = "error: health rpc probe failed"


class Broken(Exception):
    """The other side does not speak gRPC, or hung up."""


@dataclass
class Call:
    """What has come for our one request."""

    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    block: bytes = b""
    closing: bool = False
    done: bool = False
    greeted: bool = False
    decoder: Decoder = field(default_factory=Decoder)


def check(host: str, port: int, service: str, timeout: int) -> Steps:
    """One Check call; success only on SERVING. Texts are the kubelet's."""
    address = probe_request.join(host, port)
    call = Call()
    try:
        yield from _exchange(host, port, service, call)
    except DialError as error:
        return Answer(Outcome.FAILURE, f"error: failed to connect service at {probe_request.quoted(address)}: {error}")
    except Deadline:
        waited = probe_request.duration(timeout)
        if call.greeted:
            text = f"timeout: health rpc did not complete within {waited}"
        else:
            where = probe_request.quoted(address)
            text = f"timeout: failed to connect service {where} within {waited}: context deadline exceeded"
        return Answer(Outcome.FAILURE, text, timed_out=True)
    except (Broken, BadBlock, OSError):
        return Answer(Outcome.FAILURE, RPC_FAILED)
    return judge(call)


def judge(call: Call) -> Answer:
    """What a complete answer means."""
    status = call.fields.get("grpc-status", "")
    if status == UNIMPLEMENTED:
        message = urllib.parse.unquote(call.fields.get("grpc-message", ""))
        text = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
        return Answer(Outcome.FAILURE, text + message)
    if status != "0":
        return Answer(Outcome.FAILURE, RPC_FAILED)
    state = STATES.get(_state(call.body), "UNKNOWN")
    if state == "SERVING":
        return Answer(Outcome.SUCCESS)
    return Answer(Outcome.FAILURE, f"service unhealthy (responded with {probe_request.quoted(state)})")


def request(authority: str, service: str) -> bytes:
    """Preface, settings, headers and message of the one call."""
    name = service.encode("utf-8")
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    block = (
        b"\x83\x86"  # :method POST, :scheme http
        + b"\x04" + _text("/grpc.health.v1.Health/Check")
        + b"\x01" + _text(authority)
        + b"\x0f\x10" + _text("application/grpc")
        + b"\x0f\x2b" + _text(probe_request.USER_AGENT)
        + b"\x00" + _text("te") + _text("trailers")
    )  # fmt: skip
    body = b"\x00" + struct.pack(">I", len(message)) + message
    frames = (
        frame(SETTINGS, 0, 0, b""),
        frame(HEADERS, END_HEADERS, 1, block),
        frame(DATA, END_STREAM, 1, body),
    )
    return PREFACE + b"".join(frames)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def take(call: Call, kind: int, flags: int, payload: bytes) -> bytes:
    """Take in one frame; what is to be sent back at once. Raises Broken, BadBlock."""
    if kind == SETTINGS and not flags & ACK:
        call.greeted = True
        return frame(SETTINGS, ACK, 0, b"")
    if kind == PING and not flags & ACK:
        return frame(PING, ACK, 0, payload)
    if kind in (RST_STREAM, GOAWAY):
        raise Broken("the server gave up")
    if kind == DATA:
        call.body += _unpadded(flags, payload)
        call.done = bool(flags & END_STREAM)
    elif kind in (HEADERS, CONTINUATION):
        _take_block(call, kind, flags, payload)
    return b""


def _take_block(call: Call, kind: int, flags: int, payload: bytes) -> None:
    if kind == HEADERS:
        payload = _unpadded(flags, payload)
        call.block = payload[5:] if flags & PRIORITY else payload
        call.closing = bool(flags & END_STREAM)
    else:
        call.block += payload
    if flags & END_HEADERS:
        call.fields |= call.decoder.decode(call.block)
        call.done = call.closing


def _exchange(host: str, port: int, service: str, call: Call) -> Generator[Wants, Ready, None]:
    sock = yield from probe_io.connect(host, port)
    try:
        data = b""
        yield from _send(sock, request(probe_request.join(host, port), service))
        while not call.done:
            more = yield from _receive(sock)
            data = _frames(call, data + more, answer := bytearray())
            if len(data) + len(call.body) + len(call.block) > MAX_ANSWER:
                raise Broken("too much")
            yield from _send(sock, bytes(answer))
    finally:
        sock.close()


def _frames(call: Call, data: bytes, answer: bytearray) -> bytes:
    """Take in all whole frames; what is left."""
    while len(data) >= 9 and not call.done:
        length = int.from_bytes(data[:3], "big")
        if length > MAX_ANSWER:
            raise Broken("not HTTP/2")
        if len(data) < 9 + length:
            break
        answer += take(call, data[3], data[4], data[9 : 9 + length])
        data = data[9 + length :]
    return data


def _send(sock: socket.socket, data: bytes) -> Generator[Wants, Ready, None]:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except BlockingIOError:
            yield ((sock.fileno(), WRITE),)


def _receive(sock: socket.socket) -> Generator[Wants, Ready, bytes]:
    while True:
        try:
            data = sock.recv(16384)
        except BlockingIOError:
            yield ((sock.fileno(), READ),)
            continue
        if not data:
            raise Broken("EOF")
        return data


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Broken("bad padding")
    return payload[1 : len(payload) - payload[0]]


def _state(body: bytes) -> int:
    """The status of a HealthCheckResponse (field 1, an enum); 0 when it is left out."""
    message = body[5:]
    return message[1] if len(message) >= 2 and message[0] == 0x08 else 0


def _text(value: str) -> bytes:
    raw = value.encode("utf-8")
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    return b"\x7f" + _varint(len(raw) - 127) + raw


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
