/* Global and buffer instructions: loads, stores, loads to LDS. */
#include "vector_memory.h"

#include "families.h"
#include "machine/events.h"
#include "machine/registers.h"
#include "machine/lds.h"
#include "machine/memory.h"
#include "machine/report.h"

#include <string.h>

const struct operand *operand_of(const struct insn *in, char role)
{
    for (int i = 0; i < in->operands; i++)
        if (in->operand[i].role == role) return &in->operand[i];
    return NULL;
}

/* ---- addresses ---- */

static bool global_target(struct wave *w, const struct insn *in, uint32_t bytes, struct target *t)
{
    const struct operand *a = operand_of(in, 'a'), *b = operand_of(in, 'b');
    const uint64_t exec = wave_exec(w);
    uint64_t base = 0;
    if (!vgpr_readable(w, in, a, READER_MEMORY) || !vgpr_defined(w, in, a, exec, 4u * a->dwords, "an address"))
        return false;
    if (b->kind == OPERAND_SGPR
        && (!hazard_sgpr_as_address(w, in, b->index, 2) || !scalar_defined(w, in, b, "an address", &base)))
        return false;
    const uint32_t row = operand_row(a);
    FOR_LANES(l, exec) {
        const uint64_t own = w->vgpr[row][l] | (a->dwords == 2 ? (uint64_t)w->vgpr[row + 1][l] << 32 : 0);
        t->address[l] = base + own + (uint64_t)(int64_t)in->offset;
        t->dwords[l] = (uint8_t)((bytes + 3) / 4);
    }
    return true;
}

/* Buffers without swizzle.  Raw: base and a number of bytes; each dword is held against that, the scalar offset
 * included; a stride that nothing multiplies changes nothing.  With an index: that many strides further, and the number
 * is one of records (CDNA4 ISA, "Buffer Addressing"). */
static bool buffer_target(struct wave *w, const struct insn *in, uint32_t bytes, struct target *t)
{
    const struct operand *a = operand_of(in, 'a'), *b = operand_of(in, 'b'), *s = operand_of(in, 'o');
    const uint64_t exec = wave_exec(w);
    uint64_t word[2], soffset;
    struct operand low = *b, high = *b;
    low.dwords = high.dwords = 2, high.index = (uint16_t)(b->index + 2);
    if (!hazard_sgpr_as_address(w, in, b->index, 4) || !scalar_defined(w, in, &low, "a buffer's description", &word[0])
        || !scalar_defined(w, in, &high, "a buffer's description", &word[1])
        || !scalar_defined(w, in, s, "an offset", &soffset))
        return false;
    if (s->kind == OPERAND_SGPR && !hazard_sgpr_as_address(w, in, s->index, 1)) return false;
    if ((word[0] >> 63) != 0 || (word[1] >> 55 & 1) != 0) {
        wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "names a buffer with a swizzle, or one that adds the lane's number; "
                   "gfxsim has neither");
        return false;
    }
    if ((in->offen || in->idxen)
        && (!vgpr_readable(w, in, a, READER_MEMORY) || !vgpr_defined(w, in, a, exec, 4u * a->dwords, "an offset")))
        return false;
    const uint64_t base = word[0] & UINT64_C(0xffffffffffff), stride = word[0] >> 48 & 0x3fff,
                   records = (uint32_t)word[1];
    const uint32_t row = in->offen || in->idxen ? operand_row(a) : 0;
    FOR_LANES(l, exec) {
        const uint64_t index = in->idxen ? w->vgpr[row][l] : 0,
                       own = in->offen ? w->vgpr[in->idxen ? row + 1 : row][l] : 0,
                       offset = own + (uint64_t)(uint32_t)in->offset + (uint32_t)soffset;
        t->address[l] = base + index * stride + offset;
        t->dwords[l] = 0;
        for (uint32_t i = 0; i < bytes; i += 4)
            if (in->idxen ? index < records : offset + i + (bytes < 4 ? bytes : 4) <= records)
                t->dwords[l] = (uint8_t)(i / 4 + 1);
            else break;
    }
    return true;
}

bool in_memory(struct wave *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, bool writes)
{
    const struct allocation *a = w->recent;
    if (a != NULL && address - a->base < a->bytes && bytes <= a->bytes - (address - a->base)
        && (!writes || a->kind < ALLOCATION_CODE))
        return true;
    const struct memory *m = &w->group->grid->machine->memory;
    a = memory_find(m, address, bytes);
    if (a != NULL && (!writes || a->kind < ALLOCATION_CODE)) {
        w->recent = a;
        return true;
    }
    const struct allocation *near = memory_below(m, address);
    const char *verb = writes ? "writes" : "reads";
    if (a != NULL)
        wave_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %llu bytes at 0x%llx, in code or in the kernel's arguments",
                   verb, (unsigned long long)bytes, (unsigned long long)address);
    else if (near != NULL)
        wave_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %llu bytes at 0x%llx: the nearest allocation below has %llu "
                   "bytes, of which this is number %llu", verb, (unsigned long long)bytes, (unsigned long long)address,
                   (unsigned long long)near->bytes, (unsigned long long)(address - near->base));
    else wave_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %llu bytes at 0x%llx, where nothing is allocated", verb,
                    (unsigned long long)bytes, (unsigned long long)address);
    return false;
}

bool find_target(struct wave *w, const struct insn *in, uint32_t bytes, bool writes, struct target *t)
{
    if (!(in->encoding == FORMAT_BUFFER ? buffer_target(w, in, bytes, t) : global_target(w, in, bytes, t)))
        return false;
    FOR_LANES(l, wave_exec(w)) {
        const uint32_t there = bytes < 4 && t->dwords[l] != 0 ? bytes : 4u * t->dwords[l];
        if (there != 0 && !in_memory(w, in, (uint32_t)l, t->address[l], there, writes)) return false;
    }
    return true;
}

/* ---- loads ---- */

static trap load_to_lds(struct wave *w, const struct insn *in, const struct target *t, uint32_t bytes)
{
    static const struct operand m0 = { .kind = OPERAND_SGPR, .dwords = 1, .index = M0 };
    uint64_t base;
    if (!hazard_m0(w, in) || !scalar_defined(w, in, &m0, "the LDS address (M0)", &base)) return TRAP_FAULT;
    if (base % 4 != 0)
        return wave_fault(w, in, NO_LANE, REPORT_MISALIGNED,
                          "loads to LDS address 0x%llx (M0), which is no multiple of 4", (unsigned long long)base);
    struct event *e = event_new(w, in, COUNTER_VM, EVENT_TO_LDS);
    if (e == NULL || (e->serial = lds_event(w, in, true)) == 0) return TRAP_FAULT;
    e->bytes = (uint8_t)bytes;
    memcpy(e->address, t->address, sizeof e->address);
    memcpy(e->present, t->dwords, sizeof e->present);
    FOR_LANES(l, e->lanes) {
        e->lds[l] = (uint32_t)base + (uint32_t)in->offset + (uint32_t)l * bytes;
        if (!lds_access(w, in, (uint32_t)l, e->lds[l], bytes, true, e->serial)) return TRAP_FAULT;
    }
    event_issued(w, e);
    return TRAP_NONE;
}

static trap load(struct wave *w, const struct insn *in)
{
    const uint32_t detail = in->row->detail, bytes = detail & ACCESS_BYTES;
    struct target t;
    if (!find_target(w, in, bytes, false, &t)) return TRAP_FAULT;
    if (in->lds) return load_to_lds(w, in, &t, bytes);
    const struct operand *d = operand_of(in, 'd');
    if (!vgpr_loadable(w, in, d, COUNTER_VM)) return TRAP_FAULT;
    struct event *e = event_new(w, in, COUNTER_VM, EVENT_LOAD);
    if (e == NULL) return TRAP_FAULT;
    e->first = (uint16_t)operand_row(d), e->dwords = d->dwords, e->bytes = (uint8_t)bytes;
    memcpy(e->address, t.address, sizeof e->address);
    memcpy(e->present, t.dwords, sizeof e->present);
    event_issued(w, e);
    return TRAP_NONE;
}

/* ---- stores: memory has them at once, which no program can tell from later ---- */

static trap store(struct wave *w, const struct insn *in)
{
    const uint32_t bytes = in->row->detail & ACCESS_BYTES, skipped = (in->row->detail & UPPER_HALF) != 0 ? 2 : 0;
    const struct operand *s = operand_of(in, 's');
    const uint64_t exec = wave_exec(w);
    struct target t;
    if (!vgpr_readable(w, in, s, READER_MEMORY) || !find_target(w, in, bytes, true, &t)) return TRAP_FAULT;
    if (skipped == 0 && !vgpr_defined(w, in, s, exec, bytes, "what it stores")) return TRAP_FAULT;
    const uint32_t row = operand_row(s);
    FOR_LANES(l, exec) {
        const uint32_t there = bytes < 4 && t.dwords[l] != 0 ? bytes : 4u * t.dwords[l];
        uint8_t *to = (uint8_t *)(uintptr_t)t.address[l];
        for (uint32_t i = 0; i < there; i += 4) {
            const uint32_t value = w->vgpr[row + i / 4][l] >> 8 * skipped;
            memcpy(to + i, &value, there - i < 4 ? there - i : 4);
        }
    }
    struct event *e = event_new(w, in, COUNTER_VM, EVENT_STORE);
    if (e == NULL) return TRAP_FAULT;
    event_issued(w, e);
    return TRAP_NONE;
}

/* Caches are not modelled. */
static trap nothing(struct wave *w, const struct insn *in)
{
    (void)w, (void)in;
    return TRAP_NONE;
}

#define L(name, opcode, words, detail) { name, opcode, words, 0, detail, load, NULL }
#define S(name, opcode, words, detail) { name, opcode, words, 0, detail, store, NULL }
static const struct row rows_global[] = {
    L("global_load_ubyte", 16, "d1 a1 b2", 1),
    L("global_load_sbyte", 17, "d1 a1 b2", 1 | EXTENDS),
    L("global_load_ushort", 18, "d1 a1 b2", 2),
    L("global_load_sshort", 19, "d1 a1 b2", 2 | EXTENDS),
    L("global_load_dword", 20, "d1 a1 b2", 4),
    L("global_load_dwordx2", 21, "d2 a1 b2", 8),
    L("global_load_dwordx3", 22, "d3 a1 b2", 12),
    L("global_load_dwordx4", 23, "d4 a1 b2", 16),
    S("global_store_byte", 24, "a1 s1 b2", 1),
    S("global_store_byte_d16_hi", 25, "a1 s1 b2", 1 | UPPER_HALF),
    S("global_store_short", 26, "a1 s1 b2", 2),
    S("global_store_short_d16_hi", 27, "a1 s1 b2", 2 | UPPER_HALF),
    S("global_store_dword", 28, "a1 s1 b2", 4),
    S("global_store_dwordx2", 29, "a1 s2 b2", 8),
    S("global_store_dwordx3", 30, "a1 s3 b2", 12),
    S("global_store_dwordx4", 31, "a1 s4 b2", 16),
    L("global_load_ubyte_d16", 32, "d1 a1 b2", 1 | LOWER_HALF),
    L("global_load_ubyte_d16_hi", 33, "d1 a1 b2", 1 | UPPER_HALF),
    L("global_load_sbyte_d16", 34, "d1 a1 b2", 1 | LOWER_HALF | EXTENDS),
    L("global_load_sbyte_d16_hi", 35, "d1 a1 b2", 1 | UPPER_HALF | EXTENDS),
    L("global_load_short_d16", 36, "d1 a1 b2", 2 | LOWER_HALF),
    L("global_load_short_d16_hi", 37, "d1 a1 b2", 2 | UPPER_HALF),
    { "global_load_lds_dword", 42, "a1 b2", ROW_TO_LDS, 4, load, NULL },
    { "global_load_lds_dwordx4", 125, "a1 b2", ROW_TO_LDS, 16, load, NULL },
    { "global_load_lds_dwordx3", 126, "a1 b2", ROW_TO_LDS, 12, load, NULL },
};
const struct family family_global = FAMILY("Flat Memory Instructions", FORMAT_GLOBAL, rows_global);

/* `o` is the scalar offset.  What a load to LDS of less than a dword writes there is not known: there is none here. */
#define LDS_TOO(name, opcode, words, detail) { name, opcode, words, ROW_TO_LDS, detail, load, NULL }
static const struct row rows_buffer[] = {
    L("buffer_load_ubyte", 16, "d1 a1 b4 o1", 1), L("buffer_load_sbyte", 17, "d1 a1 b4 o1", 1 | EXTENDS),
    L("buffer_load_ushort", 18, "d1 a1 b4 o1", 2), L("buffer_load_sshort", 19, "d1 a1 b4 o1", 2 | EXTENDS),
    LDS_TOO("buffer_load_dword", 20, "d1 a1 b4 o1", 4), L("buffer_load_dwordx2", 21, "d2 a1 b4 o1", 8),
    LDS_TOO("buffer_load_dwordx3", 22, "d3 a1 b4 o1", 12), LDS_TOO("buffer_load_dwordx4", 23, "d4 a1 b4 o1", 16),
    S("buffer_store_byte", 24, "s1 a1 b4 o1", 1), S("buffer_store_short", 26, "s1 a1 b4 o1", 2),
    S("buffer_store_byte_d16_hi", 25, "s1 a1 b4 o1", 1 | UPPER_HALF),
    S("buffer_store_short_d16_hi", 27, "s1 a1 b4 o1", 2 | UPPER_HALF),
    L("buffer_load_ubyte_d16", 32, "d1 a1 b4 o1", 1 | LOWER_HALF),
    L("buffer_load_ubyte_d16_hi", 33, "d1 a1 b4 o1", 1 | UPPER_HALF),
    L("buffer_load_sbyte_d16", 34, "d1 a1 b4 o1", 1 | LOWER_HALF | EXTENDS),
    L("buffer_load_sbyte_d16_hi", 35, "d1 a1 b4 o1", 1 | UPPER_HALF | EXTENDS),
    L("buffer_load_short_d16", 36, "d1 a1 b4 o1", 2 | LOWER_HALF),
    L("buffer_load_short_d16_hi", 37, "d1 a1 b4 o1", 2 | UPPER_HALF),
    S("buffer_store_dword", 28, "s1 a1 b4 o1", 4), S("buffer_store_dwordx2", 29, "s2 a1 b4 o1", 8),
    { "buffer_wbl2", 40, "", 0, 0, nothing, NULL }, { "buffer_inv", 41, "", 0, 0, nothing, NULL },
    S("buffer_store_dwordx3", 30, "s3 a1 b4 o1", 12), S("buffer_store_dwordx4", 31, "s4 a1 b4 o1", 16),
};
const struct family family_buffer = FAMILY("Vector Memory Operations", FORMAT_BUFFER, rows_buffer);
