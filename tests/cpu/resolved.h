/* An operand as kernels and packers read it: its description resolved, its codes and scales with their values. */
#ifndef CPU_RESOLVED_H
#define CPU_RESOLVED_H

#include "cpu/tile.h"
#include "naive.h"

struct tables { float values[256], scales[256]; };

static inline struct bsmi_operand resolve(struct test *t, const struct operand *o, struct bsmi_matrix *m,
                                          struct tables *tables)
{
    CHECK(t, bsmi_matrix_resolve("operand", &o->m, m) == BSM_OK);
    if (m->bits <= 8) bsmi_element_table(m->element, tables->values);
    for (int code = 0; code < 256; code++)
        tables->scales[code] =
            m->scale == BSM_E8M0 ? bsmi_e8m0_to_float((uint8_t)code) : bsmi_ue4m3_to_float((uint8_t)code);
    return (struct bsmi_operand){ m, tables->values, tables->scales };
}

#endif
