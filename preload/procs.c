/* Processes and instances of steps. */
#include "board.h"

#define EMBRYO_LOOKS 30 /* ten times a second */

u32 mr_proc_find(u32 pid)
{
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (p->slot.used && p->state == MR_ALIVE && p->pid == pid) return i;
    }
    return MR_NONE;
}

static void say(u32 kind, const struct mr_proc *p, const char *what, const char *path)
{
    char text[200];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, "process ");
    mr_put_n(&t, p->pid);
    mr_put(&t, what);
    mr_put(&t, path);
    mr_event(kind, 0, p->step, p->pid, text);
}

/* ---- instances ---- */

static u32 instance_new(u32 step, u32 pid)
{
    u32 i = mr_take(MR_INSTANCES);
    if (i == MR_NONE) return MR_NONE;
    struct mr_instance *n = mr_instance_at(i);
    n->step = step;
    n->root_pid = pid;
    n->status = 137; /* until its root says otherwise */
    struct mr_step *s = mr_step_at(step);
    if (!s->expected && !s->running && !s->closed) s->ended_failed = s->reason = 0; /* a new attempt */
    s->running++;
    return i;
}

/* What an instance closed when it may not have written all of it: complete if it says at its end that all is well. */
static void settle_doubts(u32 instance, int well)
{
    for (u32 i = 0, n = mr_used(MR_FILES); i < n; i++) {
        struct mr_file *f = mr_file_at(i);
        if (!f->doubts || f->doubted_by != instance + 1) continue;
        if (well) f->closes += f->doubts;
        else if (f->commit == MR_ON_CLOSE) mr_file_fail(i, mr_instance_at(instance)->step, "its producer failed after it had closed it");
        f->doubts = 0;
    }
}

void mr_count_close(u32 file, u32 proc, int doubtful)
{
    struct mr_file *f = mr_file_at(file);
    u32 instance = proc == MR_NONE ? MR_NONE : mr_proc_at(proc)->instance;
    mr_b->progress++;
    if (instance != MR_NONE && (doubtful || mr_instance_at(instance)->spoiled)) {
        f->doubts = f->doubted_by == instance + 1 ? f->doubts + 1 : 1;
        f->doubted_by = instance + 1;
        return;
    }
    f->closes++;
    mr_file_evaluate(file);
}

void mr_spoil(u32 proc, u32 how)
{
    struct mr_guard g;
    if (proc == MR_NONE) return;
    mr_lock(&g);
    u32 i = mr_proc_at(proc)->instance;
    if (i != MR_NONE && mr_instance_at(i)->spoiled < how) mr_instance_at(i)->spoiled = how;
    mr_unlock(&g);
}

void mr_instance_end(u32 index)
{
    struct mr_instance *n = mr_instance_at(index);
    struct mr_step *s = mr_step_at(n->step);
    u32 step = n->step;
    char text[160];
    struct mr_text t = {text, text + sizeof text};
    /* whatever it says: it was told that an input is broken, so what it made of it is not what it was meant to be */
    int broken = n->status == 0 && n->spoiled == MR_BROKEN, well = n->status == 0 && !broken;
    if (well) {
        mr_put(&t, "ended well");
        s->ended_ok++;
    } else if (broken) {
        mr_put(&t, "it exited with status 0, although it had got an error for one of its inputs");
    } else if (n->status > 128 && n->status < 256) {
        mr_put(&t, "its process ");
        mr_put_n(&t, n->root_pid);
        mr_put(&t, " was killed by signal ");
        mr_put_n(&t, (u64)(n->status - 128));
    } else {
        mr_put(&t, "it exited with status ");
        mr_put_n(&t, (u64)(u32)n->status);
    }
    if (!well) {
        u32 why = mr_text_add(text, mr_len(text));
        s->reason = why == MR_NONE ? 0 : why;
        s->ended_failed++;
    }
    s->running--;
    s->idle_since = mr_now();
    mr_event(broken ? MR_EV_BROKEN : MR_EV_ENDED, 0, step, 0, text);
    settle_doubts(index, well);
    mr_give(MR_INSTANCES, index);
    mr_step_changed(step);
}

static void instance_leave(u32 index)
{
    struct mr_instance *n = mr_instance_at(index);
    if (index != MR_NONE && n->live && --n->live == 0) mr_instance_end(index);
}

/* The instance that a new process of the step belongs to: its nearest ancestor's, else a new one. */
static u32 instance_for(u32 step, u32 pid, u32 parent_pid, u32 *flags)
{
    if (step == MR_NONE) return MR_NONE;
    for (int depth = 0; parent_pid > 1 && depth < 32; depth++) {
        u32 i = mr_proc_find(parent_pid);
        if (i != MR_NONE && mr_proc_at(i)->step == step) return mr_proc_at(i)->instance;
        u32 above = 0;
        if (!mr_task_state(parent_pid, 0, &above, 0)) break;
        parent_pid = above;
    }
    *flags |= MR_ROOT;
    return instance_new(step, pid);
}

/* ---- processes ---- */

u32 mr_proc_join(u32 pid, u64 start, u32 step, u32 parent_pid)
{
    u32 i = mr_proc_find(pid);
    if (i != MR_NONE && mr_proc_at(i)->start != start) { /* an older process of that number */
        mr_proc_end(i, MR_END_KILLED, 137);
        i = MR_NONE;
    }
    if (i != MR_NONE && mr_proc_at(i)->step == step) {
        mr_proc_at(i)->flags &= ~(u32)MR_EXECING;
        return i;
    }
    u32 flags = 0, left = MR_NONE;
    if (i != MR_NONE) left = mr_proc_at(i)->instance; /* exec'd into another step */
    u32 instance = instance_for(step, pid, parent_pid, &flags);
    if (i == MR_NONE) i = mr_take(MR_PROCS);
    if (i == MR_NONE) {
        if ((flags & MR_ROOT) && instance != MR_NONE) mr_give(MR_INSTANCES, instance);
        return MR_NONE;
    }
    struct mr_proc *p = mr_proc_at(i);
    p->pid = pid;
    p->start = start;
    p->since = mr_now();
    p->step = step;
    p->instance = instance;
    p->flags = flags;
    if (instance != MR_NONE) mr_instance_at(instance)->live++;
    p->state = MR_ALIVE;
    if (left != MR_NONE) instance_leave(left);
    return i;
}

u32 mr_proc_embryo(u32 proc, u32 maker)
{
    u32 i = mr_take(MR_PROCS);
    if (i == MR_NONE) return MR_NONE;
    struct mr_proc *p = mr_proc_at(i);
    const struct mr_proc *from = mr_proc_at(proc);
    p->since = mr_now();
    p->step = from->step;
    p->instance = from->instance;
    p->maker = maker;
    p->state = MR_EMBRYO;
    if (p->instance != MR_NONE) mr_instance_at(p->instance)->live++;
    for (u32 h = from->holds; h; h = mr_hold_at(h - 1)->slot.link)
        mr_hold_add(i, mr_hold_at(h - 1)->fd, mr_hold_at(h - 1)->ofd);
    u32 turned = 0; /* in the parent's order, the latest first */
    for (u32 h = p->holds, next; h; h = next) {
        next = mr_hold_at(h - 1)->slot.link;
        mr_hold_at(h - 1)->slot.link = turned;
        turned = h;
    }
    p->holds = turned;
    return i;
}

/* The maker knows its number before it has said a word itself. */
void mr_proc_conceived(u32 proc, u32 maker, u32 pid)
{
    struct mr_proc *p = mr_proc_at(proc);
    if (p->slot.used && p->state == MR_EMBRYO && p->maker == maker) p->pid = pid;
}

void mr_proc_born(u32 proc, u32 pid, u64 start)
{
    struct mr_proc *p = mr_proc_at(proc);
    p->pid = pid;
    p->start = start;
    p->since = mr_now();
    p->state = MR_ALIVE;
}

void mr_proc_end(u32 proc, int how, s32 status)
{
    struct mr_proc *p = mr_proc_at(proc);
    if (!p->slot.used) return;
    int bad = how == MR_END_KILLED || (how == MR_END_EXIT && status != 0 && (p->flags & MR_ROOT));
    int meant = bad ? how : how == MR_END_EXIT && status != 0 ? MR_END_DOUBTFUL : MR_END_UNKNOWN;
    while (p->holds) {
        const struct mr_hold *h = mr_hold_at(p->holds - 1);
        mr_hold_drop(proc, h->fd, h->ofd, meant);
    }
    if (how == MR_END_KILLED) say(MR_EV_KILLED, p, " died without a word", "");
    for (u32 i = 0, n = mr_used(MR_WAITS); i < n; i++) {
        struct mr_wait *w = mr_wait_at(i);
        if (!w->slot.used || w->proc != proc) continue;
        mr_add(&mr_file_at(w->file)->waiters, (u32)-1);
        mr_give(MR_WAITS, i);
    }
    u32 instance = p->instance;
    if (instance != MR_NONE && (p->flags & MR_ROOT)) mr_instance_at(instance)->status = how == MR_END_UNKNOWN ? 0 : status;
    mr_give(MR_PROCS, proc);
    mr_b->progress++;
    if (instance != MR_NONE) instance_leave(instance);
}

int mr_any_dead(void)
{
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used) continue;
        if (p->state == MR_EMBRYO && !p->pid ? !mr_alive(p->maker, 0) : !mr_alive(p->pid, p->start)) return 1;
    }
    return 0;
}

/* A keeper knows how each process of its instance ended. When it was killed, those of which nothing else is known may have been
 * killed with it: what they wrote must not count as complete. */
static void mark_unkept(void)
{
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used || p->state != MR_ALIVE || !(p->flags & MR_KEEPER) || p->instance == MR_NONE) continue;
        if (!mr_alive(p->pid, p->start)) mr_instance_at(p->instance)->unkept = 1;
    }
}

u32 mr_reap(void)
{
    u32 found = 0;
    mark_unkept();
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used) continue;
        int unknown = p->state == MR_EMBRYO && !p->pid;
        if (unknown) {
            /* the child books itself at its first instruction; a maker that died in the middle may have left none. Looks
             * are counted, not time: after a standstill of the machine the child may be the last to go on */
            if (mr_alive(p->maker, 0) || ++p->status < EMBRYO_LOOKS) continue;
        } else if (p->state && mr_alive(p->pid, p->start)) {
            continue;
        }
        found++;
        int unkept = p->instance != MR_NONE && mr_instance_at(p->instance)->unkept;
        int untold = (p->flags & MR_EXECING) || unknown || !p->state;
        mr_proc_end(i, untold && !unkept ? MR_END_UNKNOWN : MR_END_KILLED, 137);
    }
    mr_b->last_reap = mr_now();
    return found;
}
