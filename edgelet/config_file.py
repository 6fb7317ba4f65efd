"""Read the configuration file: YAML or JSON with KubeletConfiguration's names, every mistake with its line."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from .config_values import suggest

MAX_BYTES = 2**20
API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"


@dataclass(frozen=True, slots=True)
class Entry:
    """One top-level key of the file with its value as YAML reads it; lines count from 1."""

    key: str
    value: object
    line: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the file says. Mistakes and warnings are sentences that begin with FILE:LINE."""

    entries: tuple[Entry, ...] = ()
    mistakes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


_NOT_USED = {
    "that is Podman's business, see containers.conf and registries.conf": """
        cgroupDriver cgroupRoot cgroupsPerQOS kubeletCgroups systemCgroups containerRuntimeEndpoint
        imageServiceEndpoint runtimeRequestTimeout hairpinMode
        makeIPTablesUtilChains iptablesMasqueradeBit iptablesDropBit failCgroupV1 userNamespaces""",
    "edgelet's API has one port, with TLS, roles by token and certificate (address, port, tokenAuthFile)": """
        enableServer healthzPort healthzBindAddress authorization tlsCipherSuites
        tlsCurvePreferences tlsMinVersion rotateCertificates serverTLSBootstrap enableDebuggingHandlers
        enableContentionProfiling enableProfilingHandler enableDebugFlagsHandler enableSystemLogHandler
        enableSystemLogQuery streamingConnectionIdleTimeout""",
    "there is no scheduler and no cluster on a lone box": """
        clusterDomain clusterDNS enableControllerAttachDetach providerID nodeStatusMaxImages contentType
        eventRecordQPS eventBurst configMapAndSecretChangeDetectionStrategy volumePluginDir""",
    "edgelet reserves and pins nothing": """
        systemReserved kubeReserved reservedSystemCPUs systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable
        reservedMemory qosReserved cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod
        memoryManagerPolicy topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions podsPerCore
        memoryReservationPolicy memoryThrottlingFactor""",
    "edgelet has no such setting": """
        containerLogMaxWorkers cpuCFSQuota cpuCFSQuotaPeriod crashLoopBackOff defaultPodSysctls
        evictionHard evictionMaxPodGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft
        evictionSoftGracePeriod failSwapOn featureGates imageGCHighThresholdPercent imageGCLowThresholdPercent
        imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy kernelMemcgNotification
        localStorageCapacityIsolation logging maxOpenFiles maxParallelImagePulls memorySwap
        mergeDefaultEvictionSettings oomScoreAdj podPidsLimit preloadedImagesVerificationAllowlist
        protectKernelDefaults resolvConf runOnce seccompDefault serializeImagePulls showHiddenMetricsForVersion
        shutdownGracePeriodByPodPriority singleProcessOOMKill tracing
        volumeStatsAggPeriod""",
}
UNUSED_KEYS = {key: reason for reason, keys in _NOT_USED.items() for key in keys.split()}
"""KubeletConfiguration v1beta1 keys that edgelet accepts without effect (kubelet 1.36), each with the reason."""


def parse(data: bytes, path: str, known: frozenset[str]) -> Parsed:
    """Read `data` as the configuration file at `path`; `known` are the keys with an effect. Never raises."""
    if len(data) > MAX_BYTES:
        return Parsed(mistakes=(f"{path}: the file has {len(data)} bytes, at most {MAX_BYTES} are read",))
    loader_class: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        loader = loader_class(data)
        try:
            node = loader.get_single_node()
            pairs = _pairs(loader, node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return Parsed(mistakes=(f"{path}:{line}: this is not YAML: {error.problem or error.context}",))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Parsed(mistakes=(f"{path}: this is not YAML: {str(error).splitlines()[0]}",))
    if pairs is None:
        return Parsed(mistakes=(f'{path}:1: write the file as lines of "key: value"',))
    return _sort_out(pairs, path, known)


def _pairs(loader: object, node: object) -> list[Entry] | None:
    """Top-level keys in order; None when the document is not a map. An empty file has no keys."""
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return []
    if not isinstance(node, yaml.MappingNode):
        return None
    construct = loader.construct_document  # type: ignore[attr-defined]
    return [Entry(str(key.value), construct(value), key.start_mark.line + 1) for key, value in node.value]


def _sort_out(pairs: list[Entry], path: str, known: frozenset[str]) -> Parsed:
    entries, mistakes, warnings = [], [], []
    seen: dict[str, int] = {}
    for entry in pairs:
        where = f"{path}:{entry.line}: {entry.key}"
        first = seen.setdefault(entry.key, entry.line)
        if first != entry.line:
            mistakes.append(f"{where} is given twice, first in line {first}: keep one")
        elif entry.key in ("apiVersion", "kind"):
            expected = API_VERSION if entry.key == "apiVersion" else KIND
            if entry.value != expected:
                mistakes.append(f'{where} "{entry.value}" is not known: write {expected}, or leave it out')
        elif entry.key in known:
            entries.append(entry)
        elif entry.key in UNUSED_KEYS:
            # A dump of a whole KubeletConfiguration is full of empty values: no news in them.
            if entry.value not in (None, "", 0, "0s", [], {}):
                warnings.append(f"{where} has no effect: {UNUSED_KEYS[entry.key]}")
        else:
            mistakes.append(f"{where} is not a known key{suggest(entry.key, known | UNUSED_KEYS.keys())}")
    return Parsed(tuple(entries), tuple(mistakes), tuple(warnings))
