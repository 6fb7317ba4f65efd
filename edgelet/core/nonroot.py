"""Decides whether a container that must not run as root may start (semantics 5.6.1)."""

from __future__ import annotations

from ..model.pod import Container, Pod


def refusal(pod: Pod, container: Container, image_user: str) -> str:
    """Why `container` breaks its own runAsNonRoot, in the kubelet's words; "" = it may start.

    `image_user` is the image's USER ("" = root), which counts only without a runAsUser.
    """
    security = container.security
    if not security.run_as_non_root:
        return ""
    where = f'(pod: "{pod.name}_{pod.namespace}({pod.uid})", container: {container.name})'
    if security.run_as_user is not None:
        return f"container's runAsUser breaks non-root policy {where}" if security.run_as_user == 0 else ""
    user = image_user.partition(":")[0] or "0"
    if not user.isdecimal():
        return (
            f"container has runAsNonRoot and image has non-numeric user ({user}), "
            f"cannot verify user is non-root {where}"
        )
    return f"container has runAsNonRoot and image will run as root {where}" if int(user) == 0 else ""
