/* The families of cases, each in a file of its own. */
#ifndef CUDASIM_CALIBRATE_FAMILIES_FAMILIES_H
#define CUDASIM_CALIBRATE_FAMILIES_FAMILIES_H

#include "calibrate/forms/calibrate.h"

calibration_family calibration_family_scalar, calibration_family_special;
calibration_family calibration_family_mbarrier, calibration_family_ordering;
calibration_family calibration_family_memory, calibration_family_atomic, calibration_family_warp,
    calibration_family_cluster;
calibration_family calibration_family_bulk, calibration_family_tensor, calibration_family_wgmma,
    calibration_family_matrix;
calibration_family calibration_family_async, calibration_family_tensormap, calibration_family_dependent;

struct form;
/* Whether cudasim's reader takes the case's text. */
bool calibration_reads(const struct calibration_case *one);
/* Adds the cases of a form. */
typedef void calibration_form(struct calibration *c, const struct form *f);
/* Adds those of all forms of the row that the reader takes; where they are more than `most`, of so many that each pair
 * of choices occurs. */
struct row;
void calibration_row(struct calibration *c, const struct row *row, uint32_t most, calibration_form *add);

/* Calls `add` for each row that sm_90a has. */
void calibration_hopper_rows(struct calibration *c, void (*add)(struct calibration *c, const struct row *row));

/* Removes the cases from `first` on. */
void calibration_drop(struct calibration *c, uint32_t first);

#endif
