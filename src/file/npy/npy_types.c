/* The types of .npy files.
 *
 * What NumPy 2.4.6 with ml_dtypes 0.6.0 writes as 'descr' (read back from files it made): fp32 '<f4', fp16 '<f2', fp64
 * '<f8', int8 '|i1', uint8 '|u1', uint16 '<u2', bfloat16 '<V2', float8_e5m2 '<f1' (NumPy itself cannot load that one),
 * and every other one-byte type of ml_dtypes (float4, float6, float8, e8m0) '<V1'.  Plain void types are '|V1' and
 * '|V2'. */
#include "npy.h"

static const struct { const char *name; char kind; int bytes; const char *descr; } types[BSM_NPY_TYPE_COUNT] = {
    [BSM_NPY_FP16]   = { "fp16",   'f', 2, "<f2" },
    [BSM_NPY_FP32]   = { "fp32",   'f', 4, "<f4" },
    [BSM_NPY_FP64]   = { "fp64",   'f', 8, "<f8" },
    [BSM_NPY_INT8]   = { "int8",   'i', 1, "|i1" },
    [BSM_NPY_UINT8]  = { "uint8",  'u', 1, "|u1" },
    [BSM_NPY_BYTES]  = { "bytes",  'V', 1, "|V1" },
    [BSM_NPY_WORDS]  = { "words",  'V', 2, "|V2" },
    [BSM_NPY_UINT16] = { "uint16", 'u', 2, "<u2" },
};

static bool listed(int type) { return type >= 0 && type < BSM_NPY_TYPE_COUNT; }

const char *bsm_npy_type_name(int type) { return listed(type) ? types[type].name : NULL; }
size_t bsm_npy_type_bytes(int type) { return listed(type) ? (size_t)types[type].bytes : 0; }
const char *bsmi_npy_descr(bsm_npy_type type) { return types[type].descr; }

/* The number behind order and kind: digits alone, at most 3 of them; -1 if there is none. */
static int read_size(const char *digits)
{
    int size = 0;
    if (digits[0] < '1' || digits[0] > '9') return -1;
    for (int i = 0; digits[i] != '\0'; i++) {
        if (i == 3 || digits[i] < '0' || digits[i] > '9') return -1;
        size = 10 * size + (digits[i] - '0');
    }
    return size;
}

bsm_status bsmi_npy_type_from_descr(const char *descr, bsm_npy_type *type)
{
    const char order = descr[0];
    const char kind = order != '\0' ? descr[1] : '\0';
    const int size = kind != '\0' ? read_size(descr + 2) : -1;
    if (kind == 'O')
        return bsmi_fail(BSM_EUNSUPPORTED, "the array holds Python objects ('%s'); they are never unpickled", descr);
    if (order == '\0' || strchr("<>|", order) == NULL || size < 0)
        return bsmi_fail(BSM_EFILE,
                         "'%s' is no type: one of < > |, a letter and a size in bytes are wanted, such as <f4", descr);

    const char wanted = kind == 'f' && size == 1 ? 'V' : kind;             /* float8_e5m2 */
    int found = 0;
    while (found < BSM_NPY_TYPE_COUNT && (types[found].kind != wanted || types[found].bytes != size)) found++;
    if (found == BSM_NPY_TYPE_COUNT)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "the array has type '%s'; read are fp16, fp32, fp64, int8, uint8, uint16 and types of "
                         "one or two bytes from ml_dtypes: convert it, as in x.astype('float32')",
                         descr);
    if (order == '>' && size > 1)
        return bsmi_fail(BSM_EUNSUPPORTED, "the array is big-endian ('%s'); save it little-endian, as in "
                                           "x.astype(x.dtype.newbyteorder('<'))", descr);
    if (order == '|' && size > 1 && kind != 'V')
        return bsmi_fail(BSM_EFILE, "'%s' has no byte order: a number of %d bytes needs < or >", descr, size);
    *type = (bsm_npy_type)found;
    return BSM_OK;
}
