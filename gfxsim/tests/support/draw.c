/* Random instructions, field by field: what no field of a format uses is zero. */
#include "draw.h"

/* The second word of SDWA: parts of the sources, and of the result unless it is a mask. */
static uint32_t sdwa_word(struct test *t, enum format f)
{
    uint32_t w = (uint32_t)rnd_below(t, 256) | (uint32_t)rnd_below(t, 7) << 16;
    if (f != FORMAT_VOPC) w |= (uint32_t)rnd_below(t, 7) << 8 | (uint32_t)rnd_below(t, 3) << 11;
    if (f != FORMAT_VOP1) w |= (uint32_t)rnd_below(t, 7) << 24;
    return w;
}

static uint32_t dpp_word(struct test *t)
{
    static const uint32_t controls[] = { 0x1b,  0xe4,  0x101, 0x10f, 0x111, 0x11f, 0x121, 0x12f,
                                         0x130, 0x134, 0x138, 0x13c, 0x140, 0x141, 0x142, 0x143 };
    return (uint32_t)rnd_below(t, 256) | controls[rnd_below(t, 16)] << 8 | (uint32_t)rnd_below(t, 2) << 19
           | (uint32_t)rnd_below(t, 256) << 24;
}

/* Some of the short forms have parts of sources or moved lanes. */
static uint32_t other_form(struct test *t, enum format f, uint32_t w, uint32_t word[4], int number)
{
    if (number % 12 == 4 || number % 12 == 10) {
        word[1] = number % 12 == 4 ? sdwa_word(t, f) : dpp_word(t);
        w = (w & ~0x1ffu) | (number % 12 == 4 ? 249u : 250u);
    }
    return w;
}

void draw_instruction(struct test *t, const struct family *f, const struct row *r, uint32_t word[4], int number)
{
    for (int i = 0; i < 4; i++) word[i] = (uint32_t)rnd(t);
    uint32_t w = word[0];
    const uint32_t op = r->opcode;
    static const uint32_t constants[] = { 128, 129, 160, 193, 200, 240, 242, 247, 255, 106, 124, 126, 0, 2, 4, 100 };
    const uint32_t c = constants[rnd_below(t, 16)];
    const bool long_form = number % 2 == 1;
    switch (f->format) {
    case FORMAT_SOP2: w = (w & 0x7fffff) | 2u << 30 | op << 23; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPK: w = (w & 0x7fffff) | 0xbu << 28 | op << 23; break;
    case FORMAT_SOP1: w = (w & 0x7f00ff) | 0x17du << 23 | op << 8; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPC: w = (w & 0xffff) | 0x17eu << 23 | op << 16; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPP:
        w = 0x17fu << 23 | op << 16 | (r->run != NULL && (op == 10 || op == 19 || op == 28) ? 0 : w & 0xffff);
        break;
    case FORMAT_SMEM:
        w = (w & 0x5fff) | 0x30u << 26 | op << 18 | 1u << 17;             /* GLC is not compared */
        word[1] &= 0xfe1fffff;
        if (number % 2 != 0) w &= ~(1u << 14);
        if ((w & 1u << 14) == 0) word[1] &= 0x1fffff;
        break;
    case FORMAT_VOP1:
        if (!long_form)
            w = other_form(t, f->format, (*r->operands == '\0' ? 0 : w & 0x1fe01ff) | 0x3fu << 25 | op << 9, word,
                           number);
        else w = (w & 0xff) | 0x34u << 26 | (0x140 + op) << 16, word[1] &= 0x1ff;
        break;
    case FORMAT_VOP2:
        if (!long_form) w = other_form(t, f->format, (w & 0x1ffffff) | op << 25, word, number);
        else w = (w & 0xff) | 0x34u << 26 | (0x100 + op) << 16, word[1] &= 0x3ffff;
        break;
    case FORMAT_VOPC:
        if (!long_form) w = other_form(t, f->format, (w & 0x1ffff) | 0x3eu << 25 | op << 17, word, number);
        else w = (w & 0x7f) | 0x34u << 26 | op << 16, word[1] &= 0x3ffff;
        break;
    case FORMAT_VOP3: w = (w & 0xff) | 0x34u << 26 | op << 16; word[1] &= 0x7ffffff; break;
    case FORMAT_VOP3P:
        w = (w & 0xff) | 0x1a7u << 23 | op << 16 | 1u << 14;
        word[1] = (word[1] & 0x7ffffff) | 3u << 27;
        if ((r->flags & ROW_PACKED) != 0 && number % 2 == 0) w |= (uint32_t)rnd_below(t, 4) << 11, word[1] ^= 1u << 27;
        if ((r->flags & ROW_PACKED) == 0) word[1] &= ~0x7fffe00u;
        break;
    case FORMAT_MFMA:
        w = (w & 0x80ff) | 0x1a7u << 23 | op << 16;
        word[1] = (word[1] & 0x1fffffff) | 0x20100;
        if ((r->detail & 1) != 0)
            w |= (uint32_t)rnd_below(t, 5) << 8, word[1] |= (uint32_t)rnd_below(t, 5) << 29;
        if ((r->detail & 1) != 0 && long_form) {
            word[2] = w | 1u << 11, word[3] = word[1];
            w = 0xd3ac0000 | (uint32_t)rnd_below(t, 4) << 11;
            word[1] = ((uint32_t)rnd(t) & 0x1fffffff & ~0x7fc0000u) | 0x20100;
        }
        break;
    case FORMAT_DS:
        w = (w & 0xffff) | 0x36u << 26 | op << 17 | (w & 1u << 25);
        if (number % 2 == 0) w &= ~(1u << 25);
        /* fields that nothing uses are zero */
        if (r->operands[0] == 'a') word[1] &= strlen(r->operands) < 7 ? 0xffff : 0xffffff;
        else word[1] &= strlen(r->operands) < 7 ? 0xff0000ff : 0xff00ffff;
        break;
    case FORMAT_GLOBAL:
        w = (w & 0x2031fff) | 2u << 14 | 0x37u << 26 | op << 18;
        word[1] = (word[1] & ~(0x7fu << 16)) | (number % 2 == 0 ? 0x7fu << 16 : (uint32_t)rnd_below(t, 48) * 2 << 16);
        if ((r->flags & ROW_TO_LDS) != 0) word[1] &= 0x007f00ff;
        break;
    case FORMAT_FLAT:
        w = (w & 0x2030fff) | 0x37u << 26 | op << 18;
        word[1] &= ~(0x7fu << 16);
        break;
    case FORMAT_SCRATCH:
        w = (w & 0x2033fff) | 1u << 14 | 0x37u << 26 | op << 18;
        word[1] = (word[1] & ~(0x7fu << 16)) | (number % 2 == 0 ? 0x7fu : (uint32_t)rnd_below(t, 100)) << 16;
        if ((w & 1u << 13) == 0) word[1] &= ~0xffu;
        break;
    case FORMAT_BUFFER:
        w = (w & 0x2dfff & ~(1u << 16)) | 0x38u << 26 | op << 18;
        if (*r->operands == '\0') {
            w &= ~0x23fffu, word[1] = 0;
            break;
        }
        const bool to_lds = (r->flags & ROW_TO_LDS) != 0 && number % 3 == 0;
        if (to_lds) w |= 1u << 16, word[1] &= ~0x80ff00u;
        word[1] = (word[1] & ~(0x1fu << 16) & 0xffffff) | (uint32_t)rnd_below(t, 25) << 16
                     | (number % 2 == 0 ? 128u : (uint32_t)rnd_below(t, 100)) << 24;
        break;
    default: break;
    }
    word[0] = w;
}
