/* Counting.  Each cluster counts for itself; its numbers are added to the grid's when it ends. */
#include "profile.h"
#include "machine/memory/banks.h"
#include "machine/memory/access.h"

#include <stdlib.h>
#include <string.h>

struct profile *profile_open(FILE *file, bool json)
{
    struct profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL) return NULL;
    profile->file = file;
    profile->json = json;
    pthread_mutex_init(&profile->lock, NULL);
    return profile;
}

static void forget(struct profile *profile)
{
    free(profile->counts), free(profile->access);
    profile->counts = NULL;
    profile->access = NULL;
    profile->code_count = 0;
}

void profile_close(struct profile *profile)
{
    if (profile == NULL) return;
    forget(profile);
    pthread_mutex_destroy(&profile->lock);
    free(profile);
}

/* ---- what an instruction is ---- */

static bool begins(const char *pattern, const char *word)
{
    const size_t length = strlen(word);
    return strncmp(pattern, word, length) == 0 && strchr(".{(", pattern[length]) != NULL;
}

static enum profile_access access_of(const struct insn *in)
{
    static const struct {
        const char *word;
        enum profile_access access;
    } words[] = {
        { "ld", ACCESS_LOAD },
        { "ldu", ACCESS_LOAD },
        { "st", ACCESS_STORE },
        { "atom", ACCESS_ATOMIC },
        { "red", ACCESS_REDUCE },
        { "ldmatrix", ACCESS_LOAD_MATRIX },
        { "stmatrix", ACCESS_STORE_MATRIX },
        { "cp.async.ca", ACCESS_COPY },
        { "cp.async.cg", ACCESS_COPY },
    };
    const char *pattern = in->row->pattern;
    if (begins(pattern, "st.async") || begins(pattern, "red.async") || begins(pattern, "st.bulk")) return ACCESS_NONE;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(pattern, words[i].word)) return words[i].access;
    return strncmp(pattern, "cp.async(.ca|.cg)", 17) == 0 ? ACCESS_COPY : ACCESS_NONE;
}

bool profile_open_grid(struct profile *profile, const struct grid *grid)
{
    forget(profile);
    const uint32_t count = grid->module->code_count;
    profile->counts = calloc(count + 1, sizeof *profile->counts);
    profile->access = calloc(count + 1, sizeof *profile->access);
    if (profile->counts == NULL || profile->access == NULL) return false;
    profile->code_count = count;
    for (uint32_t i = 0; i < count; i++) profile->access[i] = (uint8_t)access_of(&grid->code[i]);
    return true;
}

void profile_close_grid(struct profile *profile, const struct grid *grid)
{
    struct profile_summary summary;
    if (profile->file == NULL || profile->counts == NULL) return;
    if (profile_summarise(&summary, profile, grid)) profile_print(profile, &summary, grid);
    else fprintf(profile->file, "no host memory for the profile\n");
    fflush(profile->file);
    profile_summary_free(&summary);
}

bool profile_open_cluster(struct cluster *c)
{
    c->counts = calloc(c->grid->module->code_count + 1, sizeof *c->counts);
    return c->counts != NULL;
}

void profile_close_cluster(struct profile *profile, struct cluster *c)
{
    if (c->counts == NULL) return;
    pthread_mutex_lock(&profile->lock);
    for (uint32_t i = 0; i < profile->code_count; i++) {
        const struct insn_counts *from = &c->counts[i];
        struct insn_counts *to = &profile->counts[i];
        to->warps += from->warps, to->threads += from->threads;
        for (int p = 0; p < PROFILE_PLACES; p++) to->bytes[p] += from->bytes[p];
        to->wavefronts += from->wavefronts, to->ideal += from->ideal;
        to->waits += from->waits, to->waited += from->waited;
    }
    pthread_mutex_unlock(&profile->lock);
    free(c->counts);
    c->counts = NULL;
}

/* ---- steps ---- */

static struct insn_counts *counts_of(const struct warp *w, const struct insn *in)
{
    const struct cluster *c = w->cta->cluster;
    return &c->counts[in - c->grid->code];
}

/* Generic addresses tell their space by their window. */
static enum space space_of(enum space space, uint64_t address)
{
    if (space == SPACE_SHARED_CLUSTER) return SPACE_SHARED;
    if (space != SPACE_GENERIC) return space;
    if (address - SHARED_WINDOW < WINDOW_BYTES) return SPACE_SHARED;
    if (address - LOCAL_WINDOW < WINDOW_BYTES) return SPACE_LOCAL;
    if (address - PARAM_WINDOW < PARAMETER_LIMIT) return SPACE_PARAM;
    return SPACE_GLOBAL;
}

static void add_banks(struct insn_counts *counts, const uint64_t *address, uint32_t lanes, uint32_t bytes)
{
    counts->wavefronts += bank_wavefronts(address, lanes, bytes);
    counts->ideal += bank_ideal(lanes, bytes);
}

static void add_bytes(struct insn_counts *counts, enum space space, uint64_t bytes, bool reads, bool writes)
{
    const int place = space == SPACE_SHARED ? SHARED_READ : space == SPACE_LOCAL ? LOCAL_READ : GLOBAL_READ;
    if (space == SPACE_PARAM || space == SPACE_CONST) return;
    if (reads) counts->bytes[place] += bytes;
    if (writes) counts->bytes[place + 1] += bytes;
}

static const struct operand *address_operand(const struct insn *in, int number)
{
    for (int i = 0; i < in->operands; i++)
        if (in->operand[i].kind == OPERAND_ADDRESS && number-- == 0) return &in->operand[i];
    return NULL;
}

static void count_access(struct warp *w, const struct insn *in, uint32_t lanes, enum profile_access access)
{
    struct insn_counts *counts = counts_of(w, in);
    const struct operand *o = address_operand(in, 0);
    if (o == NULL) return;
    uint64_t address[LANES];
    address_lanes(w, o, lanes, address);
    const uint32_t bytes = type_bytes((enum ptx_type)in->type[0]) * (in->vector == 0 ? 1 : in->vector);
    const bool reads = access == ACCESS_LOAD || access == ACCESS_ATOMIC, writes = access != ACCESS_LOAD;
    uint32_t shared = 0;
    FOR_LANES(l, lanes)
    {
        const enum space space = space_of((enum space)in->space, address[l]);
        add_bytes(counts, space, bytes, reads, writes);
        if (space == SPACE_SHARED) shared |= 1u << l;
    }
    if (shared != 0) add_banks(counts, address, shared, bytes);
}

/* ldmatrix, stmatrix: eight lanes have the addresses of rows, 16 bytes each, for each register. */
static void count_matrix(struct warp *w, const struct insn *in, uint32_t lanes, bool writes)
{
    struct insn_counts *counts = counts_of(w, in);
    const struct operand *o = address_operand(in, 0);
    const uint32_t rows = 8 * in->operand[writes ? 1 : 0].count;
    lanes &= (uint32_t)((UINT64_C(1) << rows) - 1);
    if (o == NULL || lanes == 0) return;
    uint64_t address[LANES];
    address_lanes(w, o, lanes, address);
    add_bytes(counts, SPACE_SHARED, 16 * (uint64_t)__builtin_popcount(lanes), !writes, writes);
    add_banks(counts, address, lanes, 16);
}

/* cp.async [shared], [global], bytes, bytes of the source */
static void count_copy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct insn_counts *counts = counts_of(w, in);
    const struct operand *to = address_operand(in, 0);
    int i = 0;
    while (i < in->operands && in->operand[i].kind == OPERAND_ADDRESS) i++;
    if (to == NULL || i >= in->operands || in->operand[i].kind != OPERAND_CONSTANT) return;
    const uint32_t bytes = (uint32_t)in->operand[i].value;
    uint64_t address[LANES];
    address_lanes(w, to, lanes, address);
    const uint64_t all = bytes * (uint64_t)__builtin_popcount(lanes);
    counts->bytes[GLOBAL_READ] += all;
    counts->bytes[SHARED_WRITTEN] += all;
    add_banks(counts, address, lanes, bytes);
}

void profile_before(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct grid *grid = w->cta->cluster->grid;
    const enum profile_access access = (enum profile_access)grid->watch->profile->access[in - grid->code];
    switch (access) {
    case ACCESS_NONE: break;
    case ACCESS_LOAD_MATRIX:
    case ACCESS_STORE_MATRIX: count_matrix(w, in, lanes, access == ACCESS_STORE_MATRIX); break;
    case ACCESS_COPY: count_copy(w, in, lanes); break;
    default: count_access(w, in, lanes, access);
    }
}

void profile_after(struct warp *w, const struct insn *in, uint32_t lanes, trap t, bool begins_to_wait, uint64_t waited)
{
    struct insn_counts *counts = counts_of(w, in);
    if (t == TRAP_NONE || t == TRAP_JUMP) {
        counts->warps++;
        counts->threads += (uint64_t)__builtin_popcount(lanes);
    }
    counts->waits += begins_to_wait;
    counts->waited += waited;
}

void profile_moved(const struct agent_operation *operation, enum moved what, uint64_t bytes)
{
    static const enum profile_place places[MOVED_COUNT] = {
        [MOVED_FROM_GLOBAL] = GLOBAL_READ,
        [MOVED_TO_GLOBAL] = GLOBAL_WRITTEN,
        [MOVED_FROM_SHARED] = SHARED_READ,
        [MOVED_TO_SHARED] = SHARED_WRITTEN,
    };
    const struct cluster *c = operation->cluster;
    c->counts[operation->in - c->grid->code].bytes[places[what]] += bytes;
}
