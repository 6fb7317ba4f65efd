"""When the API server is asked: state of the link, back-off, rate limit, lease times. Pure.

Times are monotonic seconds unless they are called `wall`; `draw` is a random number in [0, 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import polling

FIRST_RETRY = 1.0
"""Ceiling of the first wait after a loss; it doubles from here."""
RETRY_CAP = 300.0
"""Longest seconds between two tries of a lost link, and of one object that the server refuses."""
CLOCK_CAP = 10.0
"""Longest wait while a wrong clock of this machine may be what the certificates fail for: it is set some time."""
TELL_AFTER = 2
"""So many refusals of one thing in a row are told: a single one is over within a second."""
NETWORK_SETTLE = 0.3
"""Seconds between a change of an address or route and the try it causes: changes come in bursts."""
NETWORK_SPACE = 2.0
"""Least seconds between two tries that are caused by changes of the network."""
LEASE_PARTS = 4
"""A lease is renewed so many times in its duration (semantics 7.2)."""
CLASH_LEASES = 1.0
"""So many lease durations without a foreign renewal end the suspicion that two boxes share a name."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link as of the last request. `since` (wall) = when `up` became what it is; 0 = never tried.

    `retry_at`: nothing is asked before. `asked` = the server wished that wait, so only it may end.
    """

    up: bool = False
    since: float = 0.0
    failures: int = 0
    retry_at: float = 0.0
    asked: bool = False
    message: str = ""
    hurried: float = float("-inf")


def worked(link: Link, wall: float) -> Link:
    """After a good answer."""
    if link.up and not link.failures:
        return link
    return replace(
        link, up=True, since=link.since if link.up else wall, failures=0, retry_at=0.0, asked=False, message=""
    )


def failed(
    link: Link, message: str, now: float, wall: float, retry_after: float | None, draw: float, cap: float = RETRY_CAP
) -> Link:
    """After a request without a usable answer: when to try again."""
    failures = link.failures + 1
    wait = polling.after_failure(FIRST_RETRY, failures, retry_after, draw, cap)
    since = wall if link.up or not link.since else link.since
    asked = retry_after is not None
    return replace(link, up=False, since=since, failures=failures, retry_at=now + wait, asked=asked, message=message)


def network_changed(link: Link, now: float) -> Link:
    """An address or route of this box is new: a lost link is tried again soon, unless the server asked for silence."""
    if link.up or link.asked or now - link.hurried < NETWORK_SPACE:
        return link
    return replace(link, retry_at=min(link.retry_at, now + NETWORK_SETTLE), hurried=now)


def object_retry(failures: int, draw: float) -> float:
    """Seconds until one object that the server refuses is tried for the (`failures` + 1)-th time."""
    return polling.after_failure(FIRST_RETRY, failures, None, draw, RETRY_CAP)


def renew_interval(duration: float) -> float:
    """Seconds between two renewals of the lease."""
    return duration / LEASE_PARTS


def jittered(seconds: float, draw: float) -> float:
    """A period with the kubelet's 4 % of jitter (semantics 7.2)."""
    return seconds * (1 + 0.04 * draw)


@dataclass(frozen=True, slots=True)
class Holder:
    """What is known of who else renews our lease.

    `tried` are the renewTimes that we have sent and that may have arrived; `foreign_at` the second at
    which somebody else's was seen (None = never).
    """

    tried: tuple[str, ...] = ()
    foreign_at: float | None = None


def trying(holder: Holder, renew_time: str) -> Holder:
    """Before a renewal is sent."""
    return replace(holder, tried=(*holder.tried, renew_time)[-8:])


def judged(holder: Holder, renew_time: str, fresh: bool, now: float) -> Holder:
    """The lease was changed by somebody: `renew_time` is what it holds, `fresh` = not older than its duration.

    A renewal of our own whose answer was lost looks the same, so it is told by its time.
    """
    if not renew_time or renew_time in holder.tried or not fresh:
        return holder
    return replace(holder, foreign_at=now)


def clash(holder: Holder, duration: float, now: float) -> bool:
    """Whether another box uses this node's name now."""
    return holder.foreign_at is not None and now - holder.foreign_at < CLASH_LEASES * duration


@dataclass(frozen=True, slots=True)
class Churn:
    """How often one mirror pod was made anew without a new hash, lately."""

    count: int = 0
    at: float = 0.0


CHURN_FREE = 3
"""So many mirrors of one generation are made without delay: an administrator deletes one or two."""
CHURN_FORGET = 600.0


def made(churn: Churn, same: bool, now: float) -> Churn:
    """A mirror was created; `same` = of the generation that was created before."""
    if not same or now - churn.at > CHURN_FORGET:
        return Churn(1, now)
    return Churn(churn.count + 1, now)


def may_make_at(churn: Churn) -> float:
    """The earliest second of the next creation of the same generation (semantics 7.4.3, without a hot loop)."""
    if churn.count < CHURN_FREE:
        return 0.0
    return churn.at + min(FIRST_RETRY * 2.0 ** (churn.count - CHURN_FREE + 1), RETRY_CAP)
