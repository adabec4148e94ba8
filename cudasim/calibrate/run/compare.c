/* Hardware against simulator: bits, or the manual's error. */
#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/forms/operands.h"

/* ---- numbers ---- */

static double small_float(uint64_t bits, int mantissa, int exponent)
{
    const uint64_t ones = (UINT64_C(1) << mantissa) - 1, top = (UINT64_C(1) << exponent) - 1;
    const int bias = (int)(top >> 1);
    const uint64_t e = bits >> mantissa & top, m = bits & ones;
    double value = e == top ? (m != 0 ? NAN : INFINITY)
                            : ldexp((double)(e == 0 ? m : m | (ones + 1)), (e == 0 ? 1 : (int)e) - bias - mantissa);
    return (bits >> (mantissa + exponent) & 1) != 0 ? -value : value;
}

static double number_of(enum ptx_type type, const uint8_t *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, type_bytes(type));
    switch (type) {
    case T_F16: return small_float(bits, 10, 5);
    case T_BF16: return small_float(bits, 7, 8);
    case T_F32: return small_float(bits, 23, 8);
    default: return small_float(bits, 52, 11);
    }
}

/* Place of the number among all of its type: neighbours differ by 1. */
static int64_t rank_of(enum ptx_type type, const uint8_t *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, type_bytes(type));
    const uint64_t sign = UINT64_C(1) << (type_bits(type) - 1);
    return (bits & sign) != 0 ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

static bool within(const struct calibration_case *c, const uint8_t *a, const uint8_t *b, struct distance *d)
{
    const enum ptx_type type = (enum ptx_type)c->number;
    const double x = number_of(type, a), y = number_of(type, b);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y)) return memcmp(a, b, type_bytes(type)) == 0;
    const int64_t rank_a = rank_of(type, a), rank_b = rank_of(type, b);
    const uint64_t ulp = (uint64_t)(rank_a > rank_b ? rank_a - rank_b : rank_b - rank_a);
    const double difference = fabs(x - y), larger = fmax(fabs(x), fabs(y)),
                 unit = ulp == 0 ? 0 : difference / (double)ulp;
    if (ulp > d->ulp) d->ulp = ulp;
    if (difference > d->absolute) d->absolute = difference;
    if (larger != 0 && difference / larger > d->relative) d->relative = difference / larger;
    const double factor = c->rule == CALIBRATION_RELATIVE ? larger
                          : c->rule == CALIBRATION_EITHER ? fmax(larger, 1)
                                                          : 1;
    if (c->rule == CALIBRATION_ULP) return (double)ulp <= c->bound;
    return difference <= unit / 2 + c->bound * factor;
}

/* ---- one case ---- */

struct comparison {
    const struct calibration_case *c;
    const uint8_t *hardware, *simulated;
    uint8_t *input;
    struct layout layout;
    int shown, show;
    uint64_t different;
};

static void print_bytes(const uint8_t *bytes, size_t count)
{
    printf("0x");
    while (count-- > 0) printf("%02x", bytes[count]);
}

static void show_mismatch(struct comparison *m, size_t at, size_t bytes, const char *operands)
{
    if (m->shown++ >= m->show) return;
    printf("    %s: hardware ", operands);
    print_bytes(m->hardware + at, bytes);
    printf(", simulated ");
    print_bytes(m->simulated + at, bytes);
    printf("\n");
}

static bool in_reach(const struct comparison *m, uint32_t tuple)
{
    const struct calibration_case *c = m->c;
    if (c->high == 0) return true;
    const double x = fabs(
        number_of((enum ptx_type)c->number, m->input + m->layout.stride * tuple + m->layout.slot[c->reach_operand]));
    return x >= c->low && x <= c->high;
}

static bool result_good(struct comparison *m, int result, uint32_t tuple, size_t at, struct distance *d)
{
    const struct calibration_case *c = m->c;
    const size_t bytes = result_bytes((enum ptx_type)m->layout.result[result]);
    if (memcmp(m->hardware + at, m->simulated + at, bytes) == 0) return true;
    if (c->rule == CALIBRATION_BITS) return false;
    if (!in_reach(m, tuple)) return true;
    const size_t step = type_bytes((enum ptx_type)c->number);
    bool good = true;
    for (size_t i = 0; i < bytes; i += step)
        if (!within(c, m->hardware + at + i, m->simulated + at + i, d)) good = false;
    return good;
}

static void compare_tuples(struct comparison *m, struct distance *d)
{
    char operands[512], place[560];
    for (int result = 0; result < m->layout.results; result++)
        for (uint32_t t = 0; t < m->layout.tuples; t++) {
            const size_t bytes = result_bytes((enum ptx_type)m->layout.result[result]),
                         at = m->layout.place[result] + t * bytes;
            if (result_good(m, result, t, at, d)) continue;
            m->different += bytes;
            operands_print(&m->layout, m->input, t, operands, sizeof operands);
            snprintf(place, sizeof place, "result %d of %s", result, operands);
            show_mismatch(m, at, bytes, place);
        }
}

static void compare_bytes(struct comparison *m)
{
    char place[64];
    for (size_t i = 0; i < m->c->output_bytes;) {
        const size_t bytes = m->c->output_bytes - i < 4 ? m->c->output_bytes - i : 4;
        snprintf(place, sizeof place, "bytes from %zu", i);
        if (memcmp(m->hardware + i, m->simulated + i, bytes) != 0) {
            show_mismatch(m, i, bytes, place);
            m->different += bytes;
        }
        i += bytes;
    }
}

enum verdict compare_case(const struct calibration_case *c, const uint8_t *hardware, const uint8_t *simulated, int show,
                          uint64_t *different, struct distance *distance)
{
    *distance = (struct distance){ .ulp = 0 };
    *different = 0;
    if (memcmp(hardware, simulated, c->output_bytes) == 0)
        return c->rule == CALIBRATION_BITS ? VERDICT_EQUAL : VERDICT_WITHIN;
    struct comparison m = { .c = c, .hardware = hardware, .simulated = simulated, .show = show };
    m.input = malloc(c->input_bytes + 16);
    if (m.input == NULL) abort();
    calibration_fill(c, m.input);
    if (c->describe != NULL && !c->scattered) {
        layout_read(&m.layout, c->describe, c->grid[0] * c->block[0]);
        compare_tuples(&m, distance);
    } else {
        compare_bytes(&m);
    }
    free(m.input);
    *different = m.different;
    return m.different != 0 ? VERDICT_DIFFERENT : VERDICT_WITHIN;
}

/* ---- whole runs ---- */

static enum verdict pair_verdict(const struct calibration_case *c, const struct record *hardware,
                                 const struct record *simulated, uint64_t *different, struct distance *distance)
{
    if (hardware == NULL || simulated == NULL || hardware->identity != simulated->identity) return VERDICT_MISSING;
    if (hardware->identity != calibration_identity(c)) return VERDICT_MISSING;
    if (hardware->outcome == OUTCOME_REFUSED) return simulated->outcome == OUTCOME_REFUSED ? VERDICT_REFUSED_BOTH
                                                                                             : VERDICT_REFUSED_FIRST;
    if (simulated->outcome == OUTCOME_REFUSED) return VERDICT_REFUSED_SECOND;
    if (hardware->outcome != OUTCOME_RAN || simulated->outcome != OUTCOME_RAN) return VERDICT_FAULTED;
    if (hardware->size != c->output_bytes || simulated->size != c->output_bytes) return VERDICT_MISSING;
    return compare_case(c, hardware->bytes, simulated->bytes, 4, different, distance);
}

static void print_verdict(const struct calibration_case *c, enum verdict v, const struct record *hardware,
                          const struct record *simulated, uint64_t different, const struct distance *d)
{
    static const char *const words[] = { "equal",
                                         "within the manual's error",
                                         "DIFFERENT",
                                         "refused by both",
                                         "REFUSED by the hardware's compiler only",
                                         "REFUSED by the simulator only",
                                         "FAULTED",
                                         "NOT THE SAME CASE in both runs" };
    if (v == VERDICT_EQUAL || v == VERDICT_REFUSED_BOTH) return;
    printf("%s: %s", c->name, words[v]);
    if (v == VERDICT_WITHIN || v == VERDICT_DIFFERENT) {
        if (different != 0) printf(", %" PRIu64 " of %zu bytes", different, c->output_bytes);
        if (c->rule != CALIBRATION_BITS)
            printf(", at most %" PRIu64 " ulp, %.3g absolute, %.3g relative", d->ulp, d->absolute, d->relative);
    } else if (hardware != NULL && simulated != NULL) {
        printf(": %s",
               hardware->sentence != NULL && hardware->sentence[0] != '\0' ? hardware->sentence : simulated->sentence);
    }
    printf("\n");
}

static void write_kept(FILE *out, const struct calibration_case *c, enum verdict v, const struct record *hardware,
                       const struct record *simulated, const struct distance *d)
{
    const uint64_t identity = calibration_identity(c);
    if (v == VERDICT_EQUAL || v == VERDICT_DIFFERENT)
        fprintf(out, "%c %016" PRIx64 " %016" PRIx64 " 0 %s\n", v == VERDICT_EQUAL ? KEPT_EQUAL : KEPT_DIFFERENT,
                identity, digest_of(hardware->bytes, hardware->size), c->name);
    if (v == VERDICT_WITHIN)
        fprintf(out, "%c %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %s\n", KEPT_WITHIN, identity,
                digest_of(simulated->bytes, simulated->size), d->ulp, c->name);
    if (v == VERDICT_REFUSED_BOTH) fprintf(out, "%c %016" PRIx64 " 0 0 %s\n", KEPT_REFUSED, identity, c->name);
}

static void print_counts(const struct verdicts *v, const struct result *hardware, uint32_t cases)
{
    printf("%s, driver %d.%d, %s: %u cases; %u equal, %u within the manual's error, %u different, %u refused by both, "
           "%u refused by one, %u faulted, %u missing; %" PRIu64 " bytes compared, %" PRIu64 " differ\n",
           hardware->device, hardware->driver / 1000, hardware->driver % 1000 / 10, hardware->date, cases,
           v->count[VERDICT_EQUAL], v->count[VERDICT_WITHIN], v->count[VERDICT_DIFFERENT],
           v->count[VERDICT_REFUSED_BOTH], v->count[VERDICT_REFUSED_FIRST] + v->count[VERDICT_REFUSED_SECOND],
           v->count[VERDICT_FAULTED], v->count[VERDICT_MISSING], v->bytes, v->different_bytes);
}

bool compare_runs(const struct calibration *c, const struct result *hardware, const struct result *simulated,
                  const char *keep)
{
    struct verdicts counts = { .bytes = 0 };
    FILE *out = keep == NULL ? NULL : fopen(keep, "w");
    if (out != NULL)
        fprintf(out, "# Results of hardware, by cudasim-calibrate: state, case, digest of the output, ulp, name\n"
                     "device %s\ndriver %d\n"
                     "date %s\n", hardware->device, hardware->driver, hardware->date);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct calibration_case *one = &c->cases[i];
        const struct record *h = result_find(hardware, one->name), *s = result_find(simulated, one->name);
        uint64_t different = 0;
        struct distance distance = { .ulp = 0 };
        const enum verdict v = pair_verdict(one, h, s, &different, &distance);
        counts.count[v]++;
        if (v <= VERDICT_DIFFERENT) counts.bytes += one->output_bytes, counts.different_bytes += different;
        print_verdict(one, v, h, s, different, &distance);
        if (out != NULL && h != NULL && s != NULL) write_kept(out, one, v, h, s, &distance);
    }
    if (out != NULL && fclose(out) != 0) fprintf(stderr, "%s: cannot be written\n", keep);
    print_counts(&counts, hardware, c->count);
    return counts.count[VERDICT_EQUAL] + counts.count[VERDICT_WITHIN] + counts.count[VERDICT_REFUSED_BOTH] == c->count;
}
