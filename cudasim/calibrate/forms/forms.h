/* Forms: what a row of the table stands for when every choice is made. */
#ifndef CUDASIM_CALIBRATE_FORMS_FORMS_H
#define CUDASIM_CALIBRATE_FORMS_FORMS_H

#include "ptx/table.h"

enum { FORM_TEXT = 192, FORM_CHOICES = MODIFIER_GROUPS + INSN_TYPES };

struct form {
    const struct row *row;
    char text[FORM_TEXT];                 /* "add.rn.ftz.f32" */
    uint8_t choice[FORM_CHOICES];         /* by group, then by type: which alternative */
    struct insn in;                       /* row, type, vector, choice are filled */
};

/* All forms of the row, with a malloc'ed array of *count; a '#' in the pattern stays.  Words that are the same twice
 * (.u32 as $1 of two rows) are not looked for. */
struct form *forms_of(const struct row *row, uint32_t *count);
/* About `most` of them, at equal distances, where they are more. */
struct form *forms_some(const struct row *row, uint32_t most, uint32_t *count);

/* The row's pattern with the choices of an instruction that was read. */
void form_of_insn(const struct insn *in, char *text, size_t size);

/* Finds the row of a form's text, by words alone; NULL. */
const struct row *row_of_form(const char *text, struct insn *in);

/* One item of a row's operands column. */
struct form_operand {
    char kind;                            /* d, s, r, i, q, a, A, p, P, l, t, C */
    bool optional, pair, must_pair, sink, wider;
    char word[32];                        /* of (.word) */
    uint8_t type;                         /* enum ptx_type */
    int vector;                           /* 0 scalar, n elements, -1 as the modifier says, -2 any number */
};
enum { FORM_OPERANDS = 12 };
int form_operands(const struct insn *in, struct form_operand *out);

#endif
