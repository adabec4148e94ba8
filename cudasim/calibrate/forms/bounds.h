/* Instructions whose results the manual gives within an error. */
#ifndef CUDASIM_CALIBRATE_FORMS_BOUNDS_H
#define CUDASIM_CALIBRATE_FORMS_BOUNDS_H

#include "calibrate.h"

/* Sets rule, number and bound by the case's form, where the manual states an error. */
void bounds_apply(struct calibration_case *c);

#endif
