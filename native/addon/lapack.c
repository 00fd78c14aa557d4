/* Calls into BLAS and LAPACK of the system, in place. All their parameters are addresses, so that one function serves all of them. */
#define _GNU_SOURCE
#include "addon.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define MOST 20

typedef void routine(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *, void *, void *, void *, void *, size_t, size_t, size_t, size_t);

/* One library for all threads of the process. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static char opened_path[1024];
static void *library;
static routine *found[64];
static int found_count;

/* openLibrary(path): 1 when it is there. */
static napi_value open_library(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value given, result;
    char path[1024];
    napi_get_cb_info(env, info, &count, &given, NULL, NULL);
    napi_get_value_string_utf8(env, given, path, sizeof path, &count);
    pthread_mutex_lock(&opening);
    void *opened = library && !strcmp(path, opened_path) ? library : open_blas(path);
    if (opened) {
        library = opened;
        memcpy(opened_path, path, sizeof opened_path);
    }
    pthread_mutex_unlock(&opening);
    napi_create_int32(env, opened != NULL, &result);
    return result;
}

/* routine(name): its number, or -1. The same name has the same number in all threads. */
static napi_value find_routine(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value given, result;
    char name[64];
    napi_get_cb_info(env, info, &count, &given, NULL, NULL);
    napi_get_value_string_utf8(env, given, name, sizeof name, &count);
    void *address = library ? dlsym(library, name) : NULL;
    int number = -1;
    if (address) {
        number = 0;
        while (number < found_count && found[number] != (routine *)address) number++;
        if (number == found_count && found_count < 64) found[found_count++] = (routine *)address;
        if (number == 64) number = -1;
    }
    napi_create_int32(env, number, &result);
    return result;
}

/* invoke(number, types, …): types has c for a letter, i for a whole number, d for a number and p for an array, one for each argument. */
static napi_value invoke(napi_env env, napi_callback_info info) {
    size_t count = MOST + 2;
    napi_value given[MOST + 2];
    char types[MOST + 1] = {0};
    int32_t number = 0, integers[MOST];
    double numbers[MOST];
    char letters[MOST][2];
    void *at[MOST] = {NULL};
    napi_get_cb_info(env, info, &count, given, NULL, NULL);
    napi_get_value_int32(env, given[0], &number);
    size_t length = 0;
    napi_get_value_string_utf8(env, given[1], types, sizeof types, &length);
    for (size_t i = 0; i < length && i + 2 < count; i++) {
        napi_value value = given[i + 2];
        size_t size;
        switch (types[i]) {
        case 'c':
            napi_get_value_string_utf8(env, value, letters[i], 2, &size);
            at[i] = letters[i];
            break;
        case 'i':
            napi_get_value_int32(env, value, &integers[i]);
            at[i] = &integers[i];
            break;
        case 'd':
            napi_get_value_double(env, value, &numbers[i]);
            at[i] = &numbers[i];
            break;
        default: napi_get_typedarray_info(env, value, NULL, NULL, &at[i], NULL, NULL); break;
        }
    }
    if (number >= 0 && number < found_count) {
        found[number](at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10], at[11], at[12], at[13],
                      at[14], at[15], at[16], at[17], at[18], at[19], 1, 1, 1, 1);
    }
    return NULL;
}

/* threads(count): how many threads the library uses from here on; 0 when it cannot be told. */
static napi_value set_threads(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value given, result;
    int32_t threads = 1;
    napi_get_cb_info(env, info, &count, &given, NULL, NULL);
    napi_get_value_int32(env, given, &threads);
    void (*set)(int) = library ? (void (*)(int))dlsym(library, "openblas_set_num_threads") : NULL;
    if (set) set(threads);
    napi_create_int32(env, set != NULL, &result);
    return result;
}

void add_lapack(napi_env env, napi_value exports) {
    napi_export(env, exports, "openLibrary", open_library, NULL);
    napi_export(env, exports, "routine", find_routine, NULL);
    napi_export(env, exports, "invoke", invoke, NULL);
    napi_export(env, exports, "threads", set_threads, NULL);
}
