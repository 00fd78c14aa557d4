/* What a program and the processes that it waited for have used, asked before it is reaped. */
#define _GNU_SOURCE
#include "spawner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* While it is a zombie the kernel still has its counts, those of its ended children among them. */
static int io_of(pid_t pid, struct ended *ended) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) return 0;
    text[size] = 0;
    uint64_t cancelled = field(text, "cancelled_write_bytes: ");
    ended->asked_bytes = field(text, "rchar: ");
    ended->written_bytes = field(text, "wchar: ");
    ended->device_read_bytes = field(text, "\nread_bytes: ");
    uint64_t written = field(text, "\nwrite_bytes: ");
    ended->device_write_bytes = written > cancelled ? written - cancelled : 0;
    return 1;
}

/* Reaps it. */
void usage_of(pid_t pid, struct ended *ended) {
    int status = 0;
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    int known = io_of(pid, ended);
    wait4(pid, &status, 0, &usage);
    ended->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ended->user_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u + (uint64_t)usage.ru_utime.tv_usec;
    ended->system_us = (uint64_t)usage.ru_stime.tv_sec * 1000000u + (uint64_t)usage.ru_stime.tv_usec;
    ended->peak_bytes = (uint64_t)usage.ru_maxrss * 1024u;
    if (known) return;
    ended->device_read_bytes = (uint64_t)usage.ru_inblock * 512u;
    ended->device_write_bytes = (uint64_t)usage.ru_oublock * 512u;
}
