/* Warnings about numbers, see silent.h. */
#include "silent.h"
#include "operand.h"

#include <inttypes.h>
#include <stdlib.h>

/* Bits of a type: its infinity is the largest exponent without a fraction. */
static void count_bits(uint64_t magnitude, uint64_t infinity, struct silent *found)
{
    found->nan += magnitude > infinity;
    found->infinite += magnitude == infinity;
}

static void count_one(bsm_real type, const void *data, int64_t i, struct silent *found)
{
    switch (type) {
    case BSM_REAL_FP16: count_bits(((const uint16_t *)data)[i] & 0x7fff, 0x7c00, found); break;
    case BSM_REAL_BF16: count_bits(((const uint16_t *)data)[i] & 0x7fff, 0x7f80, found); break;
    case BSM_REAL_FP64:
        count_bits(((const uint64_t *)data)[i] & (uint64_t)INT64_MAX, (uint64_t)0x7ff << 52, found);
        break;
    default: count_bits(((const uint32_t *)data)[i] & 0x7fffffff, 0x7f800000, found); break;
    }
}

struct silent silent_reals(const bsm_real_matrix *real)
{
    const int64_t batch = real->batch > 1 ? real->batch : 1;
    struct silent found = { .numbers = batch * real->rows * real->columns };
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < real->rows; r++)
            for (int64_t c = 0; c < real->columns; c++)
                count_one(real->type, real->data,
                          b * real->batch_stride + r * real->row_stride + c * real->column_stride, &found);
    return found;
}

/* Rows that are fp32 already are looked at where they lie. */
int silent_matrix(struct cli *cli, const bsm_matrix *matrix, struct silent *found)
{
    const int64_t rows = matrix->rows, columns = matrix->columns;
    const bool lies_there = matrix->format == BSM_FORMAT_FP32 && matrix->pitch == 0 && matrix->tensor_scale == NULL;
    float *numbers = lies_there ? NULL : cli_memory(cli, rows * columns, sizeof *numbers);
    const bsm_real_matrix real = real_rows(BSM_REAL_FP32, rows, columns, lies_there ? matrix->data : numbers, columns);
    const bsm_status status = lies_there ? BSM_OK : bsm_dequantize(cli->context, matrix, &real);
    if (status == BSM_OK) *found = silent_reals(&real);
    free(numbers);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
}

/* With nothing left the noise is the signal, square for square. */
bool silent_is_zeroed(const bsm_quantize_stats *stats)
{
    const bool noise_is_signal = !(stats->noise < stats->signal) && !(stats->noise > stats->signal);
    return stats->signal > 0 && noise_is_signal && (stats->blocks == 0 || stats->flushed_blocks > 0);
}

static void print_counts(const struct silent *found, char *text, size_t room)
{
    const char *and = found->nan > 0 && found->infinite > 0 ? " and " : "";
    char nan[48] = "", infinite[48] = "";
    if (found->nan > 0) snprintf(nan, sizeof nan, "%" PRId64 " NaN", found->nan);
    if (found->infinite > 0) snprintf(infinite, sizeof infinite, "%" PRId64 " infinite", found->infinite);
    snprintf(text, room, "%s%s%s", nan, and, infinite);
}

void silent_warn(const struct cli *cli, const char *name, const struct silent *found, const char *consequence,
                 bsm_format format)
{
    char counts[128];
    print_counts(found, counts, sizeof counts);
    if (found->nan > 0 || found->infinite > 0)
        cli_note(cli, "warning: %s holds %s among %" PRId64 " numbers%s", name, counts, found->numbers, consequence);
    if (found->zeroed)
        cli_note(cli, "warning: all numbers of %s become zero: they are too small for %s%s", name,
                 bsm_format_get((int)format)->name,
                 bsm_format_get((int)format)->scale == BSM_E8M0 ? "" : " with this tensor scale");
}

struct silent silent_quantized(const bsm_real_matrix *source, const bsm_quantize_options *how,
                               const bsm_quantize_stats *stats)
{
    const bool counted = stats->blocks > 0 && how->nonfinite == BSM_NONFINITE_PROPAGATE;
    struct silent found = { .nan = 0 };
    if (!counted || stats->nan_blocks > 0) found = silent_reals(source);
    found.zeroed = silent_is_zeroed(stats);
    return found;
}

void silent_warn_quantized(const struct cli *cli, const char *name, const struct silent *found, bsm_format format,
                           const bsm_quantize_stats *stats)
{
    char consequence[128] = ", which the statistics do not count";
    if (stats->nan_blocks > 0)
        snprintf(consequence, sizeof consequence,
                 ": %" PRId64 " of %" PRId64 " blocks become NaN, which the statistics do not count",
                 stats->nan_blocks, stats->blocks);
    silent_warn(cli, name, found, consequence, format);
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

void silent_add(struct silent_weights *weights, const char *name, const struct silent *found)
{
    if ((found->nan > 0 || found->infinite > 0) && weights->not_finite++ == 0) {
        weights->first = *found;
        snprintf(weights->first_not_finite, sizeof weights->first_not_finite, "%s", name);
    }
    if (found->zeroed && weights->zeroed++ == 0)
        snprintf(weights->first_zeroed, sizeof weights->first_zeroed, "%s", name);
}

void silent_warn_weights(const struct cli *cli, const struct silent_weights *weights, bsm_format format)
{
    char counts[128];
    print_counts(&weights->first, counts, sizeof counts);
    if (weights->not_finite > 0)
        cli_note(cli,
                 "warning: %" PRId64
                 " weight%s NaN or infinity, which the statistics do not count; the first is %s with %s among "
                 "%" PRId64,
                 weights->not_finite, weights->not_finite == 1 ? " holds" : "s hold", weights->first_not_finite, counts,
                 weights->first.numbers);
    if (weights->zeroed > 0)
        cli_note(
            cli, "warning: all numbers of %" PRId64 " weight%s become zero: they are too small for %s; the first is %s",
            weights->zeroed, weights->zeroed == 1 ? "" : "s", bsm_format_get((int)format)->name, weights->first_zeroed);
}
