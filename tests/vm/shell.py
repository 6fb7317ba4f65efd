"""`make vm`: boots a machine with the package in it and runs what is typed, a line at a time; end of input ends it.

python -m tests.vm.shell [bookworm|trixie]        EDGELET_DEB: the package, dist/'s newest otherwise
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.podman_env import IMAGE, image_tar

from . import machine

HERE = Path(__file__).parent
LINE_SECONDS = 600.0


def package() -> Path:
    """The package to install. Raises FileNotFoundError when there is none."""
    named = os.environ.get("EDGELET_DEB")
    built = [Path(named)] if named else sorted(Path("dist").glob("edgelet_*_all.deb"), key=os.path.getmtime)
    if not built:
        raise FileNotFoundError("there is no package in dist/: run `make deb` first")
    return built[-1]


def main(suite: str) -> int:
    """Boot, install, run lines of standard input."""
    image = subprocess.run([HERE / "build.sh", suite], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    with (
        tempfile.TemporaryDirectory(prefix="edgelet-vm-") as directory,
        machine.Machine(Path(image), Path(directory)) as vm,
    ):
        print(f"up after {vm.boot():.0f} s; console: {vm.console}", flush=True)
        vm.run(f"podman import --change 'ENV PATH=/bin' - {IMAGE}", stdin=image_tar(), timeout=300)
        vm.put("/root/edgelet.deb", package().read_bytes())
        print(vm.run("dpkg -i /root/edgelet.deb", timeout=600).out, flush=True)
        print(f"image {IMAGE}; manifests go to /etc/kubernetes/manifests", flush=True)
        for line in sys.stdin:
            result = vm.run(line, timeout=LINE_SECONDS, check=False)
            print(f"{result.out}{result.err}[{result.code}]", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "bookworm"))
