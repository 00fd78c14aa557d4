/* The size of a file that still grows: it is not known yet.
 *
 * Who asks by name gets the answer when the file is committed. A descriptor is another matter: stdio, cat and
 * most others ask for its size when they have opened a file, and do not trust it. The size so far would be the worst
 * answer: `head -c -10` and `split -n` take it for the whole. So the first question is answered as the kernel answers it
 * for files whose size it does not know (/proc): 0, and programs read to the end, as they do there. A second question
 * (stdio asks again to seek to the end) waits for the commit. A program that takes 0 for the size and reads nothing
 * (cmp -s) is reported, so that a file is never taken for empty without a word. */
#include "local.h"

#include <sys/stat.h>

u8 mr_told[MR_FDS];
u8 mr_touched[MR_FDS];

static void hide_size(const struct mr_call *c)
{
    if (c->nr == SYS_statx) ((struct statx *)c->a[4])->stx_size = 0;
    else ((struct stat *)c->a[c->nr == SYS_newfstatat ? 2 : 1])->st_size = 0;
}

/* fstat, or one of its relatives with an empty path */
long mr_stat_descriptor(const struct mr_call *c)
{
    long fd = c->a[0];
    u64 e = mr_entry(fd);
    if (likely(mr_entry_kind(e) != MR_READER)) {
        mr_entry_fresh(e);
        return mr_on(c, 0, e);
    }
    const struct mr_file *f = mr_file_at(mr_entry_index(e));
    struct mr_who who = mr_who(0);
    if (who.foreign) return mr_on(c, 0, e);
    int again = mr_load(&mr_told[fd]) != 0;
    if (mr_load(&f->state) != MR_COMMITTED) {
        int err = mr_wait_for(who.proc, mr_entry_index(e), again ? MR_WAIT_COMMIT : MR_WAIT_EXISTS, 0, 0);
        if (!err && !again) err = mr_wait_for(who.proc, mr_entry_index(e), MR_WAIT_DATA, 0, 1);
        if (err < 0) return err;
    }
    int last = mr_load(&f->state) == MR_COMMITTED; /* before the call: what it answers may be older than a commit after it */
    long ret = mr_on(c, 0, e);
    if (ret < 0) return ret;
    mr_store(&mr_told[fd], last ? 0 : 1); /* who has the last word need not be watched */
    if (last) return ret;
    hide_size(c);
    mr_store(&mr_self.told, 1);
    return ret;
}

static void report(u64 e)
{
    struct mr_guard g;
    mr_lock(&g);
    mr_event(MR_EV_TRUSTED, mr_file_at(mr_entry_index(e))->path + 1, mr_self.step, mr_self.pid,
        "it asked for the size while the file grew, got 0 because it was not known yet, and read nothing: give it the mode update");
    mr_unlock(&g);
}

/* Has another process of the instance the same file open? Then that one may go on to read it. */
static int others_have(long fd)
{
    struct stat st;
    if (mr_self.proc == MR_NONE || mr_sys(SYS_fstat, fd, &st, 0, 0) < 0) return 1;
    u32 instance = mr_proc_at(mr_self.proc)->instance;
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (!p->slot.used || p->instance != instance || i == mr_self.proc) continue;
        if (p->state != MR_ALIVE || mr_has_open(p->pid, &st)) return 1;
    }
    return 0;
}

/* The size was all that the program wanted to know, and it was told 0. */
void mr_size_at_close(long fd, u64 e)
{
    if (likely(mr_entry_kind(e) != MR_READER || !mr_told[fd] || mr_touched[fd])) return;
    if (mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0) != 0) return; /* others have read from it */
    if (mr_wait_for(mr_self.proc, mr_entry_index(e), MR_WAIT_COMMIT, 0, 0) < 0) return;
    if (mr_size_of(fd) > 0) report(e);
}

void mr_size_at_exit(void)
{
    if (likely(!mr_self.told)) return;
    /* python and node ask for the size of any input that they inherit, and leave it to others */
    for (u32 i = 0, n = mr_load(&mr_self.fd_top); i < n; i++)
        if (mr_fd[i] && mr_told[i] && (!(mr_fd[i] & MR_SHARED) || !others_have((long)i))) mr_size_at_close((long)i, mr_fd[i]);
}
