/* Which combinations of an operand's form, format, packing, scale layout, class of K and pitch products ran with on a
 * GPU: what the host chose, seen where it launches.  Linked into a test program with --wrap (CMakeLists.txt): nothing
 * of it is in the library.
 *
 * The environment variable BLOCKSCALE_COMBINATIONS names a file: at its end each program appends what it ran. */
#ifndef TESTS_CUDA_COMBINATIONS_H
#define TESTS_CUDA_COMBINATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How an operand gets to the products. */
enum combination_form {
    FORM_SIMT,             /* read as it is by cuda_simt */
    FORM_ROWS_AS_THEY_ARE, /* bf16, by TMA */
    FORM_REPACKED,         /* bf16 that TMA cannot describe */
    FORM_DECODED_PLAINLY,  /* into rows, by bsmi_decode_plain */
    FORM_DECODED,          /* into rows, by bsmi_decode */
    FORM_OWN_SCALES,       /* decoded in the kernel, the caller's scales */
    FORM_SCALES_PLAINLY,   /* the same with scales that bsmi_decode_plain brings */
    FORM_SCALES,           /* or bsmi_decode */
    FORM_REGISTERS,        /* decoded in registers, scales in any layout */
    FORM_PANELS,
    FORM_INTEGERS,
    FORM_REQUANTIZEED,
    FORM_CODES, /* and what follows: times kinds, codes as they are or repacked, and kinds of scales */
    FORM_COUNT = FORM_CODES + 3 * 2 * 4
};

enum combination_layout {
    SCALES_NONE,
    SCALES_LINEAR,
    SCALES_APART,
    SCALES_128X4,
    SCALES_OTHERS,
    SCALES_GGUF,
    COMBINATION_LAYOUTS
};
enum combination_k { K_64, K_16, K_RAGGED, COMBINATION_KS };

struct combination {
    int role, form, format, packing, layout, k, apart; /* role: 0 A, 1 B; apart: rows that are not tight */
};

enum { COMBINATIONS = 2 * FORM_COUNT * 16 * 8 * COMBINATION_LAYOUTS * COMBINATION_KS * 2 };

/* Numbers below COMBINATIONS, and back. */
int combination_number(const struct combination *c);
struct combination combination_of(int number);
const char *combination_form_name(int form);
void combination_print(FILE *to, const struct combination *c);

/* How many products each was in, since the program began; a plan's and bsm_multiply's count. */
extern uint32_t combinations_ran[COMBINATIONS];

/* While this is set nothing is launched: what the host chose for the last product is in combinations_last, A and B. */
extern bool combinations_dry;
extern int combinations_last[2];

#endif
