"""What is known of the machine as a Kubernetes Node: capacity, pressure, names; as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pressure:
    """One kind of shortage: whether it is there now, and the figures that say so."""

    present: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One look at the node. Sizes in bytes; `created` epoch seconds of the first start here.

    `ready_message` "" = the node can run pods, else why not.
    """

    name: str
    address: str = ""
    created: float = 0.0
    booted: float = 0.0
    cpus: int = 1
    memory: int = 0
    storage: int = 0
    pods: int = 110
    memory_pressure: Pressure = Pressure()
    disk_pressure: Pressure = Pressure()
    pid_pressure: Pressure = Pressure()
    ready_message: str = ""
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel: str = ""
    os_image: str = ""
    architecture: str = ""
    runtime: str = ""
