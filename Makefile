# The commands of this project.  How it is built is in CMakeLists.txt and CMakePresets.json.
#
#   make             the library and the command, in build/release
#   make demo        every format on two matrices: a table, and build/demo.svg   (A=a.npy B=b.npy: yours)
#   make test        every test
#   make test-asan   the test programs under AddressSanitizer; test-ubsan, test-tsan likewise
#   make search      problems drawn at random, on this machine's CPU, on cudasim and on a GPU where there is one, a minute each; SEARCH: other
#                    options of tests/search/search.py ("--seconds 3600 --target cpu"), --help lists them
#   make search-planted  bugs planted one at a time in the library, each of which that search must find within 20,000 problems
#   make test-model  a real model's checkpoint through every format: all-MiniLM-L6-v2 from the package registry, or BLOCKSCALE_MODEL
#   make wheel       the Python package as one wheel for every Linux with glibc 2.28 or later, in build/wheel
#   make test-wheel  that wheel: what it needs of glibc, what it has, and the tests of the Python package on it
#   make test-torch  the tests of the Python package that need PyTorch, which pip installs into build/torch: gigabytes
#                    (TORCH_PYTHON: a Python that has it; ONLY: which tests)
#   make test-vllm   the tests of the plugin for vLLM, which pip installs into build/upstream: gigabytes
#                    (VLLM_PYTHON: a Python that has it; ONLY: which tests)
#   make search-python  20,000 random products through the wheel against NumPy's arithmetic (SEARCH: other options)
#   make test-upstream  checkpoints that we write, loaded by the programs that they are for, and theirs by us: packages by pip into
#                    build/upstream, gigabytes (UPSTREAM="--only gguf,vllm": of them alone)
#   make test-tsan-cuda  threads and streams of the CUDA backend under ThreadSanitizer, on cudasim
#   make fuzz        every fuzz target for FUZZ_SECONDS (30)
#   make fuzz-fast   those of checkpoints by a driver of ours, FUZZ_SECONDS of processor time each: for 10^8 executions
#   make sweep       the quantizers over all 2^32 numbers: many minutes
#   make instructions  the table of instructions in cudasim/docs, from the rows and what hardware gave
#   make calibrate   cudasim against this machine's GPU: small kernels of every form, all bytes compared
#   make bench       speed of the products on this machine's CPU beside BLAS: a table, build/bench-cpu.json and build/bench-cpu.svg;
#                    beside oneDNN (PyTorch) and llama.cpp: build/bench-peers.* (BENCH, PEERS: options of each, such as PEERS=--quick)
#   make test-arm    the kernels for Arm, built by aarch64-linux-gnu-gcc, on qemu
#   make test-gpu    the tests of the CUDA backend on this machine's GPU; make test runs them on cudasim
#   make test-gpu-sanitizer  the kernels under compute-sanitizer: memcheck, racecheck, synccheck
#   make planted-cuda  bugs planted in kernels, on cudasim: minutes; planted-gfxsim: in gfxsim itself, a minute
#   make test-sim    Blackwell's kernels on cudasim: every two of kernel, sizes and K, every pair; goes on where it was, build/simulated.log
#   make test-sim-full  the whole grid, 100 schedules, blockscale verify of every pair on every kernel, bugs planted in the kernels,
#                    instructions taken out of them, bench/b200.sh: four hours of one processor and more; goes on where it was
#                    (SIM_SECONDS: all but the planted bugs and b200.sh ends after so many)
#   make mutate-cuda  of these, the instructions taken out of the CUDA kernels, one at a time
#   make mutate-gfx950  waits and barriers taken out of GEMM kernels of gfx950, one at a time, on gfxsim; goes on where it was,
#                    build/mutants-gfx950.log (INSTANCES: other code objects)
#   make bench-gpu   everything that this machine's GPU does beside its peers: a table, build/bench.json and build/bench.svg
#   make install     the library and the command, into PREFIX (/usr/local)
#   make install-cudasim  cudasim into PREFIX; install-gfxsim: gfxsim
#   make test-bare   make demo, install and test in a Debian with gcc, make and git alone, made in build/bare: needs root (STEPS: which)
#   make test-bare-python  the wheel in a Debian with python3 and python3-venv alone, made in build/bare: needs root
#   make format      wraps lines of C and CUDA that are longer than 120 columns (clang-format)
#   make clean       removes build/
JOBS         := $(shell nproc 2>/dev/null || echo 2)
PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 30
bin          := build/release/bin/blockscale
BENCH_GPU    ?= --parts
# Kernels are packed where cudasim, which reads them too, has Zstandard.
tools        := cc cmake $(if $(shell command -v nvcc 2>/dev/null),zstd)
QEMU_ARM     ?= qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu
gpu          := $(wildcard /dev/nvidiactl /dev/dxg)
# CUDA kernels take minutes to build: the demo has them only where a GPU can run them, everything else wherever nvcc is.
kernels      := AUTO
configure     = cmake --preset $(1) -DBLOCKSCALE_CUDA=$(kernels) --log-level=WARNING >/dev/null
tsan_run      = tests/run --jobs $(JOBS) --slow 20
build         = $(call configure,$(1)) && cmake --build build/$(1) -j $(JOBS) $(2) -- --no-print-directory -s

# The build tools below make their own jobs.
unexport MAKEFLAGS

all:
	@scripts/need $(tools)
	@$(call build,release,--target blockscale blockscale_static blockscale_command)
	@cat build/release/cuda.txt

demo: kernels := $(if $(gpu),AUTO,OFF)
demo: all
	@$(bin) demo $(if $(A),--a $(A)) $(if $(B),--b $(B)) --svg build/demo.svg

test:
	@scripts/need $(tools) python3 numpy python-tests c++ pkg-config
	@$(call build,release)
	@sed 's/$$/; tests run them on cudasim, make test-gpu on a GPU/' build/release/cuda.txt
	@tests/run --jobs $(JOBS) --slow 5 build/release/tests/list.txt

search:
	@scripts/need $(tools) python3 numpy
	@$(call build,release,--target blockscale cudasim)
	@$$(command -v build/python/bin/python3 || echo python3) tests/search/search.py build/release/lib/libblockscale.so --target all --jobs $(JOBS) $(or $(SEARCH),--seconds 60)

search-planted:
	@scripts/need $(tools) python3 numpy
	@$(call build,release,--target blockscale cudasim)
	@$$(command -v build/python/bin/python3 || echo python3) tests/search/planted.py build/release --jobs $(JOBS) \
	    --record tests/search/planted.md

test-model: kernels := OFF
test-model:
	@scripts/need $(tools) python3
	@$(call build,release,--target blockscale_command)
	@python3 tests/cli/checkpoint/test_real_model.py $(bin) --fetch

.PHONY: test-upstream
test-upstream: kernels := OFF
test-upstream:
	@scripts/need $(tools) c++ python3 numpy
	@$(call build,release,--target blockscale_command)
	@python3 tests/upstream/run.py $(bin) $(UPSTREAM)

# Kernels are the same under every sanitizer: once is enough for the host code around them.
test-ubsan test-tsan fuzz fuzz-fast: kernels := OFF

test-asan test-ubsan: test-%:
	@scripts/need $(tools) python3
	@$(call build,$*)
	@tests/run --jobs $(JOBS) --slow 10 build/$*/tests/list.txt

test-tsan:
	@scripts/need cmake python3 tsan
	@$(call build,tsan)
	@$(tsan_run) build/tsan/tests/list.txt

# Threads and streams of the CUDA backend, on cudasim: with the kernels of build/release, which takes minutes to compile.
test-tsan-cuda:
	@scripts/need cmake python3 tsan
	@$(call build,release,--target blockscale_kernels)
	@$(call configure,tsan) -DBLOCKSCALE_CUDA_FATBINS=$(CURDIR)/build/release/src/cuda
	@cmake --build build/tsan -j $(JOBS) --target test_gpu_streams -- --no-print-directory -s
	@grep '^test_gpu_streams ' build/tsan/tests/list.txt >build/tsan/tests/cuda.txt
	@$(tsan_run) build/tsan/tests/cuda.txt

fuzz:
	@scripts/need cmake python3 fuzzer
	@$(call build,fuzz)
	@fuzz/run --seconds $(FUZZ_SECONDS) build/fuzz

fuzz-fast:
	@scripts/need cmake python3 fuzzer
	@$(call build,fuzz-fast,--target drive_safetensors drive_gguf drive_shard_index)
	@fuzz/run --seconds $(FUZZ_SECONDS) build/fuzz-fast

sweep:
	@scripts/need $(tools) python3
	@$(call build,release)
	@tests/run --jobs $(JOBS) build/release/tests/sweeps.txt

bench: kernels := OFF
bench:
	@scripts/need $(tools) openblas
	@$(call build,release,--target bench_cpu bench_read blockscale)
	@build/release/bin/bench_cpu $(BENCH) --commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)" \
	    --json build/bench-cpu.json --svg build/bench-cpu.svg
	@bench/cpu/peers/run $(PEERS) --commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)" \
	    --json build/bench-peers.json --svg build/bench-peers.svg

test-arm: kernels := OFF
test-arm:
	@scripts/need cmake aarch64-linux-gnu-gcc qemu-aarch64-static
	@$(call build,arm,--target test_units test_microkernels test_prepacked test_ties)
	@for test in units microkernels prepacked ties; do $(QEMU_ARM) build/arm/tests/test_$$test || exit 1; done

# On this machine's GPUs.  What cannot run says why, and counts as skipped.
test-gpu:
	@scripts/need $(tools) python3
	@$(call build,release)
	@$(bin) info | grep -E '^(cuda|gpu) '
	@tests/run --jobs 1 build/release/tests/gpu.txt

test-gpu-sanitizer:
	@scripts/need $(tools)
	@$(call build,release)
	@cd build/release && $(CURDIR)/tests/cuda/sanitize

planted-gfxsim:
	@scripts/need $(tools) python3
	@$(call build,release)
	@gfxsim/tests/planted/planted.py build/release

planted-cuda:
	@scripts/need $(tools) python3
	@$(call build,release)
	@tests/cuda/planted/planted.py build/release

simulated     = tests/cuda/simulated/simulated.py prepare build/release build/simulated && \
	    tests/cuda/simulated/simulated.py run build/simulated build/simulated.log --jobs $(JOBS) $(if $(SIM_SECONDS),--seconds $(SIM_SECONDS))

test-sim-full:
	@scripts/need $(tools) python3
	@$(call build,release)
	@tests/run --jobs $(JOBS) build/release/tests/simulated.txt
	@$(simulated)

test-sim:
	@scripts/need $(tools) python3
	@$(call build,release)
	@$(simulated) --parts covering

mutate-cuda:
	@scripts/need $(tools) python3
	@$(call build,release)
	@$(simulated) --parts mutants

INSTANCES    ?= e2m1_e2m1_256x256 e4m3_e2m1_256x256_32 e2m3_e4m3_128x128 e2m1_e2m1_32x128_prepacked bf16_256x256
mutate-gfx950:
	@scripts/need $(tools) python3
	@$(call build,release)
	@cd build/release && $(CURDIR)/tests/hip/gfx950/test_mutants.py tests/test_gfx950_gemm src/hip $(INSTANCES) \
	    --log ../mutants-gfx950.log

# Peers: cuBLAS, and PyTorch with Triton where this python3 has them.  BENCH_GPU: options, such as --quick or --only TEXT.
bench-gpu:
	@scripts/need $(tools)
	@$(call build,release,--target bench_gpu bench_gpu_library)
	@if python3 -c 'import torch, triton' 2>/dev/null; then set -- python3 bench/gpu/bench_gpu.py build/release/lib/libbench_gpu.so; \
	    else set -- build/release/bin/bench_gpu; fi; \
	    "$$@" $(BENCH_GPU) --commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)" \
    --json build/bench.json --svg build/bench.svg

kept         := cudasim/calibrate/hardware/h200.txt cudasim/calibrate/hardware/h100.txt
instructions:
	@scripts/need cc cmake
	@$(call build,release,--target cudasim-instructions)
	@build/release/bin/cudasim-instructions $(kept) cudasim/tests/kernels/*.ptx >build/instructions.md
	@cp build/instructions.md cudasim/docs/instructions.md

calibrate:
	@scripts/need cc cmake
	@$(call build,release,--target cudasim cudasim-calibrate)
	@build/release/bin/cudasim-calibrate --library libcuda.so.1 --out build/hardware.bin
	@CUDASIM_QUIET=1 build/release/bin/cudasim-calibrate --library build/release/lib/libcudasim.so --out build/simulated.bin
	@build/release/bin/cudasim-calibrate --compare build/hardware.bin build/simulated.bin --keep build/kept.txt

install: all
	@cmake --install build/release --prefix $(PREFIX)

install-cudasim:
	@scripts/need $(tools)
	@$(call build,release,--target cudasim cudasim_runtime cudasim_command)
	@cmake --install build/release --prefix $(PREFIX) --component cudasim

install-gfxsim:
	@scripts/need $(tools)
	@$(call build,release,--target gfxsim)
	@cmake --install build/release --prefix $(PREFIX) --component gfxsim

wheel:
	@scripts/need cc cmake python3 venv
	@scripts/wheel

test-wheel: wheel
	@scripts/need python3 numpy python-tests
	@tests/python/wheel_test.py build/wheel/blockscale-*.whl

test-torch:
	@scripts/need $(tools) python3 numpy python-tests
	@tests/python/need_torch
	@$(call build,release,--target blockscale blockscale_command cudasim failing_libcuda)
	@tests/run --jobs 1 --only "$(ONLY)" build/release/tests/torch.txt

test-vllm: kernels := OFF
test-vllm:
	@scripts/need $(tools) python3
	@tests/python/need_vllm
	@$(call build,release,--target blockscale blockscale_command)
	@tests/run --jobs 1 --only "$(ONLY)" build/release/tests/vllm.txt

search-python: wheel
	@scripts/need python3 numpy python-tests
	@build/python/bin/python3 -m pip install -q --no-deps --no-index --upgrade \
	    --target build/wheel-site build/wheel/blockscale-*.whl
	@build/python/bin/python3 tests/search/search.py build/wheel-site/blockscale/libblockscale.so \
	    --target python --jobs $(JOBS) --name search_python $(or $(SEARCH),--problems 20000)

test-bare-python: wheel
	@tests/python/bare.sh build/bare build/wheel/blockscale-*.whl

test-bare:
	@tests/install/bare.sh build/bare $(STEPS)

format:
	@scripts/format

clean:
	rm -rf build

.PHONY: all demo search search-planted test-tsan-cuda test-model test-gpu-sanitizer planted-cuda planted-gfxsim test-sim test-sim-full mutate-cuda mutate-gfx950 calibrate instructions test test-asan test-ubsan test-tsan fuzz fuzz-fast sweep bench test-arm test-gpu bench-gpu install install-cudasim install-gfxsim wheel test-wheel test-torch test-vllm search-python test-bare-python test-bare format clean
