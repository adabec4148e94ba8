/* Operands between reading and matching. */
#ifndef CUDASIM_PTX_PARSED_H
#define CUDASIM_PTX_PARSED_H

#include "ptx/reader.h"

enum { MAX_PARSED = 16, MAX_ELEMENTS = 512 };

struct parsed {
    struct token at;                      /* where it begins; of a name: the name */
    struct operand operand;
    struct constant constant;
    bool is_constant, is_name;            /* is_name: a label, or nothing known yet */
    bool pair;                            /* stands behind '|' */
    bool in_address;                      /* the coordinates of the address before */
    bool is_list;                         /* (a, b) of a call */
    uint32_t first;                       /* vectors: where their elements begin */
};

struct parsed_list {
    struct parsed item[MAX_PARSED];
    uint32_t count;
    struct parsed element[MAX_ELEMENTS];
    uint32_t elements;
};

/* Up to the ';', which stays. */
void read_operands(struct reader *r, struct parsed_list *list, bool is_call);

/* match.c: whether the operands are what the row wants; fills in->operand.  Where not, *failed_at is the operand (or
 * the ';') and sentence says what should stand there; *reached orders rows by how far they understood. */
struct mismatch { struct token at; char sentence[200]; uint32_t reached; };
bool operands_match(struct reader *r, const struct row *row, struct insn *in, const struct parsed_list *list,
                    struct mismatch *why);

#endif
