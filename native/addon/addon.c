/* What a thread of ours can only do in C. */
#include "addon.h"

static napi_value init(napi_env env, napi_value exports) {
    add_affinity(env, exports);
    add_attributes(env, exports);
    add_lapack(env, exports);
    return exports;
}

NAPI_MODULE(init)
