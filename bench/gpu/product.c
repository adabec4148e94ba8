/* One product in device memory, and the ways to compute it, see product.h. */
#include "product.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_NUMBER_OF_B_ALIGNMENT = 128 };

static int64_t d_bytes(const struct shape *s, bsm_format d) { return s->m * s->n * (d == BSM_FORMAT_FP32 ? 4 : 2); }

static struct places *new_places(const struct pair *pair, const struct shape *shape, int count)
{
    struct places *p = calloc(1, sizeof *p);
    if (p == NULL) gpu_stop("no memory");
    p->pair = *pair, p->shape = *shape, p->count = count;
    return p;
}

struct places *places_take(struct bench *bench, const struct pair *pair, const struct shape *s, bsm_format d)
{
    struct gpu *gpu = &bench->gpu;
    const int64_t bytes = coded_bytes(pair->a, s->m, s->k) + coded_bytes(pair->b, s->n, s->k);
    const int64_t first_of_b =
        (s->m * s->k + FIRST_NUMBER_OF_B_ALIGNMENT - 1) / FIRST_NUMBER_OF_B_ALIGNMENT * FIRST_NUMBER_OF_B_ALIGNMENT;
    struct places *p = new_places(pair, s, gpu_places(gpu, bytes));
    for (int i = 0; i < p->count; i++) {
        p->a[i] = coded_take(gpu, pair->a, s->m, s->k, 0);
        p->b[i] = coded_take(gpu, pair->b, s->n, s->k, first_of_b);
        p->d[i] = gpu_take(gpu, d_bytes(s, d));
    }
    p->alpha = (float)((double)p->a[0].tensor_scale * (double)p->b[0].tensor_scale);
    gpu_wait(gpu);
    return p;
}

static struct coded dequantized(struct bench *bench, const struct coded *from)
{
    const int64_t rows = from->matrix.rows, columns = from->matrix.columns;
    struct coded c = { .bytes = 2 * rows * columns, .tensor_scale = 1 };
    c.matrix = plain_rows(BSM_FORMAT_BF16, gpu_take(&bench->gpu, c.bytes), rows, columns);
    coded_dequantize(&bench->gpu, from, c.matrix.data);
    return c;
}

struct places *places_dequantized(struct bench *bench, const struct places *from)
{
    static const struct pair bf16 = { BSM_FORMAT_BF16, BSM_FORMAT_BF16 };
    const struct shape *s = &from->shape;
    const int count = gpu_places(&bench->gpu, 2 * s->k * (s->m + s->n));
    struct places *p = new_places(&bf16, s, count < from->count ? count : from->count);
    for (int i = 0; i < p->count; i++) {
        p->a[i] = dequantized(bench, &from->a[i]);
        p->b[i] = dequantized(bench, &from->b[i]);
        p->d[i] = from->d[i];
    }
    p->alpha = from->alpha;
    gpu_wait(&bench->gpu);
    return p;
}

/* "cuda, kernel NAME, tiles ...": the name alone, which stands behind `words`. */
static void kernel_name(const char *plan, const char *words, char *name, size_t room)
{
    const char *found = strstr(plan, words);
    const char *start = found != NULL ? found + strlen(words) : plan;
    snprintf(name, room, "%.*s", (int)strcspn(start, ","), start);
}

void own_make(struct bench *bench, const struct places *places, bsm_format d, bsm_compute compute, struct own *own)
{
    char plan[768];
    *own = (struct own){ .bench = bench, .places = places };
    for (int i = 0; i < places->count; i++) {
        own->d[i] = plain_rows(d, places->d[i], places->shape.m, places->shape.n);
        own->calls[i] = (bsm_matmul){ .struct_size = sizeof(bsm_matmul),
                                      .a = &places->a[i].matrix,
                                      .b = &places->b[i].matrix,
                                      .d = &own->d[i],
                                      .compute = compute };
    }
    gpu_library(bsm_plan_create(bench->gpu.context, &own->calls[0], &own->plan), "a plan");
    bsm_plan_describe(own->plan, plan, sizeof plan);
    kernel_name(plan, "kernel ", own->kernel, sizeof own->kernel);
    own->workspace = gpu_take(&bench->gpu, (int64_t)bsm_plan_workspace_bytes(own->plan));
}

bool own_make_prepacked(struct bench *bench, const struct places *places, bsm_format d, struct own *own)
{
    char plan[1000];
    own_make(bench, places, d, BSM_COMPUTE_EXACT, own);
    const size_t bytes = bsm_plan_b_panels_bytes(own->plan);
    if (bytes == 0) {
        own_free(own);
        return false;
    }
    bsm_plan_describe(own->plan, plan, sizeof plan);
    kernel_name(plan, "with prepacked B: ", own->kernel, sizeof own->kernel);
    for (int i = 0; i < places->count; i++) {
        void *panels = gpu_take(&bench->gpu, (int64_t)bytes);
        gpu_library(bsm_plan_pack_b(own->plan, &own->calls[i], panels, bytes), "prepacked weights");
        own->calls[i].b_panels = panels;
    }
    gpu_wait(&bench->gpu);
    return true;
}

void own_free(struct own *own) { bsm_plan_destroy(own->plan); }

bool own_run(void *argument)
{
    struct own *own = argument;
    const bsm_status status = bsm_plan_run(own->plan, &own->calls[own->next], own->workspace, bsm_plan_workspace_bytes(own->plan));
    own->next = (own->next + 1) % own->places->count;
    return status == BSM_OK;
}

static const void *values(struct through_cublas *c, const struct coded *operand, void *room)
{
    if (operand->matrix.format == BSM_FORMAT_BF16) return operand->matrix.data;
    if (!c->by_guest) coded_dequantize(&c->bench->gpu, operand, room);
    return room;
}

bool cublas_run(void *argument)
{
    struct through_cublas *c = argument;
    const struct places *p = c->places;
    const int i = c->next;
    if (c->by_guest && c->bench->guest->run(GUEST_DEQUANTIZE, i) != 0) gpu_stop("%s failed to dequantize", c->bench->guest->name);
    const void *a = values(c, &p->a[i], c->a_values), *b = values(c, &p->b[i], c->b_values);
    cublas_multiply(&c->bench->gpu, p->shape.m, p->shape.n, p->shape.k, p->alpha, a, b, p->d[i], BSM_FORMAT_BF16);
    c->next = (i + 1) % p->count;
    return true;
}
