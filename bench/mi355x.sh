#!/bin/sh
# For an owner of an MI350X or MI355X: builds, runs the tests of the HIP backend on the card, verifies pairs of formats,
# times products beside bf16 x bf16, and prints a table.
#
#   bench/mi355x.sh [OUTPUT FOLDER]                    (build/mi355x unless given)
#   BLOCKSCALE_LIBHIP=build/release/lib/libgfxsim.so bench/mi355x.sh     the same on the simulator: small sizes
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-build/mi355x}
mkdir -p "$out"
failed=0

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }
step() {                        # NAME COMMAND...: its output goes to a file
  name=$1; shift
  if "$@" > "$out/$name.txt" 2>&1; then say "$name: done"; else say "$name: FAILED, see $out/$name.txt"; failed=1; fi
}

: > "$out/summary.txt"
if [ ! -x build/release/bin/blockscale ] || [ -z "${SKIP_BUILD:-}" ]; then
  step configure cmake --preset release
  step build cmake --build build/release -j --target blockscale_command test_gpu_contract test_gpu_ordinary \
    test_gpu_epilogues test_hip_products test_hip_tutorial gfxsim
fi
blockscale=build/release/bin/blockscale
case ${BLOCKSCALE_LIBHIP:-} in
*gfxsim*)
  sizes="256"; rounds=1; tutorial=512; pairs="mxfp8_e4m3:mxfp8_e4m3 mxfp4:mxfp4"; quick=--quick
  say "on gfxsim: times mean nothing" ;;
*) sizes="1024 4096 8192 16384"; rounds=15; tutorial=8192; pairs=""; quick="" ;;
esac

step info "$blockscale" info --verbose
for test in contract ordinary epilogues; do
  step "test_$test" env TEST_DEVICE=hip build/release/tests/test_gpu_$test
done
step test_products env TEST_DEVICE=hip build/release/tests/test_hip_products
# The Triton tutorial's own size on a card: M = N = 8192, K = 16384.
step test_tutorial env TEST_DEVICE=hip TUTORIAL_SIZE=$tutorial build/release/tests/test_hip_tutorial
if [ -z "$pairs" ]; then step verify "$blockscale" verify --device hip; fi
for pair in $pairs; do step "verify_$pair" "$blockscale" verify --device hip $quick --pair "$pair"; done

for format in mxfp8_e4m3 mxfp6_e2m3 mxfp4 nvfp4 bf16; do
  for size in $sizes; do
    step "bench_${format}_$size" "$blockscale" bench --device hip --format $format -m "$size" -n "$size" -k "$size" \
      -r $rounds --no-blas
  done
done
# Few rows of A, B as it is stored and packed once, before.
for formats in "mxfp8_e4m3 mxfp8_e4m3" "mxfp8_e4m3 mxfp4" "mxfp4 mxfp4"; do
  set -- $formats
  for size in $sizes; do
    for prepacked in "" --prepacked; do
      step "bench_$1_$2_${size}_16_rows$prepacked" "$blockscale" bench --device hip --a-format "$1" --b-format "$2" \
        -m 16 -n "$size" -k "$size" -r $rounds --no-blas $prepacked
    done
  done
done
say
say "M = N = K (or M = 16), D fp32"
for file in "$out"/bench_*.txt; do
  say "$(basename "$file" .txt | sed 's/^bench_//')"
  sed -n '/^ *plan /p; /^ *packed B /p; /^ *K  *best/p; /^ *[0-9][0-9]*  *[0-9.]* /p' "$file" |
    tee -a "$out/summary.txt"
done
exit $failed
