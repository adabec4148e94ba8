/* The errors that the manual states (PTX ISA 9.7.3, 9.7.4), one row each.  Both sides may err, cudasim by half a unit:
 * compare adds it. */
#include "bounds.h"

#include <string.h>

#include "ptx/type.h"

static const struct {
    const char *form;
    enum ptx_type number;
    enum calibration_rule rule;
    double bound;
    int operand;
    double low, high;
} bounds[] = {
    { "div.approx", T_F32, CALIBRATION_ULP, 2, 1, 0x1p-126, 0x1p126 },
    { "div.full", T_F32, CALIBRATION_ULP, 2, 1, 0x1p-126, 0x1p126 },
    { "rcp.approx.f32", T_F32, CALIBRATION_ULP, 1, 0, 0, 0 },
    { "rcp.approx.ftz.f32", T_F32, CALIBRATION_ULP, 1, 0, 0, 0 },
    { "rcp.approx.ftz.f64", T_F64, CALIBRATION_RELATIVE, 0x1p-19, 0, 0, 0 },
    { "sqrt.approx", T_F32, CALIBRATION_RELATIVE, 0x1p-23, 0, 0, 0 },
    { "rsqrt.approx.f32", T_F32, CALIBRATION_RELATIVE, 0x1.12p-23, 0, 0, 0 }, /* 2^-22.9 */
    { "rsqrt.approx.ftz.f32", T_F32, CALIBRATION_RELATIVE, 0x1.12p-23, 0, 0, 0 },
    { "rsqrt.approx.ftz.f64", T_F64, CALIBRATION_RELATIVE, 0x1p-19, 0, 0, 0 },
    { "sin.approx", T_F32, CALIBRATION_ABSOLUTE, 0x1.3bp-15, 0, 0, 314.0 }, /* 2^-14.7 up to 100 pi */
    { "cos.approx", T_F32, CALIBRATION_ABSOLUTE, 0x1.3bp-15, 0, 0, 314.0 },
    { "lg2.approx", T_F32, CALIBRATION_EITHER, 0x1p-22, 0, 0, 0 },
    { "ex2.approx.f32", T_F32, CALIBRATION_ULP, 2, 0, 0, 0 },
    { "ex2.approx.ftz.f32", T_F32, CALIBRATION_ULP, 2, 0, 0, 0 },
    { "tanh.approx.f32", T_F32, CALIBRATION_RELATIVE, 0x1p-11, 0, 0, 0 },
    { "tanh.approx.f16", T_F16, CALIBRATION_ABSOLUTE, 0x1.02p-11, 0, 0, 0 }, /* 2^-10.987; f16x2 too */
    { "tanh.approx.bf16", T_BF16, CALIBRATION_ABSOLUTE, 0x1p-8, 0, 0, 0 },
    { "ex2.approx.f16", T_F16, CALIBRATION_ULP, 1, 0, 0, 0 }, /* 2^-9.9 relative */
    { "ex2.approx.ftz.bf16", T_BF16, CALIBRATION_RELATIVE, 0x1p-7, 0, 0, 0 },
};

void bounds_apply(struct calibration_case *c)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (strncmp(c->form, bounds[i].form, strlen(bounds[i].form)) == 0) {
            c->rule = bounds[i].rule, c->number = bounds[i].number, c->bound = bounds[i].bound;
            c->reach_operand = bounds[i].operand, c->low = bounds[i].low, c->high = bounds[i].high;
        }
}
