/* cudasim devices: what can be simulated. */
#include "tools/command.h"

#include "machine/core/device.h"

static const struct option options[] = { { .name = NULL } };

static int run(const void *settings)
{
    (void)settings;
    printf("%-8s %10s %14s %12s %9s %8s %15s\n", "device", "capability", "shared/block", "shared/SM", "registers",
           "cluster", "tensor columns");
    for (int i = 0; device_at(i) != NULL; i++) {
        const struct device_limits *d = device_at(i);
        char capability[16], cluster[16];
        snprintf(capability, sizeof capability, "%u.%u", d->major, d->minor);
        snprintf(cluster, sizeof cluster, "%u/%u", d->cluster_portable, d->cluster_max);
        printf("%-8s %10s %14u %12u %9u %8s %15u\n", d->name, capability, d->shared_per_block_optin, d->shared_per_sm,
               d->registers_per_sm, cluster, d->tensor_columns);
    }
    return EXIT_DONE;
}

const struct verb verb_devices = {
    .name = "devices",
    .summary = "lists the devices that can be simulated, and their limits",
    .usage = "",
    .about = "For --device of the other verbs and for CUDASIM_DEVICE. shared/block: with opt-in. cluster: portable and "
             "largest.",
    .options = options,
    .settings_bytes = 0,
    .run = run
};
