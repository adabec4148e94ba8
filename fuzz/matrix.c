/* Descriptions: the bytes of a bsm_matrix, pointers aside, taken as they come.  What the check accepts can be read and
 * written from its first element to its last, in buffers of exactly the bytes that the library asks for. */
#include "input.h"

static void visit(const bsm_matrix *m)
{
    const int64_t batches = m->batch == 0 ? 1 : m->batch, scale_columns = bsm_matrix_scale_columns(m);
    const int64_t batch[] = { 0, batches - 1 }, row[] = { 0, m->rows - 1 }, column[] = { 0, m->columns - 1 };
    for (int i = 0; i < 8; i++) {
        uint32_t code, back;
        const int64_t b = batch[i & 1], r = row[i >> 1 & 1], c = column[i >> 2];
        REQUIRE(bsm_matrix_get_code(m, b, r, c, &code) == BSM_OK);
        REQUIRE(bsm_matrix_set_code(m, b, r, c, code) == BSM_OK);
        REQUIRE(bsm_matrix_get_code(m, b, r, c, &back) == BSM_OK && back == code);
        if (scale_columns == 0) continue;
        const int64_t s = i >> 2 == 0 ? 0 : scale_columns - 1;
        uint8_t scale;
        REQUIRE(bsm_matrix_set_scale(m, b, r, s, (uint8_t)(i * 31)) == BSM_OK);
        REQUIRE(bsm_matrix_get_scale(m, b, r, s, &scale) == BSM_OK && scale == (uint8_t)(i * 31));
    }
    uint32_t code;
    REQUIRE(bsm_matrix_get_code(m, 0, m->rows, 0, &code) == BSM_EINVAL);
    REQUIRE(bsm_matrix_get_code(m, 0, 0, m->columns, &code) == BSM_EINVAL);
    REQUIRE(bsm_matrix_get_code(m, batches, 0, 0, &code) == BSM_EINVAL);
}

/* The raw bytes, with a struct_size that may be wrong and pointers that may be missing or misaligned. */
static void raw(struct input *in)
{
    struct { bsm_matrix known; unsigned char later[16]; } bytes = { 0 };
    static float tensor_scale = 1;
    static unsigned char memory[64];
    const int sizes = pick(in, 4), pointers = pick(in, 8);
    memcpy(&bytes, in->data, in->size < sizeof bytes ? in->size : sizeof bytes);
    if (sizes != 0) bytes.known.struct_size = sizes == 1 ? sizeof bytes : sizeof bytes.known;
    if (bytes.known.struct_size > sizeof bytes && bytes.known.struct_size <= 65536)
        bytes.known.struct_size = sizeof bytes;
    bytes.known.data = pointers & 1 ? memory + 1 : pointers & 2 ? memory : NULL;
    bytes.known.scales = pointers & 4 ? memory : NULL;
    bytes.known.tensor_scale = pointers == 7 ? &tensor_scale : NULL;
    if (bsm_matrix_check(&bytes.known) != BSM_OK) REQUIRE(bsm_last_error()[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    if (pick(&in, 2) == 0) {
        raw(&in);
        return 0;
    }
    const int64_t rows = take_size(&in, 40), columns = take_size(&in, 140);
    bsm_matrix m = take_matrix(&in, rows, columns);
    if (!give_buffers(&m, size)) return 0;
    const bsm_status status = bsm_matrix_check(&m);
    REQUIRE(status == BSM_OK);
    if (m.rows > 0 && m.columns > 0) visit(&m);
    free_buffers(&m);
    return 0;
}
