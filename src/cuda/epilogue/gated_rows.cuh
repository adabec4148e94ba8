/* Gated activations of whole matrices to bf16, where S becomes t by one factor, and biases at most: what models ask
 * for.  Eight columns of D a thread and step, from sums that are loaded by 16 bytes.  The neighbours that a CTA takes
 * follow each other in D, whatever rows they belong to. */
#pragma once

#include "finish_sums.cuh"
#include "quick_gate.cuh"

/* The rows of a matrix or group. */
struct matrix_rows { int64_t matrix, first, end; };

__device__ static inline matrix_rows rows_with(const bsmi_epilogue_parameters &e, int64_t row)
{
    if (e.grouped) {
        const int64_t group = find_group(e, row);
        return { group, e.group_starts[group], e.group_starts[group + 1] };
    }
    const int64_t matrix = row / e.m;
    return { matrix, matrix * e.m, (matrix + 1) * e.m };
}

__device__ static inline bool has_gated_rows(const bsmi_epilogue_parameters &e)
{
    const bsmi_device_matrix &d = e.d;
    return has_quick_gate(e) && (e.a_exponents == nullptr || e.sums_are_scaled) && e.b_exponents == nullptr
           && e.c == nullptr && (e.alpha == nullptr || e.alpha_per == BSM_PER_TENSOR)
           && (e.bias == nullptr
               || (e.bias_per == BSM_PER_COLUMN && e.bias_type == BSM_REAL_BF16 && e.bias_batch_pitch % 8 == 0
                   && aligned_to(e.bias, 16)))
           && e.sums_pitch % 4 == 0 && e.sums_batch_pitch % 4 == 0 && e.sums_part_pitch % 4 == 0
           && aligned_to(e.sums, 16) && d.columns % 8 == 0 && d.row_bytes % 16 == 0 && d.batch_bytes % 16 == 0
           && aligned_to(d.data, 16);
}

/* The few that fp32 leaves open, one after the other: threads of a warp share the call, whichever of the eight it is.
 * Numbers in registers are picked by comparisons, since registers have no index. */
__device__ static inline void gate_unsure(int activation, const float (&gates)[8], const float (&ups)[8],
                                          uint32_t unsure, float (&t)[8])
{
    while (unsure != 0) {
        const int which = __ffs((int)unsure) - 1;
        float gate = gates[0], up = ups[0];
#pragma unroll
        for (int i = 1; i < 8; i++) gate = which == i ? gates[i] : gate, up = which == i ? ups[i] : up;
        const float exact = activate_gated(activation, gate, up);
#pragma unroll
        for (int i = 0; i < 8; i++) t[i] = which == i ? exact : t[i];
        unsure &= unsure - 1;
    }
}

template <bool CLAMPED> __device__ static inline void gate_eight(const float (&gates)[8], const float (&ups)[8],
                                                                 float (&t)[8])
{
    uint32_t unsure = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        bool sure;
        t[i] = quick_gated(CLAMPED, gates[i], ups[i], &sure);
        if (!sure) unsure |= 1u << i;
    }
    if (unsure != 0) gate_unsure(CLAMPED ? BSM_ACT_SWIGLU_CLAMPED : BSM_ACT_SILU, gates, ups, unsure, t);
}

/* `row` of D, columns [8 octet, + 8). */
template <bool CLAMPED>
__device__ static inline void finish_gated_octet(const bsmi_epilogue_parameters &e, float factor, int64_t row,
                                                 int octet, matrix_rows &rows)
{
    const bool split = e.gate == BSM_GATE_SPLIT;
    const int64_t first = split ? 8 * (int64_t)octet : 16 * (int64_t)octet, second = first + (split ? e.n / 2 : 8);
    if (!e.grouped && row >= rows.end) rows = rows_with(e, row);
    const int64_t matrix = e.grouped ? 0 : rows.matrix, in_matrix = e.grouped ? row : row - rows.first;
    const float *sums = e.sums + matrix * e.sums_batch_pitch + in_matrix * e.sums_pitch;
    eight a = load_eight_sums(e, sums + first), b = load_eight_sums(e, sums + second);
    const uint16_t *biases = nullptr;
    if (e.bias != nullptr) {
        if (row >= rows.end) rows = rows_with(e, row);            /* while the sums are on their way */
        biases = (const uint16_t *)e.bias + rows.matrix * e.bias_batch_pitch;
    }
    add_biases(a, factor, biases == nullptr ? nullptr : biases + first);
    add_biases(b, factor, biases == nullptr ? nullptr : biases + second);
    float gates[8], ups[8], t[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        gates[i] = split ? a.x[i] : i < 4 ? a.x[2 * i % 8] : b.x[2 * i % 8];
        ups[i] = split ? b.x[i] : i < 4 ? a.x[2 * i % 8 + 1] : b.x[2 * i % 8 + 1];
    }
    gate_eight<CLAMPED>(gates, ups, t);
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; i++) pairs[i] = bf16_code(t[2 * i]) | bf16_code(t[2 * i + 1]) << 16;
    *(uint4 *)(e.d.data + matrix * e.d.batch_bytes + in_matrix * e.d.row_bytes + 16 * (int64_t)octet) =
        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

template <bool CLAMPED> __device__ static void finish_gated_rows(const bsmi_epilogue_parameters &e, int64_t rows)
{
    const int octets = (int)(e.d.columns / 8), threads = (int)blockDim.x;
    const int64_t all = rows * octets, share = ((all + gridDim.x - 1) / gridDim.x + 31) / 32 * 32,
                  begin = share * blockIdx.x, first = begin + threadIdx.x, end = min(begin + share, all);
    if (first >= end) return;
    const float factor = factor_of(e, e.alpha == nullptr ? 1 : *e.alpha);
    const int row_step = threads / octets, octet_step = threads % octets;
    matrix_rows of = { 0, 0, 0 };
    int64_t row = first / octets;
    int octet = (int)(first - row * octets);
    for (int64_t number = first; number < end; number += threads) {
        finish_gated_octet<CLAMPED>(e, factor, row, octet, of);
        row += row_step, octet += octet_step;
        if (octet >= octets) octet -= octets, row++;
    }
}
