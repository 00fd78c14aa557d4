/* The ends of MPI, communicators, and what all calls use. */
#define _GNU_SOURCE
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct call arguments(napi_env env, napi_callback_info info) {
    struct call call = {.env = env, .count = MOST_ARGUMENTS};
    napi_get_cb_info(env, info, &call.count, call.given, NULL, NULL);
    return call;
}

int integer(const struct call *call, int index) {
    int32_t value = 0;
    napi_get_value_int32(call->env, call->given[index], &value);
    return value;
}

double real(const struct call *call, int index) {
    double value = 0;
    napi_get_value_double(call->env, call->given[index], &value);
    return value;
}

static MPI_Datatype type_of(int kind) {
    switch (kind) {
    case napi_int8_array: return MPI_INT8_T;
    case napi_int16_array: return MPI_INT16_T;
    case napi_uint16_array: return MPI_UINT16_T;
    case napi_int32_array: return MPI_INT32_T;
    case napi_uint32_array: return MPI_UINT32_T;
    case napi_float32_array: return MPI_FLOAT;
    case napi_float64_array: return MPI_DOUBLE;
    case napi_bigint64_array: return MPI_INT64_T;
    case napi_biguint64_array: return MPI_UINT64_T;
    default: return MPI_UINT8_T;
    }
}

int array(const struct call *call, int index, struct array *found) {
    int kind = napi_uint8_array;
    size_t length = 0;
    *found = (struct array){NULL, 0, napi_uint8_array, MPI_UINT8_T};
    if (napi_get_typedarray_info(call->env, call->given[index], &kind, &length, &found->data, NULL, NULL) != napi_ok) return 1;
    if (length > INT_MAX) {
        napi_throw_error(call->env, "MR_MPI_MISUSE", "an array has more than 2147483647 elements, which is more than MPI takes");
        return 0;
    }
    found->length = (int)length;
    found->kind = kind;
    found->type = type_of(kind);
    return 1;
}

int *integers(const struct call *call, int index) {
    void *data = NULL;
    napi_get_typedarray_info(call->env, call->given[index], NULL, NULL, &data, NULL, NULL);
    return data;
}

napi_value number_value(napi_env env, double value) {
    napi_value result;
    napi_create_double(env, value, &result);
    return result;
}

napi_value outcome(napi_env env, int error, const char *what) {
    if (error == MPI_SUCCESS) return NULL;
    char text[MPI_MAX_ERROR_STRING + 64];
    int used = snprintf(text, sizeof text, "%s: ", what), length = 0;
    MPI_Error_string(error, text + used, &length);
    napi_throw_error(env, "MR_MPI_MISUSE", text);
    return NULL;
}

/* --- communicators --- */

static struct group *groups;
static int group_count;

struct group *group_numbered(int number) { return &groups[number]; }

struct group *group_at(const struct call *call, int index) { return group_numbered(integer(call, index)); }

int add_group(MPI_Comm comm, uint32_t id) {
    int number = 0;
    while (number < group_count && groups[number].comm != MPI_COMM_NULL) number++;
    if (number == group_count) {
        groups = realloc(groups, (size_t)++group_count * sizeof *groups);
        if (!groups) abort();
    }
    struct group *made = &groups[number];
    memset(made, 0, sizeof *made);
    made->comm = comm;
    made->id = id;
    MPI_Comm_size(comm, &made->size);
    MPI_Comm_rank(comm, &made->rank);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Group world, own;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &own);
    int near[2] = {(made->rank + made->size - 1) % made->size, (made->rank + 1) % made->size}, there[2];
    MPI_Group_translate_ranks(own, 2, near, world, there);
    made->before = there[0];
    made->after = there[1];
    MPI_Group_free(&own);
    MPI_Group_free(&world);
    return number;
}

void free_group(int number) {
    if (groups[number].comm == MPI_COMM_NULL) return;
    MPI_Comm_free(&groups[number].comm);
    groups[number].comm = MPI_COMM_NULL;
}

/* create(ranks, tag): a communicator of these ranks of the world; only they take part. */
static napi_value create(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array ranks;
    if (!array(&call, 0, &ranks)) return NULL;
    MPI_Group world, members;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, ranks.length, ranks.data, &members);
    int error = MPI_Comm_create_group(MPI_COMM_WORLD, members, integer(&call, 1), &comm);
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    if (error != MPI_SUCCESS || comm == MPI_COMM_NULL) return outcome(env, error, "communicator");
    /* Of each task another one: what is left of the calls of an earlier task is not taken for this one's. */
    int number = add_group(comm, ((uint32_t)integer(&call, 1) + 1u) << 8);
    groups[number].is_whole = 1;
    return number_value(env, number);
}

/* split(comm, color, key): color -1 for none, key as order. Returns the new one, or -1. */
static napi_value split(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    int number = integer(&call, 0), color = integer(&call, 1);
    struct group *group = &groups[number];
    if (!enter(env, group, CALL_SPLIT, -1, 0, 0, -1)) return NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    int error = MPI_Comm_split(group->comm, color < 0 ? MPI_UNDEFINED : color, integer(&call, 2), &comm);
    leave();
    if (error != MPI_SUCCESS) return outcome(env, error, "split");
    uint32_t id = (group->id * 31u + (uint32_t)++group->splits) * 31u + (uint32_t)color + 2u;
    return number_value(env, comm == MPI_COMM_NULL ? -1 : add_group(comm, id));
}

static napi_value free_comm(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    free_group(integer(&call, 0));
    return NULL;
}

static napi_value comm_size(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    return number_value(env, group_at(&call, 0)->size);
}

static napi_value comm_rank(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    return number_value(env, group_at(&call, 0)->rank);
}

/* fortran(comm): the number by which other libraries in this process know it. */
static napi_value fortran(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    return number_value(env, MPI_Comm_c2f(group_at(&call, 0)->comm));
}

/* --- begin and end --- */

/* init(): starts MPI; the world is communicator 0. When the launcher ends, so does this process. */
static napi_value init_mpi(napi_env env, napi_callback_info info) {
    (void)info;
    int provided;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Node has other threads, but only this one calls MPI. With a higher level, calls of Open MPI take twice as long. */
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
    if (error != MPI_SUCCESS) return outcome(env, error, "MPI_Init");
    return number_value(env, add_group(MPI_COMM_WORLD, 0));
}

static napi_value finalize(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    MPI_Finalize();
    return NULL;
}

static napi_value version(napi_env env, napi_callback_info info) {
    (void)info;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    napi_value result;
    MPI_Get_library_version(text, &length);
    napi_create_string_utf8(env, text, (size_t)length, &result);
    return result;
}

static napi_value wtime(napi_env env, napi_callback_info info) {
    (void)info;
    return number_value(env, MPI_Wtime());
}

/* --- memory that processes share --- */

static void unmap(napi_env env, void *data, void *hint) {
    (void)env;
    munmap(data, (size_t)(uintptr_t)hint);
}

/* map(path, bytes): the content of a file as memory that is written through. */
static napi_value map(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    char path[4096];
    size_t length = 0, size = (size_t)real(&call, 1);
    napi_get_value_string_utf8(env, call.given[0], path, sizeof path, &length);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *data = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (data == MAP_FAILED) {
        napi_throw_error(env, NULL, strerror(errno));
        return NULL;
    }
    napi_value buffer;
    napi_create_external_arraybuffer(env, data, size, unmap, (void *)(uintptr_t)size, &buffer);
    return buffer;
}

static napi_value init(napi_env env, napi_value exports) {
    napi_export(env, exports, "init", init_mpi, NULL);
    napi_export(env, exports, "finalize", finalize, NULL);
    napi_export(env, exports, "version", version, NULL);
    napi_export(env, exports, "wtime", wtime, NULL);
    napi_export(env, exports, "create", create, NULL);
    napi_export(env, exports, "split", split, NULL);
    napi_export(env, exports, "free", free_comm, NULL);
    napi_export(env, exports, "size", comm_size, NULL);
    napi_export(env, exports, "rank", comm_rank, NULL);
    napi_export(env, exports, "fortran", fortran, NULL);
    napi_export(env, exports, "map", map, NULL);
    add_status(env, exports);
    add_calls(env, exports);
    add_collectives(env, exports);
    add_requests(env, exports);
    add_binding(env, exports);
    add_files(env, exports);
    return exports;
}

NAPI_MODULE(init)
