#!/bin/sh
# What this project wants to know of a GeForce RTX 50, an RTX PRO Blackwell or a DGX Spark (compute capability 12.x), in
# one run: a table, and one file to send back.
#
#   bench/sm120.sh [OUT]              OUT: sm120.json
#   SMALL=1 bench/sm120.sh ...        tiny sizes, a minute on cudasim: tries the script, measures nothing
#   QUICK=1 bench/sm120.sh ...        verify --quick, fewer products
#   BUILD=build/release bench/sm120.sh ...    this build, as it is; otherwise it is made
#
# In turn: the build; what the machine is; the verification of every pair and kernel; every pair of block-scaled formats
# beside cuBLASLt where that has it (BENCH_CUBLASLT may name libcublasLt; PyTorch's is found).  What fails is recorded
# with what it printed, and everything else still runs.  A quarter of an hour on an idle GPU; nothing else should run on
# it.
out=${1:-sm120.json}
folder=$(dirname "$0")
if [ -z "$BUILD" ]; then
    BUILD=$folder/../build/release
    (cd "$folder/.." && cmake --preset release -DBLOCKSCALE_CUDA=ON &&
        cmake --build build/release --parallel --target blockscale_command bench_blocks) >&2 || exit 2
fi
for program in blockscale bench_blocks; do
    if [ ! -x "$BUILD/bin/$program" ]; then
        echo "sm120.sh: no $program in $BUILD/bin:" \
             "cmake --build $BUILD --target blockscale_command bench_blocks" >&2
        exit 2
    fi
done
exec python3 "$folder/sm120.py" "$BUILD" "$out"
