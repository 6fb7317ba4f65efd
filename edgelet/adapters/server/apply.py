"""``POST /apis/edgelet.io/v1/apply``: a whole manifest, as a file holds it; what `edgelet apply` sends.

All documents, lists and workloads are understood as they are in files, and mistakes come back with
line and column.  All pods of it are taken in, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ... import errors
from ...model.problems import Problem
from ...model.submission import Applied
from . import params, statuses
from .agent import VERSION
from .base import Access, Refused

Json = dict[str, Any]


class Apply(Access):
    """One request for one file."""

    resource = "pods"

    async def post(self) -> None:
        """Create or replace all pods of the body; ?dryRun=All only says what would be."""
        dry_run = self.param("dryRun") == "All"
        strict = params.flag(self.param, "strict")
        async with self.hub.writing:
            applied = await asyncio.to_thread(self._apply, self.request.body, strict, dry_run)
        items = [_item(one) for one in applied]
        problems = [p for one in applied[:1] for p in one.warnings]
        self.send({"kind": "AppliedList", "apiVersion": VERSION, "items": items, "problems": _rows(problems)})

    def _apply(self, data: bytes, strict: bool, dry_run: bool) -> tuple[Applied, ...]:
        try:
            if strict:
                self._refuse(self.services.submissions.check(data))
            return self.services.submissions.apply(data, dry_run=dry_run)
        except errors.ManifestError as error:
            problems = [p for p in error.problems if isinstance(p, Problem)]
            code = 409 if isinstance(error, errors.NameTaken) else 422
            raise Refused(_refusal(problems, code)) from error

    def _refuse(self, problems: Iterable[Problem]) -> None:
        found = list(problems)
        if found:
            raise Refused(_refusal(found, 422))


def _item(applied: Applied) -> Json:
    pod = applied.pod
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "verb": applied.verb,
    }


def _refusal(problems: list[Problem], code: int) -> Json:
    wrong = [p for p in problems if not p.warning] or problems
    message = "; ".join(str(p).removeprefix("error: ") for p in wrong[:5])
    return statuses.failure(code, message, details={"problems": _rows(problems)})


def _rows(problems: Iterable[Problem]) -> list[Json]:
    """Findings as `edgelet validate -o json` writes them."""
    return [
        {
            "level": "warning" if p.warning else "error",
            "document": p.document,
            "line": p.line,
            "column": p.column,
            "path": p.path,
            "message": p.message,
        }
        for p in problems
    ]
