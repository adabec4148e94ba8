/* Sums in the order of the CPU's kernels, and with their bits, a thread an element: the head of sums.cu has the
 * orders.  CTAs decode 32 columns of K at a time into shared memory, as doubles, in which every product of two scaled
 * elements is exact. */
#ifndef BSMI_SIMT_SUMS_PANEL_CUH
#define BSMI_SIMT_SUMS_PANEL_CUH

#include "operand.cuh"

enum { PANEL_DEPTH = 32 };

/* One operand's part of a tile: elements, scaled already where terms are summed one by one; scales of at most two
 * runs. */
template <int LINES> struct sums_panel { double values[LINES][PANEL_DEPTH + 1], scales[LINES][2]; };

__device__ static inline bool sums_runs(const bsmi_device_matrix &m)
{
    return m.block != 0 && (m.element == BSM_E2M1 || m.element == BSM_E2M3 || m.element == BSM_INT8);
}

/* Elements of a run; 0: terms are summed one by one. */
__device__ static inline int run_of(const bsmi_device_matrix &a, const bsmi_device_matrix &b)
{
    return sums_runs(a) && sums_runs(b) ? min(a.block, b.block) : 0;
}

/* s + p rounded once to fp32: by way of a double rounded to odd, whose 53 bits are more than 24 + 2 (Boldo and
 * Melquiond 2008). */
__device__ static inline float add_once(float s, double p)
{
    const double a = (double)s, sum = a + p;
    if (!isfinite(sum)) return (float)sum;
    const double of_p = sum - a, tail = (a - (sum - of_p)) + (p - of_p);
    long long bits = __double_as_longlong(sum);
    if (tail != 0 && (bits & 1) == 0) bits += (tail > 0) == (sum > 0) ? 1 : -1;
    return __double2float_rn(__longlong_as_double(bits));
}

/* By THREADS threads from a multiple of that on, each with some elements at a time.  A line of -1 is none. */
template <int THREADS, int AT_ONCE, int LINES>
__device__ static void fill_panel(sums_panel<LINES> &panel, const bsmi_device_matrix &m, int64_t batch,
                                  const int64_t *lines, int64_t k, int64_t k_end, int run)
{
    constexpr int VALUES = LINES * PANEL_DEPTH;
#pragma unroll AT_ONCE
    for (int i = (int)(threadIdx.x % THREADS); i < VALUES + (run == 0 ? 0 : 2 * LINES); i += THREADS) {
        const bool is_value = i < VALUES;
        const int number = is_value ? i / PANEL_DEPTH : (i - VALUES) / 2, at = is_value ? i % PANEL_DEPTH : i % 2;
        const int64_t line = lines[number], column = k + (is_value ? at : at * run);
        double value = is_value ? 0 : 1;
        if (line >= 0 && column < k_end) {
            if (is_value) value = element_value(m.element, element_code(m, batch, line, (uint64_t)column));
            if (!is_value || run == 0) value *= scale_value(m, batch, line, column);
        }
        (is_value ? panel.values[number][at] : panel.scales[number][at]) = value;
    }
}

/* 32 columns of K more.  left: how many of them there are. */
template <int AT_ONCE, int ROWS, int COLUMNS>
__device__ static float add_panels(float sum, const sums_panel<ROWS> &a, const sums_panel<COLUMNS> &b, int i, int j,
                                   int left, int run)
{
    if (run == 0) {
#pragma unroll AT_ONCE
        for (int k = 0; k < left; k++) sum = add_once(sum, a.values[i][k] * b.values[j][k]);
        return sum;
    }
#pragma unroll 1
    for (int first = 0; first < left; first += run) {
        double of_run = 0;
#pragma unroll AT_ONCE
        for (int k = first; k < min(left, first + run); k++) of_run += a.values[i][k] * b.values[j][k];
        sum = add_once(sum, of_run * (a.scales[i][first / run] * b.scales[j][first / run]));
    }
    return sum;
}

#endif
