"""The rules of semantics 2.2, one by one: a good pod, one change, the exact finding."""

from __future__ import annotations

import pytest

from edgelet.model import decode

NODE = "n" * 20
ORIGIN = decode.Origin("f.yaml", "file", NODE)
HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: main\n    image: nginx:1\n"
SPEC, BOX = "spec.", "spec.containers[0]."
FILE_KEY = (
    HEAD + "    env: [{{name: A, valueFrom: {{fileKeyRef: {{volumeName: {}, path: {}, key: A}}}}}}]\n"
    "  volumes: [{{name: v, {}}}]\n"
).replace("{name: web}", "{{name: web}}")
SYSCTLS = HEAD.replace("{name: web}", "{{name: web}}") + "  securityContext: {{sysctls: [{}]}}\n"
SYSCTL = "spec.securityContext.sysctls"

ERRORS: list[tuple[str, str, str]] = [
    # Names.
    (HEAD.replace("web", "w" * 240), "metadata.name", "is too long: with the node's name it has 261 characters"),
    (HEAD.replace("{name: web}", "{name: web, namespace: My_NS}"), "metadata.namespace", "lower-case letters"),
    (HEAD.replace("web}", "web, labels: {a/b/c: x}}"), "metadata.labels[a/b/c]", "at most one 'domain/'"),
    (HEAD.replace("web}", "web, labels: {-a: x}}"), "metadata.labels.-a", "must be a name of letters"),
    (HEAD.replace("web}", "web, annotations: {'a b': x}}"), "metadata.annotations.a b", "must be a name of letters"),
    (HEAD.replace("web}", f"web, labels: {{a: {'x' * 64}}}}}"), "metadata.labels.a", "is no label value"),
    (HEAD.replace("web}", f"web, annotations: {{a: {'x' * 262144}}}}}"), "metadata.annotations", "262144 are allowed"),
    (HEAD.replace("main", "Main"), "spec.containers[0].name", "lower-case letters"),
    (HEAD + "  volumes: [{name: A}]\n", "spec.volumes[0].name", "lower-case letters"),
    (HEAD + "  volumes: [{name: a}, {name: a}]\n", "spec.volumes[1].name", "two volumes are called 'a'"),
    (HEAD + "  initContainers: [{name: main, image: i}]\n", "spec.containers[0].name", "two containers are called"),
    (HEAD + "  hostname: A.b\n", "spec.hostname", "lower-case letters"),
    # The pod as a whole.
    (HEAD + "  shareProcessNamespace: true\n  hostPID: true\n", "spec.shareProcessNamespace", "with hostPID"),
    (HEAD + "  hostUsers: false\n  hostIPC: true\n", "spec.hostIPC", "with hostUsers: false"),
    (HEAD + "  os: {name: windows}\n", "spec.os.name", "this is a Linux node"),
    (HEAD + "  dnsPolicy: None\n", "spec.dnsConfig.nameservers", "needs at least one name server"),
    (HEAD + "  dnsConfig: {nameservers: [a, b, c, d]}\n", "spec.dnsConfig.nameservers", "4 are given, 3 are allowed"),
    (HEAD + f"  dnsConfig: {{searches: {['a'] * 33}}}\n", "spec.dnsConfig.searches", "at most 32"),
    (HEAD + "  hostAliases: [{ip: 1.2.3.4, hostnames: [A_b]}]\n", "spec.hostAliases[0].hostnames[0]", "no host name"),
    (SYSCTLS.format("{name: Net.x, value: '1'}"), SYSCTL + "[0].name", "is no name of a kernel setting"),
    (SYSCTLS.format("{name: a.b, value: '1'}, {name: a.b, value: '1'}"), SYSCTL + "[1].name", "is set twice"),
    (HEAD + "  schedulingGates: [{name: a}]\n", "spec.schedulingGates", "would never start"),
    (HEAD + "  ephemeralContainers: [{name: a}]\n", "spec.ephemeralContainers", "cannot stand in a manifest"),
    (HEAD + "  terminationGracePeriodSeconds: -1\n", "spec.terminationGracePeriodSeconds", "between 0 and"),
    (
        HEAD + "  volumes: [{name: a, hostPath: {path: /a/../b}}]\n",
        "spec.volumes[0].hostPath.path",
        "must not contain '..'",
    ),
    (HEAD + "  volumes: [{name: a, hostPath: {}}]\n", "spec.volumes[0].hostPath.path", "is required"),
    (
        HEAD + "  volumes: [{name: a, emptyDir: {medium: Ram}}]\n",
        "spec.volumes[0].emptyDir.medium",
        "not one of Memory",
    ),
    # Containers.
    (HEAD.replace("nginx:1", '" nginx:1"'), BOX + "image", "has blanks around it"),
    (HEAD + "    imagePullPolicy: always\n", BOX + "imagePullPolicy", "did you mean Always?"),
    (HEAD + "    ports: [{containerPort: 0}]\n", BOX + "ports[0].containerPort", "between 1 and 65535"),
    (HEAD + "    ports: [{containerPort: 1, hostIP: here}]\n", BOX + "ports[0].hostIP", "is not an IP address"),
    (
        HEAD + "    ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]\n",
        BOX + "ports[1].name",
        "two ports",
    ),
    (HEAD + "    ports: [{containerPort: 1, name: '80'}]\n", BOX + "ports[0].name", "at least one letter"),
    (HEAD + "    env: [{name: a=b, value: c}]\n", BOX + "env[0].name", "printable ASCII without '='"),
    (HEAD + "    env: [{value: c}]\n", BOX + "env[0].name", "is required"),
    (HEAD + "    env: [{name: ''}]\n", BOX + "env[0].name", "is required"),
    (FILE_KEY.format("v", "/x", "emptyDir: {}"), BOX + "env[0].valueFrom.fileKeyRef.path", "must lie in the volume"),
    (
        FILE_KEY.format("v", "a/../b", "emptyDir: {}"),
        BOX + "env[0].valueFrom.fileKeyRef.path",
        "must lie in the volume",
    ),
    (FILE_KEY.format("w", "x", "emptyDir: {}"), BOX + "env[0].valueFrom.fileKeyRef.volumeName", "no volume is called"),
    (
        FILE_KEY.format("v", "x", "hostPath: {path: /x}"),
        BOX + "env[0].valueFrom.fileKeyRef.volumeName",
        "must be an emptyDir",
    ),
    (
        HEAD + "    volumeMounts: [{name: a, mountPath: 'a:b'}]\n  volumes: [{name: a}]\n",
        BOX + "volumeMounts[0].mountPath",
        "':'",
    ),
    (
        HEAD + "    volumeMounts: [{name: a, mountPath: /a, subPath: /b}]\n  volumes: [{name: a}]\n",
        BOX + "volumeMounts[0].subPath",
        "must be relative",
    ),
    (
        HEAD + "    volumeMounts: [{name: a, mountPath: /a, subPath: b/..}]\n  volumes: [{name: a}]\n",
        BOX + "volumeMounts[0].subPath",
        "must not contain '..'",
    ),
    (
        HEAD
        + "    volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]\n  volumes: [{name: a}]\n",
        BOX + "volumeMounts[0].mountPropagation",
        "privileged: true",
    ),
    (HEAD + "    resources: {limits: {cpu: -1}}\n", BOX + "resources.limits.cpu", "must not be negative"),
    (HEAD + "    resources: {limits: {cpu: 1}, requests: {cpu: 1001m}}\n", BOX + "resources.requests.cpu", "more than"),
    (
        HEAD + "    securityContext: {allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}}\n",
        BOX + "securityContext.allowPrivilegeEscalation",
        "SYS_ADMIN",
    ),
    (HEAD + "    securityContext: {runAsUser: 4294967296}\n", BOX + "securityContext.runAsUser", "between 0 and"),
    # Probes and hooks.
    (HEAD + "    livenessProbe: {tcpSocket: {port: 0}}\n", BOX + "livenessProbe.tcpSocket.port", "between 1 and 65535"),
    (HEAD + "    livenessProbe: {grpc: {port: 0}}\n", BOX + "livenessProbe.grpc.port", "between 1 and 65535"),
    (HEAD + "    livenessProbe: {exec: {}}\n", BOX + "livenessProbe.exec.command", "is required"),
    (
        HEAD + "    livenessProbe: {exec: {command: [a]}, periodSeconds: -1}\n",
        BOX + "livenessProbe.periodSeconds",
        "between 0",
    ),
    (
        HEAD + "    readinessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}\n",
        BOX + "readinessProbe.terminationGracePeriodSeconds",
        "has no place here",
    ),
    (
        HEAD + "    livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 0}\n",
        BOX + "livenessProbe.terminationGracePeriodSeconds",
        "between 1 and",
    ),
    (
        HEAD + "    startupProbe: {exec: {command: [a]}, successThreshold: 2}\n",
        BOX + "startupProbe.successThreshold",
        "must be 1",
    ),
    (
        HEAD + "    livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: 'a b', value: c}]}}\n",
        BOX + "livenessProbe.httpGet.httpHeaders[0].name",
        "not a header name",
    ),
    (
        HEAD + "    livenessProbe: {httpGet: {port: 1, scheme: ftp}}\n",
        BOX + "livenessProbe.httpGet.scheme",
        "HTTP, HTTPS",
    ),
    (
        HEAD + "    lifecycle: {preStop: {}}\n",
        BOX + "lifecycle.preStop",
        "needs one of exec, httpGet, sleep, tcpSocket",
    ),
    (
        HEAD + "    lifecycle: {preStop: {sleep: {seconds: 31}}}\n",
        BOX + "lifecycle.preStop.sleep.seconds",
        "between 0 and",
    ),
    (
        HEAD + "  initContainers: [{name: a, image: i, lifecycle: {preStop: {sleep: {seconds: 1}}}}]\n",
        "spec.initContainers[0].lifecycle",
        "only sidecars",
    ),
]

WARNINGS: list[tuple[str, str, str]] = [
    (HEAD + "    resources: {limits: {memory: 128m}}\n", BOX + "resources.limits.memory", "M or Mi is meant"),
    (HEAD + "    resources: {limits: {nvidia.com/gpu: 1}}\n", BOX + "resources.limits[nvidia.com/gpu]", "not honoured"),
    (HEAD + "    env: [{name: A, value: a}, {name: A, value: b}]\n", BOX + "env[1].name", "is set twice"),
    (HEAD + "    lifecycle: {preStop: {tcpSocket: {port: web}}}\n", BOX + "lifecycle.preStop.tcpSocket.port", "'web'"),
    ("y: 1\n" + HEAD, "true", "the key y is read as 'true'"),
]

GOOD = [
    HEAD + "  initContainers: [{name: a, image: i, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}]\n",
    HEAD + "    ports: [{containerPort: 53, hostPort: 53}, {containerPort: 53, hostPort: 53, protocol: UDP}]\n",
    HEAD
    + "    ports: [{containerPort: 1, hostPort: 1, hostIP: 1.2.3.4}, {containerPort: 1, hostPort: 1, hostIP: '::'}]\n",
    HEAD + "    ports: [{containerPort: 80, name: web}]\n    livenessProbe: {httpGet: {port: web}}\n",
    HEAD
    + "  tolerations: [{operator: Exists}]\n  dnsPolicy: Default\n  enableServiceLinks: false\n  nodeName: other\n",
    HEAD + "  affinity: {}\n  hostUsers: true\n  schedulingGates: []\n",
    HEAD.replace("web}", "web, labels: {a.b/c: '', d: x_y.z-1}}"),
    HEAD + "    resources: {limits: {cpu: 1}, requests: {cpu: 1000m}}\n",
    HEAD + "    env: [{name: 'a.b-c d', value: ''}, {name: B}]\n",
]
"""No error and no warning."""


def lines(text: str, warnings: bool) -> dict[str, str]:
    """Field path -> message."""
    return {p.path: p.message for p in decode.decode(text.encode(), ORIGIN).problems if p.warning == warnings}


@pytest.mark.parametrize(("text", "path", "said"), ERRORS, ids=[f"{p} {s[:20]}" for _, p, s in ERRORS])
def test_rule(text: str, path: str, said: str) -> None:
    found = lines(text, warnings=False)
    assert said in found.get(path, ""), found
    assert len(found) == 1, "one mistake, one message"


@pytest.mark.parametrize(("text", "path", "said"), WARNINGS, ids=[p for _, p, _ in WARNINGS])
def test_warning(text: str, path: str, said: str) -> None:
    assert not lines(text, warnings=False)
    assert said in lines(text, warnings=True).get(path, "")


@pytest.mark.parametrize("text", GOOD)
def test_nothing_to_say(text: str) -> None:
    result = decode.decode(text.encode(), ORIGIN)
    assert not result.problems
    assert len(result.pods) == 1
