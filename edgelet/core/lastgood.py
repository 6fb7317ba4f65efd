"""Decides what a changed manifest may change: the rules that keep good pods running beside bad bytes.

Pure. Used for files and for replies of URLs alike.  A version that is fully valid replaces all that
ran from that manifest.  A version with mistakes adds and changes what is valid in it and ends
nothing: pods that it does not show any more keep running, since a mistake may be what hides them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model.objects import LocalObject
from ..model.pod import Pod
from ..model.problems import Problem

if TYPE_CHECKING:
    from ..model.decode import Decoded

MAX_VERSIONS = 8

CUT = (
    "its last line has no end, which it had before: it may have been cut off while it was copied;"
    " end the line, or move the file in by rename"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What runs after a version was weighed.

    `accepted` = fully valid.  `contributes` = something of it runs or was ended by it: it has to be
    kept.  `kept` = some of `pods` or `objects` come from an earlier version.  `objects` are the
    ConfigMaps and Secrets beside the pods.
    """

    pods: tuple[Pod, ...] = ()
    problems: tuple[Problem, ...] = ()
    accepted: bool = True
    contributes: bool = True
    kept: bool = False
    objects: tuple[LocalObject, ...] = ()


NOTHING = Outcome()


def damage(data: bytes) -> str:
    """Why these bytes look like the leftover of a crash or a full disk; "" when they do not."""
    if not data.strip():
        return "it is empty: to end its pods delete it, or leave a comment in it"
    if not data.strip(b"\0"):
        return "it is filled with NUL bytes, as after a power cut while it was written: write it again"
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it contains NUL bytes, as after a power cut while it was written: write it again"
    return ""


def looks_cut(data: bytes, before: bytes) -> bool:
    """Whether `data`, written in place of `before`, may have been cut in transfer.

    The last line of a whole text file ends in a newline; where the version before kept to that
    and this one does not, a copy was probably interrupted.  JSON is exempt: a cut never parses.
    """
    text = data.rstrip(b" \t")
    return before.endswith(b"\n") and not text.endswith((b"\n", b"}", b"]"))


def weigh(decoded: Decoded, before: Outcome) -> Outcome:
    """What runs once `decoded` has taken the place of the versions that gave `before`."""
    if not any(not p.warning for p in decoded.problems):
        return Outcome(decoded.pods, decoded.problems, objects=decoded.objects)
    shown = {pod.key for pod in decoded.pods}
    pods = tuple(pod for pod in before.pods if pod.key not in shown)
    named = {one.id for one in decoded.objects}
    objects = tuple(one for one in before.objects if one.id not in named)
    return Outcome(
        decoded.pods + pods,
        decoded.problems,
        accepted=False,
        contributes=bool(decoded.pods or decoded.objects),
        kept=bool(pods or objects),
        objects=decoded.objects + objects,
    )


def refuse(problem: Problem, before: Outcome) -> Outcome:
    """The outcome for bytes that are not even worth decoding: all goes on as before."""
    kept = bool(before.pods or before.objects)
    return Outcome(before.pods, (problem,), accepted=False, contributes=False, kept=kept, objects=before.objects)


def replay(versions: Iterable[bytes], decode: Callable[[bytes], Decoded]) -> Outcome:
    """What ran when the kept `versions`, oldest first, were all weighed in turn; nothing is said about it."""
    found = NOTHING
    for data in versions:
        found = weigh(decode(data), found)
    return Outcome(found.pods, kept=bool(found.pods or found.objects), objects=found.objects)


def remember(versions: tuple[bytes, ...], data: bytes, outcome: Outcome) -> tuple[bytes, ...]:
    """The versions to keep after `data` was weighed: they give the same pods when replayed.

    At most MAX_VERSIONS: beyond, the second oldest half-valid one is forgotten.
    """
    if outcome.accepted:
        return (data,)
    if not outcome.contributes or versions[-1:] == (data,):
        return versions
    grown = (*versions, data)
    return grown if len(grown) <= MAX_VERSIONS else (grown[0], *grown[2:])


def pack(versions: tuple[bytes, ...]) -> bytes:
    """Versions as one byte string: a line with their lengths, then all of them."""
    return " ".join(str(len(v)) for v in versions).encode() + b"\n" + b"".join(versions)


def unpack(packed: bytes) -> tuple[bytes, ...]:
    """The opposite of `pack`. Raises ValueError for anything that `pack` did not make."""
    head, _, body = packed.partition(b"\n")
    lengths = [int(n) for n in head.split()]
    if sum(lengths) != len(body) or min(lengths, default=0) < 0:
        raise ValueError("lengths do not add up")
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return tuple(body[end - length : end] for end, length in zip(ends, lengths, strict=True))
