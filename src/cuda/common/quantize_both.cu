/* A matrix of bf16 and its transpose into codes and scales from one read: the bits of bsmi_quantize of both.
 *
 * A CTA brings tiles of 64 rows and 128 columns to shared memory, the next one while it works on this.  A lane takes 16 neighbours at a time,
 * of a row or of a column, as eight pairs along K: those of a row by two loads of 16 bytes, those of a column by ldmatrix, which transposes as
 * it loads.  A block of 32 lies in two neighbouring lanes.  Lanes that are neighbours have what lies together in memory, so that they store
 * whole sectors of 32 bytes.  Everything that blocks need once is done for two of them in the halves of a word.
 *
 * Eight lanes ask each bank of shared memory once, both ways: see place_in_tile.
 *
 * Rare blocks (NaN, infinity, scales at the ends of e8m0) are told by the extremes of magnitudes that a lane has seen in a tile; it does all of
 * its blocks there again, the exact way. */
#include "cuda/both_parameters.h"
#include "exact_blocks.cuh"
#include "quick_bf16.cuh"
#include "quick_rows.cuh"
#include "tensor_scale.cuh"

/* BAND: tiles above one another that are done before those beside them; what is written of a row of the transpose goes to memory together. */
enum { ROW_OCTETS = BSMI_BOTH_COLUMNS / 8, TILE_OCTETS = BSMI_BOTH_ROWS * ROW_OCTETS, BAND = 16, UNITS = 4 };

/* A way that bsmi_quantize has as a quick_way: NVFP4 whose tensor scale has so few bits that a quotient may be the middle of two codes. */
constexpr int NVFP4_SHORT = BF16_NVFP4 + 1;

template <int way> constexpr bool has_bytes = way == BF16_E4M3 || way == BF16_E5M2;
template <int way> constexpr bool has_sixteen = way == BF16_NVFP4_POWER || way == BF16_NVFP4 || way == NVFP4_SHORT;
static_assert(BSMI_BOTH_THREADS == BSMI_QUANTIZE_THREADS, "make_factors is for so many threads");
static_assert(BSMI_BOTH_THREADS == 128 && BSMI_BOTH_ROWS == 64 && BSMI_BOTH_COLUMNS == 128, "a lane has four units along rows and four along columns");

/* E2M1 whose numbers may be larger than 6 scales. */
constexpr int E2M1_BEYOND = BF16_NVFP4 + 2;

/* bf16_constants, as they are used here.  offset, signs, four: see nibbles_by_sums.  least, most: magnitudes of a block that is not odd, less 1
 * and as it is, twice. */
struct both_constants {
    uint32_t round_up, zero, exponent_of_one, emax;
    uint32_t least, most, signs, four;
    uint32_t even, odd, offset;
    float amax_factor;
};

/* What a CTA knows of one destination.  way: a bf16_way, BF16_NONE for the exact one, or one of the above.  places: of the scales of a tile's
 * rows and blocks, from that of its first on. */
struct both_job {
    both_constants constants;
    block_quantizer q;
    bf16_job bf16;
    int way;
    bool staged;                          /* scales of columns go to memory in words of four, by way of both_stage */
    uint32_t row_places[BSMI_BOTH_COLUMNS], block_places[16];
};

/* Tiles below one another that a CTA does one behind the other, where there are many. */
enum { CHUNK = 2 };

/* Scales of a chunk's columns.  As bytes of one block each they would touch half as many sectors as MXFP4's codes do.  One warp writes all of
 * a column. */
struct both_stage { unsigned char columns[BSMI_BOTH_COLUMNS][16]; };

/* Where a tile lies, in rows and columns of the source. */
struct both_tile { uint32_t row, column; };

/* The same in memory: its first numbers, codes and scales of both destinations, and the scales of its columns from its chunk's first row on.
 * One thread finds those of the tile after the next. */
struct both_places { const unsigned char *source; unsigned char *codes[2], *scales[2], *column_scales; both_tile at; };
enum { PLACES = 4 };

/* Of octet o of row r, in a row of 16.  Bit 0 of r and bits 4 and 5, on which the place depends, are another in each of the eight rows that
 * ldmatrix reads at a time; along a row, eight lanes read every second octet of a half of it and of the next row's. */
__device__ static inline uint32_t place_bits(uint32_t row) { return (row & 1) | (row >> 4 & 3) << 1; }
__device__ static inline uint32_t place_in_tile(uint32_t row, uint32_t octet) { return row * ROW_OCTETS + (octet ^ place_bits(row)); }

/* Two units: pairs along K, codes, codes of scales; largest magnitudes of their blocks in the halves of a word.  Codes of 8 bits have four
 * words, those of 4 bits two. */
struct two_units { uint32_t x[2][8], words[2][4], scales[2], amax; };

__device__ static inline uint32_t amax_of_unit(const uint32_t *x)
{
    const uint32_t low = ptx_max_nan_xorsign_abs_bf16x2(ptx_max_nan_xorsign_abs_bf16x2(x[0], x[1]), ptx_max_nan_xorsign_abs_bf16x2(x[2], x[3]));
    const uint32_t high = ptx_max_nan_xorsign_abs_bf16x2(ptx_max_nan_xorsign_abs_bf16x2(x[4], x[5]), ptx_max_nan_xorsign_abs_bf16x2(x[6], x[7]));
    return ptx_max_nan_xorsign_abs_bf16x2(low, high);
}

/* Of both units, in the halves of a word. */
template <bool of_two_lanes> __device__ static inline uint32_t amax_of_two(const two_units &u)
{
    const uint32_t first = amax_of_unit(u.x[0]), second = amax_of_unit(u.x[1]);
    uint32_t amax = ptx_max_nan_xorsign_abs_bf16x2(__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632));
    if (of_two_lanes) amax = ptx_max_nan_xorsign_abs_bf16x2(amax, __shfl_xor_sync(0xffffffff, amax, 1));
    return amax & 0x7fff7fff;
}

template <int way> __device__ static inline uint32_t two_bytes(uint32_t pair)
{
    const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000);
    return way == BF16_E4M3 ? ptx_cvt_e4m3x2(high, low) : ptx_cvt_e5m2x2(high, low);
}

/* Pairs of a byte that is always the same, which c.offset takes off, and a nibble. */
__device__ static inline uint32_t nibbles_together(const both_constants &c, const uint32_t *sums)
{
    const uint32_t first = sums[0] + sums[1] * 256, second = sums[2] + sums[3] * 256;
    return __byte_perm(first, second, 0x7632) * c.odd + (__byte_perm(first, second, 0x5410) * c.even + c.offset);
}

/* power_nibbles, with fewer operations of the pipe that has the integers.  Constants come from memory where ptxas would take an expression
 * apart for those it knows. */
template <bool beyond>
__device__ static inline uint32_t nibbles_by_sums(const both_constants &c, const uint32_t *x, const uint32_t *magnitudes, uint32_t twice,
                                                  uint32_t inverse, uint32_t half)
{
    uint32_t sums[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t sum =
            __vimin3_u16x2(ptx_fma_bf16x2(magnitudes[i], twice, 0x43044304), ptx_fma_bf16x2(magnitudes[i], inverse, 0x43064306),
                           ptx_fma_bf16x2(magnitudes[i], half, 0x43084308));
        if (beyond) sum = __vminu2(sum, 0x430b430b);
        sums[i] = ptx_sub_bf16x2(sum, (x[i] & c.signs) | c.four);
    }
    return nibbles_together(c, sums);
}

/* 1 / scale of two units, as exponents.  scales[0]: of the unit whose number is the lane's last bit. */
__device__ static inline uint32_t two_powers_of(const both_constants &c, two_units *u)
{
    const uint32_t exponents = (__vmaxu2(u->amax, c.zero) + c.round_up) & 0xff80ff80;
    u->scales[0] = (__byte_perm(exponents, 0, threadIdx.x & 1 ? 0x4432 : 0x4410) >> 7) - c.emax;
    return c.exponent_of_one - exponents;
}

template <int way> __device__ static inline void quantize_bytes(const both_constants &c, two_units *u)
{
    u->amax = amax_of_two<true>(*u);
    const uint32_t inverses = two_powers_of(c, u);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t inverse = __byte_perm(inverses, 0, i == 0 ? 0x1010 : 0x3232);
#pragma unroll
        for (int j = 0; j < 4; j++)
            u->words[i][j] = two_bytes<way>(ptx_mul_bf16x2(u->x[i][2 * j], inverse)) |
                             two_bytes<way>(ptx_mul_bf16x2(u->x[i][2 * j + 1], inverse)) << 16;
    }
}

template <bool beyond> __device__ static inline void quantize_nibbles(const both_constants &c, two_units *u)
{
    uint32_t magnitudes[2][8], amax[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) magnitudes[i][j] = ptx_abs_bf16x2(u->x[i][j]);
        const uint32_t *m = magnitudes[i];
        amax[i] = __vimax3_u16x2(__vimax3_u16x2(m[0], m[1], m[2]), __vimax3_u16x2(m[3], m[4], m[5]), __vmaxu2(m[6], m[7]));
    }
    const uint32_t both = __vmaxu2(__byte_perm(amax[0], amax[1], 0x5410), __byte_perm(amax[0], amax[1], 0x7632));
    u->amax = __vmaxu2(both, __shfl_xor_sync(0xffffffff, both, 1));
    const uint32_t inverses = two_powers_of(c, u);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t inverse = __byte_perm(inverses, 0, i == 0 ? 0x1010 : 0x3232);
        const uint32_t twice = __viaddmin_u16x2(inverse, 0x00800080, 0x7f007f00), half = inverse - 0x00800080;    /* zeros: no infinity */
#pragma unroll
        for (int j = 0; j < 2; j++)
            u->words[i][j] = nibbles_by_sums<beyond>(c, u->x[i] + 4 * j, magnitudes[i] + 4 * j, twice, inverse, half);
    }
}

/* quotient_nibbles for a tensor scale that is a power of two: quotients 2^-14 in halves are middles of codes or on the right side of them, and
 * become sums as in power_nibbles. */
__device__ static inline uint32_t nibbles_of_powers(const both_constants &c, const uint32_t *x, float factor)
{
    uint32_t sums[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t q = ptx_cvt_f16x2(fabsf(__uint_as_float(x[i] & 0xffff0000)) * factor, fabsf(__uint_as_float(x[i] << 16)) * factor);
        const uint32_t sum = __vimin3_u16x2(ptx_fma_f16x2(q, 0x78007800, 0x64046404), ptx_fma_f16x2(q, 0x74007400, 0x64066406),
                                            ptx_fma_f16x2(q, 0x70007000, 0x64086408));
        sums[i] = ptx_sub_f16x2(__vminu2(sum, 0x640b640b), (x[i] & c.signs) | c.four);
    }
    return nibbles_together(c, sums);
}

/* For any other; even and odd: which bytes are low nibbles and which high ones. */
__device__ static inline uint32_t nibbles_of_quotients(const both_constants &c, const uint32_t *x, float factor)
{
    uint32_t h[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float low = fabsf(__uint_as_float(x[i] << 16)) * factor, high = fabsf(__uint_as_float(x[i] & 0xffff0000)) * factor;
        h[i] = __viaddmin_u16x2(ptx_cvt_rz_f16x2(high, low), 0x01000100, 0x0fff0fff) | (x[i] & 0x80008000);
    }
    const uint32_t first = __byte_perm(h[0], h[1], 0x7351), second = __byte_perm(h[2], h[3], 0x7351);
    const uint32_t low = __byte_perm(first, second, c.even), high = __byte_perm(first, second, c.odd);
    const uint32_t of_low = (low >> 1 & 0x07070707) | (low >> 4 & 0xf8f8f8f8), of_high = (high << 3 & 0x70707070) | (high & 0x8f8f8f8f);
    return (of_low & 0x0f0f0f0f) | (of_high & 0xf0f0f0f0);
}

/* Scales in ue4m3. */
template <int way>
__device__ static inline void quantize_quotients(const both_constants &c, const float *factors, two_units *u)
{
    const uint32_t amax = u->amax = amax_of_two<false>(*u);
    const uint32_t pair = ptx_cvt_e4m3x2(__uint_as_float(amax & 0xffff0000) * c.amax_factor, __uint_as_float(amax << 16) * c.amax_factor);
    u->scales[0] = pair & 0xff, u->scales[1] = pair >> 8;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float factor = factors[u->scales[i]];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t *x = u->x[i] + 4 * j;
            u->words[i][j] = way == BF16_NVFP4_POWER ? nibbles_of_powers(c, x, factor) : nibbles_of_quotients(c, x, factor);
        }
    }
}

/* By block.cuh's way.  Loops: short code for what is rare. */
__device__ static inline void quantize_short(const both_job &job, two_units *u)
{
    const uint32_t amax = u->amax = amax_of_two<false>(*u);
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        uint32_t x[4];
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = i < 2 ? u->x[0][j] : u->x[1][j];
        if (i & 1) {
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = i < 2 ? u->x[0][4 + j] : u->x[1][4 + j];
        }
        const uint32_t mine = i < 2 ? amax << 16 : amax & 0xffff0000;
        const uint32_t code = mine == 0 || mine >= 0x7f800000 ? 0 : nvfp4_scale_code(job.q, __uint_as_float(mine));
        bool doubtful;
        uint32_t nibbles = nvfp4_codes(job.q, widen<SOURCE_BF16>({ make_uint4(x[0], x[1], x[2], x[3]), {} }), code, &doubtful);
        nibbles = job.bf16.constants.even == 1 ? nibbles : (nibbles >> 4 & 0x0f0f0f0f) | (nibbles & 0x0f0f0f0f) << 4;
        if (doubtful) u->amax = 0xffffffff;
        if (i == 0) u->words[0][0] = nibbles, u->scales[0] = code;
        else if (i == 1) u->words[0][1] = nibbles;
        else if (i == 2) u->words[1][0] = nibbles, u->scales[1] = code;
        else u->words[1][1] = nibbles;
    }
}

/* A lane's units of a tile, in rows of the destination: from `row` on, and in it from number 16 `sixteenth` on; the second of two units lies
 * `apart` rows further, the second two units `further` rows. */
struct unit_places { uint32_t row, sixteenth, apart, further; };

__device__ static inline unit_places units_of_rows()
{
    const uint32_t lane = threadIdx.x % 32;                      /* a warp has 16 rows, four at a time; eight lanes have a row */
    return { threadIdx.x / 32 * 16 + lane / 16 * 2 + lane / 4 % 2, lane / 8 % 2 * 4 + lane % 4, 4, 8 };
}

__device__ static inline unit_places units_of_columns()
{
    return { threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4, threadIdx.x % 4, 64, 32 };      /* a warp has 8 columns at a time */
}

/* Units with odd blocks: bits. */
__device__ static inline uint32_t odd_units(const both_constants &c, bool powers, uint32_t first, uint32_t second)
{
    const uint32_t most = __vmaxu2(__vmaxu2(first, second), c.most);
    const uint32_t least = __viaddmin_u16x2(second, 0xffffffff, __viaddmin_u16x2(first, 0xffffffff, c.least));   /* less 1: zeros are not odd */
    if (most == c.most && (!powers || least == c.least)) return 0;
    uint32_t units = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        const uint32_t amax = (i < 2 ? first : second) >> 16 * (i & 1) & 0xffff;
        if (amax > (c.most & 0xffff) || (powers && (amax - 1 & 0xffff) < (c.least & 0xffff))) units |= 1u << i;
    }
    return units;
}

/* Of blocks that two lanes share, one does it. */
__device__ static void quantize_again(const bsmi_quantize_parameters &p, const both_job &job, uint32_t units, const unit_places &at, uint32_t row,
                                      uint32_t column, unsigned char *stage)
{
    const uint32_t halves = p.destination.block == 16 ? 1 : 2, block = (column / 16 + at.sixteenth) / halves;
    for (uint32_t i = 0; i < UNITS; i++) {
        if ((units >> i & 1) == 0 || (halves == 2 && (i & 1) != (threadIdx.x & 1))) continue;
        const uint32_t of_tile = at.row + (i & 1) * at.apart + i / 2 * at.further;
        quantize_exactly_at(p, job.q, job.bf16.places, { 0, row + of_tile, block, 1 });
        const uint32_t place = place_of(job.bf16.row, row + of_tile) + place_of(job.bf16.column, block);
        if (stage != nullptr) stage[of_tile * 16 + at.sixteenth / halves] = p.destination.scales[place];
    }
}

/* Where the scale of a tile's first column lies in the stage: turn counts tiles. */
__device__ static inline unsigned char *in_stage(both_stage &stage, const both_job &job, uint32_t turn)
{
    return stage.columns[0] + turn % CHUNK * (job.q.is_nvfp4 ? 4 : 2);
}

/* units: of rows, and of columns in bits 4 to 7. */
__device__ __noinline__ static void quantize_odd(const bsmi_both_parameters &p, const both_job *jobs, const both_places &tile, uint32_t units,
                                                 both_stage &stage, uint32_t turn)
{
    __syncwarp();                         /* what is written again was written by two lanes */
    quantize_again(p.rows, jobs[0], units & 15, units_of_rows(), tile.at.row, tile.at.column, nullptr);
    quantize_again(p.columns, jobs[1], units >> 4, units_of_columns(), tile.at.column, tile.at.row, in_stage(stage, jobs[1], turn));
}

/* which: 0 for rows, 1 for columns.  LOAD: loads two units, the first or the second two.  The result: odd_units. */
template <int way, int which, class LOAD>
__device__ static inline uint32_t quantize_units(const bsmi_quantize_parameters &p, const both_job &job, const unit_places &at,
                                                 const both_places &tile, unsigned char *stage, const LOAD &load)
{
    constexpr uint32_t PER_BLOCK = has_sixteen<way> ? 1 : 2, UNIT_BYTES = has_bytes<way> ? 16 : 8;
    const uint32_t row_bytes = (uint32_t)p.destination.row_bytes;
    const both_constants c = job.constants;
    unsigned char *codes = tile.codes[which] + (uint64_t)at.row * row_bytes + at.sixteenth * UNIT_BYTES;
    unsigned char *scales = tile.scales[which] + job.block_places[at.sixteenth / PER_BLOCK];
    const uint32_t *places = job.row_places + at.row;
    const bool staged = which == 1 && job.staged;
    stage += at.row * 16 + at.sixteenth / PER_BLOCK;
    uint32_t amax[2] = {};
#pragma unroll
    for (uint32_t i = 0; i < UNITS / 2; i++) {
        two_units u;
        load(i, &u);
        if constexpr (way == NVFP4_SHORT) quantize_short(job, &u);
        else if constexpr (has_sixteen<way>) quantize_quotients<way>(c, job.bf16.factors, &u);
        else if constexpr (has_bytes<way>) quantize_bytes<way>(c, &u);
        else quantize_nibbles<way == E2M1_BEYOND>(c, &u);
        amax[0] = amax[1], amax[1] = u.amax;
        unsigned char *second = codes + (uint64_t)at.apart * row_bytes;
        if constexpr (has_bytes<way>) {
            ptx_store_16(codes, make_uint4(u.words[0][0], u.words[0][1], u.words[0][2], u.words[0][3]));
            ptx_store_16(second, make_uint4(u.words[1][0], u.words[1][1], u.words[1][2], u.words[1][3]));
        } else {
            ptx_store_8(codes, u.words[0][0], u.words[0][1]);
            ptx_store_8(second, u.words[1][0], u.words[1][1]);
        }
        if (staged) {
            if constexpr (has_sixteen<way>) stage[0] = (unsigned char)u.scales[0], stage[at.apart * 16] = (unsigned char)u.scales[1];
            else stage[threadIdx.x & 1 ? at.apart * 16 : 0] = (unsigned char)u.scales[0];
        } else if constexpr (has_sixteen<way>) {
            ptx_store_1(scales + places[0], u.scales[0]), ptx_store_1(scales + places[at.apart], u.scales[1]);
        } else {
            ptx_store_1(scales + places[threadIdx.x & 1 ? at.apart : 0], u.scales[0]);
        }
        codes += (uint64_t)at.further * row_bytes, places += at.further, stage += at.further * 16;
    }
    return odd_units(c, !has_sixteen<way>, amax[0], amax[1]);
}

__device__ static inline void load_unit(const uint4 *from, uint32_t to_second, uint32_t *x)
{
    const uint4 v = from[0], w = from[to_second];
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w, x[4] = w.x, x[5] = w.y, x[6] = w.z, x[7] = w.w;
}

template <int way>
__device__ static inline uint32_t quantize_rows_of(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile,
                                                   const both_places &places, unsigned char *stage)
{
    const unit_places at = units_of_rows();
    const uint4 *first = tile + place_in_tile(at.row, 2 * at.sixteenth), *second = tile + place_in_tile(at.row, 2 * at.sixteenth + 1);
    return quantize_units<way, 0>(p, job, at, places, stage, [&](uint32_t i, two_units *u) {
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) load_unit(first + (8 * i + 4 * j) * ROW_OCTETS, (uint32_t)(second - first), u->x[j]);
    });
}

/* A lane has 16 rows of a column: of pairs i of the four lanes of a column, ldmatrix brings four i. */
template <int way>
__device__ static inline uint32_t quantize_columns_of(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile,
                                                      const both_places &places, unsigned char *stage)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 2 % 4 * 16 + lane / 8 * 2 + lane % 2;
    const uint32_t first = shared_address(tile + place_in_tile(row, warp)), second = shared_address(tile + place_in_tile(row, warp + 4));
    return quantize_units<way, 1>(p, job, units_of_columns(), places, stage, [&](uint32_t i, two_units *u) {
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t address = (i == 0 ? first : second) + j * 8 * 16;
            ptx_ldmatrix_x4_trans(address, u->x[j]), ptx_ldmatrix_x4_trans(address + 8 * ROW_OCTETS * 16, u->x[j] + 4);
        }
    });
}

template <int way, bool ROWS>
__device__ static inline uint32_t quantize_one_way(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile,
                                                   const both_places &at, unsigned char *stage)
{
    return ROWS ? quantize_rows_of<way>(p, job, tile, at, stage) : quantize_columns_of<way>(p, job, tile, at, stage);
}

/* Tensor scales that the quick ways do not serve, and those of few bits. */
template <bool ROWS>
__device__ __noinline__ static uint32_t quantize_tile_slowly(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile,
                                                             const both_places &places, unsigned char *stage)
{
    if (job.way == NVFP4_SHORT) return quantize_one_way<NVFP4_SHORT, ROWS>(p, job, tile, places, stage);
    const both_tile &at = places.at;
    const uint32_t rows = ROWS ? BSMI_BOTH_ROWS : BSMI_BOTH_COLUMNS, columns = ROWS ? BSMI_BOTH_COLUMNS : BSMI_BOTH_ROWS;
    const uint32_t first_row = ROWS ? at.row : at.column, first_column = ROWS ? at.column : at.row;
    const uint32_t length = (uint32_t)p.destination.block, blocks = columns / length;
    for (uint32_t task = threadIdx.x; task < rows * blocks; task += BSMI_BOTH_THREADS)
        quantize_exactly_at(p, job.q, job.bf16.places, { 0, first_row + task / blocks, (int64_t)first_column / length + task % blocks, 1 });
    return 0;
}

template <bool ROWS>
__device__ static inline uint32_t quantize_tile(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile, const both_places &at,
                                                unsigned char *stage)
{
    switch (job.way) {
    case BF16_E4M3: return quantize_one_way<BF16_E4M3, ROWS>(p, job, tile, at, stage);
    case BF16_E5M2: return quantize_one_way<BF16_E5M2, ROWS>(p, job, tile, at, stage);
    case BF16_E2M1: return quantize_one_way<BF16_E2M1, ROWS>(p, job, tile, at, stage);
    case E2M1_BEYOND: return quantize_one_way<E2M1_BEYOND, ROWS>(p, job, tile, at, stage);
    case BF16_NVFP4_POWER: return quantize_one_way<BF16_NVFP4_POWER, ROWS>(p, job, tile, at, stage);
    case BF16_NVFP4: return quantize_one_way<BF16_NVFP4, ROWS>(p, job, tile, at, stage);
    default: return quantize_tile_slowly<ROWS>(p, job, tile, at, stage);
    }
}

/* By all threads; what one thread makes is there behind the next barrier. */
__device__ static inline void make_both_job(const bsmi_quantize_parameters &p, float t, uint32_t thread, both_job &job)
{
    const bsmi_device_matrix &m = p.destination;
    factor_nudges nudges = {};
    if (m.scale == BSM_UE4M3) nudges = make_factors((double)t, m.tensor_scale_divides != 0, &job.bf16);
    if (threadIdx.x != thread) return;
    job.bf16.places = make_places(m.layout);
    job.q = make_quantizer(m, t, p.recipe, p.rounding, p.nonfinite, p.seed, true);
    make_bf16_job(m, job.q, nudges, &job.bf16);
    const bf16_constants &c = job.bf16.constants;
    const bool sixteen = job.q.is_nvfp4 != 0, within = (c.round_up & 0xffff) >= 0x3f;  /* 1.5 is the largest */
    job.way = job.bf16.way == BF16_NONE && job.q.way == WAY_NVFP4 ? NVFP4_SHORT
              : job.bf16.way == BF16_E2M1 && !within ? E2M1_BEYOND : (int)job.bf16.way;
    /* Sums are bf16 from 128 on, or halves from 1024 on, less 4 or 4 more. */
    const bool selects = sixteen && job.way != BF16_NVFP4_POWER;
    const uint32_t base = sixteen ? 0x64 : 0x43;
    job.constants = { c.round_up, (uint32_t)c.emax * 0x00800080, c.exponent_of_one, (uint32_t)c.emax,
                      (c.least - 1) * 0x00010001, sixteen ? 0x7f7f7f7f : (c.least + c.span) * 0x00010001, 0x80008000,
                      sixteen ? 0x44004400u : 0x40804080u, selects ? c.low_nibbles : c.even, selects ? c.high_nibbles : c.odd,
                      0 - base * (0x01000100 * c.even + 0x01010101 * c.odd), c.amax_factor };
}

/* By all threads, behind a barrier. */
__device__ static inline void make_places(both_job &job, const bsmi_device_matrix &m, bool staged)
{
    const uint32_t bit = 1u << threadIdx.x % 32, place = place_of(job.bf16.column, bit);      /* places are sums over the bits of both numbers */
    const bool in_words = place_of(job.bf16.row, bit) % 4 == 0 && (bit < 4 ? place == bit : place % 4 == 0) && aligned_to(m.scales, 4);
    const bool all_in_words = __all_sync(0xffffffff, in_words);
    if (threadIdx.x == 0) job.staged = staged && all_in_words && job.way != BF16_NONE;
    job.row_places[threadIdx.x] = place_of(job.bf16.row, threadIdx.x);
    if (threadIdx.x < 16) job.block_places[threadIdx.x] = place_of(job.bf16.column, threadIdx.x);
}

/* The order of tiles: chunks of `tall`, in bands of BAND tiles above one another; a CTA does every so many of them. */
struct both_order { uint32_t down, across, tall; };

/* 16 columns of NVFP4's tiles of scales lie together anyway, and chunks take longer there (docs/cuda-memory.md). */
__device__ static inline both_order make_order(const bsmi_device_reals &s, const bsmi_device_matrix &columns)
{
    const uint32_t down = (uint32_t)(s.rows / BSMI_BOTH_ROWS), across = (uint32_t)(s.columns / BSMI_BOTH_COLUMNS);
    const bool apart = columns.block == 32 || columns.layout.kind == BSM_LAYOUT_LINEAR;
    const uint32_t tall = apart && down % CHUNK == 0 && down * across >= CHUNK * gridDim.x ? CHUNK : 1;
    return { down / tall, across, tall };
}

__device__ static inline uint32_t chunk_of(const both_order &o, uint32_t turn)
{
    return blockIdx.x + (o.tall == CHUNK ? turn / CHUNK : turn) * gridDim.x;
}
__device__ static inline bool has_turn(const both_order &o, uint32_t turn) { return chunk_of(o, turn) < o.down * o.across; }

__device__ static inline both_tile tile_at(const both_order &o, uint32_t turn)
{
    const uint32_t chunk = chunk_of(o, turn), most = o.tall == CHUNK ? BAND / CHUNK : BAND;
    const uint32_t band = chunk / (most * o.across), first = band * most;
    const uint32_t height = min(most, o.down - first), rest = chunk - first * o.across;
    return { ((first + rest % height) * o.tall + (o.tall == CHUNK ? turn % CHUNK : 0)) * BSMI_BOTH_ROWS, rest / height * BSMI_BOTH_COLUMNS };
}

/* By one thread. */
__device__ static inline void find_places(const bsmi_both_parameters &p, const both_job *jobs, both_tile at, both_places *places)
{
    const bsmi_device_reals &s = p.rows.source;
    places->source = s.data + ((int64_t)at.row * s.row_stride + at.column) * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const bsmi_device_matrix &m = i == 0 ? p.rows.destination : p.columns.destination;
        const uint32_t row = i == 0 ? at.row : at.column, column = i == 0 ? at.column : at.row;
        places->codes[i] = m.data + (uint64_t)row * (uint32_t)m.row_bytes + (m.bits == 8 ? column : column / 2);
        const uint32_t length = m.block == 16 ? 16 : 32, place = place_of(jobs[i].bf16.row, row);
        places->scales[i] = m.scales + (place + place_of(jobs[i].bf16.column, column / length));
        const uint32_t of_chunk = column / (CHUNK * BSMI_BOTH_ROWS) * (CHUNK * BSMI_BOTH_ROWS / length);
        if (i == 1) places->column_scales = m.scales + (place + place_of(jobs[i].bf16.column, of_chunk));
    }
    places->at = at;
}

__device__ static inline void copy_tile(const bsmi_device_reals &s, uint32_t tile, const unsigned char *first)
{
    const uint32_t octet = threadIdx.x % ROW_OCTETS, row = threadIdx.x / 16 % 2 + threadIdx.x / 32 * 16;
    const unsigned char *from = first + (row * s.row_stride * 2 + octet * 16);
    const uint32_t to = tile + 16 * place_in_tile(row, octet);
#pragma unroll
    for (uint32_t i = 0; i < BSMI_BOTH_ROWS / 8; i++) cp_async_16(to + i * 2 * ROW_OCTETS * 16, from + i * 4 * s.row_stride, 16);
}

/* Words of the stage that a warp has written. */
__device__ static inline void store_stage(const both_job &job, unsigned char *scales, const both_stage &stage)
{
    const uint32_t shift = job.q.is_nvfp4 ? CHUNK / 2 : CHUNK / 4;       /* words of a column: 1 << shift */
#pragma unroll 1
    for (uint32_t i = threadIdx.x % 32; i < 32u << shift; i += 32) {
        const uint32_t column = threadIdx.x / 32 * 8 + (i >> shift) % 8 + (i >> shift) / 8 * 32, word = (i & (1u << shift) - 1) * 4;
        ptx_store_4(scales + (job.row_places[column] + job.block_places[word]), *(const uint32_t *)&stage.columns[column][word]);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_BOTH_THREADS, 4) bsmi_quantize_both(const __grid_constant__ bsmi_both_parameters p)
{
    __shared__ __align__(128) uint4 tiles[2][TILE_OCTETS];
    __shared__ both_job jobs[2];
    __shared__ both_places places[PLACES];
    __shared__ __align__(16) both_stage stage;
    const both_order order = make_order(p.rows.source, p.columns.destination);
    /* Memory is at work while threads think.  What the kernel in front of this one writes, if there is one, is the amax alone. */
    if (has_turn(order, 0)) {
        const both_tile at = tile_at(order, 0);
        copy_tile(p.rows.source, shared_address(tiles[0]), p.rows.source.data + ((int64_t)at.row * p.rows.source.row_stride + at.column) * 2);
    }
    cp_async_commit_group();
    ptx_griddepcontrol_wait();
    const bool computed = p.columns.computed != nullptr;
    const float scale_of_rows = find_tensor_scale(p.rows, { 0, 0 });
    const float scale_of_columns = computed ? scale_of_rows : find_tensor_scale(p.columns, { 0, 0 });
    if (computed && blockIdx.x == 0 && threadIdx.x == 0) ptx_store_relaxed(p.columns.computed, __float_as_uint(scale_of_columns));
    make_both_job(p.rows, scale_of_rows, 0, jobs[0]);
    make_both_job(p.columns, scale_of_columns, 32, jobs[1]);
    __syncthreads();
    make_places(jobs[0], p.rows.destination, false), make_places(jobs[1], p.columns.destination, order.tall == CHUNK);
    if (threadIdx.x % 64 == 0 && has_turn(order, threadIdx.x / 64))
        find_places(p, jobs, tile_at(order, threadIdx.x / 64), &places[threadIdx.x / 64]);
    for (uint32_t turn = 0; has_turn(order, turn); turn++) {
        cp_async_wait_group<0>();
        __syncthreads();                  /* the tile has come, and the other one is free */
        if (has_turn(order, turn + 1))
            copy_tile(p.rows.source, shared_address(tiles[(turn + 1) % 2]), places[(turn + 1) % PLACES].source);
        cp_async_commit_group();
        if (threadIdx.x == turn % 4 * 32 && has_turn(order, turn + 2))
            find_places(p, jobs, tile_at(order, turn + 2), &places[(turn + 2) % PLACES]);
        const both_places &here = places[turn % PLACES];
        const uint32_t of_rows = quantize_tile<true>(p.rows, jobs[0], tiles[turn % 2], here, nullptr);
        const uint32_t of_columns = quantize_tile<false>(p.columns, jobs[1], tiles[turn % 2], here, in_stage(stage, jobs[1], turn));
        const uint32_t odd = of_rows | of_columns << 4;
        if (__any_sync(0xffffffff, odd != 0)) quantize_odd(p, jobs, here, odd, stage, turn);
        if (!jobs[1].staged || turn % CHUNK != CHUNK - 1) continue;
        __syncwarp();
        store_stage(jobs[1], here.column_scales, stage);
    }
}
