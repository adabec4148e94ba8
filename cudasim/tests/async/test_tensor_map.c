/* Tensor maps: what is encoded, what is refused and why, the swizzle patterns. */
#include "machine/async/tensor_map.h"
#include "test.h"

struct request {
    unsigned type, rank;
    uint64_t address, dim[5], stride[4];
    uint32_t box[5], element_stride[5];
    unsigned interleave, swizzle, l2_promotion, fill;
};

static const struct request plain = { .type = TENSOR_MAP_F16,
                                      .rank = 3,
                                      .address = 0x10000,
                                      .dim = { 256, 64, 8 },
                                      .stride = { 512, 32768 },
                                      .box = { 64, 16, 2 },
                                      .element_stride = { 1, 1, 1 },
                                      .swizzle = SWIZZLE_128B };

static int encode(const char *device, const struct request *r, void *map, char *sentence)
{
    return tensor_map_encode_tiled(device_named(device), map, r->type, r->rank, r->address, r->dim, r->stride, r->box,
                                   r->element_stride, r->interleave, r->swizzle, r->l2_promotion, r->fill, sentence,
                                   256);
}

static void wants(struct test *t, int line, const char *device, const struct request *r, const char *words)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256] = "";
    const int code = encode(device, r, map, sentence);
    if (words == NULL ? code != 0 : code != 1 || strstr(sentence, words) == NULL)
        test_fail(t, __FILE__, line, "wanted \"%s\", got %d \"%s\"", words == NULL ? "success" : words, code, sentence);
}

/* words NULL: accepted */
#define ON(device, words, ...) \
    do { \
        struct request r = plain; \
        __VA_ARGS__; \
        wants(t, __LINE__, device, &r, words); \
    } while (0)
#define EDGE(words, ...) ON("sm_90a", words, __VA_ARGS__)

static void sizes_at_their_limits(struct test *t)
{
    EDGE(NULL, (void)r);
    EDGE("address", r.address += 8);
    EDGE(NULL, r.address += 16);
    EDGE("the rank is 0", r.rank = 0);
    EDGE("the rank is 6", r.rank = 6);
    EDGE(NULL, r.rank = 1);
    EDGE("dimension 1 has 0", r.dim[1] = 0);
    EDGE(NULL, r.dim[2] = UINT64_C(1) << 32);
    EDGE("1 to 2^32", r.dim[2] = (UINT64_C(1) << 32) + 1);
    EDGE("no multiple of 16", r.stride[0] = 520);
    EDGE(NULL, r.stride[0] = 0);
    EDGE(NULL, r.stride[0] = 16);
    EDGE("not below 2^40", r.stride[1] = UINT64_C(1) << 40);
    EDGE(NULL, r.stride[1] = (UINT64_C(1) << 40) - 16);
    EDGE("the box has 0", r.box[2] = 0);
    EDGE("the box has 257", r.box[1] = 257);
    EDGE(NULL, r.box[1] = 256);
    EDGE(NULL, r.box[2] = 100, r.dim[2] = 3, r.box[1] = 8);
    EDGE("no multiple of 16", r.box[0] = 12);
    EDGE(NULL, r.box[0] = 8);
    EDGE("more than the 128", r.box[0] = 72);
    EDGE("more than the 64", r.swizzle = SWIZZLE_64B);
    EDGE(NULL, r.swizzle = SWIZZLE_64B, r.box[0] = 32);
    EDGE("more than the 32", r.swizzle = SWIZZLE_32B, r.box[0] = 24);
    EDGE(NULL, r.swizzle = SWIZZLE_NONE, r.box[0] = 256);
    EDGE("more than shared memory", r.swizzle = SWIZZLE_NONE, r.box[0] = 256, r.box[1] = 256);
    EDGE(NULL, r.swizzle = SWIZZLE_NONE, r.box[0] = 256, r.box[1] = 256, r.box[2] = 1);
    EDGE("element stride of dimension 1 is 0", r.element_stride[1] = 0);
    EDGE("element stride of dimension 1 is 9", r.element_stride[1] = 9);
    EDGE(NULL, r.element_stride[1] = 8, r.element_stride[0] = 2);
}

static void modes_that_go_together(struct test *t)
{
    EDGE("type 16", r.type = 16);
    EDGE("type 255", r.type = 1000);
    EDGE("swizzle is none", r.swizzle = 7);
    EDGE("swizzle is none", r.swizzle = 256);
    EDGE("interleave 3", r.interleave = 3);
    EDGE("L2 promotion 4", r.l2_promotion = 4);
    EDGE("fill 2", r.fill = 2);
    EDGE(NULL, r.fill = 1);
    EDGE("no fill for type u16", r.fill = 1, r.type = TENSOR_MAP_U16);
    EDGE(NULL, r.interleave = INTERLEAVE_16B, r.box[0] = 8);
    EDGE("3 dimensions", r.interleave = INTERLEAVE_16B, r.rank = 2);
    EDGE("32 bytes only", r.interleave = INTERLEAVE_32B);
    EDGE(NULL, r.interleave = INTERLEAVE_32B, r.swizzle = SWIZZLE_32B, r.box[0] = 16);
    EDGE("no multiple of 32", r.interleave = INTERLEAVE_32B, r.swizzle = SWIZZLE_32B, r.address += 16);
    EDGE("no multiple of 32", r.interleave = INTERLEAVE_32B, r.swizzle = SWIZZLE_32B, r.stride[0] = 528);
}

#define PADDED r.type = TENSOR_MAP_B4X16_P64, r.box[0] = 128
static void what_only_later_devices_have(struct test *t)
{
    EDGE("needs sm_100", r.swizzle = SWIZZLE_128B + ATOM_32B);
    EDGE("needs sm_100", PADDED);
    ON("sm_100a", NULL, r.swizzle = SWIZZLE_128B + ATOM_32B);
    ON("sm_100a", NULL, r.swizzle = SWIZZLE_128B + ATOM_64B);
    ON("sm_100a", NULL, PADDED);
    ON("sm_100a", "it has 128", PADDED, r.box[0] = 64);
    ON("sm_100a", "no multiple of 32", PADDED, r.address += 16);
    ON("sm_100a", "no multiple of 32", PADDED, r.stride[1] += 16);
    ON("sm_100a", "no multiple of 128", PADDED, r.dim[0] = 192);
    ON("sm_100a", "does not go with this swizzle", PADDED, r.swizzle = SWIZZLE_128B + ATOM_32B_FLIP_8B);
    ON("sm_100a", "does not go with this swizzle", PADDED, r.swizzle = SWIZZLE_128B + ATOM_64B);
    ON("sm_100a", NULL, PADDED, r.type = TENSOR_MAP_B6X16_P32, r.swizzle = SWIZZLE_128B + ATOM_64B);
    ON("sm_100a", "is not interleaved", PADDED, r.interleave = INTERLEAVE_16B);
    ON("sm_100a", "no fill", PADDED, r.fill = 1);
    ON("sm_100a", NULL, r.type = TENSOR_MAP_B4X16, r.box[0] = 256);
    ON("sm_100a", "no multiple of 16", r.type = TENSOR_MAP_B4X16, r.box[0] = 48);
    ON("sm_100a", "no multiple of 2", r.type = TENSOR_MAP_B4X16, r.dim[0] = 255);
}

static void null_and_misaligned_arguments(struct test *t)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES + 64];
    char sentence[256];
    const struct request *r = &plain;
    CHECK(t, encode("sm_90a", r, map + 32, sentence) == 1 && strstr(sentence, "multiple of 64") != NULL);
    CHECK(t, encode("sm_90a", r, NULL, sentence) == 1 && strstr(sentence, "null") != NULL);
    CHECK(t, tensor_map_encode_tiled(device_named("sm_90a"), map, r->type, 2, r->address, r->dim, NULL, r->box,
                                     r->element_stride, 0, 0, 0, 0, sentence, sizeof sentence)
                 == 1);
    CHECK(t, tensor_map_encode_tiled(device_named("sm_90a"), map, r->type, 1, r->address, r->dim, NULL, r->box,
                                     r->element_stride, 0, 0, 0, 0, sentence, sizeof sentence)
                 == 0);
}

static void every_damaged_byte_is_seen(struct test *t)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    struct tensor_layout layout;
    CHECK(t, encode("sm_90a", &plain, map, sentence) == 0);
    CHECK(t, tensor_map_read(map, &layout) == TENSOR_MAP_VALID);
    CHECK(t, layout.dim[1] == 64 && layout.stride[1] == 32768 && layout.box[2] == 2 && layout.swizzle == SWIZZLE_128B);
    for (int i = 0; i < TENSOR_MAP_BYTES; i++) {
        map[i] ^= 0x10;
        CHECK(t, tensor_map_read(map, &layout) != TENSOR_MAP_VALID && layout.rank == 0);
        map[i] ^= 0x10;
    }
    CHECK(t, tensor_map_replace_address(device_named("sm_90a"), map, 0x20008, sentence, sizeof sentence) == 1);
    CHECK(t, tensor_map_replace_address(device_named("sm_90a"), map, 0x20000, sentence, sizeof sentence) == 0);
    CHECK(t, tensor_map_read(map, &layout) == TENSOR_MAP_VALID && layout.address == 0x20000 && layout.dim[0] == 256);
    memset(map, 0, sizeof map);
    CHECK(t, tensor_map_read(map, &layout) == TENSOR_MAP_ZERO);
    CHECK(t, tensor_map_replace_address(device_named("sm_90a"), map, 0x20000, sentence, sizeof sentence) == 1);
}

/* Known issues of NVIDIA's driver 595.71.05: on Blackwell bit 85 is to be cleared in maps of less than 128 KiB that are
 * not dense. */
static void small_maps_with_gaps_want_bit_85_cleared(struct test *t)
{
    static const struct { const char *device; uint64_t dim[3], stride[2]; bool sporadic; } maps[] = {
        { "sm_100a", { 64, 8, 2 }, { 128, 1024 }, false },          { "sm_100a", { 64, 8, 2 }, { 144, 1152 }, true },
        { "sm_100a", { 64, 8, 1 }, { 128, 16 }, true },             { "sm_90a", { 64, 8, 2 }, { 144, 1152 }, false },
        { "sm_120a", { 64, 8, 2 }, { 128, 1040 }, true },
          { "sm_100a", { 64, 1024, 1 }, { 144, 147456 }, false },
        { "sm_100a", { 64, 1, 2 }, { 128, (UINT64_C(1) << 40) - 16 }, false },
    };
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
        char sentence[256];
        struct tensor_layout layout;
        struct request r = plain;
        memcpy(r.dim, maps[i].dim, sizeof maps[i].dim), memcpy(r.stride, maps[i].stride, sizeof maps[i].stride);
        CHECK(t, encode(maps[i].device, &r, map, sentence) == 0);
        CHECK(t, tensor_map_read(map, &layout) == TENSOR_MAP_VALID && layout.sporadic == maps[i].sporadic);
        map[10] &= 0xdf;
        CHECK(t, tensor_map_read(map, &layout) == TENSOR_MAP_VALID && !layout.sporadic
                     && layout.stride[0] == maps[i].stride[0]);
    }
}

/* The tables of PTX ISA 5.5.7: which 16-byte chunk of the source row lies at each chunk of shared memory, rows of 128
 * bytes. */
static const char *const patterns[][8] = {
    [SWIZZLE_32B] = { "01234567", "10325476", "01234567", "10325476", "01234567", "10325476", "01234567", "10325476" },
    [SWIZZLE_64B] = { "01234567", "10325476", "23016745", "32107654", "01234567", "10325476", "23016745", "32107654" },
    [SWIZZLE_128B] = { "01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210" },
    [SWIZZLE_128B +
        ATOM_32B] = { "01234567", "23016745", "45670123", "67452301", "01234567", "23016745", "45670123", "67452301" },
    [SWIZZLE_128B + ATOM_32B_FLIP_8B] = { "01234567", "23016745", "45670123", "67452301", "01234567", "23016745",
                                          "45670123", "67452301" },
    [SWIZZLE_128B +
        ATOM_64B] = { "01234567", "45670123", "01234567", "45670123", "01234567", "45670123", "01234567", "45670123" },
};

static void swizzles_are_those_of_the_manual(struct test *t)
{
    for (unsigned mode = SWIZZLE_32B; mode <= SWIZZLE_128B + ATOM_64B; mode++) {
        const struct tensor_layout layout = { .swizzle = (uint8_t)(mode < SWIZZLE_128B ? mode : SWIZZLE_128B),
                                              .atom = (uint8_t)(mode < SWIZZLE_128B ? 0 : mode - SWIZZLE_128B) };
        for (uint32_t byte = 0; byte < 1024; byte++) {
            const uint32_t row = byte / 128, chunk = byte / 16 % 8,
                           flip = mode == SWIZZLE_128B + ATOM_32B_FLIP_8B && row % 2 == 1;
            const uint32_t to = tensor_swizzle_address(&layout, 0x20000 + byte) - 0x20000;
            CHECK(t, to / 128 == row && (uint32_t)(patterns[mode][row][to / 16 % 8] - '0') == chunk);
            CHECK(t, to % 16 == (flip ? (byte % 16) ^ 8 : byte % 16));
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(sizes_at_their_limits),         TEST(modes_that_go_together),     TEST(what_only_later_devices_have),
        TEST(null_and_misaligned_arguments), TEST(every_damaged_byte_is_seen), TEST(swizzles_are_those_of_the_manual),
        TEST(small_maps_with_gaps_want_bit_85_cleared),
    };
    return TEST_MAIN(argc, argv, cases);
}
