/* Products of codes on Blackwell's tensor cores: every pair that they take as it is stored, against the CPU byte for
 * byte (whole numbers and scales whose sums are exact in any order), and against the exact product within the bound of
 * the cores' model. */
#include "codes_bound.h"
#include "cuda/harness/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

struct pair {
    bsm_format a, b;
};

static const bsm_format eight_bits[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2,  BSM_MXFP6_E3M2, BSM_MXFP6_E2M3,
                                         BSM_MXFP4,      BSM_FORMAT_E4M3, BSM_FORMAT_E5M2 };
static const struct pair four_bits[] = {
    { BSM_MXFP4, BSM_MXFP4 },         { BSM_NVFP4, BSM_NVFP4 },         { BSM_MXFP4_BLOCK16, BSM_MXFP4_BLOCK16 },
    { BSM_MXFP4_BLOCK16, BSM_MXFP4 }, { BSM_MXFP4, BSM_MXFP4_BLOCK16 } };
enum {
    EIGHT_BITS = sizeof eight_bits / sizeof eight_bits[0],
    FOUR_BITS = sizeof four_bits / sizeof four_bits[0],
    PAIRS = EIGHT_BITS * EIGHT_BITS - 1 + FOUR_BITS
};

/* One for each kind of products. */
static const struct pair one_of_each_kind[] = { { BSM_MXFP4, BSM_MXFP8_E5M2 }, { BSM_MXFP4, BSM_MXFP4 },
                                                { BSM_NVFP4, BSM_NVFP4 } };

static struct pair pair_of(int number)
{
    if (number < FOUR_BITS) return four_bits[number];
    const int rest = number - FOUR_BITS, both_mxfp4 = 4 * EIGHT_BITS + 4, at = rest + (rest >= both_mxfp4);
    return (struct pair){ eight_bits[at / EIGHT_BITS], eight_bits[at % EIGHT_BITS] };
}

/* Kernels that multiply codes of this pair, those that split K only by name if asked for. */
enum { MOST_KERNELS = 64 };
struct kernels { int numbers[MOST_KERNELS], count; };
static struct kernels kernels_of(const struct contexts *c, struct pair f, bool split_k)
{
    struct kernels found = { { 0 }, 0 };
    for (int i = 0; bsm_kernel_name(i) != NULL && found.count < MOST_KERNELS; i++) {
        const char *name = bsm_kernel_name(i);
        const bool of_codes = (strncmp(name, "cuda_tcgen05_mxf", 16) == 0 && isdigit((unsigned char)name[16]))
                              || (strncmp(name, "cuda_mma_sync_mxf", 17) == 0 && isdigit((unsigned char)name[17]));
        if (of_codes && (split_k || strstr(name, "split_k") == NULL) && bsm_kernel_serves(c->gpu, i, f.a, f.b))
            found.numbers[found.count++] = i;
    }
    return found;
}

/* Number `wanted` (modulo how many there are) of them; -1: none, and the context's choice is taken. */
static int kernel_of(const struct contexts *c, struct pair f, int wanted)
{
    const struct kernels found = kernels_of(c, f, true);
    return found.count == 0 ? -1 : found.numbers[wanted % found.count];
}

static const char *name_of(int kernel) { return kernel < 0 ? "the kernel chosen" : bsm_kernel_name(kernel); }

/* Tensor memory: sums in parts of K.  mma.sync: one chain. */
static bool has_tensor_memory(const struct contexts *c)
{
    return strncmp(name_of(kernel_of(c, four_bits[0], 0)), "cuda_tcgen05", 12) == 0;
}

static bool codes_open(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (kernel_of(c, four_bits[0], 0) >= 0) return true;
    test_skip(t, "this GPU's tensor cores take no codes");
    contexts_close(c);
    return false;
}

/* Operands --------------------------------------------------------------------------------------------------------- */

/* How an operand lies: as TMA takes it, with scales in blocks or in rows of whole 16 bytes; in rows that begin at
 * multiples of 8 and of 4 bytes alone; or in any way. */
enum lies { AS_TMA_TAKES_IT, WITH_LINEAR_SCALES, ROWS_OF_EIGHTS, ROWS_OF_FOURS, IN_ANY_WAY };

static struct operand make(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch,
                           enum lies lies)
{
    static const bsm_scale_layout layouts[] = {
        { .kind = BSM_LAYOUT_LINEAR },   { .kind = BSM_LAYOUT_128X4 },
        { .kind = BSM_LAYOUT_8X4 },      { .kind = BSM_LAYOUT_DEEPGEMM },
        { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_TILES, .tile_rows = 64, .tile_columns = 2 },
    };
    struct shape s = { .format = format, .rows = rows, .columns = columns, .batch = batch };
    const int block = bsm_format_get((int)format)->block;
    if (lies == IN_ANY_WAY) shape_in_any_way(t, &s, layouts, sizeof layouts / sizeof layouts[0]);
    else if (block != 0 && lies == WITH_LINEAR_SCALES)
        s.layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR,
                                       .pitch = ((columns + block - 1) / block + 15) / 16 * 16 };
    else if (block != 0) s.layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_128X4 };
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    if (lies == ROWS_OF_EIGHTS || lies == ROWS_OF_FOURS)
        s.extra_pitch = (lies == ROWS_OF_EIGHTS ? 8 : 12) * 8 / bits;
    return operand_make(&s, 0xff);
}

static const char *describe(const struct contexts *c, int kernel, const struct operand *a, const struct operand *b)
{
    static char text[256];
    (void)c;
    snprintf(text, sizeof text, "%s, %s x %s, M=%d N=%d K=%d, layouts %s %s, packings %s %s", name_of(kernel),
             bsm_format_get((int)a->m.format)->name, bsm_format_get((int)b->m.format)->name, (int)a->m.rows,
             (int)b->m.rows, (int)a->m.columns, bsm_layout_name((int)a->m.scale_layout.kind),
             bsm_layout_name((int)b->m.scale_layout.kind), bsm_packing_name((int)a->m.packing),
             bsm_packing_name((int)b->m.packing));
    return text;
}

/* One product ------------------------------------------------------------------------------------------------------ */

struct size { int64_t m, n, k; };
enum { MOST_COLUMNS = 1024 };

/* A factor for each column of D, from a table; groups: all rows but the last forty, none, and those; linear scales;
 * rows at multiples of 8 or 4 bytes, of both or one; both MN-major; relu and the largest magnitude, these with C. */
enum asks { NO_MORE, COLUMN_FACTORS, THREE_GROUPS, LINEAR_SCALES, EIGHTS, FOURS, A_OF_EIGHTS, B_OF_FOURS, MN_MAJOR,
            RELU_AND_AMAX, RELU_OF_C, ASKS };
static const char *const asks_names[] = { "", "columns", "groups", "linear", "eights", "fours", "aeights", "bfours",
                                          "mn", "relu", "addends" };
/* Of A and B, where it says how they lie. */
static const enum lies asked_lies[ASKS][2] = { [EIGHTS] = { ROWS_OF_EIGHTS, ROWS_OF_EIGHTS },
                                               [FOURS] = { ROWS_OF_FOURS, ROWS_OF_FOURS },
                                               [A_OF_EIGHTS] = { ROWS_OF_EIGHTS },
                                               [B_OF_FOURS] = { 0, ROWS_OF_FOURS } };

/* d: BSM_FORMAT_NONE: fp32 or bf16. */
static void check_product(struct test *t, const struct contexts *c, struct pair f, bsm_format d_format, struct size s,
                          int kernel, enum lies lies, enum asks asks)
{
    float factors[MOST_COLUMNS], amax = -1, beta = -2;
    const int64_t rows[] = { s.m - 40, 0, 40 };
    const enum lies *of = asked_lies[asks];
    struct operand a = make(t, f.a, s.m, s.k, 1, of[0] != 0 ? of[0] : lies),
                   b = make(t, f.b, s.n, s.k, asks == THREE_GROUPS ? 3 : 1, of[1] != 0 ? of[1] : lies);
    if (d_format == BSM_FORMAT_NONE) d_format = rnd_below(t, 2) == 0 ? BSM_FORMAT_FP32 : BSM_FORMAT_BF16;
    struct operand d = make(t, d_format, s.m, s.n, 1, AS_TMA_TAKES_IT),
                   cc = make(t, BSM_FORMAT_BF16, s.m, s.n, 1, AS_TMA_TAKES_IT);
    fill_whole(t, &a), fill_whole(t, &b), fill_whole(t, &cc);
    if (asks == MN_MAJOR) operand_turn(&a), operand_turn(&b);
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    struct run run = { .a = &a, .b = &b, .d = &d, .call = { .struct_size = sizeof(bsm_matmul) } };
    for (int i = 0; i < MOST_COLUMNS; i++) factors[i] = (float)(i % 7 - 3);
    if (asks == COLUMN_FACTORS) run.alphas = s.n, run.call.alpha = factors, run.call.alpha_per = BSM_PER_COLUMN;
    if (asks == THREE_GROUPS) run.call.groups = 3, run.call.group_rows = rows;
    if (asks >= RELU_AND_AMAX) run.call.activation = BSM_ACT_RELU, run.call.amax = &amax;
    if (asks == RELU_OF_C) run.c = &cc, run.call.beta = &beta;
    run_both(t, c, &run, describe(c, kernel, &a, &b));
    operand_free(&a), operand_free(&b), operand_free(&cc), operand_free(&d);
}

static void check_whole(struct test *t, const struct contexts *c, struct pair f, bsm_format d_format, struct size s,
                        int kernel, enum lies lies)
{
    check_product(t, c, f, d_format, s, kernel, lies, NO_MORE);
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

/* A kernel whose tiles have fewer than 32 rows takes, in tensor memory, products that have no more of them. */
static struct size rows_for(int kernel, struct size s, int number)
{
    const char *tile = name_of(kernel);
    while (*tile != 0 && (tile[0] != '_' || atoi(tile + 1) == 0 || strchr(tile, 'x') == NULL)) tile++;
    const int64_t rows = *tile == 0 ? 32 : atoi(tile + 1);
    if (rows < 32 && s.m > rows) s.m = rows - number % 3;
    return s;
}

static void every_pair(struct test *t)
{
    static const struct size sizes[] = {
        { 16, 70, 128 }, { 129, 33, 161 }, { 1, 130, 48 }, { 40, 257, 640 }, { 130, 128, 99 }
    };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int i = 0; i < PAIRS; i++) {
        const int kernel = kernel_of(&c, pair_of(i), i);
        check_whole(t, &c, pair_of(i), BSM_FORMAT_NONE, rows_for(kernel, sizes[i % 5], i), kernel,
                    i % 3 == 0 ? AS_TMA_TAKES_IT : IN_ANY_WAY);
    }
    contexts_close(&c);
}

/* Each kernel at the edges of its tile, at every number of products in the last step of K, and around the length of its
 * ring. */
static void edges_of_each_kernel(struct test *t)
{
    static const struct pair kinds[] = { { BSM_MXFP8_E4M3, BSM_MXFP6_E3M2 }, { BSM_MXFP4, BSM_MXFP4 },
                                         { BSM_NVFP4, BSM_NVFP4 } };
    static const struct size sizes[] = { { 1, 1, 16 },      { 127, 31, 32 },   { 128, 256, 1152 },
                                         { 129, 300, 192 }, { 256, 64, 2880 }, { 70, 513, 704 } };
    struct contexts c;
    int number = 0;
    if (!codes_open(t, &c)) return;
    for (int kind = 0; kind < 3; kind++) {
        const struct kernels found = kernels_of(&c, kinds[kind], true);
        CHECK(t, found.count > 0);
        for (int i = 0; i < found.count; i++) {
            const int kernel = found.numbers[i];
            for (int j = 0; j < 2; j++, number++)
                check_whole(t, &c, kinds[kind], BSM_FORMAT_NONE, rows_for(kernel, sizes[number % 6], number), kernel,
                            j == 0 ? AS_TMA_TAKES_IT : IN_ANY_WAY);
        }
    }
    contexts_close(&c);
}

/* At least five tiles for two CTAs, six for a pair: accumulators come again, and the ring wraps in the middle of
 * tiles. */
static void many_tiles(struct test *t)
{
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int kind = 0; kind < 3; kind++) {
        const struct kernels found = kernels_of(&c, one_of_each_kind[kind], true);
        CHECK(t, found.count > 0);
        for (int i = 0; i < found.count; i++) {
            const int kernel = found.numbers[i];
            const int64_t columns = strstr(name_of(kernel), "x256") != NULL ? 520 : 264;
            const bool swapped =
                strstr(name_of(kernel), "x128") != NULL && strstr(name_of(kernel), "128x128") == NULL;
            const struct size s = swapped ? (struct size){ 70, 600, 288 } : (struct size){ 260, columns, 288 };
            check_whole(t, &c, one_of_each_kind[kind], BSM_FORMAT_NONE, rows_for(kernel, s, 0), kernel,
                        AS_TMA_TAKES_IT);
        }
    }
    contexts_close(&c);
}

static void any_numbers_are_within_the_bound(struct test *t)
{
    static const struct pair kinds[] = { { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP8_E5M2, BSM_MXFP4 },
                                         { BSM_MXFP6_E2M3, BSM_MXFP6_E3M2 }, { BSM_MXFP4, BSM_MXFP4 },
                                         { BSM_NVFP4, BSM_NVFP4 },           { BSM_MXFP4_BLOCK16, BSM_MXFP4 } };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int i = 0; i < 6; i++) {
        struct operand a = make(t, kinds[i].a, 40, 2880, 1, IN_ANY_WAY),
                       b = make(t, kinds[i].b, 50, 2880, 1, IN_ANY_WAY);
        float d[40 * 50];
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
        const bsm_matrix out = {
            .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = 40, .columns = 50,
            .data = to_device(t, &c, d, sizeof d)
        };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out };
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel_of(&c, kinds[i], i)) == BSM_OK);
        CHECK(t, bsm_multiply(c.gpu, &call) == BSM_OK);
        from_device(t, &c, d, out.data, sizeof d);
        check_bound(t, &c, &a, &b, d, describe(&c, kernel_of(&c, kinds[i], i), &a, &b));
        twin_free(t, &c, &x), twin_free(t, &c, &y), (void)bsm_device_release(c.gpu, out.data);
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

/* A NaN scale, a NaN element, an infinity: the rows that have them, and no others; scales behind the last are NaN
 * throughout. */
static void not_a_number(struct test *t)
{
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int i = 0; i < 4; i++) {
        static const struct pair kinds[] = { { BSM_MXFP8_E5M2, BSM_MXFP8_E4M3 },
                                             { BSM_MXFP4, BSM_MXFP4 },
                                             { BSM_NVFP4, BSM_NVFP4 },
                                             { BSM_MXFP6_E2M3, BSM_FORMAT_E4M3 } };
        struct operand a = make(t, kinds[i].a, 140, 160, 1, i % 2 == 0 ? AS_TMA_TAKES_IT : IN_ANY_WAY),
                       b = make(t, kinds[i].b, 40, 160, 1, AS_TMA_TAKES_IT);
        struct operand d = operand_make(
            &(struct shape){ .format = i % 2 == 0 ? BSM_FORMAT_FP32 : BSM_FORMAT_BF16, .rows = 140,
                             .columns = 40 }, 0xff);
        fill_whole(t, &a), fill_whole(t, &b);
        bsm_matrix_set_scale(&a.m, 0, 133, 4, kinds[i].a == BSM_NVFP4 ? 0x7f : 0xff);
        if (i != 3) bsm_matrix_set_scale(&b.m, 0, 17, 0, kinds[i].a == BSM_NVFP4 ? 0xff : 0xff);
        if (i == 0) bsm_matrix_set_code(&a.m, 0, 3, 159, 0x7c), bsm_matrix_set_code(&a.m, 0, 4, 0, 0xfc);
        if (i == 0 || i == 3) bsm_matrix_set_code(&b.m, 0, 39, 100, 0x7f);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel_of(&c, kinds[i], i)) == BSM_OK);
        run_both(t, &c, &(struct run){ .a = &a, .b = &b, .d = &d, .call = { .struct_size = sizeof(bsm_matmul) } },
                 describe(&c, kernel_of(&c, kinds[i], i), &a, &b));
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* Groups begin anywhere within the 128 rows of a block of scales; batches, one of them broadcast. */
static void batches_and_groups(struct test *t)
{
    static const int64_t rows[] = { 0, 130, 1, 0, 200, 16 };
    static const int kernels[] = { 1, 2, 6, 5 };  /* the last two swapped */
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int i = 0; i < 4; i++) {
        static const struct pair kinds[] = { { BSM_MXFP8_E4M3, BSM_MXFP4 },
                                             { BSM_MXFP4, BSM_MXFP4 },
                                             { BSM_NVFP4, BSM_NVFP4 },
                                             { BSM_MXFP4, BSM_MXFP4_BLOCK16 } };
        const bool grouped = i % 2 == 0;
        const enum lies lies = i < 2 ? AS_TMA_TAKES_IT : IN_ANY_WAY;
        struct operand a = make(t, kinds[i].a, grouped ? 347 : 70, 160, grouped || i == 3 ? 1 : 3, lies);
        struct operand b = make(t, kinds[i].b, 72, 160, grouped ? 6 : 3, lies);
        struct operand d = operand_make(
            &(struct shape){ .format = BSM_FORMAT_BF16, .rows = grouped ? 347 : 70, .columns = 72,
                             .batch = grouped ? 1 : 3 },
            0xff);
        fill_whole(t, &a), fill_whole(t, &b);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel_of(&c, kinds[i], kernels[i])) == BSM_OK);
        run_both(
            t, &c,
            &(struct run){
                .a = &a,
                .b = &b,
                .d = &d,
                .call = { .struct_size = sizeof(bsm_matmul), .groups = grouped ? 6 : 0,
                          .group_rows = grouped ? rows : NULL } },
            describe(&c, kernel_of(&c, kinds[i], kernels[i]), &a, &b));
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* D in blocks with scales, quantized where its sums are: by every kind, in tiles of rows and swapped, with alpha, beta
 * C, bias and tensor scale, in groups and batches, and with a NaN whose block it fills; rows of B behind the last have
 * NaN scales. */
static void quantized_outputs(struct test *t)
{
    static const int64_t rows[] = { 0, 37, 1, 0, 32 };
    static const struct {
        struct pair formats;
        bsm_format d;
        bsm_packing packing;
        bsm_layout layout;
        int64_t m, n, k, batch;
        int kernel, groups;
        bool adds;
    } products[] = {
        { { BSM_MXFP8_E4M3, BSM_MXFP4 }, BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4, 130, 75, 128,
          1, 4, 0, true },
        { { BSM_MXFP4, BSM_MXFP4 }, BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4, 19, 143, 256, 1, 6, 0, true },
        { { BSM_NVFP4, BSM_NVFP4 }, BSM_NVFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4, 131, 200, 128, 1, 0, 0, true },
        { { BSM_NVFP4, BSM_NVFP4 }, BSM_NVFP4, BSM_PACKING_HIGH_FIRST, BSM_LAYOUT_LINEAR, 5, 61, 128, 2, 8, 0, false },
        { { BSM_MXFP8_E5M2, BSM_MXFP8_E4M3 }, BSM_MXFP6_E2M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_DEEPGEMM, 70, 40,
          128, 1, 5, 5, false },
        { { BSM_MXFP4, BSM_MXFP4_BLOCK16 }, BSM_MXINT8, BSM_PACKING_DEFAULT, BSM_LAYOUT_8X4, 40, 70, 128, 1, 3,
          0, true },
    };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const int64_t m = products[i].m, n = products[i].n,
                      of_b = products[i].groups > 0 ? products[i].groups : products[i].batch;
        struct operand a = make(t, products[i].formats.a, m, products[i].k, products[i].batch, AS_TMA_TAKES_IT);
        struct operand b = make(t, products[i].formats.b, n, products[i].k, of_b, AS_TMA_TAKES_IT);
        struct operand cc = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = m, .columns = n }, 0);
        struct operand d = operand_make(&(struct shape){ .format = products[i].d, .rows = m, .columns = n,
                                                         .batch = products[i].batch,
                                                         .packing = products[i].packing,
                                                         .layout = { .kind = products[i].layout } }, 0xff);
        float alphas[256], biases[256], beta = 0.5f, tensor_scale = 0.37f;
        for (int j = 0; j < 256; j++) alphas[j] = (float)(j % 7) - 2.5f, biases[j] = (float)(j % 5) * 3;
        fill_whole(t, &a), fill_whole(t, &b), operand_fill(t, &cc, true);
        if (i < 2) bsm_matrix_set_scale(&a.m, 0, m - 1, 0, 0xff);
        if (products[i].d == BSM_NVFP4) d.m.tensor_scale = &tensor_scale;
        struct run run = { .a = &a, .b = &b, .d = &d,
                           .call = { .struct_size = sizeof run.call, .groups = products[i].groups,
                                                                .group_rows = products[i].groups > 0 ? rows : NULL } };
        if (products[i].adds) {
            run.c = &cc, run.call.beta = &beta;
            run.alphas = n, run.call.alpha = alphas, run.call.alpha_per = BSM_PER_COLUMN;
            run.biases = m, run.call.bias = biases, run.call.bias_type = BSM_REAL_FP32, run.call.bias_per = BSM_PER_ROW;
        }
        const int kernel = kernel_of(&c, products[i].formats, products[i].kernel);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        run_both(t, &c, &run, describe(&c, kernel, &a, &b));
        d.m.tensor_scale = NULL;
        operand_free(&a), operand_free(&b), operand_free(&cc), operand_free(&d);
    }
    contexts_close(&c);
}

/* relu and the largest magnitude of what is stored, by every way of storing it: boxes, rows of groups that share a
 * tile, addends, blocks with scales, columns of swapped tiles; D's edges, NaN in amax, and parts of K that bsmi_finish
 * adds. */
static void relu_and_amax(struct test *t)
{
    static const struct {
        struct pair formats;
        bsm_format d;
        int64_t m, n, k;
        int kernel;
        enum asks asks;
    } products[] = {
        { { BSM_MXFP8_E4M3, BSM_MXFP4 }, BSM_FORMAT_BF16, 130, 75, 128, 4, RELU_AND_AMAX },
        { { BSM_MXFP8_E4M3, BSM_MXFP4 }, BSM_FORMAT_FP32, 260, 300, 96, 0, RELU_AND_AMAX },
        { { BSM_MXFP4, BSM_MXFP4 }, BSM_FORMAT_FP16, 70, 67, 256, 3, RELU_OF_C },
        { { BSM_NVFP4, BSM_NVFP4 }, BSM_FORMAT_BF16, 129, 260, 64, 1, RELU_OF_C },
        { { BSM_NVFP4, BSM_NVFP4 }, BSM_NVFP4, 33, 130, 128, 2, RELU_AND_AMAX },
        { { BSM_MXFP8_E5M2, BSM_MXFP8_E4M3 }, BSM_MXFP8_E4M3, 20, 140, 128, 6, RELU_OF_C },
        { { BSM_MXFP4, BSM_MXFP4 }, BSM_FORMAT_FP32, 7, 131, 192, 8, RELU_AND_AMAX },
        { { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, BSM_FORMAT_FP32, 3, 20, 8320, 7, RELU_AND_AMAX },
    };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        check_product(t, &c, products[i].formats, products[i].d,
                      (struct size){ products[i].m, products[i].n, products[i].k },
                      kernel_of(&c, products[i].formats, products[i].kernel), AS_TMA_TAKES_IT, products[i].asks);
    contexts_close(&c);
}

/* The same of groups that begin anywhere; a NaN in one of them is amax. */
static void relu_and_amax_of_groups(struct test *t)
{
    static const int64_t rows[] = { 30, 0, 131, 9 };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int i = 0; i < 4; i++) {
        const struct pair f = { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 };
        struct operand a = make(t, f.a, 170, 96, 1, AS_TMA_TAKES_IT), b = make(t, f.b, 72, 96, 4, AS_TMA_TAKES_IT);
        struct operand d = make(t, i % 2 == 0 ? BSM_FORMAT_BF16 : BSM_MXFP8_E5M2, 170, 72, 1, AS_TMA_TAKES_IT);
        float amax = -1;
        fill_whole(t, &a), fill_whole(t, &b);
        if (i > 1) bsm_matrix_set_code(&a.m, 0, 40, 7, 0x7f);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel_of(&c, f, i < 2 ? 2 : 5)) == BSM_OK);
        run_both(t, &c,
                 &(struct run){ .a = &a, .b = &b, .d = &d,
                                .call = { .struct_size = sizeof(bsm_matmul), .groups = 4, .group_rows = rows,
                                          .amax = &amax,
                                          .activation = i % 3 == 0 ? BSM_ACT_RELU : BSM_ACT_NONE } },
                 describe(&c, kernel_of(&c, f, i < 2 ? 2 : 5), &a, &b));
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* No rows, no columns, no K, groups without rows: nothing to multiply, and D and amax are what the contract says. */
static void nothing_to_multiply(struct test *t)
{
    static const struct {
        struct size size;
        int64_t groups;
    } products[] = {
        { { 0, 70, 64 }, 0 }, { { 70, 0, 64 }, 0 }, { { 40, 70, 0 }, 0 },
        { { 0, 0, 0 }, 0 },   { { 0, 70, 64 }, 3 }, { { 5, 70, 0 }, 3 },
    };
    static const bsm_format ds[] = { BSM_FORMAT_BF16, BSM_NVFP4 };
    static const int64_t none[] = { 0, 0, 0 }, some[] = { 0, 5, 0 };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    for (size_t i = 0; i < 2 * sizeof products / sizeof products[0]; i++) {
        const struct size s = products[i / 2].size;
        const int64_t groups = products[i / 2].groups;
        struct operand a = make(t, BSM_NVFP4, s.m, s.k, 1, AS_TMA_TAKES_IT),
                       b = make(t, BSM_NVFP4, s.n, s.k, groups > 0 ? groups : 1, AS_TMA_TAKES_IT);
        struct operand d = make(t, ds[i % 2], s.m, s.n, 1, AS_TMA_TAKES_IT);
        float amax = -1, bias[70];
        for (int j = 0; j < 70; j++) bias[j] = (float)(j % 9) - 6;
        fill_whole(t, &a), fill_whole(t, &b);
        struct run run = { .a = &a, .b = &b, .d = &d, .biases = 70,
                           .call = { .struct_size = sizeof run.call, .amax = &amax, .activation = BSM_ACT_RELU,
                                     .bias = bias,
                                     .bias_type = BSM_REAL_FP32, .bias_per = BSM_PER_COLUMN, .groups = groups,
                                     .group_rows = groups == 0 ? NULL : s.m > 0 ? some : none } };
        char what[80];
        snprintf(what, sizeof what, "%d x %d x %d, %d groups", (int)s.m, (int)s.n, (int)s.k, (int)groups);
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* A product of a few steps and tiles on a kernel of each kind; CUDASIM_SCHEDULES repeats it, and wants the same bytes
 * each time. */
static void schedules(struct test *t)
{
    struct contexts c;
    if (!codes_open(t, &c)) return;
    for (int kind = 0; kind < 3; kind++)
        check_whole(t, &c, one_of_each_kind[kind], BSM_FORMAT_NONE, (struct size){ 300, 264, kind == 0 ? 416 : 832 },
                    kernel_of(&c, one_of_each_kind[kind], kind), AS_TMA_TAKES_IT);
    contexts_close(&c);
}

/* Long K is summed in parts whose places depend on K alone: for any numbers every kernel gives the same bits, whether
 * one CTA makes all parts of a tile or each goes to its own.  K of 8192 is one chain. */
static void parts_of_k(struct test *t)
{
    static const struct {
        struct pair formats;
        int64_t n, k;
        const char *words;
        int kernels[3];
    } sums[] = { { { BSM_MXFP8_E4M3, BSM_MXFP4 }, 40, 8320, "each of 2 parts of K", { 2, 5, 8 } },
                 { { BSM_MXFP4, BSM_MXFP4 }, 40, 16416, "each of 3 parts of K", { 1, 4, 7 } },
                 /* as many tiles as CTAs */
                 { { BSM_NVFP4, BSM_NVFP4 }, 400, 8224, "each of 2 parts of K", { 0, 5, 8 } },
                 { { BSM_NVFP4, BSM_NVFP4 }, 8, 8192, "tensor cores along K in fp32", { 8, 8, 8 } } };
    enum { M = 7, MOST_N = 400 };
    struct contexts c;
    if (!codes_open(t, &c)) return;
    if (!has_tensor_memory(&c)) {
        test_skip(t, "this GPU's kernels sum all of K in one chain");
        contexts_close(&c);
        return;
    }
    for (int i = 0; i < 4; i++) {
        struct operand a = make(t, sums[i].formats.a, M, sums[i].k, 1, AS_TMA_TAKES_IT),
                       b = make(t, sums[i].formats.b, sums[i].n, sums[i].k, 1, AS_TMA_TAKES_IT);
        float first[M * MOST_N], d[M * MOST_N];
        const size_t bytes = (size_t)(M * sums[i].n) * sizeof d[0];
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
        const bsm_matrix out = {
            .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = sums[i].n,
            .data = to_device(t, &c, d, bytes)
        };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out };
        for (int j = 0; j < 3; j++) {
            const int kernel = kernel_of(&c, sums[i].formats, sums[i].kernels[j]);
            bsm_plan *plan = NULL;
            char text[512] = "";
            CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
            CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK && bsm_multiply(c.gpu, &call) == BSM_OK);
            bsm_plan_describe(plan, text, sizeof text);
            if (strstr(text, sums[i].words) == NULL) FAIL(t, "no \"%s\" in \"%s\"", sums[i].words, text);
            bsm_plan_destroy(plan);
            from_device(t, &c, d, out.data, bytes);
            if (j == 0 && sums[i].n < 100) check_bound(t, &c, &a, &b, d, describe(&c, kernel, &a, &b));
            if (j == 0) memcpy(first, d, bytes);
            if (memcmp(first, d, bytes) != 0)
                FAIL(t, "%s: other bits than the first kernel", describe(&c, kernel, &a, &b));
        }
        twin_free(t, &c, &x), twin_free(t, &c, &y), (void)bsm_device_release(c.gpu, out.data);
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

/* "KERNEL A B M N K", then D's format, or "any", and what else is asked (asks_names). */
static void asked_product(struct test *t, const struct contexts *c, const char *asked)
{
    char kernel[64], a[32], b[32], d[32] = "any", more[32] = "";
    long long m, n, k;
    const int words =
        sscanf(asked, "%63s %31s %31s %lld %lld %lld %31[a-z0-9_] %31[a-z]", kernel, a, b, &m, &n, &k, d, more);
    enum asks asks = NO_MORE;
    while (asks < ASKS && strcmp(more, asks_names[asks]) != 0) asks++;
    if (words < 6 || asks == ASKS || (asks == COLUMN_FACTORS && n > MOST_COLUMNS)
        || (asks == THREE_GROUPS && m < 40)) {
        FAIL(t, "\"%s\": not understood", asked);
        return;
    }
    const struct pair f = { bsm_format_from_name(a), bsm_format_from_name(b) };
    const int number = kernel_number(c->gpu, kernel, f.a, f.b);
    if (number < 0) FAIL(t, "%s: no such kernel, or not for %s x %s", kernel, a, b);
    else
        check_product(t, c, f, strcmp(d, "any") == 0 ? BSM_FORMAT_NONE : bsm_format_from_name(d),
                      (struct size){ m, n, k }, number, asks == LINEAR_SCALES ? WITH_LINEAR_SCALES : AS_TMA_TAKES_IT,
                      asks);
}

/* The products that PRODUCTS asks for, with ";" between them: test_kernel_bugs.py and simulated.py bring theirs. */
static void asked_products(struct test *t)
{
    const char *asked = getenv("PRODUCTS");
    struct contexts c;
    if (!codes_open(t, &c)) return;
    if (asked == NULL)
        asked = has_tensor_memory(&c) ? "cuda_tcgen05_mxf4_16x128 mxfp4 mxfp4 9 130 288"
                                      : "cuda_mma_sync_mxf4_16x128x128 mxfp4 mxfp4 9 130 288";
    for (const char *at = asked; at != NULL; at = strchr(at, ';') != NULL ? strchr(at, ';') + 1 : NULL)
        asked_product(t, &c, at);
    contexts_close(&c);
}

/* What the plan says, for operands that need nothing and for one that needs everything. */
static void plans_say_what_is_prepared(struct test *t)
{
    struct contexts c;
    if (!codes_open(t, &c)) return;
    static const struct {
        bsm_format a, b;
        int64_t k;
        bsm_packing packing;
        bsm_layout layout;
        const char *words;
        bool empty;
        const char *by_mma_sync;          /* its words, where they are others */
    } plans[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP4, 256, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4,
          "A (mxfp8_e4m3) as stored with scales as they are", true, NULL },
        { BSM_MXFP4, BSM_MXFP4, 256, BSM_PACKING_HIGH_FIRST, BSM_LAYOUT_128X4,
          "A (mxfp4) repacked with scales as they are", false, NULL },
        { BSM_NVFP4, BSM_NVFP4, 256, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR,
          "A (nvfp4) as stored with scales converted to 128x4", false,
          "A (nvfp4) as stored with linear scales as they are" },
        { BSM_NVFP4, BSM_NVFP4, 192, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR,
          "A (nvfp4) as stored with scales converted to 128x4", false, NULL },
        { BSM_NVFP4, BSM_NVFP4, 224, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4,
          "A (nvfp4) as stored with scales converted to 128x4", false, NULL },
        { BSM_MXFP4, BSM_MXFP4_BLOCK16, 256, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4,
          "A (mxfp4) as stored with scales repeated in 128x4", false, "A (mxfp4) dequantized" },
        { BSM_FORMAT_E4M3, BSM_MXFP8_E4M3, 256, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR,
          "A (e4m3) as stored with scales of 1", false, NULL },
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        const bool scaled = bsm_format_get((int)plans[i].a)->block != 0,
                   other = plans[i].by_mma_sync != NULL && !has_tensor_memory(&c);
        const char *words = other ? plans[i].by_mma_sync : plans[i].words;
        const struct shape sa = { .format = plans[i].a, .rows = 70, .columns = plans[i].k,
                                  .packing = plans[i].packing,
                                  .layout = { .kind = scaled ? plans[i].layout : BSM_LAYOUT_LINEAR } };
        struct operand a = operand_make(&sa, 0), b = make(t, plans[i].b, 30, plans[i].k, 1, AS_TMA_TAKES_IT);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 70, .columns = 30 }, 0);
        const struct twin x = { .m = a.m }, y = { .m = b.m };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &d.m };
        bsm_plan *plan = NULL;
        char text[512] = "";
        CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
        bsm_plan_describe(plan, text, sizeof text);
        if (strstr(text, words) == NULL) FAIL(t, "no \"%s\" in \"%s\"", words, text);
        CHECK(t, strstr(text, "chosen because: the least time by a model of its steps (") != NULL
                     && strstr(text, " wave, about ") != NULL);
        CHECK(t, (bsm_plan_workspace_bytes(plan) == 0) == (plans[i].empty || strstr(words, "linear") != NULL));
        bsm_plan_destroy(plan);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair), TEST(edges_of_each_kernel), TEST(many_tiles),
                                              TEST(any_numbers_are_within_the_bound), TEST(not_a_number),
                                              TEST(batches_and_groups), TEST(quantized_outputs), TEST(relu_and_amax),
                                              TEST(relu_and_amax_of_groups), TEST(nothing_to_multiply), TEST(schedules),
                                              TEST(parts_of_k), TEST(asked_products),
                                              TEST(plans_say_what_is_prepared) };
    return TEST_MAIN(argc, argv, cases);
}
