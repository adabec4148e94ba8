/* Flat instructions, whose addresses lie in memory, LDS or scratch memory, lane by lane; and scratch instructions.
 *
 * What they read is read at issue.  A flat instruction counts in vmcnt and lgkmcnt, and its result has come when those
 * have been 0 that serve it: vmcnt for memory and scratch memory, lgkmcnt for LDS.  Offsets into scratch memory are a
 * lane's own (CDNA4 ISA, "Flat Memory Instructions"). */
#include "families.h"
#include "machine/events.h"
#include "machine/lds.h"
#include "machine/registers.h"
#include "machine/report.h"
#include "vector_memory.h"

#include <string.h>

struct place { enum { IN_MEMORY, IN_LDS, IN_PRIVATE } where; uint64_t at; };
enum { MOST_BYTES = 16 };

/* ---- addresses ---- */

/* Scratch: a vector register, a scalar one, both or none, and the constant. */
static bool private_addresses(struct wave *w, const struct insn *in, struct place place[LANES])
{
    const struct operand *a = operand_of(in, 'a'), *b = operand_of(in, 'b');
    const uint64_t exec = wave_exec(w);
    uint64_t base = 0;
    if (a->kind != OPERAND_NONE && (!vgpr_readable(w, in, a, READER_MEMORY)
                                    || !vgpr_defined(w, in, a, exec, 4, "an offset into scratch memory")))
        return false;
    if (b->kind == OPERAND_SGPR && (!hazard_sgpr_as_address(w, in, b->index, 1)
                                    || !scalar_defined(w, in, b, "an offset into scratch memory", &base)))
        return false;
    FOR_LANES(l, exec) {
        const uint32_t own = a->kind == OPERAND_NONE ? 0 : w->vgpr[operand_row(a)][l];
        place[l] = (struct place){ IN_PRIVATE, (uint32_t)base + own + (uint32_t)in->offset };
    }
    return true;
}

static bool flat_addresses(struct wave *w, const struct insn *in, struct place place[LANES])
{
    const struct operand *a = operand_of(in, 'a');
    const uint64_t exec = wave_exec(w);
    if (!vgpr_readable(w, in, a, READER_MEMORY) || !vgpr_defined(w, in, a, exec, 8, "an address")) return false;
    const uint32_t row = operand_row(a);
    FOR_LANES(l, exec) {
        const uint64_t at = (w->vgpr[row][l] | (uint64_t)w->vgpr[row + 1][l] << 32) + (uint64_t)in->offset;
        const uint32_t upper = (uint32_t)(at >> 32);
        place[l] = upper == LDS_APERTURE       ? (struct place){ IN_LDS, (uint32_t)at }
                   : upper == PRIVATE_APERTURE ? (struct place){ IN_PRIVATE, (uint32_t)at }
                                               : (struct place){ IN_MEMORY, at };
    }
    return true;
}

static bool in_private(struct wave *w, const struct insn *in, uint32_t lane, uint64_t at, uint32_t bytes, bool writes)
{
    const uint32_t have = w->group->grid->private_bytes;
    if (at <= have && bytes <= have - at) return true;
    wave_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %u bytes at offset 0x%llx of scratch memory, and a lane has %u "
               "bytes", writes ? "writes" : "reads", bytes, (unsigned long long)at, have);
    return false;
}

/* All lanes' places, held against what is there.  `needs`: the counters that the instruction is done by. */
static bool find_places(struct wave *w, const struct insn *in, bool writes, struct place place[LANES], struct event *e)
{
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    e->needs = 0;
    FOR_LANES(l, e->lanes) {
        const struct place *p = &place[l];
        const uint32_t lane = (uint32_t)l;
        e->needs |= p->where == IN_LDS ? NEEDS_LGKM : NEEDS_VM;
        if (p->where == IN_LDS && e->serial == 0 && (e->serial = lds_event(w, in, false)) == 0) return false;
        if (p->where == IN_LDS      ? !lds_access(w, in, lane, (uint32_t)p->at, bytes, writes, e->serial)
            : p->where == IN_MEMORY ? !in_memory(w, in, lane, p->at, bytes, writes)
                                    : !in_private(w, in, lane, p->at, bytes, writes))
            return false;
    }
    if (e->needs == 0) e->needs = NEEDS_VM;
    return true;
}

static struct event *begin(struct wave *w, const struct insn *in, bool writes, struct place place[LANES])
{
    const bool scratch = in->encoding == FORMAT_SCRATCH;
    if (!(scratch ? private_addresses(w, in, place) : flat_addresses(w, in, place))) return NULL;
    const enum counter counter = scratch ? COUNTER_VM : COUNTER_FLAT;
    const struct operand *d = operand_of(in, 'd');
    if (d != NULL && !vgpr_loadable(w, in, d, counter)) return NULL;
    struct event *e = event_new(w, in, counter, d != NULL ? EVENT_DS_READ : EVENT_DS_WRITE);
    if (e == NULL || !find_places(w, in, writes, place, e)) return NULL;
    if (d != NULL) e->first = (uint16_t)operand_row(d), e->dwords = d->dwords;
    return e;
}

/* ---- bytes ---- */

static uint8_t *private_at(const struct wave *w, uint8_t *all, uint32_t lane, uint64_t at)
{
    return all + (size_t)lane * w->group->grid->private_bytes + at;
}

static void get(const struct wave *w, uint32_t lane, const struct place *p, uint32_t bytes, uint8_t data[MOST_BYTES],
                uint8_t known[MOST_BYTES])
{
    struct lds *l = &w->group->lds;
    memset(known, 1, MOST_BYTES);
    if (p->where == IN_MEMORY) {
        memcpy(data, (const void *)(uintptr_t)p->at, bytes);
        return;
    }
    const bool lds = p->where == IN_LDS;
    memcpy(data, lds ? l->data + p->at : private_at(w, w->private_data, lane, p->at), bytes);
    memcpy(known, lds ? l->defined + p->at : private_at(w, w->private_defined, lane, p->at), bytes);
}

static void set(struct wave *w, uint32_t lane, const struct place *p, uint32_t bytes, const uint8_t data[MOST_BYTES],
                const uint8_t known[MOST_BYTES])
{
    struct lds *l = &w->group->lds;
    if (p->where == IN_MEMORY) {
        memcpy((void *)(uintptr_t)p->at, data, bytes);
        return;
    }
    const bool lds = p->where == IN_LDS;
    memcpy(lds ? l->data + p->at : private_at(w, w->private_data, lane, p->at), data, bytes);
    memcpy(lds ? l->defined + p->at : private_at(w, w->private_defined, lane, p->at), known, bytes);
}

/* ---- instructions ---- */

static trap load(struct wave *w, const struct insn *in)
{
    const uint32_t detail = in->row->detail, bytes = detail & ACCESS_BYTES;
    struct place place[LANES];
    struct event *e = begin(w, in, false, place);
    if (e == NULL) return TRAP_FAULT;
    memset(e->defined, 0, e->dwords * sizeof e->defined[0]);
    FOR_LANES(l, e->lanes) {
        uint8_t data[MOST_BYTES] = { 0 }, known[MOST_BYTES];
        get(w, (uint32_t)l, &place[l], bytes, data, known);
        for (uint32_t i = 0; i < e->dwords; i++) memcpy(&e->data[i][l], data + 4 * i, 4);
        if ((detail & EXTENDS) != 0)
            e->data[0][l] = bytes == 1 ? (uint32_t)(int32_t)(int8_t)data[0] : (uint32_t)(int32_t)(int16_t)e->data[0][l];
        for (uint32_t b = 0; b < 4u * e->dwords; b++)
            e->defined[b / 4][b % 4] |= (uint64_t)known[b < bytes ? b : bytes - 1] << l;
    }
    event_issued(w, e);
    return TRAP_NONE;
}

static trap store(struct wave *w, const struct insn *in)
{
    const uint32_t bytes = in->row->detail & ACCESS_BYTES, skipped = (in->row->detail & UPPER_HALF) != 0 ? 2 : 0;
    const struct operand *s = operand_of(in, 's');
    struct place place[LANES];
    if (!vgpr_readable(w, in, s, READER_MEMORY)) return TRAP_FAULT;
    struct event *e = begin(w, in, true, place);
    if (e == NULL) return TRAP_FAULT;
    const uint32_t row = operand_row(s);
    uint64_t to_memory = 0;
    FOR_LANES(l, e->lanes) to_memory |= (uint64_t)(place[l].where == IN_MEMORY) << l;
    if (skipped == 0 && !vgpr_defined(w, in, s, to_memory, bytes, "what it stores")) return TRAP_FAULT;
    FOR_LANES(l, e->lanes) {
        uint8_t data[MOST_BYTES], known[MOST_BYTES];
        for (uint32_t i = 0; i < bytes; i++) {
            const uint32_t b = i + skipped;
            data[i] = (uint8_t)(w->vgpr[row + b / 4][l] >> 8 * (b % 4));
            known[i] = w->defined[row + b / 4][b % 4] >> l & 1;
        }
        set(w, (uint32_t)l, &place[l], bytes, data, known);
    }
    event_issued(w, e);
    return TRAP_NONE;
}

/* Atomics at flat addresses: on memory and on LDS. */
static trap atomic(struct wave *w, const struct insn *in)
{
    const uint32_t bytes = in->row->detail & ACCESS_BYTES;
    const enum atomic how = (enum atomic)(in->row->detail >> 16);
    const struct operand *s = operand_of(in, 's');
    struct place place[LANES];
    if (!vgpr_readable(w, in, s, READER_MEMORY)
        || !vgpr_defined(w, in, s, wave_exec(w), 4u * s->dwords, "what it combines"))
        return TRAP_FAULT;
    struct event *e = begin(w, in, true, place);
    if (e == NULL) return TRAP_FAULT;
    if (e->serial != 0) lds_is_atomic(w, e->serial);
    memset(e->defined, 0, 2 * sizeof e->defined[0]);
    pthread_mutex_lock(&w->group->grid->atomics);
    FOR_LANES(l, e->lanes) {
        uint8_t data[MOST_BYTES] = { 0 }, known[MOST_BYTES];
        uint64_t old, given[2] = { 0, 0 };
        get(w, (uint32_t)l, &place[l], bytes, data, known);
        memcpy(&old, data, sizeof old);
        for (uint32_t i = 0; i < s->dwords; i++)
            given[4 * i / bytes] |= (uint64_t)w->vgpr[operand_row(s) + i][l] << (4 * i % bytes * 8);
        const uint64_t now = atomic_combined(how, bytes, old, given[0], given[1]);
        for (uint32_t i = 0; i < 2; i++) e->data[i][l] = (uint32_t)(old >> 32 * i);
        for (uint32_t b = 0; b < 8; b++) e->defined[b / 4][b % 4] |= (uint64_t)known[b < bytes ? b : 0] << l;
        memcpy(data, &now, sizeof now);
        set(w, (uint32_t)l, &place[l], bytes, data, known);
    }
    pthread_mutex_unlock(&w->group->grid->atomics);
    event_issued(w, e);
    return TRAP_NONE;
}

#define LOAD(name, opcode, dwords, detail) \
    { PREFIX name, opcode, "d" dwords ADDRESS, 0, detail, load, NULL }
#define STORE(name, opcode, dwords, detail) \
    { PREFIX name, opcode, STORED(dwords), 0, detail, store, NULL }
#define ACCESSES \
    LOAD("load_ubyte", 16, "1", 1), LOAD("load_sbyte", 17, "1", 1 | EXTENDS), LOAD("load_ushort", 18, "1", 2), \
    LOAD("load_sshort", 19, "1", 2 | EXTENDS), LOAD("load_dword", 20, "1", 4), LOAD("load_dwordx2", 21, "2", 8), \
    LOAD("load_dwordx3", 22, "3", 12), LOAD("load_dwordx4", 23, "4", 16), STORE("store_byte", 24, "1", 1), \
    STORE("store_byte_d16_hi", 25, "1", 1 | UPPER_HALF), STORE("store_short", 26, "1", 2), \
    STORE("store_short_d16_hi", 27, "1", 2 | UPPER_HALF), STORE("store_dword", 28, "1", 4), \
    STORE("store_dwordx2", 29, "2", 8), STORE("store_dwordx3", 30, "3", 12), STORE("store_dwordx4", 31, "4", 16), \
    LOAD("load_ubyte_d16", 32, "1", 1 | LOWER_HALF), LOAD("load_ubyte_d16_hi", 33, "1", 1 | UPPER_HALF), \
    LOAD("load_sbyte_d16", 34, "1", 1 | LOWER_HALF | EXTENDS), \
    LOAD("load_sbyte_d16_hi", 35, "1", 1 | UPPER_HALF | EXTENDS), LOAD("load_short_d16", 36, "1", 2 | LOWER_HALF), \
    LOAD("load_short_d16_hi", 37, "1", 2 | UPPER_HALF)

#define FOUR(name, opcode, how) \
    { "flat_atomic_" name, opcode, "d1 a2 s1", ROW_RETURNS, ATOMIC_DETAIL(4, how), atomic, NULL }
#define EIGHT(name, opcode, how) \
    { "flat_atomic_" name, opcode, "d2 a2 s2", ROW_RETURNS, ATOMIC_DETAIL(8, how), atomic, NULL }
#define BOTH(name, opcode, how) FOUR(name, opcode, how), EIGHT(name "_x2", opcode + 32, how)
#define PREFIX "flat_"
#define ADDRESS " a2"
#define STORED(dwords) "a2 s" dwords
static const struct row rows_flat[] = {
    ACCESSES,
    BOTH("swap", 64, ATOMIC_SWAP),
    { "flat_atomic_cmpswap", 65, "d1 a2 s2", ROW_RETURNS, ATOMIC_DETAIL(4, ATOMIC_COMPARE), atomic, NULL },
    { "flat_atomic_cmpswap_x2", 97, "d2 a2 s4", ROW_RETURNS, ATOMIC_DETAIL(8, ATOMIC_COMPARE), atomic, NULL },
    BOTH("add", 66, ATOMIC_ADD), BOTH("sub", 67, ATOMIC_SUB), BOTH("smin", 68, ATOMIC_SMIN),
    BOTH("umin", 69, ATOMIC_UMIN), BOTH("smax", 70, ATOMIC_SMAX), BOTH("umax", 71, ATOMIC_UMAX),
    BOTH("and", 72, ATOMIC_AND), BOTH("or", 73, ATOMIC_OR), BOTH("xor", 74, ATOMIC_XOR), BOTH("inc", 75, ATOMIC_INC),
    BOTH("dec", 76, ATOMIC_DEC), FOUR("add_f32", 77, ATOMIC_ADD_FLOAT), EIGHT("add_f64", 79, ATOMIC_ADD_FLOAT),
};
const struct family family_flat = FAMILY("Flat Memory Instructions", FORMAT_FLAT, rows_flat);
#undef PREFIX
#undef ADDRESS
#undef STORED

#define PREFIX "scratch_"
#define ADDRESS " a1 b1"
#define STORED(dwords) "a1 s" dwords " b1"
static const struct row rows_scratch[] = { ACCESSES };
const struct family family_scratch = FAMILY("Flat Memory Instructions", FORMAT_SCRATCH, rows_scratch);
