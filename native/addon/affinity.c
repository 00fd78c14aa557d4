/* On which CPUs a thread may run. Threads that it starts begin with the same set. */
#define _GNU_SOURCE
#include "addon.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* Machines with more CPUs than this are not bound. */
#define MOST_CPUS 8192

/* bind(cpus): the calling thread runs on these CPUs only. Returns '' or why not. */
static napi_value bind_thread(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value list, result;
    uint32_t length = 0;
    napi_get_cb_info(env, info, &count, &list, NULL, NULL);
    napi_get_array_length(env, list, &length);
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    CPU_ZERO_S(size, set);
    for (uint32_t i = 0; i < length; i++) {
        napi_value element;
        int32_t cpu = -1;
        napi_get_element(env, list, i, &element);
        napi_get_value_int32(env, element, &cpu);
        if (cpu >= 0 && cpu < MOST_CPUS) CPU_SET_S(cpu, size, set);
    }
    int failed = sched_setaffinity(0, size, set);
    const char *why = failed ? strerror(errno) : "";
    CPU_FREE(set);
    napi_create_string_utf8(env, why, NAPI_AUTO_LENGTH, &result);
    return result;
}

/* affinity(): the CPUs that the calling thread may run on. */
static napi_value affinity(napi_env env, napi_callback_info info) {
    (void)info;
    napi_value list;
    napi_create_array(env, &list);
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    CPU_ZERO_S(size, set);
    uint32_t found = 0;
    if (sched_getaffinity(0, size, set) == 0) {
        for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
            if (!CPU_ISSET_S(cpu, size, set)) continue;
            napi_value number;
            napi_create_int32(env, cpu, &number);
            napi_set_element(env, list, found++, number);
        }
    }
    CPU_FREE(set);
    return list;
}

void add_affinity(napi_env env, napi_value exports) {
    napi_export(env, exports, "bind", bind_thread, NULL);
    napi_export(env, exports, "affinity", affinity, NULL);
}
