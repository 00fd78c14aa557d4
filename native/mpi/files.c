/* Files that the ranks of a communicator read and write together. */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

struct file {
    MPI_File file;
    int group;
    int used;
};

static struct file *files;
static int file_count;

static struct file *file_at(const struct call *call) { return &files[integer(call, 0)]; }

/* open(comm, path, mode, hints): mode 0 reads, 1 writes, 2 both, 3 as 1 and makes it, 4 as 2 and makes it. Hints are names and values in turn. */
static napi_value open_file(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    static const int MODES[] = {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR, MPI_MODE_WRONLY | MPI_MODE_CREATE,
                                MPI_MODE_RDWR | MPI_MODE_CREATE};
    int number = integer(&call, 0), mode = integer(&call, 2);
    struct group *group = group_numbered(number);
    char path[4096];
    size_t length = 0;
    napi_get_value_string_utf8(env, call.given[1], path, sizeof path, &length);
    MPI_Info hints;
    MPI_Info_create(&hints);
    uint32_t count = 0;
    napi_get_array_length(env, call.given[3], &count);
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        char name[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
        napi_value element;
        napi_get_element(env, call.given[3], i, &element);
        napi_get_value_string_utf8(env, element, name, sizeof name, &length);
        napi_get_element(env, call.given[3], i + 1, &element);
        napi_get_value_string_utf8(env, element, value, sizeof value, &length);
        MPI_Info_set(hints, name, value);
    }
    MPI_File file;
    if (!enter(env, group, CALL_FILE_OPEN, -1, 0, mode, -1)) return NULL;
    int error = MPI_File_open(group->comm, path, MODES[mode % 5], hints, &file);
    leave();
    MPI_Info_free(&hints);
    if (error != MPI_SUCCESS) return outcome(env, error, path);
    int at = 0;
    while (at < file_count && files[at].used) at++;
    if (at == file_count) {
        files = realloc(files, (size_t)++file_count * sizeof *files);
        if (!files) abort();
    }
    files[at] = (struct file){file, number, 1};
    return number_value(env, at);
}

/* access(file, offset in bytes, or in elements of the view, array, kind): kind 0 readAt, 1 writeAt, 2 and 3 the same together. Returns the elements. */
static napi_value transfer(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct file *it = file_at(&call);
    MPI_Offset offset = (MPI_Offset)real(&call, 1);
    struct array data;
    if (!array(&call, 2, &data)) return NULL;
    static const enum call_kind KINDS[] = {CALL_FILE_READ, CALL_FILE_WRITE, CALL_FILE_READ_ALL, CALL_FILE_WRITE_ALL};
    int kind = integer(&call, 3), error;
    MPI_Status status;
    if (!enter(env, group_numbered(it->group), KINDS[kind & 3], -1, 0, 0, -1)) return NULL;
    switch (kind) {
    case 0: error = MPI_File_read_at(it->file, offset, data.data, data.length, data.type, &status); break;
    case 1: error = MPI_File_write_at(it->file, offset, data.data, data.length, data.type, &status); break;
    case 2: error = MPI_File_read_at_all(it->file, offset, data.data, data.length, data.type, &status); break;
    default: error = MPI_File_write_at_all(it->file, offset, data.data, data.length, data.type, &status); break;
    }
    leave();
    if (error != MPI_SUCCESS) return outcome(env, error, kind & 1 ? "write" : "read");
    int count = 0;
    MPI_Get_count(&status, data.type, &count);
    return number_value(env, count == MPI_UNDEFINED ? data.length : count);
}

/* view(file, start in bytes, array of the type, sizes, lengths, starts): what the rank sees of a matrix; without sizes, all. */
static napi_value set_view(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct file *it = file_at(&call);
    MPI_Offset start = (MPI_Offset)real(&call, 1);
    struct array elements, sizes;
    if (!array(&call, 2, &elements) || !array(&call, 3, &sizes)) return NULL;
    MPI_Datatype element = elements.type, view = element;
    if (sizes.length > 0) {
        MPI_Type_create_subarray(sizes.length, sizes.data, integers(&call, 4), integers(&call, 5), MPI_ORDER_C, element, &view);
        MPI_Type_commit(&view);
    }
    if (!enter(env, group_numbered(it->group), CALL_FILE_VIEW, -1, 0, 0, -1)) return NULL;
    int error = MPI_File_set_view(it->file, start, element, view, "native", MPI_INFO_NULL);
    leave();
    if (view != element) MPI_Type_free(&view);
    return outcome(env, error, "setView");
}

/* size(file, bytes): sets it; -1 asks. */
static napi_value size(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct file *it = file_at(&call);
    MPI_Offset bytes = (MPI_Offset)real(&call, 1);
    int error;
    if (bytes >= 0) {
        if (!enter(env, group_numbered(it->group), CALL_FILE_SIZE, bytes, 0, 0, -1)) return NULL;
        error = MPI_File_set_size(it->file, bytes);
        leave();
    } else error = MPI_File_get_size(it->file, &bytes);
    if (error != MPI_SUCCESS) return outcome(env, error, "size");
    return number_value(env, (double)bytes);
}

static napi_value sync_file(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct file *it = file_at(&call);
    if (!enter(env, group_numbered(it->group), CALL_FILE_SYNC, -1, 0, 0, -1)) return NULL;
    int error = MPI_File_sync(it->file);
    leave();
    return outcome(env, error, "sync");
}

static napi_value close_file(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct file *it = file_at(&call);
    if (!enter(env, group_numbered(it->group), CALL_FILE_CLOSE, -1, 0, 0, -1)) return NULL;
    int error = MPI_File_close(&it->file);
    leave();
    it->used = 0;
    return outcome(env, error, "close");
}

void add_files(napi_env env, napi_value exports) {
    napi_export(env, exports, "fileOpen", open_file, NULL);
    napi_export(env, exports, "fileTransfer", transfer, NULL);
    napi_export(env, exports, "fileView", set_view, NULL);
    napi_export(env, exports, "fileSize", size, NULL);
    napi_export(env, exports, "fileSync", sync_file, NULL);
    napi_export(env, exports, "fileClose", close_file, NULL);
}
