/* The GEMM kernels of src/cuda/sm90 by themselves: their table, tensor maps and launches, without plans.  For tests and
 * benchmarks. */
#ifndef GEMM_LAUNCH_H
#define GEMM_LAUNCH_H

#include "blockscale/format.h"
#include "cuda/driver/driver.h"
#include "cuda/tables/instances.h"

struct gemm_machine {
    const struct bsmi_driver *cu;
    CUcontext context;
    CUfunction functions[BSMI_MOST_GEMM_INSTANCES];
    int processors, capability;           /* 90: compute capability 9.0 */
    int most_clusters[5];                 /* of that many CTAs that run at one time; 0: processors over CTAs */
};

/* Opens libcuda (BLOCKSCALE_LIBCUDA), the first device, and the GEMM kernels of this build; false with bsm_last_error,
 * or with bsmi_cuda_not_built, where there are none. */
bool gemm_open(struct gemm_machine *machine);
/* Ends the program if a call failed. */
void gemm_call(const struct gemm_machine *machine, CUresult result, const char *what);

CUdeviceptr gemm_allocate(const struct gemm_machine *machine, size_t bytes);
CUdeviceptr gemm_upload(const struct gemm_machine *machine, const void *from, size_t bytes);
void gemm_download(const struct gemm_machine *machine, void *to, CUdeviceptr from, size_t bytes);
void gemm_free(const struct gemm_machine *machine, CUdeviceptr memory);

/* A matrix of a batch: bf16 rows, or D. */
struct gemm_rows {
    CUdeviceptr data;
    int element;                          /* BSM_BF16, BSM_FP16, BSM_FP32 */
    int64_t columns, rows, batch, pitch, batch_pitch;   /* pitches in elements */
};
/* false where TMA cannot serve it: address, pitches or columns are no multiples of 16 bytes (it clips rows
 * at such multiples, not at the last column). */
bool gemm_map(const struct gemm_machine *machine, struct bsmi_tensor_map *map, const struct gemm_rows *rows,
              int box_columns, int box_rows, int swizzle_bytes);

/* Fills in maps and tiles (not grouped: of the whole batch) for this instance; output: D or S. */
void gemm_prepare(const struct gemm_machine *machine, const struct bsmi_gemm_instance *instance,
                  struct bsmi_gemm_parameters *p, const struct gemm_rows *a, const struct gemm_rows *b,
                  const struct gemm_rows *output);
void gemm_launch(const struct gemm_machine *machine, const struct bsmi_gemm_instance *instance,
                 const struct bsmi_gemm_parameters *p, CUstream stream, bool dependent);
#endif
