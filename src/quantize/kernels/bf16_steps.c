#include "bf16_steps.h"

#include "core/core.h"
#include "format/format.h"

enum { STEPS = 7, DOUBLE_MORE = 45, EXPONENT_MORE = 1023 - 127 };    /* DOUBLE_MORE: bits of a double's mantissa */

static double of_word(int word)
{
    return bsmi_double_from_bits((uint64_t)(word + EXPONENT_MORE * BSMI_BF16_BINADE) << DOUBLE_MORE);
}

/* The least x with x factor > bound, or >= bound.  Products are exact: 8 bits times 24.  The quotient rounded down to a
 * word is that word or, where it was rounded up, the next. */
static int least_word(double bound, double factor, bool or_equal)
{
    const int word = (int)(bsmi_double_bits(bound / factor) >> DOUBLE_MORE) - EXPONENT_MORE * BSMI_BF16_BINADE;
    const double product = of_word(word) * factor;
    return word + !(product > bound || (or_equal && product == bound));
}

/* Midpoints of codes go to the even one. */
static int step_word(bsm_element element, int code, double unit, double factor)
{
    const double low = (double)bsm_element_decode(element, (uint32_t)code - 1);
    const double high = (double)bsm_element_decode(element, (uint32_t)code);
    return least_word((low + high) / 2 * unit, factor, code % 2 == 0);
}

/* Codes from `code` on, of which steps[i] is where code + i + 1 begins. */
static void fill_cells(const int *steps, int count, int code, int base, int bits, int cells, uint16_t *entries)
{
    int passed = 0;
    for (int cell = 0; cell < cells; cell++) {
        const int first = base + (cell << bits), end = first + (1 << bits);
        while (passed < count && steps[passed] <= first) passed++;
        const int step = passed < count && steps[passed] < end ? steps[passed] : end;
        entries[cell] = (uint16_t)((code + passed - cell) * (1 << bits) + end - step);
    }
}

/* The row of a unit, and its base.  Steps 3, 5 and 7 are a binade apart and begin cells; 4 and 6 lie 51 to 77 words
 * from either neighbour.  Step 2 lies 75 to 115 words below 3, in the second cell from there, and 1 lies 288 to 307
 * below, in the fifth. */
static int make_row(double unit, double factor, uint16_t *cells)
{
    int steps[STEPS];
    for (int i = 0; i < STEPS; i++) steps[i] = step_word(BSM_E2M1, i + 1, unit, factor);
    const int base = steps[2] - (5 << BSMI_CELL_BITS);
    fill_cells(steps, STEPS, 0, base, BSMI_CELL_BITS, BSMI_CELLS, cells);
    return base;
}

/* Half a scale has the row of the scale, a binade lower. */
void bsmi_bf16_steps_make(double tensor_scale, bool divides, struct bsmi_bf16_steps *steps)
{
    const double largest = bsm_element_get(BSM_E2M1)->max_value;
    const double factor = divides ? tensor_scale : 1, unit = divides ? 1 : tensor_scale;
    int bases[16], words[25];
    *steps = (struct bsmi_bf16_steps){ .bases = { 0xffff } };        /* scale 0: every code is +-0 */
    for (int code = 15; code > 0; code--) {
        if (code >= 8) {
            const double scale = (double)bsm_element_decode(BSM_E4M3, (uint32_t)code);
            bases[code] = make_row(scale * unit, factor, steps->cells[code]);
        } else {
            bases[code] = bases[2 * code] - BSMI_BF16_BINADE;
            memcpy(steps->cells[code], steps->cells[2 * code], sizeof steps->cells[code]);
        }
        steps->bases[code] = (uint16_t)(bases[code] - (code < 8 ? 0 : BSMI_BF16_BINADE));
    }
    for (int code = 1; code < 25; code++) words[code] = step_word(BSM_E4M3, code, largest * unit, factor);
    for (int code = 1; code < 10; code++) steps->scales[code] = (uint16_t)words[code];
    fill_cells(words + 10, 15, 9, words[9], BSMI_SCALE_CELL_BITS, BSMI_SCALE_CELLS, steps->scale_cells);
}
