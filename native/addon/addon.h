#ifndef MILLRACE_ADDON_H
#define MILLRACE_ADDON_H

#include "napi.h"

void add_affinity(napi_env env, napi_value exports);
void add_attributes(napi_env env, napi_value exports);
/* dlopen of a library of linear algebra, with the kernels that suit this CPU. */
void *open_blas(const char *path);

void add_lapack(napi_env env, napi_value exports);

#endif
