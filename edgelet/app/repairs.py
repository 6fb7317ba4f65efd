"""ports.Repairs: each way around Podman is some adapter's."""

from __future__ import annotations

from collections.abc import Callable


class Repairs:
    """Passes each call on to whom it concerns."""

    def __init__(
        self, settle: Callable[[str], None], drop_image: Callable[[str], None], renew: Callable[[], bool]
    ) -> None:
        self._settle, self._drop_image, self._renew = settle, drop_image, renew

    def settle(self, container_id: str) -> None:
        """See ports.Repairs."""
        self._settle(container_id)

    def drop_image(self, reference: str) -> None:
        """See ports.Repairs."""
        self._drop_image(reference)

    def renew_service(self) -> bool:
        """See ports.Repairs."""
        return self._renew()
