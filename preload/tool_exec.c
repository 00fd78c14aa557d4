/* millrace-board exec: one instance of a step, with all its processes. */
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t root;

static void forward(int sig, siginfo_t *info, void *context)
{
    (void)context;
    /* what the terminal sends goes to the whole group already */
    if (root > 0 && info->si_code != SI_KERNEL) kill(root, sig);
}

static int find_program(const char *name, char *path, size_t size)
{
    if (strchr(name, '/')) return snprintf(path, size, "%s", name) < (int)size;
    const char *dirs = getenv("PATH");
    for (const char *d = dirs ? dirs : "/usr/bin:/bin"; *d;) {
        size_t n = strcspn(d, ":");
        if (snprintf(path, size, "%.*s/%s", (int)n, d, name) < (int)size && access(path, X_OK) == 0) return 1;
        d += n + (d[n] == ':');
    }
    return 0;
}

/* ---- the end of our parent ---- */

static volatile u32 kept = MR_NONE;

static void end_by_force(int sig)
{
    (void)sig;
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (p->slot.used && p->state == MR_ALIVE && p->instance == kept && !(p->flags & MR_KEEPER)) kill((pid_t)p->pid, SIGKILL);
    }
    kill(0, SIGKILL); /* our group, with us: no process is left to report to */
}

/* Millrace was killed: the step ends too, after three seconds by force. */
static void abandoned(int sig)
{
    (void)sig;
    kill(0, SIGTERM);
    alarm(3);
}

static void end_with(u32 owner)
{
    setpgid(0, 0);
    signal(SIGPWR, abandoned);
    signal(SIGALRM, end_by_force);
    prctl(PR_SET_PDEATHSIG, SIGPWR);
    if (getppid() != (pid_t)owner) abandoned(0); /* it was faster */
}

static void set_environment(const struct mr_options *o)
{
    char lib[4096], preload[8192];
    if (o->lib) snprintf(lib, sizeof lib, "%s", o->lib);
    else {
        ssize_t n = readlink("/proc/self/exe", lib, sizeof lib - 20);
        lib[n > 0 ? n : 0] = 0;
        char *slash = strrchr(lib, '/');
        strcpy(slash ? slash + 1 : lib, "libmillrace.so");
    }
    const char *before = getenv("LD_PRELOAD");
    if (before && strstr(before, lib)) snprintf(preload, sizeof preload, "%s", before);
    else snprintf(preload, sizeof preload, "%s%s%s", lib, before && *before ? ":" : "", before ? before : "");
    setenv("LD_PRELOAD", preload, 1);
    setenv("CAPIO_DIR", mr_text_at(mr_b->dir), 1);
    setenv("CAPIO_WORKFLOW_NAME", o->workflow, 1);
    setenv("CAPIO_APP_NAME", o->app, 1);
    setenv("MILLRACE_STREAM_MUST", "1", 1);
}

static void run(u32 proc, char **args)
{
    struct mr_guard g;
    u64 start = 0;
    u32 pid = (u32)getpid();
    mr_task_state(pid, &start, 0, 0);
    mr_lock(&g);
    mr_proc_born(proc, pid, start);
    mr_proc_at(proc)->flags = MR_ROOT | MR_EXECING;
    mr_instance_at(mr_proc_at(proc)->instance)->root_pid = pid;
    mr_unlock(&g);
    execvp(args[0], args);
    int code = errno == ENOENT ? 127 : 126;
    fprintf(stderr, "millrace-board: %s: %s\n", args[0], strerror(errno));
    _exit(code);
}

static int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* Books the ends of all processes of the instance; the root's code. */
static int keep(u32 instance)
{
    int code = 0;
    for (;;) {
        struct mr_guard g;
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return code;
        if (pid == root) code = code_of(status);
        mr_lock(&g);
        if (pid == root) mr_instance_at(instance)->status = code;
        u32 i = mr_proc_find((u32)pid);
        if (i != MR_NONE) mr_proc_end(i, WIFSIGNALED(status) ? MR_END_KILLED : MR_END_EXIT, code_of(status));
        mr_unlock(&g);
    }
}

int mr_command_exec(const struct mr_options *o)
{
    char path[4096];
    struct mr_guard g;
    u64 start = 0;
    if (!o->app || !o->rest_count) return mr_say(MR_USAGE, "exec --app NAME -- PROG ARGS...");
    int err = mr_open_board(o);
    if (err) return err;
    u32 step = mr_step_find(o->app);
    if (step == MR_NONE) return mr_say(MR_FAILED_COMMAND, "workflow %s has no step %s", o->workflow, o->app);
    const char *why = find_program(o->rest[0], path, sizeof path) ? mr_not_intercepted(AT_FDCWD, path, getuid(), getgid(), 0) : 0;
    if (why) fprintf(stderr, "millrace-board: %s is %s: its I/O is not intercepted, only its end is seen\n", path, why);
    set_environment(o);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    mr_task_state((u32)getpid(), &start, 0, 0);
    mr_lock(&g);
    u32 keeper = mr_proc_join((u32)getpid(), start, step, 0);
    u32 child = keeper == MR_NONE ? MR_NONE : mr_proc_embryo(keeper, (u32)getpid());
    u32 instance = keeper == MR_NONE ? MR_NONE : mr_proc_at(keeper)->instance;
    if (keeper != MR_NONE) mr_proc_at(keeper)->flags = MR_KEEPER;
    if (why) mr_report_unseen(step, (u32)getpid(), path, why);
    mr_unlock(&g);
    kept = instance;
    if (o->owner) end_with(o->owner);
    if (child == MR_NONE) return mr_say(MR_FAILED_COMMAND, "the board is full");
    pid_t pid = fork();
    if (pid == 0) run(child, o->rest);
    root = pid;
    struct sigaction action = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
    int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
    for (u32 i = 0; i < sizeof forwarded / sizeof *forwarded; i++) sigaction(forwarded[i], &action, 0);
    int code = pid < 0 ? mr_say(126, "cannot fork: %s", strerror(errno)) : keep(instance);
    mr_lock(&g);
    if (pid < 0) mr_proc_end(child, MR_END_UNKNOWN, 0);
    mr_proc_end(keeper, MR_END_UNKNOWN, 0);
    mr_unlock(&g);
    return code;
}
