/* Products in blocks: whole numbers where codes are few, so that a block's sum is exact, then a model of rounding. */
#include "product.h"

#include "sums.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* A code's value in units of 2^-unit: a whole number. */
static const int8_t unit[ELEMENTS] = { [ELEMENT_E4M3] = 9, [ELEMENT_E5M2] = 16, [ELEMENT_E2M3] = 3, [ELEMENT_E3M2] = 4,
                                       [ELEMENT_E2M1] = 1 };
static double value8[ELEMENTS][256];
static int16_t whole16[ELEMENTS][64];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (int e = 0; e < ELEMENTS; e++) {
        if (element_bits((enum element)e) > 8) continue;
        for (uint32_t c = 0; c < 1u << element_bits((enum element)e); c++) {
            value8[e][c] = element_value((enum element)e, c);
            if (c < 64 && element_bits((enum element)e) <= 6) whole16[e][c] = (int16_t)ldexp(value8[e][c], unit[e]);
        }
    }
}

static bool few_bits(enum element e) { return element_bits(e) <= 6; }

static double value_of(enum element e, uint16_t code)
{
    return element_bits(e) <= 8 ? value8[e][code] : element_value(e, code);
}

static double scale_of(uint8_t code) { return code == 255 ? NAN : ldexp(1, code - 127); }

struct workspace {
    double a[MOST_DIM][MOST_K], b[MOST_DIM][MOST_K];
    int16_t wa[MOST_DIM][MOST_K], wb[MOST_DIM][MOST_K];
};

static void decode(const struct operand_matrix *m, int dim, int k, double values[MOST_DIM][MOST_K],
                   int16_t wholes[MOST_DIM][MOST_K])
{
    const bool few = few_bits(m->element);
    for (int r = 0; r < dim; r++)
        for (int i = 0; i < k; i++) {
            values[r][i] = value_of(m->element, m->code[r][i]);
            if (few) wholes[r][i] = whole16[m->element][m->code[r][i]];
        }
}

static int32_t dot16(const int16_t *a, const int16_t *b)
{
    int32_t sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += a[i] * b[i];
    return sum;
}

/* e4m3 with anything but e5m2 stays below 2^53 units. */
static double dot64(const double *a, const double *b)
{
    double sum0 = 0, sum1 = 0;
    for (int i = 0; i < BLOCK; i += 2) sum0 += a[i] * b[i], sum1 += a[i + 1] * b[i + 1];
    return sum0 + sum1;
}

static float exact_element(const struct product *p, const struct workspace *w, int m, int n)
{
    double term[MOST_K + 1];
    int terms = 0;
    term[terms++] = p->c[m][n];
    const bool few = few_bits(p->a.element) && few_bits(p->b.element),
               exact = p->scaled && p->a.element != ELEMENT_E5M2 && p->b.element != ELEMENT_E5M2;
    for (int k = 0; k < p->k; k += BLOCK) {
        const double scale = p->scaled ? scale_of(p->a.scale[m][k / BLOCK]) * scale_of(p->b.scale[n][k / BLOCK]) : 1;
        if (few)
            term[terms++] = ldexp((double)dot16(&w->wa[m][k], &w->wb[n][k]), -unit[p->a.element] - unit[p->b.element])
                            * scale;
        else if (exact) term[terms++] = dot64(&w->a[m][k], &w->b[n][k]) * scale;
        else
            for (int i = k; i < k + BLOCK && i < p->k; i++) term[terms++] = w->a[m][i] * w->b[n][i] * scale;
    }
    return sum_exact(term, terms);
}

static float fma_element(const struct product *p, const struct workspace *w, int m, int n)
{
    float d = p->c[m][n];
    for (int k = 0; k < p->k; k += BLOCK) {
        float sum = p->scaled ? 0.0f : d;
        /* a product of two codes is exact in fp64, and so is what is rounded again where it matters */
        for (int i = k; i < k + BLOCK && i < p->k; i++) sum = (float)((double)sum + w->a[m][i] * w->b[n][i]);
        if (!p->scaled) d = sum;
        else d += (float)((double)sum * scale_of(p->a.scale[m][k / BLOCK]) * scale_of(p->b.scale[n][k / BLOCK]));
    }
    return d;
}

static float group_element(const struct product *p, const struct workspace *w, int m, int n)
{
    enum { GROUP = 16 };
    float d = p->c[m][n];
    for (int k = 0; k < p->k; k += GROUP) {
        double term[GROUP];
        const int b = k / BLOCK, count = p->k - k < GROUP ? p->k - k : GROUP;
        const double scale = p->scaled ? scale_of(p->a.scale[m][b]) * scale_of(p->b.scale[n][b]) : 1;
        for (int i = 0; i < count; i++) term[i] = w->a[m][k + i] * w->b[n][k + i] * scale;
        d = sum_group(d, term, count);
    }
    return d;
}

void product_run(struct product *p, enum rounding rounding)
{
    struct workspace w;
    pthread_once(&filled, fill);
    decode(&p->a, p->dim, p->k, w.a, w.wa);
    decode(&p->b, p->dim, p->k, w.b, w.wb);
    for (int m = 0; m < p->dim; m++)
        for (int n = 0; n < p->dim; n++)
            p->d[m][n] = rounding == ROUNDING_EXACT ? exact_element(p, &w, m, n)
                         : rounding == ROUNDING_FMA ? fma_element(p, &w, m, n)
                                                    : group_element(p, &w, m, n);
}
