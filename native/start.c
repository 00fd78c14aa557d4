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
#include <sys/wait.h>
#include <unistd.h>

/* Where the coordinator's own output goes; standard output is taken by replies. */
#define COORDINATOR_OUT 3
#define COORDINATOR_ERR 2

struct streams {
    int in, out, err;
};

/* A FIFO without a writer must not stop everything: open it without waiting, then make it blocking. */
static int open_input(const char *path) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) fcntl(fd, F_SETFL, 0);
    return fd;
}

static int open_output(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int null = -1;


static void close_streams(const struct job *job, const struct streams *streams) {
    if (*job->in && streams->in >= 0) close(streams->in);
    if (*job->out && streams->out >= 0) close(streams->out);
    if (*job->err && streams->err >= 0 && streams->err != streams->out) close(streams->err);
}

static int open_streams(const struct job *job, int log, struct streams *streams, enum stage *stage) {
    streams->in = streams->out = streams->err = -1;
    *stage = STAGE_STDIN;
    streams->in = *job->in ? open_input(job->in) : null;
    if (streams->in < 0) return errno;
    *stage = STAGE_STDOUT;
    streams->out = *job->out ? open_output(job->out) : log >= 0 ? log : COORDINATOR_OUT;
    if (streams->out < 0) return errno;
    *stage = STAGE_STDERR;
    if (*job->err && strcmp(job->err, job->out) == 0) streams->err = streams->out;
    else streams->err = *job->err ? open_output(job->err) : log >= 0 ? log : COORDINATOR_ERR;
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

/*
 * As execvpe, with the search path of the program's environment; a text without #! is not tried with a shell. Each folder is
 * tried each time, as make and ninja do: an earlier task may have put a program into one of the first. A folder in vain takes
 * one or two microseconds.
 */
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

/* Where programs may run that are bound to nothing; not known on a machine with too many CPUs. */
static cpu_set_t all_cpus;
static int are_known;

void prepare_starts(void) {
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    are_known = sched_getaffinity(0, sizeof all_cpus, &all_cpus) == 0 && CPU_COUNT(&all_cpus) > 1;
}

static void run_on(const struct job *job) {
    if (job->cpu_count == 0) {
        if (are_known) sched_setaffinity(0, sizeof all_cpus, &all_cpus);
        return;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < job->cpu_count; i++) {
        int cpu = job->cpus[2 * i] | job->cpus[2 * i + 1] << 8;
        if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    }
    /* A CPU that has gone away must not keep the program from running. */
    sched_setaffinity(0, sizeof set, &set);
}

/* A thread that moves to another CPU while it starts a program makes that take half as long again. */
static void hold_cpu(void) {
    int cpu = are_known ? sched_getcpu() : -1;
    if (cpu < 0 || cpu >= CPU_SETSIZE) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void leave_cpu(void) {
    if (are_known) sched_setaffinity(0, sizeof all_cpus, &all_cpus);
}

/* In the child, which has the parent's memory until it executes the program. */
static int become(const struct job *job, const struct streams *streams, enum stage *stage) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_on(job);
    *stage = STAGE_LIMIT;
    for (int i = 0; i < job->limit_count; i++) {
        struct rlimit limit = {job->limits[i].value, job->limits[i].value};
        if (setrlimit(job->limits[i].resource, &limit) != 0) return errno;
    }
    *stage = STAGE_CWD;
    if (*job->cwd && chdir(job->cwd) != 0) return errno;
    *stage = STAGE_EXEC;
    if (dup2(streams->in, 0) < 0 || dup2(streams->out, 1) < 0 || dup2(streams->err, 2) < 0) return errno;
    signal(SIGPIPE, SIG_DFL);
    return execute(job->argv, job->environment->variables);
}

int start(const struct job *job, int log, pid_t *started, uint64_t *began_ns, enum stage *stage) {
    struct streams streams;
    int error = open_streams(job, log, &streams, stage);
    if (error) {
        close_streams(job, &streams);
        return error;
    }
    volatile int failed = 0;
    volatile enum stage failed_at = STAGE_FORK;
    hold_cpu();
    *began_ns = now_ns();
    pid_t pid = vfork();
    if (pid == 0) {
        enum stage at = STAGE_FORK;
        failed = become(job, &streams, &at);
        failed_at = at;
        _exit(127);
    }
    if (pid < 0) failed = errno;
    leave_cpu();
    close_streams(job, &streams);
    *stage = failed_at;
    if (failed && pid > 0) waitpid(pid, NULL, 0);
    *started = pid;
    return failed;
}
