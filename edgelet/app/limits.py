"""What the kernel allows this process: open files as many as it may have."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger(__name__)

FILES = 65536
"""As in the unit of systemd. A container takes two descriptors, each caller of the API one."""
FEW_FILES = 256


def raise_files() -> None:
    """Use what the hard limit allows; where that is little, say so: a shell gives 1024, some supervisors 64."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        log.warning(
            "only %d files may be open at once, enough for a few pods: raise the limit (LimitNOFILE, ulimit -n)", soft
        )
