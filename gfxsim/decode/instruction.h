/* A decoded instruction, and the rows of the table that it comes from.
 *
 * A row names its operands in the order of the assembler, a word each: a letter for the place in the encoding, the
 * number of dwords, a letter for what a constant means:
 *
 *     d   destination          x   destination that is read, too     D   scalar destination of a vector instruction
 *     s   the next source      m   mask that is read (VCC, or src2)  c   mask that is written (VCC, or sdst)
 *     k   literal of v_fmamk   u   bits (nothing written), f fp32, h fp16, g bf16, e fp64, i signed 64 bits, w 16 bits,
 *                                  v registers alone
 */
#ifndef GFXSIM_DECODE_INSTRUCTION_H
#define GFXSIM_DECODE_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum format {
    FORMAT_SOP2, FORMAT_SOPK, FORMAT_SOP1, FORMAT_SOPC, FORMAT_SOPP, FORMAT_SMEM,
    FORMAT_VOP1, FORMAT_VOP2, FORMAT_VOPC,                     /* with their VOP3 forms */
    FORMAT_VOP3, FORMAT_VOP3P, FORMAT_MFMA,
    FORMAT_DS, FORMAT_GLOBAL, FORMAT_FLAT, FORMAT_SCRATCH, FORMAT_BUFFER,
    FORMAT_COUNT
};

/* What the machine has to know of a row. */
enum row_flags {
    ROW_FLOAT = 1,            /* sources may be negated or made absolute (neg, abs) */
    ROW_BITWISE = 2,          /* a bit of the result comes from one bit of each source, whatever their values; `detail`
                                 has a bit for each source that is a count, which decides about all */
    ROW_BYTEWISE = 4,         /* a byte of the result is undefined where that byte of a source is */
    ROW_OWN_DEFINED = 8,      /* the handler works out itself which bytes of the result are defined */
    ROW_SELECTS = 16,         /* op_sel names halves or bytes, also of the destination */
    ROW_PACKED = 32,          /* VOP3P: op_sel, op_sel_hi, neg_lo, neg_hi */
    ROW_ALL_LANES = 64,       /* EXEC is not looked at */
    ROW_TRANSCENDENTAL = 128, /* one wait state before another kind of vector instruction reads the result */
    ROW_RETURNS = 512,        /* atomics with sc0 return the value from before */
    ROW_TO_LDS = 1024,        /* memory: from memory to LDS */
    ROW_TWO_OFFSETS = 2048,   /* DS: offset0 and offset1 */
    ROW_FLOATS_OUT = 4096,    /* the result is a float: output modifiers */
    ROW_VECTOR_SOURCES = 8192,/* all operands are registers */
    ROW_NO_SHORT = 16384,     /* of VOP1 and VOP2: has no long form, and no suffix that tells it apart */
    ROW_SCALAR_LANE = 32768,  /* reads a lane of one vector register, or writes one: the rest are scalars */
    ROW_HALF = 65536,         /* op_sel names halves; the destination's other half stays */
    ROW_CLAMPS = 131072,      /* clamp saturates whole numbers: the handler's work */
    ROW_MIXED = 262144,       /* VOP3P: sources are fp32, or the half that op_sel names where op_sel_hi is set */
    ROW_WRITES_EXEC = 524288, /* comparisons: the mask goes to EXEC, too */
    ROW_SOURCE_PART = 1048576,/* VOP1: SDWA chooses a part of the source alone */
    ROW_NO_HALVES = 2097152   /* VOP3P: op_sel is 0, and op_sel_hi says nothing */
};

struct wave;
struct insn;
struct lanes;

/* What a handler gives back. */
typedef enum trap {
    TRAP_NONE,                /* on to the next instruction */
    TRAP_JUMP,                /* the handler has set the program counter */
    TRAP_BARRIER,             /* the wave has come to s_barrier */
    TRAP_END,                 /* the wave has ended */
    TRAP_FAULT                /* the report is written */
} trap;

typedef trap run_function(struct wave *w, const struct insn *in);
typedef void lane_function(struct lanes *x);

struct row {
    const char *name;
    uint16_t opcode;
    const char *operands;
    uint32_t flags;
    uint32_t detail;          /* of the family: bytes of memory, formats, ... */
    run_function *run;        /* scalar, memory, matrix, and what exchanges lanes */
    lane_function *lanes;     /* vector arithmetic: instructions/valu.h */
};

struct family {
    const char *title;        /* of the manual's chapter, for reports */
    enum format format;
    const struct row *rows;
    size_t count;
};
#define FAMILY(title, format, rows) { title, format, rows, sizeof(rows) / sizeof((rows)[0]) }

/* All families: instructions/families.c */
extern const struct family *const instruction_families[];
extern const size_t instruction_family_count;

enum operand_kind {
    OPERAND_NONE,
    OPERAND_SGPR,             /* index 0..127: SGPRs, VCC 106, M0 124, EXEC 126 as in the encoding */
    OPERAND_VGPR,             /* index 0..255 */
    OPERAND_AGPR,
    OPERAND_CONSTANT,         /* value */
    OPERAND_LITERAL,          /* value, 32 bits behind the instruction */
    OPERAND_BIT               /* VCCZ 251, EXECZ 252, SCC 253; bases of LDS and scratch memory 235 to 238 */
};

struct operand {
    uint8_t kind, dwords;
    char role, type;
    uint16_t index;
    uint32_t code;            /* as encoded */
    uint64_t value;
};

enum { MOST_OPERANDS = 6 };

struct insn {
    const struct row *row;
    const struct family *family;
    run_function *run;
    uint32_t pc, bytes;
    struct operand operand[MOST_OPERANDS];
    uint8_t operands;
    uint8_t encoding;         /* enum format of the bits: VOP3 for the long form of a VOP1, VOP2, VOPC */
    uint8_t neg, abs, omod;   /* of VOP3P: neg is neg_lo, abs is neg_hi */
    bool clamp;
    uint8_t op_sel, op_sel_hi;
    bool sdwa, dpp;
    uint8_t dst_sel, dst_unused, src_sel[2], src_sext;
    uint16_t dpp_control;
    uint8_t row_mask, bank_mask;
    bool bound_control;
    int32_t offset, offset1;
    uint8_t cbsz, abid, blgp;
    bool scaled;              /* MFMA: with scales (operands 4 and 5) */
    bool sc0, sc1, nt, lds, offen, idxen, gds;
    int32_t simm;             /* SOPK, SOPP */
};

#endif
