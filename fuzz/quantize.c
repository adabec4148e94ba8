/* Quantize and dequantize: any numbers, shape, strides, format, packing, layout and options.  Where scales are powers
 * of two (or absent), values that came back are values of the format under every scale that they can get: quantizing
 * them again changes nothing. */
#include "input.h"

struct round_trip { bsm_context *context; bsm_matrix codes; bsm_real_matrix back; bsm_quantize_options options; };

static bsm_status there_and_back(struct round_trip *trip, const bsm_real_matrix *source, bsm_quantize_stats *stats)
{
    const bsm_status status = bsm_quantize(trip->context, source, &trip->options, &trip->codes, stats);
    if (status == BSM_OK) REQUIRE(bsm_dequantize(trip->context, &trip->codes, &trip->back) == BSM_OK);
    return status;
}

static void check_stats(const bsm_quantize_stats *stats, const bsm_matrix *m)
{
    const int64_t batch = m->batch == 0 ? 1 : m->batch;
    int64_t scales = 0;
    for (int i = 0; i < 256; i++) scales += stats->scale_histogram[i];
    REQUIRE(stats->elements == m->rows * m->columns * batch && scales == stats->blocks);
    REQUIRE(stats->blocks == m->rows * bsm_matrix_scale_columns(m) * batch);
    REQUIRE(stats->nan_blocks >= 0 && stats->nan_blocks <= stats->blocks && stats->flushed_blocks <= stats->blocks);
    REQUIRE(stats->signal >= 0 && stats->noise >= 0 && stats->amax >= 0);
}

/* Not so with a ue4m3 scale (the largest element may round to 4, and the next scale is then another), with a tensor
 * scale, or after stochastic rounding (recipe even may choose a smaller scale for what it rounded down), or where
 * infinity became a value beyond those that the scale was chosen for; nor where a value left fp32. */
static bool comes_back(const struct round_trip *trip, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (values[i] - values[i] != 0 && values[i] == values[i]) return false;
    if (trip->options.rounding != BSM_ROUND_NEAREST_EVEN || trip->options.nonfinite != BSM_NONFINITE_PROPAGATE)
        return false;
    return trip->codes.tensor_scale == NULL && bsm_format_get((int)trip->codes.format)->scale != BSM_UE4M3;
}

static void quantize(struct input *in, bsm_real_matrix *source, bsm_matrix *codes)
{
    static bsm_context *context;
    static float tensor_scale;
    if (context == NULL) context = context_of(2, false);
    struct round_trip trip = { .context = context, .options = { .struct_size = sizeof trip.options } };
    trip.options.recipe = (bsm_recipe)pick(in, BSM_RECIPE_COUNT + 1);
    trip.options.rounding = pick(in, 4) == 0 ? BSM_ROUND_STOCHASTIC : BSM_ROUND_NEAREST_EVEN;
    trip.options.nonfinite = (bsm_nonfinite)pick(in, 3);
    trip.options.tensor_scale = pick(in, 4) == 0 ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN;
    trip.options.no_saturate = pick(in, 4) == 0;
    tensor_scale = 0.3f;
    if (pick(in, 3) == 0) codes->tensor_scale = &tensor_scale;
    trip.codes = *codes;
    const int64_t batch = source->batch == 0 ? 1 : source->batch, count = source->rows * source->columns * batch;
    float *values = malloc((size_t)(count > 0 ? count : 1) * sizeof(float)),
          *again = malloc((size_t)(count > 0 ? count : 1) * sizeof(float));
    trip.back = (bsm_real_matrix){ sizeof trip.back,
                                   BSM_REAL_FP32,
                                   source->rows,
                                   source->columns,
                                   values,
                                   source->columns,
                                   1,
                                   batch,
                                   source->rows * source->columns };
    bsm_quantize_stats stats = { .struct_size = sizeof stats };
    if (there_and_back(&trip, source, pick(in, 2) != 0 ? &stats : NULL) == BSM_OK) {
        if (stats.elements != 0) check_stats(&stats, codes);
        if (comes_back(&trip, values, count)) {
            bsm_real_matrix once = trip.back;
            trip.back.data = again;
            REQUIRE(there_and_back(&trip, &once, NULL) == BSM_OK);
            for (int64_t i = 0; i < count; i++)
                REQUIRE(memcmp(&values[i], &again[i], sizeof(float)) == 0
                        || (values[i] != values[i] && again[i] != again[i]));
        }
    }
    free(values), free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int bytes_of[BSM_REAL_COUNT] = { 4, 2, 2, 8 };
    struct input in = { data, size };
    const int64_t rows = pick(&in, 6), columns = pick(&in, 100);
    bsm_matrix codes = take_matrix(&in, rows, columns);
    bsm_real_matrix source = {
        sizeof source, (bsm_real)pick(&in, BSM_REAL_COUNT), rows, columns, NULL, 0, 1, codes.batch, 0
    };
    source.column_stride = pick(&in, 4) == 0 ? 2 : 1;
    source.row_stride = columns * source.column_stride;
    source.batch_stride = rows * source.row_stride;
    const int64_t batch = codes.batch == 0 ? 1 : codes.batch;
    if (batch < 0 || batch > 4 || !give_buffers(&codes, size)) return 0;
    const int64_t bytes = (rows * columns * batch * source.column_stride + 1) * bytes_of[source.type];
    unsigned char *numbers = buffer_of(bytes, size);
    source.data = numbers;
    quantize(&in, &source, &codes);
    /* The rest of the input is the numbers themselves. */
    memcpy(numbers, in.data, in.size < (size_t)bytes ? in.size : (size_t)bytes);
    struct input rest = { data + (size > 8 ? 8 : size), size > 8 ? size - 8 : 0 };
    quantize(&rest, &source, &codes);
    codes.tensor_scale = NULL;
    free(numbers);
    free_buffers(&codes);
    return 0;
}
