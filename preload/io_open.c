/* open, creat, close, dup and fcntl. */
#include "local.h"

/* Of openat2. Headers before Linux 5.6 do not have it. */
struct how {
    u64 flags, mode, resolve;
};

/* O_NOFOLLOW refuses links; one that we made is the file itself. */
static long open_followed(const struct mr_call *c)
{
    struct mr_call d = *c;
    struct how how;
    if (c->nr == SYS_openat2) {
        how = *(const struct how *)c->a[2];
        how.flags &= ~(u64)O_NOFOLLOW;
        how.resolve = 0;
        d.a[2] = (long)&how;
        d.a[3] = sizeof how;
    } else {
        d.a[c->nr == SYS_openat ? 2 : 1] &= ~(long)O_NOFOLLOW;
    }
    return mr_plain(&d);
}

/* Complete, and where it was: its descriptors are as plain as others. */
static int is_plain_by_now(const struct mr_file *f)
{
    return mr_load(&f->state) == MR_COMMITTED && !f->is_dir && !mr_load(&f->lower);
}

/* A file that may be complete, for reading. MR_GO: it is not as simple. */
long mr_open_complete(const struct mr_call *c, u32 file, long flags)
{
    if ((flags & (O_ACCMODE | O_TRUNC | O_NOFOLLOW | O_DIRECTORY | O_PATH)) || !is_plain_by_now(mr_file_at(file))) return MR_GO;
    long fd = mr_plain(c);
    mr_passes++;
    if (likely(fd >= 0)) mr_note_reader(mr_file_at(file));
    if (fd < 0 || likely(!mr_load(&mr_file_at(file)->lower))) return fd;
    mr_sys(SYS_close, fd, 0, 0, 0); /* it moved just now */
    return MR_GO;
}

/* Who may write as well, or wants the name only, is no reader of a growing file: such a descriptor is not
 * followed, so the file must be complete. */
static int wants_whole(long flags, const struct mr_rights *r)
{
    int follows = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH);
    return !follows && r->rule != MR_NONE && !r->producer && !r->is_dir && mr_load(&mr_file_at(r->file)->state) == MR_GROWING;
}

static long open_path(const struct mr_call *c, long dirfd, const char *path, long flags)
{
    struct mr_name n;
    struct mr_rights r;
    int where = flags & O_NOFOLLOW ? mr_name_of(dirfd, path, &n) : mr_name_followed(dirfd, path, &n);
    if (likely(where == MR_OUTSIDE)) return MR_GO;
    if (where == MR_ABOVE) {
        long fd = mr_plain(c);
        if (fd >= 0 && !mr_who(0).foreign) mr_fd_set(fd, mr_make_entry(MR_DIRECTORY, MR_NONE), 0);
        return fd;
    }
    if ((flags & O_TMPFILE) == O_TMPFILE) return MR_GO;
    r.file = mr_file_find(n.rel, n.len);
    long known = r.file == MR_NONE ? MR_GO : mr_open_complete(c, r.file, flags);
    if (known != MR_GO) return known;
    mr_rights_found(&n, &r);
    if (unlikely(r.rule == MR_NONE && (mr_b->links & MR_LINKS)) && !(flags & O_NOFOLLOW)) mr_follow_links(dirfd, path, &n, &r);
    int mode = flags & O_ACCMODE;
    if (unlikely(mode != O_RDONLY && (mr_b->links & MR_HARD_LINKS))) mr_other_name(dirfd, path, &n, &r);
    int reads = mode == O_RDONLY || (mode == O_RDWR && !(flags & (O_TRUNC | O_EXCL)));
    if (r.rule != MR_NONE && r.producer && (flags & O_TRUNC) && mode != O_RDONLY && r.file != MR_NONE &&
        (mr_load(&mr_file_at(r.file)->frontier) || mr_load(&mr_file_at(r.file)->extents) || mr_load(&mr_file_at(r.file)->twin))) {
        struct mr_guard g;
        mr_lock(&g); /* readers stop before the bytes go */
        mr_cut_names(r.file, 0);
        mr_unlock(&g);
    }
    if (r.file != MR_NONE && (r.producer || mode != O_RDONLY)) mr_see_writes(r.file);
    for (u64 began = 0;;) {
        if (reads) {
            long err = mr_gate(dirfd, path, &n, &r);
            if (err == 0 && unlikely(wants_whole(flags, &r))) err = mr_wait_for(mr_who(0).proc, r.file, MR_WAIT_COMMIT, 0, 0);
            if (err < 0) return err;
        }
        long fd = mr_plain(c);
        if (unlikely(fd == -ELOOP) && (flags & O_NOFOLLOW) && mr_is_veiled(dirfd, path, &n)) fd = open_followed(c);
        if (fd >= 0) return mr_opened(&n, &r, fd, flags);
        /* begun, but not there: removed or renamed just now; it may come again */
        if (fd != -ENOENT || !reads || r.producer || r.rule == MR_NONE || (flags & O_CREAT)) return fd;
        if (mr_load(&mr_file_at(r.file)->state) != MR_GROWING) return fd;
        if (!began) began = mr_now();
        long err = mr_wait_moment(mr_who(0).proc, r.file, began);
        if (err < 0) return err;
    }
}

long mr_do_open(const struct mr_call *c) { return open_path(c, AT_FDCWD, (const char *)c->a[0], c->a[1]); }
long mr_do_openat(const struct mr_call *c) { return open_path(c, c->a[0], (const char *)c->a[1], c->a[2]); }
long mr_do_creat(const struct mr_call *c)
{
    return open_path(c, AT_FDCWD, (const char *)c->a[0], O_CREAT | O_WRONLY | O_TRUNC);
}
long mr_do_openat2(const struct mr_call *c)
{
    const struct how *how = (const struct how *)c->a[2];
    if (!mr_readable(how, sizeof *how)) return MR_GO;
    return open_path(c, c->a[0], (const char *)c->a[1], (long)how->flags);
}

/* ---- close ---- */

static void let_go(const struct mr_who *who, long fd, u32 ofd)
{
    struct mr_guard g;
    if (who->proc == MR_NONE) return;
    mr_lock(&g);
    mr_hold_drop(who->proc, (s32)fd, ofd, MR_END_UNKNOWN);
    mr_unlock(&g);
}

/* Takes the entry before the kernel frees the number: another thread may get it at once. */
static u64 take_entry(const struct mr_who *who, long fd)
{
    if ((unsigned long)fd >= MR_FDS) return 0;
    return who->foreign ? mr_fd[fd] : mr_swap(&mr_fd[fd], 0);
}

static void dropped(const struct mr_who *who, long fd, u64 entry)
{
    if (who->foreign) let_go(who, fd, MR_NONE); /* in its own list, if at all */
    else if (mr_entry_kind(entry) == MR_WRITER) let_go(who, fd, mr_entry_index(entry));
}

long mr_do_close(const struct mr_call *c)
{
    if (likely(!mr_entry_now(c->a[0]))) {
        if (likely(!mr_load(&mr_self.vforks))) return MR_GO;
    }
    struct mr_who who = mr_who(0);
    u64 entry = take_entry(&who, c->a[0]);
    if (mr_entry_kind(entry) == MR_DIRECTORY && !who.foreign) return MR_GO;
    if (!who.foreign) mr_size_at_close(c->a[0], entry);
    /* Booked first: once the kernel has freed the number, another thread may open a file under it and fork,
     * and the child would inherit both bookings. All bytes are written already. */
    dropped(&who, c->a[0], entry);
    return mr_plain(c);
}

long mr_do_close_range(const struct mr_call *c)
{
    struct mr_who who = mr_who(0);
    u32 first = (u32)c->a[0], last = (u32)c->a[1], top = mr_load(&mr_self.fd_top);
    if ((c->a[2] & 4 /* CLOSE_RANGE_CLOEXEC */) || first > last) return mr_plain(c);
    if (last >= top) last = top ? top - 1 : 0;
    for (u32 fd = first; fd <= last && fd < top; fd++) {
        if (!mr_entry_now((long)fd) && !who.foreign) continue;
        u64 entry = take_entry(&who, (long)fd);
        if (!who.foreign) mr_size_at_close((long)fd, entry);
        dropped(&who, (long)fd, entry);
        mr_sys(SYS_close, fd, 0, 0, 0);
    }
    return mr_plain(c);
}

/* ---- dup ---- */

static void copied(const struct mr_who *who, long from, long to)
{
    struct mr_guard g;
    u64 entry = who->foreign ? 0 : mr_entry(from);
    u32 ofd = mr_entry_kind(entry) == MR_WRITER ? mr_entry_index(entry) : MR_NONE;
    if (who->proc != MR_NONE && (who->foreign || ofd != MR_NONE)) {
        mr_lock(&g);
        if (who->foreign) ofd = mr_hold_find(who->proc, (s32)from);
        if (ofd != MR_NONE) mr_hold_add(who->proc, (s32)to, ofd);
        mr_unlock(&g);
    }
    if (who->foreign || !entry) return;
    __atomic_fetch_or(&mr_fd[from], MR_SHARED, __ATOMIC_SEQ_CST);
    mr_fd_set(to, entry | MR_SHARED, 0);
    mr_touched[from] = mr_touched[to] = 1;
}

static int of_interest(long fd) { return mr_entry_now(fd) || mr_load(&mr_self.vforks); }

long mr_do_dup(const struct mr_call *c)
{
    long fd = mr_plain(c);
    if (likely(fd < 0 || !of_interest(c->a[0]))) return fd;
    struct mr_who who = mr_who(1);
    copied(&who, c->a[0], fd);
    return fd;
}

static long dup_onto(const struct mr_call *c, int same_is_fine)
{
    long from = (int)c->a[0], to = (int)c->a[1];
    if (likely(!of_interest(from) && !of_interest(to))) return mr_plain(c);
    if (from == to) return same_is_fine ? mr_plain(c) : -EINVAL;
    struct mr_who who = mr_who(1);
    if (mr_sys(SYS_fcntl, from, F_GETFD, 0, 0) < 0) return mr_plain(c); /* fails, and closes nothing */
    mr_entry_now(to); /* its file may have become governed */
    u64 entry = take_entry(&who, to);
    dropped(&who, to, entry);
    long ret = mr_plain(c);
    if (ret >= 0) copied(&who, from, to);
    return ret;
}

long mr_do_dup2(const struct mr_call *c) { return dup_onto(c, 1); }
long mr_do_dup3(const struct mr_call *c) { return dup_onto(c, 0); }

long mr_do_fcntl(const struct mr_call *c)
{
    if (likely(c->a[1] != F_DUPFD && c->a[1] != F_DUPFD_CLOEXEC)) {
        u64 e = mr_entry(c->a[0]);
        if (unlikely(mr_entry_kind(e) == MR_WRITER && c->a[1] == F_SETFL)) /* O_APPEND may come or go */
            __atomic_fetch_or(&mr_fd[c->a[0]], MR_SHARED, __ATOMIC_SEQ_CST);
        return mr_plain(c);
    }
    return mr_do_dup(c);
}
