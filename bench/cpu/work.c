/* One row of the table: operands, the peer's operands, and rounds in which both take turns. */
#include "bench.h"
#include "cli/machine/blas_peer.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* What both sides of a row work on. */
struct operands {
    bsm_matrix a, b, d;
    float *a_fp32, *b_fp32, tensor_scale;
    void *numbers;                        /* fp32 or bf16 */
    void *prepacked_b;                    /* NULL: B is read as it is stored */
    unsigned char *copy_from, *copy_to;
    size_t copy_bytes, weight_bytes, scale_bytes;
    uint64_t state, read;
};

struct side {
    bool (*run)(void *argument);
    void *argument;
    double (*clock)(void);
    int calls;
};

struct call {
    bsm_context *context;
    const struct blas_peer *peer;
    struct operands *o;
    const struct work *work;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 32;
}

static bool is_nan_or_infinity(bsm_format format, uint8_t code)
{
    const int magnitude = code & 0x7f;
    return (format == BSM_MXFP8_E4M3 && magnitude == 0x7f) || (format == BSM_MXFP8_E5M2 && magnitude >= 0x7c);
}

/* Random codes of finite numbers; scales within 8 octaves. */
static bsm_matrix make(uint64_t *state, bsm_format format, int64_t rows, int64_t columns)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = format, .rows = rows, .columns = columns };
    int64_t data = 0, scales = 0;
    if (bsm_matrix_data_bytes(&m, &data) != BSM_OK || bsm_matrix_scale_bytes(&m, &scales) != BSM_OK) return m;
    uint8_t *bytes = cli_memory(NULL, data + 64, 1), *scale = cli_memory(NULL, scales + 64, 1);
    const int size = bsm_element_get((int)bsm_format_get((int)format)->element)->bits / 8;
    for (int64_t i = 0; i < data; i++) {
        uint8_t code = (uint8_t)next_random(state);
        if (is_nan_or_infinity(format, code)) code ^= 0x40;
        /* The byte with the exponent of bf16, fp16 and fp32: numbers near 1. */
        if (size > 1 && i % size == size - 1) code = (uint8_t)(0x38 | (code & 0x87));
        bytes[i] = code;
    }
    for (int64_t i = 0; i < scales; i++)
        scale[i] = (uint8_t)((format == BSM_NVFP4 ? 0x30 : 120) + next_random(state) % 8);
    m.data = bytes;
    m.scales = scales > 0 ? scale : NULL;
    if (scales == 0) free(scale);
    return m;
}

static bsm_real_matrix reals(bsm_real type, void *data, int64_t rows, int64_t columns)
{
    return (bsm_real_matrix) { .struct_size = sizeof(bsm_real_matrix), .type = type, .rows = rows, .columns = columns,
                               .data = data, .row_stride = columns, .column_stride = 1 };
}

static float *dequantized(bsm_context *context, const bsm_matrix *m)
{
    float *values = cli_memory(NULL, m->rows * m->columns, (int64_t)sizeof *values);
    const bsm_real_matrix destination = reals(BSM_REAL_FP32, values, m->rows, m->columns);
    if (bsm_dequantize(context, m, &destination) != BSM_OK) fprintf(stderr, "%s\n", bsm_last_error());
    return values;
}

/* The sides -------------------------------------------------------------------------------------------------------- */

static bool run_product(void *argument)
{
    const struct call *c = argument;
    const bsm_matmul product = { .struct_size = sizeof product, .a = &c->o->a, .b = &c->o->b, .d = &c->o->d,
                                 .b_panels = c->o->prepacked_b };
    return bsm_multiply(c->context, &product) == BSM_OK;
}

static bool run_sgemm(void *argument)
{
    const struct call *c = argument;
    if (c->work->m == 1)
        blas_peer_multiply_vector(c->peer, c->work->n, c->work->k, c->o->b_fp32, c->o->a_fp32, c->o->d.data);
    else blas_peer_multiply(c->peer, c->work->m, c->work->n, c->work->k, c->o->a_fp32, c->o->b_fp32, c->o->d.data);
    return true;
}

static bool run_read(void *argument)
{
    const struct call *c = argument;
    c->o->read += read_all(c->o->b.data, c->o->weight_bytes / 1024 * 1024);
    c->o->read += read_all(c->o->b.scales, c->o->scale_bytes / 1024 * 1024);
    return true;
}

static bool run_quantize(void *argument)
{
    const struct call *c = argument;
    const bsm_real_matrix source = reals(reals_of(c->work), c->o->numbers, c->work->m, c->work->k);
    const bsm_quantize_options options = {
        .struct_size = sizeof options,
        .tensor_scale = (c->work->how & COMPUTED) != 0 ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN,
    };
    bsm_matrix destination = c->o->a;
    if ((c->work->how & COMPUTED) != 0) destination.tensor_scale = &c->o->tensor_scale;
    return bsm_quantize(c->context, &source, &options, &destination, NULL) == BSM_OK;
}

static bool run_dequantize(void *argument)
{
    const struct call *c = argument;
    const bsm_real_matrix destination = reals(reals_of(c->work), c->o->numbers, c->work->m, c->work->k);
    return bsm_dequantize(c->context, &c->o->a, &destination) == BSM_OK;
}

static bool run_copy(void *argument)
{
    const struct call *c = argument;
    memcpy(c->o->copy_to, c->o->copy_from, c->o->copy_bytes);
    return true;
}

static double sample(const struct side *side, int calls)
{
    const double start = side->clock();
    for (int i = 0; i < calls; i++)
        if (!side->run(side->argument)) return -1;
    return (side->clock() - start) / calls;
}

static bool alternate(struct side *ours, struct side *peer, int rounds, double seconds, struct row *row)
{
    struct side *const sides[2] = { ours, peer };
    for (int i = 0; i < 2; i++) {
        (void)sample(sides[i], 1);
        const double once = sample(sides[i], 1);
        if (once < 0) return false;
        sides[i]->calls = once >= seconds ? 1 : (int)(seconds / (once + 1e-9)) + 1;
    }
    for (row->rounds = 0; row->rounds < rounds; row->rounds++) {
        row->ours[row->rounds] = sample(ours, ours->calls);
        row->peer[row->rounds] = sample(peer, peer->calls);
    }
    return true;
}

static void describe(bsm_context *context, struct operands *o, struct row *row)
{
    char text[512] = "";
    bsm_plan *plan = NULL;
    const bsm_matmul product = { .struct_size = sizeof product, .a = &o->a, .b = &o->b, .d = &o->d };
    if (bsm_plan_create(context, &product, &plan) == BSM_OK) bsm_plan_describe(plan, text, sizeof text);
    bsm_plan_destroy(plan);
    const char *name = strstr(text, "kernel ");
    if (name != NULL) snprintf(row->kernel, sizeof row->kernel, "%.*s", (int)strcspn(name + 7, " :;,"), name + 7);
}

/* Sums of three uniform numbers, as fp32 or bf16: like weights, and unlike decoded ones no multiples of a few codes. */
static void *bell_shaped(uint64_t *state, bsm_real type, int64_t count)
{
    float *floats = cli_memory(NULL, count, (int64_t)sizeof *floats);
    for (int64_t i = 0; i < count; i++) {
        double sum = -1.5;
        for (int j = 0; j < 3; j++) sum += (double)next_random(state) * 0x1p-32;
        floats[i] = (float)sum;
    }
    if (type == BSM_REAL_FP32) return floats;
    uint16_t *numbers = cli_memory(NULL, count, (int64_t)sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (uint16_t)bsm_element_encode(BSM_BF16, (double)floats[i], BSM_ROUND_NEAREST_EVEN, true, 0);
    free(floats);
    return numbers;
}

static void make_operands(bsm_context *context, const struct work *w, struct operands *o)
{
    int64_t data = 0, scales = 0;
    o->a = make(&o->state, w->a, w->m, w->k);
    bsm_matrix_data_bytes(&o->a, &data), bsm_matrix_scale_bytes(&o->a, &scales);
    if (w->kind == KIND_COPY) {
        const int64_t moved = moved_bytes(w);
        o->copy_bytes = (size_t)moved / 2;
        o->copy_from = cli_memory(NULL, moved, 1), o->copy_to = cli_memory(NULL, moved, 1);
        o->numbers = bell_shaped(&o->state, reals_of(w), w->m * w->k);
        memset(o->copy_from, 1, o->copy_bytes), memset(o->copy_to, 1, o->copy_bytes);
        return;
    }
    o->b = make(&o->state, w->b, w->n, w->k);
    bsm_matrix_data_bytes(&o->b, &data), bsm_matrix_scale_bytes(&o->b, &scales);
    o->weight_bytes = (size_t)data, o->scale_bytes = (size_t)scales;
    o->d = (bsm_matrix) { .struct_size = sizeof o->d, .format = BSM_FORMAT_FP32, .rows = w->m, .columns = w->n,
                          .data = cli_memory(NULL, w->m * w->n, (int64_t)sizeof(float)) };
    if (w->kind == KIND_SGEMM) o->a_fp32 = dequantized(context, &o->a), o->b_fp32 = dequantized(context, &o->b);
}

static void pack_weights(bsm_context *context, struct operands *o)
{
    bsm_plan *plan = NULL;
    const bsm_matmul product = { .struct_size = sizeof product, .a = &o->a, .b = &o->b, .d = &o->d };
    if (bsm_plan_create(context, &product, &plan) != BSM_OK) return;
    const size_t bytes = bsm_plan_b_panels_bytes(plan);
    if (bytes > 0 && posix_memalign(&o->prepacked_b, 64, bytes) == 0
        && bsm_plan_pack_b(plan, &product, o->prepacked_b, bytes) != BSM_OK)
        fprintf(stderr, "%s\n", bsm_last_error());
    bsm_plan_destroy(plan);
}

static void free_operands(struct operands *o)
{
    free(o->a.data), free(o->a.scales), free(o->b.data), free(o->b.scales), free(o->d.data);
    free(o->a_fp32), free(o->b_fp32), free(o->numbers), free(o->prepacked_b), free(o->copy_from), free(o->copy_to);
}

void measure_row(bsm_context *const contexts[2], const struct blas_peer *peer, int rounds, double seconds,
                 struct row *row)
{
    static bool (*const peers[KIND_COUNT])(void *) = { run_sgemm, run_read, run_product, run_copy };
    const struct work *w = &row->work;
    if (w->kind == KIND_SGEMM && peer->sgemm == NULL) return;
    struct operands o = { .state = 1 };
    bsm_context *const mine = contexts[w->kind == KIND_THREADS ? 1 : 0];
    make_operands(contexts[0], w, &o);
    if ((w->how & PREPACKED) != 0) pack_weights(contexts[0], &o);
    double (*const clock)(void) = row->threads > 1 ? wall_seconds : thread_seconds;
    struct call call = { mine, peer, &o, w }, alone = { contexts[0], peer, &o, w };
    struct side ours = { w->kind != KIND_COPY   ? run_product
                         : (w->how & BACK) != 0 ? run_dequantize
                                                : run_quantize,
                         &call, clock, 0 };
    struct side other = { peers[w->kind], &alone, clock, 0 };
    row->measured = alternate(&ours, &other, rounds, seconds, row);
    if (!row->measured) fprintf(stderr, "bench_cpu: %s\n", bsm_last_error());
    if (w->kind != KIND_COPY) describe(mine, &o, row);
    free_operands(&o);
}
