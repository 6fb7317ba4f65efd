"""The table of settings: each one's names in the file, the environment and on the command line, and its parser."""

from __future__ import annotations

from dataclasses import dataclass

from . import config_values as values

ENVIRONMENT_PREFIX = "EDGELET_"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting's names in all places, and its parser.

    `repeat` = the flag may be given several times, its values together are one list.
    """

    field: str
    key: str
    flags: tuple[str, ...]
    parse: values.Parser
    metavar: str
    help: str
    repeat: bool = False

    @property
    def variable(self) -> str:
        """Name of its environment variable."""
        return ENVIRONMENT_PREFIX + self.field.upper()

    @property
    def destination(self) -> str:
        """Attribute of the argparse namespace."""
        return self.field


_often = values.duration(0.1)
"""Below a tenth of a second a check would be polling."""

OPTIONS = (
    Option("static_pod_path", "staticPodPath", ("--pod-manifest-path",), values.path, "PATH", "directory of manifests"),
    Option("static_pod_url", "staticPodURL", ("--manifest-url",), values.urls, "URL", "URL of manifests", repeat=True),
    Option(
        "static_pod_url_header",
        "staticPodURLHeader",
        ("--manifest-url-header",),
        values.headers,
        "NAME:VALUE",
        "header sent to the manifest URLs",
        repeat=True,
    ),
    Option(
        "static_pod_url_header_file",
        "staticPodURLHeaderFile",
        ("--manifest-url-header-file",),
        values.path,
        "FILE",
        "file with more headers for the URLs, one NAME: VALUE a line",
    ),
    Option(
        "static_pod_url_token_file",
        "staticPodURLTokenFile",
        ("--manifest-url-token-file",),
        values.path,
        "FILE",
        "file with a bearer token for the URLs",
    ),
    Option(
        "static_pod_url_ca_file",
        "staticPodURLCAFile",
        ("--manifest-url-ca-file",),
        values.path,
        "FILE",
        "PEM file with authorities for the URLs",
    ),
    Option(
        "static_pod_url_client_cert",
        "staticPodURLClientCert",
        ("--manifest-url-client-cert",),
        values.path,
        "FILE",
        "PEM file with the client certificate for the URLs",
    ),
    Option(
        "static_pod_url_client_key",
        "staticPodURLClientKey",
        ("--manifest-url-client-key",),
        values.path,
        "FILE",
        "PEM file with the key of that certificate",
    ),
    Option(
        "file_check_frequency", "fileCheckFrequency", ("--file-check-frequency",), _often, "20s", "between listings"
    ),
    Option(
        "http_check_frequency", "httpCheckFrequency", ("--http-check-frequency",), _often, "20s", "between requests"
    ),
    Option("sync_frequency", "syncFrequency", ("--sync-frequency",), _often, "1m", "between looks at a quiet pod"),
    Option(
        "node_name", "nodeName", ("--node-name", "--hostname-override"), values.node_name, "NAME", "name of this node"
    ),
    Option("root_dir", "rootDir", ("--root-dir",), values.directory, "DIR", "state that survives reboots"),
    Option("run_dir", "runDir", ("--run-dir",), values.directory, "DIR", "state that does not survive reboots"),
    Option("pod_logs_dir", "podLogsDir", ("--pod-logs-dir",), values.directory, "DIR", "container logs"),
    Option("podman_socket", "podmanSocket", ("--podman-socket",), values.socket, "PATH", "socket of Podman's API"),
    Option("socket", "socket", ("--socket",), values.socket, "PATH", "socket of the agent's own API"),
    Option("address", "address", ("--address",), values.ip_address, "IP", "address of the TLS port"),
    Option("port", "port", ("--port",), values.count(0, 65535), "10250", "TLS port of the API; 0 = none"),
    Option(
        "read_only_port",
        "readOnlyPort",
        ("--read-only-port",),
        values.count(0, 65535),
        "0",
        "port for health, pods and metrics that asks for no token; 0 = none",
    ),
    Option("tls_cert_file", "tlsCertFile", ("--tls-cert-file",), values.path, "FILE", "PEM file of the certificate"),
    Option(
        "tls_private_key_file",
        "tlsPrivateKeyFile",
        ("--tls-private-key-file",),
        values.path,
        "FILE",
        "PEM file of the certificate's key",
    ),
    Option(
        "client_ca_file",
        "authentication",
        ("--client-ca-file",),
        values.client_ca,
        "FILE",
        "PEM file with authorities for client certificates; in the file under authentication.x509.clientCAFile",
    ),
    Option(
        "token_auth_file",
        "tokenAuthFile",
        ("--token-auth-file",),
        values.path,
        "FILE",
        'bearer tokens: token,user,uid,"groups" a line',
    ),
    Option(
        "container_log_max_size", "containerLogMaxSize", ("--container-log-max-size",), values.size, "10Mi", "log size"
    ),
    Option(
        "container_log_max_files",
        "containerLogMaxFiles",
        ("--container-log-max-files",),
        values.count(2, 1000),
        "5",
        "log files kept per container",
    ),
    Option(
        "container_log_monitor_interval",
        "containerLogMonitorInterval",
        ("--container-log-monitor-interval",),
        values.duration(1.0),
        "10s",
        "between looks at log sizes",
    ),
    Option("registry_pull_qps", "registryPullQPS", ("--registry-qps",), values.count(0, 10_000), "5", "pulls a second"),
    Option("registry_burst", "registryBurst", ("--registry-burst",), values.count(1, 10_000), "10", "and at once"),
    Option("max_pods", "maxPods", ("--max-pods",), values.count(0, 10_000), "110", "most pods on this node"),
    Option(
        "allowed_unsafe_sysctls",
        "allowedUnsafeSysctls",
        ("--allowed-unsafe-sysctls",),
        values.sysctls,
        "NAME,...",
        "kernel settings that pods may have beside the safe ones",
    ),
    Option("pod_network", "podNetwork", ("--pod-network",), values.network_name, "NAME", "Podman network of pods"),
    Option("pod_cidr", "podCIDR", ("--pod-cidr",), values.network, "CIDR", "addresses of pods, if the agent makes it"),
    Option("strict", "strict", ("--strict",), values.boolean, "true", "refuse manifests with unknown fields"),
    Option("log_level", "logLevel", ("--log-level",), values.log_level, "info", "debug, info, warning or error"),
    Option("kubeconfig", "kubeconfig", ("--kubeconfig",), values.path, "PATH", "link to a Kubernetes API server"),
    Option(
        "bootstrap_kubeconfig",
        "bootstrapKubeconfig",
        ("--bootstrap-kubeconfig",),
        values.path,
        "PATH",
        "asks there for the certificate of --kubeconfig",
    ),
    Option("register_node", "registerNode", ("--register-node",), values.boolean, "true", "register at that server"),
    Option("node_labels", "nodeLabels", ("--node-labels",), values.labels, "K=V,...", "labels of the node there"),
    Option(
        "register_with_taints",
        "registerWithTaints",
        ("--register-with-taints",),
        values.taints,
        "K=V:EFFECT,...",
        "taints of the node when it is registered",
    ),
    Option("node_ip", "nodeIP", ("--node-ip",), values.own_address, "IP", "address of the node; empty = found out"),
    Option(
        "node_status_update_frequency",
        "nodeStatusUpdateFrequency",
        ("--node-status-update-frequency",),
        values.duration(1.0),
        "10s",
        "between looks at the node's own status",
    ),
    Option(
        "node_status_report_frequency",
        "nodeStatusReportFrequency",
        ("--node-status-report-frequency",),
        values.duration(1.0),
        "5m",
        "between reports of an unchanged node",
    ),
    Option(
        "node_lease_duration",
        "nodeLeaseDurationSeconds",
        ("--node-lease-duration-seconds",),
        values.count(4, 3600),
        "40",
        "life of the node's lease; a quarter of it is the heartbeat",
    ),
    Option("kube_api_qps", "kubeAPIQPS", ("--kube-api-qps",), values.count(1, 10_000), "50", "requests a second"),
    Option("kube_api_burst", "kubeAPIBurst", ("--kube-api-burst",), values.count(1, 10_000), "100", "and at once"),
    Option(
        "shutdown_grace_period",
        "shutdownGracePeriod",
        ("--shutdown-grace-period",),
        values.grace,
        "30s",
        "time pods get when the node shuts down",
    ),
    Option(
        "shutdown_grace_period_critical_pods",
        "shutdownGracePeriodCriticalPods",
        ("--shutdown-grace-period-critical-pods",),
        values.grace,
        "10s",
        "the last part of that time, for pods of critical priority",
    ),
)
