/* millrace-board: makes, shows and removes boards, and runs steps. */
#include "tool.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "millrace-board: the shared board of a streaming workflow\n"
    "  create [--replace] [--owner PID]      plan on stdin (preload/plan-format.md)\n"
    "  destroy [-w NAME] [--force]\n"
    "  serve                                 a plan on stdin, then steps and rules; says what is committed\n"
    "  relay [-w NAME] [--shared | --synced | --live [--asked]] [--timeout S]\n"
    "                                        frames about files and steps of this node on stdout, of others on stdin\n"
    "  ps | events [--since N] [-w NAME]     JSON lines\n"
    "  list                                  all boards of this user\n"
    "  step-begin NAME | step-end NAME STATUS   STATUS: ok, failed or a number\n"
    "  exec [-w NAME] [--lib PATH] [--owner PID] --app NAME -- PROG ARGS...\n"
    "  wait [-w NAME] [--timeout S] PATH...  until committed\n"
    "  reap [-w NAME]\n"
    "  spill [-w NAME] --bytes N             moves files that grow to the lower layer; says how much it freed\n"
    "  match [-w NAME | --plan] PATH...      the rule of each path\n"
    "-w defaults to $CAPIO_WORKFLOW_NAME, else CAPIO\n";

int mr_say(int code, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    fputs("millrace-board: ", stderr);
    vfprintf(stderr, format, a);
    fputc('\n', stderr);
    va_end(a);
    return code;
}

static char *read_all(FILE *f)
{
    size_t size = 1 << 16, n = 0;
    char *text = malloc(size);
    for (size_t got; (got = fread(text + n, 1, size - n - 1, f)) > 0;) {
        n += got;
        if (size - n < 4096) text = realloc(text, size *= 2);
    }
    text[n] = 0;
    return text;
}

int mr_board_live(void)
{
    struct mr_guard g;
    int live = mr_b->owner && mr_alive(mr_b->owner, mr_b->owner_start);
    mr_lock(&g);
    mr_reap();
    for (u32 i = 0; i < mr_used(MR_PROCS) && !live; i++) live = mr_proc_at(i)->slot.used != 0;
    mr_unlock(&g);
    return live;
}

int mr_open_board(const struct mr_options *o)
{
    char shm[160];
    mr_board_name(shm, sizeof shm, getuid(), o->workflow);
    int err = mr_board_open(shm, getuid());
    if (err == -ENOENT) return mr_say(MR_NO_BOARD, "no board of workflow %s", o->workflow);
    return err < 0 ? mr_say(MR_FAILED_COMMAND, "cannot open %s: %s", shm, strerror(-err)) : 0;
}

/* ---- create and destroy ---- */

static void close_board(int forced)
{
    mr_store(&mr_b->gone, 1);
    unlink(mr_b->shm);
    for (u32 i = 0; i < mr_used(MR_FILES) && forced; i++) mr_file_wake(mr_file_at(i));
    munmap(mr_b, mr_b->bytes);
    mr_b = 0;
}

static int is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    int entries = 0;
    while (d && entries < 3 && readdir(d)) entries++;
    if (d) closedir(d);
    return entries < 3;
}

static int fill(const char *text, const struct mr_plan *plan, const struct mr_options *o)
{
    char why[200];
    char *real = realpath(plan->dir, 0);
    if (!real) return mr_say(MR_FAILED_COMMAND, "%s: %s", plan->dir, strerror(errno));
    if (strlen(real) > MR_DIR_MAX)
        return mr_say(MR_USAGE, "the name of the managed directory has %zu bytes, and may have %u at most", strlen(real), MR_DIR_MAX);
    mr_b->uid = getuid();
    mr_b->created = mr_now();
    mr_b->created_wall = mr_wall();
    mr_b->workflow = mr_text_add(plan->workflow, strlen(plan->workflow));
    mr_b->dir = mr_text_add(real, strlen(real));
    mr_b->dir_len = (u32)strlen(real);
    mr_b->links = mr_oddities(real);
    int fresh = is_empty(real);
    if (!o->owner || !fresh) mr_b->links |= mr_ways_in(real); /* the new directory of a run is not known to any process yet */
    mr_b->owner = o->owner;
    if (o->owner && !mr_task_state(o->owner, &mr_b->owner_start, 0, 0)) return mr_say(MR_USAGE, "no process %u", o->owner);
    int line = mr_plan_load(text, why, sizeof why);
    if (!line && !fresh) mr_known_names(real);
    free(real);
    if (line) return mr_say(MR_USAGE, "plan line %d: %s", line, why);
    if (mr_take_run(MR_EVENTS, MR_EVENT_COUNT) == MR_NONE) return mr_say(MR_FAILED_COMMAND, "no room in /dev/shm");
    return 0;
}

/* Boards whose owner was killed, also of other versions of this program: the first fields are the same in all. Not those
 * of `millrace stream run`: they tell the next run which files are complete and must not be lost. */
static int is_of_run(const char *name)
{
    const char *run = strstr(name, ".run");
    return run && strspn(run + 4, "0123456789.") == strlen(run + 4) && run[4];
}

static void sweep_dead(void)
{
    char prefix[64], path[400];
    snprintf(prefix, sizeof prefix, "millrace.%u.", getuid());
    DIR *d = opendir("/dev/shm");
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        struct mr_board head = {0};
        snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
        int fd = strncmp(e->d_name, prefix, strlen(prefix)) || is_of_run(e->d_name) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) continue;
        ssize_t n = read(fd, &head, sizeof head);
        int dead = n >= (ssize_t)offsetof(struct mr_board, created_wall) && head.magic == MR_MAGIC && fstat(fd, &st) == 0;
        if (dead && head.ready) dead = head.owner && !mr_alive(head.owner, head.owner_start);
        else if (dead) dead = time(0) - st.st_mtime > 60; /* its maker was killed while it made it */
        close(fd);
        if (!dead) continue;
        if (head.version == MR_VERSION && head.ready && mr_board_open(path, getuid()) == 0) {
            int live = mr_board_live();
            if (!live) close_board(1);
            else munmap(mr_b, mr_b->bytes);
            mr_b = 0;
        } else unlink(path);
    }
    if (d) closedir(d);
}

/* A board from the text of a plan; it is in mr_b afterwards. */
int mr_make_board(const char *text, const struct mr_options *o)
{
    char why[200], shm[160], making[200];
    struct mr_plan plan = {0};
    int line = mr_plan_head(text, &plan, why, sizeof why);
    if (line) return mr_say(MR_USAGE, "plan line %d: %s", line, why);
    sweep_dead();
    mr_board_name(shm, sizeof shm, getuid(), plan.workflow);
    if (mr_board_open(shm, getuid()) == 0) {
        if (mr_board_live() && !o->replace)
            return mr_say(MR_LIVE, "workflow %s is running (%s); end it or use destroy --force", plan.workflow, shm);
        close_board(1);
    }
    /* made aside and linked into place whole, so that no process ever maps half a board */
    snprintf(making, sizeof making, "%s.%d", shm, (int)getpid());
    int fd = open(making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return mr_say(MR_FAILED_COMMAND, "%s: %s", making, strerror(errno));
    int err = mr_board_layout(fd, making);
    close(fd);
    int code = err < 0 ? mr_say(MR_FAILED_COMMAND, "cannot lay out %s: %s", making, strerror(-err)) : fill(text, &plan, o);
    if (!code) {
        strcpy(mr_b->shm, shm);
        mr_store(&mr_b->ready, 1);
        unlink(shm); /* a dead one of another version */
        if (link(making, shm) < 0) code = mr_say(MR_LIVE, "%s: %s", shm, strerror(errno));
        else if (o->owner && !mr_alive(o->owner, mr_b->owner_start)) {
            unlink(shm); /* what cleans up after it may have looked before there was a board */
            code = mr_say(MR_USAGE, "process %u has ended", o->owner);
        }
    }
    unlink(making);
    return code;
}

static int create(const struct mr_options *o)
{
    char *text = read_all(stdin);
    int code = mr_make_board(text, o);
    free(text);
    return code;
}

/* The last board of the user takes the offsets of libc's sites with it. */
static void sweep(void)
{
    char prefix[64], sites[80], path[400];
    snprintf(prefix, sizeof prefix, "millrace.%u.", getuid());
    snprintf(sites, sizeof sites, "%ssites.", prefix);
    for (int removing = 0; removing < 2; removing++) {
        DIR *d = opendir("/dev/shm");
        for (struct dirent *e; d && (e = readdir(d));) {
            int is_sites = !strncmp(e->d_name, sites, strlen(sites));
            if (!is_sites && !strncmp(e->d_name, prefix, strlen(prefix))) removing = 2;
            snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
            if (is_sites && removing == 1) unlink(path);
        }
        if (d) closedir(d);
    }
}

void mr_remove_board(void)
{
    close_board(1);
    sweep();
}

static int destroy(const struct mr_options *o)
{
    char shm[160];
    mr_board_name(shm, sizeof shm, getuid(), o->workflow);
    int err = mr_board_open(shm, getuid());
    if (err == -ENOENT) return mr_say(MR_NO_BOARD, "no board of workflow %s", o->workflow);
    if (err < 0) return unlink(shm) < 0 ? mr_say(MR_FAILED_COMMAND, "%s: %s", shm, strerror(errno)) : 0;
    mr_b->owner = 0;
    if (mr_board_live() && !o->force) return mr_say(MR_FAILED_COMMAND, "workflow %s has live processes", o->workflow);
    close_board(1);
    sweep();
    return 0;
}

/* ---- steps ---- */

static int step_mark(const struct mr_options *o, int begins)
{
    struct mr_guard g;
    if (o->rest_count != (begins ? 1 : 2)) return mr_say(MR_USAGE, "%s", begins ? "step-begin NAME" : "step-end NAME STATUS");
    int code = mr_open_board(o);
    if (code) return code;
    u32 i = mr_step_find(o->rest[0]);
    if (i == MR_NONE) return mr_say(MR_FAILED_COMMAND, "workflow %s has no step %s", o->workflow, o->rest[0]);
    struct mr_step *s = mr_step_at(i);
    mr_lock(&g);
    if (begins) {
        s->closed = s->ended_failed = s->ended_ok = s->reason = 0;
        for (u32 k = 0; k < mr_used(MR_FILES); k++) {
            struct mr_file *f = mr_file_at(k);
            if (f->state != MR_FAILED || !mr_produces(mr_rule_at(f->rule), i)) continue;
            f->closes = f->doubts = 0;
            mr_file_reset(k);
        }
    } else {
        int ok = !strcmp(o->rest[1], "ok") || !strcmp(o->rest[1], "0");
        s->closed = ok ? 1 : 2;
        if (!ok && !s->reason) s->reason = mr_text_add("it was reported as failed", 25);
        mr_event(MR_EV_ENDED, 0, i, 0, ok ? "ended for good" : "failed for good");
        mr_step_changed(i);
    }
    mr_unlock(&g);
    return 0;
}

static int wait_command(const struct mr_options *o)
{
    int code = mr_open_board(o);
    if (code) return code;
    mr_wait_limit = o->timeout > 0 ? (u64)(o->timeout * 1e9) : ~(u64)0 >> 1;
    for (int i = 0; i < o->rest_count; i++) {
        int is_dir;
        struct mr_guard g;
        u32 len = (u32)strlen(o->rest[i]), rule = mr_rule_find(o->rest[i], len, &is_dir);
        if (rule == MR_NONE) continue;
        mr_lock(&g);
        u32 file = mr_file_get(o->rest[i], len, rule, is_dir);
        mr_unlock(&g);
        int err = file == MR_NONE ? -ENOSPC : mr_wait_for(MR_NONE, file, MR_WAIT_COMMIT, 0, 0);
        if (err == -ETIMEDOUT) return mr_say(MR_TOOK_TOO_LONG, "%s is not committed yet", o->rest[i]);
        if (err < 0) return mr_say(MR_FAILED_COMMAND, "%s failed: %s", o->rest[i], mr_text_at(mr_file_at(file)->reason));
    }
    return 0;
}

static int reap_command(const struct mr_options *o)
{
    struct mr_guard g;
    int code = mr_open_board(o);
    if (code) return code;
    mr_lock(&g);
    u32 n = mr_reap();
    mr_unlock(&g);
    printf("%u\n", n);
    return 0;
}

static int spill_command(const struct mr_options *o)
{
    u64 freed = 0;
    int code = mr_open_board(o);
    if (code) return code;
    for (u64 more; freed < o->bytes && (more = mr_relieve(MR_NONE)); freed += more) {}
    printf("%llu\n", (unsigned long long)freed);
    return 0;
}

/* ---- the command line ---- */

static const char *next(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc) exit(mr_say(MR_USAGE, "%s needs a value", argv[*i]));
    return argv[++*i];
}

int main(int argc, char **argv)
{
    const char *env = getenv("CAPIO_WORKFLOW_NAME"), *command = argc > 1 ? argv[1] : "";
    struct mr_options o = {.workflow = env && *env ? env : "CAPIO"};
    o.rest = argv + argc;
    for (int i = 2; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--")) {
            o.rest = argv + i + 1;
            o.rest_count = argc - i - 1;
            break;
        }
        if (a[0] != '-') {
            o.rest = argv + i;
            o.rest_count = argc - i;
            break;
        }
        if (!strcmp(a, "-w")) o.workflow = next(argc, argv, &i);
        else if (!strcmp(a, "--app")) o.app = next(argc, argv, &i);
        else if (!strcmp(a, "--lib")) o.lib = next(argc, argv, &i);
        else if (!strcmp(a, "--owner")) o.owner = (u32)atoi(next(argc, argv, &i));
        else if (!strcmp(a, "--timeout")) o.timeout = atof(next(argc, argv, &i));
        else if (!strcmp(a, "--since")) o.since = strtoull(next(argc, argv, &i), 0, 10);
        else if (!strcmp(a, "--bytes")) o.bytes = strtoull(next(argc, argv, &i), 0, 10);
        else if (!strcmp(a, "--replace")) o.replace = 1;
        else if (!strcmp(a, "--force")) o.force = 1;
        else if (!strcmp(a, "--plan")) o.plan = 1;
        else if (!strcmp(a, "--shared")) o.shared = 1;
        else if (!strcmp(a, "--synced")) o.shared = o.synced = 1;
        else if (!strcmp(a, "--live")) o.live = 1;
        else if (!strcmp(a, "--asked")) o.asked = 1;
        else return mr_say(MR_USAGE, "unknown option %s", a);
    }
    if (!strcmp(command, "create")) return create(&o);
    if (!strcmp(command, "destroy")) return destroy(&o);
    if (!strcmp(command, "serve")) return mr_command_serve(&o);
    if (!strcmp(command, "relay")) return mr_command_relay(&o);
    if (!strcmp(command, "ps")) return mr_command_ps(&o);
    if (!strcmp(command, "events")) return mr_command_events(&o);
    if (!strcmp(command, "list")) return mr_command_list(&o);
    if (!strcmp(command, "match")) return mr_command_match(&o);
    if (!strcmp(command, "step-begin")) return step_mark(&o, 1);
    if (!strcmp(command, "step-end")) return step_mark(&o, 0);
    if (!strcmp(command, "exec")) return mr_command_exec(&o);
    if (!strcmp(command, "wait")) return wait_command(&o);
    if (!strcmp(command, "reap")) return reap_command(&o);
    if (!strcmp(command, "spill")) return spill_command(&o);
    int help = !strcmp(command, "--help") || !strcmp(command, "help");
    fputs(usage, help ? stdout : stderr);
    return help ? 0 : MR_USAGE;
}
