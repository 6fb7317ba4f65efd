"""`edgelet get pods|events|sources`: lists as kubectl prints them, from the same API paths."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from .. import errors
from . import client as api
from . import names, printing, sources

Json = dict[str, Any]

ALIASES = {
    **dict.fromkeys(("pods", "pod", "po"), "pods"),
    **dict.fromkeys(("events", "event", "ev"), "events"),
    **dict.fromkeys(("sources", "source"), "sources"),
}

_UNUSED = ("NOMINATED NODE", "READINESS GATES")
_SOURCE = "kubernetes.io/config.source"


class Usage(errors.EdgeletError):
    """The command line asks for what does not go together."""


def add_parser(subparsers: Any) -> None:
    """Add `get` to the command line."""
    parser = subparsers.add_parser("get", help="list pods, events or sources", allow_abbrev=False)
    parser.add_argument("resource", metavar="pods|events|sources", help="what to list; pods/NAME is understood")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    add_list_flags(parser)


def add_list_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a list."""
    parser.add_argument("-o", "--output", choices=("wide", "json", "yaml", "name"), default="", help="another form")
    parser.add_argument("-w", "--watch", action="store_true", help="after listing, show changes as they come")
    parser.add_argument("-l", "--selector", default="", metavar="QUERY", help="label selector, such as app=web")
    parser.add_argument("--field-selector", default="", metavar="QUERY", help="such as status.phase=Running")
    parser.add_argument("--no-headers", action="store_true", help="no headings")
    names.add_namespace(parser, everywhere=True)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """List what is asked for."""
    kind, slash, name = args.resource.partition("/")
    resource = ALIASES.get(kind)
    if resource is None:
        raise Usage(f'cannot get "{kind}": known are pods, events and sources')
    wanted = [name] if slash else args.names
    client = api.connect(args)
    if resource == "sources":
        return sources.show(client, args)
    if wanted and args.watch and len(wanted) > 1:
        raise Usage("cannot watch several names: give one, or none for all")
    return _Listing(client, args, resource).run(wanted)


class _Listing:
    """Pods or events."""

    def __init__(self, client: api.Client, args: argparse.Namespace, resource: str) -> None:
        self._client = client
        self._args = args
        self._resource = resource
        self._everywhere = args.all_namespaces
        self._columns = printing.Columns()
        self._header = not args.no_headers
        self._definitions: list[Json] = []

    def run(self, wanted: list[str]) -> int:
        if wanted and self._everywhere:
            raise Usage("cannot get a name from all namespaces: leave -A out")
        table = self._args.output in ("", "wide")
        query = self._query(wanted)
        found = self._get(query, wanted, table)
        items = found["rows"] if table else found["items"]
        if not items and not self._args.watch:
            where = "" if self._everywhere else f" in {self._args.namespace} namespace."
            print(f"No resources found{where}", file=sys.stderr)
            return 0
        self._show(found, wanted, table)
        if self._args.watch:
            self._watch({**query, "watch": "1", "resourceVersion": found["metadata"]["resourceVersion"]}, table)
        return 0

    def _query(self, wanted: list[str]) -> dict[str, str]:
        fields = [self._args.field_selector] if self._args.field_selector else []
        if len(wanted) == 1:
            fields.append(f"metadata.name={self._name(wanted[0])}")
        query = {"labelSelector": self._args.selector, "fieldSelector": ",".join(fields)}
        return {name: text for name, text in query.items() if text}

    def _name(self, wanted: str) -> str:
        if self._resource == "pods":
            return names.full_name(self._client, self._args.namespace, wanted)
        path = f"{self._path()}/{api.quote(wanted)}"
        return str(self._client.get(path)["metadata"]["name"])

    def _path(self) -> str:
        where = "" if self._everywhere else f"/namespaces/{api.quote(self._args.namespace)}"
        return f"/api/v1{where}/{self._resource}"

    def _get(self, query: dict[str, str], wanted: list[str], table: bool) -> Json:
        found = self._client.get(self._path(), query, api.TABLE if table else "application/json")
        if len(wanted) < 2:
            return found
        full = [self._name(name) for name in wanted]
        if table:
            found["rows"] = [r for name in full for r in found["rows"] if r["object"]["metadata"]["name"] == name]
        else:
            found["items"] = [i for name in full for i in found["items"] if i["metadata"]["name"] == name]
        return found

    def _show(self, found: Json, wanted: list[str], table: bool) -> None:
        if table:
            self._show_table(found)
            return
        items = [{"apiVersion": "v1", "kind": found["kind"].removesuffix("List"), **i} for i in found["items"]]
        if self._args.output == "name" or self._args.watch:
            printing.emit("".join(self._one(item) for item in items))
            return
        whole = items[0] if len(wanted) == 1 and items else printing.as_list(items)
        printing.emit(_form(self._args.output)(whole))

    def _one(self, item: Json) -> str:
        if self._args.output == "name":
            return f"{item['kind'].lower()}/{item['metadata']['name']}\n"
        text = _form(self._args.output)(item)
        return f"---\n{text}" if self._args.output == "yaml" else text

    def _show_table(self, table: Json) -> None:
        definitions = table.get("columnDefinitions")
        if definitions:
            self._definitions = definitions
        rows = [self._cells(row) for row in table["rows"]]
        if self._header and rows:
            rows.insert(0, self._headings())
            self._header = False
        printing.emit(self._columns.text(rows))

    def _headings(self) -> list[str]:
        shown = [d["name"].upper() for index, d in enumerate(self._definitions) if self._shown(index)]
        if self._extra:
            shown += ["SOURCE", "MESSAGE"]
        return ["NAMESPACE", *shown] if self._everywhere else shown

    def _cells(self, row: Json) -> list[str]:
        meta = row["object"]["metadata"]
        shown = [str(cell) for index, cell in enumerate(row["cells"]) if self._shown(index)]
        if self._extra:
            notes = meta.get("annotations") or {}
            shown += [notes.get(_SOURCE, "<none>"), notes.get(names.SUMMARY, "")]
        return [meta["namespace"], *shown] if self._everywhere else shown

    def _shown(self, index: int) -> bool:
        column = self._definitions[index]
        if column["name"].upper() in _UNUSED:
            return False
        return self._args.output == "wide" or not column["priority"]

    @property
    def _extra(self) -> bool:
        return self._args.output == "wide" and self._resource == "pods"

    def _watch(self, query: dict[str, str], table: bool) -> None:
        for change in self._client.lines(self._path(), query, api.TABLE if table else "application/json"):
            if change["type"] == "ERROR":
                raise api.ApiFailure(change["object"])
            if change["type"] == "BOOKMARK":
                continue
            if table:
                self._show_table(change["object"])
            else:
                printing.emit(self._one(change["object"]))


def _form(output: str) -> Callable[[Json], str]:
    return printing.as_json if output == "json" else printing.as_yaml
