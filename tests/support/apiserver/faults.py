"""What goes wrong between a client and the server: rules that match requests, each with an action.

server.faults.add("hang", resource="pods", verb="create", times=1)
server.faults.add("refuse", code=429, retry_after=2, chance=0.3)
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

ACTIONS = ("refuse", "hang", "slow", "cut_request", "cut_answer", "cut_half")
"""An HTTP code; silence until the rule is taken away (then cut); a wait; the connection ends before the request is
acted upon; after it was, with no answer; in the middle of the answer."""
REASONS = {401: "Unauthorized", 403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError",
           503: "ServiceUnavailable", 504: "Timeout", 507: "InsufficientStorage"}  # fmt: skip


@dataclass
class Rule:
    """Matches by verb and resource ("pods", "pods/status", "connect" = new connections; "" = all), `times` times
    (-1 = always), each with a `chance`. `seconds` are those of a slow answer."""

    action: str
    verb: str = ""
    resource: str = ""
    code: int = 500
    retry_after: int = 0
    seconds: float = 0.0
    chance: float = 1.0
    times: int = -1
    used: int = 0

    def matches(self, verb: str, resource: str) -> bool:
        """Whether it is about such a request. A rule for all requests is not about connections."""
        if resource == "connect" or self.resource == "connect":
            return resource == self.resource
        return self.verb in ("", verb) and self.resource in ("", resource)


class Faults:
    """The rules of one server; `seed` makes chances repeatable, as far as the order of requests is."""

    def __init__(self, seed: int = 1) -> None:
        self._lock = threading.Condition()
        self._rules: list[Rule] = []
        self._random = random.Random(seed)

    def seed(self, seed: int) -> None:
        """Begin the chances anew."""
        with self._lock:
            self._random.seed(seed)

    def add(self, action: str, **about: object) -> Rule:
        """A rule, see Rule for its fields; the first that matches acts."""
        if action not in ACTIONS:
            raise ValueError(f"{action!r} is no action: {', '.join(ACTIONS)}")
        rule = Rule(action, **about)  # type: ignore[arg-type]
        with self._lock:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Take one away; requests that hang because of it are cut."""
        with self._lock:
            self._rules = [r for r in self._rules if r is not rule]
            self._lock.notify_all()

    def clear(self) -> None:
        """Take all away."""
        with self._lock:
            self._rules.clear()
            self._lock.notify_all()

    def find(self, verb: str, resource: str) -> Rule | None:
        """The rule that acts on a request; it counts as used."""
        with self._lock:
            for rule in self._rules:
                left = rule.times < 0 or rule.used < rule.times
                if left and rule.matches(verb, resource) and self._random.random() < rule.chance:
                    rule.used += 1
                    return rule
        return None

    def wait(self, rule: Rule, stopping: threading.Event) -> None:
        """As long as the rule stands."""
        with self._lock:
            while any(r is rule for r in self._rules) and not stopping.is_set():
                self._lock.wait(0.2)

    def sleep(self, rule: Rule, stopping: threading.Event) -> None:
        """As long as a slow answer takes, or until nothing is wrong any more."""
        with self._lock:
            self._lock.wait_for(lambda: rule not in self._rules or stopping.is_set(), rule.seconds)
