"""ConfigMap and Secret documents that stand beside pods: kept as values for those who need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LocalObject:
    """One ConfigMap or Secret. `data` is key -> content, base64 already undone; `type` is a Secret's ("" = Opaque)."""

    kind: str
    namespace: str
    name: str
    data: Mapping[str, bytes] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    type: str = ""

    @property
    def id(self) -> tuple[str, str, str]:
        """What names it among others."""
        return self.kind, self.namespace, self.name
