/* Every combination of an operand's form, format, packing, scale layout, class of K and pitch that the host can
 * choose on this GPU runs at least once, and D has the CPU's bytes.  No list says which combinations there are:
 * descriptions are gone through on every family of kernels, with nothing launched; what the host chose is a
 * combination, and one that has not run yet runs at once, against the CPU. Codes are whole numbers under scales from
 * 1/2 to 4, which differ from block to block, so that sums are exact in any order.
 *
 * Prints how many combinations each form of each operand has, and in how many products they ran; fails where one
 * did not run. BLOCKSCALE_COMBINATIONS_OF_OTHERS=FILE: and how many of them no other test program ran
 * (combinations.h). */
#include "cuda/harness/combinations.h"
#include "cuda/harness/gpu.h"

#include "cuda/tables/instances.h"

#include <stdlib.h>

enum { M = 3, N = 5, MOST_DESCRIPTIONS = 400, MOST_FAMILIES = 40, ARENA_PART = 1 << 16, MOST_K = 128 };
enum part { PART_A, PART_A_SCALES, PART_B, PART_B_SCALES, PART_D, PART_PANELS, PARTS };

/* An operand of `columns` columns, as A (M rows) and as B (N rows), with its numbers. */
struct description {
    struct operand as[2];
};

struct family {
    int kernel;
    bool panels, fast;
};

struct run_state {
    struct test *t;
    struct contexts c;
    char *arena; /* PARTS of device memory */
    struct family families[MOST_FAMILIES];
    int family_count;
    struct description descriptions[MOST_DESCRIPTIONS];
    int count, products;
    bool *seen; /* combinations that the host chose */
};

static void *part(const struct run_state *s, enum part which) { return s->arena + (size_t)which * ARENA_PART; }

/* Descriptions ---------------------------------------------------------------------------------------------- */

static void *poisoned(struct test *t, int64_t bytes)
{
    void *memory = bytes <= ARENA_PART ? malloc((size_t)bytes + 1) : NULL;
    if (memory == NULL) FAIL(t, "no memory, or %lld bytes, which are more than a part of the arena", (long long)bytes);
    else memset(memory, 0xff, (size_t)bytes);
    return memory;
}

/* Refolding takes e5m2's largest number for e4m3's largest, and what is 2^-16 of it would be rounded. */
static void enlarge(struct operand *o)
{
    for (int64_t i = 0; i < o->m.rows * o->m.columns; i++) {
        uint32_t code = 0;
        (void)bsm_matrix_get_code(&o->m, 0, i / o->m.columns, i % o->m.columns, &code);
        const double value = (double)bsm_element_decode(BSM_E5M2, code) * 64;
        bsm_matrix_set_code(&o->m, 0, i / o->m.columns, i % o->m.columns,
                            bsm_element_encode(BSM_E5M2, value, BSM_ROUND_NEAREST_EVEN, true, 0));
    }
}

/* Nothing where the rules allow no such matrix.  Padding is NaN. */
static void describe(struct run_state *s, const bsm_matrix *like)
{
    struct description *d = &s->descriptions[s->count];
    for (int role = 0; role < 2; role++) {
        struct operand *o = &d->as[role];
        int64_t data_bytes = 0, scale_bytes = 0;
        *o = (struct operand){ .m = *like };
        o->m.rows = role == 0 ? M : N;
        if (bsm_matrix_data_bytes(&o->m, &data_bytes) != BSM_OK ||
            bsm_matrix_scale_bytes(&o->m, &scale_bytes) != BSM_OK)
            return;
        o->data_bytes = (size_t)data_bytes, o->scale_bytes = (size_t)scale_bytes;
        o->m.data = poisoned(s->t, data_bytes);
        if (scale_bytes > 0) o->m.scales = poisoned(s->t, scale_bytes);
        if (o->m.packing == BSM_PACKING_GGUF) o->m.scales = o->m.data;
        fill_whole(s->t, o);
        if (o->m.format == BSM_MXFP8_E5M2) enlarge(o);
    }
    s->count++;
}

/* A format in its packings, its kinds of scale layouts (of those that are not the usual ones each in turn), tight and
 * apart. */
static void describe_format(struct run_state *s, bsm_format format, int64_t columns)
{
    static const bsm_scale_layout usual[] = { { .kind = BSM_LAYOUT_LINEAR },
                                              { .kind = BSM_LAYOUT_128X4 },
                                              { .kind = BSM_LAYOUT_LINEAR, .pitch = 24 } };
    static const bsm_scale_layout others[] = {
        { .kind = BSM_LAYOUT_8X4 },      { .kind = BSM_LAYOUT_TILES, .tile_rows = 16, .tile_columns = 3 },
        { .kind = BSM_LAYOUT_CDNA4_16 }, { .kind = BSM_LAYOUT_CDNA4_32 },
        { .kind = BSM_LAYOUT_AITER },    { .kind = BSM_LAYOUT_DEEPGEMM }
    };
    static const bsm_packing packings[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BIT_STREAM,
                                            BSM_PACKING_BYTES };
    static int next_other;
    const bsm_format_info *f = bsm_format_get((int)format);
    const int bits = bsm_element_get((int)f->element)->bits;
    for (int p = 0; p < 4; p++) {
        if (bits == 4 ? packings[p] == BSM_PACKING_BIT_STREAM : bits == 6 ? p < 2 : p > 0) continue;
        for (int layout = 0; layout < (f->block == 0 ? 1 : 4); layout++)
            for (int apart = 0; apart < 2; apart++)
                describe(s, &(bsm_matrix){ .struct_size = sizeof(bsm_matrix),
                                           .format = format,
                                           .columns = columns,
                                           .packing = bits > 6 ? BSM_PACKING_DEFAULT : packings[p],
                                           .scale_layout = layout < 3 ? usual[layout] : others[next_other++ % 6],
                                           .pitch = apart ? (columns + 63) / 64 * 64 + 64 : 0 });
    }
    if (format == BSM_MXFP4 || format == BSM_NVFP4)
        describe(s, &(bsm_matrix){ .struct_size = sizeof(bsm_matrix),
                                   .format = format,
                                   .columns = columns,
                                   .packing = BSM_PACKING_GGUF,
                                   .scale_layout.kind =
                                       format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4 });
}

static void forget_descriptions(struct run_state *s)
{
    for (int i = 0; i < 2 * s->count; i++) {
        struct operand *o = &s->descriptions[i / 2].as[i % 2];
        if (o->scale_bytes > 0) free(o->m.scales);
        free(o->m.data);
    }
    s->count = 0;
}

/* Families of kernels ---------------------------------------------------------------------------------------- */

static bool of_one_family(const struct bsmi_gemm_instance *x, const struct bsmi_gemm_instance *y)
{
    return x->operands == y->operands && bsmi_gemm_has_tensor_memory(x) == bsmi_gemm_has_tensor_memory(y)
           && bsmi_gemm_decodes_to_tensor_memory(x) == bsmi_gemm_decodes_to_tensor_memory(y) && x->codes == y->codes
           && bsmi_gemm_reads_prepacked(x) == bsmi_gemm_reads_prepacked(y)
           && bsmi_gemm_reads_any_scales(x) == bsmi_gemm_reads_any_scales(y);
}

static int numbers_of(const struct bsmi_gemm_instance *g)
{
    return g->tile_rows * g->tile_columns * g->cluster_rows * g->cluster_columns;
}

static bool is_smaller(int i, int than)
{
    const int more = numbers_of(&bsmi_gemm_instances[i]) - numbers_of(&bsmi_gemm_instances[than]);
    return more < 0 || (more == 0 && i < than);
}

/* The kernel that the library chooses, the one without tensor cores, and of each family of instances the smallest. */
static void find_families(struct run_state *s)
{
    s->families[s->family_count++] = (struct family){ .kernel = -1 };
    s->families[s->family_count++] = (struct family){ .kernel = kernel_with("cuda_simt", 0) };
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        bool smallest = true;
        for (int j = 0; j < bsmi_gemm_instance_count; j++)
            smallest = smallest && !(of_one_family(g, &bsmi_gemm_instances[j]) && is_smaller(j, i));
        if (!smallest || s->family_count == MOST_FAMILIES) continue;
        const int kernel = kernel_with("cuda_simt", 0) + 1 + i;
        s->families[s->family_count++] =
            (struct family){ kernel, bsmi_gemm_reads_prepacked(g), g->operands == BSMI_OPERANDS_FP8 };
    }
}

/* Products ---------------------------------------------------------------------------------------------------- */

/* With everything in the arena.  False: the kernel does not take this product. */
static bool multiply(const struct run_state *s, const struct family *f, const bsm_matmul *call)
{
    bsm_matmul given = *call;
    bsm_status status = bsm_context_force_kernel(s->c.gpu, f->kernel);
    if (f->panels && status == BSM_OK) {
        bsm_plan *plan = NULL;
        status = bsm_plan_create(s->c.gpu, call, &plan);
        given.b_panels = part(s, PART_PANELS);
        if (status == BSM_OK) status = bsm_plan_pack_b(plan, call, part(s, PART_PANELS), ARENA_PART);
        bsm_plan_destroy(plan);
    }
    if (status == BSM_OK) status = bsm_multiply(s->c.gpu, &given);
    if (status != BSM_OK && status != BSM_EUNSUPPORTED) FAIL(s->t, "%s", bsm_last_error());
    return status == BSM_OK;
}

static bsm_matrix in_arena(const struct run_state *s, const struct operand *o, int role)
{
    bsm_matrix m = o->m;
    m.data = part(s, role == 0 ? PART_A : PART_B);
    if (m.scales != NULL)
        m.scales = o->m.scales == o->m.data ? m.data : part(s, role == 0 ? PART_A_SCALES : PART_B_SCALES);
    return m;
}

static void load(const struct run_state *s, const struct operand *o, const bsm_matrix *m)
{
    if (bsm_device_write(s->c.gpu, m->data, o->m.data, o->data_bytes) != BSM_OK ||
        (o->scale_bytes > 0 && bsm_device_write(s->c.gpu, m->scales, o->m.scales, o->scale_bytes) != BSM_OK))
        FAIL(s->t, "%s", bsm_last_error());
}

/* In earnest, against the CPU. */
static void compare(struct run_state *s, const struct family *f, const struct operand *a, const struct operand *b,
                    const bsm_matmul *device)
{
    float want[M * N], got[M * N];
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .data = want };
    const bsm_matmul host = { .struct_size = sizeof host, .a = &a->m, .b = &b->m, .d = &d };
    memset(got, 0xff, sizeof got);
    load(s, a, device->a), load(s, b, device->b);
    CHECK(s->t, bsm_device_write(s->c.gpu, device->d->data, got, sizeof got) == BSM_OK);
    CHECK(s->t, bsm_multiply(s->c.cpu, &host) == BSM_OK && multiply(s, f, device));
    CHECK(s->t, bsm_device_read(s->c.gpu, got, device->d->data, sizeof got) == BSM_OK);
    s->products++;
    for (int i = 0; i < M * N; i++) {
        if (memcmp(&want[i], &got[i], sizeof(float)) == 0) continue;
        printf("K=%d, ", (int)a->m.columns);
        for (int role = 0; role < 2; role++) {
            const struct combination c = combination_of(combinations_last[role]);
            combination_print(stdout, &c), printf(role == 0 ? "; " : "\n");
        }
        FAIL(s->t, "%s: D[%d, %d] is %g and must be %g",
             f->kernel < 0 ? "the plan's kernel" : bsm_kernel_name(f->kernel), i / N, i % N, (double)got[i],
             (double)want[i]);
        return;
    }
}

/* What the host chooses for this pair; runs it if that is new. */
static void try(struct run_state *s, const struct family *f, const struct operand *a, const struct operand *b)
{
    const bsm_matrix x = in_arena(s, a, 0), y = in_arena(s, b, 1),
                     d = { .struct_size = sizeof d,
                           .format = BSM_FORMAT_FP32,
                           .rows = M,
                           .columns = N,
                           .data = part(s, PART_D) };
    const bsm_matmul call = { .struct_size = sizeof call,
                              .a = &x,
                              .b = &y,
                              .d = &d,
                              .compute = f->fast ? BSM_COMPUTE_FAST : BSM_COMPUTE_EXACT };
    combinations_dry = true;
    const bool taken = multiply(s, f, &call);
    combinations_dry = false;
    if (!taken) return;
    s->seen[combinations_last[0]] = s->seen[combinations_last[1]] = true;
    if (combinations_ran[combinations_last[0]] == 0 || combinations_ran[combinations_last[1]] == 0)
        compare(s, f, a, b, &call);
}

/* With every first description of a format for a partner, whether linear or 128x4. */
static bool is_partner(const struct operand *o)
{
    const bool usual = o->m.scale_layout.kind == BSM_LAYOUT_LINEAR || o->m.scale_layout.kind == BSM_LAYOUT_128X4;
    const bool packed = o->m.packing == BSM_PACKING_DEFAULT || o->m.packing == BSM_PACKING_LOW_FIRST ||
                        o->m.packing == BSM_PACKING_BIT_STREAM;
    return usual && packed && o->m.pitch == 0 && o->m.scale_layout.pitch == 0;
}

static void go_through(struct run_state *s, const struct family *f)
{
    for (int i = 0; i < s->count; i++) try(s, f, &s->descriptions[i].as[0], &s->descriptions[i].as[1]);
    for (int i = 0; i < s->count; i++)
        for (int j = 0; j < s->count; j++) {
            if (!is_partner(&s->descriptions[j].as[0]) || s->t->failures > 20) continue;
            try(s, f, &s->descriptions[i].as[0], &s->descriptions[j].as[1]);
            try(s, f, &s->descriptions[j].as[0], &s->descriptions[i].as[1]);
        }
}

/* Of the combinations that the host chose those that are not in the file, which programs wrote for
 * BLOCKSCALE_COMBINATIONS. */
static void report_others(const struct run_state *s, const char *path)
{
    bool *ran = calloc(COMBINATIONS, sizeof *ran);
    FILE *file = fopen(path, "r");
    int number, chosen = 0, missing = 0;
    unsigned times;
    while (ran != NULL && file != NULL && fscanf(file, "%d %u", &number, &times) == 2)
        if (number >= 0 && number < COMBINATIONS) ran[number] = true;
    for (int i = 0; ran != NULL && i < COMBINATIONS; i++) chosen += s->seen[i], missing += s->seen[i] && !ran[i];
    printf("%d of these %d combinations ran in no program that wrote to %s\n", missing, chosen, path);
    if (file != NULL) fclose(file);
    free(ran);
}

/* The table: of each operand's forms, combinations, and products with them. */
static void report(struct run_state *s)
{
    const char *others = getenv("BLOCKSCALE_COMBINATIONS_OF_OTHERS");
    int total = 0, never = 0;
    for (int role = 0; role < 2; role++)
        for (int form = 0; form < FORM_COUNT; form++) {
            int64_t chosen = 0, products = 0;
            for (int i = 0; i < COMBINATIONS; i++) {
                const struct combination c = combination_of(i);
                if (!s->seen[i] || c.role != role || c.form != form) continue;
                chosen++, products += combinations_ran[i], never += combinations_ran[i] == 0;
                if (combinations_ran[i] == 0) combination_print(stdout, &c), printf(": never ran\n");
            }
            total += (int)chosen;
            if (chosen > 0)
                printf("%c, %-45s %4lld combinations, %4lld products\n", role == 0 ? 'A' : 'B',
                       combination_form_name(form), (long long)chosen, (long long)products);
        }
    printf("%d combinations that the host can choose, %d products, %d combinations never ran\n", total, s->products,
           never);
    if (others != NULL) report_others(s, others);
    CHECK(s->t, total > 500 && never == 0);
}

static void every_combination_runs(struct test *t)
{
    static const int64_t ks[] = { 64, MOST_K, 96, 48, 50, 33 };
    static struct run_state s;
    s = (struct run_state){ .t = t };
    if (!contexts_open(t, &s.c)) return;
    s.seen = calloc(COMBINATIONS, sizeof *s.seen);
    CHECK_OR_RETURN(t, s.seen != NULL &&
                           bsm_device_allocate(s.c.gpu, (size_t)PARTS * ARENA_PART, (void **)&s.arena) == BSM_OK);
    find_families(&s);
    for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++) {
        for (int format = 1; format < BSM_FORMAT_FP32; format++) describe_format(&s, (bsm_format)format, ks[k]);
        for (int f = 0; f < s.family_count; f++) go_through(&s, &s.families[f]);
        forget_descriptions(&s);
    }
    report(&s);
    CHECK(t, bsm_device_release(s.c.gpu, s.arena) == BSM_OK);
    free(s.seen);
    contexts_close(&s.c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_combination_runs) };
    return TEST_MAIN(argc, argv, cases);
}
