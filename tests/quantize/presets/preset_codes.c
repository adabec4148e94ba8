/* Codes and scales of a preset, for compare_presets.py:
 *
 *     preset_codes PRESET FORMAT TYPE ROWS COLUMNS <numbers >tensor scale (fp32), scale codes, element codes (a byte
 *     each) */
#include "blockscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *sentence)
{
    fprintf(stderr, "preset_codes: %s\n", sentence);
    return 1;
}

static bsm_real type_of(const char *name)
{
    int type = 0;
    while (type < BSM_REAL_COUNT && strcmp(bsm_real_name(type), name) != 0) type++;
    return (bsm_real)type;
}

struct work {
    bsm_real_matrix source;
    bsm_matrix destination;
    bsm_quantize_options options;
    float tensor_scale;
    size_t scale_bytes;
};

/* NVFP4 has a tensor scale, computed as the project does it; ggml has none. */
static void describe(struct work *w, bsm_format format, bsm_tensor_scale_use use)
{
    const int64_t rows = w->source.rows, columns = w->source.columns;
    const bool wide = bsm_format_get((int)format)->bits_per_element == 8,
               scaled = format == BSM_NVFP4 && w->options.preset != BSM_PRESET_GGML;
    w->destination = (bsm_matrix){ .struct_size = sizeof w->destination, .format = format, .rows = rows,
                                   .columns = columns,
                                   .packing = wide ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES, .tensor_scale_use = use };
    w->scale_bytes = (size_t)(rows * bsm_matrix_scale_columns(&w->destination));
    w->options.tensor_scale = scaled ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN;
    w->destination.tensor_scale = scaled ? &w->tensor_scale : NULL;
}

int main(int argc, char **argv)
{
    struct work w = { .source = { .struct_size = sizeof w.source }, .options = { .struct_size = sizeof w.options } };
    bsm_context *context = NULL;
    if (argc != 6) return fail("PRESET FORMAT TYPE ROWS COLUMNS");
    const int preset = bsm_preset_from_name(argv[1]), format = bsm_format_from_name(argv[2]);
    const int64_t rows = atoll(argv[4]), columns = atoll(argv[5]);
    w.source.type = type_of(argv[3]);
    const size_t count = (size_t)(rows * columns), size = bsm_real_bytes((int)w.source.type);
    if (preset < 0 || format < 0 || size == 0 || rows <= 0 || columns <= 0)
        return fail("a name or a size is not known");
    w.source.rows = rows, w.source.columns = w.source.row_stride = columns, w.source.column_stride = 1;
    w.options.preset = (bsm_preset)preset;
    const bool divides = preset == BSM_PRESET_TRANSFORMER_ENGINE || preset == BSM_PRESET_COMPRESSED_TENSORS
                         || preset == BSM_PRESET_FLASHINFER;
    describe(&w, (bsm_format)format, divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES);
    w.source.data = malloc(count * size), w.destination.data = calloc(count, 1),
    w.destination.scales = calloc(w.scale_bytes, 1);
    if (w.source.data == NULL || w.destination.data == NULL || w.destination.scales == NULL) return fail("no memory");
    if (fread(w.source.data, size, count, stdin) != count) return fail("numbers are missing");
    if (bsm_context_create(NULL, &context) != BSM_OK
        || bsm_quantize(context, &w.source, &w.options, &w.destination, NULL) != BSM_OK)
        return fail(bsm_last_error());
    fwrite(&w.tensor_scale, sizeof w.tensor_scale, 1, stdout);
    fwrite(w.destination.scales, 1, w.scale_bytes, stdout);
    fwrite(w.destination.data, 1, count, stdout);
    bsm_context_destroy(context);
    free(w.source.data), free(w.destination.data), free(w.destination.scales);
    return 0;
}
