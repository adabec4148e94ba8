/* Runs the kernels of kernels/hopper_gemm.cu through a libcuda, this simulator's or a GPU's, and prints a line a
 * product:
 *
 *     KERNEL M N K DATA HASH               HASH: FNV-1a, 64 bits, of all bytes of C
 *     NAME: N passed, N failed, 0 skipped  at the end, with --compare
 *
 *     hopper_gemm [--library PATH] [--kernels hopper_gemm.ptx] [--compare FILE] [--only KERNEL] [--k-bytes N]
 *
 * The operands are the same everywhere, so two libraries agree if the lines do: --compare reports those that FILE does
 * not have.  Products of whole numbers are compared with the host's.  Exit: 0, or 1 where
 * anything differs. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver ---- */

typedef int result;
typedef uint64_t device_pointer;
typedef struct {
    _Alignas(64) uint64_t opaque[16];
} tensor_map;
enum { UINT8 = 0, INT32 = 3, FLOAT32 = 7, BFLOAT16 = 9, SWIZZLE_128 = 3, MAXIMUM_DYNAMIC_SHARED = 8 };

struct driver {
    result (*init)(unsigned);
    result (*retain)(void **, int);
    result (*set_current)(void *);
    result (*synchronize)(void);
    result (*allocate)(device_pointer *, size_t);
    result (*release)(device_pointer);
    result (*to_device)(device_pointer, const void *, size_t);
    result (*to_host)(void *, device_pointer, size_t);
    result (*load)(void **, const char *);
    result (*function)(void **, void *, const char *);
    result (*set_attribute)(void *, int, int);
    result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                     void **);
    result (*error_name)(result, const char **);
    result (*encode)(tensor_map *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                     const uint32_t *, int, int, int, int);
};

static const struct {
    const char *name;
    size_t at;
} names[] = {
    { "cuInit", offsetof(struct driver, init) },
    { "cuDevicePrimaryCtxRetain", offsetof(struct driver, retain) },
    { "cuCtxSetCurrent", offsetof(struct driver, set_current) },
    { "cuCtxSynchronize", offsetof(struct driver, synchronize) },
    { "cuMemAlloc_v2", offsetof(struct driver, allocate) },
    { "cuMemFree_v2", offsetof(struct driver, release) },
    { "cuMemcpyHtoD_v2", offsetof(struct driver, to_device) },
    { "cuMemcpyDtoH_v2", offsetof(struct driver, to_host) },
    { "cuModuleLoad", offsetof(struct driver, load) },
    { "cuModuleGetFunction", offsetof(struct driver, function) },
    { "cuFuncSetAttribute", offsetof(struct driver, set_attribute) },
    { "cuLaunchKernel", offsetof(struct driver, launch) },
    { "cuGetErrorName", offsetof(struct driver, error_name) },
    { "cuTensorMapEncodeTiled", offsetof(struct driver, encode) },
};

static struct driver cu;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "hopper_gemm: %s: %s\n", what, why);
    exit(3);
}

static void call(result r, const char *what)
{
    if (r == 0) return;
    const char *name = "unknown error";
    cu.error_name(r, &name);
    stop(what, name);
}

static void open_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) stop("dlopen", dlerror());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = dlsym(library, names[i].name);
        if (found == NULL) stop(names[i].name, "is not exported");
        memcpy((char *)&cu + names[i].at, &found, sizeof found);
    }
    void *context;
    call(cu.init(0), "cuInit");
    call(cu.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    call(cu.set_current(context), "cuCtxSetCurrent");
}

/* ---- operands ---- */

enum type { BF16, E4M3, E5M2, S8, U8 };
enum output { WORDS_F32, WORDS_S32, HALVES };
enum data { SMALL, RANDOM, WIDE, DATA_KINDS };
static const char *const data_names[] = { "small", "random", "wide" };

struct kernel {
    const char *name;
    enum type a, b;
    enum output c;
    bool cluster;
};
static const struct kernel kernels[] = {
    { "gemm_bf16", BF16, BF16, WORDS_F32, false },
    { "gemm_bf16_to_bf16", BF16, BF16, HALVES, false },
    { "gemm_e4m3", E4M3, E4M3, WORDS_F32, false },
    { "gemm_e5m2_e4m3", E5M2, E4M3, WORDS_F32, false },
    { "gemm_s8", S8, S8, WORDS_S32, false },
    { "gemm_u8_s8", U8, S8, WORDS_S32, false },
    { "gemm_bf16_cluster", BF16, BF16, WORDS_F32, true },
    { "gemm_bf16_to_bf16_cluster", BF16, BF16, HALVES, true },
    { "gemm_e4m3_cluster", E4M3, E4M3, WORDS_F32, true },
    { "gemm_s8_cluster", S8, S8, WORDS_S32, true },
};

static uint64_t state;
static uint32_t next(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static int bytes_of(enum type t) { return t == BF16 ? 2 : 1; }

static const uint32_t one[] = { 0x3f80, 0x38, 0x3c, 1, 1 };

/* small: -1, 0, 1 (unsigned: 0, 1, 2).  random: numbers around 1.  wide: any bits; seldom infinities and NaN. */
static uint32_t code_of(enum type t, enum data data)
{
    const uint32_t r = next(), minus = t == BF16 ? 0x8000 : 0x80;
    if (data == SMALL) {
        const uint32_t value = r % 3;
        if (t == U8) return value;
        if (t == S8) return (value - 1) & 0xff;
        return value == 0 ? 0 : value == 1 ? one[t] : one[t] | minus;
    }
    if (t == S8 || t == U8) return r & 0xff;
    const uint32_t mantissa = t == BF16 ? 7 : t == E4M3 ? 3 : 2, low = r & (minus | ((1u << mantissa) - 1));
    if (data == RANDOM) return low | ((one[t] >> mantissa) - 3 + (r >> 16) % 6) << mantissa;
    const uint32_t code = r & (2 * minus - 1), top = t == E4M3 ? 0x7f : t == E5M2 ? 0x7c : 0x7f80;
    const bool special = (code & top) == top && r >> 16 <= 40;
    return special || (code & top) != top ? code : code ^ 1u << mantissa;
}

static void fill(void *to, size_t elements, enum type t, enum data data)
{
    for (size_t i = 0; i < elements; i++) {
        const uint32_t code = code_of(t, data);
        memcpy((uint8_t *)to + i * (size_t)bytes_of(t), &code, (size_t)bytes_of(t));
    }
}

/* ---- a product ---- */

struct product {
    const struct kernel *kernel;
    uint32_t m, n, k;
    enum data data;
    size_t a_bytes, b_bytes, c_bytes;
    uint8_t *a, *b, *c;
};

static tensor_map map_of(device_pointer base, int type, uint32_t element, uint32_t columns, uint32_t rows)
{
    tensor_map map;
    const uint64_t extent[2] = { columns, rows }, pitch[1] = { (uint64_t)columns * element };
    const uint32_t box[2] = { 128 / element, 64 }, step[2] = { 1, 1 };
    call(cu.encode(&map, type, 2, (void *)(uintptr_t)base, extent, pitch, box, step, 0, SWIZZLE_128, 0, 0),
         "cuTensorMapEncodeTiled");
    return map;
}

static int map_type(enum type t) { return t == BF16 ? BFLOAT16 : UINT8; }

static void run(void *module, struct product *p)
{
    enum { SHARED = 3 * 2 * 128 * 128 + 128 * 128 * 4 };
    const uint32_t c_element = p->kernel->c == HALVES ? 2 : 4;
    void *function;
    device_pointer a, b, c;
    call(cu.function(&function, module, p->kernel->name), p->kernel->name);
    call(cu.set_attribute(function, MAXIMUM_DYNAMIC_SHARED, SHARED), "cuFuncSetAttribute");
    call(cu.allocate(&a, p->a_bytes), "cuMemAlloc"), call(cu.allocate(&b, p->b_bytes), "cuMemAlloc");
    call(cu.allocate(&c, p->c_bytes), "cuMemAlloc");
    call(cu.to_device(a, p->a, p->a_bytes), "cuMemcpyHtoD"), call(cu.to_device(b, p->b, p->b_bytes), "cuMemcpyHtoD");
    memset(p->c, 0xee, p->c_bytes);
    call(cu.to_device(c, p->c, p->c_bytes), "cuMemcpyHtoD");
    tensor_map maps[3] = { map_of(a, map_type(p->kernel->a), (uint32_t)bytes_of(p->kernel->a), p->k, p->m),
                           map_of(b, map_type(p->kernel->b), (uint32_t)bytes_of(p->kernel->b), p->k, p->n),
                           map_of(c,
                                  p->kernel->c == HALVES      ? BFLOAT16
                                  : p->kernel->c == WORDS_S32 ? INT32
                                                              : FLOAT32,
                                  c_element, p->n, p->m) };
    int k_tiles = (int)(p->k * (uint32_t)bytes_of(p->kernel->a) / 128);
    void *parameters[] = { &maps[0], &maps[1], &maps[2], &k_tiles };
    call(cu.launch(function, p->n / 128, p->m / 128, 1, 384, 1, 1, SHARED, NULL, parameters, NULL), p->kernel->name);
    call(cu.synchronize(), p->kernel->name);
    call(cu.to_host(p->c, c, p->c_bytes), "cuMemcpyDtoH");
    call(cu.release(a), "cuMemFree"), call(cu.release(b), "cuMemFree"), call(cu.release(c), "cuMemFree");
}

/* ---- whole numbers: what the host computes ---- */

static int whole(const uint8_t *bytes, size_t i, enum type t)
{
    uint32_t code = 0;
    memcpy(&code, bytes + i * (size_t)bytes_of(t), (size_t)bytes_of(t));
    if (t == S8) return (int8_t)code;
    if (t == U8) return (int)code;
    return code == 0 ? 0 : code == one[t] ? 1 : -1;
}

static int whole_result(const struct product *p, size_t i)
{
    if (p->kernel->c == WORDS_S32) {
        int32_t value;
        memcpy(&value, p->c + 4 * i, 4);
        return value;
    }
    uint32_t bits = 0;
    if (p->kernel->c == HALVES) memcpy((uint8_t *)&bits + 2, p->c + 2 * i, 2);
    else memcpy(&bits, p->c + 4 * i, 4);
    float value;
    memcpy(&value, &bits, 4);
    return (int)value;
}

static bool is_right(const struct product *p)
{
    for (uint32_t i = 0; i < p->m; i++)
        for (uint32_t j = 0; j < p->n; j++) {
            int sum = 0;
            for (uint32_t k = 0; k < p->k; k++)
                sum +=
                    whole(p->a, (size_t)i * p->k + k, p->kernel->a) * whole(p->b, (size_t)j * p->k + k, p->kernel->b);
            const int got = whole_result(p, (size_t)i * p->n + j);
            if (got == sum) continue;
            fprintf(stderr, "hopper_gemm: %s %u %u %u: C[%u][%u] is %d, not %d\n", p->kernel->name, p->m, p->n, p->k, i,
                    j, got, sum);
            return false;
        }
    return true;
}

/* ---- lines ---- */

static uint64_t hash(const uint8_t *bytes, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The line of FILE that begins with these words, or false. */
static bool find_line(const char *file, const char *words, char *line, size_t size)
{
    FILE *f = fopen(file, "r");
    if (f == NULL) stop(file, "cannot be opened");
    bool found = false;
    while (!found && fgets(line, (int)size, f) != NULL) found = strncmp(line, words, strlen(words)) == 0;
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return found;
}

struct options {
    const char *library, *kernels, *compare, *only;
    uint32_t k_bytes;
};

static bool one_product(void *module, const struct options *o, const struct kernel *kernel, uint32_t m, uint32_t n,
                        uint32_t k_bytes, enum data data)
{
    struct product p = { .kernel = kernel, .m = m, .n = n, .k = k_bytes / (uint32_t)bytes_of(kernel->a), .data = data };
    p.a_bytes = (size_t)m * k_bytes, p.b_bytes = (size_t)n * k_bytes,
    p.c_bytes = (size_t)m * n * (kernel->c == HALVES ? 2 : 4);
    p.a = malloc(p.a_bytes), p.b = malloc(p.b_bytes), p.c = malloc(p.c_bytes);
    if (p.a == NULL || p.b == NULL || p.c == NULL) stop("malloc", "no memory");
    state = m + 1000003u * n + 7919u * k_bytes + (uint64_t)data;
    fill(p.a, (size_t)m * p.k, kernel->a, data);
    fill(p.b, (size_t)n * p.k, kernel->b, data);
    run(module, &p);
    bool ok = data != SMALL || is_right(&p);
    char words[128], line[160], other[256];
    snprintf(words, sizeof words, "%s %u %u %u %s ", kernel->name, m, n, p.k, data_names[data]);
    snprintf(line, sizeof line, "%s%016" PRIx64, words, hash(p.c, p.c_bytes));
    puts(line);
    if (o->compare != NULL && (!find_line(o->compare, words, other, sizeof other) || strcmp(line, other) != 0)) {
        fprintf(stderr, "hopper_gemm: %s: %s has no such line\n", line, o->compare);
        ok = false;
    }
    free(p.a), free(p.b), free(p.c);
    return ok;
}

static struct options read_options(int argc, char **argv)
{
    struct options o = { .library = CUDASIM_LIBRARY, .kernels = CUDASIM_KERNELS "/hopper_gemm.ptx" };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--library") == 0) o.library = argv[i + 1];
        else if (strcmp(argv[i], "--kernels") == 0) o.kernels = argv[i + 1];
        else if (strcmp(argv[i], "--compare") == 0) o.compare = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0) o.only = argv[i + 1];
        else if (strcmp(argv[i], "--k-bytes") == 0) o.k_bytes = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else stop(argv[i], "is no option");
    }
    if (argc % 2 == 0) stop(argv[argc - 1], "lacks its value");
    return o;
}

int main(int argc, char **argv)
{
    static const uint32_t k_bytes[] = { 128, 384, 512, 896 }; /* 1, 3, 4, 7 tiles in a ring of 3 stages */
    const struct options o = read_options(argc, argv);
    void *module;
    open_driver(o.library);
    call(cu.load(&module, o.kernels), o.kernels);
    uint32_t passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (o.only != NULL && strcmp(o.only, kernels[i].name) != 0) continue;
        const uint32_t m = kernels[i].cluster ? 256 : 128;
        for (size_t j = 0; j < sizeof k_bytes / sizeof k_bytes[0]; j++)
            for (int d = 0; d < DATA_KINDS; d++)
                if (o.k_bytes == 0 || o.k_bytes == k_bytes[j])
                    one_product(module, &o, &kernels[i], m, j == 2 ? 256 : 128, k_bytes[j], (enum data)d) ? passed++
                                                                                                          : failed++;
    }
    const char *slash = strrchr(argv[0], '/');
    if (o.compare != NULL)
        printf("%s: %u passed, %u failed, 0 skipped\n", slash == NULL ? argv[0] : slash + 1, passed, failed);
    return failed == 0 ? 0 : 1;
}
