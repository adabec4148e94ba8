/* The table of types, and which register may hold what. */
#include "ptx/type.h"

#include <string.h>

const struct type_info type_table[PTX_TYPE_COUNT] = {
    [T_NONE] = { "none", 0, '-' },
#define X(id, name, bits, kind) [T_##id] = { name, bits, kind },
    PTX_TYPES(X)
#undef X
};

enum ptx_type type_named(const char *name, size_t length)
{
    for (int i = T_NONE + 1; i < PTX_TYPE_COUNT; i++)
        if (length > 0 && type_table[i].name[0] == name[0] && strlen(type_table[i].name) == length &&
            memcmp(type_table[i].name, name, length) == 0)
            return (enum ptx_type)i;
    return T_NONE;
}

static bool is_integer(char kind) { return kind == 'u' || kind == 's'; }

bool type_accepts(enum ptx_type wanted, enum ptx_type declared, bool wider)
{
    const char want = type_kind(wanted), have = type_kind(declared);
    const uint32_t want_bits = type_bits(wanted), have_bits = type_bits(declared);
    if (want == 'p' || have == 'p') return want == have;
    if (wider ? have_bits < want_bits : have_bits != want_bits) return false;
    if (have == 'b' || want == 'b') return true;
    if (is_integer(want)) return is_integer(have) || (wider && have_bits > want_bits);
    if (want == 'x') return is_integer(have);
    return wanted == declared || (wider && have_bits > want_bits && have == 'f');
}
