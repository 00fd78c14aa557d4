/* A file that some process already writes becomes governed, by rename or link: `exec 3> part; mv part out`.
 *
 * The process that renames it books the descriptors of all producers on it, so that the file is not taken for complete before
 * they have closed it. The others learn of it at their next call on such a descriptor (mr_entry_now). */
#include "local.h"

#include <linux/kcmp.h>
#include <signal.h>
#include <sys/stat.h>

/* 0: no process has the file open for writing. Negative: it could not be found out.
 * A lease to read is given only then. It is given back at once. If another process opens the file in
 * between, the kernel sends a signal that is ignored by default. */
int mr_is_written(long dirfd, const char *path)
{
    long fd = mr_sys(SYS_openat, dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    mr_sys(SYS_fcntl, fd, F_SETSIG, SIGURG, 0);
    long err = mr_sys(SYS_fcntl, fd, F_SETLEASE, F_RDLCK, 0);
    if (err == 0) mr_sys(SYS_fcntl, fd, F_SETLEASE, F_UNLCK, 0);
    mr_sys(SYS_close, fd, 0, 0, 0);
    return err == 0 ? 0 : err == -EAGAIN ? 1 : -1;
}

struct fd_path {
    char text[64];
};

static struct fd_path path_of(u32 pid, const char *folder, const char *name)
{
    struct fd_path p;
    struct mr_text t = {p.text, p.text + sizeof p.text};
    mr_put(&t, "/proc/");
    mr_put_n(&t, pid);
    mr_put(&t, folder);
    mr_put(&t, name);
    return p;
}

/* "pos:\t0\nflags:\t0100001\n…" in octal */
static int writes(u32 pid, const char *fd)
{
    char text[128];
    struct fd_path p = path_of(pid, "/fdinfo/", fd);
    long in = mr_sys(SYS_openat, AT_FDCWD, p.text, O_RDONLY | O_CLOEXEC, 0);
    if (in < 0) return 0;
    long n = mr_sys(SYS_read, in, text, sizeof text - 1, 0);
    mr_sys(SYS_close, in, 0, 0, 0);
    text[n > 0 ? n : 0] = 0;
    for (const char *s = text; *s; s++) {
        if (!mr_same(s, "flags:", 6)) continue;
        for (s += 6; *s == '\t' || *s == ' ';) s++;
        while (*s >= '0' && *s <= '7' && s[1] >= '0' && s[1] <= '7') s++;
        return ((*s - '0') & O_ACCMODE) != O_RDONLY; /* the last digit */
    }
    return 0;
}

struct adoption {
    u32 file, found;
    const struct stat *st;
    struct {
        u32 pid, ofd;
        s32 fd;
    } known[16];
    u32 count;
};

/* Descriptors of one description are closed by the last of them. Where the kernel does not tell, they are taken for
 * one: a file is then complete late rather than early. */
static u32 same_description(const struct adoption *a, u32 pid, s32 fd)
{
    for (u32 i = 0; i < a->count; i++)
        if (mr_sys6(SYS_kcmp, (long)a->known[i].pid, (long)pid, KCMP_FILE, a->known[i].fd, fd, 0) <= 0) return a->known[i].ofd;
    return a->count == sizeof a->known / sizeof *a->known ? a->known[0].ofd : MR_NONE;
}

static void book(struct adoption *a, u32 proc, s32 fd)
{
    const struct mr_proc *p = mr_proc_at(proc);
    u32 ofd = mr_hold_find(proc, fd);
    struct mr_ofd *o = ofd == MR_NONE ? 0 : mr_ofd_at(ofd);
    a->found++;
    if (o && o->gone) { /* had lost its name, and has one again */
        o->file = a->file;
        o->gone = 0;
        mr_file_at(a->file)->writers++;
        mr_stage_follow(ofd, a->file);
    } else if (!o) {
        ofd = same_description(a, p->pid, fd);
        if (ofd != MR_NONE) mr_hold_add(proc, fd, ofd);
        else ofd = mr_ofd_new(proc, fd, a->file, p->step);
    }
    if (ofd == MR_NONE || a->count == sizeof a->known / sizeof *a->known) return;
    a->known[a->count].pid = p->pid;
    a->known[a->count].fd = fd;
    a->known[a->count++].ofd = ofd;
}

/* The descriptors of a process on this file, each to `found`; with none, whether there is one. */
static int each_open(u32 pid, const struct stat *file, void (*found)(struct adoption *a, u32 proc, const char *fd), struct adoption *a, u32 proc)
{
    char list[1024];
    int any = 0;
    struct fd_path folder = path_of(pid, "/fd", "");
    long dir = mr_sys(SYS_openat, AT_FDCWD, folder.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0) return 0;
    for (long len; (len = mr_sys(SYS_getdents64, dir, list, sizeof list, 0)) > 0;)
        for (long at = 0; at < len;) {
            const char *e = list + at, *name = e + 19;
            struct stat st;
            at += *(const u16 *)(const void *)(e + 16);
            if (*name == '.' || mr_sys(SYS_newfstatat, dir, name, &st, 0) < 0) continue;
            if (st.st_ino != file->st_ino || st.st_dev != file->st_dev) continue;
            any = 1;
            if (found) found(a, proc, name);
        }
    mr_sys(SYS_close, dir, 0, 0, 0);
    return any;
}

int mr_has_open(u32 pid, const struct stat *st) { return each_open(pid, st, 0, 0, 0); }

static void book_writer(struct adoption *a, u32 proc, const char *fd)
{
    if (writes(mr_proc_at(proc)->pid, fd)) book(a, proc, (s32)mr_number(fd));
}

/* Under the lock. The descriptors of producers that are open for writing on the file of this record. */
void mr_adopt(u32 file, const struct stat *st)
{
    struct adoption a = {.file = file, .st = st};
    const struct mr_rule *r = mr_rule_at(mr_file_at(file)->rule);
    for (u32 i = 0, n = mr_used(MR_PROCS); i < n; i++) {
        const struct mr_proc *p = mr_proc_at(i);
        if (p->slot.used && p->state == MR_ALIVE && p->step != MR_NONE && mr_produces(r, p->step)) each_open(p->pid, st, book_writer, &a, i);
    }
    if (a.found) mr_add(&mr_b->adopted, 1);
}

/* What others have booked for this process. */
void mr_adopted(void)
{
    struct mr_guard g;
    u32 seen = mr_load(&mr_b->adopted);
    if (mr_who(0).foreign || mr_self.proc == MR_NONE) return;
    mr_lock(&g);
    for (u32 h = mr_proc_at(mr_self.proc)->holds, next; h; h = next) {
        const struct mr_hold *hold = mr_hold_at(h - 1);
        next = hold->slot.link;
        u64 e = hold->fd < 0 ? 0 : mr_entry(hold->fd);
        const struct mr_ofd *o = mr_ofd_at(hold->ofd);
        if (hold->fd < 0 || o->gone || mr_entry_kind(e) == MR_WRITER) continue;
        const struct mr_file *f = mr_file_at(o->file);
        if (!e) { /* closed in the moment in which it was booked */
            mr_hold_drop(mr_self.proc, hold->fd, hold->ofd, MR_END_UNKNOWN);
            continue;
        }
        mr_fd_set(hold->fd, mr_make_entry(MR_WRITER | MR_SHARED | (f->mode == MR_NO_UPDATE ? MR_PUBLISH : 0u), hold->ofd), 0);
    }
    mr_unlock(&g);
    mr_store(&mr_self.adopted, seen);
}
