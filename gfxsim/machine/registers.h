/* Registers as instructions use them: bounds, results that have not come, what nobody has written, wait states. */
#ifndef GFXSIM_MACHINE_REGISTERS_H
#define GFXSIM_MACHINE_REGISTERS_H

#include "hazards.h"

static inline uint32_t operand_row(const struct operand *o)
{
    return (uint32_t)o->index + (o->kind == OPERAND_AGPR ? AGPR : 0u);
}

/* The vector registers of an operand are there, have come, and may be read (or written): false after a report. */
bool vgpr_readable(struct wave *w, const struct insn *in, const struct operand *o, enum reader reader);
bool vgpr_writable(struct wave *w, const struct insn *in, const struct operand *o);
/* A load's destination: results of one kind may be on their way to the same register, in order. */
bool vgpr_loadable(struct wave *w, const struct insn *in, const struct operand *o, enum counter counter);
/* All bytes of these lanes are defined, or a report says that `what` is made of bytes that are not. */
bool vgpr_defined(struct wave *w, const struct insn *in, const struct operand *o, uint64_t lanes, uint32_t bytes,
                  const char *what);
/* Where the bytes of `dwords` rows are all defined. */
uint64_t rows_defined(const struct wave *w, uint32_t row, uint32_t dwords);

/* A scalar source: value and undefined bits.  False after a report. */
struct scalar { uint64_t value, undefined; };
bool scalar_read(struct wave *w, const struct insn *in, const struct operand *o, struct scalar *s);
bool scalar_write(struct wave *w, const struct insn *in, const struct operand *o, struct scalar s, enum writer by);
/* The same where undefined bits are a report: addresses, masks, sizes. */
bool scalar_defined(struct wave *w, const struct insn *in, const struct operand *o, const char *what, uint64_t *value);
bool sgpr_ready(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords, bool writes);

static inline void written(struct wave *w, uint32_t row, uint32_t dwords, enum writer by, uint8_t passes)
{
    for (uint32_t i = row; i < row + dwords; i++)
        w->vgpr_written[i] = (struct written){ w->state, (uint8_t)by, passes, (uint16_t)row, (uint16_t)dwords };
}

#endif
