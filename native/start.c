/* Starting one program: everything between vfork and exec. */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Where the coordinator's own output goes; standard output is taken by replies. */
#define COORDINATOR_OUT 3
#define COORDINATOR_ERR 2

struct streams {
    int in, out, err;
};

/* A FIFO that nobody writes to must not stop everything: opened without waiting, then made ordinary. */
static int open_input(const char *path) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) fcntl(fd, F_SETFL, 0);
    return fd;
}

static int open_output(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int null_input(void) {
    static int fd = -1;
    if (fd < 0) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd;
}

static void close_streams(const struct request *request, const struct streams *streams) {
    if (*request->in && streams->in >= 0) close(streams->in);
    if (*request->out && streams->out >= 0) close(streams->out);
    if (*request->err && streams->err >= 0 && streams->err != streams->out) close(streams->err);
}

static int open_streams(const struct request *request, int log, struct streams *streams, enum stage *stage) {
    streams->in = streams->out = streams->err = -1;
    *stage = STAGE_STDIN;
    streams->in = *request->in ? open_input(request->in) : null_input();
    if (streams->in < 0) return errno;
    *stage = STAGE_STDOUT;
    streams->out = *request->out ? open_output(request->out) : log >= 0 ? log : COORDINATOR_OUT;
    if (streams->out < 0) return errno;
    *stage = STAGE_STDERR;
    if (*request->err && strcmp(request->err, request->out) == 0) streams->err = streams->out;
    else streams->err = *request->err ? open_output(request->err) : log >= 0 ? log : COORDINATOR_ERR;
    return streams->err < 0 ? errno : 0;
}

static const char *variable(char **environment, const char *name) {
    size_t length = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

/* As execvpe, with the search path of the program's environment; a text without #! is not tried with a shell. */
static int execute(char **argv, char **environment) {
    const char *name = argv[0];
    if (strchr(name, '/')) {
        execve(name, argv, environment);
        return errno;
    }
    const char *path = variable(environment, "PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    int error = ENOENT;
    for (;;) {
        const char *end = strchrnul(path, ':');
        char full[PATH_MAX];
        int length = end == path ? snprintf(full, sizeof full, "./%s", name)
                                 : snprintf(full, sizeof full, "%.*s/%s", (int)(end - path), path, name);
        if (length > 0 && (size_t)length < sizeof full) {
            execve(full, argv, environment);
            if (errno == EACCES) error = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR) return errno;
        }
        if (!*end) return error;
        path = end + 1;
    }
}

static int bind_to(uint64_t cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < 64; i++) {
        if (cpus >> i & 1) CPU_SET(i, &set);
    }
    /* A CPU that has gone away must not keep the program from running. */
    sched_setaffinity(0, sizeof set, &set);
    return 0;
}

/* In the child, which has the parent's memory until it executes the program. */
static int become(const struct request *request, const struct streams *streams, enum stage *stage) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (request->cpus) bind_to(request->cpus);
    *stage = STAGE_LIMIT;
    for (int i = 0; i < request->limit_count; i++) {
        struct rlimit limit = {request->limits[i].value, request->limits[i].value};
        if (setrlimit(request->limits[i].resource, &limit) != 0) return errno;
    }
    *stage = STAGE_CWD;
    if (*request->cwd && chdir(request->cwd) != 0) return errno;
    *stage = STAGE_EXEC;
    if (dup2(streams->in, 0) < 0 || dup2(streams->out, 1) < 0 || dup2(streams->err, 2) < 0) return errno;
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return execute(request->argv, request->environment);
}

int start(const struct request *request, struct running *running, enum stage *stage) {
    struct streams streams;
    int error;
    *stage = STAGE_LOG;
    log_open(&running->log, request->log, &error);
    if (error) return error;
    error = open_streams(request, running->log.fd, &streams, stage);
    if (error) {
        close_streams(request, &streams);
        log_close(&running->log, 1);
        return error;
    }
    volatile int failed = 0;
    volatile enum stage failed_at = STAGE_FORK;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pid_t pid = vfork();
    if (pid == 0) {
        enum stage at = STAGE_FORK;
        failed = become(request, &streams, &at);
        failed_at = at;
        _exit(127);
    }
    if (pid < 0) failed = errno;
    close_streams(request, &streams);
    *stage = failed_at;
    if (failed) {
        log_close(&running->log, 1);
        /* The loop reaps it, and finds that it knows nothing of it. */
        return failed;
    }
    running->id = request->id;
    running->pid = pid;
    running->began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}
