/* The loop of millrace-spawn: requests in, programs started and reaped, replies out. See spawner.h. */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 1024
#define SHOW_LOGS_MS 250

static struct running *table[BUCKETS];
static unsigned running_count;

static char **environments[256];

static char *input;
static size_t input_size, input_room;
static char *output;
static size_t output_size, output_room;

static void *need(void *memory) {
    if (memory) return memory;
    fputs("millrace-spawn: out of memory\n", stderr);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- what runs --- */

static struct running **place_of(pid_t pid) {
    struct running **at = &table[(unsigned)pid % BUCKETS];
    while (*at && (*at)->pid != pid) at = &(*at)->next;
    return at;
}

static struct running *find_id(uint32_t id) {
    for (int i = 0; i < BUCKETS; i++) {
        for (struct running *one = table[i]; one; one = one->next) {
            if (one->id == id) return one;
        }
    }
    return NULL;
}

/* --- replies --- */

static void reply(const void *message, size_t size) {
    if (output_size + size > output_room) {
        output_room = (output_size + size) * 2;
        output = need(realloc(output, output_room));
    }
    memcpy(output + output_size, message, size);
    output_size += size;
}

/* Returns 0 when nobody listens any more. */
static int flush_replies(void) {
    size_t at = 0;
    while (at < output_size) {
        ssize_t size = write(1, output + at, output_size - at);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) {
            struct pollfd room = {1, POLLOUT, 0};
            poll(&room, 1, -1);
            continue;
        }
        if (size < 0) return 0;
        at += (size_t)size;
    }
    output_size = 0;
    return 1;
}

/* --- requests --- */

struct reader {
    char *at, *end;
};

static uint64_t number(struct reader *reader, size_t size) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < size) exit(1);
    memcpy(&value, reader->at, size);
    reader->at += size;
    return value;
}

static char *text(struct reader *reader) {
    char *found = reader->at;
    char *end = memchr(found, 0, (size_t)(reader->end - found));
    if (!end) exit(1);
    reader->at = end + 1;
    return found;
}

static char **texts(struct reader *reader, size_t count) {
    char **list = need(malloc((count + 1) * sizeof *list));
    for (size_t i = 0; i < count; i++) list[i] = text(reader);
    list[count] = NULL;
    return list;
}

static void set_environment(struct reader *reader) {
    size_t slot = number(reader, 4) % 256;
    size_t count = number(reader, 4);
    size_t size = (size_t)(reader->end - reader->at);
    /* One piece of memory: the list, then what it points to. */
    char **list = need(malloc((count + 1) * sizeof *list + size));
    char *copy = (char *)(list + count + 1);
    memcpy(copy, reader->at, size);
    struct reader inside = {copy, copy + size};
    for (size_t i = 0; i < count; i++) list[i] = text(&inside);
    list[count] = NULL;
    free(environments[slot]);
    environments[slot] = list;
}

static void run(struct reader *reader) {
    struct request request;
    request.id = (uint32_t)number(reader, 4);
    request.environment = environments[number(reader, 4) % 256];
    request.cpus = number(reader, 8);
    request.limit_count = (int)number(reader, 1);
    if (request.limit_count > MAX_LIMITS || !request.environment) exit(1);
    for (int i = 0; i < request.limit_count; i++) {
        request.limits[i].resource = (int)number(reader, 1);
        request.limits[i].value = number(reader, 8);
    }
    request.cwd = text(reader);
    request.in = text(reader);
    request.out = text(reader);
    request.err = text(reader);
    request.log = text(reader);
    request.argv = texts(reader, number(reader, 4));
    struct running *running = need(calloc(1, sizeof *running));
    enum stage stage;
    int error = start(&request, running, &stage);
    free(request.argv);
    if (error) {
        free(running);
        struct refused refused = {sizeof refused - 4, 'F', request.id, (uint8_t)stage, error};
        reply(&refused, sizeof refused);
        return;
    }
    struct running **place = place_of(running->pid);
    running->next = *place;
    *place = running;
    running_count++;
}

/* Returns 0 for "quit". */
static int handle(struct reader *reader) {
    switch (number(reader, 1)) {
    case 'E': set_environment(reader); return 1;
    case 'R': run(reader); return 1;
    case 'K': {
        struct running *one = find_id((uint32_t)number(reader, 4));
        if (one) kill(-one->pid, (int)number(reader, 4));
        return 1;
    }
    default: return 0;
    }
}

enum more { MORE, QUIT, GONE };

static enum more read_requests(void) {
    if (input_room - input_size < 65536) {
        input_room += input_room + 65536;
        input = need(realloc(input, input_room));
    }
    ssize_t size = read(0, input + input_size, input_room - input_size);
    if (size < 0) return errno == EINTR || errno == EAGAIN ? MORE : GONE;
    if (size == 0) return GONE;
    input_size += (size_t)size;
    size_t at = 0;
    for (;;) {
        uint32_t length;
        if (input_size - at < 4) break;
        memcpy(&length, input + at, 4);
        if (input_size - at - 4 < length) break;
        struct reader reader = {input + at + 4, input + at + 4 + length};
        if (!handle(&reader)) return QUIT;
        at += 4 + length;
    }
    memmove(input, input + at, input_size - at);
    input_size -= at;
    return MORE;
}

/* --- programs that end --- */

static void reap_one(pid_t pid) {
    struct running **place = place_of(pid);
    struct running *one = *place;
    if (!one) {
        /* Left its group, and its parent has ended: a stray, or one that could not be executed. */
        waitpid(pid, NULL, WNOHANG);
        return;
    }
    struct ended ended;
    memset(&ended, 0, sizeof ended);
    ended.length = sizeof ended - 4;
    ended.type = 'X';
    ended.id = one->id;
    ended.began_ns = one->began_ns;
    ended.ended_ns = now_ns();
    /* What the program left behind belongs to the task and ends with it. Before it is reaped, because
       afterwards its number may be another's. */
    kill(-pid, SIGKILL);
    usage_of(pid, &ended);
    int group_is_gone = kill(-pid, 0) != 0;
    ended.printed = (uint8_t)log_close(&one->log, group_is_gone);
    reply(&ended, sizeof ended);
    *place = one->next;
    free(one);
    running_count--;
}

static void reap(void) {
    for (;;) {
        siginfo_t info;
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        reap_one(info.si_pid);
    }
}

static void show_logs(void) {
    for (int i = 0; i < BUCKETS; i++) {
        for (struct running *one = table[i]; one; one = one->next) log_show(&one->log);
    }
}

/* The coordinator is gone: so is everybody, also those that left their group and were given to us. */
static void kill_everything(void) {
    for (int i = 0; i < BUCKETS; i++) {
        for (struct running *one = table[i]; one; one = one->next) kill(-one->pid, SIGKILL);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int tries = 0; tries < 1000; tries++) {
        FILE *children = fopen(path, "r");
        int pid, found = 0;
        while (children && fscanf(children, "%d", &pid) == 1) {
            found++;
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
        }
        if (children) fclose(children);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        if (!found) return;
        struct timespec moment = {0, 2000000};
        nanosleep(&moment, NULL);
    }
}

int main(void) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#ifdef SYS_close_range
    /* What the coordinator was given by whoever started it is not for its programs. */
    syscall(SYS_close_range, 4u, ~0u, 0u);
#endif
    int ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (int fd = 0; fd <= 3; fd++) {
        if (fd != 2) fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    enum more more = MORE;
    uint64_t shown = now_ns();
    while (more == MORE) {
        struct pollfd waits[2] = {{0, POLLIN, 0}, {ended, POLLIN, 0}};
        poll(waits, 2, running_count > 0 ? SHOW_LOGS_MS : -1);
        if (waits[1].revents) {
            struct signalfd_siginfo drained[16];
            if (read(ended, drained, sizeof drained) < 0 && errno != EAGAIN && errno != EINTR) break;
        }
        reap();
        if (waits[0].revents) more = read_requests();
        if (!flush_replies()) more = GONE;
        uint64_t now = now_ns();
        if (now - shown > SHOW_LOGS_MS * UINT64_C(1000000)) {
            shown = now;
            show_logs();
        }
    }
    if (more != QUIT) kill_everything();
    return 0;
}
