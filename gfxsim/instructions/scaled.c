/* Conversions with a scale: v_cvt_scalef32_*. */
#include "families.h"
#include "valu.h"

static const struct row rows[] = { { "v_cvt_scalef32_pk_fp4_f32", 573, "x1 s1f s1f s1f", ROW_SELECTS, 0, valu_run, NULL } };
const struct family family_scaled = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows);
