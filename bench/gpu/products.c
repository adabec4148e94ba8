/* Products beside their peers, see products.h. */
#include "cublas_lt.h"
#include "product.h"

#include <math.h>
#include <stdlib.h>

enum { CALLS_OF_A_GRAPH = GPU_MOST_PLACES, SETTLED_ROUNDS = 2 };
static const double settled_seconds = 0.25; /* of warming up, and of a sample: longer than the power limit's control looks back */
static const char *const names[] = {
    [BSM_FORMAT_BF16] = "bf16", [BSM_MXFP8_E4M3] = "MXFP8", [BSM_MXFP6_E2M3] = "MXFP6", [BSM_MXFP4] = "MXFP4", [BSM_NVFP4] = "NVFP4"
};

void pair_text(const struct pair *pair, char *text, size_t room)
{
    if (pair->a == pair->b) snprintf(text, room, "%s", names[pair->a]);
    else snprintf(text, room, "%s x %s", names[pair->a], names[pair->b]);
}

void shape_text(const struct shape *s, char *text, size_t room)
{
    snprintf(text, room, "%lldx%lldx%lld", (long long)s->m, (long long)s->n, (long long)s->k);
}

/* A product with everything that its ways need. */
struct work {
    struct bench *bench;
    char text[64], shape[40];
    struct places *coded, *bf16;
    struct own own, own_bf16;
    struct through_cublas prepared, unprepared, unprepared_by_guest;
    int64_t mark; /* of the device memory */
};

static struct through_cublas through(struct work *w, const struct places *places)
{
    return (struct through_cublas){
        .bench = w->bench, .places = places, .a_values = w->unprepared.a_values, .b_values = w->unprepared.b_values
    };
}

static void work_make(struct bench *bench, const struct pair *pair, const struct shape *shape, bsm_compute compute, struct work *w)
{
    struct gpu *gpu = &bench->gpu;
    *w = (struct work){ .bench = bench, .mark = gpu->memory_used };
    pair_text(pair, w->text, sizeof w->text);
    shape_text(shape, w->shape, sizeof w->shape);
    w->coded = places_take(bench, pair, shape, BSM_FORMAT_BF16);
    own_make(bench, w->coded, BSM_FORMAT_BF16, compute, &w->own);
    w->bf16 = places_dequantized(bench, w->coded);
    own_make(bench, w->bf16, BSM_FORMAT_BF16, BSM_COMPUTE_EXACT, &w->own_bf16);
    w->unprepared.a_values = gpu_take(gpu, 2 * shape->m * shape->k);
    w->unprepared.b_values = gpu_take(gpu, 2 * shape->n * shape->k);
    w->prepared = through(w, w->bf16);
    w->unprepared = w->unprepared_by_guest = through(w, w->coded);
    w->unprepared_by_guest.by_guest = true;
}

static void work_free(struct work *w)
{
    own_free(&w->own), own_free(&w->own_bf16);
    free(w->coded), free(w->bf16);
    gpu_give_back(&w->bench->gpu, w->mark);
}

static struct way way_of(const char *name, bool (*run)(void *), void *argument)
{
    return (struct way){ .contender = { .name = name, .run = run, .argument = argument } };
}

static struct row *new_row(const struct work *w, enum section section, const char *peer, const char *kernel)
{
    struct row *row = table_row(&w->bench->table, section, w->text, w->shape, peer);
    snprintf(row->about, sizeof row->about, "%s", kernel);
    return row;
}

/* Ours and a peer in turn. */
static void compare(const struct work *w, struct row *row, struct way *ours, struct way *theirs)
{
    struct gpu *gpu = &w->bench->gpu;
    struct loop_state state;
    loop_prepare(gpu, ours, CALLS_OF_A_GRAPH);
    loop_prepare(gpu, theirs, CALLS_OF_A_GRAPH);
    loop_run(gpu, (struct way *[]){ ours, theirs }, 2, w->bench->rounds, &state);
    row_times(row, ours, theirs, &state, &state);
    loop_release(gpu, ours), loop_release(gpu, theirs);
}

static void against(const struct work *w, enum section section, const char *peer, bool (*run)(void *), void *argument)
{
    struct way ours = way_of("our product", own_run, (void *)&w->own), theirs = way_of(peer, run, argument);
    compare(w, new_row(w, section, peer, w->own.kernel), &ours, &theirs);
}

/* What a guest brings ---------------------------------------------------------------------------------------------------------- */

struct guest_run {
    const struct guest *guest;
    int64_t places, next;
};

static bool guest_multiply(void *argument)
{
    struct guest_run *g = argument;
    const bool done = g->guest->run(GUEST_MULTIPLY, g->next) == 0;
    g->next = (g->next + 1) % g->places;
    return done;
}

static bool guest_serves(const struct work *w, enum guest_way way, char *text, size_t room)
{
    const struct guest *guest = w->bench->guest;
    const void *a[GPU_MOST_PLACES], *b[GPU_MOST_PLACES], *a_scales[GPU_MOST_PLACES], *b_scales[GPU_MOST_PLACES];
    const struct places *p = w->coded;
    for (int i = 0; i < p->count; i++) {
        a[i] = p->a[i].matrix.data, a_scales[i] = p->a[i].matrix.scales;
        b[i] = p->b[i].matrix.data, b_scales[i] = p->b[i].matrix.scales;
    }
    const struct guest_product product = { p->shape.m,
                                           p->shape.n,
                                           p->shape.k,
                                           p->count,
                                           bsm_format_get((int)p->pair.a)->name,
                                           bsm_format_get((int)p->pair.b)->name,
                                           a,
                                           a_scales,
                                           b,
                                           b_scales,
                                           p->d,
                                           w->unprepared.a_values,
                                           w->unprepared.b_values,
                                           w->bench->gpu.stream,
                                           p->alpha,
                                           w->bench->quick };
    snprintf(text, room, "no PyTorch and Triton");
    gpu_wait(&w->bench->gpu);
    return guest != NULL && guest->prepare((int)way, &product, text, (int64_t)room) != 0;
}

/* The first row of D is the library's, up to two roundings to bf16: a peer that computes something else is no peer. */
static bool same_results(const struct work *w, struct own *own, struct guest_run *guest)
{
    const struct gpu *gpu = &w->bench->gpu;
    const int64_t n = w->coded->shape.n;
    uint16_t *row = malloc((size_t)n * 2 * sizeof *row);
    double largest = 0, difference = 0;
    if (row == NULL) gpu_stop("no memory");
    own->next = 0, guest->next = 0;
    for (int i = 0; i < 2; i++) {
        if (i == 0 ? !own_run(own) : !guest_multiply(guest)) gpu_stop("a product to compare with failed");
        gpu_library(bsm_device_read(gpu->context, row + i * n, w->coded->d[0], (size_t)n * sizeof *row), "a row of D");
    }
    for (int64_t j = 0; j < n; j++) {
        const double ours = (double)bsm_element_decode(BSM_BF16, row[j]), theirs = (double)bsm_element_decode(BSM_BF16, row[n + j]);
        largest = fmax(largest, fabs(ours));
        difference = fabs(ours - theirs) <= difference ? difference : fabs(ours - theirs);
    }
    free(row);
    return difference <= largest / 128;
}

static void against_triton(struct work *w)
{
    char text[sizeof((struct row *)0)->peer];
    const bool serves = guest_serves(w, GUEST_MULTIPLY, text, sizeof text);
    struct guest_run argument = { w->bench->guest, w->coded->count, 0 };
    struct way ours = way_of("our product", own_run, (void *)&w->own), theirs = way_of(text, guest_multiply, &argument);
    struct row *row = new_row(w, SECTION_TRITON, text, w->own.kernel);
    if (serves && !same_results(w, &w->own, &argument)) snprintf(row->peer, sizeof row->peer, "wrong results: %.80s", text);
    else if (serves) compare(w, row, &ours, &theirs);
}

/* Who dequantizes faster here: the library, or a guest?  The row's text names them both. */
static const struct through_cublas *faster_dequantizer(struct work *w, char *text, size_t room)
{
    char guests[64];
    snprintf(text, room, "bsm_dequantize + cuBLAS");
    if (w->bench->guest == NULL || !guest_serves(w, GUEST_DEQUANTIZE, guests, sizeof guests)) return &w->unprepared;
    struct way library = way_of("bsm_dequantize", cublas_run, &w->unprepared),
               guest = way_of(guests, cublas_run, &w->unprepared_by_guest);
    struct loop_state state;
    loop_prepare(&w->bench->gpu, &library, CALLS_OF_A_GRAPH), loop_prepare(&w->bench->gpu, &guest, CALLS_OF_A_GRAPH);
    loop_run(&w->bench->gpu, (struct way *[]){ &library, &guest }, 2, (w->bench->rounds + 2) / 3, &state);
    loop_release(&w->bench->gpu, &library), loop_release(&w->bench->gpu, &guest);
    const double ours = 1e6 * measure_median(&library.contender), theirs = 1e6 * measure_median(&guest.contender);
    if (theirs < ours) snprintf(text, room, "%s + cuBLAS (by bsm_dequantize %.1f us)", guests, ours);
    else snprintf(text, room, "bsm_dequantize + cuBLAS (by %s %.1f us)", guests, theirs);
    return theirs < ours ? &w->unprepared_by_guest : &w->unprepared;
}

/* Parts ------------------------------------------------------------------------------------------------------------------------ */

struct copies {
    struct gpu *gpu;
    void *to, *from;
    int64_t bytes;
};
static bool copy_run(void *argument)
{
    const struct copies *c = argument;
    gpu_copy(c->gpu, c->to, c->from, c->bytes);
    return true;
}

static bool dequantize_both(void *argument)
{
    struct work *w = argument;
    const int i = w->own.next;
    const struct coded *operands[] = { &w->coded->a[i], &w->coded->b[i] };
    void *const rooms[] = { w->unprepared.a_values, w->unprepared.b_values };
    for (int o = 0; o < 2; o++)
        if (operands[o]->matrix.format != BSM_FORMAT_BF16) coded_dequantize(&w->bench->gpu, operands[o], rooms[o]);
    w->own.next = (i + 1) % w->coded->count;
    return true;
}

/* Bytes that dequantizing reads and writes. */
static int64_t dequantized_bytes(const struct work *w)
{
    int64_t bytes = 0;
    const struct coded *operands[] = { &w->coded->a[0], &w->coded->b[0] };
    for (int o = 0; o < 2; o++)
        if (operands[o]->matrix.format != BSM_FORMAT_BF16)
            bytes += operands[o]->bytes + 2 * operands[o]->matrix.rows * operands[o]->matrix.columns;
    return bytes;
}

static void measure_parts(struct work *w)
{
    const struct shape *s = &w->coded->shape;
    struct copies copies = { &w->bench->gpu, w->unprepared.a_values, w->bf16->a[0].matrix.data, 0 };
    const int64_t whole = dequantized_bytes(w) / 2, room = 2 * s->k * (s->m + s->n);
    copies.bytes = whole < room ? whole : room; /* both operands' places lie one behind the other */
    struct way product = way_of("the product", own_run, &w->own), product_alone = product;
    struct way gemm = way_of("its GEMM alone", own_run, &w->own_bf16), prepared = way_of("cuBLAS", cublas_run, &w->prepared);
    struct way dequantize = way_of("dequantizing alone", dequantize_both, w), copy = way_of("copy", copy_run, &copies);
    compare(w, new_row(w, SECTION_PARTS, "our GEMM on bf16 dequantized beforehand", "whole product"), &product, &gemm);
    compare(w, new_row(w, SECTION_PARTS, "device copy of its bytes", "bsm_dequantize of A and B"), &dequantize, &copy);
    compare(w, new_row(w, SECTION_PARTS, "dequantizing alone, in turn", "whole product"), &product_alone, &dequantize);
    if (w->bench->gpu.cublas.handle == NULL) return;
    compare(w, new_row(w, SECTION_PARTS, "cuBLAS on the same bf16", "our GEMM alone"), &gemm, &prepared);
}

/* Works ------------------------------------------------------------------------------------------------------------------------ */

/* Two ways, each at its own clock. */
static void settle(struct work *w, enum section section, const char *peer, bool (*run)(void *), void *argument)
{
    struct way ours = way_of("our product", own_run, &w->own), theirs = way_of(peer, run, argument);
    struct loop_state states[2];
    loop_run_settled(&w->bench->gpu, (struct way *[]){ &ours, &theirs }, 2, SETTLED_ROUNDS,
                     w->bench->divide > 1 ? 0 : settled_seconds, states);
    row_times(new_row(w, section, peer, w->own.kernel), &ours, &theirs, &states[0], &states[1]);
}

/* Ours, cuBLAS, and, unless `unprepared` is NULL, dequantizing with cuBLAS, each at its own clock. */
static void measure_settled(struct work *w, enum section prepared, const struct through_cublas *unprepared, const char *peer)
{
    enum { OURS, PREPARED, UNPREPARED, WAYS };
    struct way ways[] = { [OURS] = way_of("our product", own_run, &w->own),
                          [PREPARED] = way_of("cuBLAS", cublas_run, &w->prepared),
                          [UNPREPARED] = way_of(peer, cublas_run, (void *)unprepared) };
    struct loop_state states[WAYS];
    const double seconds = w->bench->divide > 1 ? 0 : settled_seconds;
    loop_run_settled(&w->bench->gpu, (struct way *[]){ &ways[OURS], &ways[PREPARED], &ways[UNPREPARED] },
                     unprepared != NULL ? WAYS : UNPREPARED, SETTLED_ROUNDS, seconds, states);
    row_times(new_row(w, prepared, "cuBLAS on bf16", w->own.kernel), &ways[OURS], &ways[PREPARED], &states[OURS],
              &states[PREPARED]);
    if (unprepared == NULL) return;
    row_times(new_row(w, SECTION_SETTLED_DEQUANTIZED, peer, w->own.kernel), &ways[OURS], &ways[UNPREPARED], &states[OURS],
              &states[UNPREPARED]);
}

/* bf16 alone has nothing to dequantize, and Triton multiplies it without scales. */
static bool has_scales(const struct pair *pair) { return pair->b != BSM_FORMAT_BF16; }

void measure_large(struct bench *bench, const struct pair *pair, const struct shape *shape)
{
    struct work w;
    char peer[sizeof((struct row *)0)->peer];
    work_make(bench, pair, shape, BSM_COMPUTE_EXACT, &w);
    if (bench->gpu.cublas.handle != NULL) {
        against(&w, SECTION_PREPARED, "cuBLAS on bf16", cublas_run, &w.prepared);
        const struct through_cublas *faster = has_scales(pair) ? faster_dequantizer(&w, peer, sizeof peer) : NULL;
        if (faster != NULL) against(&w, SECTION_DEQUANTIZED, peer, cublas_run, (void *)faster);
        measure_settled(&w, SECTION_SETTLED_PREPARED, faster, peer);
    }
    if (has_scales(pair)) against_triton(&w);
    if (bench->parts && has_scales(pair)) measure_parts(&w);
    work_free(&w);
}

/* The codes of both operands as cuBLASLt multiplies them with one scale for each matrix. */
struct fp8_product {
    struct work *work;
    struct cublas_lt lt;
    int next;
};

static bool fp8_multiply(void *argument)
{
    struct fp8_product *p = argument;
    const struct places *of = p->work->coded;
    cublas_lt_run(&p->work->bench->gpu, &p->lt, &of->a[p->next].matrix, &of->b[p->next].matrix, of->d[p->next]);
    p->next = (p->next + 1) % of->count;
    return true;
}

static void against_fp8(struct work *w)
{
    const struct pair *pair = &w->coded->pair;
    const struct shape *s = &w->coded->shape;
    struct fp8_product product = { .work = w };
    if (pair->a != BSM_MXFP8_E4M3 || pair->b != BSM_MXFP8_E4M3) return;
    cublas_lt_prepare_one_scale(&w->bench->gpu, pair->a, pair->b, s->m, s->n, s->k, &product.lt);
    if (product.lt.why[0] != '\0') {
        (void)new_row(w, SECTION_FAST_FP8, product.lt.why, w->own.kernel);
        return;
    }
    against(w, SECTION_FAST_FP8, product.lt.name, fp8_multiply, &product);
    settle(w, SECTION_SETTLED_FAST_FP8, product.lt.name, fp8_multiply, &product);
}

void measure_fast(struct bench *bench, const struct pair *pair, const struct shape *shape)
{
    struct work w;
    if (bench->gpu.cublas.handle == NULL) return;
    work_make(bench, pair, shape, BSM_COMPUTE_FAST, &w);
    against(&w, SECTION_FAST, "cuBLAS on bf16", cublas_run, &w.prepared);
    measure_settled(&w, SECTION_SETTLED_FAST, NULL, "");
    against_fp8(&w);
    work_free(&w);
}

/* The same with weights packed beforehand, where the plan has a kernel that reads them so. */
static void against_prepacked(struct work *w, enum section section, const char *peer, const struct through_cublas *cublas)
{
    struct own packed;
    char kernel[sizeof packed.kernel + 24];
    if (!own_make_prepacked(w->bench, w->coded, BSM_FORMAT_BF16, &packed)) return;
    snprintf(kernel, sizeof kernel, "%s, prepacked", packed.kernel);
    struct way ours = way_of("our product", own_run, &packed), theirs = way_of(peer, cublas_run, (void *)cublas);
    compare(w, new_row(w, section, peer, kernel), &ours, &theirs);
    own_free(&packed);
}

void measure_small(struct bench *bench, const struct pair *pair, const struct shape *shape)
{
    struct work w;
    char peer[sizeof((struct row *)0)->peer];
    work_make(bench, pair, shape, BSM_COMPUTE_EXACT, &w);
    if (bench->gpu.cublas.handle != NULL) {
        const struct through_cublas *faster = has_scales(pair) ? faster_dequantizer(&w, peer, sizeof peer) : NULL;
        if (faster != NULL) against(&w, SECTION_SMALL, peer, cublas_run, (void *)faster), against_prepacked(&w, SECTION_SMALL_PREPACKED, peer, faster);
        against(&w, SECTION_SMALL_PREPARED, "cuBLAS on bf16", cublas_run, &w.prepared);
    }
    work_free(&w);
}

void measure_tokens(struct bench *bench, const struct pair *pair, const struct shape *shape)
{
    enum { SHORT_WEIGHTS = 4096 };
    struct work w;
    const enum section section = shape->n < SHORT_WEIGHTS ? SECTION_SHORT : shape->m > 16 ? SECTION_TENS : SECTION_TOKENS;
    work_make(bench, pair, shape, BSM_COMPUTE_EXACT, &w);
    if (bench->gpu.cublas.handle != NULL) {
        against(&w, section, "cuBLAS on bf16", cublas_run, &w.prepared);
        against_prepacked(&w, section, "cuBLAS on bf16", &w.prepared);
    }
    work_free(&w);
}
