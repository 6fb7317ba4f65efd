"""Removes the logs of a pod that is gone."""

from __future__ import annotations

import os
import shutil

from ... import errors


def remove(pod_logs_dir: str, uid: str) -> None:
    """Delete the log directory of the pod with that uid, ``<ns>_<name>_<uid>``; none is success.

    Raises errors.StateError.
    """
    try:
        names = [name for name in os.listdir(pod_logs_dir) if uid and name.split("_")[2:] == [uid]]
        for name in names:
            shutil.rmtree(os.path.join(pod_logs_dir, name))
    except FileNotFoundError:
        return
    except OSError as error:
        raise errors.StateError(
            f"cannot delete the logs of pod {uid} in {pod_logs_dir}: {errors.cause(error)}"
        ) from error
