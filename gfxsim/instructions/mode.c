/* The register MODE: s_setreg, s_getreg and s_setvskip. */
#include "families.h"
#include "machine/registers.h"
#include "machine/report.h"

/* Which bits of which register: number, first bit, bits - 1. */
static bool field(struct wave *w, const struct insn *in, uint32_t *shift, uint32_t *ones)
{
    const uint32_t simm = (uint16_t)in->simm, size = (simm >> 11) + 1;
    *shift = simm >> 6 & 31, *ones = size == 32 ? UINT32_MAX : (1u << size) - 1;
    if ((simm & 63) == 1) return true;
    wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "asks for a register of the hardware that gfxsim does not have: it has "
               "MODE alone");
    return false;
}

static trap set(struct wave *w, const struct insn *in, uint32_t mode)
{
    const uint32_t denormals = mode & MODE_DENORMALS;
    if ((mode & 15) != 0 || (mode & 0xc0) != 0xc0 || (denormals != 0 && denormals != MODE_DENORMALS))
        return wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "sets FLOAT_MODE 0x%x; gfxsim has 0xf0 and 0xc0: rounding to "
                          "nearest, denormals of fp32 kept or flushed, others kept", mode & 0xff);
    w->mode = mode;
    w->indexing = (mode & MODE_INDEXING) != 0;
    return TRAP_NONE;
}

static trap s_setreg(struct wave *w, const struct insn *in)
{
    uint32_t shift, ones;
    uint64_t value;
    if (!field(w, in, &shift, &ones)) return TRAP_FAULT;
    if (in->operand[0].role == 'k') value = in->operand[0].value;
    else if (!scalar_defined(w, in, &in->operand[0], "a value of MODE", &value)) return TRAP_FAULT;
    const uint32_t old = w->indexing ? w->mode | MODE_INDEXING : w->mode & ~(uint32_t)MODE_INDEXING;
    return set(w, in, (old & ~(ones << shift)) | ((uint32_t)value & ones) << shift);
}

static trap s_getreg(struct wave *w, const struct insn *in)
{
    uint32_t shift, ones;
    if (!field(w, in, &shift, &ones)) return TRAP_FAULT;
    const uint32_t mode = w->indexing ? w->mode | MODE_INDEXING : w->mode & ~(uint32_t)MODE_INDEXING;
    return scalar_write(w, in, &in->operand[0], (struct scalar){ mode >> shift & ones, 0 }, WRITER_SALU) ? TRAP_NONE
                                                                                                        : TRAP_FAULT;
}

/* A bit of the first source, which the second one names.  Vector instructions that are passed over count in no
 * counter; machine/wave.c passes them over. */
static trap s_setvskip(struct wave *w, const struct insn *in)
{
    uint64_t bits, which;
    if (!scalar_defined(w, in, &in->operand[0], "what turns vector instructions off", &bits)
        || !scalar_defined(w, in, &in->operand[1], "a bit's number", &which))
        return TRAP_FAULT;
    w->mode = (w->mode & ~(uint32_t)MODE_SKIPS) | ((bits >> (which & 31) & 1) != 0 ? MODE_SKIPS : 0);
    return TRAP_NONE;
}

static const struct row rows_k[] = {
    { "s_getreg_b32", 17, "d1", 0, 0, s_getreg, NULL },
    { "s_setreg_b32", 18, "x1", 0, 0, s_setreg, NULL },
    { "s_setreg_imm32_b32", 20, "k1", 0, 0, s_setreg, NULL },
};
const struct family family_mode_k = FAMILY("Scalar ALU Operations", FORMAT_SOPK, rows_k);
static const struct row rows_c[] = { { "s_setvskip", 16, "s1 s1", 0, 0, s_setvskip, NULL } };
const struct family family_mode_c = FAMILY("Scalar ALU Operations", FORMAT_SOPC, rows_c);
