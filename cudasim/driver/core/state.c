/* The driver's state: initialisation, the lock, current contexts. */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "machine/run/launch.h"
#include "simulator/environment.h"

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

static const struct environment environment = { "cudasim", "CUDASIM_QUIET" };

void driver_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    environment_tell(&environment, format, arguments);
    va_end(arguments);
}

/* What both simulators read alike, by shorter names. */
static bool number(const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
    return environment_number(&environment, name, low, high, value);
}
static bool number32(const char *name, uint64_t low, uint64_t high, uint32_t *value)
{
    return environment_number32(&environment, name, low, high, value);
}
static bool yes_or_no(const char *name, bool *value) { return environment_yes_or_no(&environment, name, value); }
static bool choice(const char *name, const struct setting *words, int count, int *value)
{
    return environment_choice(&environment, name, words, count, value);
}

static bool read_environment(struct machine_options *options)
{
    static const struct setting schedules[] = { { "random", SCHEDULE_RANDOM },
                                                { "earliest", SCHEDULE_EARLIEST },
                                                { "latest", SCHEDULE_LATEST } };
    static const struct setting modes[] = { { "model", TENSOR_MODE_MODEL }, { "fp32", TENSOR_MODE_FP32 } };
    static const struct setting fences[] = { { "used", TENSOR_FENCES_USED }, { "always", TENSOR_FENCES_ALWAYS } };
    static const struct setting reads[] = { { "always", READ_FENCES_ALWAYS }, { "never", READ_FENCES_NEVER } };
    int schedule = (int)options->schedule, mode = (int)options->tensor_core, fence = (int)options->tensor_fences,
        read = (int)options->read_fences;
    const bool ok =
        number32("CUDASIM_SMS", 1, 1024, &options->sms) && number32("CUDASIM_THREADS", 1, 64, &options->threads)
        && number("CUDASIM_SEED", 0, UINT64_MAX, &options->seed)
        && number("CUDASIM_STEPS", 0, UINT64_MAX, &options->step_limit)
        && yes_or_no("CUDASIM_OVERLAP", &options->overlap)
        && yes_or_no("CUDASIM_CHECK_RACES", &options->check_races)
        && yes_or_no("CUDASIM_CHECK_UNINITIALISED", &options->check_uninitialised)
        && number32("CUDASIM_SCHEDULES", 1, 1000000, &options->schedules)
        && choice("CUDASIM_SCHEDULE", schedules, 3, &schedule) && choice("CUDASIM_TENSOR_CORE", modes, 2, &mode)
        && choice("CUDASIM_TENSOR_FENCES", fences, 2, &fence) && choice("CUDASIM_READ_FENCES", reads, 2, &read);
    options->schedule = (enum schedule)schedule;
    options->tensor_core = (enum tensor_mode)mode;
    options->tensor_fences = (enum tensor_fences)fence;
    options->read_fences = (enum read_fences)read;
    return ok;
}

static void tell(const char *text) { driver_say("%s", text); }

/* CUDASIM_REPORTS: all rules at one level; then CUDASIM_RULES: some at others. */
static bool read_rules(uint8_t level[RULE_COUNT])
{
    static const struct setting words[] = { { "stop", RULE_STOP }, { "continue", RULE_REPORT } };
    int all = -1, length;
    const char *text = getenv("CUDASIM_RULES"), *wrong;
    if (!choice("CUDASIM_REPORTS", words, 2, &all)) return false;
    if (all >= 0) rules_all(level, (enum rule_level)all);
    if (text == NULL || rules_read(level, text, &wrong, &length)) return true;
    driver_say("cudasim: CUDASIM_RULES: \"%.*s\" is no NAME:LEVEL, LEVEL being stop, report or off, NAME one of",
               length, wrong);
    for (int i = 0; i < RULE_COUNT; i++) driver_say("%s %s", i == 0 ? "" : ",", rule_name((enum rule)i));
    driver_say("\n");
    return false;
}

/* When the program ends: kernels that nobody has waited for, and how much was reported and went on. */
__attribute__((destructor)) static void tell_rules(void)
{
    static char line[1024];
    kernels_land();
    if (rule_book_line(&driver.rule_book, line, sizeof line))
        driver_say("cudasim: reported and went on: %s\n", line);
}

/* CUDASIM_DEVICE: what the devices are, one name for all or one each. */
static CUresult read_names(const char *text, uint32_t *names)
{
    for (const char *at = text; *names < MOST_DEVICES; at++) {
        char name[16];
        const int length = (int)strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", length, at);
        const struct device_limits *limits = device_named(name);
        if (limits == NULL) {
            driver_say("cudasim: CUDASIM_DEVICE=%.*s is none of sm_90a, sm_100a, sm_103a, sm_120a, sm_121a\n", length,
                       at);
            return CUDA_ERROR_NO_DEVICE;
        }
        driver.device[(*names)++].limits = limits;
        at += length;
        if (*at == '\0') return CUDA_SUCCESS;
    }
    driver_say("cudasim: CUDASIM_DEVICE=%s names more than %d devices\n", text, MOST_DEVICES);
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_devices(void)
{
    const char *text = getenv("CUDASIM_DEVICE");
    uint32_t names = 0, count = 0;
    const CUresult result = read_names(text == NULL || *text == '\0' ? "sm_90a" : text, &names);
    if (result != CUDA_SUCCESS) return result;
    if (!number32("CUDASIM_DEVICES", 1, MOST_DEVICES, &count)) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) count = names;
    if (names != 1 && names != count) {
        driver_say("cudasim: CUDASIM_DEVICE=%s names %u devices, and CUDASIM_DEVICES is %u: one name for all, or one "
                   "each\n", text, names, count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = names; i < count; i++) driver.device[i].limits = driver.device[0].limits;
    driver.devices = driver.space.devices = count;
    return CUDA_SUCCESS;
}

static CUresult initialise(void)
{
    const CUresult devices = read_devices();
    if (devices != CUDA_SUCCESS) return devices;
    struct machine_options options = machine_default_options();
    if (!read_environment(&options) || !read_rules(options.rule)) return CUDA_ERROR_INVALID_VALUE;
    driver.options = options;
    driver.rule_book.tell = tell;
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

/* The thread runs a function that was given to a stream. */
static _Thread_local bool in_host_function;

void driver_call_host(CUhostFn *function, void *user)
{
    pthread_mutex_unlock(&driver.lock);
    in_host_function = true;
    function(user);
    in_host_function = false;
    pthread_mutex_lock(&driver.lock);
}

static CUresult enter(bool lands)
{
    pthread_mutex_lock(&driver.lock);
    if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
    if (lands) kernels_land();
    return driver.initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult find_context(CUresult result, struct CUctx_st **context)
{
    *context = NULL;
    if (result != CUDA_SUCCESS) return result;
    struct CUctx_st *current = current_get();
    if (current == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_lives(current)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = current;
    return current->fault;
}

CUresult driver_enter(void) { return enter(true); }
CUresult driver_enter_context(struct CUctx_st **context) { return find_context(enter(true), context); }
CUresult driver_enter_launch(struct CUctx_st **context) { return find_context(enter(false), context); }

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
    case REPORT_DEADLOCK: case REPORT_STEPS: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case REPORT_RESOURCES: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}
