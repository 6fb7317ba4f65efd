#!/bin/bash
# Runs pytest inside a root that root.sh entered, on a copy of the tree at /src, with the distribution's libraries.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis
mkdir -p /tmp/work
cd /tmp/work
cp -r /src/setup.cfg /src/pyproject.toml /src/manifests /src/docs /src/README.md /src/edgelet /src/tests .
python3 -m venv --system-site-packages /tmp/venv
# The distribution has no podman package, or another version of it: the tree's own environment has it (plain Python).
into=$(/tmp/venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp -r /src/.venv/lib/python3*/site-packages/podman "$into"
podman --version
exec /tmp/venv/bin/python -m pytest -p no:cacheprovider -q "$@"
