/*
 * The part of Node-API that our add-ons use. It is declared here because the headers of Node are often not installed, and
 * Node keeps these functions compatible for ever.
 */
#ifndef MILLRACE_NAPI_H
#define MILLRACE_NAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);
typedef void (*napi_finalize)(napi_env env, void *data, void *hint);
typedef int napi_status;
enum { napi_ok };

/* The kinds of typed arrays, numbered as Node numbers them. */
enum {
    napi_int8_array,
    napi_uint8_array,
    napi_uint8_clamped_array,
    napi_int16_array,
    napi_uint16_array,
    napi_int32_array,
    napi_uint32_array,
    napi_float32_array,
    napi_float64_array,
    napi_bigint64_array,
    napi_biguint64_array
};

napi_status napi_get_cb_info(napi_env, napi_callback_info, size_t *argc, napi_value *argv, napi_value *self, void **data);
napi_status napi_create_function(napi_env, const char *name, size_t length, napi_callback, void *data, napi_value *result);
napi_status napi_set_named_property(napi_env, napi_value object, const char *name, napi_value value);
napi_status napi_throw_error(napi_env, const char *code, const char *message);
napi_status napi_get_value_double(napi_env, napi_value, double *result);
napi_status napi_get_value_int32(napi_env, napi_value, int32_t *result);
napi_status napi_get_value_int64(napi_env, napi_value, int64_t *result);
napi_status napi_get_value_string_utf8(napi_env, napi_value, char *buffer, size_t size, size_t *length);
napi_status napi_create_double(napi_env, double, napi_value *result);
napi_status napi_create_int32(napi_env, int32_t, napi_value *result);
napi_status napi_create_string_utf8(napi_env, const char *text, size_t length, napi_value *result);
napi_status napi_create_array(napi_env, napi_value *result);
napi_status napi_set_element(napi_env, napi_value array, uint32_t index, napi_value value);
napi_status napi_get_element(napi_env, napi_value array, uint32_t index, napi_value *result);
napi_status napi_get_array_length(napi_env, napi_value array, uint32_t *length);
napi_status napi_get_null(napi_env, napi_value *result);
napi_status napi_get_typedarray_info(napi_env, napi_value, int *type, size_t *length, void **data, napi_value *buffer,
                                     size_t *offset);
napi_status napi_is_typedarray(napi_env, napi_value, bool *result);
napi_status napi_create_external_arraybuffer(napi_env, void *data, size_t length, napi_finalize, void *hint,
                                             napi_value *result);

#define NAPI_AUTO_LENGTH ((size_t)-1)

/* An add-on may be loaded in several threads. */
#define NAPI_MODULE(init)                                                                                              \
    __attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void) { return 8; }              \
    __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {      \
        return init(env, exports);                                                                                     \
    }

static inline void napi_export(napi_env env, napi_value exports, const char *name, napi_callback callback, void *data) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, data, &function);
    napi_set_named_property(env, exports, name, function);
}

#endif
