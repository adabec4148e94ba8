/* Whether two regions share a byte: exact, in a time that does not grow with their rows.
 *
 * Matrix b, row i of a region begins b batch_stride + i row_stride bytes behind its start.  So stretches of x and y
 * share a byte where
 *     lo <= (sum of k_d stride_d over the dimensions of x) - (the same of y) <= hi,   0 <= k_d < count_d,
 * with lo and hi from the starts and the bytes of a row.  Dimensions of y are counted backwards, which turns the
 * difference into a sum, and dimensions with the same stride become one.  Two dimensions are left in the usual case,
 * two matrices with the same pitches; their question is one for Euclid's algorithm. */
#include "meet.h"

#include "core/core.h"

__extension__ typedef __int128 wide;

struct dimension { wide count, stride; };
struct question { struct dimension dimensions[4]; int count; wide lo, hi; };

static wide least(wide a, wide b) { return a < b ? a : b; }
/* Rounded up; b > 0. */
static wide quotient_up(wide a, wide b) { return a / b + (a % b > 0); }
static wide quotient_down(wide a, wide b) { return a / b - (a % b < 0); }
static wide reach(const struct dimension *d) { return (d->count - 1) * d->stride; }

static void add_dimension(struct question *q, int64_t count, int64_t stride)
{
    int i = 0;
    if (count <= 1 || stride == 0) return;
    while (i < q->count && q->dimensions[i].stride != stride) i++;
    if (i == q->count) q->dimensions[q->count++] = (struct dimension){ 1, stride };
    q->dimensions[i].count += count - 1;
}

static void ask(const struct bsmi_region *x, const struct bsmi_region *y, struct question *q)
{
    const wide ahead = (wide)x->start - (wide)y->start;
    q->count = 0;
    add_dimension(q, y->batch, y->batch_stride);
    add_dimension(q, y->rows, y->row_stride);
    q->lo = 1 - (wide)x->row_bytes - ahead, q->hi = (wide)y->row_bytes - 1 - ahead;
    for (int i = 0; i < q->count; i++) q->lo += reach(&q->dimensions[i]), q->hi += reach(&q->dimensions[i]);
    add_dimension(q, x->batch, x->batch_stride);
    add_dimension(q, x->rows, x->row_stride);
}

static void sort_by_stride(struct question *q)
{
    for (int i = 1; i < q->count; i++)
        for (int j = i; j > 0 && q->dimensions[j].stride < q->dimensions[j - 1].stride; j--) {
            const struct dimension swapped = q->dimensions[j];
            q->dimensions[j] = q->dimensions[j - 1], q->dimensions[j - 1] = swapped;
        }
}

static void remove_dimension(struct question *q, int number)
{
    q->count--;
    for (int i = number; i < q->count; i++) q->dimensions[i] = q->dimensions[i + 1];
}

/* A window at least as long as a stride holds a multiple of it wherever it lies between the first and the last: the
 * dimension makes the window longer, and is done with.  Afterwards the window is shorter than every stride that is
 * left. */
static void absorb_short_strides(struct question *q)
{
    while (q->count > 0 && q->dimensions[0].stride <= q->hi - q->lo + 1) {
        q->lo -= reach(&q->dimensions[0]);
        remove_dimension(q, 0);
    }
}

/* The least t >= 0 with l <= a t mod m <= r, where 0 < l <= r < m and 0 <= a < m; -1 if there is none.  If no
 * multiple of a lies between l and r, the least number of times that a t must pass m is asked in the same way, modulo
 * a; m is halved at least. */
static wide first_hit(wide a, wide m, wide l, wide r)
{
    if (2 * a > m) return first_hit(m - a, m, m - r, m - l);
    if (a == 0) return -1;
    const wide t = quotient_up(l, a);
    if (t * a <= r) return t;
    const wide passed = first_hit((a - m % a) % a, a, l % a, r % a);
    return passed < 0 ? -1 : quotient_up(l + m * passed, a);
}

/* The numbers k of one dimension for which the others can reach the window, if they reach 0 .. others. */
static void bounds(const struct question *q, const struct dimension *d, wide others, wide *first, wide *last)
{
    *first = quotient_up(q->lo - others, d->stride), *last = quotient_down(q->hi, d->stride);
    if (*first < 0) *first = 0;
    *last = least(*last, d->count - 1);
}

/* With two dimensions: the second's k, from `first` on, for which a multiple of the first's stride lies in the
 * window. */
static bool two_dimensions_meet(const struct question *q)
{
    const wide modulus = q->dimensions[0].stride, step = q->dimensions[1].stride % modulus, length = q->hi - q->lo + 1;
    wide first, last;
    bounds(q, &q->dimensions[1], reach(&q->dimensions[0]), &first, &last);
    if (first > last) return false;
    wide from = (first * q->dimensions[1].stride - q->lo) % modulus;       /* from the window's beginning to a
                                                                              multiple */
    if (from < 0) from += modulus;
    if (from < length) return true;
    const wide steps = first_hit(step, modulus, modulus - from, modulus - from + length - 1);
    return steps >= 0 && steps <= last - first;
}

static bool has_solution(const struct question *q);

/* The dimension with the fewest numbers is gone through: of two matrices with other pitches than one another, their
 * batches. */
static bool many_dimensions_meet(const struct question *q)
{
    int fewest = 0;
    wide all = 0, first, last;
    for (int i = 0; i < q->count; i++) {
        all += reach(&q->dimensions[i]);
        if (q->dimensions[i].count < q->dimensions[fewest].count) fewest = i;
    }
    const struct dimension d = q->dimensions[fewest];
    bounds(q, &d, all - reach(&d), &first, &last);
    for (wide k = first; k <= last; k++) {
        struct question rest = *q;
        rest.lo -= k * d.stride, rest.hi -= k * d.stride;
        remove_dimension(&rest, fewest);
        if (has_solution(&rest)) return true;
    }
    return false;
}

static bool has_solution(const struct question *q)
{
    wide first, last;
    switch (q->count) {
    case 0: return q->lo <= 0 && q->hi >= 0;
    case 1: return bounds(q, &q->dimensions[0], 0, &first, &last), first <= last;
    case 2: return two_dimensions_meet(q);
    default: return many_dimensions_meet(q);
    }
}

bool bsmi_regions_meet(const struct bsmi_region *x, const struct bsmi_region *y)
{
    struct question q;
    ask(x, y, &q);
    wide all = 0;
    for (int i = 0; i < q.count; i++) all += reach(&q.dimensions[i]);
    if (q.hi < 0 || q.lo > all) return false;                             /* one lies behind the other, as is usual */
    sort_by_stride(&q);
    absorb_short_strides(&q);
    return has_solution(&q);
}
