/* The GEMM kernels of src/cuda/sm90 by themselves: their table, tensor maps and launches, without plans.  For tests and benchmarks. */
#ifndef GEMM_LAUNCH_H
#define GEMM_LAUNCH_H

#include "blockscale/format.h"
#include "cuda/driver.h"
#include "cuda/kernel_parameters.h"

struct gemm_instance {
    const char *function;
    bool large;                           /* which of the two files holds it */
    int rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes;
};
extern const struct gemm_instance gemm_instances[];
extern const int gemm_instance_count;

struct gemm_machine {
    const struct bsmi_driver *cu;
    CUcontext context;
    CUmodule modules[2];
    int processors;
    int most_clusters[5];                 /* of that many CTAs that run at one time; 0: processors over CTAs */
};

/* Opens libcuda (BLOCKSCALE_LIBCUDA), the first device, and sm90_gemm_large.fatbin and sm90_gemm_small.fatbin in `folder`.  Ends the program where
 * that fails. */
void gemm_open(struct gemm_machine *machine, const char *folder);
/* The first two of these alone. */
void gemm_open_driver(struct gemm_machine *machine);
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
/* false where the copy engine cannot serve it: address, pitches or columns are no multiples of 16 bytes (it clips rows at such
 * multiples, not at the last column). */
bool gemm_map(const struct gemm_machine *machine, struct bsmi_tensor_map *map, const struct gemm_rows *rows, int box_columns, int box_rows,
              int swizzle_bytes);

/* Fills in maps and tiles (not grouped: of the whole batch) for this instance; output: D or S. */
void gemm_prepare(const struct gemm_machine *machine, const struct gemm_instance *instance, struct bsmi_gemm_parameters *p,
                  const struct gemm_rows *a, const struct gemm_rows *b, const struct gemm_rows *output);
CUfunction gemm_function(const struct gemm_machine *machine, const struct gemm_instance *instance);
void gemm_launch(const struct gemm_machine *machine, const struct gemm_instance *instance, CUfunction function,
                 const struct bsmi_gemm_parameters *p, CUstream stream, bool dependent);
int gemm_shared_bytes(const struct gemm_instance *instance);

#endif
