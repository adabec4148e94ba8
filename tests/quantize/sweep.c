/* All 2^32 numbers of fp32 through every rounding and every recipe.
 *
 *     quantize_sweep [--quick] [--part I/N] [--only TEXT]
 *
 * A pass walks upward through the magnitudes (2^31 of them, each with both signs where signs matter) and keeps the code
 * that is expected: the thresholds between codes are exact doubles, and the code moves on when one is crossed.  Nothing
 * is searched and nothing computed, so one input costs a few nanoseconds.
 * --quick takes every 499th run of 65,536 magnitudes, another one in each pass.  --part takes the I-th of N shares (I
 * from 0).  --only takes the passes whose name contains TEXT.  Prints one line a pass, with seconds of processor time;
 * exit status 1 if any code was wrong. */
#include "../format/oracle.h"
#include "format/format.h"
#include "quantize/block/block.h"
#include "quantize/block/recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUN_LENGTH = 65536, RUNS = 32768, QUICK_STEP = 499, MANY = 256 };
#define FIRST_INFINITE 0x7f800000u

struct pass {
    char name[64];
    bsm_element element;
    bool saturate;
    bsm_recipe recipe;
    float tensor_scale;
    uint64_t (*run)(const struct pass *pass, uint32_t first, uint64_t *inputs);
};

static uint64_t mismatches_shown;

static void show(const struct pass *pass, double value, uint32_t got, uint32_t want)
{
    if (mismatches_shown++ < 20) fprintf(stderr, "  %s: %a gave 0x%x, want 0x%x\n", pass->name, value, got, want);
}

/* Elements --------------------------------------------------------------------------------------------------------- */

/* The expected code of ascending magnitudes. */
struct ladder {
    bsm_element element;
    bool saturate;
    uint32_t code, largest;
    double threshold;                     /* between code and code + 1 */
};

static double value_above(bsm_element element, uint32_t code)
{
    if (code < oracle_elements[element].largest) return oracle_decode(element, code + 1);
    return 2 * oracle_decode(element, code) - oracle_decode(element, code - 1);
}

static void ladder_set(struct ladder *ladder, uint32_t code)
{
    ladder->code = code;
    ladder->threshold = code > ladder->largest
                            ? (double)INFINITY
                            : (oracle_decode(ladder->element, code) + value_above(ladder->element, code)) / 2;
}

static struct ladder ladder_at(bsm_element element, bool saturate, double magnitude)
{
    struct ladder ladder = { .element = element, .saturate = saturate, .largest = oracle_elements[element].largest };
    ladder_set(&ladder, isfinite(magnitude) ? oracle_floor_code(element, magnitude) : ladder.largest + 1);
    return ladder;
}

static uint32_t ladder_climb(struct ladder *ladder, double magnitude)
{
    while (magnitude > ladder->threshold ||
           (magnitude == ladder->threshold && ladder->code % 2 == 1 && ladder->code <= ladder->largest))
        ladder_set(ladder, ladder->code + 1);
    return ladder->code;
}

/* The code with its sign, and what becomes of overflow. */
static uint32_t finished(const struct ladder *ladder, uint32_t code, bool negative)
{
    if (code > ladder->largest)
        return oracle_encode(ladder->element, negative ? -(double)INFINITY : (double)INFINITY, ladder->saturate);
    return negative ? oracle_negative(ladder->element, code) : code;
}

static uint64_t run_element(const struct pass *pass, uint32_t first, uint64_t *inputs)
{
    struct ladder ladder = ladder_at(pass->element, pass->saturate, (double)bsmi_float_from_bits(first));
    const uint32_t nan = oracle_encode(pass->element, (double)NAN, pass->saturate);
    uint64_t mismatches = 0;
    for (uint32_t bits = first; bits < first + RUN_LENGTH; bits++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            const double value = (double)bsmi_float_from_bits(bits | sign << 31);
            const uint32_t want =
                bits > FIRST_INFINITE
                    ? nan
                    : finished(&ladder, ladder_climb(&ladder, (double)bsmi_float_from_bits(bits)), sign);
            const uint32_t got = bsm_element_encode(pass->element, value, BSM_ROUND_NEAREST_EVEN, pass->saturate, 0);
            if (got != want) mismatches++, show(pass, value, got, want);
        }
    *inputs += 2 * RUN_LENGTH;
    return mismatches;
}

/* The same through the function that blocks use. */
static uint64_t run_element_many(const struct pass *pass, uint32_t first, uint64_t *inputs)
{
    struct ladder ladder = ladder_at(pass->element, true, (double)bsmi_float_from_bits(first));
    const uint32_t nan = oracle_encode(pass->element, (double)NAN, true);
    uint64_t mismatches = 0;
    for (uint32_t start = first; start < first + RUN_LENGTH; start += MANY / 2) {
        double values[MANY];
        uint8_t codes[MANY];
        for (uint32_t i = 0; i < MANY; i++) values[i] = (double)bsmi_float_from_bits((start + i / 2) | i << 31);
        bsmi_element_encode_nearest(pass->element, values, MANY, codes);
        for (uint32_t i = 0; i < MANY; i++) {
            const bool is_nan = start + i / 2 > FIRST_INFINITE;
            const uint32_t want = is_nan ? nan : finished(&ladder, ladder_climb(&ladder, fabs(values[i])), i % 2 != 0);
            if (codes[i] != want) mismatches++, show(pass, values[i], codes[i], want);
        }
    }
    *inputs += 2 * RUN_LENGTH;
    return mismatches;
}

/* Scale codes ------------------------------------------------------------------------------------------------------ */

/* Where code + 1 begins: beyond the threshold, or on it too. */
struct scale_ladder { int code; double threshold; bool threshold_included; };

static void scale_ladder_set(const struct pass *pass, struct scale_ladder *ladder, int code)
{
    static const int largest_exponents[] = {
        [BSM_E4M3] = 8, [BSM_E5M2] = 15, [BSM_E3M2] = 4, [BSM_E2M3] = 2, [BSM_E2M1] = 2, [BSM_INT8] = 0
    };
    static const double largest_values[] = {
        [BSM_E4M3] = 448, [BSM_E5M2] = 57344, [BSM_E3M2] = 28, [BSM_E2M3] = 7.5, [BSM_E2M1] = 6, [BSM_INT8] = 1.984375
    };
    static const double carries_from[] = { [BSM_E4M3] = 1.9375, [BSM_E5M2] = 1.875, [BSM_E3M2] = 1.875,
                                           [BSM_E2M3] = 1.9375, [BSM_E2M1] = 1.75,  [BSM_INT8] = 1.9921875 };
    const bool last = code == (pass->recipe == BSM_RECIPE_NEAREST ? 0x7e : 254);
    *ladder = (struct scale_ladder){ code, (double)INFINITY, false };
    if (last) return;
    switch (pass->recipe) {
    case BSM_RECIPE_FLOOR:
        ladder->threshold = ldexp(1, code + 1 - 127 + largest_exponents[pass->element]);
        ladder->threshold_included = true;
        break;
    case BSM_RECIPE_CEIL: ladder->threshold = ldexp(1, code - 127 + largest_exponents[pass->element]); break;
    case BSM_RECIPE_RCEIL: ladder->threshold = ldexp(largest_values[pass->element], code - 127); break;
    case BSM_RECIPE_EVEN:
        ladder->threshold = ldexp(carries_from[pass->element], code - 127 + largest_exponents[pass->element]);
        ladder->threshold_included = true;
        break;
    default:                              /* a midpoint times 6 times the tensor scale: 5 + 2 + 24 bits, exact */
        ladder->threshold = (oracle_decode(BSM_E4M3, (uint32_t)code) + oracle_decode(BSM_E4M3, (uint32_t)code + 1)) / 2
                            * 6 * (double)pass->tensor_scale;
        ladder->threshold_included = code % 2 == 1;
    }
}

static uint64_t run_scale(const struct pass *pass, uint32_t first, uint64_t *inputs)
{
    static const bsm_format formats[] = {
        [BSM_E4M3] = BSM_MXFP8_E4M3, [BSM_E5M2] = BSM_MXFP8_E5M2, [BSM_E3M2] = BSM_MXFP6_E3M2,
        [BSM_E2M3] = BSM_MXFP6_E2M3, [BSM_E2M1] = BSM_MXFP4,      [BSM_INT8] = BSM_MXINT8
    };
    const bsm_format format = pass->recipe == BSM_RECIPE_NEAREST ? BSM_NVFP4 : formats[pass->element];
    struct bsmi_block_quantizer quantizer;
    if (bsmi_block_quantizer_make("recipe", format, pass->recipe, BSM_ROUND_NEAREST_EVEN, 0, BSM_NONFINITE_PROPAGATE,
                                  pass->tensor_scale, BSM_TENSOR_SCALE_MULTIPLIES, &quantizer) != BSM_OK)
        return 1;
    uint64_t mismatches = 0;
    struct scale_ladder ladder;
    scale_ladder_set(pass, &ladder, 0);
    for (uint32_t bits = first; bits < first + RUN_LENGTH && bits < FIRST_INFINITE; bits++) {
        const float m = bsmi_float_from_bits(bits);
        while ((double)m > ladder.threshold || ((double)m == ladder.threshold && ladder.threshold_included))
            scale_ladder_set(pass, &ladder, ladder.code + 1);
        const double x = (double)m;
        const uint8_t got =
            bits == 0 ? 0 : quantizer.recipe->scale_code(&quantizer, &(struct bsmi_block_view){ &x, 1, x });
        if (got != ladder.code) mismatches++, show(pass, (double)m, got, (uint32_t)ladder.code);
        (*inputs)++;
    }
    return mismatches;
}

/* The passes ------------------------------------------------------------------------------------------------------- */

enum { MAX_PASSES = 64 };

static int list_passes(struct pass *passes)
{
    int count = 0;
    for (int e = BSM_E4M3; e <= BSM_FP16; e++) {
        const char *name = bsm_element_get(e)->name;
        /* Formats with neither NaN nor infinity saturate in any case. */
        const bool overflows = oracle_elements[e].kind == IEEE || oracle_elements[e].kind == ONE_NAN;
        for (int saturate = overflows ? 0 : 1; saturate < 2; saturate++) {
            passes[count] = (struct pass){ .element = (bsm_element)e, .saturate = saturate, .run = run_element };
            snprintf(passes[count++].name, sizeof passes[0].name, "%s %s", name,
                     saturate ? "saturating" : "not saturating");
        }
        if (e > BSM_INT8) continue;
        passes[count] = (struct pass){ .element = (bsm_element)e, .saturate = true, .run = run_element_many };
        snprintf(passes[count++].name, sizeof passes[0].name, "%s in blocks", name);
        for (int recipe = BSM_RECIPE_FLOOR; recipe <= BSM_RECIPE_EVEN; recipe++) {
            passes[count] =
                (struct pass){ .element = (bsm_element)e, .recipe = (bsm_recipe)recipe, .tensor_scale = 1,
                               .run = run_scale };
            snprintf(passes[count++].name, sizeof passes[0].name, "e8m0 %s for %s", bsm_recipe_name(recipe), name);
        }
    }
    static const float tensor_scales[] = { 1, 0.1f, 0x1.fffffep-9f };
    for (int i = 0; i < 3; i++) {
        passes[count] =
            (struct pass){ .element = BSM_E2M1, .recipe = BSM_RECIPE_NEAREST, .tensor_scale = tensor_scales[i],
                           .run = run_scale };
        snprintf(passes[count++].name, sizeof passes[0].name, "ue4m3 nearest for e2m1, tensor scale %g",
                 (double)tensor_scales[i]);
    }
    return count;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);        /* of this process: the machine may be shared */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct choice { bool quick; uint32_t part, parts; const char *only; };

static bool read_choice(int argc, char **argv, struct choice *choice)
{
    *choice = (struct choice){ .parts = 1, .only = "" };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) choice->quick = true;
        else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) choice->only = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--part") == 0
                 && sscanf(argv[++i], "%u/%u", &choice->part, &choice->parts) == 2 && choice->part < choice->parts)
            continue;
        else return false;
    }
    return true;
}

/* The first and the last run always belong to --quick: zeros and subnormals, infinity's NaNs. */
static bool chosen(const struct choice *choice, uint32_t run, uint32_t pass)
{
    if (run % choice->parts != choice->part) return false;
    return !choice->quick || run % QUICK_STEP == pass * 31 % QUICK_STEP || run == 0
           || run == FIRST_INFINITE / RUN_LENGTH || run == RUNS - 1;
}

int main(int argc, char **argv)
{
    struct choice choice;
    if (!read_choice(argc, argv, &choice)) {
        fprintf(stderr, "usage: %s [--quick] [--part I/N] [--only TEXT]\n", argv[0]);
        return 2;
    }
    struct pass passes[MAX_PASSES];
    const int count = list_passes(passes);
    int passed = 0, failed = 0;
    uint64_t all_inputs = 0;
    const double started = seconds_now();
    for (int p = 0; p < count; p++) {
        if (strstr(passes[p].name, choice.only) == NULL) continue;
        uint64_t mismatches = 0, inputs = 0;
        const double pass_started = seconds_now();
        for (uint32_t run = 0; run < RUNS; run++)
            if (chosen(&choice, run, (uint32_t)p)) mismatches += passes[p].run(&passes[p], run * RUN_LENGTH, &inputs);
        printf("%-44s %11llu inputs, %llu mismatches, %.1f s\n", passes[p].name, (unsigned long long)inputs,
               (unsigned long long)mismatches, seconds_now() - pass_started);
        fflush(stdout);
        all_inputs += inputs;
        if (mismatches == 0 && inputs > 0) passed++;
        else failed++;
    }
    printf("%llu inputs in %.1f s\n", (unsigned long long)all_inputs, seconds_now() - started);
    printf("quantize_sweep%s: %d passed, %d failed, 0 skipped\n", choice.quick ? "_quick" : "", passed, failed);
    return failed > 0 || passed == 0;
}
