"""What references stand for (semantics 5.1), and the text of /etc/hosts (5.2)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from edgelet import errors
from edgelet.core import expand, hosts, values
from edgelet.core.values import Around
from edgelet.model.objects import LocalObject
from edgelet.model.pod import EnvVar, HostAlias, Pod
from edgelet.model.references import (
    EnvFrom,
    FieldRef,
    FileKeyRef,
    Files,
    KeyFile,
    KeyRef,
    ObjectFiles,
    ResourceRef,
    ValueFile,
)
from tests.core.scenes import APP, SIDE, pod

SPEC = {
    "serviceAccountName": "robot",
    "initContainers": [{"name": "init", "resources": {"limits": {"memory": "1Ki"}}}],
    "containers": [
        {"name": "app", "resources": {"limits": {"cpu": "1500m", "memory": "10M"}, "requests": {"cpu": "0.2"}}},
        {"name": "side"},
    ],
}
POD = pod(labels={"b": 'two "2"', "a": "1"}, annotations={"why": "a\nb", "ü": "ö"}, document=json.dumps({"spec": SPEC}))
LOOK = LocalObject("ConfigMap", "default", "look", {"colour": b"red $(A)", "a=b": b"x", "size": b"9"})
LOGIN = LocalObject("Secret", "default", "login", {"password": b"s\xff"})
AROUND = Around("node", "192.0.2.1", ("10.88.0.2", "fd00::2"), 4, 2**30, 2**40, {o.id: o for o in (LOOK, LOGIN)})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-node"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-a"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['why']", "a\nb"),
        ("metadata.labels", 'a="1"\nb="two \\"2\\""'),
        ("metadata.annotations", 'why="a\\nb"\nü="ö"'),
        ("spec.nodeName", "node"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1"),
        ("status.podIP", "10.88.0.2"),
        ("status.podIPs", "10.88.0.2,fd00::2"),
        ("spec.restartPolicy", ""),
    ],
)
def test_a28_a_field(path: str, value: str) -> None:
    assert values.field_value(POD, path, AROUND) == value


def test_a_pod_on_the_nodes_network_has_its_address() -> None:
    there = replace(POD, host_network=True)
    assert values.field_value(there, "status.podIPs", AROUND) == "192.0.2.1"
    assert values.field_value(POD, "status.podIP", Around()) == ""


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        (ResourceRef("limits.cpu"), "2"),
        (ResourceRef("limits.cpu", divisor="1m"), "1500"),
        (ResourceRef("requests.cpu", divisor="1m"), "200"),
        (ResourceRef("limits.memory", divisor="1Mi"), "10"),
        (ResourceRef("limits.memory"), "10000000"),
        (ResourceRef("requests.memory"), "0"),
        (ResourceRef("limits.memory", "init"), "1024"),
        (ResourceRef("limits.memory", "side", "1Gi"), "1"),
        (ResourceRef("limits.cpu", "side"), "4"),
        (ResourceRef("limits.ephemeral-storage", divisor="1Ti"), "1"),
        (ResourceRef("limits.hugepages-2Mi"), "0"),
        (ResourceRef("requests.cpu", "side"), "0"),
        (ResourceRef("limits.memory", "gone", "1Gi"), "1"),
    ],
)
def test_an_amount_is_divided_and_rounded_up(ref: ResourceRef, value: str) -> None:
    assert values.amount(POD, ref, "app", AROUND) == value


def made(*env: EnvVar, env_from: tuple[EnvFrom, ...] = ()) -> dict[str, str]:
    """The variables of a container as it gets them."""
    container = replace(APP, env=env, env_from=env_from)
    return expand.expand_env(values.environment(POD, container, AROUND))


def test_variables_come_in_order_and_nothing_is_expanded_in_what_is_referred_to() -> None:
    key = KeyRef("ConfigMap", "look", "colour")
    assert made(
        EnvVar("A", "1"),
        EnvVar("COLOUR", source=key),
        EnvVar("BOTH", "$(COLOUR) $(A)"),
        EnvVar("CPU", source=ResourceRef("limits.cpu")),
        EnvVar("NAME", source=FieldRef("metadata.name")),
        EnvVar("PASSWORD", source=KeyRef("Secret", "login", "password")),
    ) == {
        "A": "1",
        "COLOUR": "red $(A)",
        "BOTH": "red $(A) 1",
        "CPU": "2",
        "NAME": "web-node",
        "PASSWORD": "s\ufffd",
    }


def test_all_keys_of_an_object_except_those_that_are_no_names() -> None:
    assert made(env_from=(EnvFrom("ConfigMap", "look"),)) == {"colour": "red $(A)", "size": "9"}
    assert made(env_from=(EnvFrom("Secret", "login", "L_"),)) == {"L_password": "s\ufffd"}
    first = made(EnvVar("size", "$(size)0"), env_from=(EnvFrom("ConfigMap", "look"),))
    assert first["size"] == "90"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (KeyRef("ConfigMap", "none", "x"), 'configmap "none" not found'),
        (KeyRef("Secret", "look", "x"), 'secret "look" not found'),
        (KeyRef("ConfigMap", "look", "x"), "couldn't find key x in ConfigMap default/look"),
    ],
)
def test_what_is_missing_is_told_unless_it_is_optional(source: KeyRef, message: str) -> None:
    with pytest.raises(errors.ReferenceMissing) as caught:
        made(EnvVar("X", source=source))
    assert str(caught.value) == message
    assert made(EnvVar("X", source=replace(source, optional=True))) == {}


def test_a_missing_object_of_which_all_is_wanted() -> None:
    with pytest.raises(errors.ReferenceMissing, match='configmap "none" not found'):
        made(env_from=(EnvFrom("ConfigMap", "none"),))
    assert made(env_from=(EnvFrom("ConfigMap", "none", optional=True),)) == {}


def test_objects_of_another_namespace_do_not_count() -> None:
    elsewhere = replace(POD, namespace="other")
    with pytest.raises(errors.ReferenceMissing):
        values.environment(elsewhere, replace(SIDE, env_from=(EnvFrom("ConfigMap", "look"),)), AROUND)


ALIASED = replace(POD, host_aliases=(HostAlias("10.1.1.1", ("db", "db.local")), HostAlias("10.1.1.2", ("x",))))


def test_a29_the_hosts_file_of_a_pod() -> None:
    text = hosts.text(ALIASED, ("10.88.0.2", "fd00::2"), "")
    assert text == (
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
        "10.88.0.2\tweb-node\nfd00::2\tweb-node\n"
        "\n# Entries added by HostAliases.\n10.1.1.1\tdb\tdb.local\n10.1.1.2\tx\n"
    )
    assert hosts.text(POD, (), "").endswith("ip6-allrouters\n")


def test_a29_the_hosts_file_of_a_pod_on_the_nodes_network() -> None:
    there: Pod = replace(ALIASED, host_network=True)
    assert hosts.text(there, ("192.0.2.1",), "1.2.3.4 node\n") == (
        "# Kubernetes-managed hosts file (host network).\n1.2.3.4 node\n"
        "\n# Entries added by HostAliases.\n10.1.1.1\tdb\tdb.local\n10.1.1.2\tx\n"
    )


def test_a_variable_from_a_file_in_a_volume() -> None:
    around = replace(AROUND, files={("config", "a.env"): "USER='$(A) x'\nEMPTY=''\n", ("config", "bad"): "x"})

    def value(path: str, key: str, optional: bool = False) -> list[tuple[str, str]]:
        app = replace(APP, env=(EnvVar("V", source=FileKeyRef("config", path, key, optional)),))
        return [(v.name, v.value) for v in values.environment(POD, app, around)]

    assert value("a.env", "USER") == [("V", "$$(A) x")]
    for key in ("EMPTY", "NONE"):
        assert value("a.env", key, optional=True) == []
        with pytest.raises(errors.ReferenceMissing, match=f'environment variable key "{key}" not found in file'):
            value("a.env", key)
    for path in ("bad", "none"):
        with pytest.raises(errors.ReferenceMissing, match=f"couldn't parse env file: {path} of volume config: "):
            value(path, "USER", optional=True)


def test_a_volume_of_files() -> None:
    look, login = (
        ObjectFiles("ConfigMap", "look"),
        ObjectFiles("Secret", "login", (KeyFile("password", "in/pw", 0o400),)),
    )
    name = ValueFile("name", FieldRef("metadata.name"))
    cpu = ValueFile("cpu", ResourceRef("limits.cpu"), 0o600)
    assert values.contents(POD, Files((look, login, name, cpu), 0o640), AROUND) == {
        "colour": (b"red $(A)", 0o640),
        "a=b": (b"x", 0o640),
        "size": (b"9", 0o640),
        "in/pw": (b"s\xff", 0o400),
        "name": (b"web-node", 0o640),
        "cpu": (b"2", 0o600),
    }
    assert Files((look, login)).secret
    assert not Files((look, name)).secret


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (ObjectFiles("ConfigMap", "none"), 'configmap "none" not found'),
        (ObjectFiles("Secret", "login", (KeyFile("x", "x"),)), "couldn't find key x in Secret default/login"),
    ],
)
def test_files_that_are_missing_are_told_unless_they_are_optional(source: ObjectFiles, message: str) -> None:
    with pytest.raises(errors.ReferenceMissing) as caught:
        values.contents(POD, Files((source,)), AROUND)
    assert str(caught.value) == message
    assert values.contents(POD, Files((replace(source, optional=True),)), AROUND) == {}
    gone = ObjectFiles("ConfigMap", "none", (KeyFile("x", "x"),), optional=True)
    assert values.contents(POD, Files((gone,)), AROUND) == {}
