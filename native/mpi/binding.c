/* On which CPUs a rank runs. Threads that it starts begin with the same set. */
#define _GNU_SOURCE
#include "parts.h"

#include <sched.h>

#define MOST_CPUS 8192

/* bind(cpus): this thread runs on these CPUs only; without any, on all that the process began with. Returns 1 if so. */
static napi_value bind_rank(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array cpus;
    if (!array(&call, 0, &cpus)) return NULL;
    static cpu_set_t *before;
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    if (!before) {
        before = CPU_ALLOC(MOST_CPUS);
        CPU_ZERO_S(size, before);
        if (sched_getaffinity(0, size, before) != 0) return number_value(env, 0);
    }
    if (cpus.length == 0) return number_value(env, sched_setaffinity(0, size, before) == 0);
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    CPU_ZERO_S(size, set);
    for (int i = 0; i < cpus.length; i++) {
        int cpu = ((int *)cpus.data)[i];
        if (cpu >= 0 && cpu < MOST_CPUS) CPU_SET_S(cpu, size, set);
    }
    int failed = sched_setaffinity(0, size, set);
    CPU_FREE(set);
    return number_value(env, failed == 0);
}

void add_binding(napi_env env, napi_value exports) { napi_export(env, exports, "bind", bind_rank, NULL); }
