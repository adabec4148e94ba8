# Flags of every target.  Results must not depend on them: no fast-math, no contraction, no -march.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(blockscale_flags INTERFACE)
target_compile_definitions(blockscale_flags INTERFACE _GNU_SOURCE)
target_compile_options(blockscale_flags INTERFACE
  -ffp-contract=off -fno-fast-math
  -Wall -Wextra -Wpedantic -Wconversion -Wformat=2 -Wimplicit-fallthrough -Wstrict-prototypes -Wmissing-prototypes
  -Wno-unknown-warning-option)
if(BLOCKSCALE_WERROR)
  target_compile_options(blockscale_flags INTERFACE -Werror)
endif()

# After the OpenSSF guide for C.  tests/install checks the files that come out.
if(BLOCKSCALE_HARDEN)
  foreach(flag -fstack-clash-protection -fstack-protector-strong -fstrict-flex-arrays=3 -fcf-protection=full)
    string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
    check_c_compiler_flag(${flag} ${have})
    if(${have})
      target_compile_options(blockscale_flags INTERFACE ${flag})
    endif()
  endforeach()
  target_compile_options(blockscale_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  target_link_options(blockscale_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
# No path of the machine that built it in what is installed.
target_compile_options(blockscale_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)

if(BLOCKSCALE_SANITIZE)
  target_compile_options(blockscale_flags INTERFACE -fsanitize=${BLOCKSCALE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(blockscale_flags INTERFACE -fsanitize=${BLOCKSCALE_SANITIZE})
  # clang takes minutes with this check for a file of kernels, seconds without; AddressSanitizer finds what it finds.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND BLOCKSCALE_SANITIZE MATCHES "address" AND BLOCKSCALE_SANITIZE MATCHES "undefined")
    target_compile_options(blockscale_flags INTERFACE -fno-sanitize=object-size)
  endif()
endif()
