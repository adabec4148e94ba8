/* Products: any bsm_matmul.  What bsm_supported accepts, bsm_multiply computes, within buffers of exactly the bytes
 * that the descriptions need, and to the same bits with portable C on one thread as with the best kernels on two. */
#include "input.h"

enum { GROUPS = 6 };

struct numbers {
    float alpha[64], beta, bias[256], tensor_scales[4], amax;
    int64_t group_rows[GROUPS], group_columns[GROUPS];
};

static void take_numbers(struct input *in, struct numbers *n)
{
    static const float values[] = { 0, 1, -1, 0.5f, -0.0f, 3e38f, 1e-45f, 7 };
    for (int i = 0; i < 64; i++) n->alpha[i] = values[i % 8];
    for (int i = 0; i < 256; i++) n->bias[i] = (float)(i % 11) - 5;
    n->beta = values[pick(in, 8)];
    for (int i = 0; i < 4; i++) n->tensor_scales[i] = pick(in, 8) == 0 ? values[pick(in, 8)] : 0.75f;
    for (int i = 0; i < GROUPS; i++) n->group_rows[i] = take_size(in, 9);
}

/* Groups along K, which mostly share it out in blocks; D has a matrix for each. */
static void take_column_groups(struct input *in, bsm_matrix m[4], struct numbers *n, bsm_matmul *p)
{
    int64_t left = m[0].columns;
    p->groups = 1 + (int64_t)pick(in, GROUPS), p->group_columns = n->group_columns;
    for (int i = 0; i < p->groups; i++) {
        const int64_t some = 32 * (int64_t)pick(in, 4);
        n->group_columns[i] = i + 1 == p->groups || some > left ? left : some;
        left -= n->group_columns[i];
    }
    if (pick(in, 16) == 0) n->group_columns[0] += 1;
    m[0].batch = m[1].batch = 1, m[3].batch = p->groups;
}

static bsm_matmul take_product(struct input *in, bsm_matrix m[4], struct numbers *n)
{
    bsm_matmul p = { .struct_size = sizeof p, .a = &m[0], .b = &m[1], .d = &m[3] };
    const uint64_t flags = take(in, 2);
    if (flags & 1) p.alpha = n->alpha, p.alpha_per = (bsm_per)pick(in, BSM_PER_COUNT + 1);
    if (flags & 2) p.beta = &n->beta;
    if (flags & 4) p.c = flags & 8 ? &m[3] : &m[2];
    if (flags & 16) {
        p.bias = n->bias, p.bias_type = (bsm_real)pick(in, BSM_REAL_COUNT),
        p.bias_per = (bsm_per)pick(in, BSM_PER_COUNT);
        p.bias_batch_pitch = take_pitch(in, 20);
    }
    if (flags & 32) p.activation = (bsm_activation)pick(in, BSM_ACT_COUNT + 1);
    if (flags & 64) p.gate = (bsm_gate)pick(in, BSM_GATE_COUNT + 1);
    if (flags & 128) p.d_recipe = (bsm_recipe)pick(in, BSM_RECIPE_COUNT + 1);
    p.d_nonfinite = flags & 256 ? BSM_NONFINITE_SATURATE : BSM_NONFINITE_PROPAGATE;
    p.d_no_saturate = (flags & 512) != 0;
    if (flags & 1024) p.amax = &n->amax;
    if ((flags & 0x3800) == 0x3800)
        p.groups = take_size(in, GROUPS + 1), p.group_rows = p.groups <= GROUPS ? n->group_rows : NULL;
    if ((flags & 0x3800) == 0x1800) take_column_groups(in, m, n, &p);
    for (int i = 0; i < 4; i++) {
        if (flags >> 14 == 0 || pick(in, 2) == 0) continue;
        m[i].tensor_scale = &n->tensor_scales[i];
        m[i].tensor_scale_use = pick(in, 2) != 0 ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
    }
    return p;
}

/* Shapes that mostly fit together. */
static void take_matrices(struct input *in, bsm_matrix m[4])
{
    const int64_t rows = take_size(in, 20), columns = take_size(in, 40), k = take_size(in, 140);
    const int64_t d_columns = pick(in, 4) == 0 ? columns / 2 : columns;
    m[0] = take_matrix(in, rows, k);
    m[1] = take_matrix(in, columns, pick(in, 32) == 0 ? take_size(in, 64) : k);
    m[2] = take_matrix(in, rows, columns);
    m[3] = take_matrix(in, rows, d_columns);
    if (pick(in, 8) != 0) m[2].format = (bsm_format)(BSM_FORMAT_BF16 + pick(in, 3)), m[2].packing = BSM_PACKING_DEFAULT;
}

static void multiply_both_ways(bsm_matmul *p, bsm_matrix m[4])
{
    static bsm_context *best, *plain;
    if (best == NULL) best = context_of(2, false), plain = context_of(1, true);
    const bsm_status supported = bsm_supported(best, p);
    REQUIRE((bsm_supported(plain, p) == BSM_OK) == (supported == BSM_OK));
    int64_t data_bytes, scale_bytes;
    REQUIRE(bsm_matrix_data_bytes(&m[3], &data_bytes) == BSM_OK
            && bsm_matrix_scale_bytes(&m[3], &scale_bytes) == BSM_OK);
    unsigned char *before = buffer_of(data_bytes, 5), *first = buffer_of(data_bytes, 0),
                  *first_scales = buffer_of(scale_bytes, 0);
    if (data_bytes > 0) memcpy(before, m[3].data, (size_t)data_bytes);
    float amax = 0;
    bsm_status status = bsm_multiply(best, p);
    /* Beyond what bsm_supported sees: tensor scales that are not finite and > 0. */
    REQUIRE(supported != BSM_OK ? status == supported : status == BSM_OK || status == BSM_EINVAL);
    /* A matrix unit has an order of its own. */
    const int units = BSM_CPU_AMX | BSM_CPU_AVX512_BF16 | BSM_CPU_BF16;
    if (status == BSM_OK && ((int)bsm_context_cpu_features(best) & units) != 0) {
        if (data_bytes > 0) memcpy(m[3].data, before, (size_t)data_bytes);
        p->order = BSM_ORDER_PORTABLE;
        status = bsm_multiply(best, p);
    }
    if (status != BSM_OK) {
        REQUIRE(data_bytes == 0 || memcmp(before, m[3].data, (size_t)data_bytes) == 0);
    } else {
        if (data_bytes > 0) memcpy(first, m[3].data, (size_t)data_bytes), memcpy(m[3].data, before, (size_t)data_bytes);
        if (scale_bytes > 0) memcpy(first_scales, m[3].scales, (size_t)scale_bytes);
        if (p->amax != NULL) amax = *p->amax;
        REQUIRE(bsm_multiply(plain, p) == BSM_OK);
        REQUIRE(data_bytes == 0 || memcmp(first, m[3].data, (size_t)data_bytes) == 0);
        REQUIRE(scale_bytes == 0 || memcmp(first_scales, m[3].scales, (size_t)scale_bytes) == 0);
        REQUIRE(p->amax == NULL || memcmp(&amax, p->amax, sizeof amax) == 0);
    }
    free(before), free(first), free(first_scales);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    struct numbers numbers = { .beta = 0 };
    bsm_matrix m[4];
    take_matrices(&in, m);
    take_numbers(&in, &numbers);
    bsm_matmul p = take_product(&in, m, &numbers);
    int given = 0;
    while (given < 4 && give_buffers(&m[given], (uint64_t)given + size)) given++;
    if (given == 4) {
        multiply_both_ways(&p, m);
    } else {
        static bsm_context *context;
        if (context == NULL) context = context_of(1, false);
        for (int i = given; i < 4; i++) m[i].data = m[i].scales = NULL;
        if (bsm_supported(context, &p) != BSM_OK) REQUIRE(bsm_last_error()[0] != '\0');
    }
    for (int i = 0; i < given; i++) free_buffers(&m[i]);
    return 0;
}
