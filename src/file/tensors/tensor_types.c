/* The types of tensors.
 *
 * Sources: safetensors, tensor.rs (Dtype); ggml, ggml.h (enum ggml_type) and the block structs of ggml-common.h. */
#include "tensors.h"

#include <inttypes.h>

/* clang-format off */
static const struct { const char *word; int bits; int gguf; } types[BSM_TENSOR_TYPE_COUNT] = {
    [BSM_TENSOR_F64]         = { "F64",         64, 28 },
    [BSM_TENSOR_F32]         = { "F32",         32, 0 },
    [BSM_TENSOR_F16]         = { "F16",         16, 1 },
    [BSM_TENSOR_BF16]        = { "BF16",        16, 30 },
    [BSM_TENSOR_F8_E4M3]     = { "F8_E4M3",     8,  -1 },
    [BSM_TENSOR_F8_E5M2]     = { "F8_E5M2",     8,  -1 },
    [BSM_TENSOR_F8_E8M0]     = { "F8_E8M0",     8,  -1 },
    [BSM_TENSOR_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8,  -1 },
    [BSM_TENSOR_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8,  -1 },
    [BSM_TENSOR_F6_E2M3]     = { "F6_E2M3",     6,  -1 },
    [BSM_TENSOR_F6_E3M2]     = { "F6_E3M2",     6,  -1 },
    [BSM_TENSOR_F4]          = { "F4",          4,  -1 },
    [BSM_TENSOR_I64]         = { "I64",         64, 27 },
    [BSM_TENSOR_I32]         = { "I32",         32, 26 },
    [BSM_TENSOR_I16]         = { "I16",         16, 25 },
    [BSM_TENSOR_I8]          = { "I8",          8,  24 },
    [BSM_TENSOR_U64]         = { "U64",         64, -1 },
    [BSM_TENSOR_U32]         = { "U32",         32, -1 },
    [BSM_TENSOR_U16]         = { "U16",         16, -1 },
    [BSM_TENSOR_U8]          = { "U8",          8,  -1 },
    [BSM_TENSOR_BOOL]        = { "BOOL",        8,  -1 },
    [BSM_TENSOR_C64]         = { "C64",         64, -1 },
    [BSM_TENSOR_MXFP4]       = { "MXFP4",       0,  39 },
    [BSM_TENSOR_NVFP4]       = { "NVFP4",       0,  40 },
    [BSM_TENSOR_OTHER]       = { NULL,          0,  -1 },
};

/* Types of GGUF that are passed on, and those of the table above with blocks. */
static const struct { int number; const char *name; struct bsmi_tensor_block block; } gguf_blocks[] = {
    { 2,  "Q4_0",    { 32, 18 } },       { 3,  "Q4_1",    { 32, 20 } },       { 6,  "Q5_0",    { 32, 22 } },
    { 7,  "Q5_1",    { 32, 24 } },       { 8,  "Q8_0",    { 32, 34 } },       { 9,  "Q8_1",    { 32, 36 } },
    { 10, "Q2_K",    { 256, 84 } },      { 11, "Q3_K",    { 256, 110 } },     { 12, "Q4_K",    { 256, 144 } },
    { 13, "Q5_K",    { 256, 176 } },     { 14, "Q6_K",    { 256, 210 } },     { 15, "Q8_K",    { 256, 292 } },
    { 16, "IQ2_XXS", { 256, 66 } },      { 17, "IQ2_XS",  { 256, 74 } },      { 18, "IQ3_XXS", { 256, 98 } },
    { 19, "IQ1_S",   { 256, 50 } },      { 20, "IQ4_NL",  { 32, 18 } },       { 21, "IQ3_S",   { 256, 110 } },
    { 22, "IQ2_S",   { 256, 82 } },      { 23, "IQ4_XS",  { 256, 136 } },     { 29, "IQ1_M",   { 256, 56 } },
    { 34, "TQ1_0",   { 256, 54 } },      { 35, "TQ2_0",   { 256, 66 } },      { 39, "MXFP4",   { 32, 17 } },
    { 40, "NVFP4",   { 64, 36 } },       { 41, "Q1_0",    { 128, 18 } },      { 42, "Q2_0",    { 64, 18 } },
};
/* clang-format on */
enum { GGUF_BLOCKS = sizeof gguf_blocks / sizeof gguf_blocks[0] };

static bool listed(int type) { return type >= 0 && type < BSM_TENSOR_TYPE_COUNT; }

const char *bsm_tensor_type_name(int type) { return listed(type) ? types[type].word : NULL; }
int bsm_tensor_type_bits(int type) { return listed(type) ? types[type].bits : 0; }

const char *bsm_gguf_type_name(int number)
{
    for (int i = 0; i < GGUF_BLOCKS; i++)
        if (gguf_blocks[i].number == number) return gguf_blocks[i].name;
    for (int i = 0; i < BSM_TENSOR_TYPE_COUNT; i++)
        if (types[i].gguf >= 0 && types[i].gguf == number) return types[i].word;
    return NULL;
}

int bsmi_tensor_type_from_safetensors(const char *word)
{
    for (int i = 0; i < BSM_TENSOR_TYPE_COUNT; i++)
        if (types[i].bits > 0 && strcmp(types[i].word, word) == 0) return i;
    return -1;
}

bool bsmi_tensor_type_in_safetensors(bsm_tensor_type type) { return bsm_tensor_type_bits((int)type) > 0; }

int bsmi_tensor_type_to_gguf(bsm_tensor_type type) { return listed((int)type) ? types[type].gguf : -1; }

struct bsmi_tensor_block bsmi_tensor_type_block(bsm_tensor_type type)
{
    const int bits = bsm_tensor_type_bits((int)type);
    for (int i = 0; bits == 0 && i < GGUF_BLOCKS; i++)
        if (gguf_blocks[i].number == types[type].gguf) return gguf_blocks[i].block;
    switch (bits) {
    case 4: return (struct bsmi_tensor_block){ 2, 1 };
    case 6: return (struct bsmi_tensor_block){ 4, 3 };
    default: return (struct bsmi_tensor_block){ 1, bits / 8 };
    }
}

bool bsmi_tensor_type_from_gguf(uint32_t number, bsm_tensor_type *type, struct bsmi_tensor_block *block,
                                const char **name)
{
    *type = BSM_TENSOR_OTHER;
    for (int i = 0; i < BSM_TENSOR_TYPE_COUNT; i++)
        if (types[i].gguf >= 0 && (uint32_t)types[i].gguf == number) *type = (bsm_tensor_type)i;
    for (int i = 0; i < GGUF_BLOCKS; i++)
        if ((uint32_t)gguf_blocks[i].number == number) {
            *block = gguf_blocks[i].block;
            *name = gguf_blocks[i].name;
            return true;
        }
    *block = bsmi_tensor_type_block(*type);
    *name = types[*type].word;
    return *type != BSM_TENSOR_OTHER;
}

bsm_status bsmi_tensor_bytes(bsm_status status, const char *name, int rank, const int64_t *shape,
                             struct bsmi_tensor_block block, bool rows_of_blocks, int64_t *bytes)
{
    int64_t numbers = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++)
        if (shape[i] == 0) empty = true;
        else if (bsmi_mul_overflows(numbers, shape[i], &numbers))
            return bsmi_fail(status, "tensor %.200s: the shape multiplies to more numbers than 63 bits count", name);
    const int64_t row = rank > 0 ? shape[rank - 1] : 1;
    if (rows_of_blocks && row % block.numbers != 0)
        return bsmi_fail(status, "tensor %.200s: rows of %" PRId64 " numbers are not whole blocks of %d", name, row,
                         block.numbers);
    /* 4 and 6 bits: the whole must end on a byte, which 2 numbers of 4 bits and 4 of 6 bits do. */
    if (!empty && numbers % block.numbers != 0)
        return bsmi_fail(status, "tensor %.200s: %" PRId64 " numbers of %d bits do not end on a byte", name, numbers,
                         8 * block.bytes / block.numbers);
    *bytes = 0;
    if (!empty && bsmi_mul_overflows(numbers / block.numbers, block.bytes, bytes))
        return bsmi_fail(status, "tensor %.200s: the shape multiplies to more bytes than 63 bits count", name);
    return BSM_OK;
}
