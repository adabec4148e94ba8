#!/bin/sh
# bare.sh FOLDER WHEEL: what somebody sees whose Debian has python3 and python3-venv alone.  Makes such a container with
# debootstrap (kept in FOLDER for the next time), and there a new environment, pip install of WHEEL, the first Python of
# the README, and the command; says how long each took.  Needs root and a network.  BARE_SUITE: Debian's release,
# BARE_MIRROR: where it comes from.  Exit status 0 when all of it worked, and pip and Python took less than 20 s.
set -eu
[ $# = 2 ] || { echo "bare.sh: name a folder for the container, and a wheel" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "bare.sh: needs root, for debootstrap and chroot" >&2; exit 2; }
suite=${BARE_SUITE:-bookworm}
limit=20
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
wheel=$2
root=$folder/python-root

if [ ! -e "$folder/$suite-python.tar" ]; then
    "$source/scripts/need" debootstrap
    echo "bare.sh: making a Debian $suite with python3 and python3-venv"
    rm -rf "$root"
    debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root" ${BARE_MIRROR:+"$BARE_MIRROR"} \
        >"$folder/debootstrap-python.log" || { tail -n 5 "$folder/debootstrap-python.log" >&2; exit 1; }
    tar -C "$root" -cf "$folder/$suite-python.tar.part" .
    mv "$folder/$suite-python.tar.part" "$folder/$suite-python.tar"
fi

rm -rf "$root"
mkdir -p "$root"
tar -C "$root" -xf "$folder/$suite-python.tar"
# The network of this machine: its name server, and the authorities that it trusts, where pip is told of them.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
certificate=
if [ -n "${PIP_CERT:-}" ] && [ -e "$PIP_CERT" ]; then
    certificate=/root/authorities.pem
    cp -L "$PIP_CERT" "$root$certificate"
fi
export certificate
cp "$wheel" "$root/root/"
readme=$source/README.md
grep -q '^```python$' "$readme" || readme=$source/python/README.md
awk '/^```python$/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$readme" >"$root/root/readme.py"
[ -s "$root/root/readme.py" ] || { echo "bare.sh: $readme has no Python" >&2; exit 1; }
cat >"$root/root/steps" <<'STEPS'
set -e
now() { date +%s%N; }
cd /root
python3 --version
ldd --version | head -n 1
python3 -m venv environment
start=$(now)
environment/bin/pip install -q blockscale-*.whl
installed=$(now)
environment/bin/python3 readme.py
ran=$(now)
environment/bin/pip list 2>/dev/null | tail -n +3
environment/bin/blockscale info | grep -E '^(version|cuda|cpu_features|kernels)'
environment/bin/blockscale matmul --help >/dev/null
echo "pip install: $(((installed - start) / 1000000)) ms; the README's Python: $(((ran - installed) / 1000000)) ms"
echo $(((ran - start) / 1000000)) >milliseconds
STEPS
# Mounts of a namespace of its own: none stays behind.
# shellcheck disable=SC2016
unshare --mount --fork sh -c '
    mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" || exit 1
    exec chroot "$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_DISABLE_PIP_VERSION_CHECK=1 ${certificate:+PIP_CERT="$certificate"} sh /root/steps' sh "$root"
took=$(cat "$root/root/milliseconds")
[ "$took" -lt $((limit * 1000)) ] || { echo "bare.sh: $took ms is more than $limit s" >&2; exit 1; }
echo "bare.sh: done"
