/* What every room may use: failing with a sentence, checked arithmetic, the context's memory and threads. */
#ifndef BSMI_CORE_H
#define BSMI_CORE_H

#include "blockscale/context.h"
#include "blockscale/device.h"

#include <string.h>

#define BSMI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BSMI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Stores the sentence for bsm_last_error and returns status. */
__attribute__((format(printf, 2, 3))) bsm_status bsmi_fail(bsm_status status, const char *format, ...);

/* Puts a question mark for each character of a sentence that is a control, ends a line or turns the direction of
 * writing, and for each byte that is no UTF-8. */
void bsmi_mask(char *sentence);

/* Reads a size-versioned struct of the caller into `into` (known_bytes, our size): shorter ones are filled with zeros,
 * longer ones must be zero beyond what we know.  name is the argument's name for the sentence. */
bsm_status bsmi_read_struct(const char *name, const void *from, void *into, size_t known_bytes);

/* true on overflow, like the compiler's builtins; b > 0 for the division helpers. */
static inline bool bsmi_mul_overflows(int64_t a, int64_t b, int64_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}
static inline bool bsmi_add_overflows(int64_t a, int64_t b, int64_t *sum) { return __builtin_add_overflow(a, b, sum); }
static inline int64_t bsmi_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
/* a rounded up to a multiple of b; the caller knows that it does not overflow (a <= INT64_MAX - b). */
static inline int64_t bsmi_round_up(int64_t a, int64_t b) { return bsmi_ceil_div(a, b) * b; }

struct bsm_context {
    bsm_allocator allocator;
    struct bsmi_device *device;           /* NULL: the CPU */
    uint32_t cpu_features;
    int threads;
    int forced_kernel;                    /* -1: the plan chooses */
    struct bsmi_workspace *workspace;     /* the cached workspace of bsm_multiply */
};

/* What a backend beside the CPU does in the CPU's place; a device of the backend begins with this pointer. */
struct bsmi_quantize_request;
struct bsmi_dequantize_request;
struct bsmi_convert_request;
struct bsmi_device_calls {
    bsm_backend backend;
    void (*close)(bsm_context *context);  /* frees context->device */
    bsm_status (*quantize)(bsm_context *context, const struct bsmi_quantize_request *request);
    bsm_status (*quantize_both)(bsm_context *context, const struct bsmi_quantize_request *rows,
                                const struct bsmi_quantize_request *columns);
    bsm_status (*dequantize)(bsm_context *context, const struct bsmi_dequantize_request *request);
    bsm_status (*convert_scales)(bsm_context *context, const struct bsmi_convert_request *request);
    bsm_status (*allocate)(bsm_context *context, size_t bytes, void **memory);
    bsm_status (*release)(bsm_context *context, void *memory);
    bsm_status (*write)(bsm_context *context, void *to, const void *from, size_t bytes);
    bsm_status (*read)(bsm_context *context, void *to, const void *from, size_t bytes);
    bsm_status (*synchronize)(bsm_context *context);
};
struct bsmi_device { const struct bsmi_device_calls *calls; };

/* bsm_context_create without a device; options were read whole. */
bsm_status bsmi_context_make(const bsm_context_options *options, bsm_context **context);

/* Memory from the context's allocator, aligned to 64 bytes.  NULL only when the allocator gave NULL (or bytes is 0). */
void *bsmi_allocate(const bsm_context *context, size_t bytes);
void bsmi_release(const bsm_context *context, void *memory, size_t bytes);

/* The cached workspace, at least `bytes` long, locked for the calling thread until bsmi_workspace_unlock.
 * NULL when the allocator failed; then nothing is locked. */
void *bsmi_workspace_lock(bsm_context *context, size_t bytes);
void bsmi_workspace_unlock(bsm_context *context);

/* Calls task(argument, index, worker) for index 0 .. count-1 on up to `threads` threads; worker < threads numbers them.
 * Every task runs in the default floating-point mode, which is restored afterwards; tasks may run in any order.
 * In a child of fork, and within a task, everything runs on the calling thread. */
typedef void bsmi_task(void *argument, int64_t index, int worker);
void bsmi_parallel_for(int threads, int64_t count, bsmi_task *task, void *argument);

/* How many threads the machine (or OMP_NUM_THREADS) offers, 1..1024. */
int bsmi_default_threads(void);

/* Which of the features wanted, BSM_CPU_ bits, this CPU and operating system allow.  Where tiles are among them, Linux
 * is asked once for their registers, for the whole process: signals need larger stacks from then on. */
uint32_t bsmi_cpu_detect(uint32_t wanted);
/* The features that a list like "avx2,fma" names; false, with the sentence, for a name that is not known. */
bool bsmi_cpu_parse(const char *list, uint32_t *features);

/* Bytes of the caller's workspace or buffers that a 64-bit size_t holds but an int64_t should not. */
#define BSMI_ALIGNMENT 64

#endif
