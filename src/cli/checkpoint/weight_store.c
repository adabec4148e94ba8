/* Quantized matrices under the names of a convention, see weight_store.h. */
#include "weight_store.h"

#include <inttypes.h>
#include <string.h>

/* One way of writing a format. */
struct spelling {
    bsm_convention convention;
    bsm_format format;
    const char *codes, *scales, *tensor_scale; /* endings of names; NULL: no such tensor */
    bsm_tensor_type code_type, scale_type;
};

static const struct spelling spellings[] = {
    { BSM_CONVENTION_MODELOPT, BSM_NVFP4, ".weight", ".weight_scale", ".weight_scale_2", BSM_TENSOR_U8, BSM_TENSOR_F8_E4M3 },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP4, ".weight", ".weight_scale", NULL, BSM_TENSOR_U8, BSM_TENSOR_U8 },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP8_E4M3, ".weight", ".weight_scale", NULL, BSM_TENSOR_F8_E4M3, BSM_TENSOR_U8 },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP8_E5M2, ".weight", ".weight_scale", NULL, BSM_TENSOR_F8_E5M2, BSM_TENSOR_U8 },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP6_E2M3, ".weight", ".weight_scale", NULL, BSM_TENSOR_F6_E2M3, BSM_TENSOR_U8 },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP6_E3M2, ".weight", ".weight_scale", NULL, BSM_TENSOR_F6_E3M2, BSM_TENSOR_U8 },
    { BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3, ".weight", NULL, ".weight_scale", BSM_TENSOR_F8_E4M3, BSM_TENSOR_U8 },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_NVFP4, ".weight_packed", ".weight_scale", ".weight_global_scale", BSM_TENSOR_U8,
      BSM_TENSOR_F8_E4M3 },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP4, ".weight_packed", ".weight_scale", NULL, BSM_TENSOR_U8, BSM_TENSOR_U8 },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP6_E2M3, ".weight_packed", ".weight_scale", NULL, BSM_TENSOR_U8, BSM_TENSOR_U8 },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP8_E4M3, ".weight", ".weight_scale", NULL, BSM_TENSOR_F8_E4M3, BSM_TENSOR_U8 },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_FORMAT_E4M3, ".weight", NULL, ".weight_scale", BSM_TENSOR_F8_E4M3, BSM_TENSOR_U8 },
    { BSM_CONVENTION_GPT_OSS, BSM_MXFP4, "_blocks", "_scales", NULL, BSM_TENSOR_U8, BSM_TENSOR_U8 },
    { BSM_CONVENTION_GGUF, BSM_MXFP4, ".weight", NULL, NULL, BSM_TENSOR_MXFP4, BSM_TENSOR_U8 },
    { BSM_CONVENTION_GGUF, BSM_NVFP4, ".weight", NULL, ".scale", BSM_TENSOR_NVFP4, BSM_TENSOR_U8 },
};
enum { SPELLINGS = sizeof spellings / sizeof spellings[0] };

static const struct spelling *find(bsm_convention convention, bsm_format format)
{
    for (int i = 0; i < SPELLINGS; i++)
        if (spellings[i].convention == convention && spellings[i].format == format) return &spellings[i];
    return NULL;
}

const char *weight_store_refuses(bsm_convention convention, bsm_format format)
{
    if (find(convention, format) != NULL) return NULL;
    switch (convention) {
    case BSM_CONVENTION_MODELOPT: return "modelopt has nvfp4, mxfp4, mxfp6, mxfp8 and e4m3";
    case BSM_CONVENTION_COMPRESSED_TENSORS: return "compressed_tensors has nvfp4, mxfp4, mxfp6_e2m3, mxfp8_e4m3 and e4m3";
    case BSM_CONVENTION_GPT_OSS: return "gpt_oss has mxfp4";
    case BSM_CONVENTION_GGUF: return "gguf has mxfp4 and nvfp4";
    default: return "weights are written as modelopt, compressed_tensors, gpt_oss or gguf";
    }
}

static bsm_matrix describe(const struct spelling *s, int64_t batch, int64_t rows, int64_t columns)
{
    const bool gguf = s->convention == BSM_CONVENTION_GGUF;
    bsm_matrix m = { .struct_size = sizeof m, .format = s->format, .rows = rows, .columns = columns, .batch = batch };
    if (gguf) m.packing = BSM_PACKING_GGUF;
    if (gguf) m.scale_layout.kind = s->format == BSM_NVFP4 ? BSM_LAYOUT_GGUF_NVFP4 : BSM_LAYOUT_GGUF_MXFP4;
    if (s->convention == BSM_CONVENTION_COMPRESSED_TENSORS && s->format == BSM_NVFP4) m.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    return m;
}

/* Announces one tensor of the weight; last: numbers of its last dimension, behind rows (and batch). */
static int64_t add(const struct cli *cli, struct checkpoint_writer *writer, const char *name, const char *ending,
                   bsm_tensor_type type, const bsm_matrix *m, int64_t last, int64_t bytes)
{
    char full[4096];
    bsm_tensor t = { .name = full, .type = type, .gguf_type = -1, .rank = m->batch > 1 ? 3 : 2, .bytes = bytes };
    snprintf(full, sizeof full, "%s%s", name, ending);
    if (m->batch > 1) t.shape[0] = m->batch;
    t.shape[t.rank - 2] = m->rows;
    t.shape[t.rank - 1] = last;
    if (strcmp(ending, "_blocks") == 0) t.shape[t.rank - 1] = last / 16, t.shape[t.rank++] = 16;
    return checkpoint_writer_add(cli, writer, &t);
}

static int64_t add_tensor_scale(const struct cli *cli, struct checkpoint_writer *writer, const char *name, const struct spelling *s)
{
    char full[4096];
    const bool list = s->convention != BSM_CONVENTION_MODELOPT; /* a scalar there, one number in a list elsewhere */
    const bsm_tensor t = { .name = full, .type = BSM_TENSOR_F32, .gguf_type = 0, .rank = list ? 1 : 0, .shape = { 1 }, .bytes = 4 };
    snprintf(full, sizeof full, "%s%s", name, s->tensor_scale);
    return checkpoint_writer_add(cli, writer, &t);
}

int weight_store_add(struct cli *cli, struct checkpoint_writer *writer, const char *name, bsm_convention convention,
                     bsm_format format, int64_t batch, int64_t rows, int64_t columns, bool with_tensor_scale,
                     struct weight_store *store)
{
    const struct spelling *s = find(convention, format);
    int64_t data_bytes = 0, scale_bytes = 0;
    if (s == NULL) return cli_bad_input(cli, "%s: %s", name, weight_store_refuses(convention, format));
    *store = (struct weight_store){
        .convention = convention, .matrix = describe(s, batch, rows, columns), .scales = -1, .tensor_scale = -1
    };
    const bsm_matrix *m = &store->matrix;
    bsm_status status = bsm_matrix_data_bytes(m, &data_bytes);
    if (status == BSM_OK) status = bsm_matrix_scale_bytes(m, &scale_bytes);
    if (status != BSM_OK) return cli_library_failed(cli, name, status);
    const int64_t lines = (batch > 1 ? batch : 1) * rows;
    const int64_t last = s->code_type == BSM_TENSOR_U8 ? (lines > 0 ? data_bytes / lines : 0) : columns;
    store->codes = add(cli, writer, name, s->codes, s->code_type, m, last, data_bytes);
    if (s->scales != NULL)
        store->scales = add(cli, writer, name, s->scales, s->scale_type, m, bsm_matrix_scale_columns(m), scale_bytes);
    if (s->tensor_scale != NULL && with_tensor_scale) store->tensor_scale = add_tensor_scale(cli, writer, name, s);
    return CLI_DONE;
}

int weight_store_put(struct cli *cli, struct checkpoint_writer *writer, const struct weight_store *store, const bsm_matrix *matrix)
{
    int64_t bytes = 0;
    bsm_matrix_data_bytes(matrix, &bytes);
    int result = checkpoint_writer_put(cli, writer, store->codes, matrix->data, bytes);
    if (result == CLI_DONE && store->scales >= 0) {
        bsm_matrix_scale_bytes(matrix, &bytes);
        result = checkpoint_writer_put(cli, writer, store->scales, matrix->scales, bytes);
    }
    if (result == CLI_DONE && store->tensor_scale >= 0)
        result = checkpoint_writer_put(cli, writer, store->tensor_scale, matrix->tensor_scale, (int64_t)sizeof(float));
    return result;
}
