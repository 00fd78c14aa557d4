/*
 * Most programs print nothing, and a file that is made and removed for each of them costs more than the rest
 * of starting it. So output goes to a file without a name, which gets its name when something is in it; one
 * that stayed empty serves the next program.
 */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_nameless_possible = 1;

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int is_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

static int nameless(const char *path, struct spare *spare) {
    if (spare->fd >= 0 && is_in(path, spare->folder)) {
        int fd = spare->fd;
        spare->fd = -1;
        return fd;
    }
    if (spare->fd >= 0) close(spare->fd);
    spare->fd = -1;
    free(spare->folder);
    spare->folder = need(folder_of(path));
    return open(spare->folder, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0666);
}

void log_open(struct log *log, const char *path, struct spare *spare, int *error) {
    *error = 0;
    log->fd = -1;
    log->path = NULL;
    log->is_named = 0;
    if (!*path) return;
    log->path = need(strdup(path));
    if (is_nameless_possible) {
        log->fd = nameless(path, spare);
        if (log->fd >= 0) return;
        /* Not every file system has files without names. */
        if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) is_nameless_possible = 0;
    }
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    log->is_named = 1;
    if (log->fd < 0) *error = errno;
}

static off_t size_of(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_size : 0;
}

static int append_to(const char *path, int from) {
    int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (to < 0) return 0;
    /* sendfile refuses O_APPEND. */
    fcntl(to, F_SETFL, 0);
    lseek(to, 0, SEEK_END);
    off_t at = 0, size = size_of(from);
    while (at < size && sendfile(to, from, &at, (size_t)(size - at)) > 0) {}
    close(to);
    return at == size;
}

static int give_name(struct log *log) {
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", log->fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, log->path, AT_SYMLINK_FOLLOW) == 0) return 1;
    /* An attempt that was lost has left its log under this name. */
    return append_to(log->path, log->fd);
}

/* For those who look at the log while the program runs. */
void log_show(struct log *log) {
    if (log->fd < 0 || log->is_named || size_of(log->fd) == 0) return;
    log->is_named = give_name(log);
}

/* Returns whether something was printed. */
int log_close(struct log *log, struct spare *spare, int may_reuse) {
    if (log->fd < 0) return 0;
    int printed = size_of(log->fd) > 0;
    if (printed && !log->is_named) printed = give_name(log);
    if (!printed && log->is_named) unlink(log->path);
    if (!printed && !log->is_named && may_reuse && spare->fd < 0) spare->fd = log->fd;
    else close(log->fd);
    free(log->path);
    log->fd = -1;
    return printed;
}
