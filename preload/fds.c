/* The process's descriptors on governed files. */
#include "local.h"

#include <sys/stat.h>

u64 mr_fd[MR_FDS];
s64 mr_pos[MR_FDS];

void mr_fd_set(long fd, u64 entry, s64 pos)
{
    if ((unsigned long)fd >= MR_FDS) return;
    if (mr_entry_kind(entry) != MR_DIRECTORY) mr_store(&mr_pos[fd], pos);
    if (mr_entry_kind(entry) == MR_READER) {
        mr_store(&mr_told[fd], 0);
        mr_touched[fd] = 0;
        mr_ahead_opened(fd);
    }
    mr_store(&mr_fd[fd], entry);
    if (!entry) return;
    u32 top = mr_load(&mr_self.fd_top);
    while (top < (u32)fd + 1 && !mr_cas(&mr_self.fd_top, &top, (u32)fd + 1)) {}
}

/* After a fork the positions are shared with a process whose calls we do not see. */
void mr_fd_share_all(void)
{
    for (u32 i = 0, n = mr_load(&mr_self.fd_top); i < n; i++) {
        if (!mr_fd[i]) continue;
        __atomic_fetch_or(&mr_fd[i], MR_SHARED, __ATOMIC_SEQ_CST);
        mr_touched[i] = 1;
    }
}

u32 mr_entry_file(u64 e)
{
    u32 index = mr_entry_index(e);
    return mr_entry_kind(e) == MR_WRITER ? mr_ofd_at(index)->file : index;
}

struct mr_who mr_who(int must_be_known)
{
    struct mr_who w = {mr_self.proc, 0};
    if (likely(!mr_load(&mr_self.vforks))) return w;
    u32 pid = (u32)mr_sys(SYS_getpid, 0, 0, 0, 0);
    if (pid == mr_self.pid) return w;
    /* a vfork child: it has the parent's descriptors, and a place of its own once it changes them */
    struct mr_guard g;
    u64 start = 0;
    w.foreign = 1;
    if (must_be_known) mr_task_state(pid, &start, 0, 0);
    mr_lock(&g);
    w.proc = mr_proc_find(pid);
    if (w.proc == MR_NONE && must_be_known && mr_self.proc != MR_NONE) {
        w.proc = mr_proc_embryo(mr_self.proc, mr_self.pid);
        if (w.proc != MR_NONE) mr_proc_born(w.proc, pid, start);
    }
    mr_unlock(&g);
    return w;
}

static void name_opened(u32 file, u64 size, long flags)
{
    struct mr_file *f = mr_file_at(file);
    if (f->state == MR_FAILED && (flags & O_TRUNC) && !(f->marks & MR_DISPUTED)) { /* written again from the start */
        f->closes = f->doubts = 0;
        mr_file_reset(file);
    }
    if (f->state == MR_ABSENT) {
        mr_cut(f, 0);
        mr_store(&f->frontier, size); /* what was there before counts as written */
    }
    mr_file_begin(file);
}

static long opened_to_write(const struct mr_name *n, struct mr_rights *r, long fd, long flags)
{
    struct mr_who who = mr_who(1);
    struct mr_guard g;
    struct stat st;
    if (who.proc == MR_NONE) return fd;
    u64 size = flags & O_TRUNC ? 0 : mr_size_of(fd);
    mr_lock(&g);
    if (r->file == MR_NONE) r->file = mr_file_get(n->rel, n->len, r->rule, r->is_dir);
    u32 ofd = r->file == MR_NONE ? MR_NONE : mr_ofd_new(who.proc, (s32)fd, r->file, mr_self.step);
    u32 mode = MR_UPDATE;
    if (ofd != MR_NONE) {
        mode = mr_file_at(r->file)->mode;
        if (unlikely(mr_file_at(r->file)->state == MR_COMMITTED))
            mr_ofd_at(ofd)->stamp = flags & O_TRUNC || mr_sys(SYS_fstat, fd, &st, 0, 0) < 0 ? 1 : mr_stamp(&st);
        mr_file_up_to_date(r->file);
        u32 i = r->file;
        for (u32 left = 256; left--;) {
            name_opened(i, size, flags);
            if ((i = mr_next_name(i)) == r->file) break;
        }
    }
    mr_unlock(&g);
    if (ofd == MR_NONE) { /* better no descriptor than one whose bytes are not announced */
        mr_sys(SYS_close, fd, 0, 0, 0);
        return -ENOSPC;
    }
    u32 flag = (mode == MR_NO_UPDATE ? MR_PUBLISH : 0u) | (flags & O_APPEND ? MR_APPEND : 0u) |
               (mr_is_below(fd, mr_file_at(r->file)) ? MR_BELOW : 0u);
    if ((flags & (O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC | O_DIRECT)) == O_WRONLY) flag |= MR_STAGEABLE;
    if (!who.foreign && fd < (long)MR_FDS) mr_stage_opened(fd);
    if (!who.foreign) mr_fd_set(fd, mr_make_entry(MR_WRITER | flag, ofd), 0);
    return fd;
}

/* A number for which we have no place. On a file that need not be followed it does not matter. */
static long too_many(const struct mr_rights *r, long fd)
{
    int complete = r->file != MR_NONE && mr_load(&mr_file_at(r->file)->state) == MR_COMMITTED;
    if (r->rule == MR_NONE || complete) return fd;
    mr_sys(SYS_close, fd, 0, 0, 0);
    return -EMFILE;
}

/* A descriptor that open just gave us for a path inside the managed directory. */
long mr_opened(const struct mr_name *n, struct mr_rights *r, long fd, long flags)
{
    if (unlikely((unsigned long)fd >= MR_FDS)) return too_many(r, fd);
    if (flags & O_PATH) { /* cp, mv and ln name what they make from such a descriptor of a directory */
        if (!mr_who(0).foreign) mr_fd_set(fd, mr_make_entry(MR_MAYBE, MR_NONE), 0);
        return fd;
    }
    if (unlikely(mr_is_special(fd))) return fd;
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes && r->rule != MR_NONE && r->producer && !r->is_dir) return opened_to_write(n, r, fd, flags);
    if (writes) {
        /* a stranger's descriptor is not followed: what it writes to must not move away */
        if (r->rule != MR_NONE && mr_record(n, r) != MR_NONE) mr_add(&mr_file_at(r->file)->pinned, 1);
        else if (!mr_who(0).foreign) mr_fd_set(fd, mr_make_entry(MR_MAYBE, MR_NONE), 0);
        return fd;
    }
    u32 state = r->file == MR_NONE ? MR_ABSENT : mr_load(&mr_file_at(r->file)->state);
    if (r->file != MR_NONE) mr_note_reader(mr_file_at(r->file));
    if (state == MR_COMMITTED && !r->is_dir && !(flags & O_DIRECTORY) && (!mr_file_at(r->file)->lower || mr_is_below(fd, mr_file_at(r->file)))) return fd;
    if (mr_who(0).foreign) return fd; /* the program it will become learns by itself */
    if (r->is_dir || (flags & O_DIRECTORY)) {
        u32 file = r->is_dir && !r->producer ? mr_record(n, r) : MR_NONE;
        mr_fd_set(fd, mr_make_entry(MR_DIRECTORY, file), 0);
    } else if (r->rule == MR_NONE || r->producer) {
        struct stat st;
        int is_file = r->rule != MR_NONE && mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && S_ISREG(st.st_mode);
        u32 own = is_file ? mr_record(n, r) : MR_NONE;
        mr_fd_set(fd, mr_make_entry(MR_MAYBE | (own != MR_NONE && mr_is_below(fd, mr_file_at(own)) ? MR_BELOW : 0u), own), 0);
    } else {
        struct stat st; /* a directory that a pattern of files matches is a plain one */
        int plain = state == MR_ABSENT && mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && S_ISDIR(st.st_mode);
        u32 below = mr_is_below(fd, mr_file_at(r->file)) ? MR_BELOW : 0u;
        mr_fd_set(fd, plain ? mr_make_entry(MR_DIRECTORY, MR_NONE) : mr_make_entry(MR_READER | below | r->generation << 16, r->file), 0);
    }
    return fd;
}

/* ---- after exec: what is open already ---- */

/* passed: it came through a socket */
static void learn_as(long fd, const struct mr_name *n, int passed)
{
    struct mr_rights r;
    long flags = mr_sys(SYS_fcntl, fd, F_GETFL, 0, 0);
    if (flags < 0 || mr_is_special(fd)) return;
    mr_rights_of(n, &r);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    if (r.rule == MR_NONE && !(flags & (O_DIRECTORY | O_PATH)) && !writes) return;
    struct mr_guard g;
    u32 ofd = MR_NONE;
    if (writes && mr_self.proc != MR_NONE) {
        mr_lock(&g);
        ofd = mr_hold_find(mr_self.proc, (s32)fd);
        if (ofd != MR_NONE && (r.file == MR_NONE || !mr_same_file(mr_ofd_at(ofd)->file, r.file))) ofd = MR_NONE;
        if (passed && ofd == MR_NONE && r.file != MR_NONE) ofd = mr_hold_arrived(mr_self.proc, (s32)fd, r.file);
        mr_unlock(&g);
    }
    if (ofd != MR_NONE) {
        u32 flag = (mr_file_at(r.file)->mode == MR_NO_UPDATE ? MR_PUBLISH : 0u) | (mr_is_below(fd, mr_file_at(r.file)) ? MR_BELOW : 0u);
        mr_fd_set(fd, mr_make_entry(MR_WRITER | MR_SHARED | flag, ofd), 0);
        return;
    }
    if (!writes && r.rule != MR_NONE && !r.producer && !r.is_dir && mr_record(n, &r) == MR_NONE) return;
    mr_opened(n, &r, fd, flags & ~O_TRUNC);
    if (mr_entry(fd)) __atomic_fetch_or(&mr_fd[fd], MR_SHARED, __ATOMIC_SEQ_CST);
}

static void learn(long fd)
{
    struct mr_name n;
    int where = mr_name_of_fd(fd, &n);
    if (where == MR_ABOVE) mr_fd_set(fd, mr_make_entry(MR_DIRECTORY, MR_NONE), 0);
    else if (where == MR_INSIDE) learn_as(fd, &n, 0);
}

void mr_arrived(long fd)
{
    struct mr_name n;
    if (mr_name_of_fd(fd, &n) == MR_INSIDE) learn_as(fd, &n, 1);
}

struct appeared {
    const struct mr_name *name;
    const struct stat *file;
};

static void each_fd(void (*what)(long fd, const struct appeared *a), const struct appeared *n)
{
    char list[2048];
    long dir = mr_sys(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0) return;
    for (;;) {
        long len = mr_sys(SYS_getdents64, dir, list, sizeof list, 0);
        if (len <= 0) break;
        for (long at = 0; at < len;) {
            const char *e = list + at, *name = e + 19;
            at += *(const u16 *)(const void *)(e + 16);
            if (*name != '.' && (long)mr_number(name) != dir) what((long)mr_number(name), n);
        }
    }
    mr_sys(SYS_close, dir, 0, 0, 0);
}

static void learn_any(long fd, const struct appeared *n)
{
    (void)n;
    learn(fd);
}

static void learn_if_same(long fd, const struct appeared *a)
{
    struct stat st;
    u64 e = mr_entry(fd);
    if (e && (mr_entry_kind(e) != MR_MAYBE || mr_entry_index(e) != MR_NONE)) return;
    if (mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && st.st_ino == a->file->st_ino && st.st_dev == a->file->st_dev) learn_as(fd, a->name, 0);
}

/* Descriptors that this process already has on a file that only now became governed, by rename or link. */
void mr_learn_path(const struct mr_name *n, const struct stat *file)
{
    struct appeared a = {n, file};
    if (!mr_who(0).foreign) each_fd(learn_if_same, &a);
}

void mr_learn_fds(void)
{
    struct mr_guard g;
    mr_self.adopted = mr_load(&mr_b->adopted);
    each_fd(learn_any, 0);
    if (mr_self.proc == MR_NONE || !mr_proc_at(mr_self.proc)->holds) return;
    /* closed by exec: descriptors marked so, and every mapping */
    mr_lock(&g);
    for (u32 h = mr_proc_at(mr_self.proc)->holds; h;) {
        const struct mr_hold *hold = mr_hold_at(h - 1);
        u64 e = hold->fd < 0 ? 0 : mr_entry(hold->fd);
        h = hold->slot.link;
        if (mr_entry_kind(e) != MR_WRITER || mr_entry_index(e) != hold->ofd)
            mr_hold_drop(mr_self.proc, hold->fd, hold->ofd, MR_END_UNKNOWN);
    }
    mr_unlock(&g);
}
