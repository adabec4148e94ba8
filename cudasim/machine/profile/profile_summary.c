/* From counts by instruction to tables: kinds of instructions, bytes, matrix products, and the estimate of times. */
#include "profile.h"
#include "rates.h"
#include "machine/core/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of instructions ---- */

/* The row's words up to the first that varies, without those that may be left out: "ld", "bar.sync". */
static void mnemonic(const struct insn *in, char *name)
{
    size_t used = 0, word = 0; /* word: where the last one begins */
    const char *at = in->row->pattern;
    for (; *at != '\0' && strchr("($#", *at) == NULL && used + 1 < PROFILE_NAME_BYTES; at++) {
        if (*at == '{') {
            while (*at != '}') at++;
            continue;
        }
        if (*at == '.') word = used;
        name[used++] = *at;
    }
    name[*at == '#' || *at == '$' ? word : used] = '\0';
}

static struct profile_kind *kind_named(struct profile_summary *s, const char *name)
{
    for (uint32_t i = 0; i < s->kinds; i++)
        if (strcmp(s->kind[i].name, name) == 0) return &s->kind[i];
    struct profile_kind *k = &s->kind[s->kinds++];
    snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

static int by_warps(const void *a, const void *b)
{
    const struct profile_kind *x = a, *y = b;
    if (x->warps != y->warps) return x->warps < y->warps ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* ---- matrix products ---- */

struct shape {
    uint64_t m, n, k;
};

/* ".m64n128k16" in a name, and the words behind it. */
static const char *find_shape(const char *name, struct shape *shape)
{
    for (const char *at = strstr(name, ".m"); at != NULL; at = strstr(at + 1, ".m")) {
        unsigned long long m, n, k;
        int used = 0;
        if (sscanf(at, ".m%4llun%4lluk%4llu%n", &m, &n, &k, &used) != 3) continue;
        *shape = (struct shape){ m, n, k };
        return at + used;
    }
    return NULL;
}

/* The type of A: of the types behind the shape (D, A, B, ...), the second. */
static const char *type_of_a(const char *words)
{
    int found = 0;
    while (*words == '.') {
        const size_t length = strcspn(words + 1, ".");
        const enum ptx_type type = type_named(words + 1, length);
        if (type != T_NONE && ++found == 2) return type_name(type);
        words += 1 + length;
    }
    return "";
}

static void add_product(struct profile_summary *s, const struct grid *grid, uint32_t pc,
                        const struct insn_counts *counts)
{
    const char *pattern = grid->code[pc].row->pattern;
    const bool warpgroup = strncmp(pattern, "wgmma.mma_async", 15) == 0;
    if (!warpgroup && strncmp(pattern, "mma.", 4) != 0) return;
    char name[PROFILE_NAME_BYTES];
    struct shape shape;
    statement_name(grid->module, pc, name, sizeof name);
    const char *rest = find_shape(name, &shape);
    if (rest == NULL) return;
    struct profile_product *p = NULL;
    for (uint32_t i = 0; i < s->products && p == NULL; i++)
        if (strcmp(s->product[i].name, name) == 0) p = &s->product[i];
    if (p == NULL) {
        p = &s->product[s->products++];
        *p = (struct profile_product){ .type = type_of_a(rest), .sparse = strstr(name, ".sp") != NULL };
        memcpy(p->name, name, sizeof name);
    }
    const uint64_t times = warpgroup ? counts->warps / 4 : counts->warps; /* four warps execute one wgmma */
    p->instructions += times;
    p->operations += times * 2 * shape.m * shape.n * shape.k;
}

/* ---- bytes ---- */

static int traffic_of(enum profile_access access)
{
    switch (access) {
    case ACCESS_LOAD:
    case ACCESS_STORE: return TRAFFIC_THREADS;
    case ACCESS_ATOMIC:
    case ACCESS_REDUCE: return TRAFFIC_ATOMIC;
    case ACCESS_LOAD_MATRIX:
    case ACCESS_STORE_MATRIX: return TRAFFIC_MATRIX;
    case ACCESS_COPY: return TRAFFIC_COPY;
    default: return TRAFFIC_BULK;
    }
}

/* ---- times ---- */

static bool one_of(const char *word, size_t length, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == length && memcmp(*list, word, length) == 0) return true;
    return false;
}

/* Which pipe executes it; RATE_ISSUE: it needs an issue slot and nothing else that has a rate here. */
static enum rate_engine pipe_of(const struct insn *in)
{
    static const char *const arithmetic[] = { "add", "sub",  "mul",  "mad",  "fma",      "min",   "max", "neg", "abs",
                                              "set", "setp", "selp", "slct", "copysign", "testp", "div", "rem", NULL };
    static const char *const integer[] = { "and",  "or",   "xor",  "not",  "cnot",  "lop3",  "shl",
                                           "shr",  "shf",  "prmt", "bfe",  "bfi",   "bfind", "brev",
                                           "clz",  "popc", "fns",  "sad",  "mul24", "mad24", "dp4a",
                                           "dp2a", "addc", "subc", "madc", "bmsk",  "szext", NULL };
    static const char *const special[] = { "ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", NULL };
    const char *name = in->row->pattern;
    const size_t length = strcspn(name, ".{($");
    const enum ptx_type type = (enum ptx_type)in->type[0];
    if (one_of(name, length, special)) return RATE_SPECIAL;
    if (length == 3 && memcmp(name, "cvt", 3) == 0) return RATE_CONVERSION;
    if (length == 4 && memcmp(name, "shfl", 4) == 0) return RATE_SHUFFLE;
    if (length == 5 && memcmp(name, "redux", 5) == 0) return RATE_REDUX;
    if (one_of(name, length, integer)) return RATE_INTEGER;
    if (!one_of(name, length, arithmetic)) return RATE_ISSUE;
    if (type == T_F64) return RATE_FP64;
    return type_kind(type) == 'f' || type == T_F32X2 ? RATE_FP32 : RATE_INTEGER;
}

static void add_time(struct profile_summary *s, const struct rate *rate, double cycles, double seconds)
{
    if (seconds > 0)
        s->time[s->times++] =
            (struct profile_time){ .engine = rate->engine, .source = rate->source, .cycles = cycles,
                                   .seconds = seconds };
}

static int by_seconds(const void *a, const void *b)
{
    const struct profile_time *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

/* All SMs that have a CTA share the work evenly. */
static void estimate(struct profile_summary *s, const struct profile *profile, const struct grid *grid)
{
    const struct device_rates *r = rates_of(grid->machine->device->name);
    if (r == NULL) return;
    const uint64_t ctas = (uint64_t)grid->launch->grid[0] * grid->launch->grid[1] * grid->launch->grid[2];
    s->sms = ctas < r->sms ? (uint32_t)ctas : r->sms;
    double threads[RATE_COUNT] = { 0 }, tensor = 0, memory = 0, shared = 0;
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *c = &profile->counts[i];
        const enum rate_engine pipe = pipe_of(&grid->code[i]);
        if (pipe != RATE_ISSUE) threads[pipe] += (double)c->warps * LANES;
        threads[RATE_ISSUE] += (double)c->warps * LANES;
        memory += (double)(c->bytes[GLOBAL_READ] + c->bytes[GLOBAL_WRITTEN]);
        shared += c->wavefronts != 0 ? 128 * (double)c->wavefronts
                                     : (double)(c->bytes[SHARED_READ] + c->bytes[SHARED_WRITTEN]);
    }
    threads[RATE_SHARED] = shared;
    for (uint32_t i = 0; i < s->products; i++) {
        const double rate = rate_of_products(r->device, s->product[i].type);
        if (rate > 0) tensor += (double)s->product[i].operations / (s->product[i].sparse ? 2 * rate : rate);
    }
    for (int e = RATE_ISSUE; e <= RATE_SHARED; e++) {
        const double cycles = threads[e] / r->rate[e].per_clock / s->sms;
        add_time(s, &r->rate[e], cycles, cycles / r->clock_hz);
    }
    add_time(s, &r->rate[RATE_TENSOR], tensor / s->sms, tensor / s->sms / r->clock_hz);
    add_time(s, &r->rate[RATE_MEMORY], 0, memory / r->memory_bytes);
    qsort(s->time, s->times, sizeof *s->time, by_seconds);
}

/* ---- all of it ---- */

bool profile_summarise(struct profile_summary *s, const struct profile *profile, const struct grid *grid)
{
    static const char *const names[TRAFFIC_COUNT] = { [TRAFFIC_THREADS] = "loads and stores",
                                                      [TRAFFIC_MATRIX] = "ldmatrix, stmatrix",
                                                      [TRAFFIC_ATOMIC] = "atomics",
                                                      [TRAFFIC_COPY] = "cp.async",
                                                      [TRAFFIC_BULK] = "bulk copies (TMA)" };
    const uint32_t count = profile->code_count + 1;
    *s = (struct profile_summary){ .kind = calloc(count, sizeof *s->kind),
                                   .product = calloc(count, sizeof *s->product),
                                   .time = calloc(RATE_COUNT, sizeof *s->time) };
    if (s->kind == NULL || s->product == NULL || s->time == NULL) return false;
    for (int i = 0; i < TRAFFIC_COUNT; i++) s->traffic[i].name = names[i];
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *c = &profile->counts[i];
        if (c->warps == 0 && c->waits == 0) continue;
        char name[PROFILE_NAME_BYTES];
        mnemonic(&grid->code[i], name);
        struct profile_kind *kind = kind_named(s, name);
        kind->warps += c->warps, kind->threads += c->threads;
        s->warps += c->warps, s->threads += c->threads;
        s->wavefronts += c->wavefronts, s->ideal += c->ideal;
        uint64_t *bytes = s->traffic[traffic_of((enum profile_access)profile->access[i])].bytes;
        for (int p = 0; p < PROFILE_PLACES; p++) bytes[p] += c->bytes[p];
        add_product(s, grid, i, c);
    }
    qsort(s->kind, s->kinds, sizeof *s->kind, by_warps);
    estimate(s, profile, grid);
    return true;
}

void profile_summary_free(struct profile_summary *s)
{
    free(s->kind), free(s->product), free(s->time);
    *s = (struct profile_summary){ 0 };
}
