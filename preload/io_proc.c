/* fork and exit. */
#include "local.h"

#include <sched.h>

/* A fork that copies our memory. Its place in the board, with all it holds open, is made before it exists:
 * otherwise the parent's close could look like the last one. */
static long fork_like(const struct mr_call *c)
{
    struct mr_guard g;
    struct mr_who who = mr_who(1);
    u32 child = MR_NONE;
    mr_fd_share_all();
    if (!who.foreign) mr_stage_end_all();
    mr_maps_forked();
    if (who.proc != MR_NONE) {
        mr_lock(&g);
        child = mr_proc_embryo(who.proc, who.foreign ? (u32)mr_sys(SYS_getpid, 0, 0, 0, 0) : mr_self.pid);
        mr_unlock(&g);
    }
    long pid = mr_plain(c);
    if (pid == 0) {
        u64 start = 0;
        if (mr_self.threads) mr_self.depth = !mr_self.vforks; /* threads count without order */
        mr_self.vforks = mr_self.threads = 0;
        mr_self.pid = mr_only_thread = (u32)mr_sys(SYS_getpid, 0, 0, 0, 0);
        mr_self.proc = child;
        if (child == MR_NONE) return 0;
        mr_task_state(mr_self.pid, &start, 0, 0);
        mr_lock(&g);
        mr_proc_born(child, mr_self.pid, start);
        mr_unlock(&g);
    } else if (child != MR_NONE) {
        mr_lock(&g);
        if (pid < 0) mr_proc_end(child, MR_END_UNKNOWN, 0);
        else mr_proc_conceived(child, who.foreign ? (u32)mr_sys(SYS_getpid, 0, 0, 0, 0) : mr_self.pid, (u32)pid);
        mr_unlock(&g);
    }
    return pid;
}

long mr_do_fork(const struct mr_call *c) { return fork_like(c); }

long mr_do_clone(const struct mr_call *c)
{
    /* with a stack of its own the child cannot return through here; the sites that do that are not ours */
    if ((c->a[0] & CLONE_VM) || c->a[1]) {
        mr_only_thread = 0;
        if (!mr_who(0).foreign) mr_stage_before_child();
        return mr_plain(c);
    }
    return fork_like(c);
}

long mr_do_exit(const struct mr_call *c)
{
    struct mr_guard g;
    struct mr_who who = mr_who(0);
    if (!who.foreign) {
        mr_stage_end_all();
        mr_size_at_exit();
        mr_self.on = 0;
        mr_self.proc = MR_NONE;
    }
    if (who.proc != MR_NONE) {
        mr_lock(&g);
        mr_proc_end(who.proc, MR_END_EXIT, (s32)(c->a[0] & 0xff));
        mr_unlock(&g);
    }
    return mr_plain(c);
}

/* ---- signal handlers ---- */

/* The kernel's struct begins with the handler: 0 default, 1 ignored. */
static int is_handler(const void *action) { return *(const u64 *)action > 1; }

int mr_has_handlers(void)
{
    u64 action[4] = {0};
    for (int n = 1; n <= 64; n++)
        if (mr_sys(SYS_rt_sigaction, n, 0, action, 8) == 0 && is_handler(action)) return 1;
    return 0;
}

long mr_do_sigaction(const struct mr_call *c)
{
    if (c->a[1] && mr_readable((const void *)c->a[1], 8) && is_handler((const void *)c->a[1])) mr_no_handlers = 0;
    return mr_plain(c);
}

/* io_uring would do I/O behind our back; programs fall back when the kernel has none. */
long mr_do_refuse(const struct mr_call *c)
{
    (void)c;
    return -ENOSYS;
}
