"""limit and continue: long lists in pieces, by the place of the last object that was given (pure)."""

from __future__ import annotations

import base64
import json
from typing import Any

from . import params

Json = dict[str, Any]


def page(items: list[Json], get: params.Get, version: int) -> tuple[list[Json], Json]:
    """The objects of this piece, and what the list's metadata say of the rest. Raises params.BadRequest.

    Pieces are made of the list as it is when each is asked for: an object is never given twice, one
    that comes meanwhile may be missed or not, as its name will have it.
    """
    limit = params.integer(get, "limit") or 0
    token = get("continue")
    if not token and (not limit or len(items) <= limit):
        return items, {}
    ordered = sorted(items, key=_place)
    if token:
        after = _read(token)
        ordered = [item for item in ordered if _place(item) > after]
    if not limit or len(ordered) <= limit:
        return ordered, {}
    given = ordered[:limit]
    return given, {"continue": _write(_place(given[-1]), version), "remainingItemCount": len(ordered) - limit}


def _place(item: Json) -> tuple[str, str]:
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _write(place: tuple[str, str], version: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([*place, version]).encode()).decode().rstrip("=")


def _read(token: str) -> tuple[str, str]:
    try:
        namespace, name, _ = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, TypeError, RecursionError) as error:
        raise params.BadRequest("continue key is not valid") from error
    return str(namespace), str(name)
