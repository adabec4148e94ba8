/* ELF: headers, loadable segments, descriptors by their symbols.  Every offset is held against the file's size. */
#include "code_object.h"
#include "metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EM_AMDGPU = 224, MACHINE_GFX950 = 0x4f, SHT_SYMTAB = 2, SHT_DYNSYM = 11, SHT_NOTE = 7, PT_LOAD = 1,
       DESCRIPTOR_BYTES = 64, NOTE_METADATA = 32 };
static const uint64_t most_image = UINT64_C(1) << 28;

struct elf { const uint8_t *data; uint64_t bytes; char *why; };

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return value;
}

static bool within(const struct elf *e, uint64_t offset, uint64_t bytes)
{
    return offset <= e->bytes && bytes <= e->bytes - offset;
}

struct header { uint64_t phoff, shoff; uint32_t flags; uint16_t phnum, shnum; };

static enum code_object_result read_header(struct elf *e, struct header *h)
{
    static const uint8_t magic[6] = { 0x7f, 'E', 'L', 'F', 2, 1 };
    snprintf(e->why, 256, "no ELF file of 64 bits");
    if (e->bytes < 64 || memcmp(e->data, magic, sizeof magic) != 0) return CODE_OBJECT_INVALID;
    *h = (struct header){ number(e->data + 32, 8), number(e->data + 40, 8), (uint32_t)number(e->data + 48, 4),
                          (uint16_t)number(e->data + 56, 2), (uint16_t)number(e->data + 60, 2) };
    snprintf(e->why, 256, "an ELF file of machine %u, not %d (AMDGPU)", (unsigned)number(e->data + 18, 2), EM_AMDGPU);
    if (number(e->data + 18, 2) != EM_AMDGPU) return CODE_OBJECT_OTHER_GPU;
    snprintf(e->why, 256, "code for another GPU: flags 0x%x, gfx950 has 0x%x in its lowest byte", h->flags,
             MACHINE_GFX950);
    if ((h->flags & 0xff) != MACHINE_GFX950) return CODE_OBJECT_OTHER_GPU;
    snprintf(e->why, 256, "its headers do not lie in the file");
    if (!within(e, h->phoff, 56 * (uint64_t)h->phnum) || !within(e, h->shoff, 64 * (uint64_t)h->shnum)
        || number(e->data + 54, 2) != 56 || number(e->data + 58, 2) != 64)
        return CODE_OBJECT_INVALID;
    return CODE_OBJECT_OK;
}

/* How many bytes a file has whose size nobody has told: up to the end of its section headers and segments.  Reads
 * what the header names, as hipModuleLoadData has to. */
static uint64_t size_of(const uint8_t *data)
{
    uint64_t end = number(data + 40, 8) + 64 * number(data + 60, 2);
    const uint64_t phoff = number(data + 32, 8), phnum = number(data + 56, 2);
    if (phoff > most_image || end > most_image) return 64;
    for (uint64_t i = 0; i < phnum; i++) {
        const uint8_t *p = data + phoff + 56 * i;
        const uint64_t last = number(p + 8, 8) + number(p + 32, 8);
        if (last > end && last <= most_image) end = last;
    }
    return end;
}

static enum code_object_result load(struct elf *e, const struct header *h, struct code_object *o)
{
    uint64_t end = 0;
    for (int i = 0; i < h->phnum; i++) {
        const uint8_t *p = e->data + h->phoff + 56 * i;
        const uint64_t offset = number(p + 8, 8), address = number(p + 16, 8), file = number(p + 32, 8),
                       memory = number(p + 40, 8);
        if (number(p, 4) != PT_LOAD) continue;
        snprintf(e->why, 256, "segment %d does not lie in the file, or is larger than %llu bytes", i,
                 (unsigned long long)most_image);
        if (!within(e, offset, file) || file > memory || address > most_image || memory > most_image)
            return CODE_OBJECT_INVALID;
        if (address + memory > end) end = address + memory;
        if ((number(p + 4, 4) & 1) != 0) o->text = address, o->text_bytes = file;
    }
    snprintf(e->why, 256, "no segment with code");
    if (o->text_bytes == 0) return CODE_OBJECT_INVALID;
    o->bytes = end;
    o->image = calloc(1, end);
    if (o->image == NULL) return CODE_OBJECT_NO_MEMORY;
    for (int i = 0; i < h->phnum; i++) {
        const uint8_t *p = e->data + h->phoff + 56 * i;
        if (number(p, 4) == PT_LOAD)
            memcpy(o->image + number(p + 16, 8), e->data + number(p + 8, 8), number(p + 32, 8));
    }
    return CODE_OBJECT_OK;
}

/* Registers of a wave: rsrc1's granules of 8, AGPRs from accum_offset on (LLVM, "Code Object V3 Kernel Descriptor"). */
static void registers(struct kernel *k)
{
    const uint32_t all = 8 * ((k->rsrc1 & 63) + 1), offset = 4 * ((k->rsrc3 & 63) + 1);
    k->vgprs = offset < all ? offset : all;
    k->agprs = all - k->vgprs;
    if (k->vgprs > 256) k->vgprs = 256;
    if (k->agprs > 256) k->agprs = 256;
}

static enum code_object_result add_kernel(struct elf *e, struct code_object *o, const char *name, size_t length,
                                          uint64_t address)
{
    snprintf(e->why, 256, "the descriptor of %.*s does not lie in it", (int)(length < 100 ? length : 100), name);
    if (address > o->bytes || o->bytes - address < DESCRIPTOR_BYTES) return CODE_OBJECT_INVALID;
    struct kernel *grown = realloc(o->kernel, (o->kernels + 1) * sizeof *grown);
    if (grown == NULL) return CODE_OBJECT_NO_MEMORY;
    o->kernel = grown;
    const uint8_t *d = o->image + address;
    struct kernel *k = &o->kernel[o->kernels];
    *k = (struct kernel){ .entry = address + number(d + 16, 8), .lds_bytes = (uint32_t)number(d, 4),
                          .private_bytes = (uint32_t)number(d + 4, 4), .kernarg_bytes = (uint32_t)number(d + 8, 4),
                          .rsrc3 = (uint32_t)number(d + 44, 4), .rsrc1 = (uint32_t)number(d + 48, 4),
                          .rsrc2 = (uint32_t)number(d + 52, 4), .properties = (uint16_t)number(d + 56, 2),
                          .preload = (uint16_t)number(d + 58, 2) };
    registers(k);
    snprintf(e->why, 256, "the entry of %.*s does not lie in its code", (int)(length < 100 ? length : 100), name);
    if (k->entry < o->text || k->entry - o->text >= o->text_bytes || (k->entry - o->text) % 4 != 0)
        return CODE_OBJECT_INVALID;
    k->name = malloc(length + 1);
    if (k->name == NULL) return CODE_OBJECT_NO_MEMORY;
    memcpy(k->name, name, length);
    k->name[length] = '\0';
    o->kernels++;
    return CODE_OBJECT_OK;
}

/* Symbols that end in ".kd" name descriptors. */
static enum code_object_result read_symbols(struct elf *e, const struct header *h, struct code_object *o, int section)
{
    const uint8_t *s = e->data + h->shoff + 64 * section;
    const uint64_t offset = number(s + 24, 8), bytes = number(s + 32, 8), link = number(s + 40, 4);
    snprintf(e->why, 256, "its table of symbols does not lie in the file");
    if (!within(e, offset, bytes) || link >= h->shnum) return CODE_OBJECT_INVALID;
    const uint8_t *t = e->data + h->shoff + 64 * link;
    const uint64_t names = number(t + 24, 8), name_bytes = number(t + 32, 8);
    if (!within(e, names, name_bytes)) return CODE_OBJECT_INVALID;
    for (uint64_t i = 0; 24 * (i + 1) <= bytes; i++) {
        const uint8_t *symbol = e->data + offset + 24 * i;
        const uint64_t at = number(symbol, 4);
        if (at >= name_bytes) continue;
        const char *name = (const char *)e->data + names + at;
        const size_t length = strnlen(name, name_bytes - at);
        if (length == name_bytes - at || length < 4 || length > MOST_KERNEL_NAME || memcmp(name + length - 3, ".kd", 3))
            continue;
        const enum code_object_result r = add_kernel(e, o, name, length - 3, number(symbol + 8, 8));
        if (r != CODE_OBJECT_OK) return r;
    }
    return CODE_OBJECT_OK;
}

static enum code_object_result read_notes(struct elf *e, const uint8_t *section, struct code_object *o)
{
    const uint64_t offset = number(section + 24, 8), bytes = number(section + 32, 8);
    snprintf(e->why, 256, "a note does not lie in the file");
    if (!within(e, offset, bytes)) return CODE_OBJECT_INVALID;
    for (uint64_t at = 0; at + 12 <= bytes;) {
        const uint8_t *note = e->data + offset + at;
        const uint64_t name = (number(note, 4) + 3) & ~UINT64_C(3), length = number(note + 4, 4);
        if (name > bytes || length > bytes || at + 12 + name + length > bytes) return CODE_OBJECT_INVALID;
        if (number(note + 8, 4) == NOTE_METADATA && name == 8 && memcmp(note + 12, "AMDGPU", 7) == 0
            && !metadata_read(o, note + 12 + name, length, e->why))
            return CODE_OBJECT_INVALID;
        at += 12 + name + ((length + 3) & ~UINT64_C(3));
    }
    return CODE_OBJECT_OK;
}

static enum code_object_result read_sections(struct elf *e, const struct header *h, struct code_object *o)
{
    enum code_object_result r = CODE_OBJECT_OK;
    for (int pass = 0; pass < 3 && r == CODE_OBJECT_OK; pass++)
        for (int i = 0; i < h->shnum && r == CODE_OBJECT_OK; i++) {
            const uint8_t *s = e->data + h->shoff + 64 * i;
            const uint64_t type = number(s + 4, 4);
            if (pass == 0 && type == SHT_DYNSYM) r = read_symbols(e, h, o, i);
            else if (pass == 1 && type == SHT_SYMTAB && o->kernels == 0) r = read_symbols(e, h, o, i);
            else if (pass == 2 && type == SHT_NOTE) r = read_notes(e, s, o);
        }
    if (r != CODE_OBJECT_OK || o->kernels != 0) return r;
    snprintf(e->why, 256, "no kernel: no symbol ends in .kd");
    return CODE_OBJECT_INVALID;
}

enum code_object_result code_object_open(struct code_object *o, const void *data, size_t bytes, char why[256])
{
    *o = (struct code_object){ 0 };
    struct elf e = { data, bytes, why };
    struct header h;
    if (bytes == 0) {
        e.bytes = memcmp(data, "\177ELF", 4) == 0 ? size_of(data) : 4;
    }
    enum code_object_result r = read_header(&e, &h);
    if (r == CODE_OBJECT_OK) r = load(&e, &h, o);
    if (r == CODE_OBJECT_OK) r = read_sections(&e, &h, o);
    if (r == CODE_OBJECT_NO_MEMORY) snprintf(why, 256, "out of memory");
    return r;
}

void code_object_close(struct code_object *o)
{
    for (uint32_t i = 0; i < o->kernels; i++) {
        free(o->kernel[i].name);
        free(o->kernel[i].argument);
    }
    free(o->kernel);
    free(o->image);
    *o = (struct code_object){ 0 };
}

const struct kernel *code_object_kernel(const struct code_object *o, const char *name)
{
    for (uint32_t i = 0; i < o->kernels; i++)
        if (strcmp(o->kernel[i].name, name) == 0) return &o->kernel[i];
    return NULL;
}
