"""The real target in a virtual machine: systemd, cgroup v2, crun, under software emulation.

`build` makes and caches the image, `machine` boots it and talks to `guest.py` inside over a virtio
port (no network), `conftest` gives tests the `vm` fixture.  `make vm`, `make test-vm`, `VM=trixie`.
"""
