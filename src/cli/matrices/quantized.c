/* Quantized matrices: memory, quantizing, and their files. */
#include "matrices.h"
#include "layout_map.h"
#include "note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

bool cli_tensor_scale(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    struct cli_tensor_scale *scale = destination;
    if (strcmp(text, "none") == 0) scale->source = CLI_SCALE_NONE;
    else if (strcmp(text, "computed") == 0) scale->source = CLI_SCALE_COMPUTED;
    else if (cli_float(option, text, &scale->value, why) && scale->value > 0 && scale->value <= 3.4028234e38f)
        scale->source = CLI_SCALE_GIVEN;
    else {
        cli_say(why, "none, computed, or a finite number above 0 is wanted");
        return false;
    }
    return true;
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

/* gguf is a packing and a layout at once; either names both. */
static void settle_gguf(bsm_matrix *m)
{
    const bool by_layout =
        m->scale_layout.kind == BSM_LAYOUT_GGUF_MXFP4 || m->scale_layout.kind == BSM_LAYOUT_GGUF_NVFP4;
    if (by_layout && m->packing == BSM_PACKING_DEFAULT) m->packing = BSM_PACKING_GGUF;
    if (m->packing == BSM_PACKING_GGUF && m->scale_layout.kind == BSM_LAYOUT_LINEAR && m->format == BSM_MXFP4)
        m->scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4;
    if (m->packing == BSM_PACKING_GGUF && m->scale_layout.kind == BSM_LAYOUT_LINEAR && m->format == BSM_NVFP4)
        m->scale_layout.kind = BSM_LAYOUT_GGUF_NVFP4;
}

/* One code of one number each? */
static bool is_plain(const bsm_matrix *m)
{
    return m->packing == BSM_PACKING_BYTES || bsm_element_get((int)bsm_format_get((int)m->format)->element)->bits >= 8;
}

bool cli_is_sparse(const bsm_matrix *m)
{
    return m->struct_size == sizeof(bsm_sparse_matrix) && ((const bsm_sparse_matrix *)m)->sparsity != BSM_SPARSITY_NONE;
}

/* The matrix that codes and scales are: of a sparse one, of half the columns. */
static bsm_matrix stored(const bsm_matrix *m)
{
    bsm_matrix kept = *m;
    kept.struct_size = sizeof kept;
    if (cli_is_sparse(m)) kept.columns /= 2;
    return kept;
}

/* Rows of the array of codes: an MN-major matrix has its columns there. */
static int64_t array_rows(const bsm_matrix *m) { return m->major == BSM_MAJOR_MN ? m->columns : m->rows; }

/* Bytes from row to row of packed codes: those of 6 bits begin with whole bytes every four. */
static int64_t row_bytes(const bsm_matrix *m)
{
    bsm_matrix rows = stored(m);
    int64_t one = 0, two = 0, *const count = m->major == BSM_MAJOR_MN ? &rows.columns : &rows.rows;
    rows.data = rows.scales = NULL;
    *count = 1;
    bsm_matrix_data_bytes(&rows, &one);                          /* it was counted for all rows before */
    *count = 2;
    if (array_rows(m) < 2 || bsm_matrix_data_bytes(&rows, &two) != BSM_OK) return one;
    return two - one;
}

/* The sizes of a description, by the library; the last row of packed codes is as long as the others. */
static int measure(struct cli *cli, struct cli_quantized *q, const char *what)
{
    bsm_status status = bsm_matrix_data_bytes(&q->matrix, &q->data_bytes);
    if (status == BSM_OK) status = bsm_matrix_scale_bytes(&q->matrix, &q->scale_bytes);
    if (status == BSM_OK) status = bsm_matrix_metadata_bytes(&q->matrix, &q->metadata_bytes);
    if (status == BSM_OK && !is_plain(&q->matrix)
        && __builtin_mul_overflow(array_rows(&q->matrix), row_bytes(&q->matrix), &q->data_bytes))
        q->data_bytes = INT64_MAX;
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, what, status);
}

static void describe(struct cli_quantized *q, bsm_format format, bsm_packing packing, bsm_scale_layout layout,
                     bsm_sparsity sparsity, int64_t rows, int64_t columns)
{
    const bool sparse = sparsity != BSM_SPARSITY_NONE;
    *q = (struct cli_quantized){
        .sparse = { .matrix = { .struct_size = sparse ? sizeof(bsm_sparse_matrix) : sizeof(bsm_matrix),
                                .format = format, .packing = packing, .rows = rows, .columns = columns },
                    .sparsity = sparsity },
        .codes_file = { .struct_size = sizeof(bsm_npy) },
        .scales_file = { .struct_size = sizeof(bsm_npy) },
        .metadata_file = { .struct_size = sizeof(bsm_npy) }
    };
    if (bsm_format_get((int)format)->scale != BSM_UNSCALED) q->matrix.scale_layout = layout;
    settle_gguf(&q->matrix);
}

int cli_quantized_new(struct cli *cli, bsm_format format, bsm_packing packing, bsm_scale_layout layout, int64_t rows,
                      int64_t columns, struct cli_quantized *q)
{
    return cli_quantized_new_sparse(cli, format, packing, layout, BSM_SPARSITY_NONE, rows, columns, q);
}

int cli_quantized_new_sparse(struct cli *cli, bsm_format format, bsm_packing packing, bsm_scale_layout layout,
                             bsm_sparsity sparsity, int64_t rows, int64_t columns, struct cli_quantized *q)
{
    describe(q, format, packing, layout, sparsity, rows, columns);
    const int result = measure(cli, q, NULL);
    if (result != CLI_DONE) return result;
    q->matrix.data = q->data = cli_memory(cli, q->data_bytes, 1);
    q->scales = cli_memory(cli, q->scale_bytes, 1);
    q->metadata = cli_memory(cli, q->metadata_bytes, 1);
    if (sparsity != BSM_SPARSITY_NONE) q->sparse.metadata = q->metadata;
    if (q->scale_bytes > 0) q->matrix.scales = q->scales;
    else if (q->matrix.packing == BSM_PACKING_GGUF) q->matrix.scales = q->data;
    return CLI_DONE;
}

/* Code by code: the command alone has matrices that lie otherwise than they were quantized. */
static bsm_status move_codes(const bsm_matrix *from, const bsm_matrix *to)
{
    uint32_t code = 0;
    bsm_status status = BSM_OK;
    for (int64_t r = 0; r < from->rows && status == BSM_OK; r++)
        for (int64_t k = 0; k < from->columns && status == BSM_OK; k++) {
            status = bsm_matrix_get_code(from, 0, r, k, &code);
            if (status == BSM_OK) status = bsm_matrix_set_code(to, 0, r, k, code);
        }
    return status;
}

int cli_quantized_turn(struct cli *cli, const char *what, struct cli_quantized *q)
{
    struct cli_quantized turned = *q;
    turned.matrix.major = BSM_MAJOR_MN;
    turned.matrix.pitch = 0;
    const int result = measure(cli, &turned, what);
    if (result != CLI_DONE) return result;
    turned.matrix.data = turned.data = cli_memory(cli, turned.data_bytes, 1);
    const bsm_status status = move_codes(&q->matrix, &turned.matrix);
    free(status == BSM_OK ? q->data : turned.data);
    if (status != BSM_OK) return cli_library_failed(cli, what, status);
    q->matrix.major = BSM_MAJOR_MN, q->matrix.pitch = 0;
    q->matrix.data = q->data = turned.data, q->data_bytes = turned.data_bytes;
    return CLI_DONE;
}

void cli_quantized_free(struct cli *cli, struct cli_quantized *q)
{
    bsm_npy_release(cli->context, &q->codes_file);
    bsm_npy_release(cli->context, &q->scales_file);
    bsm_npy_release(cli->context, &q->metadata_file);
    free(q->data);
    free(q->scales);
    free(q->metadata);
    q->metadata = NULL;
    q->data = q->scales = q->matrix.data = q->matrix.scales = NULL;
}

/* Quantizing ------------------------------------------------------------------------------------------------------- */

int cli_quantize(struct cli *cli, const char *what, const struct cli_real *real, struct cli_tensor_scale scale,
                 bsm_quantize_options options, struct cli_quantized *q, bsm_quantize_stats *stats)
{
    const bsm_real_matrix source = cli_real_view(real);
    const bool usual = scale.source == CLI_SCALE_USUAL && q->matrix.format == BSM_NVFP4;
    *stats = (bsm_quantize_stats){ .struct_size = sizeof *stats };
    options.struct_size = sizeof options;
    if (usual || scale.source == CLI_SCALE_COMPUTED) options.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
    if (usual || scale.source == CLI_SCALE_COMPUTED || scale.source == CLI_SCALE_GIVEN) {
        q->tensor_scale = scale.source == CLI_SCALE_GIVEN ? scale.value : 1;
        q->matrix.tensor_scale = &q->tensor_scale;
    }
    q->left_out = (bsm_sparsify_stats){ .struct_size = sizeof q->left_out };
    const bsm_status status =
        cli_is_sparse(&q->matrix)
            ? bsm_sparsify(cli->context, &source, &options, &q->matrix, &q->left_out, stats)
            : bsm_quantize(cli->context, &source, &options, &q->matrix, stats);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, what, status);
}

const char *cli_recipe_used(bsm_format format, bsm_recipe recipe)
{
    const bsm_scale scale = bsm_format_get((int)format)->scale;
    if (scale == BSM_UNSCALED) return NULL;
    if (recipe != BSM_RECIPE_DEFAULT) return bsm_recipe_name((int)recipe);
    return bsm_recipe_name(scale == BSM_E8M0 ? BSM_RECIPE_RCEIL : BSM_RECIPE_NEAREST);
}

/* Files ------------------------------------------------------------------------------------------------------------ */

bool cli_ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

char *cli_without_ending(const struct cli *cli, const char *path, const char *ending)
{
    const size_t length = strlen(path) - (cli_ends_with(path, ending) ? strlen(ending) : 0);
    char *copy = cli_memory(cli, (int64_t)length + 1, 1);
    memcpy(copy, path, length);
    return copy;
}

static bsm_npy_type code_type(const bsm_matrix *m)
{
    switch (bsm_format_get((int)m->format)->element) {
    case BSM_FP32: return BSM_NPY_FP32;
    case BSM_FP16: return BSM_NPY_FP16;
    case BSM_BF16: return BSM_NPY_WORDS;
    case BSM_INT8: return BSM_NPY_INT8;
    default: return is_plain(m) ? BSM_NPY_BYTES : BSM_NPY_UINT8;
    }
}

/* rows x columns where there is a number for each code, else rows x bytes of a row; of an MN-major matrix those of its
 * transpose. */
static void code_shape(const struct cli_quantized *q, int64_t *shape)
{
    const bsm_matrix *m = &q->matrix;
    shape[0] = array_rows(m);
    shape[1] = !is_plain(m) ? row_bytes(m) : m->major == BSM_MAJOR_MN ? m->rows : stored(m).columns;
}

/* rows x scales of a row in the tight linear layout, else one stretch of bytes. */
static int scale_shape(const struct cli_quantized *q, int64_t *shape)
{
    const bsm_matrix *m = &q->matrix;
    shape[0] = m->rows;
    shape[1] = bsm_matrix_scale_columns(m);
    if (m->scale_layout.kind == BSM_LAYOUT_LINEAR && m->scale_layout.pitch == 0) return 2;
    shape[0] = q->scale_bytes;
    return 1;
}

/* rows x bytes of a row. */
static void metadata_shape(const struct cli_quantized *q, int64_t *shape)
{
    shape[0] = q->matrix.rows;
    shape[1] = q->matrix.rows > 0 ? q->metadata_bytes / q->matrix.rows : 0;
}

static const char *file_name(const char *path) { return strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path; }

struct paths {
    char codes[PATH_ROOM], scales[PATH_ROOM], tensor_scale[PATH_ROOM], metadata[PATH_ROOM], note[PATH_ROOM];
};

static int make_paths(struct cli *cli, const char *prefix, struct paths *paths)
{
    if (strlen(prefix) + 32 > PATH_ROOM || strlen(file_name(prefix)) + 32 > 256)
        return cli_bad_input(cli, "%.64s...: too long a name", prefix);
    if (file_name(prefix)[0] == '\0') return cli_wrong_usage(cli, "%s: a name is wanted behind the folder", prefix);
    snprintf(paths->codes, sizeof paths->codes, "%s.codes.npy", prefix);
    snprintf(paths->scales, sizeof paths->scales, "%s.scales.npy", prefix);
    snprintf(paths->tensor_scale, sizeof paths->tensor_scale, "%s.tensor_scale.npy", prefix);
    snprintf(paths->metadata, sizeof paths->metadata, "%s.metadata.npy", prefix);
    snprintf(paths->note, sizeof paths->note, "%s.json", prefix);
    return CLI_DONE;
}

static int store_note(struct cli *cli, const struct paths *paths, const struct cli_quantized *q, const char *recipe)
{
    const bsm_matrix *m = &q->matrix;
    char layout[64];
    FILE *file = cli_output(cli, paths->note);
    if (file == NULL) return CLI_BAD_INPUT;
    struct cli_json json = cli_json_to(file);
    cli_json_object(&json, NULL);
    cli_json_integer(&json, "blockscale_note", 1);
    cli_json_text(&json, "format", bsm_format_get((int)m->format)->name);
    cli_json_integer(&json, "rows", m->rows);
    cli_json_integer(&json, "columns", m->columns);
    cli_json_text(&json, "packing", bsm_packing_name((int)m->packing));
    if (m->major != BSM_MAJOR_K) cli_json_text(&json, "major", bsm_major_name((int)m->major));
    if (cli_is_sparse(m)) {
        cli_json_text(&json, "sparsity", bsm_sparsity_name((int)q->sparse.sparsity));
        cli_json_text(&json, "metadata", file_name(paths->metadata));
    }
    cli_json_text(&json, "codes", file_name(paths->codes));
    if (bsm_format_get((int)m->format)->scale != BSM_UNSCALED) {
        layout_text(&m->scale_layout, layout, sizeof layout);
        cli_json_text(&json, "scale_layout", layout);
        cli_json_text(&json, "recipe", recipe);
    }
    if (q->scale_bytes > 0) cli_json_text(&json, "scales", file_name(paths->scales));
    if (m->tensor_scale != NULL) {
        cli_json_text(&json, "tensor_scale", file_name(paths->tensor_scale));
        cli_json_text(&json, "tensor_scale_use",
                      m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? "divides" : "multiplies");
    }
    cli_json_end(&json);
    return fflush(file) == 0 ? CLI_DONE
                             : cli_bad_input(cli, "%s: could not be written: %s", paths->note, strerror(errno));
}

int cli_store_quantized(struct cli *cli, const char *prefix, const struct cli_quantized *q, const char *recipe)
{
    struct paths *paths = cli_memory(cli, 1, (int64_t)sizeof *paths);
    int64_t shape[2];
    int result = make_paths(cli, prefix, paths);
    code_shape(q, shape);
    if (result == CLI_DONE) result = cli_output_npy(cli, paths->codes, code_type(&q->matrix), 2, shape, q->matrix.data);
    const int rank = scale_shape(q, shape);
    if (result == CLI_DONE && q->scale_bytes > 0)
        result = cli_output_npy(cli, paths->scales, BSM_NPY_UINT8, rank, shape, q->matrix.scales);
    if (result == CLI_DONE && q->matrix.tensor_scale != NULL)
        result = cli_output_npy(cli, paths->tensor_scale, BSM_NPY_FP32, 0, NULL, q->matrix.tensor_scale);
    metadata_shape(q, shape);
    if (result == CLI_DONE && cli_is_sparse(&q->matrix))
        result = cli_output_npy(cli, paths->metadata, BSM_NPY_UINT8, 2, shape, q->sparse.metadata);
    if (result == CLI_DONE) result = store_note(cli, paths, q, recipe);
    free(paths);
    return result;
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* The note's words for packing, layout and use; each absent one is the usual one. */
static int read_description(struct cli *cli, const struct cli_note *note, struct cli_quantized *q)
{
    const char *format_text = cli_note_text(note, "format"), *packing_text = cli_note_text(note, "packing");
    const char *layout = cli_note_text(note, "scale_layout"), *use = cli_note_text(note, "tensor_scale_use");
    const char *major_text = cli_note_text(note, "major"), *sparsity_text = cli_note_text(note, "sparsity");
    int64_t version, rows, columns;
    if (!cli_note_size(note, "blockscale_note", &version) || version != 1)
        return cli_bad_input(cli, "%s: is no note of blockscale quantize: \"blockscale_note\": 1 is missing",
                             note->path);
    const bsm_format format = bsm_format_from_name(format_text);
    if (format == BSM_FORMAT_NONE)
        return cli_bad_input(cli, "%s: \"format\": \"%s\" is no format", note->path,
                             format_text != NULL ? format_text : "");
    if (!cli_note_size(note, "rows", &rows) || !cli_note_size(note, "columns", &columns))
        return cli_bad_input(cli, "%s: \"rows\" and \"columns\" must be whole numbers, 0 or more", note->path);
    const int packing = packing_text != NULL ? bsm_packing_from_name(packing_text) : (int)BSM_PACKING_DEFAULT;
    if (packing < 0) return cli_bad_input(cli, "%s: \"packing\": \"%s\" is no packing", note->path, packing_text);
    const int major = major_text != NULL ? bsm_major_from_name(major_text) : (int)BSM_MAJOR_K;
    if (major < 0) return cli_bad_input(cli, "%s: \"major\": \"%s\" is neither k nor mn", note->path, major_text);
    const int sparsity = sparsity_text != NULL ? bsm_sparsity_from_name(sparsity_text) : (int)BSM_SPARSITY_NONE;
    if (sparsity < 0)
        return cli_bad_input(cli, "%s: \"sparsity\": \"%s\" is none of none, 2:4 and 4:8", note->path, sparsity_text);
    bsm_scale_layout scale_layout = { .kind = BSM_LAYOUT_LINEAR };
    if (layout != NULL && bsm_scale_layout_parse(layout, &scale_layout) != BSM_OK)
        return cli_library_failed(cli, note->path, BSM_EFILE);
    if (use != NULL && strcmp(use, "multiplies") != 0 && strcmp(use, "divides") != 0)
        return cli_bad_input(cli, "%s: \"tensor_scale_use\": \"%s\" is neither multiplies nor divides", note->path,
                             use);
    describe(q, format, (bsm_packing)packing, scale_layout, (bsm_sparsity)sparsity, rows, columns);
    q->matrix.major = (bsm_major)major;
    if (use != NULL && strcmp(use, "divides") == 0) q->matrix.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    return measure(cli, q, note->path);
}

/* Reads the array that the note names under `key`, in the note's folder, and checks that it has `bytes` bytes in
 * rows. */
static int read_named(struct cli *cli, const struct cli_note *note, const char *key, int64_t bytes, bsm_npy *array)
{
    char path[PATH_ROOM];
    const char *name = cli_note_text(note, key);
    const int folder = (int)(file_name(note->path) - note->path);
    if (name == NULL) return cli_bad_input(cli, "%s: \"%s\" must name a file", note->path, key);
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return cli_bad_input(cli, "%s: \"%s\": \"%s\" is no name of a file in the same folder", note->path, key, name);
    if (snprintf(path, sizeof path, "%.*s%s", folder, note->path, name) >= (int)sizeof path)
        return cli_bad_input(cli, "%s: too long a name", note->path);
    const bsm_status status = bsm_npy_read(cli->context, path, array);
    cli_input(path);
    if (status != BSM_OK) return cli_library_failed(cli, note->path, status);
    if (array->fortran_order && array->rank > 1)
        return cli_bad_input(cli, "%s: is in Fortran order; codes and scales lie row by row", path);
    if ((int64_t)array->bytes != bytes)
        return cli_bad_input(cli, "%s: has %zu bytes, but the note's shape and format need %" PRId64, path,
                             array->bytes, bytes);
    return CLI_DONE;
}

/* Arrays of the right number of bytes, but of other rows, are other matrices. */
static int check_shape(struct cli *cli, const struct cli_note *note, const struct cli_quantized *q)
{
    int64_t shape[2];
    code_shape(q, shape);
    const bsm_npy *codes = &q->codes_file;
    if (codes->rank != 2 || codes->shape[0] != shape[0] ||
        bsm_npy_type_bytes((int)codes->type) != bsm_npy_type_bytes((int)code_type(&q->matrix)))
        return cli_bad_input(cli, "%s: \"codes\": an array of %" PRId64 " x %" PRId64 " codes of %zu bytes is wanted",
                             note->path, shape[0], shape[1], bsm_npy_type_bytes((int)code_type(&q->matrix)));
    return CLI_DONE;
}

static int read_metadata(struct cli *cli, const struct cli_note *note, struct cli_quantized *q)
{
    int64_t shape[2];
    metadata_shape(q, shape);
    const int result = read_named(cli, note, "metadata", q->metadata_bytes, &q->metadata_file);
    if (result != CLI_DONE) return result;
    const bsm_npy *file = &q->metadata_file;
    q->sparse.metadata = file->data;
    if (file->rank == 2 && file->shape[0] == shape[0] && bsm_npy_type_bytes((int)file->type) == 1) return CLI_DONE;
    return cli_bad_input(cli, "%s: \"metadata\": an array of %" PRId64 " x %" PRId64 " bytes is wanted", note->path,
                         shape[0], shape[1]);
}

static int read_tensor_scale(struct cli *cli, const struct cli_note *note, struct cli_quantized *q)
{
    bsm_npy array = { .struct_size = sizeof array };
    int result = read_named(cli, note, "tensor_scale", (int64_t)sizeof q->tensor_scale, &array);
    if (result == CLI_DONE && array.type != BSM_NPY_FP32)
        result =
            cli_bad_input(cli, "%s: \"tensor_scale\": one fp32 number is wanted, not '%s'", note->path, array.descr);
    if (result == CLI_DONE) memcpy(&q->tensor_scale, array.data, sizeof q->tensor_scale);
    bsm_npy_release(cli->context, &array);
    q->matrix.tensor_scale = &q->tensor_scale;
    return result;
}

int cli_load_quantized(struct cli *cli, const char *note_path, struct cli_quantized *q)
{
    struct cli_note *note = cli_memory(cli, 1, (int64_t)sizeof *note);
    *q = (struct cli_quantized){ .codes_file = { .struct_size = sizeof(bsm_npy) },
                                 .scales_file = { .struct_size = sizeof(bsm_npy) },
                                 .metadata_file = { .struct_size = sizeof(bsm_npy) } };
    int result = cli_note_read(cli, note_path, note);
    if (result == CLI_DONE) result = read_description(cli, note, q);
    if (result == CLI_DONE) result = read_named(cli, note, "codes", q->data_bytes, &q->codes_file);
    if (result == CLI_DONE) result = check_shape(cli, note, q);
    if (result == CLI_DONE && q->scale_bytes > 0)
        result = read_named(cli, note, "scales", q->scale_bytes, &q->scales_file);
    if (result == CLI_DONE && cli_is_sparse(&q->matrix)) result = read_metadata(cli, note, q);
    if (result == CLI_DONE && cli_note_text(note, "tensor_scale") != NULL) result = read_tensor_scale(cli, note, q);
    q->matrix.data = q->codes_file.data;
    q->matrix.scales = q->matrix.packing == BSM_PACKING_GGUF ? q->matrix.data : q->scales_file.data;
    if (result == CLI_DONE
        && (bsm_matrix_check(&q->matrix) != BSM_OK || bsm_matrix_check_metadata(&q->matrix) != BSM_OK))
        result = cli_library_failed(cli, note_path, BSM_EFILE);
    if (result != CLI_DONE) cli_quantized_free(cli, q);
    free(note);
    return result;
}
