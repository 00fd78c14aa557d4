/* The loop of millrace-spawn: reads requests and hands them to threads. See spawner.h. */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 250
#define ENVIRONMENTS 256

static struct environment *environments[ENVIRONMENTS];

static char *input;
static size_t input_size, input_room;

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

static void texts(struct reader *reader, char **list, size_t count) {
    for (size_t i = 0; i < count; i++) list[i] = text(reader);
    list[count] = NULL;
}

static void set_environment(struct reader *reader) {
    size_t slot = number(reader, 4) % ENVIRONMENTS;
    size_t count = number(reader, 4);
    size_t size = (size_t)(reader->end - reader->at);
    if (count > size) exit(1);
    /* One piece of memory: the list, then what it points to. */
    struct environment *made = need(malloc(sizeof *made + (count + 1) * sizeof *made->variables + size));
    char *copy = (char *)(made->variables + count + 1);
    memcpy(copy, reader->at, size);
    struct reader inside = {copy, copy + size};
    texts(&inside, made->variables, count);
    set_slot(&environments[slot], made);
}

static void run(struct reader *given) {
    size_t size = (size_t)(given->end - given->at);
    struct job *job = need(malloc(sizeof *job + size));
    char *copy = (char *)(job + 1);
    memcpy(copy, given->at, size);
    struct reader inside = {copy, copy + size}, *reader = &inside;
    job->next = NULL;
    job->id = (uint32_t)number(reader, 4);
    job->lane = (uint32_t)number(reader, 4);
    job->environment = environments[number(reader, 4) % ENVIRONMENTS];
    job->cpu_count = (int)number(reader, 2);
    job->cpus = (const unsigned char *)reader->at;
    for (int i = 0; i < job->cpu_count; i++) number(reader, 2);
    job->limit_count = (int)number(reader, 1);
    if (job->limit_count > MAX_LIMITS || !job->environment) exit(1);
    for (int i = 0; i < job->limit_count; i++) {
        job->limits[i].resource = (int)number(reader, 1);
        job->limits[i].value = number(reader, 8);
    }
    job->cwd = text(reader);
    job->in = text(reader);
    job->out = text(reader);
    job->err = text(reader);
    job->log = text(reader);
    size_t count = number(reader, 4);
    if (count > size) exit(1);
    job->argv = need(malloc((count + 1) * sizeof *job->argv));
    texts(reader, job->argv, count);
    work_on(job);
}

/* Returns 0 for "quit". */
static int handle(struct reader *reader) {
    switch (number(reader, 1)) {
    case 'E': set_environment(reader); return 1;
    case 'R': run(reader); return 1;
    case 'K': {
        uint32_t id = (uint32_t)number(reader, 4);
        tell_job(id, (int)number(reader, 4));
        return 1;
    }
    case 'B': tell_job((uint32_t)number(reader, 4), 0); return 1;
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

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#ifdef SYS_close_range
    /* Descriptors that the coordinator inherited are not for its programs. */
    syscall(SYS_close_range, 4u, ~0u, 0u);
#endif
    for (int fd = 0; fd <= 3; fd++) {
        if (fd != 2) fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    prepare_starts();
    int kept = open_replies();
    if (kept < 0) return 1;
    enum more more = MORE;
    uint64_t looked = 0;
    while (more == MORE) {
        struct pollfd waits[2] = {{0, POLLIN, 0}, {kept, POLLIN, 0}};
        poll(waits, 2, is_busy() ? LOOK_MS : -1);
        uint64_t now = now_ns();
        int is_time = now - looked > LOOK_MS * UINT64_C(1000000);
        /* Before the next programs begin: what was killed until now was not because of them. */
        if (is_time) look_for_kills();
        if (waits[0].revents) more = read_requests();
        if (waits[1].revents && !flush_replies()) more = GONE;
        if (is_time) {
            looked = now;
            show_logs();
            /* Programs that left their group and whose parents have ended: they were given to this thread. */
            while (waitpid(-1, NULL, WNOHANG | __WNOTHREAD) > 0) {}
        }
    }
    if (more != QUIT) kill_everything();
    /* Threads may be waiting for a lock that exit() wants. */
    _exit(0);
}
