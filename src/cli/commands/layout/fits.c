/* The answers of bsm_scale_layout_fits, in words and as JSON. */
#include "fits.h"

#include "cli/matrices/layout_map.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 12 };

static const char *copy_name(int value) { return value == ALL_COPIES ? "all" : bsm_scale_copy_name(value); }
static int copy_from_name(const char *name)
{
    return strcmp(name, "all") == 0 ? ALL_COPIES : bsm_scale_copy_from_name(name);
}
const struct cli_choices layout_copies = { copy_name, copy_from_name, 0, ALL_COPIES + 1 };

static void print_fit(const bsm_scale_fit *fit, int copy)
{
    char text[sizeof fit->text + 16];
    snprintf(text, sizeof text, "%s%s", fit->fits ? "fits: " : "does not fit: ", fit->text);
    printf("%-*s", INDENT, bsm_scale_copy_name(copy));
    cli_print_wrapped(stdout, text, INDENT, INDENT);
}

static void numbers(struct cli_json *json, const char *key, const int64_t *value, int first, int end)
{
    cli_json_array(json, key);
    for (int i = first; i < end; i++) cli_json_integer(json, NULL, value[i]);
    cli_json_end(json);
}

static void json_fit(struct cli_json *json, const bsm_scale_fit *fit, int copy)
{
    cli_json_object(json, NULL);
    cli_json_text(json, "copy", bsm_scale_copy_name(copy));
    cli_json_boolean(json, "fits", fit->fits);
    cli_json_text(json, fit->fits ? "how" : "rule", fit->text);
    if (fit->fits) {
        cli_json_integer(json, "rows", fit->rows);
        cli_json_integer(json, "columns", fit->columns);
    }
    if (fit->fits && copy == BSM_SCALE_COPY_TCGEN05_CP) cli_json_integer(json, "stride", fit->stride);
    if (fit->fits && copy == BSM_SCALE_COPY_LDMATRIX) cli_json_integer(json, "lane", fit->lane);
    if (fit->fits && (copy == BSM_SCALE_COPY_MFMA_16 || copy == BSM_SCALE_COPY_MFMA_32))
        cli_json_integer(json, "byte", fit->byte);
    if (copy == BSM_SCALE_COPY_TMA && fit->rank <= BSM_TENSOR_RANK) {
        numbers(json, "dimensions", fit->dimension, 0, fit->rank);
        numbers(json, "strides", fit->tensor_stride, 1, fit->rank);
        numbers(json, "box", fit->box, 0, fit->rank);
    }
    cli_json_end(json);
}

int layout_fits(const struct cli *cli, const bsm_scale_layout *layout, int64_t rows, int64_t columns, int copies)
{
    bsm_scale_fit fit[BSM_SCALE_COPY_COUNT] = { 0 };
    char modes[1024], name[64];
    bsm_status status = bsm_scale_layout_modes(layout, rows, columns, modes, sizeof modes, NULL);
    const int first = copies == ALL_COPIES ? 0 : copies, end = copies == ALL_COPIES ? ALL_COPIES : copies + 1;
    bool all = true;
    for (int copy = first; copy < end && status == BSM_OK; copy++) {
        fit[copy].struct_size = sizeof fit[copy];
        status = bsm_scale_layout_fits(layout, rows, columns, (bsm_scale_copy)copy, &fit[copy]);
        all &= fit[copy].fits;
    }
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    layout_text(layout, name, sizeof name);
    struct cli_json json = cli_json_to(stdout);
    if (cli->json) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "layout", name);
        cli_json_integer(&json, "rows", rows);
        cli_json_integer(&json, "columns", columns);
        cli_json_text(&json, "modes", modes);
        cli_json_array(&json, "copies");
        for (int copy = first; copy < end; copy++) json_fit(&json, &fit[copy], copy);
        cli_json_end(&json);
        cli_json_end(&json);
    } else {
        printf("%-*s%s, %" PRId64 " rows x %" PRId64 " columns\n", INDENT, "layout", name, rows, columns);
        printf("%-*s", INDENT, "modes");
        cli_print_wrapped(stdout, modes, INDENT, INDENT);
        for (int copy = first; copy < end; copy++) print_fit(&fit[copy], copy);
    }
    return all ? CLI_DONE : CLI_DIFFERS;
}
