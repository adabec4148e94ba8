/* Names, types and shapes by convention, see spelling.h. */
#include "spelling.h"

#define MODELOPT   BSM_CONVENTION_MODELOPT
#define COMPRESSED BSM_CONVENTION_COMPRESSED_TENSORS
#define GPT_OSS    BSM_CONVENTION_GPT_OSS
#define GGUF       BSM_CONVENTION_GGUF

#define U8      BSM_TENSOR_U8
#define F8_E4M3 BSM_TENSOR_F8_E4M3
#define F8_E5M2 BSM_TENSOR_F8_E5M2
#define F6_E2M3 BSM_TENSOR_F6_E2M3
#define F6_E3M2 BSM_TENSOR_F6_E3M2
#define MXFP4   BSM_TENSOR_MXFP4
#define NVFP4   BSM_TENSOR_NVFP4

/* clang-format off */
static const struct bsmi_spelling spellings[] = {
    /* codes, scales, tensor scale; type of codes, of scales */
    { MODELOPT,   BSM_NVFP4,       ".weight",        ".weight_scale", ".weight_scale_2",      U8,        F8_E4M3  },
    { MODELOPT,   BSM_MXFP4,       ".weight",        ".weight_scale", NULL,                   U8,        U8       },
    { MODELOPT,   BSM_MXFP8_E4M3,  ".weight",        ".weight_scale", NULL,                   F8_E4M3,   U8       },
    { MODELOPT,   BSM_MXFP8_E5M2,  ".weight",        ".weight_scale", NULL,                   F8_E5M2,   U8       },
    { MODELOPT,   BSM_MXFP6_E2M3,  ".weight",        ".weight_scale", NULL,                   F6_E2M3,   U8       },
    { MODELOPT,   BSM_MXFP6_E3M2,  ".weight",        ".weight_scale", NULL,                   F6_E3M2,   U8       },
    { MODELOPT,   BSM_FORMAT_E4M3, ".weight",        NULL,            ".weight_scale",        F8_E4M3,   U8       },
    { COMPRESSED, BSM_NVFP4,       ".weight_packed", ".weight_scale", ".weight_global_scale", U8,        F8_E4M3  },
    { COMPRESSED, BSM_MXFP4,       ".weight_packed", ".weight_scale", NULL,                   U8,        U8       },
    { COMPRESSED, BSM_MXFP6_E2M3,  ".weight_packed", ".weight_scale", NULL,                   U8,        U8       },
    { COMPRESSED, BSM_MXFP8_E4M3,  ".weight",        ".weight_scale", NULL,                   F8_E4M3,   U8       },
    { COMPRESSED, BSM_FORMAT_E4M3, ".weight",        NULL,            ".weight_scale",        F8_E4M3,   U8       },
    { GPT_OSS,    BSM_MXFP4,       "_blocks",        "_scales",       NULL,                   U8,        U8       },
    { GGUF,       BSM_MXFP4,       ".weight",        NULL,            NULL,                   MXFP4,     U8       },
    { GGUF,       BSM_NVFP4,       ".weight",        NULL,            ".scale",               NVFP4,     U8       },
};
/* clang-format on */
enum { SPELLINGS = sizeof spellings / sizeof spellings[0], GPT_OSS_BLOCK_BYTES = 16 };

const struct bsmi_spelling *bsmi_spelling_find(bsm_convention convention, bsm_format format)
{
    for (int i = 0; i < SPELLINGS; i++)
        if (spellings[i].convention == convention && spellings[i].format == format) return &spellings[i];
    return NULL;
}

bsm_status bsm_writer_check_format(bsm_convention convention, bsm_format format)
{
    const char *has = "weights are written as modelopt, compressed_tensors, gpt_oss or gguf";
    if (bsmi_spelling_find(convention, format) != NULL) return BSM_OK;
    switch (convention) {
    case MODELOPT: has = "modelopt has nvfp4, mxfp4, mxfp6, mxfp8 and e4m3"; break;
    case COMPRESSED: has = "compressed_tensors has nvfp4, mxfp4, mxfp6_e2m3, mxfp8_e4m3 and e4m3"; break;
    case GPT_OSS: has = "gpt_oss has mxfp4"; break;
    case GGUF: has = "gguf has mxfp4 and nvfp4"; break;
    default: break;
    }
    return bsmi_fail(BSM_EUNSUPPORTED, "%s", has);
}

bsm_matrix bsmi_spelling_matrix(const struct bsmi_spelling *s, int64_t batch, int64_t rows, int64_t columns)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = s->format, .rows = rows, .columns = columns, .batch = batch };
    if (s->convention == GGUF) m.packing = BSM_PACKING_GGUF;
    if (s->convention == GGUF)
        m.scale_layout.kind = s->format == BSM_NVFP4 ? BSM_LAYOUT_GGUF_NVFP4 : BSM_LAYOUT_GGUF_MXFP4;
    if (s->convention == COMPRESSED && s->format == BSM_NVFP4) m.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    return m;
}

int64_t bsmi_spelling_row_unit(const struct bsmi_spelling *s)
{
    if (s->convention == GGUF && s->format == BSM_NVFP4) return 64;
    if (s->convention == GGUF || s->convention == GPT_OSS) return 32;
    return s->format == BSM_MXFP6_E2M3 || s->format == BSM_MXFP6_E3M2 ? 4 : 1;           /* four codes in three bytes */
}

/* compressed-tensors divides numbers of NVFP4 by it, under a name of its own; everybody else multiplies. */
const char *bsmi_spelling_input_scale(const struct bsmi_spelling *s)
{
    return s->convention == COMPRESSED && s->format == BSM_NVFP4 ? ".input_global_scale" : ".input_scale";
}

/* [batch,] rows, last */
static bsm_tensor rows_of(const bsm_matrix *m, bsm_tensor_type type, int64_t last, int64_t bytes)
{
    bsm_tensor t = { .struct_size = sizeof t, .type = type, .gguf_type = -1, .bytes = bytes };
    t.rank = m->batch > 1 ? 3 : 2;
    if (m->batch > 1) t.shape[0] = m->batch;
    t.shape[t.rank - 2] = m->rows;
    t.shape[t.rank - 1] = last;
    return t;
}

bsm_status bsmi_spelling_codes(const struct bsmi_spelling *s, const bsm_matrix *m, bsm_tensor *tensor)
{
    int64_t bytes, lines, last = m->columns;
    const bsm_status status = bsm_matrix_data_bytes(m, &bytes);
    if (status != BSM_OK) return status;
    if (bsmi_mul_overflows(BSMI_MAX(m->batch, 1), m->rows, &lines))
        return bsmi_fail(BSM_EOVERFLOW, "rows and batch multiply to more than 63 bits count");
    if (s->code_type == BSM_TENSOR_U8) last = lines > 0 ? bytes / lines : 0;
    *tensor = rows_of(m, s->code_type, last, bytes);
    if (s->convention != GPT_OSS) return BSM_OK;
    tensor->shape[tensor->rank - 1] = last / GPT_OSS_BLOCK_BYTES;
    tensor->shape[tensor->rank++] = GPT_OSS_BLOCK_BYTES;
    return BSM_OK;
}

bsm_status bsmi_spelling_scales(const struct bsmi_spelling *s, const bsm_matrix *m, bsm_tensor *tensor)
{
    int64_t bytes;
    const bsm_status status = bsm_matrix_scale_bytes(m, &bytes);
    if (status == BSM_OK) *tensor = rows_of(m, s->scale_type, bsm_matrix_scale_columns(m), bytes);
    return status;
}

bsm_tensor bsmi_spelling_fp32(const struct bsmi_spelling *s)
{
    bsm_tensor t = { .struct_size = sizeof t, .type = BSM_TENSOR_F32, .gguf_type = -1, .shape = { 1 }, .bytes = 4 };
    t.rank = s->convention == MODELOPT ? 0 : 1; /* a scalar there, one number in a list elsewhere */
    return t;
}
