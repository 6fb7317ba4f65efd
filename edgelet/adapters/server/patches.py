"""Patches of objects: strategic merge, JSON merge (RFC 7386) and JSON patch (RFC 6902), pure.

Lists that a strategic merge joins by a key are those of the API's core types (patchMergeKey in
k8s.io/api/core/v1/types.go); any other list is replaced as a whole.
"""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "readinessGates": "conditionType",
    "ownerReferences": "uid",
    "conditions": "type",
    "podIPs": "ip",
    "hostIPs": "ip",
    "addresses": "type",
    "schedulingGates": "name",
    "resourceClaimStatuses": "name",
    "allocatedResourcesStatus": "name",
}
"""Name of the list -> name of the field that tells its items apart."""

SETS = frozenset({"finalizers"})
"""Lists of plain values that are joined."""

_DIRECTIVE = "$patch"
_DELETE_VALUES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


class Unfit(ValueError):
    """The patch cannot be applied to this object; the message says where."""


def merge(target: Any, patch: Any) -> Any:
    """JSON merge patch: objects are joined, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def strategic(target: Json, patch: Json) -> Json:
    """Strategic merge patch. Raises Unfit."""
    if patch.get(_DIRECTIVE) == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    result = _retained(target, patch)
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _strategic_value(result.get(name), value, name)
    for name in patch:
        if name.startswith(_DELETE_VALUES):
            _delete_values(result, name.removeprefix(_DELETE_VALUES), patch[name])
    for name in patch:
        if name.startswith(_ORDER):
            _set_order(result, name.removeprefix(_ORDER), patch[name])
    return result


def _retained(target: Json, patch: Json) -> Json:
    kept = patch.get(_RETAIN)
    if kept is None:
        return dict(target)
    if not isinstance(kept, list):
        raise Unfit("$retainKeys must be a list of names")
    return {name: value for name, value in target.items() if name in kept}


def _strategic_value(old: Any, new: Any, name: str) -> Any:
    if isinstance(new, dict):
        return strategic(old if isinstance(old, dict) else {}, new)
    if not isinstance(new, list):
        return new
    before = old if isinstance(old, list) else []
    if name in MERGE_KEYS:
        return _joined(before, new, name, MERGE_KEYS[name])
    if name in SETS:
        return [*before, *(value for value in new if value not in before)]
    return copy.deepcopy(new)


def _joined(before: list[Any], patches: list[Any], name: str, key: str) -> list[Any]:
    if any(isinstance(p, dict) and p.get(_DIRECTIVE) == "replace" for p in patches):
        return [p for p in patches if not (isinstance(p, dict) and _DIRECTIVE in p)]
    result = list(before)
    for patch in patches:
        if not isinstance(patch, dict) or key not in patch:
            raise Unfit(f"each item of {name} in the patch must have the field {key}")
        at = next((i for i, item in enumerate(result) if isinstance(item, dict) and item.get(key) == patch[key]), None)
        if patch.get(_DIRECTIVE) == "delete":
            result = [item for i, item in enumerate(result) if i != at]
        elif at is None:
            result.append(strategic({}, patch))
        else:
            result[at] = strategic(result[at], patch)
    return result


def _delete_values(result: Json, name: str, values: Any) -> None:
    if isinstance(result.get(name), list) and isinstance(values, list):
        result[name] = [value for value in result[name] if value not in values]


def _set_order(result: Json, name: str, order: Any) -> None:
    """Items in the order given; those it does not name keep their place behind their predecessor."""
    items = result.get(name)
    if not isinstance(items, list) or not isinstance(order, list):
        return
    key = MERGE_KEYS.get(name)

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(entry) for entry in order]
    named = sorted((i for i in items if identity(i) in wanted), key=lambda i: wanted.index(identity(i)))
    places = [index for index, item in enumerate(items) if identity(item) in wanted]
    ordered = list(items)
    for place, item in zip(places, named, strict=True):
        ordered[place] = item
    result[name] = ordered


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902. Raises Unfit; the target itself is left as it was."""
    if not isinstance(operations, list):
        raise Unfit("a JSON patch is a list of operations")
    result = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise Unfit("each operation of a JSON patch needs op and path")
        result = _operate(result, operation)
    return result


def _operate(document: Any, operation: Json) -> Any:
    verb, path = operation.get("op"), _pointer(operation["path"])
    match verb:
        case "add" | "replace" | "test":
            if "value" not in operation:
                raise Unfit(f"the operation {verb} needs a value")
            value = copy.deepcopy(operation["value"])
            if verb == "test":
                if _find(document, path) != value:
                    raise Unfit(f"testing value {operation['path']} failed")
                return document
            if verb == "replace" and path:
                _find(document, path)
            return _put(document, path, value, verb == "add")
        case "remove":
            return _remove(document, path)
        case "move" | "copy":
            source = _pointer(str(operation.get("from", "")))
            value = copy.deepcopy(_find(document, source))
            if verb == "move":
                document = _remove(document, source)
            return _put(document, path, value, True)
    raise Unfit(f"unknown operation {verb!r}")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise Unfit(f"the path {text!r} must begin with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_key(document, part, path)]
    return document


def _key(holder: Any, part: str, path: list[str]) -> Any:
    """The key or index that `part` means in `holder`. Raises Unfit when nothing stands there."""
    if isinstance(holder, dict) and part in holder:
        return part
    if isinstance(holder, list) and part.isascii() and part.isdigit() and len(part) < 10 and int(part) < len(holder):
        return int(part)
    raise Unfit(f"nothing stands at /{'/'.join(path)}")


def _put(document: Any, path: list[str], value: Any, insert: bool) -> Any:
    if not path:
        return value
    holder, last = _find(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list) and insert:
        at = len(holder) if last == "-" or last == str(len(holder)) else _key(holder, last, path)
        holder.insert(at, value)
    else:
        holder[_key(holder, last, path)] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise Unfit("the whole object cannot be removed by a patch")
    holder = _find(document, path[:-1])
    del holder[_key(holder, path[-1], path)]
    return document
