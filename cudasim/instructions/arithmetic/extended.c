/* Arithmetic with carry (PTX ISA 9.7.2): add.cc, addc, sub.cc, subc, mad.cc, madc.  The carry is a bit per lane of the
 * warp: of a difference a - b it is that of a + ~b + 1, so 1 means no borrow, as chains of mixed kinds show on
 * hardware. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"

/* d = a + b + carry, where flip makes b its complement; without the carry of before (take) a sum has 0, a difference
 * 1. */
static trap add_with(struct warp *w, const struct insn *in, uint32_t lanes, const uint64_t *a, const uint64_t *b,
                     bool take, uint64_t flip)
{
    uint64_t *d = destination(w, in, 0);
    const uint32_t bits = insn_bits(in);
    uint32_t out = 0;
    FOR_LANES(l, lanes) {
        const uint32_t carry = take ? w->carry >> l & 1 : flip & 1;
        const uint128 sum = (uint128)(a[l] & in->mask) + ((b[l] ^ flip) & in->mask) + carry;
        d[l] = (uint64_t)sum & in->mask;
        out |= (uint32_t)(sum >> bits & 1) << l;
    }
    if ((in->flags & FLAG_CC) != 0) w->carry = (w->carry & ~lanes) | out;
    return TRAP_NONE;
}

static trap op_add_cc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return add_with(w, in, lanes, source(w, in, 1), source(w, in, 2), false, 0);
}
static trap op_addc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return add_with(w, in, lanes, source(w, in, 1), source(w, in, 2), true, 0);
}
static trap op_sub_cc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return add_with(w, in, lanes, source(w, in, 1), source(w, in, 2), false, UINT64_MAX);
}
static trap op_subc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return add_with(w, in, lanes, source(w, in, 1), source(w, in, 2), true, UINT64_MAX);
}

static trap mad_with(struct warp *w, const struct insn *in, uint32_t lanes, bool take)
{
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    const uint32_t bits = insn_bits(in);
    const bool high = in->detail != 0, is_signed = type_kind((enum ptx_type)in->type[0]) == 's';
    uint64_t product[LANES];
    FOR_LANES(l, lanes) {
        if (is_signed) {
            const int128 p = (int128)sign_extend(a[l], bits) * sign_extend(b[l], bits);
            product[l] = (uint64_t)(high ? p >> bits : p);
        } else {
            const uint128 p = (uint128)(a[l] & in->mask) * (b[l] & in->mask);
            product[l] = (uint64_t)(high ? p >> bits : p);
        }
    }
    return add_with(w, in, lanes, product, source(w, in, 3), take, 0);
}
static trap op_mad_cc(struct warp *w, const struct insn *in, uint32_t lanes) { return mad_with(w, in, lanes, false); }
static trap op_madc(struct warp *w, const struct insn *in, uint32_t lanes) { return mad_with(w, in, lanes, true); }

static const char *prepare_mad(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = insn_has(in, ".hi");
    return NULL;
}

#define INTEGERS "u32 u64 s32 s64"
static const struct row rows[] = {
    { "add.cc.$1", INTEGERS, "d:1 s:1 s:1", 12, "", 0, op_add_cc, NULL, "9.7.2.1 add.cc" },
    { "addc{.cc}.$1", INTEGERS, "d:1 s:1 s:1", 12, "", 0, op_addc, NULL, "9.7.2.2 addc" },
    { "sub.cc.$1", INTEGERS, "d:1 s:1 s:1", 12, "", 0, op_sub_cc, NULL, "9.7.2.3 sub.cc" },
    { "subc{.cc}.$1", INTEGERS, "d:1 s:1 s:1", 12, "", 0, op_subc, NULL, "9.7.2.4 subc" },
    { "mad(.lo|.hi).cc.$1", INTEGERS, "d:1 s:1 s:1 s:1", 30, "", 0, op_mad_cc, prepare_mad, "9.7.2.5 mad.cc" },
    { "madc(.lo|.hi){.cc}.$1", INTEGERS, "d:1 s:1 s:1 s:1", 30, "", 0, op_madc, prepare_mad, "9.7.2.6 madc" },
};

const struct family family_extended = FAMILY("extended-precision integer arithmetic", rows);
