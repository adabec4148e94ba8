/* Types of elements that mma.sync multiplies with the scales of blocks: part of its name, which the host chooses. */
#ifndef BSMI_MMA_SYNC_ELEMENTS_H
#define BSMI_MMA_SYNC_ELEMENTS_H

enum mma_sync_element { MMA_SYNC_E4M3, MMA_SYNC_E5M2, MMA_SYNC_E3M2, MMA_SYNC_E2M3, MMA_SYNC_E2M1 };

#endif
