/* Extended attributes of a file that is put in the place of another one. */
#define _GNU_SOURCE
#include "addon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>

enum { MOST_PATH = 4096, MOST_NAMES = 65536, MOST_VALUE = 65536 };

/* What belongs to the name and not to what is in the file: a write to the file would leave these, and no others, as they are. */
static int is_kept(const char *name) {
    return strncmp(name, "user.", 5) == 0 || strncmp(name, "system.posix_acl_", 17) == 0 ||
           strcmp(name, "security.selinux") == 0;
}

static int copy_all(const char *from, const char *to) {
    ssize_t length = llistxattr(from, NULL, 0);
    if (length <= 0 || length > MOST_NAMES) return 0;
    char *names = malloc((size_t)length);
    char *value = malloc(MOST_VALUE);
    int copied = 0;
    length = names && value ? llistxattr(from, names, (size_t)length) : 0;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        if (!is_kept(name)) continue;
        ssize_t size = lgetxattr(from, name, value, MOST_VALUE);
        /* One that the new file has already is that of the task. */
        if (size < 0 || lsetxattr(to, name, value, (size_t)size, XATTR_CREATE) != 0) continue;
        copied++;
    }
    free(names);
    free(value);
    return copied;
}

/* copyAttributes(from, to): how many the second file has got. */
static napi_value copy_attributes(napi_env env, napi_callback_info info) {
    size_t count = 2;
    napi_value paths[2], result;
    char from[MOST_PATH], to[MOST_PATH];
    size_t length[2] = {0, 0};
    napi_get_cb_info(env, info, &count, paths, NULL, NULL);
    napi_get_value_string_utf8(env, paths[0], from, sizeof from, &length[0]);
    napi_get_value_string_utf8(env, paths[1], to, sizeof to, &length[1]);
    /* A longer path would be cut, and be that of something else. */
    int fits = length[0] > 0 && length[1] > 0 && length[0] < sizeof from - 1 && length[1] < sizeof to - 1;
    napi_create_int32(env, fits ? copy_all(from, to) : 0, &result);
    return result;
}

void add_attributes(napi_env env, napi_value exports) {
    napi_value function;
    napi_create_function(env, "copyAttributes", NAPI_AUTO_LENGTH, copy_attributes, NULL, &function);
    napi_set_named_property(env, exports, "copyAttributes", function);
}
