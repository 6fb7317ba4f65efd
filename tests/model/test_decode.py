"""From bytes to pods: names and uids, defaults, kinds, several objects in a file, damaged files."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from edgelet.model import decode, pod

FILE = decode.Origin("web.yaml", "file", "Edge-1")
API = dataclasses.replace(FILE, source="api")
STRICT = dataclasses.replace(FILE, strict=True)

WEB = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - name: main
    image: docker.io/library/nginx:1.27
    ports:
    - containerPort: 80
"""


def good(text: str, origin: decode.Origin = FILE) -> pod.Pod:
    """The one pod of a text without errors."""
    result = decode.decode(text.encode(), origin)
    assert not result.failed, result.problems
    (found,) = result.pods
    return found


def spec(text: str, origin: decode.Origin = FILE) -> pod.Pod:
    """A pod with these lines of spec added."""
    return good(WEB + text, origin)


def messages(text: str, origin: decode.Origin = FILE) -> list[str]:
    """All findings as they are printed."""
    return [str(p) for p in decode.decode(text.encode(), origin).problems]


# Identity.


def test_golden_identity() -> None:
    """Changing these values restarts every container of every user at an upgrade: a new scheme is needed for that."""
    found = good(WEB)
    assert found.name == "web-edge-1"
    assert found.short_name == "web"
    assert found.uid == "f6ae25d978ce2574f0e6e2bd59d6bcbb"
    assert found.config_hash == "1-f6ae25d978ce2574f0e6e2bd59d6bcbb"


def test_golden_identity_of_a_deployment() -> None:
    assert good(DEPLOYMENT).config_hash == "1-d9743b1b03373ad4991e3a1780b138d9"


def test_what_makes_no_difference_to_the_uid() -> None:
    as_json = json.dumps(
        {
            "spec": {
                "containers": [
                    {"ports": [{"containerPort": 80}], "image": "docker.io/library/nginx:1.27", "name": "main"}
                ]
            },
            "metadata": {"labels": {"app": "web"}, "name": "web"},
            "kind": "Pod",
            "apiVersion": "v1",
        }
    )
    quoted = WEB.replace("app: web", '"app": "web"').replace("\n", "  # a remark\n")
    anchored = WEB.replace("labels: {app: web}", "labels: &l {app: web}\n  annotations:")
    windows = "\ufeff" + WEB.replace("\n", "\r\n")
    moved = good(WEB, dataclasses.replace(FILE, file="other/place.yaml"))
    status = WEB + "status: {phase: Running}\n"
    texts = (as_json, quoted, anchored, windows, status)
    assert {good(t).uid for t in texts} | {moved.uid} == {good(WEB).uid}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.27", "1.28"),
        ("app: web", "app: web2"),
        ("80", "81"),
        ("name: main", "name: main2"),
        ("name: web", "name: web3"),
    ],
)
def test_what_makes_another_generation(old: str, new: str) -> None:
    assert good(WEB.replace(old, new)).config_hash != good(WEB).config_hash


def test_node_name_is_part_of_the_uid() -> None:
    assert good(WEB, dataclasses.replace(FILE, node_name="edge-2")).uid != good(WEB).uid


def test_adding_the_quotes_that_a_warning_asked_for_restarts_nothing() -> None:
    loose = WEB.replace("app: web", "app: 80")
    tight = WEB.replace("app: web", 'app: "80"')
    assert messages(loose) and not messages(tight)
    assert good(loose).config_hash == good(tight).config_hash
    assert (
        good(WEB.replace("app: web", "app: 1.10")).config_hash != good(WEB.replace("app: web", "app: 1.1")).config_hash
    )


def test_explicit_uid_is_kept_and_the_hash_still_follows_the_content() -> None:
    first = good(WEB.replace("name: web", "name: web\n  uid: abc-1"))
    second = good(WEB.replace("name: web", "name: web\n  uid: abc-1").replace("1.27", "1.28"))
    assert first.uid == second.uid == "abc-1"
    assert first.config_hash != second.config_hash


@pytest.mark.parametrize("uid", ["../../etc", "a/b", "..", "a b", "x" * 64, "é"])
def test_uid_that_is_a_path_is_refused(uid: str) -> None:
    assert any("metadata.uid" in m for m in messages(WEB.replace("name: web", f"name: web\n  uid: '{uid}'")))


def test_submitted_pod_keeps_its_name() -> None:
    assert good(WEB, API).name == "web"


# The document.


def test_document_is_the_defaulted_pod() -> None:
    document = json.loads(good(WEB).document)
    metadata = document["metadata"]
    assert (document["apiVersion"], document["kind"], document["status"]) == ("v1", "Pod", {"phase": "Pending"})
    assert metadata["name"] == "web-edge-1"
    assert metadata["namespace"] == "default"
    assert metadata["annotations"] == {
        "kubernetes.io/config.hash": metadata["uid"],
        "kubernetes.io/config.source": "file",
    }
    assert document["spec"]["nodeName"] == "Edge-1"
    assert document["spec"]["tolerations"] == [{"effect": "NoExecute", "operator": "Exists"}]


def test_toleration_is_for_files_only_and_not_twice() -> None:
    assert "tolerations" not in json.loads(good(WEB, dataclasses.replace(FILE, source="http")).document)["spec"]
    twice = spec("  tolerations: [{operator: Exists, effect: NoExecute}, {key: a, operator: Exists}]\n")
    assert len(json.loads(twice.document)["spec"]["tolerations"]) == 2


def test_document_decodes_to_the_same_pod() -> None:
    first = spec("  terminationGracePeriodSeconds: 5\n  volumes: [{name: v}]\n", API)
    second = good(first.document, API)
    same = ("containers", "init_containers", "volumes", "labels", "restart_policy", "grace", "host_network", "name")
    assert [getattr(first, n) for n in same] == [getattr(second, n) for n in same]


# Defaults (semantics 2.1).


def test_defaults() -> None:
    found = good(WEB)
    (container,) = found.containers
    assert (found.namespace, found.restart_policy, found.grace) == ("default", "Always", 30)
    assert container.pull_policy == "IfNotPresent"
    assert container.termination_message_path == "/dev/termination-log"
    assert container.termination_message_policy == "File"
    assert container.ports == (pod.Port(80),)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert good(WEB.replace("docker.io/library/nginx:1.27", image)).containers[0].pull_policy == policy


def test_probe_defaults_and_explicit_zero() -> None:
    probe = "    livenessProbe: {httpGet: {port: 80}, timeoutSeconds: 0, periodSeconds: 0, failureThreshold: 0}\n"
    assert spec(probe).containers[0].liveness == pod.Probe(pod.HttpGet(80, "/", "HTTP"))


def test_host_network_publishes_every_port() -> None:
    assert spec("  hostNetwork: true\n").containers[0].ports == (pod.Port(80, 80),)


def test_missing_request_is_the_limit() -> None:
    found = spec("    resources: {limits: {cpu: 0.5, memory: 64Mi}, requests: {cpu: 100m}}\n").containers[0].resources
    assert found == pod.Resources(500, 64 * 2**20, 100, 64 * 2**20)


def test_volume_without_a_source_is_an_empty_directory() -> None:
    assert spec("  volumes: [{name: v}]\n").volumes == (pod.Volume("v", pod.EmptyDir()),)


# Every field of the typed pod.


def test_everything_that_is_honoured() -> None:
    text = (
        WEB.replace("  labels", "  namespace: prod\n  annotations: {note: x}\n  labels")
        + """\
    imagePullPolicy: Never
    command: [sh, -c]
    args: [sleep 1]
    workingDir: /srv
    env: [{name: A, value: "1"}, {name: B}]
    volumeMounts:
    - {name: data, mountPath: data, readOnly: true, subPath: a/b, mountPropagation: HostToContainer}
    - {name: dev, mountPath: /dev/x}
    securityContext:
      runAsUser: 7
      privileged: true
      readOnlyRootFilesystem: true
      capabilities: {add: [CAP_NET_ADMIN], drop: [all]}
    livenessProbe: {exec: {command: [a]}, initialDelaySeconds: 1, terminationGracePeriodSeconds: 9}
    readinessProbe: {tcpSocket: {port: 80, host: h}, successThreshold: 2}
    startupProbe: {grpc: {port: 5, service: s}}
    lifecycle:
      postStart: {sleep: {seconds: 2}}
      preStop: {httpGet: {port: 80, scheme: HTTPS, httpHeaders: [{name: H, value: v}]}}
    terminationMessagePath: /t
    terminationMessagePolicy: FallbackToLogsOnError
    stdin: true
    tty: true
  initContainers:
  - {name: first, image: "i:1", restartPolicy: Always}
  volumes:
  - {name: data, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: dev, hostPath: {path: /dev/x, type: CharDevice}}
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 2
  hostPID: true
  hostIPC: true
  hostname: hal
  securityContext: {runAsUser: 1, runAsGroup: 2, runAsNonRoot: true}
"""
    )
    found = good(text)
    assert dataclasses.replace(found, document="{}", uid="", config_hash="") == pod.Pod(
        name="web-edge-1",
        namespace="prod",
        uid="",
        config_hash="",
        source="file",
        containers=(
            pod.Container(
                name="main",
                image="docker.io/library/nginx:1.27",
                pull_policy="Never",
                command=("sh", "-c"),
                args=("sleep 1",),
                working_dir="/srv",
                env=(pod.EnvVar("A", "1"), pod.EnvVar("B", "")),
                ports=(pod.Port(80),),
                mounts=(
                    pod.VolumeMount("data", "/data", True, "a/b", "HostToContainer"),
                    pod.VolumeMount("dev", "/dev/x"),
                ),
                security=pod.SecurityContext(7, 2, True, True, None, True, ("NET_ADMIN",), ("ALL",)),
                liveness=pod.Probe(pod.Exec(("a",)), initial_delay=1, termination_grace=9),
                readiness=pod.Probe(pod.TcpSocket(80, "h"), success_threshold=2),
                startup=pod.Probe(pod.Grpc(5, "s")),
                lifecycle=pod.Lifecycle(pod.Sleep(2), pod.HttpGet(80, "/", "HTTPS", "", (("H", "v"),))),
                termination_message_path="/t",
                termination_message_policy="FallbackToLogsOnError",
                stdin=True,
                tty=True,
            ),
        ),
        init_containers=(
            pod.Container(
                "first",
                "i:1",
                restart_policy="Always",
                security=pod.SecurityContext(1, 2, True),
            ),
        ),
        volumes=(
            pod.Volume("data", pod.EmptyDir("Memory", 2**20)),
            pod.Volume("dev", pod.HostPath("/dev/x", "CharDevice")),
        ),
        labels={"app": "web"},
        annotations={
            "note": "x",
            "kubernetes.io/config.hash": found.uid,
            "kubernetes.io/config.source": "file",
        },
        restart_policy="OnFailure",
        grace=2,
        host_pid=True,
        host_ipc=True,
        hostname="hal",
        short_name="web",
    )


# Kinds, lists, several documents.

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "nginx:1"}]
"""


def test_pain_113_pain_115_deployment_runs_as_one_pod_with_a_notice() -> None:
    found = good(DEPLOYMENT)
    assert (found.key, found.labels) == (pod.PodKey("prod", "web-edge-1"), {"app": "web"})
    assert messages(DEPLOYMENT) == [
        "web.yaml:2:7: warning: kind: Deployment 'web' runs as one pod, not 3; there is no rolling update"
    ]
    assert good(DEPLOYMENT, STRICT).name == "web-edge-1"


def test_pain_202_daemonset_statefulset_and_job_too() -> None:
    for kind, version in (("DaemonSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("Job", "batch/v1")):
        text = DEPLOYMENT.replace("Deployment", kind).replace("apps/v1", version).replace("  replicas: 3\n", "")
        policy = "      restartPolicy: Never\n" if kind == "Job" else ""
        assert good(text + policy).name == "web-edge-1"


def test_number_of_replicas_is_no_part_of_the_pod() -> None:
    assert good(DEPLOYMENT).uid == good(DEPLOYMENT.replace("3", "1")).uid


def test_no_replicas_no_pod_on_purpose() -> None:
    result = decode.decode(DEPLOYMENT.replace("3", "0").encode(), FILE)
    assert (result.pods, result.failed, result.empty) == ((), False, True)


def test_errors_in_a_template_have_their_own_path() -> None:
    found, _notice = sorted(messages(DEPLOYMENT.replace('image: "nginx:1"', "imagePullPolicy: Never")))
    assert found.startswith("web.yaml:10:20: error: spec.template.spec.containers[0].image: is required")


def test_pain_200_service_beside_a_pod_is_a_warning_and_strict_refuses() -> None:
    text = WEB + "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    assert good(text).name == "web-edge-1"
    assert messages(text) == [
        "web.yaml:14:7: warning: kind: Service is not needed: publish a container's port with hostPort"
    ]
    assert decode.decode(text.encode(), STRICT).failed


def test_file_with_nothing_but_a_service_is_an_error() -> None:
    result = decode.decode(b"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", FILE)
    assert (result.failed, result.empty) == (True, False)


def test_list_in_list_documents_and_json_back_to_back() -> None:
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    other = {**item, "metadata": {"name": "b"}}
    third = {**item, "metadata": {"name": "c"}}
    inner = {"apiVersion": "v1", "kind": "PodList", "items": [other]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [item, inner]}
    result = decode.decode((json.dumps(outer) + json.dumps(third)).encode(), FILE)
    assert [p.short_name for p in result.pods] == ["a", "b", "c"]
    assert [p.uid for p in result.pods][:1] == [good(json.dumps(item)).uid]


def test_one_bad_document_costs_only_itself() -> None:
    text = WEB.replace("image:", "imag:") + "---\n" + WEB.replace("name: web", "name: other") + "---\n}\n"
    result = decode.decode(text.encode(), FILE)
    assert [p.short_name for p in result.pods] == ["other"]
    assert result.failed
    assert {p.document for p in result.problems} == {1, 3}


def test_two_pods_of_one_name_in_a_file_the_first_counts() -> None:
    text = WEB + "---\n" + WEB.replace("1.27", "1.28")
    assert good(text).containers[0].image.endswith("1.27")
    assert messages(text) == [
        "web.yaml:16:9: warning: metadata.name: a pod default/web stands in this file already; this one is left out"
    ]


def test_config_maps_and_secrets_are_kept() -> None:
    text = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: x, port: 80}
binaryData: {b: aGk=}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: other}
data: {p: c2VjcmV0}
stringData: {q: plain}
"""
    result = decode.decode(text.encode(), FILE)
    assert not result.failed and not result.empty
    first, second = result.objects
    assert (first.kind, first.namespace, first.name, first.data) == (
        "ConfigMap",
        "default",
        "c",
        {"a": b"x", "port": b"80", "b": b"hi"},
    )
    assert (second.kind, second.namespace, second.data) == ("Secret", "other", {"p": b"secret", "q": b"plain"})


# Empty, damaged, too big.


@pytest.mark.parametrize(
    "text", ["# off for now\n", "---\n", "---\n# a\n---\n", "apiVersion: v1\nkind: List\nitems: []\n", "\ufeff# x"]
)
def test_empty_on_purpose(text: str) -> None:
    result = decode.decode(text.encode(), FILE)
    assert (result.pods, result.problems, result.empty) == ((), (), True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"null\n", "holds no object"),
        (b"\0" * 100, "NUL bytes"),
        (WEB.encode()[:60] + b"\0" * 40, "NUL bytes"),
        (b"a: \xff\xfe", "not UTF-8"),
        (b"a: \x07", "control character"),
        (b"[]", "an object is a mapping"),
        (b"hello", "only 'hello'"),
        (b"x" * (decode.MAX_BYTES + 1), "10485760 are allowed"),
    ],
)
def test_damaged(data: bytes, said: str) -> None:
    result = decode.decode(data, FILE)
    assert (result.pods, result.empty, result.failed) == ((), False, True)
    assert any(said in p.message for p in result.problems)


def test_pain_110_every_cut_of_a_file_is_refused_or_a_smaller_truth() -> None:
    """A half-written file never crashes; what is accepted of it is a pod with fewer fields."""
    whole = WEB.encode()
    for length in range(len(whole)):
        result = decode.decode(whole[:length], FILE)
        if result.pods:
            assert result.pods[0].containers[0].name == "main"
            assert "docker.io/library/nginx:1.27".startswith(result.pods[0].containers[0].image)


def test_utf16_with_a_mark_is_read() -> None:
    assert decode.decode(WEB.encode("utf-16"), FILE).pods[0].uid == good(WEB).uid


# Strict.


def test_pain_8_strict_refuses_what_is_not_honoured() -> None:
    text = WEB + "  nodeSelector: {a: b}\n  unknownThing: 1\n"
    assert good(text).name == "web-edge-1"
    result = decode.decode(text.encode(), STRICT)
    assert (result.pods, len(result.problems)) == ((), 2)
    assert not any(p.warning for p in result.problems)


def test_pain_212_relative_host_path_is_refused_with_its_place() -> None:
    assert messages(WEB + "  volumes: [{name: v, hostPath: {path: data}}]\n") == [
        "web.yaml:12:40: error: spec.volumes[0].hostPath.path: 'data' must be an absolute path: "
        "there is no directory that it is relative to"
    ]


def test_errors_are_kept_when_warnings_overflow() -> None:
    many = "".join(f"  x{n}: 1\n" for n in range(500))
    result = decode.decode((WEB.replace("image:", "imag:") + many).encode(), FILE)
    assert result.failed
    assert not result.pods
    assert len(result.problems) < 250


def test_values_are_immutable_for_the_reader() -> None:
    value: Any = good(WEB)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.name = "x"


def test_job_must_say_that_it_ends() -> None:
    text = DEPLOYMENT.replace("Deployment", "Job").replace("apps/v1", "batch/v1").replace("  replicas: 3\n", "")
    assert any("a Job ends: write OnFailure or Never" in m for m in messages(text))


@pytest.mark.parametrize("line", ["activeDeadlineSeconds: 0", "dnsPolicy: Cluster", "preemptionPolicy: x"])
def test_value_of_a_field_that_is_not_honoured_must_still_be_right(line: str) -> None:
    assert decode.decode(f"{WEB}  {line}\n".encode(), FILE).failed


@pytest.mark.parametrize("template", ["text", "[]", "{metadata: text}", "{spec: 1}", "{}", "null"])
def test_template_that_is_no_template(template: str) -> None:
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{template: {template}}}\n"
    result = decode.decode(text.encode(), FILE)
    assert (result.pods, result.failed) == ((), True)
    assert any(p.path.startswith("spec.template") for p in result.problems)


def test_messages_are_single_lines_that_no_terminal_acts_upon() -> None:
    text = WEB + '  "restartPolicy": "a\\e[31m\\nb"\n  "x\\ny\\e": 1\n'
    found = messages(text)
    assert len(found) == 2
    assert all(m.isprintable() for m in found)


def test_messages_do_not_show_where_secrets_stand() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: 4711}\ndata: {pin: 4711}\n"
    env = WEB + "    env: [{name: PIN, value: 4711}, PIN=4711]\n"
    assert "4711" not in " ".join(messages(secret) + messages(env))
    assert len(messages(secret) + messages(env)) == 4


@pytest.mark.parametrize("text", ["items:", "items: {}", "", "metadata: {}", "items: x"])
def test_pain_110_list_that_was_cut_is_no_empty_list(text: str) -> None:
    """A file cut after `items:` must not look like the wish to have no pods."""
    result = decode.decode(f"apiVersion: v1\nkind: PodList\n{text}\n".encode(), FILE)
    assert (result.failed, result.empty) == (True, False)


def test_kind_that_only_ends_in_list_is_just_an_unknown_kind() -> None:
    text = "apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\n"
    assert "AllowList (x/v1) has no meaning without a cluster" in messages(text)[0]


def test_deployment_without_a_spec_is_refused() -> None:
    result = decode.decode(b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", FILE)
    assert (result.failed, result.empty) == (True, False)


def test_claim_alone_is_neither_an_error_nor_empty_on_purpose() -> None:
    text = b"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {}\n"
    result = decode.decode(text, FILE)
    assert (result.failed, result.empty, len(result.problems)) == (False, False, 1)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
@pytest.mark.parametrize("key", ["", ".", "..", "..data", "../../etc/cron.d/x", "a/b", "a b", "a\0b", "é", "x" * 254])
def test_a_key_that_could_be_the_name_of_no_file_or_of_another_one_is_refused(kind: str, key: str) -> None:
    section = "stringData" if kind == "Secret" else "data"
    document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "m"}, section: {key: "x", "good.conf_1-a": "y"}}
    decoded = decode.decode(json.dumps(document).encode(), decode.Origin("f.yaml", "file", "n1"))
    assert decoded.objects == ()
    assert len(decoded.problems) == 1
    assert "must be up to 253 letters" in str(decoded.problems[0])
