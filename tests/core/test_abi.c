/* The binary interface: sizes and offsets of abi/sizes.h, in C.  tests/install asserts them in C++. */
#include "blockscale.h"
#include "test.h"

#define ABI_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size");
#define ABI_OFFSET(type, field, bytes) _Static_assert(offsetof(type, field) == (bytes), #type "." #field " has moved");
#include "../../abi/sizes.h"
#undef ABI_SIZE
#undef ABI_OFFSET

/* A struct that carries its size carries it first: that is where the library reads it. */
static void struct_size_comes_first(struct test *t)
{
    int sized = 0;
#define ABI_SIZE(type, bytes)
#define ABI_OFFSET(type, field, bytes) \
    if (strcmp(#field, "struct_size") == 0) { sized++; CHECK(t, (bytes) == 0); }
#include "../../abi/sizes.h"
    CHECK(t, sized == 15);
}

/* Numbers that programs were compiled with. */
static void enumerators_keep_their_numbers(struct test *t)
{
    CHECK(t, BSM_OK == 0 && BSM_EINVAL == 1 && BSM_EALIGN == 2 && BSM_EOVERFLOW == 3 && BSM_EUNSUPPORTED == 4
                 && BSM_ENOMEM == 5);
    CHECK(t, BSM_EDEVICE == 6 && BSM_EIO == 7 && BSM_EFILE == 8);
    CHECK(t, BSM_E4M3 == 0 && BSM_E5M2 == 1 && BSM_E3M2 == 2 && BSM_E2M3 == 3 && BSM_E2M1 == 4 && BSM_INT8 == 5
                 && BSM_BF16 == 6);
    CHECK(t, BSM_FP16 == 7 && BSM_FP32 == 8 && BSM_UNSCALED == 0 && BSM_E8M0 == 1 && BSM_UE4M3 == 2);
    CHECK(t, BSM_FORMAT_NONE == 0 && BSM_MXFP8_E4M3 == 1 && BSM_MXFP8_E5M2 == 2 && BSM_MXFP6_E3M2 == 3
                 && BSM_MXFP6_E2M3 == 4);
    CHECK(t, BSM_MXFP4 == 5 && BSM_MXFP4_BLOCK16 == 6 && BSM_MXINT8 == 7 && BSM_NVFP4 == 8 && BSM_FORMAT_E4M3 == 9);
    CHECK(t, BSM_FORMAT_E5M2 == 10 && BSM_FORMAT_BF16 == 11 && BSM_FORMAT_FP16 == 12 && BSM_FORMAT_FP32 == 13);
    CHECK(t, BSM_LAYOUT_LINEAR == 0 && BSM_LAYOUT_128X4 == 1 && BSM_LAYOUT_8X4 == 2 && BSM_LAYOUT_TILES == 3);
    CHECK(t,
          BSM_PITCH_PADDED_16 == -16 && BSM_LAYOUT_CDNA4_16 == 5 && BSM_LAYOUT_CDNA4_32 == 6 && BSM_LAYOUT_AITER == 7);
    CHECK(t, BSM_LAYOUT_DEEPGEMM == 8 && BSM_LAYOUT_GGUF_MXFP4 == 9 && BSM_LAYOUT_GGUF_NVFP4 == 10);
    CHECK(t, BSM_PACKING_DEFAULT == 0 && BSM_PACKING_LOW_FIRST == 1 && BSM_PACKING_HIGH_FIRST == 2
                 && BSM_PACKING_BIT_STREAM == 3);
    CHECK(t, BSM_PACKING_BYTES == 4 && BSM_PACKING_GGUF == 5);
    CHECK(t, BSM_RECIPE_DEFAULT == 0 && BSM_RECIPE_FLOOR == 1 && BSM_RECIPE_RCEIL == 2 && BSM_RECIPE_CEIL == 3);
    CHECK(t, BSM_RECIPE_EVEN == 4 && BSM_RECIPE_NEAREST == 5 && BSM_RECIPE_FOUR_OVER_SIX == 6 && BSM_RECIPE_MSE == 7);
    CHECK(t,
          BSM_ACT_NONE == 0 && BSM_ACT_RELU == 1 && BSM_ACT_GELU == 2 && BSM_ACT_GELU_TANH == 3 && BSM_ACT_SILU == 4);
    CHECK(t, BSM_ACT_SWIGLU_CLAMPED == 5 && BSM_GATE_NONE == 0 && BSM_GATE_INTERLEAVED == 1 && BSM_GATE_SPLIT == 2);
    CHECK(t, BSM_PER_TENSOR == 0 && BSM_PER_ROW == 1 && BSM_PER_COLUMN == 2 && BSM_PER_BATCH == 3);
    CHECK(t, BSM_REAL_FP32 == 0 && BSM_REAL_FP16 == 1 && BSM_REAL_BF16 == 2 && BSM_REAL_FP64 == 3);
    CHECK(t, BSM_CPU_FMA == 1 && BSM_CPU_AVX2 == 2 && BSM_CPU_AVX512 == 4 && BSM_CPU_AVX512_VNNI == 8
                 && BSM_CPU_DOTPROD == 16 && BSM_CPU_I8MM == 32 && BSM_CPU_AVX512_BF16 == 64
                 && BSM_CPU_AMX == 128 && BSM_CPU_BF16 == 256);
    CHECK(t, BSM_TENSOR_F64 == 0 && BSM_TENSOR_F8_E4M3 == 4 && BSM_TENSOR_F4 == 11 && BSM_TENSOR_U8 == 19
                 && BSM_TENSOR_MXFP4 == 22);
    CHECK(t, BSM_TENSOR_OTHER == 24 && BSM_CHECKPOINT_SAFETENSORS == 0 && BSM_CHECKPOINT_GGUF == 1);
    CHECK(t, BSM_BACKEND_CPU == 0 && BSM_BACKEND_CUDA == 1 && BSM_BACKEND_CUDA_OR_CPU == 2
                 && BSM_BACKEND_HIP == 3 && BSM_BACKEND_HIP_OR_CPU == 4);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(struct_size_comes_first), TEST(enumerators_keep_their_numbers) };
    return TEST_MAIN(argc, argv, cases);
}
