/* Datasets of HDF5 that the ranks of a communicator write and read together. Files and datasets are numbers for JavaScript. */
#include <hdf5.h>
#include <mpi.h>
#include <napi.h>

#include <stdio.h>
#include <stdlib.h>

#ifndef H5_HAVE_PARALLEL
#error "this HDF5 was built without MPI"
#endif

#define MOST_ARGUMENTS 6
#define MOST_DIMENSIONS 32

struct call {
    napi_env env;
    napi_value given[MOST_ARGUMENTS];
};

static struct call arguments(napi_env env, napi_callback_info info) {
    struct call call = {.env = env};
    size_t count = MOST_ARGUMENTS;
    napi_get_cb_info(env, info, &count, call.given, NULL, NULL);
    return call;
}

static int integer(const struct call *call, int index) {
    int32_t value = 0;
    napi_get_value_int32(call->env, call->given[index], &value);
    return value;
}

static void text(const struct call *call, int index, char *into, size_t size) {
    size_t length = 0;
    into[0] = 0;
    napi_get_value_string_utf8(call->env, call->given[index], into, size, &length);
}

static void *array(const struct call *call, int index, size_t *length, int *kind) {
    void *data = NULL;
    *length = 0;
    *kind = 0;
    napi_get_typedarray_info(call->env, call->given[index], kind, length, &data, NULL, NULL);
    return data;
}

static napi_value number_value(napi_env env, double value) {
    napi_value result;
    napi_create_double(env, value, &result);
    return result;
}

/* --- errors --- */

static herr_t first_entry(unsigned n, const H5E_error2_t *entry, void *into) {
    if (n == 0 && entry->desc) snprintf(into, 512, "%s", entry->desc);
    return 0;
}

/* What went wrong, by the innermost entry of the library's stack. */
static napi_value failed(napi_env env, const char *what) {
    char reason[512] = "", message[1024];
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_entry, reason);
    H5Eclear2(H5E_DEFAULT);
    snprintf(message, sizeof message, "%s: %s", what, reason[0] ? reason : "HDF5 refused");
    napi_throw_error(env, "MR_HDF5", message);
    return NULL;
}

/* --- what is open --- */

static hid_t *open_ids;
static int open_count;

static double remember(hid_t id) {
    int at = 0;
    while (at < open_count && open_ids[at] >= 0) at++;
    if (at == open_count) {
        open_ids = realloc(open_ids, (size_t)++open_count * sizeof *open_ids);
        if (!open_ids) abort();
    }
    open_ids[at] = id;
    return at;
}

static hid_t id_at(const struct call *call, int index) { return open_ids[integer(call, index)]; }

/* In memory: the types of JavaScript's arrays. */
static hid_t type_of(int kind) {
    switch (kind) {
    case napi_int8_array: return H5T_NATIVE_INT8;
    case napi_int16_array: return H5T_NATIVE_INT16;
    case napi_uint16_array: return H5T_NATIVE_UINT16;
    case napi_int32_array: return H5T_NATIVE_INT32;
    case napi_uint32_array: return H5T_NATIVE_UINT32;
    case napi_float32_array: return H5T_NATIVE_FLOAT;
    case napi_float64_array: return H5T_NATIVE_DOUBLE;
    case napi_bigint64_array: return H5T_NATIVE_INT64;
    case napi_biguint64_array: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_UINT8;
    }
}

static int sizes(const struct call *call, int index, hsize_t *into) {
    size_t length;
    int kind;
    const double *given = array(call, index, &length, &kind);
    if (length > MOST_DIMENSIONS) length = MOST_DIMENSIONS;
    for (size_t i = 0; i < length; i++) into[i] = (hsize_t)given[i];
    return (int)length;
}

/* open(communicator as a Fortran handle, path, mode): mode 0 reads, 1 makes it anew, 2 reads and writes. */
static napi_value open_file(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    char path[4096];
    text(&call, 1, path, sizeof path);
    int mode = integer(&call, 2);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_Comm_f2c((MPI_Fint)integer(&call, 0)), MPI_INFO_NULL);
    hid_t file = mode == 1 ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                           : H5Fopen(path, mode == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, access);
    H5Pclose(access);
    return file < 0 ? failed(env, path) : number_value(env, remember(file));
}

/* create(file, name, array of the type, sizes): groups on the way are made. */
static napi_value create(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    char name[1024];
    hsize_t extent[MOST_DIMENSIONS];
    size_t length;
    int kind, rank = sizes(&call, 3, extent);
    text(&call, 1, name, sizeof name);
    array(&call, 2, &length, &kind);
    hid_t space = H5Screate_simple(rank, extent, NULL), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t set = H5Dcreate2(id_at(&call, 0), name, type_of(kind), space, links, H5P_DEFAULT, H5P_DEFAULT);
    H5Pclose(links);
    H5Sclose(space);
    return set < 0 ? failed(env, name) : number_value(env, remember(set));
}

/* dataset(file, name) */
static napi_value dataset(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    char name[1024];
    text(&call, 1, name, sizeof name);
    hid_t set = H5Dopen2(id_at(&call, 0), name, H5P_DEFAULT);
    return set < 0 ? failed(env, name) : number_value(env, remember(set));
}

/* extent(dataset, into): returns the number of dimensions. */
static napi_value extent(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    hsize_t found[MOST_DIMENSIONS];
    size_t room;
    int kind;
    double *into = array(&call, 1, &room, &kind);
    hid_t space = H5Dget_space(id_at(&call, 0));
    int rank = H5Sget_simple_extent_dims(space, found, NULL);
    H5Sclose(space);
    if (rank < 0) return failed(env, "extent");
    for (int i = 0; i < rank && (size_t)i < room; i++) into[i] = (double)found[i];
    return number_value(env, rank);
}

/* transfer(dataset, array, starts, lengths, isWrite): all ranks together, each its block; one without elements takes part, too. */
static napi_value transfer(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    hid_t set = id_at(&call, 0);
    size_t length;
    int kind, is_write = integer(&call, 4);
    void *data = array(&call, 1, &length, &kind);
    hsize_t starts[MOST_DIMENSIONS], lengths[MOST_DIMENSIONS], count = length;
    sizes(&call, 2, starts);
    sizes(&call, 3, lengths);
    hid_t file_space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
    herr_t error = 0;
    if (length == 0) {
        H5Sselect_none(file_space);
        H5Sselect_none(memory);
    } else error = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, starts, NULL, lengths, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE);
    if (error >= 0) {
        error = is_write ? H5Dwrite(set, type_of(kind), memory, file_space, how, data)
                         : H5Dread(set, type_of(kind), memory, file_space, how, data);
    }
    napi_value result = error < 0 ? failed(env, is_write ? "write" : "read") : NULL;
    H5Pclose(how);
    H5Sclose(memory);
    H5Sclose(file_space);
    return result;
}

/* close(number, isFile) */
static napi_value close_one(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    int number = integer(&call, 0);
    hid_t id = open_ids[number];
    open_ids[number] = -1;
    herr_t error = integer(&call, 1) ? H5Fclose(id) : H5Dclose(id);
    return error < 0 ? failed(env, "close") : NULL;
}

static napi_value init(napi_env env, napi_value exports) {
    napi_export(env, exports, "open", open_file, NULL);
    napi_export(env, exports, "create", create, NULL);
    napi_export(env, exports, "dataset", dataset, NULL);
    napi_export(env, exports, "extent", extent, NULL);
    napi_export(env, exports, "transfer", transfer, NULL);
    napi_export(env, exports, "close", close_one, NULL);
    return exports;
}

NAPI_MODULE(init)
