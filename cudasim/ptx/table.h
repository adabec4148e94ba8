/* The table of instructions: a row says how a form is written, which operands it takes, since when and where it exists,
 * what it demands of the lanes, and who executes it.  Reader, checker, disassembler, documentation and coverage all
 * read these rows.
 *
 * pattern   "add{.rn|.rz}{.ftz}.$1": words in their order; {.a|.b} may be left out, (.a|.b) may not; .$1 is a type of
 *           the first set; # inside a word is a number (".m64n#k16").
 *           Words with a common meaning (.rn, .ftz, .shared::cta, .v4, .acquire, ...)
 *           fill insn.rounding, flags, space, vector, semantics, scope, compare; the rest is in insn.choice by group.
 *           Words with a common meaning may also stand in another order, as ptxas allows; all others may not.
 * types     sets of types for $1, $2, ..., separated by ';': "u16 u32; s32".  Without $1, insn.type[0] is the first
 *           type spelled out.
 * operands  separated by blanks, each [?|(.word)][|]CLASS[_][:TYPE][+][*|{n}|{}], CLASS being
 *             d destination register (d_: or a sink)            s source: register, constant, address of a variable or
 *                                                               function
 *             r source register    i integer constant           q special register that changes (%clock64)
 *             a address [..]       A [address, {coordinates}]: two operands, the second a vector of TYPE
 *             p predicate source, may be negated                P predicate result or a sink
 *             l label              t table of labels            C the operands of call
 *           TYPE a number (the type of $n), w1 (twice the width of $1), or a type's name.  Then
 *             +  a wider register is allowed (ld, st, cvt)
 *             *  a vector {..} as long as the .v2/.v4/.v8 modifier says (a scalar without it, which may stand in
 *                braces)
 *             {n} a vector of n elements; {} of any number; {1?} one element, with or without its braces
 *           ?  the operand may be left out;  (.word)  it is there exactly if the modifier is;
 *           |  it stands behind '|', or not at all;  &  it stands behind '|'
 *           A handler finds operand i of this list in in->operand[i]; one that was left out has kind OPERAND_NONE.
 * targets   "" everywhere, "sm_80+", or a list "sm_90a sm_100a". */
#ifndef CUDASIM_PTX_TABLE_H
#define CUDASIM_PTX_TABLE_H

#include "ptx/ptx.h"

/* What an instruction demands of the lanes of its warp. */
enum { DEMANDS_NOTHING = 0,
       DEMANDS_ALIGNED = 1,               /* all lanes that have not exited execute it together */
       DEMANDS_WARPGROUP = 2,             /* all four warps of an aligned group of four, too */
       ENDS_BLOCK = 4,                    /* control may not fall through: for the reader's check of the function's
                                             end */
       NONE_EXITED = 8,                   /* "undefined if any thread in the warp has exited", or never was there */
       MOVES = 16,                        /* operand 1 goes to operand 0 as it is: no demand, but the use of registers
                                             that are still being written asks for it */
       DEMANDS_WHOLE_WARP = DEMANDS_ALIGNED | NONE_EXITED };

struct row {
    const char *pattern, *types, *operands;
    uint16_t since;                       /* PTX version times 10 */
    const char *targets;
    uint32_t demands;
    insn_handler *run;
    /* Works out what depends on modifiers and operands; may replace in->run.  Returns NULL, or why this form is
     * refused. */
    const char *(*prepare)(struct module *module, struct insn *in);
    const char *section;                  /* of the PTX manual */
};

struct family { const char *name; const struct row *rows; int count; };
#define FAMILY(name, rows) { name, rows, (int)(sizeof(rows) / sizeof((rows)[0])) }

/* instructions/table/families.c: all families; ends with name NULL. */
extern const struct family *const instruction_families[];

/* Whether the word (".ftz") was written; how often, where a pattern has it in several places.  For prepare
 * functions. */
bool insn_has(const struct insn *in, const char *word);
uint32_t insn_count(const struct insn *in, const char *word);

/* Rows whose mnemonic begins with `base` ("add"), in order: *state starts at 0; NULL at the end. */
const struct row *table_next(const char *base, size_t length, uint32_t *state);
bool table_knows(const char *base, size_t length);

/* Matching of the words behind the base.  words: ".rn", ".f32", ...; returns true if the row's pattern is exactly these
 * words and fills in's choice, type, and common fields; *reached is the number of words understood. */
struct word { const char *text; uint32_t length, column; };
bool pattern_match(const struct row *row, const struct word *words, uint32_t count, struct insn *in, uint32_t *reached);

/* Which field of insn the word fills (a number per field; two flags are two kinds), or -1. */
int common_kind(const char *word, size_t length);
/* Sets rounding, flags, ... from one word; false if the word has no common meaning. */
bool common_word(struct insn *in, const char *word, size_t length);

/* Whether the form exists for a module of this version and target; else writes why into sentence. */
bool row_available(const struct row *row, const struct module *module, char *sentence, size_t size);

/* Whether the i-th operand (of insn.operand) is written. */
bool row_writes(const struct row *row, uint32_t i);

/* NULL, or what is wrong with the row itself (tests call it for each). */
const char *row_check(const struct row *row);

#endif
