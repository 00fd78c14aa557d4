/* Is a wait hopeless? Assume that all blocked threads stay blocked, then free those who wait for a
 * step that can still move, until nothing changes. What remains waits for itself.
 *
 * A process can move when one of its threads is neither in a wait of ours nor waiting for a child; where one
 * thread is in a wait of ours, others may also be parked in a futex without a time limit. A step without a live process can still be started, so it can move too, unless it is over. */
#include "board.h"

#include <sys/mman.h>

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
int mr_cannot_move(u32 proc)
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

/* What is assumed: who is stuck. Counted by step and by instance, so that a thousand of each can be looked at often. */
struct look {
    u32 procs, steps; /* those that come meanwhile are seen next time */
    u8 *stuck, *waits;            /* of processes; waits: in a wait of ours */
    u32 *present, *movers;        /* of steps: processes, and those that can move */
    u32 *can_move, *have_waits;   /* of instances: processes that can move, that are in a wait of ours */
};

static int step_stuck(const struct look *l, u32 step)
{
    return step < l->steps && !l->movers[step] && (l->present[step] || mr_step_over(step));
}

static int file_stuck(const struct look *l, u32 file)
{
    const struct mr_rule *r = mr_rule_at(mr_file_at(file)->rule);
    for (u32 i = 0; i < r->producer_count; i++)
        if (!step_stuck(l, *mr_list_at(r->producers + i))) return 0;
    for (u32 i = 0; i < r->dep_count; i++) {
        const char *path = mr_text_at(*mr_list_at(r->deps + i));
        u32 dep = mr_file_find(path, (u32)mr_len(path));
        if (dep != MR_NONE && dep != file && mr_file_at(dep)->state < MR_COMMITTED && !file_stuck(l, dep)) return 0;
    }
    return 1;
}

static void moves(struct look *l, u32 proc)
{
    const struct mr_proc *p = mr_proc_at(proc);
    l->stuck[proc] = 0;
    if (p->step < l->steps) l->movers[p->step]++;
    if (p->instance != MR_NONE) l->can_move[p->instance]++;
}

static void look_at_wait(struct look *l, u32 i, int *changed)
{
    const struct mr_wait *w = mr_wait_at(i);
    if (!w->slot.used || w->proc >= l->procs || !l->stuck[w->proc] || file_stuck(l, w->file)) return;
    moves(l, w->proc);
    *changed = 1;
}

/* Frees those who wait for a step that can move, until nothing changes. Steps often wait for each other in the order in
 * which they began, or in the other: every second time from the end. */
static void settle(struct look *l)
{
    for (int changed = 1, back = 0; changed; back = !back) {
        changed = 0;
        for (u32 i = 0, m = mr_used(MR_WAITS); i < m; i++) look_at_wait(l, back ? m - 1 - i : i, &changed);
        /* a process that waits for its children moves when they do; so does the keeper of the instance */
        for (u32 i = 0; i < l->procs; i++) {
            u32 instance = mr_proc_at(i)->instance;
            if (!l->stuck[i] || instance == MR_NONE || l->waits[i] || !l->can_move[instance]) continue;
            moves(l, i);
            changed = 1;
        }
    }
}

static void count(struct look *l)
{
    for (u32 i = 0; i < l->steps; i++) l->present[i] = l->movers[i] = 0;
    for (u32 i = 0; i < mr_used(MR_INSTANCES); i++) l->can_move[i] = 0;
    for (u32 i = 0; i < l->procs; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used) continue;
        if (p->step < l->steps) l->present[p->step]++;
        if (!l->stuck[i]) moves(l, i);
    }
}

/* First assume that every process that may be stuck is stuck. Nearly always some process is at work even so, and the kernel need
 * not be asked what each thread does. An instance without a process that waits for a file is at work. */
static void assume(struct look *l)
{
    for (u32 i = 0, m = mr_used(MR_WAITS); i < m; i++) {
        const struct mr_wait *w = mr_wait_at(i);
        if (!w->slot.used || w->proc >= l->procs) continue;
        l->waits[w->proc] = 1;
        if (mr_proc_at(w->proc)->instance != MR_NONE) l->have_waits[mr_proc_at(w->proc)->instance]++;
    }
    for (u32 i = 0; i < l->procs; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        int waits = l->waits[i] || (p->instance != MR_NONE && l->have_waits[p->instance]);
        l->stuck[i] = (u8)(p->slot.used && p->state == MR_ALIVE && !(p->flags & MR_EXECING) && waits);
    }
}

static void name_waits(struct mr_text *t, const struct look *l)
{
    int first = 1;
    for (u32 i = 0, m = mr_used(MR_WAITS); i < m; i++) {
        const struct mr_wait *w = mr_wait_at(i);
        if (!w->slot.used || w->proc >= l->procs || !l->stuck[w->proc]) continue;
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
    u32 instances = mr_b->region[MR_INSTANCES].cap, me = mr_wait_at(wait)->proc, found = 0;
    struct look l = {.procs = mr_used(MR_PROCS), .steps = mr_used(MR_STEPS)};
    u64 bytes = (u64)(l.steps * 2 + instances * 2) * 4 + l.procs * 2;
    long memory = mr_sys6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory < 0 && memory > -4096) return 0;
    l.present = (u32 *)memory;
    l.movers = l.present + l.steps;
    l.can_move = l.movers + l.steps;
    l.have_waits = l.can_move + instances;
    l.stuck = (u8 *)(l.have_waits + instances);
    l.waits = l.stuck + l.procs;
    assume(&l);
    count(&l);
    settle(&l);
    if (me < l.procs && l.stuck[me]) {
        for (u32 i = 0; i < l.procs; i++) l.stuck[i] = (u8)(l.stuck[i] && mr_cannot_move(i));
        count(&l);
        settle(&l);
        found = l.stuck[me];
    }
    struct mr_text t = {why, why + size};
    if (found) {
        mr_put(&t, "deadlock: ");
        name_waits(&t, &l);
    }
    mr_sys(SYS_munmap, memory, bytes, 0, 0);
    return (int)found;
}
