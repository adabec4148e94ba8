/* Scales from one layout into another, and the padding of a layout.
 *
 * A CTA takes tiles of 128 rows x 64 columns of the destination with its padding.  Threads go through a tile in the order in which
 * the destination's bytes lie, four neighbouring columns a time; what they read beside one another in the source comes together
 * in the first-level cache. */
#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"
#include "scale_places.cuh"

enum { TILE_ROWS = 128, TILE_WORDS = 16, WORDS_OF_THREAD = TILE_ROWS * TILE_WORDS / BSMI_CONVERT_THREADS };

/* Four neighbouring columns from a multiple of four on are an aligned word. */
__device__ static bool holds_words(const bsmi_device_layout &layout, const unsigned char *data)
{
    if (!aligned_to(data, 4)) return false;
    switch (layout.kind) {
    case BSM_LAYOUT_128X4:
    case BSM_LAYOUT_8X4:
    case BSM_LAYOUT_PAGES16:
    case BSM_LAYOUT_DEEPGEMM: return true;
    case BSM_LAYOUT_LINEAR:
    case BSM_LAYOUT_GGUF_NVFP4: return layout.pitch % 4 == 0;
    case BSM_LAYOUT_TILES: return layout.tile_columns % 4 == 0;
    default: return false;
    }
}

/* Row and word of the tile that come as number i in the destination's order. */
__device__ static inline void place_of_number(int kind, int i, int *row, int *word)
{
    switch (kind) {
    case BSM_LAYOUT_128X4: *row = (i >> 2 & 31) + 32 * (i & 3), *word = i >> 7; break;
    case BSM_LAYOUT_8X4: *row = (i & 7) + 8 * (i >> 7), *word = i >> 3 & 15; break;
    case BSM_LAYOUT_PAGES16: *row = i >> 2 & 127, *word = (i & 3) + 4 * (i >> 9); break;
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_CDNA4_32:
    case BSM_LAYOUT_AITER:
    case BSM_LAYOUT_DEEPGEMM: *row = i & 127, *word = i >> 7; break;
    default: *row = i >> 4, *word = i & 15; break;
    }
}

struct scale_side { const unsigned char *data; scale_places places; bool words; };

__device__ static inline uint32_t load_word(const scale_side &from, int64_t row_place, int64_t column, int count)
{
    if (from.words && count == 4) return __ldg((const uint32_t *)(from.data + row_place + place_in(from.places.column, column)));
    uint32_t word = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) word |= (uint32_t)__ldg(from.data + row_place + place_in(from.places.column, column + i)) << 8 * i;
    return word;
}

__device__ static inline void store_word(const scale_side &to, int64_t row_place, int64_t column, int count, uint32_t word)
{
    unsigned char *data = (unsigned char *)to.data + row_place;
    if (to.words && count == 4) {
        *(uint32_t *)(data + place_in(to.places.column, column)) = word;
        return;
    }
#pragma unroll 1
    for (int i = 0; i < count; i++) data[place_in(to.places.column, column + i)] = (unsigned char)(word >> 8 * i);
}

extern "C" __global__ void __launch_bounds__(BSMI_CONVERT_THREADS) bsmi_convert_scales(const __grid_constant__ bsmi_convert_scales_parameters p)
{
    ptx_griddepcontrol_wait();
    const scale_side from = { p.from, make_places(p.from_layout), holds_words(p.from_layout, p.from) };
    const scale_side to = { p.to, make_places(p.to_layout), holds_words(p.to_layout, p.to) };
    const int64_t rows = p.from_layout.rows, columns = p.from_layout.columns;
    const int64_t padded_rows = p.to_layout.padded_rows, padded_columns = p.to_layout.padded_columns;
    const int64_t tiles_across = (padded_columns + TILE_WORDS * 4 - 1) / (TILE_WORDS * 4);
    const int64_t tiles = (padded_rows + TILE_ROWS - 1) / TILE_ROWS * tiles_across;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t first_row = tile / tiles_across * TILE_ROWS, first_column = tile % tiles_across * TILE_WORDS * 4;
        uint32_t words[WORDS_OF_THREAD];
#pragma unroll
        for (int j = 0; j < WORDS_OF_THREAD; j++) {
            int row, word;
            place_of_number(p.to_layout.kind, (int)threadIdx.x + j * BSMI_CONVERT_THREADS, &row, &word);
            const int64_t r = first_row + row, c = first_column + word * 4;
            words[j] = 0;
            if (r < rows && c < columns)
                words[j] = load_word(from, place_in(from.places.row, r), c, (int)(columns - c < 4 ? columns - c : 4));
        }
#pragma unroll
        for (int j = 0; j < WORDS_OF_THREAD; j++) {
            int row, word;
            place_of_number(p.to_layout.kind, (int)threadIdx.x + j * BSMI_CONVERT_THREADS, &row, &word);
            const int64_t r = first_row + row, c = first_column + word * 4;
            if (r < padded_rows && c < padded_columns)
                store_word(to, place_in(to.places.row, r), c, (int)(padded_columns - c < 4 ? padded_columns - c : 4), words[j]);
        }
    }
}

/* Behind the columns of each row, then the rows behind the last. */
extern "C" __global__ void __launch_bounds__(BSMI_CONVERT_THREADS) bsmi_clear_padding(const __grid_constant__ bsmi_clear_padding_parameters p)
{
    ptx_griddepcontrol_wait();
    const bsmi_device_layout &layout = p.layout;
    const scale_places places = make_places(layout);
    const int64_t behind = layout.padded_columns - layout.columns, first = layout.rows * behind;
    const int64_t all = first + (layout.padded_rows - layout.rows) * layout.padded_columns;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all * p.batch; i += step) {
        const int64_t matrix = i / all, n = i - matrix * all;
        int64_t row, column;
        if (n < first) row = n / behind, column = layout.columns + n % behind;
        else row = layout.rows + (n - first) / layout.padded_columns, column = (n - first) % layout.padded_columns;
        p.scales[matrix * p.batch_bytes + place_in(places.row, row) + place_in(places.column, column)] = 0;
    }
}
