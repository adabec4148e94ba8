#!/bin/sh
# bare.sh FOLDER [STEP...]: what somebody sees whose Debian has gcc, make and git alone.  Makes such a container with debootstrap (kept in
# FOLDER, for the next time), puts a clone of what is committed here into it, and runs the steps there: demo, install, install-cudasim
# and test, or those that are named.  No step has CUDA.  Needs root and a network.  BARE_SUITE: Debian's release, BARE_MIRROR: where it
# comes from.  Exit status 0 when every step succeeded.
set -eu
[ $# -ge 1 ] || { echo "bare.sh: name a folder for the container" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "bare.sh: needs root, for debootstrap and chroot" >&2; exit 2; }
folder=$1
shift
[ $# -gt 0 ] || set -- demo install install-cudasim test
suite=${BARE_SUITE:-bookworm}
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root

if [ ! -e "$folder/$suite.tar" ]; then
    "$source/scripts/need" debootstrap
    echo "bare.sh: making a Debian $suite with gcc, make and git"
    rm -rf "$root"
    debootstrap --variant=minbase --include=gcc,make,git "$suite" "$root" ${BARE_MIRROR:+"$BARE_MIRROR"} >"$folder/debootstrap.log" ||
        { tail -n 5 "$folder/debootstrap.log" >&2; exit 1; }
    tar -C "$root" -cf "$folder/$suite.tar.part" .
    mv "$folder/$suite.tar.part" "$folder/$suite.tar"
fi

rm -rf "$root"
mkdir -p "$root"
tar -C "$root" -xf "$folder/$suite.tar"
# The network of this machine: its name server, and the authorities that it trusts, where pip is told of them.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
certificate=
if [ -n "${PIP_CERT:-}" ] && [ -e "$PIP_CERT" ]; then
    certificate=/root/authorities.pem                                 # where no package puts others
    cp -L "$PIP_CERT" "$root$certificate"
fi
export certificate
git clone -q "$source" "$root/root/blockscale"
echo "bare.sh: $(git -C "$source" log -1 --format='%h %s')"

# Mounts of a namespace of its own: none stays behind.
# shellcheck disable=SC2016
in_container='
    mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" || exit 1
    root=$1
    shift
    exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${certificate:+PIP_CERT="$certificate"} \
        sh -c "cd /root/blockscale && $*"'
status=0
for step in "$@"; do
    echo "bare.sh: make $step"
    if unshare --mount --fork sh -c "$in_container" sh "$root" make "$step"; then echo "bare.sh: make $step: done"
    else echo "bare.sh: make $step: FAILED"; status=1; fi
    if [ "$step" = install ] && [ $status = 0 ]; then
        unshare --mount --fork sh -c "$in_container" sh "$root" \
            'ldconfig && blockscale info | head -n 7 && ls /usr/local/bin /usr/local/lib' || status=1
    fi
done
exit $status
