/* A file that still grows moves to a lower layer, because memory is full.
 *
 * Its bytes are copied to a file in the layer's folder, the record says where, a link takes over the name, and the
 * memory behind the old file is given back. Descriptors that are open on the old file stay: each keeps its position
 * there, and its calls go to the new file (lower.c). `place` is odd while a file moves. A process that wrote or read
 * meanwhile sees that it has changed and does the call again, so nothing is lost and no hole is read. */
#include "board.h"

#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>

#define LOOK_NS 20000000u

static void path_in(char *to, size_t size, const char *dir, const char *name)
{
    struct mr_text t = {to, to + size};
    mr_put(&t, dir);
    mr_put(&t, "/");
    mr_put(&t, name);
}

/* Every process that could write to it by a descriptor of its own is one that we see: a program without the library
 * (static, or not yet begun) would go on writing to the old file. Under the lock. */
static int holders_known(u32 file)
{
    for (u32 i = 0, n = mr_used(MR_HOLDS); i < n; i++) {
        const struct mr_hold *h = mr_hold_at(i);
        if (!h->slot.used || mr_ofd_at(h->ofd)->file != file) continue;
        const struct mr_proc *p = mr_proc_at(h->proc);
        if (p->state != MR_ALIVE || (p->flags & MR_EXECING)) return 0;
    }
    return 1;
}

static long copy_all(long from, long to, u64 size)
{
    for (s64 at = 0; (u64)at < size;) {
        s64 data = mr_sys(SYS_lseek, from, at, SEEK_DATA, 0);
        if (data == -ENXIO) break;
        if (data < 0) return data;
        s64 end = mr_sys(SYS_lseek, from, data, SEEK_HOLE, 0);
        if (end < 0) return end;
        s64 moved = mr_sys(SYS_lseek, to, data, SEEK_SET, 0);
        if (moved < 0) return moved;
        for (at = data; at < end;) {
            long n = mr_sys(SYS_sendfile, to, from, &at, end - at);
            if (n <= 0) return n < 0 ? n : -EIO;
        }
    }
    return mr_sys(SYS_ftruncate, to, size, 0, 0);
}

/* The name leads to the new file from now on, in one step. The link is made beside the managed directory, so that no
 * listing shows it; in it, where that is a file system of its own. */
static long take_name(const char *name, const char *target, u64 number)
{
    static const char *const aside[] = {"/../.millrace-link.", "/.millrace-link."};
    long err = 0;
    for (int i = 0; i < 2; i++) {
        char link[1200];
        struct mr_text t = {link, link + sizeof link};
        mr_put(&t, mr_text_at(mr_b->dir));
        mr_put(&t, aside[i]);
        mr_put_n(&t, (u64)mr_sys(SYS_getpid, 0, 0, 0, 0));
        mr_put(&t, ".");
        mr_put_n(&t, number);
        err = mr_sys(SYS_symlinkat, target, AT_FDCWD, link, 0);
        if (err == 0) err = mr_sys(SYS_renameat, AT_FDCWD, link, AT_FDCWD, name);
        if (err == 0) return 0;
        mr_sys(SYS_unlinkat, AT_FDCWD, link, 0, 0);
    }
    return err;
}

struct moving {
    struct mr_file *f;
    u32 file, seq, target; /* target: text */
    u64 number;
    struct stat old;
};

static void settled(const struct mr_file *f) { mr_futex_wake((u32 *)&f->place, 0x7fffffff); }

/* Under the lock: may it move, and does no other process move it? */
static long begin(struct moving *m)
{
    struct mr_file *f = m->f;
    char name[160];
    struct mr_text t = {name, name + sizeof name};
    m->seq = mr_load(&f->place);
    if (f->lower) return -EALREADY;
    if (m->seq & 1) return -EAGAIN;
    if (!mr_b->layer || f->state != MR_GROWING || f->is_dir || f->pinned || f->twin || !holders_known(m->file)) return -EPERM;
    m->number = ++mr_b->moves;
    mr_put(&t, mr_text_at(mr_b->layer));
    mr_put(&t, "/");
    mr_put_n(&t, m->file);
    mr_put(&t, ".");
    mr_put_n(&t, m->number);
    m->target = mr_text_add(name, (size_t)(t.at - name));
    if (m->target == MR_NONE) return -ENOSPC;
    mr_store(&f->mover, (u32)mr_sys(SYS_gettid, 0, 0, 0, 0));
    mr_store(&f->place, m->seq + 1);
    if (mr_file_up_to_date(m->file) < 0) return -EPERM; /* from now on nothing is gathered for it */
    return mr_load(&f->pinned) ? -EPERM : 0; /* a mapping is pinned first and looks at the place afterwards */
}

static long copy_down(struct moving *m, long from, const char *name)
{
    struct stat named;
    long err = mr_sys(SYS_fstat, from, &m->old, 0, 0);
    if (err == 0) err = mr_sys(SYS_newfstatat, AT_FDCWD, name, &named, AT_SYMLINK_NOFOLLOW);
    if (err == 0 && (named.st_ino != m->old.st_ino || named.st_dev != m->old.st_dev || !S_ISREG(named.st_mode))) err = -ESTALE;
    if (err == 0 && m->old.st_nlink > 1) err = -EPERM; /* its other names would lead to the hole */
    if (err < 0) return err;
    const char *target = mr_text_at(m->target);
    long to = mr_sys(SYS_openat, AT_FDCWD, target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0) return to;
    err = copy_all(from, to, (u64)m->old.st_size);
    if (err == 0) err = mr_sys(SYS_fchmod, to, m->old.st_mode & 07777, 0, 0);
    mr_sys(SYS_close, to, 0, 0, 0);
    return err;
}

/* Moves the file. own: a descriptor of the caller on it, or -1. 0 when it is below now, also if another process moved it. */
long mr_file_move(u32 file, long own)
{
    struct moving m = {.f = mr_file_at(file), .file = file};
    char name[2200], self[40];
    struct mr_text t = {self, self + sizeof self};
    struct mr_guard g, quiet;
    const u64 all = ~(u64)0;
    path_in(name, sizeof name, mr_text_at(mr_b->dir), mr_text_at(m.f->path));
    mr_put(&t, "/proc/self/fd/");
    mr_put_n(&t, (u64)own);
    /* a handler that writes to this file would wait for us */
    mr_sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &quiet.signals, 8);
    mr_lock(&g);
    long err = begin(&m);
    mr_unlock(&g);
    int odd = mr_load(&m.f->place) == m.seq + 1 && err != -EAGAIN && err != -EALREADY;
    long from = -1;
    if (err == 0) {
        from = mr_sys(SYS_openat, AT_FDCWD, own >= 0 ? self : name, O_RDWR | O_CLOEXEC, 0);
        err = from < 0 ? from : copy_down(&m, from, name);
        mr_lock(&g);
        if (err == 0 && m.f->state != MR_GROWING) err = -EPERM; /* readers may not look here any more */
        if (err == 0) {
            m.f->moved = (u64)m.old.st_size;
            mr_store(&m.f->lower, m.target);
        }
        if (err == 0) err = take_name(name, mr_text_at(m.target), m.number);
        if (err < 0) mr_store(&m.f->lower, 0);
        else mr_event(MR_EV_MOVED, m.f->path + 1, MR_NONE, 0, "memory is full: it grows on the lower layer now");
        mr_unlock(&g);
        if (err < 0) mr_sys(SYS_unlinkat, AT_FDCWD, mr_text_at(m.target), 0, 0);
    }
    if (odd) {
        mr_store(&m.f->place, m.seq + 2);
        settled(m.f);
    }
    if (err == 0) mr_sys(SYS_fallocate, from, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1L << 46); /* also what was only reserved */
    if (from >= 0) mr_sys(SYS_close, from, 0, 0, 0);
    mr_sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &quiet.signals, 0, 8);
    if (err == -EAGAIN) {
        mr_place_wait(m.f);
        return mr_load(&m.f->lower) ? 0 : mr_file_move(file, own);
    }
    return err == -EALREADY ? 0 : err;
}

/* Waits until no process moves it. A mover that was killed has changed nothing yet. */
void mr_place_wait(struct mr_file *f)
{
    for (u32 seq; (seq = mr_load(&f->place)) & 1;) {
        u32 mover = mr_load(&f->mover);
        if (mr_futex_wait(&f->place, seq, LOOK_NS) != -ETIMEDOUT || mr_thread_lives(mover)) continue;
        u32 same = seq;
        if (mr_cas(&f->place, &same, seq + 1)) settled(f);
    }
}

/* Frees memory: the largest growing file moves, other than `but`. The bytes, 0 when there is none. */
u64 mr_relieve(u32 but)
{
    u32 tried = MR_NONE;
    for (int attempts = 0; attempts < 4; attempts++) {
        u64 most = 0;
        u32 best = MR_NONE;
        for (u32 i = 0, n = mr_used(MR_FILES); i < n; i++) {
            const struct mr_file *f = mr_file_at(i);
            char name[2200];
            struct stat st;
            if (i == but || i == tried || mr_load(&f->state) != MR_GROWING || f->is_dir || f->lower || f->pinned) continue;
            path_in(name, sizeof name, mr_text_at(mr_b->dir), mr_text_at(f->path));
            if (mr_sys(SYS_newfstatat, AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1) continue;
            u64 held = (u64)st.st_blocks * 512;
            if (held > most) most = held, best = i;
        }
        if (best == MR_NONE) return 0;
        if (mr_file_move(best, -1) == 0) return most;
        tried = best;
    }
    return 0;
}
