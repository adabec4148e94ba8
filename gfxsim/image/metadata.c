/* MessagePack: as much as AMDGPU metadata use.  Lengths are held against what is there; depth is limited. */
#include "metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 16 };

struct pack { const uint8_t *at, *end; bool wrong; };
enum kind { KIND_OTHER, KIND_NUMBER, KIND_TEXT, KIND_ARRAY, KIND_MAP };
struct item { enum kind kind; uint64_t number; const char *text; };   /* number: value, length or count */

static uint64_t big_endian(struct pack *p, uint32_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(p->end - p->at) < bytes) {
        p->wrong = true;
        return 0;
    }
    for (; bytes > 0; bytes--) value = value << 8 | *p->at++;
    return value;
}

static void text(struct pack *p, struct item *i, uint64_t length)
{
    if ((uint64_t)(p->end - p->at) < length) {
        p->wrong = true;
        return;
    }
    i->text = (const char *)p->at;
    i->number = length;
    p->at += length;
}

static struct item next(struct pack *p)
{
    struct item i = { KIND_OTHER, 0, NULL };
    const uint32_t c = (uint32_t)big_endian(p, 1);
    if (p->wrong) return i;
    if (c < 0x80) i = (struct item){ KIND_NUMBER, c, NULL };
    else if (c < 0x90) i = (struct item){ KIND_MAP, c & 15, NULL };
    else if (c < 0xa0) i = (struct item){ KIND_ARRAY, c & 15, NULL };
    else if (c < 0xc0) i.kind = KIND_TEXT, text(p, &i, c & 31);
    else if (c >= 0xe0) i = (struct item){ KIND_NUMBER, (uint64_t)(int64_t)(int8_t)c, NULL };
    else switch (c) {
        case 0xc0: case 0xc2: break;
        case 0xc3: i.number = 1; break;
        case 0xc4: case 0xc5: case 0xc6: text(p, &i, big_endian(p, 1u << (c - 0xc4))); break;
        case 0xca: case 0xcb: big_endian(p, c == 0xca ? 4 : 8); break;
        case 0xcc:
        case 0xcd:
        case 0xce:
        case 0xcf: i = (struct item){ KIND_NUMBER, big_endian(p, 1u << (c - 0xcc)), NULL }; break;
        case 0xd0:
        case 0xd1:
        case 0xd2:
        case 0xd3: i = (struct item){ KIND_NUMBER, big_endian(p, 1u << (c - 0xd0)), NULL }; break;
        case 0xd9: case 0xda: case 0xdb: i.kind = KIND_TEXT, text(p, &i, big_endian(p, 1u << (c - 0xd9))); break;
        case 0xdc: case 0xdd: i = (struct item){ KIND_ARRAY, big_endian(p, c == 0xdc ? 2 : 4), NULL }; break;
        case 0xde: case 0xdf: i = (struct item){ KIND_MAP, big_endian(p, c == 0xde ? 2 : 4), NULL }; break;
        default: p->wrong = true; break;
        }
    return i;
}

static void skip(struct pack *p, const struct item *i, int depth)
{
    if (depth > MOST_DEPTH) p->wrong = true;
    if (i->kind != KIND_ARRAY && i->kind != KIND_MAP) return;
    const uint64_t count = i->kind == KIND_MAP ? 2 * i->number : i->number;
    for (uint64_t k = 0; k < count && !p->wrong; k++) {
        const struct item inner = next(p);
        skip(p, &inner, depth + 1);
    }
}

static bool is(const struct item *i, const char *word)
{
    return i->kind == KIND_TEXT && i->number == strlen(word) && memcmp(i->text, word, i->number) == 0;
}

static enum argument_kind argument_kind(const struct item *i)
{
    static const struct { const char *name; enum argument_kind kind; } kinds[] = {
        { "hidden_block_count_x", ARGUMENT_BLOCK_COUNT_X }, { "hidden_block_count_y", ARGUMENT_BLOCK_COUNT_Y },
        { "hidden_block_count_z", ARGUMENT_BLOCK_COUNT_Z }, { "hidden_group_size_x", ARGUMENT_GROUP_SIZE_X },
        { "hidden_group_size_y", ARGUMENT_GROUP_SIZE_Y }, { "hidden_group_size_z", ARGUMENT_GROUP_SIZE_Z },
        { "hidden_remainder_x", ARGUMENT_REMAINDER }, { "hidden_remainder_y", ARGUMENT_REMAINDER },
        { "hidden_remainder_z", ARGUMENT_REMAINDER }, { "hidden_grid_dims", ARGUMENT_GRID_DIMS },
        { "hidden_global_offset_x", ARGUMENT_OFFSET_ZERO }, { "hidden_global_offset_y", ARGUMENT_OFFSET_ZERO },
        { "hidden_global_offset_z", ARGUMENT_OFFSET_ZERO } };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (is(i, kinds[k].name)) return kinds[k].kind;
    return i->kind == KIND_TEXT && i->number > 7 && memcmp(i->text, "hidden_", 7) == 0 ? ARGUMENT_HIDDEN_ZERO
                                                                                      : ARGUMENT_VALUE;
}

static void read_argument(struct pack *p, struct argument *a, uint64_t entries)
{
    for (uint64_t i = 0; i < entries && !p->wrong; i++) {
        const struct item key = next(p), value = next(p);
        if (is(&key, ".offset") && value.kind == KIND_NUMBER) a->offset = (uint32_t)value.number;
        else if (is(&key, ".size") && value.kind == KIND_NUMBER) a->bytes = (uint32_t)value.number;
        else if (is(&key, ".value_kind")) a->kind = argument_kind(&value);
        skip(p, &value, 0);
    }
}

struct facts {
    const char *symbol;
    uint64_t symbol_bytes;
    uint32_t most_threads, arguments, kernarg_bytes, lds_bytes, private_bytes;
    struct argument *argument;
};

static void read_arguments(struct pack *p, struct facts *f, uint64_t count)
{
    free(f->argument);
    f->arguments = 0;
    f->argument = calloc(MOST_ARGUMENTS, sizeof *f->argument);
    if (count > MOST_ARGUMENTS || f->argument == NULL) p->wrong = true;
    for (uint64_t i = 0; i < count && !p->wrong; i++) {
        const struct item a = next(p);
        if (a.kind != KIND_MAP) p->wrong = true;
        else read_argument(p, &f->argument[f->arguments++], a.number);
    }
}

static uint32_t size_of(const struct item *value)
{
    return value->kind == KIND_NUMBER && value->number <= UINT32_MAX ? (uint32_t)value->number : 0;
}

/* A kernel's map; its facts go to the kernel whose descriptor has that symbol. */
static void read_kernel(struct pack *p, struct code_object *o, uint64_t entries)
{
    struct facts f = { 0 };
    for (uint64_t i = 0; i < entries && !p->wrong; i++) {
        const struct item key = next(p), value = next(p);
        if (is(&key, ".args") && value.kind == KIND_ARRAY) {
            read_arguments(p, &f, value.number);
            continue;
        }
        if (is(&key, ".symbol") && value.kind == KIND_TEXT) f.symbol = value.text, f.symbol_bytes = value.number;
        else if (is(&key, ".max_flat_workgroup_size") && value.kind == KIND_NUMBER)
            f.most_threads = (uint32_t)value.number;
        else if (is(&key, ".kernarg_segment_size")) f.kernarg_bytes = size_of(&value);
        else if (is(&key, ".group_segment_fixed_size")) f.lds_bytes = size_of(&value);
        else if (is(&key, ".private_segment_fixed_size")) f.private_bytes = size_of(&value);
        skip(p, &value, 0);
    }
    for (uint32_t i = 0; i < o->kernels && !p->wrong; i++) {
        struct kernel *k = &o->kernel[i];
        if (f.symbol == NULL || f.symbol_bytes != strlen(k->name) + 3 || k->argument != NULL
            || memcmp(f.symbol, k->name, f.symbol_bytes - 3) != 0)
            continue;
        k->most_threads = f.most_threads;
        /* descriptors made by hand leave these out */
        if (f.kernarg_bytes > k->kernarg_bytes) k->kernarg_bytes = f.kernarg_bytes;
        if (f.lds_bytes > k->lds_bytes) k->lds_bytes = f.lds_bytes;
        if (f.private_bytes > k->private_bytes) k->private_bytes = f.private_bytes;
        k->argument = f.argument;
        k->arguments = f.arguments;
        return;
    }
    free(f.argument);
}

bool metadata_read(struct code_object *o, const uint8_t *data, size_t bytes, char why[256])
{
    struct pack p = { data, data + bytes, false };
    const struct item top = next(&p);
    if (top.kind != KIND_MAP) p.wrong = true;
    for (uint64_t i = 0; i < top.number && !p.wrong; i++) {
        const struct item key = next(&p), value = next(&p);
        if (!is(&key, "amdhsa.kernels") || value.kind != KIND_ARRAY) {
            skip(&p, &value, 0);
            continue;
        }
        for (uint64_t k = 0; k < value.number && !p.wrong; k++) {
            const struct item kernel = next(&p);
            if (kernel.kind != KIND_MAP) p.wrong = true;
            else read_kernel(&p, o, kernel.number);
        }
    }
    if (p.wrong) snprintf(why, 256, "the metadata in its note are no MessagePack of kernels");
    return !p.wrong;
}
