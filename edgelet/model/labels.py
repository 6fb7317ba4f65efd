"""Labels on Podman objects: the CRI's names, and ours. They are edgelet's database.

Every pod and container that edgelet creates carries OWNER; edgelet never touches what does not
carry its own owner id.
"""

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"

OWNER = "io.edgelet.owner"
CONFIG_HASH = "io.edgelet.config-hash"
SOURCE = "io.edgelet.source"
BOOT_ID = "io.edgelet.boot-id"
GRACE = "io.edgelet.grace"
ATTEMPT = "io.edgelet.attempt"
RESTART_COUNT = "io.edgelet.restart-count"
PRE_STOP = "io.edgelet.pre-stop"
SIDECAR = "io.edgelet.sidecar"
"""On containers that are sidecars: the place among the init containers, for the order in which they stop."""
MESSAGE_FILE = "io.edgelet.termination-file"
"""On containers: the file of the host that is its termination message path inside."""
MESSAGE_POLICY = "io.edgelet.termination-policy"
HOST_NETWORK = "io.edgelet.host-network"
INFRA = "io.edgelet.infra"
"""On pods: "true" = it was made with an infra container, so one without is half-made."""
