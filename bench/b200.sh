#!/bin/sh
# Everything that this project wants to know of a Blackwell GPU (compute capability 10.x), in one run and one file to
# send back.
#
#   bench/b200.sh [BUILD [OUT]]            BUILD: build/release after `make` and
#                                          cmake --build build/release --target ladder bench_blocks; OUT: b200.json
#   SMALL=1 bench/b200.sh ...              tiny sizes, a minute on cudasim: tries the script, measures nothing
#   QUICK=1 bench/b200.sh ...              verify --quick
#
# In turn: what the machine is; the self-test and the verification of every pair and kernel; the ladder's steps; the
# products whose records others have published, beside cuBLASLt where its library is found (BENCH_CUBLASLT may name it).
# What fails is recorded with what it printed, and everything else still runs.  Half an hour on an idle GPU; nothing
# else should run on it.
build=${1:-build/release}
out=${2:-b200.json}
folder=$(dirname "$0")
for program in blockscale ladder bench_blocks; do
    found=$(find "$build/bin" "$build/tests" -maxdepth 1 -name "$program" 2>/dev/null | head -1)
    if [ -z "$found" ]; then
        echo "b200.sh: no $program in $build/bin:" \
             "cmake --build $build --target blockscale_command ladder bench_blocks" >&2
        exit 2
    fi
done
exec python3 "$folder/b200.py" "$build" "$out"
