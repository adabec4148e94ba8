/* Kernels that nobody of this project wrote: Triton's and Gluon's block-scaled products for sm_100a and sm_120a, PTX
 * files that lie beside the project (../shared/ptx), not in it.  Each runs in a process of its own, under many
 * schedules with all checks on and every rule at level report, on shapes that are no multiples of the tile where the
 * kernel clips; D's surroundings must stay as they were, and which rules it breaks, at how many lines, is known
 * (docs/strangers.md).
 *
 *     test_cudasim_strangers [--ptx FOLDER] [--tell] [--schedules N] [the options of test.h]
 *
 * --tell: a line for each kernel, with what was reported. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/core/rules.h"
#include "tests/support/kernel_api.h"
#include "tests/reference/scaled_product.h"

enum { GUARD = 4096, GUARD_BYTE = 0xee };

static const char *folder = CUDASIM_STRANGERS;
static bool tells;

/* ---- modules ---- */

/* What is left to read, as one malloc'ed text. */
static char *slurp(FILE *file)
{
    char *text = NULL;
    size_t used = 0, read = 0;
    do {
        used += read;
        text = realloc(text, used + 65537);
        if (text == NULL) abort();
        read = fread(text + used, 1, 65536, file);
    } while (read != 0);
    text[used] = '\0';
    fclose(file);
    return text;
}

/* The module with one statement in the place of another of the same length. */
static CUfunction mended_function(struct test *t, const char *path, const char *entry, uint32_t shared,
                                  const char *wrong, const char *right)
{
    const struct api *api = api_get(t);
    CUmodule module = NULL;
    CUfunction f = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = slurp(file), *at = strstr(text, wrong);
    if (at == NULL || strlen(wrong) != strlen(right)) FAIL(t, "%s has no statement %s", path, wrong);
    else memcpy(at, right, strlen(right));
    OK(t, api->module_load_data(&module, text));
    free(text);
    if (module != NULL) OK(t, api->get_function(&f, module, entry));
    if (f != NULL) OK(t, api->set_attribute(f, 8, (int)shared)); /* the most of dynamic shared memory */
    return f;
}

static bool is_here(struct test *t, const char *file, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", folder, file);
    if (access(path, R_OK) == 0) return true;
    test_skip(t, "no ../shared");
    return false;
}

static CUfunction function_of(struct test *t, const char *file, const char *entry, uint32_t shared)
{
    char path[1024];
    return is_here(t, file, path, sizeof path) ? api_function(t, path, entry, shared) : NULL;
}

/* ---- processes ---- */

/* Runs `body` in a process of its own, and returns what it wrote to stderr; *right: whether no check failed.  The
 * process ends as a program does, so that what was reported is counted. */
static char *errors_of(struct test *t, void (*body)(struct test *t), const char *reports, bool *right)
{
    int pipes[2], status = 0;
    if (pipe(pipes) != 0) abort();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]), close(pipes[1]);
        if (reports != NULL) setenv("CUDASIM_REPORTS", reports, 1);
        t->failures = 0;
        body(t);
        exit(t->failures != 0);
    }
    close(pipes[1]);
    FILE *in = fdopen(pipes[0], "r");
    if (in == NULL) abort();
    char *text = slurp(in);
    waitpid(child, &status, 0);
    if (right != NULL) *right = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return text;
}

/* "RULE LINES", separated by commas, in the order of the rules: at how many lines of PTX each was broken. */
static void lines_by_rule(const char *said, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < RULE_COUNT && used < size; i++) {
        char words[64];
        uint32_t lines = 0;
        snprintf(words, sizeof words, "\n  rule     %s\n", rule_name((enum rule)i));
        for (const char *at = said; (at = strstr(at, words)) != NULL; at++) lines++;
        if (lines != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s %u", used == 0 ? "" : ", ",
                                     rule_name((enum rule)i), lines);
    }
}

/* The kernel is right, and breaks these rules. */
static void check_kernel(struct test *t, const char *file, void (*body)(struct test *t), const char *reports)
{
    char path[1024], broken[1024];
    bool right = false;
    if (!is_here(t, file, path, sizeof path)) return;
    char *said = errors_of(t, body, "continue", &right);
    lines_by_rule(said, broken, sizeof broken);
    if (!right) FAIL(t, "%s: %s", file, said);
    else if (strcmp(broken, reports) != 0) FAIL(t, "%s breaks \"%s\", not \"%s\"", file, broken, reports);
    const char *counted = strstr(said, "cudasim: reported and went on: ");
    if (tells && right)
        printf("%s: right; lines: %s; %s", file, broken[0] == '\0' ? "none" : broken,
               counted == NULL ? "nothing reported\n" : counted + strlen("cudasim: "));
    free(said);
}

/* ---- operands on the device ---- */

struct buffers {
    CUdeviceptr a, b, sa, sb, d;
    size_t d_bytes;
};

static CUdeviceptr packed_operand(struct test *t, const struct product *p, bool of_b)
{
    const uint32_t pitch = packed_row_bytes(p, of_b);
    const size_t bytes = (size_t)pitch * (of_b ? p->n : p->m);
    uint8_t *host = malloc(bytes);
    product_pack(p, of_b, host, pitch);
    const CUdeviceptr device = api_buffer(t, host, bytes);
    free(host);
    return device;
}

static CUdeviceptr packed_scales(struct test *t, const struct product *p, bool of_b)
{
    const size_t bytes = scale_block_bytes(p, of_b);
    uint8_t *host = malloc(bytes);
    product_pack_scales(p, of_b, host);
    const CUdeviceptr device = api_buffer(t, host, bytes);
    free(host);
    return device;
}

/* D lies between two guards. */
static struct buffers buffers_of(struct test *t, const struct product *p, bool scales_in_blocks, uint32_t d_element)
{
    struct buffers x = { .a = packed_operand(t, p, false), .b = packed_operand(t, p, true) };
    const size_t row = p->k / p->block;
    x.sa = scales_in_blocks ? packed_scales(t, p, false) : api_buffer(t, p->sa, p->m * row);
    x.sb = scales_in_blocks ? packed_scales(t, p, true) : api_buffer(t, p->sb, p->n * row);
    x.d_bytes = (size_t)p->m * p->n * d_element;
    x.d = api_buffer(t, NULL, x.d_bytes + 2 * GUARD);
    OK(t, api_get(t)->memset8(x.d, GUARD_BYTE, x.d_bytes + 2 * GUARD));
    return x;
}

static void check_and_free(struct test *t, const struct product *p, struct buffers *x, enum product_output output)
{
    uint8_t *host = malloc(x->d_bytes + 2 * GUARD);
    api_read(t, x->d, host, x->d_bytes + 2 * GUARD);
    for (size_t i = 0; i < GUARD; i++)
        if (host[i] != GUARD_BYTE || host[GUARD + x->d_bytes + i] != GUARD_BYTE) {
            FAIL(t, "writes outside D");
            break;
        }
    product_check(t, p, output, host + GUARD, p->n);
    free(host);
    api_free(t, x->a), api_free(t, x->b), api_free(t, x->sa), api_free(t, x->sb), api_free(t, x->d);
}

#define SHAPES(list) ((int)(sizeof(list) / sizeof((list)[0])))
struct shape {
    uint32_t m, n, k, grid;
};

/* Runs `launch` on each shape, of whole numbers, and the first shape with wide data too. */
static void all_products(struct test *t, struct product p, CUfunction f, const struct shape *shapes, int count,
                         void (*launch)(struct test *t, CUfunction f, const struct product *p, struct buffers *x,
                                        uint32_t grid),
                         bool scales_in_blocks, enum product_output output)
{
    for (int i = 0; i < count && t->failures == 0; i++)
        for (int data = DATA_WHOLE; data <= (i == 0 ? DATA_WIDE : DATA_WHOLE) && t->failures == 0; data++) {
            p.m = shapes[i].m, p.n = shapes[i].n, p.k = shapes[i].k, p.data = (enum product_data)data;
            product_make(t, &p);
            struct buffers x = buffers_of(t, &p, scales_in_blocks, output == OUTPUT_F16 ? 2 : 4);
            launch(t, f, &p, &x, shapes[i].grid);
            if (t->failures == 0) check_and_free(t, &p, &x, output);
            product_free(&p);
        }
}

/* ---- Triton: pointers, whole tiles of 128 x 128 x 128 ---- */

#define TRITON_FILE "triton_sm100_e4m3_e4m3_block32.ptx"
#define TRITON_NVFP4_FILE "triton_sm100_e2m1_e2m1_block16.ptx"
#define TRITON_SM120_FILE "triton_sm120_e2m1_e2m1_block32.ptx"
static uint32_t triton_shared;

static void launch_triton(struct test *t, CUfunction f, const struct product *p, struct buffers *x, uint32_t grid)
{
    const struct api *api = api_get(t);
    CUdeviceptr d = x->d + GUARD, scratch = 0;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    (void)grid;
    OK(t, api->launch(f, p->m / 128 * (p->n / 128), 1, 1, 128, 1, 1, triton_shared, NULL,
                      (void *[]){ &x->a, &x->b, &x->sa, &x->sb, &d, &m, &n, &k, &scratch, &scratch }, NULL));
    OK(t, api->synchronize());
}

static const struct shape triton_shapes[] = { { 128, 128, 128, 0 }, { 256, 128, 256, 0 }, { 128, 256, 384, 0 } };

static void run_triton_mxfp8(struct test *t)
{
    const struct product p = { .kind = KIND_MXF8F6F4, .a_type = E_E4M3, .b_type = E_E4M3, .scale = SCALE_E8M0,
                               .block = 32 };
    CUfunction f = function_of(t, TRITON_FILE, "k10", triton_shared = 33280);
    if (f != NULL) all_products(t, p, f, triton_shapes, SHAPES(triton_shapes), launch_triton, false, OUTPUT_F32);
}

static void run_triton_nvfp4(struct test *t)
{
    const struct product p = { .kind = KIND_MXF4NVF4, .a_type = E_E2M1, .b_type = E_E2M1, .scale = SCALE_UE4M3,
                               .block = 16 };
    CUfunction f = function_of(t, TRITON_NVFP4_FILE, "k10", triton_shared = 17408);
    if (f != NULL) all_products(t, p, f, triton_shapes, SHAPES(triton_shapes), launch_triton, false, OUTPUT_F32);
}

static void run_triton_sm120(struct test *t)
{
    const struct product p = { .kind = KIND_MXF4NVF4, .a_type = E_E2M1, .b_type = E_E2M1, .scale = SCALE_E8M0,
                               .block = 32 };
    setenv("CUDASIM_DEVICE", "sm_120a", 1);
    CUfunction f = function_of(t, TRITON_SM120_FILE, "k10", triton_shared = 16896);
    if (f != NULL) all_products(t, p, f, triton_shapes, 1, launch_triton, false, OUTPUT_F32); /* test_triton_sm120.c */
}

/* ---- Gluon: tensor maps, tiles of 128 x 256, any M and N ---- */

struct scales {
    uint64_t blocks, tiles;
}; /* of 4 scales along K, of 128 rows */

static struct api_map scale_map(struct test *t, CUdeviceptr at, struct scales s, uint32_t box_blocks,
                                uint32_t box_tiles)
{
    struct api_map map = { .bytes = { 0 } };
    OK(t, api_get(t)->encode_tiled(
              &map, MAP_UINT8, 5, (void *)(uintptr_t)at, (uint64_t[]){ 256, 2, s.blocks, s.tiles, 1 },
              (uint64_t[]){ 256, 512, 512 * s.blocks, 512 * s.blocks * s.tiles },
              (uint32_t[]){ 256, 2, box_blocks, box_tiles, 1 }, (uint32_t[]){ 1, 1, 1, 1, 1 }, 0, SWIZZLE_NONE, 0, 0));
    return map;
}

/* The 39 parameters: each map, then its tensor's shape and strides, outermost first. */
struct gluon {
    struct api_map map[5];
    int shape[5][5];
    uint64_t stride[5][5], unused[2];
    void *parameter[39];
    int count;
};

static void add_tensor(struct gluon *g, int i, int rank, const uint64_t *shape)
{
    uint64_t stride = 1;
    g->parameter[g->count++] = &g->map[i];
    for (int d = rank - 1; d >= 0; stride *= shape[d--]) g->shape[i][d] = (int)shape[d], g->stride[i][d] = stride;
    for (int d = 0; d < rank; d++) g->parameter[g->count++] = &g->shape[i][d];
    for (int d = 0; d < rank; d++) g->parameter[g->count++] = &g->stride[i][d];
}

static void fill_gluon(struct test *t, struct gluon *g, const struct product *p, const struct buffers *x,
                       uint32_t scale_blocks)
{
    const uint64_t row_a = packed_row_bytes(p, false), row_b = packed_row_bytes(p, true),
                   along = (p->k / p->block + 3) / 4;
    const struct scales a = { along, (p->m + 127) / 128 }, b = { along, (p->n + 127) / 128 };
    memset(g, 0, sizeof *g);
    g->map[0] = api_matrix_map(t, x->a, MAP_UINT8, SWIZZLE_128B, (uint64_t[]){ row_a, p->m }, row_a, 128, 128);
    g->map[1] = api_matrix_map(t, x->b, MAP_UINT8, SWIZZLE_128B, (uint64_t[]){ row_b, p->n }, row_b, 128, 256);
    g->map[2] = api_matrix_map(t, x->d + GUARD, MAP_FLOAT16, SWIZZLE_128B, (uint64_t[]){ p->n, p->m },
                               2 * (uint64_t)p->n, 64, 128);
    g->map[3] = scale_map(t, x->sa, a, scale_blocks, 1);
    g->map[4] = scale_map(t, x->sb, b, scale_blocks, 2);
    add_tensor(g, 0, 2, (uint64_t[]){ p->m, row_a });
    add_tensor(g, 1, 2, (uint64_t[]){ p->n, row_b });
    add_tensor(g, 2, 2, (uint64_t[]){ p->m, p->n });
    add_tensor(g, 3, 5, (uint64_t[]){ 1, a.tiles, a.blocks, 2, 256 });
    add_tensor(g, 4, 5, (uint64_t[]){ 1, b.tiles, b.blocks, 2, 256 });
    for (int i = 0; i < 2; i++) g->parameter[g->count++] = &g->unused[i];
}

static void launch_copy(struct test *t, CUfunction f, const struct product *p, struct buffers *x, uint32_t grid)
{
    static struct gluon g;
    fill_gluon(t, &g, p, x, 1);
    (void)grid;
    OK(t, api_get(t)->launch(f, (p->m + 127) / 128, (p->n + 255) / 256, 1, 128, 1, 1, 65536, NULL, g.parameter, NULL));
    OK(t, api_get(t)->synchronize());
}

static void launch_persistent(struct test *t, CUfunction f, const struct product *p, struct buffers *x, uint32_t grid)
{
    static struct gluon g;
    fill_gluon(t, &g, p, x, 4);
    OK(t, api_get(t)->launch(f, grid, 1, 1, 256, 1, 1, 231516, NULL, g.parameter, NULL));
    OK(t, api_get(t)->synchronize());
}

#define COPY_FILE "gluon_sm100_copy_mxfp8_mxfp8.ptx"
#define PERSISTENT_FILE "gluon_sm100_ws_nvfp4_nvfp4.ptx"
static const struct product copy_product = {
    .kind = KIND_MXF8F6F4, .a_type = E_E4M3, .b_type = E_E4M3, .scale = SCALE_E8M0, .block = 32
};

/* The compiler formed the column of the second block of B's scales with `or` in the place of `add`; its bit is set
 * already, so both blocks are copied to the first one's columns, and the others are never written.  That statement
 * mended, the kernel is right. */
static void run_gluon_copy(struct test *t)
{
    static const struct shape shapes[] = { { 128, 256, 128, 0 }, { 72, 264, 256, 0 }, { 200, 136, 384, 0 } };
    char path[1024];
    if (!is_here(t, COPY_FILE, path, sizeof path)) return;
    CUfunction f = mended_function(t, path, "mma_scaled_tcgen05_copy_kernel", 65536, "or.b32 \t%r37, %r29, 4;",
                                   "add.u32\t%r37, %r29, 4;");
    if (f != NULL) all_products(t, copy_product, f, shapes, SHAPES(shapes), launch_copy, true, OUTPUT_F16);
}

static void run_gluon_warp_specialized(struct test *t)
{
    static const struct shape shapes[] = { { 128, 256, 256, 1 }, { 72, 264, 512, 1 }, { 200, 136, 768, 2 } };
    const struct product p = { .kind = KIND_MXF4NVF4, .a_type = E_E2M1, .b_type = E_E2M1, .scale = SCALE_UE4M3,
                               .block = 16 };
    CUfunction f = function_of(t, PERSISTENT_FILE, "mma_scaled_warp_specialized_kernel", 231516);
    if (f != NULL) all_products(t, p, f, shapes, SHAPES(shapes), launch_persistent, true, OUTPUT_F16);
}

/* ---- what is reported of files as they are ---- */

static void one_copy(struct test *t)
{
    static const struct shape shape = { 128, 256, 128, 0 };
    CUfunction f = function_of(t, COPY_FILE, "mma_scaled_tcgen05_copy_kernel", 65536);
    if (f != NULL) all_products(t, copy_product, f, &shape, 1, launch_copy, true, OUTPUT_F16);
}

static void gluon_copy_mxfp8_is_reported(struct test *t)
{
    char path[1024];
    if (!is_here(t, COPY_FILE, path, sizeof path)) return;
    char *text = errors_of(t, one_copy, "continue", NULL);
    if (text == NULL || strstr(text, "writes columns 4 to 7 of tensor memory, which the tcgen05.cp of warp 0") == NULL)
        FAIL(t, "wanted the two copies to the same columns, got %s", text == NULL ? "nothing" : text);
    free(text);
}

static void one_triton(struct test *t)
{
    const struct product p = { .kind = KIND_MXF8F6F4, .a_type = E_E4M3, .b_type = E_E4M3, .scale = SCALE_E8M0,
                               .block = 32 };
    setenv("CUDASIM_TENSOR_FENCES", "always", 1);
    CUfunction f = function_of(t, TRITON_FILE, "k10", triton_shared = 33280);
    if (f != NULL) all_products(t, p, f, triton_shapes, 1, launch_triton, false, OUTPUT_F32);
}

/* Triton's kernels have no tcgen05.fence, nor fence.proxy.async between cp.async and the product. */
static void triton_lacks_fences(struct test *t)
{
    char path[1024];
    if (!is_here(t, TRITON_FILE, path, sizeof path)) return;
    char *text = errors_of(t, one_triton, NULL, NULL);
    if (text == NULL || strstr(text, "tcgen05.fence::after_thread_sync here do not all lie between") == NULL)
        FAIL(t, "wanted the missing fence, got %s", text == NULL ? "nothing" : text);
    free(text);
}

/* ---- the kernels ---- */

static void triton_mxfp8(struct test *t) { check_kernel(t, TRITON_FILE, run_triton_mxfp8, ""); }
static void triton_nvfp4(struct test *t) { check_kernel(t, TRITON_NVFP4_FILE, run_triton_nvfp4, ""); }
static void triton_sm120(struct test *t) { check_kernel(t, TRITON_SM120_FILE, run_triton_sm120, ""); }
static void gluon_copy_mxfp8_mended(struct test *t)
{
    check_kernel(t, COPY_FILE, run_gluon_copy, "read-proxy-fence 1");
}
static void gluon_warp_specialized_nvfp4(struct test *t)
{
    check_kernel(t, PERSISTENT_FILE, run_gluon_warp_specialized, "read-proxy-fence 1");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(gluon_copy_mxfp8_is_reported), TEST(triton_lacks_fences),     TEST(triton_mxfp8),
        TEST(triton_nvfp4),                 TEST(triton_sm120),            TEST(gluon_copy_mxfp8_mended),
        TEST(gluon_warp_specialized_nvfp4),
    };
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--ptx") == 0) folder = argv[++i];
        else if (strcmp(argv[i], "--tell") == 0) tells = true;
        else argv[kept++] = argv[i];
    }
    kept = api_begin(kept, argv, "sm_100a");
    return TEST_MAIN(kept, argv, cases);
}
