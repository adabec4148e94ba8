/* What tests of products on a GPU share: a context of it, matrices in its memory, and the same product on the CPU
 * beside. */
#ifndef TESTS_CUDA_GPU_H
#define TESTS_CUDA_GPU_H

#include "blockscale.h"
#include "cpu/naive.h"
#include "test.h"

/* Contexts of a GPU and of the CPU, which judges: it has no matrix unit, so that its sums have the portable order on
 * every machine.  Without a GPU (and without BLOCKSCALE_LIBCUDA, or BLOCKSCALE_LIBHIP) false, and the test is marked as
 * skipped. */
struct contexts { bsm_context *gpu, *cpu; };
bool contexts_open(struct test *t, struct contexts *contexts);
void contexts_close(struct contexts *contexts);
/* The same; without tensor memory the test says "skipped". */
bool tensor_memory_open(struct test *t, struct contexts *contexts);
/* cudasim or gfxsim: only a part is run. */
bool is_simulated(void);
/* TEST_DEVICE=hip: the GPU is one of AMD. */
bool is_hip(void);

/* Number of a kernel by its name, -1 if there is none or it does not serve this pair here. */
int kernel_number(const bsm_context *context, const char *name, bsm_format a, bsm_format b);
/* The name of the kernel that keeps the CPU's order of sums. */
const char *simt_kernel(void);
/* Number of the n-th kernel whose name has this part; -1 behind the last. */
int kernel_with(const char *part, int n);
/* Names of kernels of this GPU, NULL if it has none: for rows of bf16, beside which others are judged; for few rows and
 * MXFP4 as it is stored.  And whether a kernel, one of prepacked weights, too, is for the tensor cores of this GPU. */
const char *rows_kernel(const bsm_context *gpu);
const char *few_rows_kernel(const bsm_context *gpu);
bool is_of_gpu(const bsm_context *gpu, int kernel);
/* Whether a kernel's function in the library has this name, or begins with it. */
bool has_function(int kernel, const char *function);
/* GEMM_INSTANCE=FUNCTION: kernels of this function alone are asked for, by all that a simulator is spared else. */
bool one_is_asked_for(void);
bool is_asked_for(int kernel);
/* The codes of four bits that a kernel decodes; and a poisoned host operand, such codes packed as kernels read them. */
bsm_format nibbles_of_kernel(int kernel);
struct operand nibble_operand(bsm_format format, int64_t rows, int64_t columns, int64_t batch, bsm_layout layout);

/* Scales of an operand as the name says: exponents and signs for which kernels take other paths.  NaN: some blocks, of
 * which most rows have none. */
enum scales { SCALES_USUAL, SCALES_NEAR_THE_ENDS, SCALES_SPANNING, SCALES_LARGE, SCALES_WITH_NAN, SCALES_COUNT };
void set_scales(struct test *t, struct operand *o, enum scales scales);

/* Whole numbers up to 3 and scales from 1/2 to 4: sums of some thousands are exact wherever they are rounded to 24
 * bits. */
void fill_whole(struct test *t, struct operand *o);

/* A copy of host bytes in device memory; NULL for NULL. */
void *to_device(struct test *t, const struct contexts *c, const void *bytes, size_t count);
void from_device(struct test *t, const struct contexts *c, void *bytes, const void *device, size_t count);

/* A host operand's twin in device memory, bytes and poison included. */
struct twin {
    union { bsm_matrix m; bsm_sparse_matrix sparse; };
    const struct operand *host;
};
struct twin twin_make(struct test *t, const struct contexts *c, const struct operand *host);
/* Every byte of data, scales and tensor scale is that of the host's. */
void twin_compare(struct test *t, const struct contexts *c, const struct twin *twin, const char *what);
void twin_free(struct test *t, const struct contexts *c, struct twin *twin);

/* Runs `product`, which names host memory (operands in a, b, c, d; the rest plain arrays), on the CPU, and its twin on
 * the GPU, and compares every byte of D's buffers, and amax: the kernels sum in orders of their own, so inputs are such
 * that every order gives the same bits, or the kernel is one that promises the CPU's.  Returns the GPU's status; D of
 * the host keeps the CPU's result. */
struct run {
    const struct operand *a, *b, *c;
    struct operand *d;
    bsm_matmul call;                      /* a, b, c, d are filled in */
    int64_t alphas, biases;               /* numbers in alpha and in bias */
};
bsm_status run_both(struct test *t, const struct contexts *c, const struct run *run, const char *what);

#endif
