/* Is a wait hopeless? Assume that everybody who is blocked stays blocked, then free those who wait for a
 * step that can still move, until nothing changes. What remains waits for itself.
 *
 * A process can move when one of its threads is neither in a wait of ours nor waiting for a child; where one
 * thread is in a wait of ours, others may also be parked in a futex without a time limit. A step without a live process can still be started, so it can move too, unless it is over. */
#include "board.h"

#define CHECKED 1024u

static int blocked_call(u32 pid, u32 tid, int may_park)
{
    char path[64], text[128];
    struct mr_text t = {path, path + sizeof path};
    mr_put(&t, "/proc/");
    mr_put_n(&t, pid);
    mr_put(&t, "/task/");
    mr_put_n(&t, tid);
    mr_put(&t, "/syscall");
    long fd = mr_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT;
    long n = mr_sys(SYS_read, fd, text, sizeof text - 1, 0);
    mr_sys(SYS_close, fd, 0, 0, 0);
    if (n <= 0 || text[0] < '0' || text[0] > '9') return 0;
    text[n] = 0;
    u64 nr = mr_number(text);
    if (nr == SYS_wait4 || nr == SYS_waitid) return 1;
    if (nr != SYS_futex || !may_park) return 0;
    const char *p = text; /* "202 uaddr op value timeout ..." */
    for (int field = 0; field < 4 && *p; p++) field += *p == ' ';
    return p[0] == '0' && p[1] == 'x' && p[2] == '0' && p[3] == ' ';
}

/* tid 0: any thread */
static int waits_here(u32 proc, u32 tid)
{
    for (u32 i = 0, n = mr_used(MR_WAITS); i < n; i++) {
        const struct mr_wait *w = mr_wait_at(i);
        if (w->slot.used && w->proc == proc && (!tid || w->tid == tid)) return 1;
    }
    return 0;
}

/* All threads of the process are blocked on others. */
static int cannot_move(u32 proc)
{
    const struct mr_proc *p = mr_proc_at(proc);
    char path[40], list[1024];
    struct mr_text t = {path, path + sizeof path};
    if (p->state != MR_ALIVE || (p->flags & MR_EXECING)) return 0;
    if (p->flags & MR_KEEPER) return 1;
    mr_put(&t, "/proc/");
    mr_put_n(&t, p->pid);
    mr_put(&t, "/task");
    long fd = mr_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    int blocked = 1, may_park = waits_here(proc, 0);
    for (;;) {
        long n = mr_sys(SYS_getdents64, fd, list, sizeof list, 0);
        if (n <= 0) break;
        for (long at = 0; at < n && blocked;) {
            const char *e = list + at, *name = e + 19;
            at += *(const u16 *)(const void *)(e + 16);
            if (*name == '.') continue;
            u32 tid = (u32)mr_number(name);
            if (!waits_here(proc, tid) && !blocked_call(p->pid, tid, may_park)) blocked = 0;
        }
    }
    mr_sys(SYS_close, fd, 0, 0, 0);
    return blocked;
}

static int step_stuck(u32 step, const u8 *stuck, u32 n)
{
    int any = 0;
    for (u32 i = 0; i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used || p->step != step) continue;
        if (!stuck[i]) return 0;
        any = 1;
    }
    return any || mr_step_over(step);
}

static int file_stuck(u32 file, const u8 *stuck, u32 n)
{
    const struct mr_rule *r = mr_rule_at(mr_file_at(file)->rule);
    for (u32 i = 0; i < r->producer_count; i++)
        if (!step_stuck(*mr_list_at(r->producers + i), stuck, n)) return 0;
    for (u32 i = 0; i < r->dep_count; i++) {
        const char *path = mr_text_at(*mr_list_at(r->deps + i));
        u32 dep = mr_file_find(path, (u32)mr_len(path));
        if (dep != MR_NONE && dep != file && mr_file_at(dep)->state < MR_COMMITTED && !file_stuck(dep, stuck, n)) return 0;
    }
    return 1;
}

static void name_waits(struct mr_text *t, const u8 *stuck, u32 n)
{
    int first = 1;
    for (u32 i = 0, m = mr_used(MR_WAITS); i < m; i++) {
        const struct mr_wait *w = mr_wait_at(i);
        if (!w->slot.used || w->proc >= n || !stuck[w->proc]) continue;
        const struct mr_proc *p = mr_proc_at(w->proc);
        const struct mr_rule *r = mr_rule_at(mr_file_at(w->file)->rule);
        if (!first) mr_put(t, "; ");
        first = 0;
        mr_put(t, p->step == MR_NONE ? "no step" : mr_text_at(mr_step_at(p->step)->name));
        mr_put(t, " (pid ");
        mr_put_n(t, p->pid);
        mr_put(t, ") waits for ");
        mr_put(t, mr_text_at(mr_file_at(w->file)->path));
        mr_put(t, " of ");
        for (u32 k = 0; k < r->producer_count; k++) {
            if (k) mr_put(t, ", ");
            mr_put(t, mr_text_at(mr_step_at(*mr_list_at(r->producers + k))->name));
        }
    }
}

/* Not under the lock: it reads /proc. What changes meanwhile shows as progress, the caller looks twice. */
int mr_deadlocked(u32 wait, char *why, size_t size)
{
    u8 stuck[CHECKED];
    u32 n = mr_used(MR_PROCS);
    if (n > CHECKED) return 0;
    for (u32 i = 0; i < n; i++) stuck[i] = (u8)(mr_proc_at(i)->slot.used && cannot_move(i));
    for (int changed = 1; changed;) {
        changed = 0;
        for (u32 i = 0, m = mr_used(MR_WAITS); i < m; i++) {
            const struct mr_wait *w = mr_wait_at(i);
            if (!w->slot.used || w->proc >= n || !stuck[w->proc] || file_stuck(w->file, stuck, n)) continue;
            stuck[w->proc] = 0;
            changed = 1;
        }
        /* a process that waits for its children moves when they do; so does the keeper of the instance */
        for (u32 i = 0; i < n; i++) {
            const struct mr_proc *p = mr_proc_at(i);
            int waits = 0;
            if (!stuck[i] || p->instance == MR_NONE) continue;
            for (u32 k = 0, m = mr_used(MR_WAITS); k < m; k++)
                waits |= mr_wait_at(k)->slot.used && mr_wait_at(k)->proc == i;
            for (u32 k = 0; k < n && !waits; k++) {
                const struct mr_proc *q = mr_proc_at(k);
                if (!q->slot.used || stuck[k] || q->instance != p->instance) continue;
                stuck[i] = 0;
                changed = 1;
                break;
            }
        }
    }
    u32 me = mr_wait_at(wait)->proc;
    if (me >= n || !stuck[me]) return 0;
    struct mr_text t = {why, why + size};
    mr_put(&t, "deadlock: ");
    name_waits(&t, stuck, n);
    return 1;
}
