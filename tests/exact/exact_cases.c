/* exact_cases: products that someone else judges.  One line of standard input is one product:
 *
 *     FORMAT_A FORMAT_B M N K TYPE PACKING_A LAYOUT_A PACKING_B LAYOUT_B CODES_A SCALES_A CODES_B SCALES_B
 *
 * Codes are hexadecimal, row after row: two digits for elements of at most 8 bits, else four or eight; scales two
 * digits; "-" where there are none.  The answer is one line, the bits of the sums and of the magnitudes, 4, 8 or 16
 * digits each. */
#include "exact_help.h"

#include <stdlib.h>

enum { WORDS = 14 };

static void stop(const char *what)
{
    fprintf(stderr, "exact_cases: %s: %s\n", what, bsm_last_error());
    exit(1);
}

static uint32_t hex(const char **text, int digits)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        const char *all = "0123456789abcdef", *digit = **text != '\0' ? strchr(all, **text) : NULL;
        if (digit == NULL) stop("a line is too short, or not hexadecimal");
        value = value << 4 | (uint32_t)(digit - all);
    }
    return value;
}

static struct operand read_operand(const char *format_name, int64_t rows, int64_t columns, const char *packing,
                                   const char *layout_name, const char *codes, const char *scales)
{
    const bsm_format format = bsm_format_from_name(format_name);
    bsm_scale_layout layout = { .kind = BSM_LAYOUT_LINEAR };
    if (format == BSM_FORMAT_NONE || bsm_packing_from_name(packing) < 0
        || bsm_scale_layout_parse(layout_name, &layout) != BSM_OK)
        stop("a name is not known");
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    struct operand o =
        operand_make_packed(format, rows, columns, (bsm_packing)bsm_packing_from_name(packing), layout, 0, 0xff);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < columns; k++) operand_set(&o, r, k, hex(&codes, bits <= 8 ? 2 : bits / 4));
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o.matrix); s++)
            operand_set_scale(&o, r, s, (uint8_t)hex(&scales, 2));
    }
    return o;
}

static void print_bits(bsm_real type, const void *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        printf("%0*" PRIx64, (int)bsm_real_bytes((int)type) * 2, load_bits(type, data, i));
}

static void run_line(bsm_context *context, char *line)
{
    char *words[WORDS], *rest = NULL;
    int type = 0;
    for (int i = 0; i < WORDS; i++) {
        words[i] = strtok_r(i == 0 ? line : NULL, " \n", &rest);
        if (words[i] == NULL) stop("a line is too short");
    }
    while (type < BSM_REAL_COUNT && strcmp(bsm_real_name(type), words[5]) != 0) type++;
    if (type == BSM_REAL_COUNT) stop("a type is not known");
    const int64_t m = atoll(words[2]), n = atoll(words[3]), k = atoll(words[4]);
    struct operand a = read_operand(words[0], m, k, words[6], words[7], words[10], words[11]);
    struct operand b = read_operand(words[1], n, k, words[8], words[9], words[12], words[13]);
    void *sums = malloc((size_t)(m * n) * 8 + 1), *magnitudes = malloc((size_t)(m * n) * 8 + 1);
    if (sums == NULL || magnitudes == NULL) stop("no memory");
    const bsm_real_matrix sum = result_of((bsm_real)type, m, n, sums),
                          magnitude = result_of((bsm_real)type, m, n, magnitudes);
    if (bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, &magnitude) != BSM_OK) stop("the product");
    print_bits((bsm_real)type, sums, m * n);
    putchar(' ');
    print_bits((bsm_real)type, magnitudes, m * n);
    putchar('\n');
    free(sums), free(magnitudes);
    operand_free(&a), operand_free(&b);
}

int main(void)
{
    bsm_context *context = context_or_stop(0);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) run_line(context, line);
    free(line);
    bsm_context_destroy(context);
    return ferror(stdin) || ferror(stdout);
}
