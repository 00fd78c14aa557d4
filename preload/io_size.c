/* The size of a file that still grows: nobody knows it yet.
 *
 * Who asks by name gets the answer when the file is committed. A descriptor is another matter: stdio, cat and
 * most others ask for its size when they have opened a file, and do not trust it. So the first question gets the
 * size so far, once there are bytes; a second one (stdio does so to seek to the end) waits for the commit. A
 * program that did trust it shows that by ending just there, or by reading nothing at all (wc -c, cmp -s): then the report
 * says so, and a mapping of that length fails, so that half a file is never taken for a whole one without a word. */
#include "local.h"

s64 mr_told[MR_FDS];
u8 mr_touched[MR_FDS];

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
    mr_store(&mr_told[fd], last ? 0 : (s64)mr_size_of(fd) + 1); /* who has the last word need not be watched */
    if (!last) mr_store(&mr_self.told, 1);
    return ret;
}

static void report(u64 e, u64 told)
{
    struct mr_guard g;
    char text[200];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, "it asked for the size while the file grew, got ");
    mr_put_n(&t, told);
    mr_put(&t, " bytes and read no more than these, but the file is longer: give it the mode update");
    mr_lock(&g);
    mr_event(MR_EV_TRUSTED, mr_file_at(mr_entry_index(e))->path + 1, mr_self.step, mr_self.pid, text);
    mr_unlock(&g);
}

/* Did the program take the size that it was told, up to `end`, for the size of the file? */
static int trusted(long fd, u64 e, u64 end)
{
    s64 told = mr_told[fd] - 1;
    if (told < 0 || end != (u64)told) return 0;
    if (mr_wait_for(mr_self.proc, mr_entry_index(e), MR_WAIT_COMMIT, 0, 0) < 0) return 0;
    if (mr_size_of(fd) <= end) return 0;
    report(e, end);
    return 1;
}

int mr_size_of_map_trusted(long fd, u64 e, u64 end)
{
    u64 told = (u64)mr_told[fd] - 1;
    return mr_told[fd] && end >= told && end <= ((told + 4095) & ~(u64)4095) && trusted(fd, e, told);
}

void mr_size_at_close(long fd, u64 e)
{
    if (likely(mr_entry_kind(e) != MR_READER || !mr_told[fd])) return;
    u64 told = (u64)mr_told[fd] - 1;
    long at = mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0);
    int unread = at == 0 && !mr_touched[fd]; /* the size was all that it wanted to know */
    if (unread || (at == (long)told && !(e & MR_SHARED))) trusted(fd, e, told);
}

void mr_size_at_exit(void)
{
    if (likely(!mr_self.told)) return;
    /* what is shared goes on elsewhere: python and node ask for the size of any input that they inherit */
    for (u32 i = 0, n = mr_load(&mr_self.fd_top); i < n; i++)
        if (!(mr_fd[i] & MR_SHARED)) mr_size_at_close((long)i, mr_fd[i]);
}
