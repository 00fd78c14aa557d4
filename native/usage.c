/* What a program and the processes that it waited for have used, asked before it is reaped; and whether it was too much. */
#define _GNU_SOURCE
#include "spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
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

/* What is shorter comes in one piece. */
#define PIECE 2048

static int read_text(const char *path, char *text, size_t room) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t size = 0;
    ssize_t more;
    do {
        more = read(fd, text + size, room - 1 - size);
        if (more > 0) size += (size_t)more;
    } while (more >= PIECE && size < room - 1);
    close(fd);
    text[size] = 0;
    return size > 0;
}

/* While it is a zombie the kernel still has its counts, those of its ended children among them. */
static int io_of(pid_t pid, struct ended *ended) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    if (!read_text(path, text, sizeof text)) return 0;
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

static _Atomic uint64_t kills;

static uint64_t kills_now(void) {
    char text[16384];
    return read_text("/proc/vmstat", text, sizeof text) ? field(text, "\noom_kill ") : 0;
}

uint64_t known_kills(void) {
    return kills;
}

void look_for_kills(void) {
    kills = kills_now();
}

/* A shell whose command was killed ends with 128 and the number of the signal. */
int was_starved(const struct ended *ended, uint64_t kills_before) {
    int is_killed = ended->signal == SIGKILL || ended->exit_code == 128 + SIGKILL;
    return is_killed && kills_now() > kills_before;
}
