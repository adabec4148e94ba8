/* The families of cases, each in a file of its own. */
#ifndef CUDASIM_CALIBRATE_FAMILIES_H
#define CUDASIM_CALIBRATE_FAMILIES_H

#include "calibrate/calibrate.h"

calibration_family calibration_family_scalar, calibration_family_special;
calibration_family calibration_family_bulk, calibration_family_tensor;

/* Removes the cases from `first` on. */
void calibration_drop(struct calibration *c, uint32_t first);

#endif
