/* AMX in plain C. */
#include "emulated_tiles.h"

#include "float_steps.h"

#include <stdio.h>
#include <stdlib.h>

enum { TILES = 8, MOST_ROWS = 16, ROW_BYTES = 64 };

struct tile {
    int rows, bytes;                      /* configured; a row's */
    union {
        uint8_t of_bytes[MOST_ROWS][ROW_BYTES];
        uint16_t bf16[MOST_ROWS][ROW_BYTES / 2];
        int8_t int8[MOST_ROWS][ROW_BYTES];
        float fp32[MOST_ROWS][ROW_BYTES / 4];
        uint32_t int32[MOST_ROWS][ROW_BYTES / 4];
    };
};

static _Thread_local bool configured;
static _Thread_local struct tile tiles[TILES];
static _Thread_local long int8_products, bf16_products;

__attribute__((noreturn)) static void refuse(const char *instruction, const char *rule)
{
    fprintf(stderr, "emulated %s: %s\n", instruction, rule);
    abort();
}

static void require(bool holds, const char *instruction, const char *rule)
{
    if (!holds) refuse(instruction, rule);
}

static struct tile *get_tile(int number, const char *instruction)
{
    require(configured, instruction, "tiles are not configured (#UD)");
    require(number >= 0 && number < TILES, instruction, "there are eight tiles");
    require(tiles[number].rows > 0, instruction, "the configuration has no such tile (#UD)");
    return &tiles[number];
}

static void take_shape(const uint8_t *configuration, int number)
{
    const uint8_t *bytes = configuration + 16 + 2 * number;
    struct tile *tile = &tiles[number];
    tile->bytes = bytes[0] | bytes[1] << 8;
    tile->rows = configuration[48 + number];
    require(tile->bytes <= ROW_BYTES && tile->rows <= MOST_ROWS, "ldtilecfg",
            "a tile has at most 16 rows of 64 bytes (#GP)");
    require((tile->bytes == 0) == (tile->rows == 0), "ldtilecfg", "rows and bytes are both zero or neither (#GP)");
}

void emulated_ldtilecfg(const void *memory)
{
    const uint8_t *configuration = memory;
    memset(tiles, 0, sizeof tiles);
    configured = false;
    require(configuration[0] <= 1, "ldtilecfg", "palettes are 0 and 1 (#GP)");
    if (configuration[0] == 0) return;
    for (int i = 2; i < 64; i++)
        require(configuration[i] == 0 || (i >= 16 && i < 32) || (i >= 48 && i < 56), "ldtilecfg",
                "reserved bytes are zero (#GP)");
    for (int i = 0; i < TILES; i++) take_shape(configuration, i);
    configured = true;
}

void emulated_tilerelease(void)
{
    memset(tiles, 0, sizeof tiles);
    configured = false;
}

bool emulated_tiles_are_released(void) { return !configured; }

long emulated_int8_products(void) { return int8_products; }
long emulated_bf16_products(void) { return bf16_products; }

void emulated_tilezero(int number)
{
    struct tile *tile = get_tile(number, "tilezero");
    memset(tile->of_bytes, 0, sizeof tile->of_bytes);
}

/* What lies behind the configured rows and bytes becomes zero. */
void emulated_tileloadd(int number, const void *memory, ptrdiff_t stride)
{
    struct tile *tile = get_tile(number, "tileloadd");
    memset(tile->of_bytes, 0, sizeof tile->of_bytes);
    for (int row = 0; row < tile->rows; row++)
        memcpy(tile->of_bytes[row], (const char *)memory + row * stride, (size_t)tile->bytes);
}

void emulated_tilestored(int number, void *memory, ptrdiff_t stride)
{
    const struct tile *tile = get_tile(number, "tilestored");
    for (int row = 0; row < tile->rows; row++)
        memcpy((char *)memory + row * stride, tile->of_bytes[row], (size_t)tile->bytes);
}

static void check_shapes(const struct tile *sums, const struct tile *a, const struct tile *b, const char *instruction)
{
    require(sums != a && sums != b && a != b, instruction, "the three tiles are not the same (#UD)");
    require(sums->bytes % 4 == 0 && a->bytes % 4 == 0 && b->bytes % 4 == 0, instruction,
            "rows have whole words of four bytes (#UD)");
    require(a->rows == sums->rows, instruction, "the sums have as many rows as the first operand (#UD)");
    require(b->bytes == sums->bytes, instruction, "the sums have rows as long as the second operand's (#UD)");
    require(a->bytes / 4 == b->rows, instruction, "the second operand has a row for four bytes of the first's (#UD)");
}

/* What the sums' rows have behind their bytes, and the rows behind the last, become zero. */
static void clear_behind(struct tile *sums)
{
    for (int row = 0; row < MOST_ROWS; row++) {
        const int from = row < sums->rows ? sums->bytes : 0;
        memset(sums->of_bytes[row] + from, 0, (size_t)(ROW_BYTES - from));
    }
}

/* A row of sums.  Even and odd k are chains of their own, which begin at +0; their sum is added. */
static void add_dots_of_pairs(float *sums, int columns, const uint16_t *a, const struct tile *b)
{
    float even[ROW_BYTES / 4] = { 0 }, odd[ROW_BYTES / 4] = { 0 };
    for (int pair = 0; pair < b->rows; pair++)
        for (int i = 0; i < columns; i++) {
            even[i] = flushing_fma(fp32_of_bf16(a[2 * pair]), fp32_of_bf16(b->bf16[pair][2 * i]), even[i]);
            odd[i] = flushing_fma(fp32_of_bf16(a[2 * pair + 1]), fp32_of_bf16(b->bf16[pair][2 * i + 1]), odd[i]);
        }
    for (int i = 0; i < columns; i++) sums[i] = flushing_add(sums[i], flushing_add(even[i], odd[i]));
}

void emulated_tdpbf16ps(int sums_number, int a_number, int b_number)
{
    struct tile *sums = get_tile(sums_number, "tdpbf16ps");
    const struct tile *a = get_tile(a_number, "tdpbf16ps"), *b = get_tile(b_number, "tdpbf16ps");
    check_shapes(sums, a, b, "tdpbf16ps");
    bf16_products++;
    for (int row = 0; row < sums->rows; row++) add_dots_of_pairs(sums->fp32[row], sums->bytes / 4, a->bf16[row], b);
    clear_behind(sums);
}

/* Sums wrap at 32 bits. */
static uint32_t dot_of_bytes(const int8_t *a, const struct tile *b, int column, uint32_t sum)
{
    for (int k = 0; k < 4 * b->rows; k++) sum += (uint32_t)(a[k] * b->int8[k / 4][4 * column + k % 4]);
    return sum;
}

void emulated_tdpbssd(int sums_number, int a_number, int b_number)
{
    struct tile *sums = get_tile(sums_number, "tdpbssd");
    const struct tile *a = get_tile(a_number, "tdpbssd"), *b = get_tile(b_number, "tdpbssd");
    check_shapes(sums, a, b, "tdpbssd");
    int8_products++;
    for (int row = 0; row < sums->rows; row++)
        for (int column = 0; column < sums->bytes / 4; column++)
            sums->int32[row][column] = dot_of_bytes(a->int8[row], b, column, sums->int32[row][column]);
    clear_behind(sums);
}
