# Code objects for gfx950, by a clang that knows it (20 or later), without ROCm.
#
#   BSMI_GFX950_CLANG            the compiler, or empty; BSMI_GFX950_STATE then says why
#   add_code_object(NAME SOURCE FLAG...)   one more: ${CMAKE_CURRENT_BINARY_DIR}/NAME.hsaco from SOURCE, a file of the
#                                current folder
#   BSMI_CODE_OBJECTS, BSMI_CODE_OBJECT_NAMES    global properties: the files of all, and their names
set(BLOCKSCALE_HIP "AUTO" CACHE STRING "Kernels for gfx950: AUTO (where a clang is that compiles them), ON or OFF")
set(BLOCKSCALE_HIP_OBJECTS "" CACHE PATH "Takes the code objects from the src/hip of another build folder instead of compiling them")
set(BSMI_GFX950_FLAGS -x c -std=c17 -target amdgcn-amd-amdhsa -mcpu=gfx950 -nogpulib -ffreestanding -O3
  -ffp-contract=off -fno-ident -Wall -Wextra -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -Wl,-s -Wl,-z,norelro
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
set(BSMI_GFX950_CLANG "")
set(BSMI_GFX950_STATE "not built: BLOCKSCALE_HIP=OFF")
if(NOT BLOCKSCALE_HIP STREQUAL "OFF")
  set(BSMI_GFX950_STATE "not built: no clang that knows gfx950 was found")
  foreach(version 24 23 22 21 20 "")
    string(REGEX REPLACE "(.+)" "-\\1" suffix "${version}")
    find_program(BSMI_CLANG${suffix} clang${suffix})
    mark_as_advanced(BSMI_CLANG${suffix})
    if(BSMI_CLANG${suffix} AND NOT BSMI_GFX950_CLANG)
      set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/gfx950)
      file(WRITE ${probe}.c "typedef int v8 __attribute__((ext_vector_type(8)));
typedef float v4 __attribute__((ext_vector_type(4)));
__attribute__((device_kernel)) void k(__attribute__((address_space(1))) v4 *d, v8 a, int s)
{ *d = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, a, *d, 4, 4, 0, s, 0, s); }\n")
      execute_process(COMMAND ${BSMI_CLANG${suffix}} ${BSMI_GFX950_FLAGS} -o ${probe}.hsaco ${probe}.c
        RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(NOT failed)
        set(BSMI_GFX950_CLANG ${BSMI_CLANG${suffix}})
        set(BSMI_GFX950_STATE "")
      endif()
    endif()
  endforeach()
  if(BLOCKSCALE_HIP STREQUAL "ON" AND NOT BSMI_GFX950_CLANG)
    message(FATAL_ERROR "BLOCKSCALE_HIP=ON, but no clang was found that compiles for gfx950: install clang 20 and lld 20, "
      "or later ones")
  endif()
endif()

function(add_code_object name source)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.hsaco)
  if(BLOCKSCALE_HIP_OBJECTS)
    set(file ${BLOCKSCALE_HIP_OBJECTS}/${name}.hsaco)
  else()
    add_custom_command(OUTPUT ${file}
      COMMAND ${BSMI_GFX950_CLANG} ${BSMI_GFX950_FLAGS} ${ARGN} -MD -MF ${file}.d -MT ${file} -o ${file} ${source}
      DEPENDS ${source} DEPFILE ${file}.d VERBATIM COMMENT "gfx950: ${name}")
  endif()
  set_property(GLOBAL APPEND PROPERTY BSMI_CODE_OBJECTS ${file})
  set_property(GLOBAL APPEND PROPERTY BSMI_CODE_OBJECT_NAMES ${name})
endfunction()
