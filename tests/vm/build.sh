#!/bin/bash
# Builds and caches a bootable Debian image with systemd, crun and Podman; prints its directory.
# usage: build.sh bookworm|trixie      cache: EDGELET_VM_CACHE (~/.cache/edgelet-vm)
# The image holds no edgelet: tests install the package under test, so the cache outlives every change here.
set -euo pipefail
suite=${1:-bookworm}
here=$(cd "$(dirname "$0")" && pwd)
cache=${EDGELET_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edgelet-vm}
packages=systemd,systemd-sysv,udev,dbus,linux-image-cloud-amd64,initramfs-tools,kmod,procps,iproute2,e2fsprogs,util-linux
packages=$packages,podman,crun,conmon,netavark,aardvark-dns,catatonit,iptables,nftables,busybox-static,apparmor,ca-certificates
# What the package depends on, so that `dpkg -i` is enough: there is no network in the machine.
packages=$packages,python3,python3-yaml,python3-requests,python3-tornado,python3-watchdog,python3-prometheus-client
stamp=$( (echo "$suite $packages"; cat "$here/build.sh") | sha256sum | cut -c1-12)
image=$cache/$suite-$stamp
if [ -e "$image/done" ]; then echo "$image"; exit 0; fi
[ "$(id -u)" = 0 ] || { echo "building the image needs root (debootstrap)" >&2; exit 2; }
missing=()
for tool in debootstrap:debootstrap qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mkfs.ext4:e2fsprogs; do
  command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; } >&2
fi
rm -rf "$cache/$suite-"*.part
work=$image.part
mkdir -p "$work"
root=$work/root
echo "building a $suite image below $cache (several minutes, once)" >&2
debootstrap --variant=minbase --include="$packages" "$suite" "$root" >"$work/debootstrap.log" 2>&1 ||
  { tail -20 "$work/debootstrap.log" >&2; exit 1; }
echo edgelet-vm >"$root/etc/hostname"
printf '127.0.0.1 localhost edgelet-vm\n' >"$root/etc/hosts"
: >"$root/etc/machine-id"
printf '/dev/vda / ext4 defaults,noatime 0 1\nLABEL=state /var/lib/edgelet ext4 defaults,nofail 0 2\n' >"$root/etc/fstab"
mkdir -p "$root/usr/local/lib/edgelet-test" "$root/var/lib/edgelet"
cp "$here/guest.py" "$root/usr/local/lib/edgelet-test/guest.py"
cat >"$root/etc/systemd/system/edgelet-test.service" <<'UNIT'
[Unit]
Description=Channel of the tests
DefaultDependencies=no
After=systemd-udevd.service local-fs.target
[Service]
ExecStart=/usr/bin/python3 /usr/local/lib/edgelet-test/guest.py
Restart=always
RestartSec=1
OOMScoreAdjust=-1000
[Install]
WantedBy=sysinit.target
UNIT
ln -sf ../edgelet-test.service "$root/etc/systemd/system/sysinit.target.wants/" 2>/dev/null ||
  { mkdir -p "$root/etc/systemd/system/sysinit.target.wants"; ln -sf ../edgelet-test.service "$root/etc/systemd/system/sysinit.target.wants/"; }
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=persistent\nSystemMaxUse=50M\n' >"$root/etc/systemd/journald.conf.d/vm.conf"
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/initrd.img"
truncate -s 3G "$work/disk.img"
mkfs.ext4 -q -L root -d "$root" "$work/disk.img"
rm -rf "$root"
touch "$work/done"
mv "$work" "$image"
echo "$image"
