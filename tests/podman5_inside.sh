#!/bin/bash
# Second half of podman5.sh, inside the mount namespace: makes ROOT the root, the tree at /src, and runs pytest.
#   usage: podman5_inside.sh ROOT TREE PYTEST-ARGUMENTS...
set -euo pipefail
root=$1 tree=$2
shift 2
mount --bind "$root" "$root"
for directory in proc sys dev; do mount --rbind "/$directory" "$root/$directory"; done
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/src" "$root/old"
mount --bind "$tree" "$root/src"
mount -o remount,bind,ro "$root/src"
cd "$root"
pivot_root . old
umount -l /old
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
unset CONTAINERS_CONF VIRTUAL_ENV
mkdir -p /tmp/work
cd /tmp/work
# The podman package is not in the distribution's version we need: the tree's own environment has it (plain Python).
cp -r /src/setup.cfg /src/pyproject.toml /src/manifests /src/docs /src/README.md . 2>/dev/null || true
cp -r /src/edgelet /src/tests .
python3 -m venv --system-site-packages /tmp/venv
/tmp/venv/bin/python - <<'PY'
import pathlib, shutil, sysconfig
found = next(iter(pathlib.Path("/src/.venv/lib").glob("python3*/site-packages")), None) or pathlib.Path("/site")
into = pathlib.Path(sysconfig.get_paths()["purelib"])
for name in ("podman",):
    if (found / name).exists():
        shutil.copytree(found / name, into / name)
PY
podman --version
exec /tmp/venv/bin/python -m pytest -p no:cacheprovider -q "$@"
