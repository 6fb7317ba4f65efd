"""Any pod that the field table can describe decodes, encodes and decodes to the same."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import yaml

from edgelet.model import decode, fields
from edgelet.model.fields import Field

API = decode.Origin("f.yaml", "api", "node")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs", "Cc")), max_size=8)
NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
FORMS = {
    "label": NAME,
    "portname": NAME.filter(lambda t: "--" not in t),
    "ip": st.sampled_from(["10.0.0.1", "::1"]),
}
QUANTITIES = st.sampled_from(["1", "500m", "64Mi", "1.5Gi", "2e3", "0.1"])
EXACTLY_ONE = {"Probe": ("exec", "httpGet", "tcpSocket", "grpc"), "LifecycleHandler": ("exec", "httpGet", "tcpSocket")}


def scalar(field: Field) -> st.SearchStrategy[Any]:
    """Good values of a field without fields of its own."""
    if field.values:
        return st.sampled_from(field.values)
    if field.form:
        return FORMS[field.form]
    if field.low is not None:
        return st.integers(field.low, min(field.high or 0, 2**31 - 1))
    return {
        "bool": st.booleans(),
        "int32": st.integers(0, 2**31 - 1),
        "int64": st.integers(0, 2**31 - 1),
        "Quantity": QUANTITIES,
        "IntOrString": st.integers(1, 65535),
        "bytes": st.just("aGk="),
        "text": TEXT,
        "str": TEXT,
    }[field.type]


def row(type_name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Good values of a type, of its honoured fields only; those that rules tie together are left to `pod`."""
    if type_name in SPECIAL:
        return SPECIAL[type_name]
    honoured = [f for f in fields.table()[type_name].values() if f.verdict == fields.HONOURED]
    choice = EXACTLY_ONE.get(type_name, ())
    required = {f.name: shaped(f) for f in honoured if f.required}
    optional = {f.name: shaped(f) for f in honoured if not f.required and f.name not in choice}
    optional = {k: v for k, v in optional.items() if k not in LEFT_OUT.get(type_name, ())}
    plain = st.fixed_dictionaries(required, optional=optional)
    if not choice:
        return plain
    one = st.one_of(*(st.fixed_dictionaries({f.name: shaped(f)}) for f in honoured if f.name in choice))
    return st.builds(lambda a, b: {**a, **b}, plain, one)


def shaped(field: Field) -> st.SearchStrategy[Any]:
    """A field's value, in its list or map."""
    inner = row(field.type) if field.type in fields.table() else scalar(field)
    if field.shape == "list":
        return st.lists(inner, max_size=2)
    return st.dictionaries(NAME, inner, max_size=2) if field.shape == "map" else inner


LEFT_OUT = {
    "Container": ("volumeMounts", "restartPolicy", "name", "securityContext", "readinessProbe"),
    "LifecycleHandler": ("sleep",),
}
RULE = {
    "action": st.sampled_from(["Restart", "RestartAllContainers"]),
    "exitCodes": st.fixed_dictionaries(
        {"operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(st.integers(0, 255), min_size=1, max_size=3)}
    ),
}
SPECIAL: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "ResourceRequirements": st.fixed_dictionaries(
        {}, optional={"limits": st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES)}
    ),
    "ContainerPort": st.fixed_dictionaries({"containerPort": st.integers(1, 65535)}),
    "ContainerRestartRule": st.fixed_dictionaries(RULE),
    "EnvVar": st.fixed_dictionaries({"name": NAME}, optional={"value": TEXT}),
    "HTTPHeader": st.fixed_dictionaries({"name": NAME, "value": TEXT}),
    "ExecAction": st.fixed_dictionaries({"command": st.lists(TEXT, min_size=1, max_size=3)}),
}


@st.composite
def pod(draw: st.DrawFn) -> dict[str, Any]:
    """A whole good pod."""
    containers = [{**draw(row("Container")), "name": f"c{n}", "image": "i:1"} for n in range(draw(st.integers(1, 2)))]
    for container in containers:
        for probe in ("livenessProbe", "startupProbe"):
            container.get(probe, {}).pop("successThreshold", None)
        if container.get("restartPolicyRules"):
            container["restartPolicy"] = "Never"
        container["securityContext"] = draw(row("SecurityContext"))
        container["securityContext"].pop("allowPrivilegeEscalation", None)
    for number, port in enumerate(p for c in containers for p in c.get("ports", ())):
        port["containerPort"] = 8000 + number
    volumes = [{"name": f"v{n}", **draw(volume())} for n in range(draw(st.integers(0, 2)))]
    if volumes:
        containers[0]["volumeMounts"] = [{"name": "v0", "mountPath": "/a", "readOnly": draw(st.booleans())}]
    spec = {
        "containers": containers,
        "volumes": volumes,
        "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        "terminationGracePeriodSeconds": draw(st.integers(0, 100)),
        "hostNetwork": draw(st.booleans()),
    }
    labels = draw(st.dictionaries(NAME, NAME, max_size=2))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec}


def volume() -> st.SearchStrategy[dict[str, Any]]:
    path = NAME.map(lambda t: f"/{t}")
    kind = next(f for f in fields.table()["HostPathVolumeSource"].values() if f.name == "type")
    host = st.fixed_dictionaries({"path": path}, optional={"type": scalar(kind)})
    empty = st.fixed_dictionaries({}, optional={"medium": st.sampled_from(["", "Memory"]), "sizeLimit": QUANTITIES})
    return st.one_of(st.builds(lambda v: {"hostPath": v}, host), st.builds(lambda v: {"emptyDir": v}, empty))


# Everything quoted: PyYAML would write `y` and `0o7` bare, which are no text to Kubernetes.
QUOTED = '"'

# No shrinking: it takes minutes on whole pods, and the messages of the decoder point at the field anyway.
ONCE = hypothesis.settings(
    max_examples=60,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)


@ONCE
@hypothesis.given(pod(), st.booleans())
def test_decodes_encodes_and_decodes_to_the_same(manifest: dict[str, Any], as_yaml: bool) -> None:
    text = yaml.safe_dump(manifest, allow_unicode=True, default_style=QUOTED) if as_yaml else json.dumps(manifest)
    first = decode.decode(text.encode(), API)
    assert not first.failed, first.problems
    second = decode.decode(first.pods[0].document.encode(), API)
    assert not second.failed, second.problems
    one, two = first.pods[0], second.pods[0]
    assert (one.containers, one.volumes, one.labels, one.grace) == (two.containers, two.volumes, two.labels, two.grace)
    assert json.loads(one.document)["spec"] == json.loads(two.document)["spec"]
    # A document is stable: decoding it once more changes nothing at all.
    third = decode.decode(two.document.encode(), API)
    assert json.loads(third.pods[0].document)["spec"] == json.loads(two.document)["spec"]


@ONCE
@hypothesis.given(pod())
def test_yaml_and_json_of_a_pod_are_one_pod(manifest: dict[str, Any]) -> None:
    by_json = decode.decode(json.dumps(manifest).encode(), API)
    by_yaml = decode.decode(yaml.safe_dump(manifest, allow_unicode=True, default_style=QUOTED).encode(), API)
    without = [dataclasses.replace(p, document="{}") for d in (by_json, by_yaml) for p in d.pods]
    assert without[0] == without[1]
