/* NVML, opened at run time: at which clock the GPU runs, what it draws, and whether its power limit holds it back; see gpu.h. */
#include "gpu.h"

#include <dlfcn.h>

/* Numbers of nvml.h. */
enum { CLOCK_SM = 1, CLOCK_NOW = 0, REASON_SOFTWARE_POWER_CAP = 0x4, REASON_HARDWARE_POWER_BRAKE = 0x80 };

void monitor_open(struct monitor *monitor)
{
    int (*start)(void), (*find)(unsigned, void **), (*version)(char *, unsigned);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
    if (!gpu_symbol(library, "nvmlInit_v2", &start) || !gpu_symbol(library, "nvmlDeviceGetHandleByIndex_v2", &find) ||
        !gpu_symbol(library, "nvmlSystemGetDriverVersion", &version) ||
        !gpu_symbol(library, "nvmlDeviceGetClock", &monitor->clock) ||
        !gpu_symbol(library, "nvmlDeviceGetPowerUsage", &monitor->power) ||
        !gpu_symbol(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &monitor->reasons))
        return;
    if (start() == 0 && version(monitor->driver, sizeof monitor->driver) == 0 && find(0, &device) == 0) monitor->device = device;
}

bool monitor_read(const struct monitor *monitor, struct monitor_sample *sample)
{
    unsigned mhz = 0, milliwatts = 0;
    unsigned long long reasons = 0;
    if (monitor->device == NULL || monitor->clock(monitor->device, CLOCK_SM, CLOCK_NOW, &mhz) != 0 ||
        monitor->power(monitor->device, &milliwatts) != 0 || monitor->reasons(monitor->device, &reasons) != 0)
        return false;
    *sample = (struct monitor_sample){ mhz, milliwatts / 1000,
                                       (reasons & (REASON_SOFTWARE_POWER_CAP | REASON_HARDWARE_POWER_BRAKE)) != 0 };
    return true;
}
