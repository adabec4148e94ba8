/* The list of families. */
#include "calibrate/families.h"

calibration_family *const calibration_families[] = {
    calibration_family_scalar,            /* from the table: register-to-register forms */
    calibration_family_special,           /* lop3, carry chains of mixed kinds */
    0,
};
