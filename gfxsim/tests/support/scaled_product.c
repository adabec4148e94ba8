/* Products by definition, in fp64: every product of two codes and two scales is exact there. */
#include "scaled_product.h"

#include <math.h>
#include <stdlib.h>

static uint8_t draw(struct test *t, enum element e, bool exact)
{
    for (;;) {
        const uint8_t code = (uint8_t)rnd_below(t, 1 << element_bits(e));
        const double value = element_value(e, code);
        if (isfinite(value) && (!exact || (fabs(value) <= 4 && value == nearbyint(value)))) return code;
    }
}

bool side_open(struct side *s, struct test *t, enum element element, int rows, int k, bool exact)
{
    *s = (struct side){ .element = element, .rows = rows, .k = k };
    s->code = malloc((size_t)rows * (size_t)k);
    s->scale = malloc((size_t)rows * (size_t)k / 32);
    s->value = malloc((size_t)rows * (size_t)k * sizeof *s->value);
    if (s->code == NULL || s->scale == NULL || s->value == NULL) return false;
    for (int i = 0; i < rows * k; i++) s->code[i] = draw(t, element, exact);
    for (int i = 0; i < rows * k / 32; i++)
        s->scale[i] = (uint8_t)(exact ? rnd_between(t, 126, 128) : rnd_between(t, 120, 134));
    for (int i = 0; i < rows * k; i++)
        s->value[i] = ldexp(element_value(element, s->code[i]), s->scale[i / 32] - 127);
    return true;
}

void side_close(struct side *s)
{
    free(s->code);
    free(s->scale);
    free(s->value);
}

uint8_t *side_packed(const struct side *s, bool transposed, size_t *bytes)
{
    const size_t count = (size_t)s->rows * (size_t)s->k;
    const bool half = element_bits(s->element) == 4;
    *bytes = half ? count / 2 : count;
    uint8_t *out = calloc(1, *bytes);
    for (size_t i = 0; i < count && out != NULL; i++) {
        const size_t from = transposed ? i % (size_t)s->rows * (size_t)s->k + i / (size_t)s->rows : i;
        if (half) out[i / 2] = (uint8_t)(out[i / 2] | s->code[from] << 4 * (i % 2));
        else out[i] = s->code[from];
    }
    return out;
}

uint8_t *side_shuffled_scales(const struct side *s, size_t *bytes)
{
    const int blocks = s->k / 32;
    *bytes = (size_t)s->rows * (size_t)blocks;
    uint8_t *out = malloc(*bytes);
    for (int r = 0; r < s->rows && out != NULL; r++)
        for (int b = 0; b < blocks; b++) {
            const int m2 = r / 16 % 2, m16 = r % 16, k2 = b / 4 % 2, k4 = b % 4;
            const int at = ((r / 32 * (blocks / 8) + b / 8) * 4 + k4) * 64 + m16 * 4 + k2 * 2 + m2;
            out[at] = s->scale[r * blocks + b];
        }
    return out;
}

double product_element(const struct side *a, const struct side *b, int m, int n, double *magnitudes)
{
    double sum = 0;
    *magnitudes = 0;
    for (int k = 0; k < a->k; k++) {
        const double term = a->value[m * a->k + k] * b->value[n * b->k + k];
        sum += term;
        *magnitudes += fabs(term);
    }
    return sum;
}
