/* Exchange between the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.9-14): shfl.sync, vote.sync, match.sync, redux.sync,
 * activemask, elect.sync.  All lanes of the member mask that have not exited must come to the same instruction. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/run/warp.h"

/* What the lanes of one mask do together. */
typedef trap exchange(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask);

/* No other lane can come to this one: the masks do not agree. */
static trap disagree(struct warp *w, const struct insn *in, uint32_t lanes, const uint64_t *row)
{
    FOR_LANES(l, lanes)
        FOR_LANES(k, (uint32_t)row[l] & w->live)
            if (row[k] != row[l])
                return warp_fault(w, in, l, REPORT_DIVERGENCE,
                                  "has the member mask 0x%08x in this lane and 0x%08x in lane %u, which is one of it",
                                  (uint32_t)row[l], (uint32_t)row[k], k);
    return TRAP_NONE;
}

/* The mask is operand i.  Lanes that stand here with several masks (halves of a warp, each with its own) exchange with
 * those of theirs alone; a mask of which lanes are missing, or have another mask so far, waits for them. */
static trap by_mask(struct warp *w, const struct insn *in, uint32_t lanes, int i, exchange *run)
{
    const uint64_t *row = source(w, in, i);
    uint32_t waiting = 0, first_mask = (uint32_t)row[__builtin_ctz(lanes)], masks[LANES] = { 0 };
    FOR_LANES(l, lanes) {
        masks[l] = (uint32_t)row[l];          /* the result may lie in the mask's register */
        if ((masks[l] >> l & 1) == 0)
            return warp_fault(w, in, l, REPORT_DIVERGENCE, "has a member mask (0x%08x) that lacks its own lane",
                              masks[l]);
    }
    for (uint32_t left = lanes; left != 0;) {
        const uint32_t mask = masks[__builtin_ctz(left)];
        uint32_t same = 0;
        FOR_LANES(l, left) same |= (uint32_t)(masks[l] == mask) << l;
        left &= ~same;
        if ((mask & w->live & ~same) != 0) {
            waiting |= same;
            continue;
        }
        const trap t = run(w, in, same, mask);
        if (t != TRAP_NONE) return t;
    }
    if (waiting == lanes) {
        const trap t = lanes == w->live ? disagree(w, in, lanes, row) : TRAP_NONE;
        return t != TRAP_NONE ? t : warp_wait(w, WAIT_CONVERGENCE, first_mask, lanes);
    }
    if (waiting != 0) warp_leave_behind(w, waiting);
    return TRAP_NONE;
}

/* shfl.sync.mode d|p, a, b, c, mask   d = a of the lane that mode, b and the segment and clamp in c give; p: that lane
 * is in the segment */
enum { SHFL_UP = 1, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
static trap shfl(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    const uint64_t *a = source(w, in, 2), *b = source(w, in, 3), *c = source(w, in, 4);
    const uint32_t mode = in->choice[0];
    uint64_t value[LANES];
    uint32_t inside = 0;
    FOR_LANES(l, lanes) {
        const uint32_t by = (uint32_t)b[l] & 31, clamp = (uint32_t)c[l] & 31, segment = (uint32_t)c[l] >> 8 & 31;
        const uint32_t highest = (l & segment) | (clamp & ~segment), lowest = l & segment;
        int32_t j;
        bool p;
        switch (mode) {
        case SHFL_UP: j = (int32_t)l - (int32_t)by, p = j >= (int32_t)highest; break;
        case SHFL_DOWN: j = (int32_t)(l + by), p = j <= (int32_t)highest; break;
        case SHFL_BFLY: j = (int32_t)(l ^ by), p = j <= (int32_t)highest; break;
        default: j = (int32_t)(lowest | (by & ~segment)), p = j <= (int32_t)highest; break;
        }
        const uint32_t from = p ? (uint32_t)j & 31 : l;
        if ((lanes >> from & 1) == 0)
            return warp_fault(w, in, l, REPORT_DIVERGENCE,
                              "reads lane %u, which does not take part (mask 0x%08x, lanes 0x%08x): the value is "
                              "undefined", from,
                              mask, lanes);
        value[l] = a[from] & UINT32_MAX;
        inside |= (uint32_t)p << l;
    }
    uint64_t *d = destination(w, in, 0), *p = in->operand[1].kind == OPERAND_NONE ? NULL : destination(w, in, 1);
    FOR_LANES(l, lanes) {
        d[l] = value[l];
        if (p != NULL) p[l] = inside >> l & 1;
    }
    return TRAP_NONE;
}
static trap op_shfl(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 5, shfl);
}

/* vote.sync.all/any/uni d, p, mask; vote.sync.ballot d, p, mask */
enum { VOTE_ALL = 1, VOTE_ANY, VOTE_UNI };
static trap vote(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    const uint32_t yes = predicate_lanes(w, &in->operand[1], lanes), mode = in->choice[0];
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = mode == VOTE_ALL ? yes == lanes : mode == VOTE_ANY ? yes != 0 : yes == lanes || yes == 0;
    return TRAP_NONE;
}
static trap op_vote(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 2, vote);
}
static trap ballot(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    const uint32_t yes = predicate_lanes(w, &in->operand[1], lanes);
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = yes;
    return TRAP_NONE;
}
static trap op_ballot(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 2, ballot);
}

/* match.any.sync d, a, mask   lanes with the same a; match.all.sync d|p: the mask if all have it, else 0 */
static trap match_any(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    uint32_t same[LANES] = { 0 };
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) FOR_LANES(k, lanes) same[l] |= (uint32_t)(((a[l] ^ a[k]) & in->mask) == 0) << k;
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = same[l];
    return TRAP_NONE;
}
static trap op_match_any(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 2, match_any);
}
static trap match_all(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    uint32_t same = 0;
    const uint64_t *a = source(w, in, 2);
    const uint32_t first = (uint32_t)__builtin_ctz(lanes);
    FOR_LANES(l, lanes) same |= (uint32_t)(((a[l] ^ a[first]) & in->mask) == 0) << l;
    uint64_t *d = destination(w, in, 0), *p = in->operand[1].kind == OPERAND_NONE ? NULL : destination(w, in, 1);
    FOR_LANES(l, lanes) {
        d[l] = same == lanes ? lanes : 0;
        if (p != NULL) p[l] = same == lanes;
    }
    return TRAP_NONE;
}
static trap op_match_all(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 3, match_all);
}

/* redux.sync.op d, a, mask   op over the lanes of the mask */
enum { REDUX_ADD = 1, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };
static trap redux(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    const uint64_t *a = source(w, in, 1);
    const bool is_signed = in->type[0] == T_S32;
    const int mode = (int)in->detail;
    uint64_t r = 0;
    bool first = true;
    FOR_LANES(l, lanes) {
        const uint64_t x = is_signed ? (uint64_t)sign_extend(a[l], 32) : a[l] & UINT32_MAX;
        const bool less = is_signed ? (int64_t)x < (int64_t)r : x < r;
        if (first) r = x;
        else r = mode == REDUX_ADD ? r + x : mode == REDUX_MIN ? (less ? x : r) : mode == REDUX_MAX ? (less ? r : x)
               : mode == REDUX_AND ? r & x : mode == REDUX_OR ? r | x : r ^ x;
        first = false;
    }
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = r & UINT32_MAX;
    return TRAP_NONE;
}
static trap op_redux(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 2, redux);
}
static const char *prepare_redux(struct module *module, struct insn *in)
{
    static const char *const words[] = { ".add", ".min", ".max", ".and", ".or", ".xor" };
    (void)module;
    for (int i = 0; i < 6; i++)
        if (insn_has(in, words[i])) in->detail = (uint64_t)i + 1;
    return NULL;
}

/* activemask d   the lanes that execute it together: as many as stand here now */
static trap op_activemask(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = lanes;
    return TRAP_NONE;
}

/* elect.sync d|p, mask   p is true in one lane of the mask, always the same: the lowest; d is its number */
static trap elect(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t mask)
{
    (void)mask;
    const uint32_t leader = (uint32_t)__builtin_ctz(lanes);
    uint64_t *d = destination(w, in, 0), *p = destination(w, in, 1);
    FOR_LANES(l, lanes) {
        d[l] = leader;
        p[l] = l == leader;
    }
    return TRAP_NONE;
}
static trap op_elect(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return by_mask(w, in, lanes, 2, elect);
}

static const struct row rows[] = {
    { "shfl.sync(.up|.down|.bfly|.idx).$1", "b32", "d_:1 |P s:1 s:u32 s:u32 s:u32", 60, "sm_30+", 0, op_shfl, NULL,
      "9.7.9.6 shfl.sync" },
    { "vote.sync(.all|.any|.uni).pred", NULL, "P p s:u32", 60, "sm_30+", 0, op_vote, NULL, "9.7.13.9 vote.sync" },
    { "vote.sync.ballot.b32", NULL, "d:b32 p s:u32", 60, "sm_30+", 0, op_ballot, NULL, "9.7.13.9 vote.sync" },
    { "match.any.sync.$1", "b32 b64", "d:b32 s:1 s:u32", 60, "sm_70+", 0, op_match_any, NULL, "9.7.13.10 match.sync" },
    { "match.all.sync.$1", "b32 b64", "d_:b32 |P s:1 s:u32", 60, "sm_70+", 0, op_match_all, NULL,
      "9.7.13.10 match.sync" },
    { "redux.sync(.add|.min|.max).$1", "u32 s32", "d:1 s:1 s:u32", 70, "sm_80+", 0, op_redux, prepare_redux,
      "9.7.13.12 redux.sync" },
    { "redux.sync(.and|.or|.xor).$1", "b32", "d:1 s:1 s:u32", 70, "sm_80+", 0, op_redux, prepare_redux,
      "9.7.13.12 redux.sync" },
    { "activemask.b32", NULL, "d:b32", 62, "sm_30+", 0, op_activemask, NULL, "9.7.13.11 activemask" },
    { "elect.sync", NULL, "d_:b32 &P s:u32", 80, "sm_90+", 0, op_elect, NULL, "9.7.13.14 elect.sync" },
};

const struct family family_warp = FAMILY("exchange within a warp", rows);
