/* The driver's state: initialisation, the lock, current contexts. */
#include "driver/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/current.h"

struct driver driver = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The stack of contexts of each host thread. */
static _Thread_local struct CUctx_st *stack[CONTEXT_STACK];
static _Thread_local int depth;

struct CUctx_st *current_get(void) { return depth == 0 ? NULL : stack[depth - 1]; }
void current_set(struct CUctx_st *context)
{
    if (depth == 0) depth = 1;
    stack[depth - 1] = context;
    if (context == NULL) depth--;
}
bool current_push(struct CUctx_st *context)
{
    if (depth == CONTEXT_STACK) return false;
    stack[depth++] = context;
    return true;
}
bool current_pop(struct CUctx_st **context)
{
    if (depth == 0) return false;
    *context = stack[--depth];
    return true;
}

void driver_say(const char *format, ...)
{
    if (getenv("CUDASIM_QUIET") != NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static uint64_t environment_number(const char *name, uint64_t otherwise, uint64_t low, uint64_t high)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return otherwise;
    char *end;
    const unsigned long long value = strtoull(text, &end, 0);
    if (*end == '\0' && value >= low && value <= high) return value;
    driver_say("cudasim: %s=%s is no number from %llu to %llu: %llu is used\n", name, text, (unsigned long long)low,
               (unsigned long long)high, (unsigned long long)otherwise);
    return otherwise;
}

static void read_schedule(struct machine_options *options)
{
    const char *text = getenv("CUDASIM_SCHEDULE");
    if (text == NULL || strcmp(text, "random") == 0) options->schedule = SCHEDULE_RANDOM;
    else if (strcmp(text, "earliest") == 0) options->schedule = SCHEDULE_EARLIEST;
    else if (strcmp(text, "latest") == 0) options->schedule = SCHEDULE_LATEST;
    else driver_say("cudasim: CUDASIM_SCHEDULE=%s is none of random, earliest, latest: random is used\n", text);
}

static void read_tensor_core(struct machine_options *options)
{
    const char *text = getenv("CUDASIM_TENSOR_CORE");
    if (text == NULL || strcmp(text, "model") == 0) options->tensor_core = TENSOR_MODE_MODEL;
    else if (strcmp(text, "fp32") == 0) options->tensor_core = TENSOR_MODE_FP32;
    else driver_say("cudasim: CUDASIM_TENSOR_CORE=%s is none of model, fp32: model is used\n", text);
}

static CUresult initialise(void)
{
    const char *name = getenv("CUDASIM_DEVICE");
    driver.device = device_named(name == NULL ? "sm_90a" : name);
    if (driver.device == NULL) {
        driver_say("cudasim: CUDASIM_DEVICE=%s is none of sm_90a, sm_100a, sm_103a, sm_120a, sm_121a\n", name);
        return CUDA_ERROR_NO_DEVICE;
    }
    struct machine_options options = machine_default_options();
    options.sms = (uint32_t)environment_number("CUDASIM_SMS", options.sms, 1, 1024);
    options.threads = (uint32_t)environment_number("CUDASIM_THREADS", options.threads, 1, 64);
    options.seed = environment_number("CUDASIM_SEED", options.seed, 0, UINT64_MAX);
    options.step_limit = environment_number("CUDASIM_STEPS", 0, 0, UINT64_MAX);
    options.check_races = environment_number("CUDASIM_CHECK_RACES", 1, 0, 1) != 0;
    options.check_uninitialised = environment_number("CUDASIM_CHECK_UNINITIALISED", 1, 0, 1) != 0;
    options.schedules = (uint32_t)environment_number("CUDASIM_SCHEDULES", 1, 1, 1000000);
    read_schedule(&options);
    read_tensor_core(&options);
    driver.options = options;
    driver.initialised = true;
    return CUDA_SUCCESS;
}

CUDASIM_EXPORT CUresult cuInit(unsigned flags);
CUresult cuInit(unsigned flags)
{
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    return driver_leave(driver.initialised ? CUDA_SUCCESS : initialise());
}

CUDASIM_EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDASIM_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult driver_enter(void)
{
    pthread_mutex_lock(&driver.lock);
    return driver.initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult driver_enter_context(struct CUctx_st **context)
{
    const CUresult result = driver_enter();
    *context = NULL;
    if (result != CUDA_SUCCESS) return result;
    struct CUctx_st *current = current_get();
    if (current == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_lives(current)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = current;
    return current->fault;
}

CUresult driver_leave(CUresult result)
{
    pthread_mutex_unlock(&driver.lock);
    return result;
}

CUresult driver_fault_code(enum report_code code)
{
    switch (code) {
    case REPORT_OUT_OF_BOUNDS: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case REPORT_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case REPORT_ASSERT: return CUDA_ERROR_ASSERT;
    case REPORT_ILLEGAL: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case REPORT_DEADLOCK: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case REPORT_RESOURCES: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}
