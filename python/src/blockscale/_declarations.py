"""The C library's declarations.  Made by python/declarations.py from include/blockscale: not edited."""

CDEF = """
/* status.h */
#define BSM_VERSION 100
int bsm_version(void);
typedef enum bsm_status {
    BSM_OK = 0,
    BSM_EINVAL,
    BSM_EALIGN,
    BSM_EOVERFLOW,
    BSM_EUNSUPPORTED,
    BSM_ENOMEM,
    BSM_EDEVICE,
    BSM_EIO,
    BSM_EFILE
} bsm_status;
const char *bsm_strerror(int status);
const char *bsm_last_error(void);

/* context.h */
typedef struct bsm_context bsm_context;
typedef struct bsm_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} bsm_allocator;
enum {
    BSM_CPU_FMA = 1u << 0,
    BSM_CPU_AVX2 = 1u << 1,
    BSM_CPU_AVX512 = 1u << 2,
    BSM_CPU_AVX512_VNNI = 1u << 3,
    BSM_CPU_DOTPROD = 1u << 4,
    BSM_CPU_I8MM = 1u << 5,
    BSM_CPU_AVX512_BF16 = 1u << 6,
    BSM_CPU_AMX = 1u << 7,
    BSM_CPU_BF16 = 1u << 8,
    BSM_CPU_ALL = 0x7fffffff
};
typedef enum bsm_backend {
    BSM_BACKEND_CPU,
    BSM_BACKEND_CUDA,
    BSM_BACKEND_CUDA_OR_CPU,
    BSM_BACKEND_HIP,
    BSM_BACKEND_HIP_OR_CPU,
    BSM_BACKEND_COUNT
} bsm_backend;
typedef struct bsm_context_options {
    size_t struct_size;
    int threads;
    uint32_t cpu_mask;
    bool portable_only;
    const bsm_allocator *allocator;
    bsm_backend backend;
    int device;
    void *stream;
} bsm_context_options;
bsm_status bsm_context_create(const bsm_context_options *options, bsm_context **context);
void bsm_context_destroy(bsm_context *context);
bsm_backend bsm_context_backend(const bsm_context *context);
const char *bsm_backend_name(int backend);
int bsm_backend_from_name(const char *name);
bsm_status bsm_context_set_threads(bsm_context *context, int threads);
int bsm_context_threads(const bsm_context *context);
typedef void bsm_parallel(void (*function)(void *argument), void *argument, unsigned threads, unsigned flags);
void bsm_set_parallel(bsm_parallel *parallel);
uint32_t bsm_context_cpu_features(const bsm_context *context);
const char *bsm_cpu_feature_name(uint32_t bit);

/* device.h */
const char *bsm_backend_missing(int backend);
bsm_status bsm_device_count(bsm_backend backend, int *count);
typedef struct bsm_device_info {
    size_t struct_size;
    char name[128];
    int major, minor;
    int multiprocessors;
    int driver_version;
    int64_t memory_bytes;
} bsm_device_info;
bsm_status bsm_device_describe(bsm_backend backend, int device, bsm_device_info *info);
bsm_status bsm_device_allocate(bsm_context *context, size_t bytes, void **memory);
bsm_status bsm_device_release(bsm_context *context, void *memory);
bsm_status bsm_device_write(bsm_context *context, void *to, const void *from, size_t bytes);
bsm_status bsm_device_read(bsm_context *context, void *to, const void *from, size_t bytes);
bsm_status bsm_context_synchronize(bsm_context *context);

/* format.h */
typedef enum bsm_element {
    BSM_E4M3, BSM_E5M2, BSM_E3M2, BSM_E2M3, BSM_E2M1, BSM_INT8, BSM_BF16, BSM_FP16, BSM_FP32,
    BSM_ELEMENT_COUNT
} bsm_element;
typedef enum bsm_scale { BSM_UNSCALED, BSM_E8M0, BSM_UE4M3, BSM_SCALE_COUNT } bsm_scale;
typedef enum bsm_format {
    BSM_FORMAT_NONE = 0,
    BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3, BSM_MXFP4, BSM_MXFP4_BLOCK16, BSM_MXINT8, BSM_NVFP4,
    BSM_FORMAT_E4M3, BSM_FORMAT_E5M2, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_FORMAT_FP32,
    BSM_FORMAT_E3M2, BSM_FORMAT_E2M3, BSM_FORMAT_E2M1,
    BSM_FORMAT_COUNT
} bsm_format;
typedef struct bsm_element_info {
    const char *name;
    int bits;
    int exponent_bits, mantissa_bits;
    int bias;
    uint32_t max_code;
    bool has_infinity;
    uint32_t nan_code;
    int nan_codes;
    double max_value;
} bsm_element_info;
typedef struct bsm_format_info {
    const char *name;
    bsm_element element;
    bsm_scale scale;
    int block;
    double bits_per_element;
} bsm_format_info;
const bsm_element_info *bsm_element_get(int element);
const bsm_format_info *bsm_format_get(int format);
const char *bsm_scale_name(int scale);
bsm_format bsm_format_from_name(const char *name);
int bsm_element_from_name(const char *name);
typedef enum bsm_rounding {
    BSM_ROUND_NEAREST_EVEN,
    BSM_ROUND_STOCHASTIC
} bsm_rounding;
float bsm_element_decode(bsm_element element, uint32_t code);
uint32_t bsm_element_encode(bsm_element element, double value, bsm_rounding rounding, bool saturate,
                                    uint32_t random);
float bsm_scale_decode(bsm_scale scale, uint8_t code);
uint32_t bsm_random_bits(uint64_t seed, uint64_t index);

/* scale_layout.h */
typedef enum bsm_layout {
    BSM_LAYOUT_LINEAR,
    BSM_LAYOUT_128X4,
    BSM_LAYOUT_8X4,
    BSM_LAYOUT_TILES,
    BSM_LAYOUT_CDNA4_16 = 5,
    BSM_LAYOUT_CDNA4_32,
    BSM_LAYOUT_AITER,
    BSM_LAYOUT_DEEPGEMM,
    BSM_LAYOUT_GGUF_MXFP4,
    BSM_LAYOUT_GGUF_NVFP4,
    BSM_LAYOUT_COUNT
} bsm_layout;
#define BSM_PITCH_PADDED_16 -16
typedef struct bsm_scale_layout {
    bsm_layout kind;
    int64_t pitch;
    int64_t tile_rows, tile_columns;
} bsm_scale_layout;
const char *bsm_layout_name(int layout);
const char *bsm_layout_about(int layout);
const char *bsm_layout_formula(int layout);
bsm_status bsm_scale_layout_parse(const char *text, bsm_scale_layout *layout);
bsm_status bsm_scale_padded(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *padded_rows,
                                    int64_t *padded_columns);
bsm_status bsm_scale_bytes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *bytes);
bsm_status bsm_scale_offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row,
                                    int64_t column, int64_t *offset);
typedef struct bsm_scales {
    void *data;
    int64_t rows, columns;
    bsm_scale_layout layout;
} bsm_scales;
bsm_status bsm_scales_convert(const bsm_scales *from, const bsm_scales *to);
bsm_status bsm_scales_convert_on(bsm_context *context, const bsm_scales *from, const bsm_scales *to);

/* scale_copy.h */
typedef enum bsm_scale_copy {
    BSM_SCALE_COPY_TCGEN05_CP,
    BSM_SCALE_COPY_TMA,
    BSM_SCALE_COPY_LDMATRIX,
    BSM_SCALE_COPY_MFMA_16,
    BSM_SCALE_COPY_MFMA_32,
    BSM_SCALE_COPY_COUNT
} bsm_scale_copy;
const char *bsm_scale_copy_name(int copy);
int bsm_scale_copy_from_name(const char *name);
#define BSM_TENSOR_RANK 5
typedef struct bsm_scale_fit {
    size_t struct_size;
    bool fits;
    int64_t rows, columns;
    int64_t stride;
    int lane;
    int byte;
    int rank;
    int64_t dimension[BSM_TENSOR_RANK], tensor_stride[BSM_TENSOR_RANK];
    int64_t box[BSM_TENSOR_RANK];
    char text[512];
} bsm_scale_fit;
bsm_status bsm_scale_layout_fits(const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                                         bsm_scale_copy copy, bsm_scale_fit *fit);
bsm_status bsm_scale_layout_modes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, char *text,
                                          size_t bytes, size_t *length);

/* matrix.h */
typedef enum bsm_packing {
    BSM_PACKING_DEFAULT,
    BSM_PACKING_LOW_FIRST,
    BSM_PACKING_HIGH_FIRST,
    BSM_PACKING_BIT_STREAM,
    BSM_PACKING_BYTES,
    BSM_PACKING_GGUF,
    BSM_PACKING_COUNT
} bsm_packing;
typedef enum bsm_tensor_scale_use {
    BSM_TENSOR_SCALE_MULTIPLIES,
    BSM_TENSOR_SCALE_DIVIDES
} bsm_tensor_scale_use;
typedef enum bsm_major {
    BSM_MAJOR_K,
    BSM_MAJOR_MN,
    BSM_MAJOR_COUNT
} bsm_major;
typedef struct bsm_matrix {
    size_t struct_size;
    bsm_format format;
    bsm_packing packing;
    int64_t rows, columns;
    void *data;
    int64_t pitch;
    void *scales;
    bsm_scale_layout scale_layout;
    float *tensor_scale;
    bsm_tensor_scale_use tensor_scale_use;
    bsm_major major;
    int64_t batch, batch_pitch, scale_batch_pitch;
} bsm_matrix;
typedef enum bsm_sparsity {
    BSM_SPARSITY_NONE,
    BSM_SPARSITY_2_4,
    BSM_SPARSITY_4_8_PAIRS,
    BSM_SPARSITY_COUNT
} bsm_sparsity;
typedef struct bsm_sparse_matrix {
    bsm_matrix matrix;
    bsm_sparsity sparsity;
    void *metadata;
    int64_t metadata_pitch, metadata_batch_pitch;
} bsm_sparse_matrix;
bsm_status bsm_matrix_check(const bsm_matrix *matrix);
bsm_status bsm_matrix_data_bytes(const bsm_matrix *matrix, int64_t *bytes);
bsm_status bsm_matrix_scale_bytes(const bsm_matrix *matrix, int64_t *bytes);
bsm_status bsm_matrix_metadata_bytes(const bsm_matrix *matrix, int64_t *bytes);
int64_t bsm_matrix_scale_columns(const bsm_matrix *matrix);
bsm_status bsm_matrix_get_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column,
                                       uint32_t *code);
bsm_status bsm_matrix_set_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column,
                                       uint32_t code);
bsm_status bsm_matrix_get_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                        uint8_t *code);
bsm_status bsm_matrix_set_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                        uint8_t code);
const char *bsm_packing_name(int packing);
int bsm_packing_from_name(const char *name);
const char *bsm_major_name(int major);
int bsm_major_from_name(const char *name);
const char *bsm_sparsity_name(int sparsity);
int bsm_sparsity_from_name(const char *name);
typedef enum bsm_real { BSM_REAL_FP32, BSM_REAL_FP16, BSM_REAL_BF16, BSM_REAL_FP64, BSM_REAL_COUNT } bsm_real;
const char *bsm_real_name(int real);
size_t bsm_real_bytes(int real);
typedef struct bsm_real_matrix {
    size_t struct_size;
    bsm_real type;
    int64_t rows, columns;
    void *data;
    int64_t row_stride, column_stride;
    int64_t batch, batch_stride;
} bsm_real_matrix;

/* quantize.h */
typedef enum bsm_recipe {
    BSM_RECIPE_DEFAULT,
    BSM_RECIPE_FLOOR,
    BSM_RECIPE_RCEIL,
    BSM_RECIPE_CEIL,
    BSM_RECIPE_EVEN,
    BSM_RECIPE_NEAREST,
    BSM_RECIPE_FOUR_OVER_SIX,
    BSM_RECIPE_MSE,
    BSM_RECIPE_COUNT
} bsm_recipe;
typedef enum bsm_nonfinite {
    BSM_NONFINITE_PROPAGATE,
    BSM_NONFINITE_SATURATE
} bsm_nonfinite;
typedef enum bsm_preset {
    BSM_PRESET_NONE,
    BSM_PRESET_OCP,
    BSM_PRESET_TORCHAO,
    BSM_PRESET_TRANSFORMER_ENGINE,
    BSM_PRESET_MODELOPT,
    BSM_PRESET_COMPRESSED_TENSORS,
    BSM_PRESET_GGML,
    BSM_PRESET_FLASHINFER,
    BSM_PRESET_COUNT
} bsm_preset;
typedef enum bsm_tensor_scale_source {
    BSM_TENSOR_SCALE_GIVEN,
    BSM_TENSOR_SCALE_COMPUTED
} bsm_tensor_scale_source;
typedef struct bsm_quantize_options {
    size_t struct_size;
    bsm_recipe recipe;
    bsm_rounding rounding;
    uint64_t seed;
    bsm_nonfinite nonfinite;
    bsm_tensor_scale_source tensor_scale;
    bool no_saturate;
    int64_t block_rows;
    bsm_preset preset;
    float clamp_low, clamp_high;
    uint8_t smallest_scale;
} bsm_quantize_options;
typedef struct bsm_quantize_stats {
    size_t struct_size;
    int64_t elements, blocks;
    int64_t saturated_elements;
    int64_t flushed_blocks;
    int64_t nan_blocks;
    double signal, noise;
    double snr_db;
    double amax;
    int64_t scale_histogram[256];
} bsm_quantize_stats;
bsm_status bsm_quantize(bsm_context *context, const bsm_real_matrix *source,
                                const bsm_quantize_options *options, const bsm_matrix *destination,
                                bsm_quantize_stats *stats);
bsm_status bsm_quantize_both(bsm_context *context, const bsm_real_matrix *source,
                                     const bsm_quantize_options *options, const bsm_matrix *rows,
                                     const bsm_matrix *columns);
bsm_status bsm_dequantize(bsm_context *context, const bsm_matrix *source, const bsm_real_matrix *destination);
bsm_status bsm_hadamard(bsm_context *context, const bsm_real_matrix *source, int size, const int8_t *signs,
                                bool inverse, const bsm_real_matrix *destination);
typedef struct bsm_merge_stats {
    size_t struct_size;
    int64_t scales, rounded_scales;
    int64_t flushed_scales;
    double worst_error;
} bsm_merge_stats;
bsm_status bsm_tensor_scales_merge(const bsm_matrix *const *parts, int64_t count, uint8_t *scales,
                                           float *tensor_scale, bsm_merge_stats *stats);
const char *bsm_recipe_name(int recipe);
int bsm_recipe_from_name(const char *name);
const char *bsm_preset_name(int preset);
int bsm_preset_from_name(const char *name);
const char *bsm_preset_checked(int preset);

/* sparsity.h */
typedef struct bsm_sparsify_stats {
    size_t struct_size;
    int64_t groups, cut_groups;
    int64_t cut_elements;
    double signal, kept;
} bsm_sparsify_stats;
bsm_status bsm_sparsify(bsm_context *context, const bsm_real_matrix *source,
                                const bsm_quantize_options *options, const bsm_matrix *destination,
                                bsm_sparsify_stats *stats, bsm_quantize_stats *quantized);
bsm_status bsm_matrix_check_metadata(const bsm_matrix *matrix);

/* matmul.h */
typedef enum bsm_activation {
    BSM_ACT_NONE,
    BSM_ACT_RELU,
    BSM_ACT_GELU,
    BSM_ACT_GELU_TANH,
    BSM_ACT_SILU,
    BSM_ACT_SWIGLU_CLAMPED,
    BSM_ACT_COUNT
} bsm_activation;
typedef enum bsm_gate {
    BSM_GATE_NONE,
    BSM_GATE_INTERLEAVED,
    BSM_GATE_SPLIT,
    BSM_GATE_COUNT
} bsm_gate;
typedef enum bsm_compute {
    BSM_COMPUTE_EXACT,
    BSM_COMPUTE_FAST,
    BSM_COMPUTE_TF32,
    BSM_COMPUTE_COUNT
} bsm_compute;
typedef enum bsm_order {
    BSM_ORDER_K,
    BSM_ORDER_ANY,
    BSM_ORDER_PORTABLE,
    BSM_ORDER_SPLIT_K,
    BSM_ORDER_COUNT
} bsm_order;
typedef enum bsm_per {
    BSM_PER_TENSOR,
    BSM_PER_ROW,
    BSM_PER_COLUMN,
    BSM_PER_BATCH,
    BSM_PER_COUNT
} bsm_per;
typedef struct bsm_matmul {
    size_t struct_size;
    const bsm_matrix *a, *b;
    const float *alpha;
    bsm_per alpha_per;
    const float *beta;
    const bsm_matrix *c;
    const void *bias;
    bsm_real bias_type;
    bsm_per bias_per;
    int64_t bias_batch_pitch;
    bsm_activation activation;
    bsm_gate gate;
    const bsm_matrix *d;
    bsm_recipe d_recipe;
    bsm_nonfinite d_nonfinite;
    bool d_no_saturate;
    float *amax;
    int64_t groups;
    const int64_t *group_rows;
    void *stream;
    const void *b_panels;
    bsm_compute compute;
    bsm_order order;
    const int64_t *group_columns;
} bsm_matmul;
bsm_status bsm_supported(bsm_context *context, const bsm_matmul *product);
bsm_status bsm_multiply(bsm_context *context, const bsm_matmul *product);
typedef struct bsm_plan bsm_plan;
bsm_status bsm_plan_create(bsm_context *context, const bsm_matmul *product, bsm_plan **plan);
void bsm_plan_destroy(bsm_plan *plan);
size_t bsm_plan_workspace_bytes(const bsm_plan *plan);
bsm_status bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace,
                                size_t workspace_bytes);
size_t bsm_plan_b_panels_bytes(const bsm_plan *plan);
bsm_status bsm_plan_pack_b(const bsm_plan *plan, const bsm_matmul *product, void *panels, size_t bytes);
bsm_status bsm_plan_unpack_b(const bsm_plan *plan, const bsm_matmul *product);
size_t bsm_plan_describe(const bsm_plan *plan, char *text, size_t bytes);
const char *bsm_kernel_name(int index);
bool bsm_kernel_serves(const bsm_context *context, int index, bsm_format a, bsm_format b);
bsm_status bsm_context_force_kernel(bsm_context *context, int index);
bsm_status bsm_matmul_exact(bsm_context *context, const bsm_matrix *a, const bsm_matrix *b,
                                    const bsm_real_matrix *sum, const bsm_real_matrix *magnitude);
const char *bsm_activation_name(int activation);
int bsm_activation_from_name(const char *name);
const char *bsm_compute_name(int compute);
int bsm_compute_from_name(const char *name);
const char *bsm_order_name(int order);
int bsm_order_from_name(const char *name);

/* profile.h */
#define BSM_PROFILE_KERNELS 64
typedef struct bsm_kernel_time {
    char kernel[96];
    bool multiplies;
    int threads;
    int64_t ctas;
    double seconds;
} bsm_kernel_time;
bsm_status bsm_profile_begin(bsm_context *context);
bsm_status bsm_profile_end(bsm_context *context, bsm_kernel_time *kernels, int most, int *count);

/* npy.h */
enum { BSM_NPY_MAX_RANK = 8 };
typedef enum bsm_npy_type {
    BSM_NPY_FP16, BSM_NPY_FP32, BSM_NPY_FP64,
    BSM_NPY_INT8, BSM_NPY_UINT8,
    BSM_NPY_BYTES,
    BSM_NPY_WORDS,
    BSM_NPY_UINT16,
    BSM_NPY_TYPE_COUNT
} bsm_npy_type;
typedef struct bsm_npy {
    size_t struct_size;
    bsm_npy_type type;
    int rank;
    int64_t shape[BSM_NPY_MAX_RANK];
    bool fortran_order;
    void *data;
    size_t bytes;
    char descr[16];
} bsm_npy;
bsm_status bsm_npy_read(bsm_context *context, const char *path, bsm_npy *array);
void bsm_npy_release(bsm_context *context, bsm_npy *array);
bsm_status bsm_npy_parse(bsm_context *context, const void *file, size_t file_bytes, bsm_npy *array);
bsm_status bsm_npy_write(const char *path, bsm_npy_type type, int rank, const int64_t *shape, const void *data);
enum { BSM_NPY_MAX_HEADER = 384 };
bsm_status bsm_npy_header(bsm_npy_type type, int rank, const int64_t *shape, void *header, size_t room,
                                  size_t *bytes);
const char *bsm_npy_type_name(int type);
size_t bsm_npy_type_bytes(int type);

/* checkpoint.h */
enum { BSM_TENSOR_MAX_RANK = 8 };
typedef enum bsm_tensor_type {
    BSM_TENSOR_F64,
    BSM_TENSOR_F32,
    BSM_TENSOR_F16,
    BSM_TENSOR_BF16,
    BSM_TENSOR_F8_E4M3,
    BSM_TENSOR_F8_E5M2,
    BSM_TENSOR_F8_E8M0,
    BSM_TENSOR_F8_E4M3FNUZ,
    BSM_TENSOR_F8_E5M2FNUZ,
    BSM_TENSOR_F6_E2M3,
    BSM_TENSOR_F6_E3M2,
    BSM_TENSOR_F4,
    BSM_TENSOR_I64,
    BSM_TENSOR_I32,
    BSM_TENSOR_I16,
    BSM_TENSOR_I8,
    BSM_TENSOR_U64,
    BSM_TENSOR_U32,
    BSM_TENSOR_U16,
    BSM_TENSOR_U8,
    BSM_TENSOR_BOOL,
    BSM_TENSOR_C64,
    BSM_TENSOR_MXFP4,
    BSM_TENSOR_NVFP4,
    BSM_TENSOR_OTHER,
    BSM_TENSOR_TYPE_COUNT
} bsm_tensor_type;
const char *bsm_tensor_type_name(int type);
int bsm_tensor_type_bits(int type);
const char *bsm_gguf_type_name(int gguf_type);
typedef struct bsm_tensor {
    size_t struct_size;
    const char *name;
    bsm_tensor_type type;
    int gguf_type;
    int rank;
    int64_t shape[BSM_TENSOR_MAX_RANK];
    const void *data;
    int64_t bytes;
    int file;
} bsm_tensor;
typedef enum bsm_checkpoint_kind { BSM_CHECKPOINT_SAFETENSORS, BSM_CHECKPOINT_GGUF,
                                   BSM_CHECKPOINT_KIND_COUNT } bsm_checkpoint_kind;
typedef struct bsm_checkpoint bsm_checkpoint;
bsm_status bsm_checkpoint_open(bsm_context *context, const char *path, bsm_checkpoint **checkpoint);
bsm_status bsm_checkpoint_parse(bsm_context *context, const void *file, size_t file_bytes,
                                        bsm_checkpoint **checkpoint);
void bsm_checkpoint_close(bsm_checkpoint *checkpoint);
bsm_checkpoint_kind bsm_checkpoint_get_kind(const bsm_checkpoint *checkpoint);
const char *bsm_checkpoint_kind_name(int kind);
int bsm_checkpoint_file_count(const bsm_checkpoint *checkpoint);
const char *bsm_checkpoint_file_path(const bsm_checkpoint *checkpoint, int file);
int64_t bsm_checkpoint_tensor_count(const bsm_checkpoint *checkpoint);
bsm_status bsm_checkpoint_tensor(const bsm_checkpoint *checkpoint, int64_t index, bsm_tensor *tensor);
int64_t bsm_checkpoint_find(const bsm_checkpoint *checkpoint, const char *name);
int64_t bsm_checkpoint_metadata_count(const bsm_checkpoint *checkpoint);
const char *bsm_checkpoint_metadata_key(const bsm_checkpoint *checkpoint, int64_t index);
const char *bsm_checkpoint_metadata(const bsm_checkpoint *checkpoint, const char *key);
typedef struct bsm_metadata { const char *key, *value; } bsm_metadata;
bsm_status bsm_checkpoint_header(bsm_context *context, bsm_checkpoint_kind kind, const bsm_tensor *tensors,
                                         int64_t count, const bsm_metadata *metadata, int64_t metadata_count,
                                         void **header, size_t *header_bytes);
void bsm_header_release(bsm_context *context, void *header, size_t header_bytes);
bsm_status bsm_checkpoint_write(bsm_context *context, const char *path, bsm_checkpoint_kind kind,
                                        const bsm_tensor *tensors, int64_t count, const bsm_metadata *metadata,
                                        int64_t metadata_count);

/* weight.h */
typedef enum bsm_convention {
    BSM_CONVENTION_NONE,
    BSM_CONVENTION_PLAIN,
    BSM_CONVENTION_GPT_OSS,
    BSM_CONVENTION_MODELOPT,
    BSM_CONVENTION_COMPRESSED_TENSORS,
    BSM_CONVENTION_DEEPSEEK,
    BSM_CONVENTION_GGUF,
    BSM_CONVENTION_TORCHAO,
    BSM_CONVENTION_COUNT
} bsm_convention;
const char *bsm_convention_name(int convention);
int bsm_convention_from_name(const char *name);
typedef struct bsm_weight {
    size_t struct_size;
    const char *name;
    int64_t name_length;
    bsm_convention convention;
    bsm_matrix matrix;
    int64_t tile_rows, tile_columns;
    const float *tile_scales;
    int64_t tile_batch_pitch, tile_row_pitch;
    bool gate_up_interleaved;
    int64_t codes, scales, tensor_scale, input_scale;
} bsm_weight;
bsm_status bsm_checkpoint_weight(const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight);
bsm_status bsm_checkpoint_find_weight(const bsm_checkpoint *checkpoint, const char *name, bsm_weight *weight);
typedef enum bsm_weight_half { BSM_WEIGHT_GATE, BSM_WEIGHT_UP } bsm_weight_half;
bsm_status bsm_weight_part(const bsm_weight *weight, bsm_weight_half half, bsm_matrix *matrix);
bsm_status bsm_weight_tile(const bsm_weight *weight, int64_t batch, int64_t tile_row, int64_t tile_column,
                                   bsm_matrix *matrix);

/* writer.h */
typedef struct bsm_writer bsm_writer;
typedef struct bsm_writer_files {
    bool (*reads)(void *user, const char *path);
    bool (*make_folder)(void *user, const char *path);
    void *(*create)(void *user, const char *path);
    bool (*write)(void *user, void *file, int64_t at, const void *data, size_t bytes);
    void *user;
} bsm_writer_files;
typedef struct bsm_writer_options {
    size_t struct_size;
    const char *model;
    const bsm_metadata *metadata;
    int64_t metadata_count;
    const bsm_writer_files *files;
} bsm_writer_options;
bsm_status bsm_writer_create(bsm_context *context, const char *path, const bsm_writer_options *options,
                                     bsm_writer **writer);
void bsm_writer_destroy(bsm_writer *writer);
bsm_status bsm_writer_check_format(bsm_convention convention, bsm_format format);
typedef struct bsm_writer_weight {
    size_t struct_size;
    const char *name;
    bsm_convention convention;
    bsm_format format;
    int64_t batch, rows, columns;
    bool tensor_scale, input_scale;
} bsm_writer_weight;
bsm_status bsm_writer_add_weight(bsm_writer *writer, const bsm_writer_weight *weight, int64_t *number,
                                         bsm_matrix *matrix);
bsm_status bsm_writer_add_tensor(bsm_writer *writer, const bsm_tensor *tensor, int64_t *number);
const char *bsm_writer_path(const bsm_writer *writer);
int64_t bsm_writer_bytes(const bsm_writer *writer);
bsm_status bsm_writer_begin(bsm_writer *writer);
bsm_status bsm_writer_put(bsm_writer *writer, int64_t number, const void *data, int64_t bytes);
bsm_status bsm_writer_put_weight(bsm_writer *writer, int64_t number, const bsm_matrix *matrix,
                                         const float *input_scale);
bsm_status bsm_writer_finish(bsm_writer *writer);
const char *bsm_writer_copied(const bsm_writer *writer, int64_t index);
const char *bsm_writer_not_copied(const bsm_writer *writer, int64_t index);
const char *bsm_writer_note(const bsm_writer *writer, int64_t index);
"""
