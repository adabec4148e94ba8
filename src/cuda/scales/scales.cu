/* Scales from one layout into another, and the padding of a layout.
 *
 * Whole stretches of 128 rows go by the path of scale_units.cuh where it has one.  Of the rest, a CTA takes tiles of
 * 128 rows x 64 columns of the destination with its padding, four neighbouring columns ("a word") a thread and step.
 * Between layouts that keep such words together, tiles without padding are read in the order of the source and written
 * in that of the destination, by way of shared memory.  Everything else goes byte by byte where it must. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"
#include "scale_places.cuh"
#include "scale_units.cuh"

enum { TILE_ROWS = 128, TILE_WORDS = 16, WORDS_OF_THREAD = TILE_ROWS * TILE_WORDS / BSMI_CONVERT_THREADS };

/* Four neighbouring columns from a multiple of four on are an aligned word. */
__device__ static bool holds_words(const bsmi_device_layout &layout, const unsigned char *data, int64_t batch_bytes)
{
    if (!aligned_to(data, 4) || batch_bytes % 4 != 0) return false;
    switch (layout.kind) {
    case BSM_LAYOUT_128X4:
    case BSM_LAYOUT_8X4:
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
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_CDNA4_32:
    case BSM_LAYOUT_AITER:
    case BSM_LAYOUT_DEEPGEMM: *row = i & 127, *word = i >> 7; break;
    default: *row = i >> 4, *word = i & 15; break;
    }
}

/* repeat: columns that each scale stands for; words: four neighbouring ones lie together. */
struct scale_side { const unsigned char *data; scale_places places; bool words; int repeat; };

__device__ static inline uint32_t load_word(const scale_side &from, int64_t row_place, int64_t column, int count)
{
    if (from.words && count == 4)
        return __ldg((const uint32_t *)(from.data + row_place + place_in(from.places.column, column)));
    uint32_t word = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        word |= (uint32_t)__ldg(from.data + row_place + place_in(from.places.column, (column + i) / from.repeat))
                << 8 * i;
    return word;
}

__device__ static inline void store_word(const scale_side &to, int64_t row_place, int64_t column, int count,
                                         uint32_t word)
{
    unsigned char *data = (unsigned char *)to.data + row_place;
    if (to.words && count == 4) {
        *(uint32_t *)(data + place_in(to.places.column, column)) = word;
        return;
    }
#pragma unroll 1
    for (int i = 0; i < count; i++) data[place_in(to.places.column, column + i)] = (unsigned char)(word >> 8 * i);
}

/* Any tile. */
__device__ __noinline__ static void convert_tile(const bsmi_convert_scales_parameters &p, const scale_side &from,
                                                 const scale_side &to, int64_t read_from, int64_t written_to,
                                                 int64_t first_row, int64_t first_column)
{
    const int64_t rows = p.from_layout.rows, columns = p.to_layout.columns;
    const int64_t padded_rows = p.to_layout.padded_rows, padded_columns = p.to_layout.padded_columns;
    for (int j = 0; j < WORDS_OF_THREAD; j++) {
        int row, word;
        place_of_number(p.to_layout.kind, (int)threadIdx.x + j * BSMI_CONVERT_THREADS, &row, &word);
        const int64_t r = first_row + row, c = first_column + word * 4;
        uint32_t scales = 0;
        if (r < rows && c < columns)
            scales =
                load_word(from, read_from + place_in(from.places.row, r), c, (int)(columns - c < 4 ? columns - c : 4));
        if (r < padded_rows && c < padded_columns)
            store_word(to, written_to + place_in(to.places.row, r), c,
                       (int)(padded_columns - c < 4 ? padded_columns - c : 4), scales);
    }
}

/* Places within a tile do not depend on the tile: rows and columns of shifted parts add up, since a tile's first row
 * and column are multiples of all that is shifted and masked. */
struct tile_side {
    const unsigned char *data;
    uint32_t at[WORDS_OF_THREAD];         /* bytes from the tile's first */
    uint32_t slot[WORDS_OF_THREAD];       /* in shared memory */
};

__device__ static inline tile_side make_tile_side(const scale_side &side, int kind)
{
    tile_side t = { side.data, {}, {} };
#pragma unroll
    for (int j = 0; j < WORDS_OF_THREAD; j++) {
        int row, word;
        place_of_number(kind, (int)threadIdx.x + j * BSMI_CONVERT_THREADS, &row, &word);
        t.at[j] = (uint32_t)(place_in(side.places.row, row) + place_in(side.places.column, word * 4));
        t.slot[j] = (uint32_t)(row * (TILE_WORDS + 1) + (row >> 5) + word);       /* rows a warp touches lie in many
                                                                                     banks */
    }
    return t;
}

__device__ static inline bool fits_tile_side(const scale_side &side)
{
    if (!side.words || side.places.row.tile != 0) return false;
    return place_in(side.places.row, TILE_ROWS - 1) + place_in(side.places.column, TILE_WORDS * 4 - 1)
           < ((int64_t)1 << 32);
}

/* All columns of as many rows as this returns. */
__device__ static int64_t convert_whole_units(const bsmi_convert_scales_parameters &p, const scale_places &from,
                                              const scale_places &to)
{
    const unit_path w = unit_path_of(p);
    if (w.from == UNITS_NONE || p.batch > 1 || p.repeat > 1) return 0;
    const int64_t columns = (p.from_layout.columns + UNIT_COLUMNS - 1) / UNIT_COLUMNS,
                  rows = p.from_layout.rows / UNIT_ROWS;
    if (columns * rows >= (int64_t)1 << 31) return 0;
    const uint32_t across = (uint32_t)columns, all = (uint32_t)(columns * rows);
    for (uint32_t i = blockIdx.x; i < all; i += gridDim.x) {
        const uint32_t down = i / across;
        convert_units(p, w, from, to, (int64_t)down * UNIT_ROWS, (int64_t)(i - down * across) * UNIT_COLUMNS);
    }
    return rows * UNIT_ROWS;
}

extern "C" __global__ void __launch_bounds__(BSMI_CONVERT_THREADS, 5)
    bsmi_convert_scales(const __grid_constant__ bsmi_convert_scales_parameters p)
{
    __shared__ uint32_t words[TILE_ROWS * (TILE_WORDS + 1) + TILE_ROWS / 32];
    ptx_griddepcontrol_wait();
    __shared__ scale_side from, to;
    if (threadIdx.x == 0) {
        from.data = p.from, from.places = make_places(p.from_layout), from.repeat = p.repeat == 0 ? 1 : p.repeat;
        from.words = from.repeat == 1 && holds_words(p.from_layout, p.from, p.from_batch_bytes);
    }
    if (threadIdx.x == 32) {
        to.data = p.to, to.places = make_places(p.to_layout), to.repeat = 1;
        to.words = holds_words(p.to_layout, p.to, p.to_batch_bytes);
    }
    __syncthreads();
    const int64_t done_rows = convert_whole_units(p, from.places, to.places);
    if (done_rows >= p.to_layout.padded_rows) return;
    const bool fast = fits_tile_side(from) && fits_tile_side(to);
    tile_side source = {}, destination = {};
    if (fast) source = make_tile_side(from, p.from_layout.kind), destination = make_tile_side(to, p.to_layout.kind);
    const int64_t tiles_across = (p.to_layout.padded_columns + TILE_WORDS * 4 - 1) / (TILE_WORDS * 4);
    const int64_t tiles = (p.to_layout.padded_rows - done_rows + TILE_ROWS - 1) / TILE_ROWS * tiles_across;
    const int64_t batch = p.batch == 0 ? 1 : p.batch;
    for (int64_t number = blockIdx.x; number < tiles * batch; number += gridDim.x) {
        const int64_t matrix = number / tiles, tile = number - matrix * tiles;
        const int64_t first_row = done_rows + tile / tiles_across * TILE_ROWS,
                      first_column = tile % tiles_across * TILE_WORDS * 4;
        const int64_t read_from = matrix * p.from_batch_bytes, written_to = matrix * p.to_batch_bytes;
        if (!fast || first_row + TILE_ROWS > p.from_layout.rows
            || first_column + TILE_WORDS * 4 > p.from_layout.columns) {
            convert_tile(p, from, to, read_from, written_to, first_row, first_column);
            continue;
        }
        const unsigned char *read =
            source.data + read_from + place_in(from.places.row, first_row) + place_in(from.places.column, first_column);
        unsigned char *written = (unsigned char *)destination.data + written_to + place_in(to.places.row, first_row)
                               + place_in(to.places.column, first_column);
        uint32_t loaded[WORDS_OF_THREAD];
#pragma unroll
        for (int j = 0; j < WORDS_OF_THREAD; j++) loaded[j] = __ldg((const uint32_t *)(read + source.at[j]));
        __syncthreads();                  /* the tile before this one has been read */
#pragma unroll
        for (int j = 0; j < WORDS_OF_THREAD; j++) words[source.slot[j]] = loaded[j];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < WORDS_OF_THREAD; j++)
            *(uint32_t *)(written + destination.at[j]) = words[destination.slot[j]];
    }
}

/* Behind the columns of each row, then the rows behind the last. */
extern "C" __global__ void __launch_bounds__(BSMI_CONVERT_THREADS)
    bsmi_clear_padding(const __grid_constant__ bsmi_clear_padding_parameters p)
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
