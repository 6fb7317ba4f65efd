"""Turns the bytes of a manifest into pods, or into everything that is wrong with them.

The way: bytes -> text (`_text`) -> documents with places (`yaml_reader`, `json_reader`) -> clean
data by the field table (`check`) -> defaults -> rules (`validate`) -> typed pods (`build`).
Nothing in here raises for bad input, and a bad document costs only itself.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from . import build, check, defaults, identity, json_reader, kinds, validate, yaml_reader
from .objects import LocalObject
from .pod import Pod, PodKey
from .problems import Problem
from .report import Report
from .tree import Node, Path

MAX_BYTES = 10 * 2**20
"""Size of the largest manifest (semantics 1.1.3)."""
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TEMPLATE = re.compile(r"\{\{|\{%")
_COMMENT = re.compile(r"^[ \t]*#|^---", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where bytes come from: `file` as messages show it, `source` "file" | "http" | "api"."""

    file: str
    source: str
    node_name: str
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was in a manifest.

    `problems` holds errors and warnings in the order of the file. `empty` = it holds nothing, on
    purpose: only comments, or a list without items. `objects` are ConfigMaps and Secrets.
    """

    pods: tuple[Pod, ...] = ()
    problems: tuple[Problem, ...] = ()
    empty: bool = False
    objects: tuple[LocalObject, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether anything in it cannot be used."""
        return any(not p.warning for p in self.problems)


@dataclass(slots=True)
class _Found:
    pods: list[Pod] = field(default_factory=list)
    objects: list[LocalObject] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    keys: set[PodKey] = field(default_factory=set)
    ignored: list[Problem] = field(default_factory=list)
    none_wanted: bool = False


def decode(data: bytes, origin: Origin) -> Decoded:
    """All pods and objects of a manifest, or what is wrong with it. Never raises for bad input."""
    try:
        text = _text(data)
        documents, errors = _documents(text)
    except yaml_reader.ReadError as error:
        return Decoded(problems=(_problem(error, 1, origin, ""),))
    except MemoryError:
        # A huge file on a small box: it is refused like any other bad file, and what runs goes on.
        return Decoded(problems=(Problem(f"there is not enough memory to read {len(data)} bytes", origin.file),))
    found = _Found()
    broken = dict(errors)
    for number, node in enumerate(documents, 1):
        if number in broken:
            found.problems.append(_problem(broken.pop(number), number, origin, text))
        elif node is not None:
            _document(node, number, origin, found)
    found.problems.extend(_problem(e, n, origin, text) for n, e in broken.items())
    return _result(found, documents, text, origin)


def read_documents(data: bytes) -> tuple[list[Node | None], list[tuple[int, yaml_reader.ReadError]]]:
    """The documents of a manifest as trees (None = nothing in it), and those that cannot be read.

    Errors come with the number of their document. Raises yaml_reader.ReadError when the bytes are
    no text, or too many.
    """
    return _documents(_text(data))


def _result(found: _Found, documents: list[Node | None], text: str, origin: Origin) -> Decoded:
    useful = bool(found.pods or found.objects)
    if found.ignored and not useful:
        # Nothing of the file can be used: what was a remark beside a good pod is now the fault.
        faults = {id(p) for p in found.ignored}
        found.problems = [replace(p, warning=False) if id(p) in faults else p for p in found.problems]
    commented = not any(documents) and _COMMENT.search(text) is not None
    if not any(documents) and not found.problems and not commented:
        what = "the file is empty" if not text.strip() else "the file holds no object"
        found.problems.append(Problem(f"{what}; to stop its pods remove it, or leave a comment in it", origin.file))
    failed = any(not p.warning for p in found.problems)
    empty = not failed and not useful and (found.none_wanted or commented)
    found.problems.sort(key=lambda p: (p.document, p.line, p.column))
    return Decoded(tuple(found.pods), tuple(found.problems), empty, tuple(found.objects))


def _text(data: bytes) -> str:
    """The text, or ReadError for what is no text."""
    if len(data) > MAX_BYTES:
        raise yaml_reader.ReadError(f"the file has {len(data)} bytes, {MAX_BYTES} are allowed", 0, 0)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise yaml_reader.ReadError("this is not UTF-8 text: the file is damaged or no manifest", line, 0) from error
    bad = _CONTROL.search(text)
    if bad is not None:
        at = bad.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        what = (
            "NUL bytes: the file was damaged or cut" if bad.group() == "\0" else f"a control character {bad.group()!r}"
        )
        raise yaml_reader.ReadError(f"the text has {what}", line, column)
    return text


def _documents(text: str) -> tuple[list[Node | None], list[tuple[int, yaml_reader.ReadError]]]:
    """JSON where the text is JSON, else YAML, which most JSON is too."""
    as_json: yaml_reader.ReadError | None = None
    if json_reader.looks_like_json(text):
        try:
            return list(json_reader.read(text)), []
        except yaml_reader.TooBig:
            raise
        except yaml_reader.ReadError as error:
            as_json = error
    result = yaml_reader.read(text)
    if as_json is not None and result.errors:
        first = result.errors[0][1]
        if (as_json.line, as_json.column) >= (first.line, first.column):
            result.errors[0] = (result.errors[0][0], as_json)
    return result.documents, result.errors


def _problem(error: yaml_reader.ReadError, number: int, origin: Origin, text: str) -> Problem:
    message = error.message
    hole = _TEMPLATE.search(text)
    if hole is not None:
        line = text.count("\n", 0, hole.start()) + 1
        message = f"this is a template that was never rendered ({hole.group()} in line {line}): put the result here"
    return Problem(message, origin.file, number, error.line, error.column)


def _document(node: Node, number: int, origin: Origin, found: _Found) -> None:
    """One document: an object, or a list of objects."""
    report = Report(node, origin.file, number, origin.strict)
    before = len(found.problems)
    for path, item in _items(node, (), report, found):
        _object(item, report.at(path), origin, found)
    found.problems[before:] = [*report.problems]


def _items(node: Node, path: Path, report: Report, found: _Found) -> Iterator[tuple[Path, Node]]:
    """The objects of a document; lists are opened, also lists in lists."""
    here = report.at(path)
    if node.kind != "map":
        here.error((), f"an object is a mapping with apiVersion and kind, this is {kinds.describe(node)}")
        return
    if not kinds.is_list(node):
        yield path, node
        return
    items = node.value.get("items")
    if items is None or items.kind != "list":
        # Not taken for an empty list: a file that is cut after `items:` must not end all pods.
        here.error(("items",), "must be a list; begin each entry with '- ', or write [] for none")
        return
    found.none_wanted = found.none_wanted or not items.value
    for index, item in enumerate(items.value):
        yield from _items(item, (*path, "items", index), report, found)


def _object(node: Node, report: Report, origin: Origin, found: _Found) -> None:
    before = len(report.problems)
    kind = kinds.identify(node, report)
    if kind is None:
        found.ignored += report.problems[before:] if kinds.is_ignored(node) else []
    elif kind in kinds.WORKLOADS:
        _workload(node, kind, report, origin, found)
    elif kind == "Pod":
        _finish(check.check(node, "Pod", report), node.plain, report, origin, found)
    elif kind in kinds.OBJECTS:
        _local_object(node, kind, report, found)
    else:
        check.check(node, kind, report)


def _workload(node: Node, kind: str, report: Report, origin: Origin, found: _Found) -> None:
    """The pod that a Deployment or its like would make, one of it."""
    data = check.check(node, kind, report)
    metadata, spec = data.get("metadata", {}), data.get("spec", {})
    name = metadata.get("name", "")
    validate.metadata_name(metadata, identity.pod_name(name, origin.node_name, origin.source), report)
    if spec.get("replicas") == 0:
        report.note(("spec", "replicas"), f"{kind} {name!r} has no replicas: no pod runs")
        found.none_wanted = True
        return
    template: Path = ("spec", "template")
    if "template" not in spec:
        if not report.failed:
            report.error(("spec",), "is required: its template is the pod")
        return
    more = f", not {spec['replicas']}" if spec.get("replicas", 1) > 1 else ""
    report.note(("kind",), f"{kind} {name!r} runs as one pod{more}; there is no rolling update")
    own = {k: metadata[k] for k in ("name", "namespace") if k in metadata}
    pod = spec["template"]
    if kind == "Job" and pod.get("spec", {}).get("restartPolicy") not in ("Never", "OnFailure"):
        report.error((*template, "spec", "restartPolicy"), "a Job ends: write OnFailure or Never")
    pod["metadata"] = pod.get("metadata", {}) | own

    def manifest() -> Any:
        """The pod as if it had been written by itself; only asked for when all of it is right."""
        inner = node.at(template)
        written = inner.plain() if inner is not None else {}
        return {"apiVersion": "v1", "kind": "Pod", **written, "metadata": written.get("metadata", {}) | own}

    _finish(pod, manifest, report.part(template), origin, found)


def _finish(data: dict[str, Any], manifest: Callable[[], Any], report: Report, origin: Origin, found: _Found) -> None:
    defaults.apply(data)
    metadata = data["metadata"]
    short = metadata.get("name", "")
    name = identity.pod_name(short, origin.node_name, origin.source)
    validate.pod(data, name, report)
    if report.failed:
        return
    namespace = metadata["namespace"]
    if PodKey(namespace, name) in found.keys:
        report.warn(
            ("metadata", "name"), f"a pod {namespace}/{short} stands in this file already; this one is left out"
        )
        return
    found.keys.add(PodKey(namespace, name))
    digits = identity.digest(manifest(), origin.node_name)
    uid = metadata.get("uid") or digits
    _complete(data, name, uid, origin)
    found.pods.append(build.pod(data, uid, identity.config_hash(digits), origin.source, short))


def _complete(data: dict[str, Any], name: str, uid: str, origin: Origin) -> None:
    """What the node adds to a pod (semantics 1.3)."""
    metadata, spec = data["metadata"], data["spec"]
    metadata |= {"name": name, "uid": uid}
    notes = {"kubernetes.io/config.hash": uid, "kubernetes.io/config.source": origin.source}
    metadata["annotations"] = metadata.get("annotations", {}) | notes
    spec["nodeName"] = origin.node_name
    data["status"] = {"phase": "Pending"}
    if origin.source == "file":
        kept = [t for t in spec.get("tolerations", ()) if t != {"effect": "NoExecute", "operator": "Exists"}]
        spec["tolerations"] = [*kept, {"effect": "NoExecute", "operator": "Exists"}]
    data |= {"apiVersion": "v1", "kind": "Pod"}


def _local_object(node: Node, kind: str, report: Report, found: _Found) -> None:
    data = check.check(node, kind, report)
    metadata = data.get("metadata", {})
    validate.metadata_name(metadata, metadata.get("name", ""), report)
    validate.keys(data, report)
    if report.failed:
        return
    coded = data.get("data", {}) if kind == "Secret" else data.get("binaryData", {})
    plain = data.get("stringData", {}) if kind == "Secret" else data.get("data", {})
    content = {k: base64.b64decode("".join(v.split())) for k, v in coded.items()}
    content |= {k: v.encode() for k, v in plain.items()}
    namespace, labels = metadata.get("namespace") or "default", metadata.get("labels", {})
    found.objects.append(LocalObject(kind, namespace, metadata["name"], content, labels, data.get("type", "")))
