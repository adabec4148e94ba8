/* DS instructions: reads, writes, transposing reads, permutes through LDS's crossbar. */
#include "lds_access.h"

#include "families.h"
#include "machine/events.h"
#include "machine/lds.h"
#include "machine/registers.h"
#include "machine/report.h"

#include <string.h>

bool lds_addresses(struct wave *w, const struct insn *in, const struct operand *o, uint32_t address[LANES])
{
    const uint64_t exec = wave_exec(w);
    if (!vgpr_readable(w, in, o, READER_MEMORY) || !vgpr_defined(w, in, o, exec, 4, "an LDS address")) return false;
    memcpy(address, w->vgpr[operand_row(o)], LANES * sizeof address[0]);
    return true;
}

static bool aligned(struct wave *w, const struct insn *in, uint32_t lane, uint32_t address, uint32_t bytes)
{
    const uint32_t to = bytes == 12 ? 16 : bytes;
    if (address % to == 0) return true;
    wave_fault(w, in, lane, REPORT_MISALIGNED, "touches LDS address 0x%x, which is no multiple of %u", address, to);
    return false;
}

/* Lanes that are served together, 64 banks of 4 bytes: 64 lanes of 4 bytes, half of them of 8, a quarter of 16.  A
 * conflict is a turn more than one. */
static void count_conflicts(struct wave *w, const uint32_t address[LANES], uint64_t exec, uint32_t bytes)
{
    const uint32_t together = bytes <= 4 ? 64 : bytes == 8 ? 32 : 16;
    for (uint32_t first = 0; first < LANES; first += together) {
        uint8_t turns[64] = { 0 };
        uint32_t word[64][4], most = 1;
        for (uint32_t lane = first; lane < first + together; lane++) {
            if (!(exec >> lane & 1)) continue;
            for (uint32_t i = 0; i < bytes; i += 4) {
                const uint32_t dword = (address[lane] + i) / 4, bank = dword % 64;
                uint32_t k = 0;
                while (k < turns[bank] && k < 4 && word[bank][k] != dword) k++;
                if (k < turns[bank] && k < 4) continue;
                if (turns[bank] < 4) word[bank][turns[bank]] = dword;
                turns[bank]++;
                if (turns[bank] > most) most = turns[bank];
            }
        }
        w->group->bank_conflicts += most - 1;
    }
    w->group->lds_accesses++;
}

bool lds_touch(struct wave *w, const struct insn *in, const uint32_t address[LANES], uint32_t offset, uint32_t bytes,
               bool writes, uint32_t serial)
{
    const uint64_t exec = wave_exec(w);
    FOR_LANES(lane, exec) {
        const uint32_t at = address[lane] + offset;
        if (!aligned(w, in, (uint32_t)lane, at, bytes)
            || !lds_access(w, in, (uint32_t)lane, at, bytes, writes, serial))
            return false;
    }
    uint32_t shifted[LANES];
    for (int i = 0; i < LANES; i++) shifted[i] = address[i] + offset;
    count_conflicts(w, shifted, exec, bytes);
    return true;
}

/* ---- reads ---- */

void lds_take(const struct lds *l, struct event *e, uint32_t lane, uint32_t at, uint32_t bytes, uint32_t dword)
{
    for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t value = 0;
        const uint32_t count = bytes - i < 4 ? bytes - i : 4;
        memcpy(&value, l->data + at + i, count);
        e->data[dword + i / 4][lane] = value;
        for (uint32_t b = 0; b < 4; b++) {
            const uint64_t known = b >= count || l->defined[at + i + b] ? 1 : 0;
            uint64_t *d = &e->defined[dword + i / 4][b];
            *d = (*d & ~(UINT64_C(1) << lane)) | known << lane;
        }
    }
}

static struct event *begin_read(struct wave *w, const struct insn *in, uint32_t address[LANES])
{
    if (!lds_addresses(w, in, &in->operand[1], address) || !vgpr_loadable(w, in, &in->operand[0], COUNTER_DS))
        return NULL;
    struct event *e = event_new(w, in, COUNTER_DS, EVENT_DS_READ);
    if (e == NULL) return NULL;
    e->serial = lds_event(w, in, false);
    e->first = (uint16_t)operand_row(&in->operand[0]), e->dwords = in->operand[0].dwords;
    return e->serial == 0 ? NULL : e;
}

static trap ds_read(struct wave *w, const struct insn *in)
{
    uint32_t address[LANES];
    const uint32_t detail = in->row->detail, bytes = detail & ACCESS_BYTES;
    struct event *e = begin_read(w, in, address);
    if (e == NULL || !lds_touch(w, in, address, (uint32_t)in->offset, bytes, false, e->serial)) return TRAP_FAULT;
    FOR_LANES(lane, e->lanes) {
        lds_take(&w->group->lds, e, (uint32_t)lane, address[lane] + (uint32_t)in->offset, bytes, 0);
        uint32_t *d = &e->data[0][lane];
        if ((detail & EXTENDS) != 0)
            *d = bytes == 1 ? (uint32_t)(int32_t)(int8_t)*d : (uint32_t)(int32_t)(int16_t)*d;
    }
    event_issued(w, e);
    return TRAP_NONE;
}

/* Two reads of half the result, offsets in units of an element (of 64 elements: detail above the bytes). */
enum { TIMES_64 = 1 << 11 };
static trap ds_read2(struct wave *w, const struct insn *in)
{
    uint32_t address[LANES];
    const uint32_t bytes = in->row->detail & ACCESS_BYTES,
                   unit = bytes * ((in->row->detail & TIMES_64) != 0 ? 64 : 1);
    struct event *e = begin_read(w, in, address);
    if (e == NULL) return TRAP_FAULT;
    for (int i = 0; i < 2; i++) {
        const uint32_t offset = unit * (uint32_t)(i == 0 ? in->offset : in->offset1);
        if (!lds_touch(w, in, address, offset, bytes, false, e->serial)) return TRAP_FAULT;
        FOR_LANES(lane, e->lanes)
            lds_take(&w->group->lds, e, (uint32_t)lane, address[lane] + offset, bytes, (uint32_t)i * bytes / 4);
    }
    event_issued(w, e);
    return TRAP_NONE;
}

/* Of each 16 lanes, lane s brings the bytes of one row, or of a part of one, and lane c takes column c.  `bits` of an
 * element: 4 and 6 have 16 elements a lane; of 8 there are two lanes a row, of 16 four.  b4 and b8 as Triton's
 * kernels need them; b6 and b16 by analogy. */
static void transpose(struct event *e, uint32_t bits)
{
    const uint32_t own = bits == 6 ? 16 : 64 / bits, parts = 16 / own, dwords = e->dwords;
    uint32_t out[4][LANES];
    uint64_t defined[4] = { 0 };
    memset(out, 0, sizeof out);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint64_t known = 1;
        for (uint32_t i = 0; i < own; i++) {
            const uint32_t s = i * parts + lane % 16 / own, j = lane % own, from = lane / 16 * 16 + s;
            const uint32_t bit = j * bits, shift = bit % 32;
            uint64_t two = e->data[bit / 32][from];
            if (shift + bits > 32) two |= (uint64_t)e->data[bit / 32 + 1][from] << 32;
            const uint32_t code = (uint32_t)(two >> shift) & ((1u << bits) - 1), to = i * bits;
            out[to / 32][lane] |= code << to % 32;
            if (to % 32 + bits > 32) out[to / 32 + 1][lane] |= code >> (32 - to % 32);
            for (uint32_t b = bit / 8; b <= (bit + bits - 1) / 8; b++) known &= e->defined[b / 4][b % 4] >> from;
        }
        defined[0] |= (known & 1) << lane;
    }
    for (uint32_t i = 0; i < dwords; i++) {
        memcpy(e->data[i], out[i], sizeof out[i]);
        for (int b = 0; b < 4; b++) e->defined[i][b] = defined[0];
    }
}

static trap ds_read_tr(struct wave *w, const struct insn *in)
{
    const uint64_t exec = wave_exec(w);
    if (exec != UINT64_MAX)
        return wave_fault(w, in, NO_LANE, REPORT_DIVERGENCE, "transposes between lanes while EXEC is 0x%llx; all lanes "
                          "have to take part", (unsigned long long)exec);
    uint32_t address[LANES];
    const uint32_t bytes = 4u * in->operand[0].dwords;
    struct event *e = begin_read(w, in, address);
    if (e == NULL) return TRAP_FAULT;
    FOR_LANES(lane, exec) {
        const uint32_t at = address[lane] + (uint32_t)in->offset;
        if (at % 8 != 0) {
            wave_fault(w, in, (uint32_t)lane, REPORT_MISALIGNED, "touches LDS address 0x%x, which is no multiple of 8",
                       at);
            return TRAP_FAULT;
        }
        if (!lds_access(w, in, (uint32_t)lane, at, bytes, false, e->serial)) return TRAP_FAULT;
        lds_take(&w->group->lds, e, (uint32_t)lane, at, bytes, 0);
    }
    w->group->lds_accesses++;
    transpose(e, in->row->detail);
    event_issued(w, e);
    return TRAP_NONE;
}

/* ---- writes ---- */

void lds_put(struct wave *w, uint32_t row, uint32_t lane, uint32_t at, uint32_t bytes, uint32_t skipped)
{
    struct lds *l = &w->group->lds;
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t b = i + skipped;
        l->data[at + i] = (uint8_t)(w->vgpr[row + b / 4][lane] >> 8 * (b % 4));
        l->defined[at + i] = w->defined[row + b / 4][b % 4] >> lane & 1;
    }
}

static struct event *begin_write(struct wave *w, const struct insn *in, uint32_t address[LANES])
{
    if (!lds_addresses(w, in, &in->operand[0], address)) return NULL;
    for (int i = 1; i < in->operands; i++)
        if (!vgpr_readable(w, in, &in->operand[i], READER_MEMORY)) return NULL;
    struct event *e = event_new(w, in, COUNTER_DS, EVENT_DS_WRITE);
    if (e == NULL) return NULL;
    e->serial = lds_event(w, in, false);
    return e->serial == 0 ? NULL : e;
}

static trap ds_write(struct wave *w, const struct insn *in)
{
    uint32_t address[LANES];
    const uint32_t bytes = in->row->detail & ACCESS_BYTES, skipped = (in->row->detail & UPPER_HALF) != 0 ? 2 : 0;
    struct event *e = begin_write(w, in, address);
    if (e == NULL || !lds_touch(w, in, address, (uint32_t)in->offset, bytes, true, e->serial)) return TRAP_FAULT;
    FOR_LANES(lane, e->lanes)
        lds_put(w, operand_row(&in->operand[1]), (uint32_t)lane, address[lane] + (uint32_t)in->offset, bytes, skipped);
    event_issued(w, e);
    return TRAP_NONE;
}

static trap ds_write2(struct wave *w, const struct insn *in)
{
    uint32_t address[LANES];
    const uint32_t bytes = in->row->detail & ACCESS_BYTES,
                   unit = bytes * ((in->row->detail & TIMES_64) != 0 ? 64 : 1);
    struct event *e = begin_write(w, in, address);
    if (e == NULL) return TRAP_FAULT;
    for (int i = 0; i < 2; i++) {
        const uint32_t offset = unit * (uint32_t)(i == 0 ? in->offset : in->offset1);
        if (!lds_touch(w, in, address, offset, bytes, true, e->serial)) return TRAP_FAULT;
        FOR_LANES(lane, e->lanes)
            lds_put(w, operand_row(&in->operand[1 + i]), (uint32_t)lane, address[lane] + offset, bytes, 0);
    }
    event_issued(w, e);
    return TRAP_NONE;
}

/* ---- permutes: no LDS bytes ---- */

static trap ds_permute(struct wave *w, const struct insn *in)
{
    const bool backward = in->row->detail != 0;
    uint32_t address[LANES];
    const uint64_t exec = wave_exec(w);
    if (!lds_addresses(w, in, &in->operand[1], address) || !vgpr_readable(w, in, &in->operand[2], READER_MEMORY)
        || !vgpr_loadable(w, in, &in->operand[0], COUNTER_DS))
        return TRAP_FAULT;
    struct event *e = event_new(w, in, COUNTER_DS, EVENT_DS_READ);
    if (e == NULL) return TRAP_FAULT;
    const uint32_t row = operand_row(&in->operand[2]);
    memset(e->data[0], 0, sizeof e->data[0]);
    memset(e->defined[0], 0xff, sizeof e->defined[0]);
    FOR_LANES(lane, exec) {
        const uint32_t other = (address[lane] + (uint32_t)in->offset) / 4 % LANES,
                       to = backward ? (uint32_t)lane : other, from = backward ? other : (uint32_t)lane;
        if (!(exec >> from & 1)) continue;                                /* lanes that are off give 0 */
        e->data[0][to] = w->vgpr[row][from];
        for (int b = 0; b < 4; b++)
            e->defined[0][b] = (e->defined[0][b] & ~(UINT64_C(1) << to)) | (w->defined[row][b] >> from & 1) << to;
    }
    e->first = (uint16_t)operand_row(&in->operand[0]), e->dwords = 1;
    event_issued(w, e);
    return TRAP_NONE;
}

#define TWO ROW_TWO_OFFSETS
static const struct row rows[] = {
    { "ds_write_b32", 13, "a1 s1", 0, 4, ds_write, NULL },
    { "ds_write2_b32", 14, "a1 s1 s1", TWO, 4, ds_write2, NULL },
    { "ds_write2st64_b32", 15, "a1 s1 s1", TWO, 4 | TIMES_64, ds_write2, NULL },
    { "ds_write_b8", 30, "a1 s1", 0, 1, ds_write, NULL }, { "ds_write_b16", 31, "a1 s1", 0, 2, ds_write, NULL },
    { "ds_read_b32", 54, "d1 a1", 0, 4, ds_read, NULL },
    { "ds_read2_b32", 55, "d2 a1", TWO, 4, ds_read2, NULL },
    { "ds_read2st64_b32", 56, "d2 a1", TWO, 4 | TIMES_64, ds_read2, NULL },
    { "ds_read_i8", 57, "d1 a1", 0, 1 | EXTENDS, ds_read, NULL }, { "ds_read_u8", 58, "d1 a1", 0, 1, ds_read, NULL },
    { "ds_read_i16", 59, "d1 a1", 0, 2 | EXTENDS, ds_read, NULL }, { "ds_read_u16", 60, "d1 a1", 0, 2, ds_read, NULL },
    { "ds_permute_b32", 62, "d1 a1 s1", 0, 0, ds_permute, NULL },
    { "ds_bpermute_b32", 63, "d1 a1 s1", 0, 1, ds_permute, NULL },
    { "ds_write_b64", 77, "a1 s2", 0, 8, ds_write, NULL },
    { "ds_write2_b64", 78, "a1 s2 s2", TWO, 8, ds_write2, NULL },
    { "ds_write2st64_b64", 79, "a1 s2 s2", TWO, 8 | TIMES_64, ds_write2, NULL },
    { "ds_write_b8_d16_hi", 84, "a1 s1", 0, 1 | UPPER_HALF, ds_write, NULL },
    { "ds_write_b16_d16_hi", 85, "a1 s1", 0, 2 | UPPER_HALF, ds_write, NULL },
    { "ds_read_u8_d16", 86, "d1 a1", 0, 1 | LOWER_HALF, ds_read, NULL },
    { "ds_read_u8_d16_hi", 87, "d1 a1", 0, 1 | UPPER_HALF, ds_read, NULL },
    { "ds_read_i8_d16", 88, "d1 a1", 0, 1 | LOWER_HALF | EXTENDS, ds_read, NULL },
    { "ds_read_i8_d16_hi", 89, "d1 a1", 0, 1 | UPPER_HALF | EXTENDS, ds_read, NULL },
    { "ds_read_u16_d16", 90, "d1 a1", 0, 2 | LOWER_HALF, ds_read, NULL },
    { "ds_read_u16_d16_hi", 91, "d1 a1", 0, 2 | UPPER_HALF, ds_read, NULL },
    { "ds_read_b64", 118, "d2 a1", 0, 8, ds_read, NULL },
    { "ds_read2_b64", 119, "d4 a1", TWO, 8, ds_read2, NULL },
    { "ds_read2st64_b64", 120, "d4 a1", TWO, 8 | TIMES_64, ds_read2, NULL },
    { "ds_write_b96", 222, "a1 s3", 0, 12, ds_write, NULL }, { "ds_write_b128", 223, "a1 s4", 0, 16, ds_write, NULL },
    { "ds_read_b64_tr_b4", 224, "d2 a1", 0, 4, ds_read_tr, NULL },
    { "ds_read_b96_tr_b6", 225, "d3 a1", 0, 6, ds_read_tr, NULL },
    { "ds_read_b64_tr_b8", 226, "d2 a1", 0, 8, ds_read_tr, NULL },
    { "ds_read_b64_tr_b16", 227, "d2 a1", 0, 16, ds_read_tr, NULL },
    { "ds_read_b96", 254, "d3 a1", 0, 12, ds_read, NULL }, { "ds_read_b128", 255, "d4 a1", 0, 16, ds_read, NULL },
};
const struct family family_lds = FAMILY("Data Share Operations", FORMAT_DS, rows);
