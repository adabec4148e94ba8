# Zstandard, with which cudasim reads the kernels that nvcc packs: CUDASIM_ZSTD is its library, or empty.
find_library(CUDASIM_ZSTD_LIBRARY zstd)
find_path(CUDASIM_ZSTD_HEADERS zstd.h)
mark_as_advanced(CUDASIM_ZSTD_LIBRARY CUDASIM_ZSTD_HEADERS)
set(CUDASIM_ZSTD "")
if(CUDASIM_ZSTD_LIBRARY AND CUDASIM_ZSTD_HEADERS)
  set(CUDASIM_ZSTD ${CUDASIM_ZSTD_LIBRARY})
endif()
