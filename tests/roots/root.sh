# shellcheck shell=bash
# Sourced: a Debian that is installed once below a cache, and entered as a throw-away copy.
#   cached_root CACHE SUITE ARCHITECTURE PACKAGES     sets $root; ends the script, as done, where it cannot be had
#   enter ROOT TREE COMMAND...                        runs COMMAND with ROOT as its root and TREE at /src
[ "$(id -u)" -eq 0 ] || { echo "cannot run: this needs root" >&2; exit 2; }

skipped() { echo "skipped: no Debian to run in: $*" >&2; exit 0; }

installed() { # installed PROGRAM PACKAGE
    command -v "$1" >/dev/null ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null; } ||
        skipped "$2 is not installed and cannot be"
}

cached_root() {
    local cache=$1 suite=$2 architecture=$3 packages=$4
    root=$cache/$suite-$architecture-$(echo "$packages" | sha256sum | cut -c1-12)
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9 # two at once would each make it
    [ -e "$root/done" ] || make_root
    exec 9>&-
}

# Mounts of a debootstrap that was interrupted end with its namespace: rm never walks into them.
make_root() {
    installed debootstrap debootstrap
    rm -rf "${cache:?}/$suite-$architecture"-*
    mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/edgelet"
    echo "installing Debian $suite ($architecture) below $cache (some minutes, once)" >&2
    # In two steps: the second runs programs of that architecture.
    unshare --mount --propagation private bash -ec "
        debootstrap --foreign --arch='$architecture' --variant=minbase --include='$packages' '$suite' '$root'
        chroot '$root' /debootstrap/debootstrap --second-stage" >"$cache/debootstrap.log" 2>&1 ||
        { tail -20 "$cache/debootstrap.log" >&2; skipped "debootstrap failed, see above and $cache/debootstrap.log"; }
    rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    touch "$root/done"
}

# A plain chroot would not do: Podman wants to pivot the root itself.
enter() {
    local scratch status=0
    scratch=$(mktemp -d)
    unshare --mount --propagation private bash -euc '
        scratch=$1 root=$2 tree=$3
        shift 3
        mount -t tmpfs tmpfs "$scratch"
        mkdir "$scratch"/{upper,work,root}
        mount -t overlay overlay -o "lowerdir=$root,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
        cd "$scratch/root"
        for directory in proc sys dev; do mount --rbind "/$directory" "$PWD/$directory"; done
        mkdir -p src old var/lib/containers
        mount -t tmpfs -o mode=755 tmpfs run
        mount -t tmpfs -o mode=1777 tmpfs tmp
        mount -t tmpfs tmpfs var/lib/containers
        mount --bind "$tree" src
        mount -o remount,bind,ro src
        pivot_root . old
        umount -l /old
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
        unset CONTAINERS_CONF VIRTUAL_ENV TMPDIR
        cd /tmp
        exec "$@"
    ' enter "$scratch" "$@" || status=$?
    rmdir "$scratch"
    return "$status"
}
