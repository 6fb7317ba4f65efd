"""What the agent is told: `Settings`, and how they are merged from defaults, file, environment and flags.

Names are the kubelet's where it has them (KubeletConfiguration keys in the file, its flags on the
command line), so a standalone kubelet's file and command line work.  Only `app` and `cli` read
this module; everything below receives values.
"""

from __future__ import annotations

import argparse
import hashlib
import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from . import config_options, errors
from . import config_values as values

DEFAULT_CONFIG = "/etc/edgelet/config.yaml"
DEFAULT_ROOT = "/var/lib/edgelet"
DEFAULT_PODMAN_SOCKET = "/run/podman/podman.sock"

_MIB = 2**20
SHOWN = 200
"""Characters of a value that a message about it shows."""


SHARED_NETWORK = "podman"
"""Podman's default network: also of containers that are none of ours."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one agent: valid, absolute, complete. Durations in seconds, sizes in bytes."""

    static_pod_path: str = "/etc/kubernetes/manifests"
    """Directory (or one file) of manifests; "" = no file source. The kubelet documentation's usual place."""

    static_pod_url: tuple[str, ...] = ()
    """URLs of manifests, each a source of its own."""

    static_pod_url_header: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Headers sent to every URL, in order. May hold secrets: never shown."""

    static_pod_url_header_file: str = ""
    """File with more headers, NAME: VALUE a line, read again when it changes; keeps secrets off the command line."""

    static_pod_url_token_file: str = ""
    """File with a bearer token for every URL, read again when it changes."""

    static_pod_url_ca_file: str = ""
    """PEM file with the authorities that may vouch for the URLs; "" = the system's."""

    static_pod_url_client_cert: str = ""
    """PEM file with the client certificate for the URLs (and its key, unless that has a file of its own)."""

    static_pod_url_client_key: str = ""
    """PEM file with the client certificate's key."""

    file_check_frequency: float = 20.0
    """Seconds between listings of static_pod_path; changes are seen at once, this is the net below."""

    http_check_frequency: float = 20.0
    """Seconds between requests to each URL."""

    sync_frequency: float = 60.0
    """Seconds after which a pod is looked at again though nothing was heard of it."""

    node_name: str = ""
    """Name of this node; "" = the stored one, or at the very first start the host's (see node_name)."""

    root_dir: str = DEFAULT_ROOT
    """State that survives reboots: volumes, last good manifests, last states."""

    run_dir: str = "/run/edgelet"
    """State that must not survive a reboot: sockets, exec files, the own Podman service."""

    pod_logs_dir: str = "/var/log/pods"
    """Container logs in the kubelet's layout."""

    podman_socket: str = ""
    """Podman's API socket; "" = the system's if it answers, else a service that the agent starts itself."""

    socket: str = "/run/edgelet/edgelet.sock"
    """The agent's own API socket (edgelet.sock in run_dir when not given)."""

    address: str = "127.0.0.1"
    """IP address of the TLS port."""

    port: int = 10250
    """TCP port of the API, always with TLS and authentication (kubelet default); 0 = none."""

    read_only_port: int = 0
    """TCP port without TLS and authentication for health, pods and metrics; 0 = none (kubelet default)."""

    tls_cert_file: str = ""
    """PEM file with the serving certificate; "" = one is made, and renewed."""

    tls_private_key_file: str = ""
    """PEM file with its key; "" = it is in tls_cert_file."""

    client_ca_file: str = ""
    """PEM file with the authorities that vouch for client certificates; "" = only tokens are taken."""

    token_auth_file: str = ""
    """File of bearer tokens (token,user,uid,"groups" a line); "" = one is made under root_dir."""

    container_log_max_size: int = 10 * _MIB
    """Bytes at which a container's log is rotated (kubelet default 10Mi)."""

    container_log_max_files: int = 5
    """Log files kept per container, the current one included."""

    container_log_monitor_interval: float = 10.0
    """Seconds between looks at the logs' sizes."""

    registry_pull_qps: int = 5
    """Most image pulls a second, on the average; any more fail at once and are tried again (kubelet). 0 = no limit."""

    registry_burst: int = 10
    """Most pulls at once."""

    max_pods: int = 110
    """Most pods this node runs; 0 = none."""

    allowed_unsafe_sysctls: tuple[str, ...] = ()
    """Kernel settings of their own that pods may have beside the safe ones; `*` at the end = all that begin so."""

    pod_network: str = SHARED_NETWORK
    """Podman network that pods join. One that does not exist is made, with a name service: pods find each other."""

    pod_cidr: str = ""
    """Addresses of a network that is made; "" = Podman chooses free ones."""

    strict: bool = False
    """Refuse a manifest with unknown or unsupported fields instead of warning."""

    log_level: str = "info"
    """debug, info, warning or error."""

    kubeconfig: str = ""
    """Where the Kubernetes API server is and how to log in; "" = standalone."""

    bootstrap_kubeconfig: str = ""
    """Where to ask for a client certificate; the kubeconfig is then written by the agent. "" = it is there."""

    register_node: bool = True
    """Register the node at the API server; without kubeconfig this means nothing."""

    node_labels: tuple[tuple[str, str], ...] = ()
    """Further labels of the Node."""

    register_with_taints: tuple[tuple[str, str, str], ...] = (("edgelet.io/static-pods-only", "", "NoSchedule"),)
    """Key, value, effect. edgelet runs nothing that a scheduler places here, so by default none may."""

    node_ip: str = ""
    """The node's own IP address; "" = that of the default route, else of the first network card."""

    node_status_update_frequency: float = 10.0
    """Seconds between looks at the node's own status; a change is reported at once."""

    node_status_report_frequency: float = 300.0
    """Seconds between reports of an unchanged status (as often as looked, if only that is set: kubelet)."""

    node_lease_duration: int = 40
    """Seconds that the node's Lease lasts; it is renewed four times in that time."""

    kube_api_qps: int = 50
    """Most requests a second to the API server, on the average."""

    kube_api_burst: int = 100
    """Most requests to it at once."""

    shutdown_grace_period: float = 0.0
    """Seconds that pods get at the node's shutdown; 0 = the agent stops none (kubelet default)."""

    shutdown_grace_period_critical_pods: float = 0.0
    """The last seconds of it, for pods of a priority of 2000000000 and above; 0 = they end with the others."""

    config_file: str = ""
    """The configuration file that was read; "" = none."""

    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What was understood and not used, one sentence each, for the log."""


Option = config_options.Option
OPTIONS = config_options.OPTIONS
_KEYS = {option.key: option for option in OPTIONS}
_VARIABLES = {option.variable: option for option in OPTIONS}
_BOOLEANS = (values.boolean,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `edgelet run`; their values are checked by `load`, all at once.

    Use a parser with allow_abbrev=False and parse_known_args, and hand what is left to `load`:
    a misspelt flag is then reported together with the other mistakes.
    """
    parser.add_argument("--config", metavar="FILE", help=f"configuration file (default {DEFAULT_CONFIG} if it exists)")
    for option in OPTIONS:
        optional = {"nargs": "?", "const": "true"} if option.parse in _BOOLEANS else {}
        parser.add_argument(
            *option.flags,
            dest=option.destination,
            metavar=option.metavar,
            action="append" if option.repeat else "store",
            help=f"{option.help} ({option.key})",
            **optional,  # type: ignore[arg-type]
        )


def load(
    namespace: argparse.Namespace,
    environ: Mapping[str, str],
    read_file: Callable[[str], bytes],
    unknown: Sequence[str] = (),
) -> Settings:
    """Merge defaults < file < environment < flags.

    `namespace` comes from a parser with `add_arguments`; `unknown` are the arguments it could not
    place.  `read_file` raises OSError.  Raises ConfigError with every mistake of all places.
    """
    mistakes = list(_unplaced(unknown))
    warnings: list[str] = []
    given_file = getattr(namespace, "config", None) or environ.get("EDGELET_CONFIG")
    written, used = _read(given_file, read_file, mistakes, warnings)
    merged: dict[str, object] = {}
    for option, value, where in (*written, *_from_environ(environ, warnings), *_from_flags(namespace)):
        _take(merged, option, value, where, mistakes)
    settings = _complete(replace(Settings(), **merged, config_file=used), merged)  # type: ignore[arg-type]
    mistakes += _contradictions(settings)
    if settings.static_pod_url_header and not settings.static_pod_url:
        warnings.append("headers for manifest URLs are set and no URL is: they have no effect")
    if mistakes:
        raise errors.ConfigError(tuple(mistakes))
    return replace(settings, warnings=tuple(warnings))


def owner(root_dir: str) -> str:
    """The owner id of the agent with that root directory: whose pods are whose on one Podman.

    "default" for the standard root, else eight hex digits that change with the real path.
    """
    real = os.path.realpath(root_dir)
    return "default" if real == DEFAULT_ROOT else hashlib.sha256(os.fsencode(real)).hexdigest()[:8]


def default_socket(environ: Mapping[str, str]) -> str:
    """Where clients look for the agent when --socket is not given."""
    return environ.get("EDGELET_SOCKET") or Settings().socket


Written = tuple[Option, object, str]
"""An option, its value as written, and the words that say where."""


def _read(
    given: str | None, read_file: Callable[[str], bytes], mistakes: list[str], warnings: list[str]
) -> tuple[list[Written], str]:
    """Settings of the configuration file, and its path ("" = there is none)."""
    path = given or DEFAULT_CONFIG
    try:
        data = read_file(path)
    except FileNotFoundError as error:
        if given:
            mistakes.append(f"cannot read configuration file {path}: {error.strerror or 'no such file'}")
        return [], ""
    except OSError as error:
        mistakes.append(f"cannot read configuration file {path}: {error.strerror or error}")
        return [], ""
    from . import config_file  # here: a client that only asks for the default socket needs no YAML

    parsed = config_file.parse(data, path, frozenset(_KEYS))
    mistakes += parsed.mistakes
    warnings += parsed.warnings
    return [(_KEYS[e.key], e.value, f"{path}:{e.line}: {e.key}") for e in parsed.entries], path


def _from_environ(environ: Mapping[str, str], warnings: list[str]) -> Iterator[Written]:
    known = _VARIABLES.keys() | {"EDGELET_CONFIG", "EDGELET_BOOT_ID"}  # the latter is read where the boot id is
    for name, value in sorted(environ.items()):
        if name in _VARIABLES:
            yield _VARIABLES[name], value, f"environment variable {name}"
        elif (
            name.startswith(config_options.ENVIRONMENT_PREFIX)
            and name not in known
            and (hint := values.suggest(name, known))
        ):
            # Only a warning, and only for a near miss: the prefix is not ours alone (tests, wrappers).
            warnings.append(f"environment variable {name} is not used{hint}")


def _from_flags(namespace: argparse.Namespace) -> Iterator[Written]:
    for option in OPTIONS:
        value = getattr(namespace, option.destination, None)
        if value is not None:
            yield option, value, option.flags[0]


def _take(merged: dict[str, object], option: Option, value: object, where: str, mistakes: list[str]) -> None:
    """Parse one written value over what weaker places said; None = back to the default."""
    try:
        parsed = None if value is None else option.parse(value)
    except ValueError as error:
        shown = "" if option.field == "static_pod_url_header" else f' "{_short(value, option.repeat)}"'
        mistakes.append(f"{where}{shown} is not valid: {error}")
        return
    if parsed is None:
        merged.pop(option.field, None)
    else:
        merged[option.field] = parsed


def _short(value: object, several: bool) -> str:
    """A value as it was written, or the beginning of it; aliases can make a few lines of YAML endless."""
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list):
        if not all(isinstance(v, str) for v in value):
            return "a list"
        value = ", ".join(value) if several else value
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _complete(settings: Settings, given: Mapping[str, object]) -> Settings:
    """Fill in what follows from other settings."""
    if given.get("node_status_update_frequency") and not given.get("node_status_report_frequency"):
        settings = replace(settings, node_status_report_frequency=settings.node_status_update_frequency)
    if given.get("socket"):
        return settings
    return replace(settings, socket=os.path.join(settings.run_dir, "edgelet.sock"))


def _contradictions(settings: Settings) -> Iterator[str]:
    """Settings that are right one by one and wrong together."""
    if len(os.fsencode(settings.socket)) > values.SOCKET_PATH_MAX:
        yield (
            f"the API socket {settings.socket} would be longer than the {values.SOCKET_PATH_MAX} bytes "
            "that the kernel takes: choose a shorter --run-dir, or give --socket"
        )
    if settings.bootstrap_kubeconfig and not settings.kubeconfig:
        yield "--bootstrap-kubeconfig needs --kubeconfig: the file that is to be written with the certificate"
    if settings.shutdown_grace_period_critical_pods > settings.shutdown_grace_period:
        yield "shutdownGracePeriodCriticalPods is a part of shutdownGracePeriod: it cannot be longer"
    manifests, root = settings.static_pod_path, settings.root_dir
    if manifests and (manifests == root or f"{manifests}/".startswith(f"{root}/pods/")):
        yield f"the manifests in {manifests} cannot be in the agent's own root directory {root}: move one of them"


def _unplaced(arguments: Sequence[str]) -> Iterator[str]:
    """A mistake per argument that is no flag of ours; what follows an unknown flag is taken for its value."""
    known = {flag for option in OPTIONS for flag in option.flags} | {"--config"}
    value_may_follow = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if argument.startswith("-"):
            yield f"unknown flag {name}{values.suggest(name, known)}"
        elif not value_may_follow:
            yield f'unexpected argument "{argument}"'
        value_may_follow = argument.startswith("-") and not equals


def field_names() -> tuple[str, ...]:
    """Names of all settings, in order (for documentation and its test)."""
    return tuple(f.name for f in fields(Settings))
