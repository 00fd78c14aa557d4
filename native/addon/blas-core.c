/*
 * Opens a library of linear algebra. OpenBLAS has kernels for each kind of CPU and chooses when it is loaded. A CPU that is newer than
 * the library gets those of an old one, which take up to twenty times as long. So it is loaded again with the kernels for the vectors
 * that the CPU has. OPENBLAS_CORETYPE, when the user has set it, decides.
 */
#define _GNU_SOURCE
#include "addon.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <strings.h>

#define VARIABLE "OPENBLAS_CORETYPE"

static const struct {
    const char *name;
    int vectors;
} cores[] = {
    {"Generic", 128},     {"Katmai", 128},  {"Coppermine", 128}, {"Northwood", 128}, {"Prescott", 128}, {"Banias", 128},
    {"Atom", 128},        {"Core2", 128},   {"Penryn", 128},     {"Dunnington", 128}, {"Nehalem", 128}, {"Athlon", 128},
    {"Opteron", 128},     {"Opteron_SSE3", 128}, {"Barcelona", 128}, {"Bobcat", 128}, {"Nano", 128},    {"Sandybridge", 192},
    {"Bulldozer", 192},   {"Piledriver", 192}, {"Steamroller", 192}, {"Excavator", 256}, {"Haswell", 256}, {"Zen", 256},
};

/* Bits of the kernels of a core, 192 for 256 without multiply-add; 0 for one that is not in the table. */
static int vectors_of(const char *name) {
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (!strcasecmp(name, cores[i].name)) return cores[i].vectors;
    return 0;
}

/* The kernels for the vectors that this CPU has, if they are wider than those of `core`; else NULL. */
static const char *better_than(const char *core) {
    int vectors = vectors_of(core);
    if (!vectors) return NULL;
#if defined(__x86_64__)
    if (vectors < 512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (vectors < 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
    return NULL;
}

void *open_blas(const char *path) {
    void *opened = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!opened || getenv(VARIABLE)) return opened;
    char *(*core_name)(void) = (char *(*)(void))dlsym(opened, "openblas_get_corename");
    const char *better = core_name ? better_than(core_name()) : NULL;
    if (!better) return opened;
    dlclose(opened);
    setenv(VARIABLE, better, 1);
    opened = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    unsetenv(VARIABLE);
    return opened ? opened : dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}
