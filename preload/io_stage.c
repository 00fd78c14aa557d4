/* Gathering the small writes of this process (stage.c says where they lie and who else may take them).
 *
 * It begins after a number of small writes in quick succession through a descriptor that no other process has, and ends with
 * the first call of another kind on it, so that the kernel's size and position are right whenever another process can see
 * them. Room is reserved first: a full disk is an error of the write that meets it.
 *
 * Only in a process of one thread. A signal handler that writes in the middle of a write ends it and goes first: the
 * interrupted one finds it stopped, and goes to the kernel as well. */
#include "local.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define OWN 32u
#define SMALL 8192u         /* larger writes gain nothing */
#define ROOM (1u << 20)     /* reserved at a time */
#define QUICK 40000u        /* ticks from one write to the next, on average, to begin: some 15 us */
#define SLOW 4000000u       /* ticks after which it was not worth it: some 1.5 ms */

struct own {
    u32 slot, ofd;
    u32 used;
    u32 inside; /* calls that are at work on it: two when a signal handler interrupted the first */
    u32 left;   /* ended, but the interrupted call does not know yet */
    s32 fd;
    u64 reserved, last;
};
static struct own own[OWN];
static u8 stage_of[MR_FDS]; /* index + 1 in own */
static u8 small[MR_FDS];    /* small writes so far */
static u64 first[MR_FDS];   /* when they began */
u32 mr_stage_after = 32;

#if defined(__x86_64__)
static u64 ticks(void) { return __builtin_ia32_rdtsc(); }
#else
static u64 ticks(void) { return 0; }
#endif

/* ---- to the kernel ---- */

static long put(struct own *o, u64 from, u64 end)
{
    const char *bytes = mr_at(MR_STAGED, o->slot);
    for (u64 at = from; at < end;) {
        long n = mr_sys(SYS_write, o->fd, bytes + (at - from), end - at, 0);
        if (n <= 0) {
            mr_sys(SYS_lseek, o->fd, from, SEEK_SET, 0);
            return n < 0 ? n : -EIO;
        }
        at += (u64)n;
    }
    return 0;
}

static int reserve(struct own *o, u64 end)
{
    if (likely(end + MR_STAGE_SIZE <= o->reserved)) return 1;
    u64 to = end + ROOM;
    if (mr_sys(SYS_fallocate, o->fd, 1 /* FALLOC_FL_KEEP_SIZE */, o->reserved, to - o->reserved) < 0) return 0;
    o->reserved = to;
    return 1;
}

/* What lies beyond the end was only reserved. */
static void release_room(const struct own *o, u64 end)
{
    if (o->reserved > end) mr_sys(SYS_ftruncate, o->fd, mr_size_of(o->fd), 0, 0);
}

static void wrote(u32 ofd, u64 from, u64 end)
{
    const struct mr_ofd *d = mr_ofd_at(ofd);
    struct mr_file *f = mr_file_at(d->file);
    if (from < end && !d->gone && ((f->mode == MR_NO_UPDATE && mr_load(&f->state) == MR_GROWING) || mr_load(&f->twin))) mr_publish(f, from, end);
}

static void lost(u32 ofd, long err)
{
    char text[120];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, "bytes that were written could not be put into it (error ");
    mr_put_n(&t, (u64)-err);
    mr_put(&t, ")");
    if (!mr_ofd_at(ofd)->gone) mr_file_fail(mr_ofd_at(ofd)->file, mr_self.step, text);
}

/* Ends it: the kernel has all bytes and the right position. */
static void end_stage(struct own *o)
{
    struct mr_guard g;
    u64 from = 0, end = 0;
    mr_lock(&g); /* a process that was about to put the bytes there has done so, and no other begins to */
    if (!o->left) {
        struct mr_stage *s = mr_stage_at(o->slot);
        end = __atomic_fetch_or(&s->end, MR_STOP, __ATOMIC_SEQ_CST);
        from = mr_load(&s->from);
        int stopped = (end & MR_STOP) != 0;
        end &= ~MR_STOP;
        long err = from < end ? put(o, from, end) : 0;
        if (stopped) mr_sys(SYS_lseek, o->fd, end, SEEK_SET, 0);
        else release_room(o, end);
        if (err < 0) lost(o->ofd, err);
        mr_stage_drop(o->slot);
        mr_store(&mr_pos[o->fd], (s64)end);
        o->left = 1;
    }
    u32 ofd = o->ofd;
    if (o->used && !o->inside) { /* else the write that was interrupted has still to find out */
        mr_give(MR_STAGES, o->slot);
        stage_of[o->fd] = small[o->fd] = 0;
        o->used = 0;
        mr_self.staged--;
    }
    mr_unlock(&g);
    wrote(ofd, from, end);
}

/* Makes room; signals are held off, for what a handler writes would come in between. */
static long flush(struct own *o)
{
    struct mr_stage *s = mr_stage_at(o->slot);
    u64 before = mr_hold_signals();
    mr_store(&s->busy, 1);
    u64 end = mr_load(&s->end), from = mr_load(&s->from);
    long err = 0;
    if (!(end & MR_STOP)) {
        err = put(o, from, end);
        if (err == 0) {
            wrote(o->ofd, from, end);
            mr_store(&s->from, end);
        }
    }
    mr_store(&s->busy, 0);
    mr_let_signals(before);
    return err;
}

/* ---- beginning ---- */

/* Another file has this number now. */
void mr_stage_opened(long fd) { small[fd] = 0; }

static int quick_and_small(long fd)
{
    if (!small[fd]) first[fd] = ticks();
    if (++small[fd] < mr_stage_after) return 0;
    small[fd] = 0;
    return ticks() - first[fd] < (u64)QUICK * mr_stage_after;
}

/* Others must be able to put the bytes there, and reserving must not meet a limit that writing would not. */
static int fits(const struct stat *st)
{
    struct rlimit limit;
    return S_ISREG(st->st_mode) && (st->st_mode & 0200) && st->st_uid == mr_self.uid &&
           mr_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static int begin(long fd, u64 e)
{
    struct mr_guard g;
    struct stat st;
    struct own *o = own;
    mr_lock(&g); /* signals are held off: what a handler writes would move the position */
    while (o < own + OWN && o->used) o++;
    long at = mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0);
    u32 slot = MR_NONE;
    if (o < own + OWN && at >= 0 && mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && fits(&st))
        slot = mr_stage_new(mr_entry_index(e), (u64)at, (u64)st.st_dev, (u64)st.st_ino);
    if (slot != MR_NONE) {
        *o = (struct own){.slot = slot, .ofd = mr_entry_index(e), .fd = (s32)fd, .reserved = (u64)at, .last = ticks()};
        if (reserve(o, (u64)at)) {
            o->used = 1;
            stage_of[fd] = (u8)(o - own + 1);
            mr_self.staged++;
        } else {
            mr_stage_drop(slot);
            mr_give(MR_STAGES, slot);
            slot = MR_NONE;
        }
    }
    mr_unlock(&g);
    return slot != MR_NONE;
}

/* MR_NOT_STAGED: the kernel has to do it. */
long mr_stage_write(long fd, u64 e, const void *from, u64 len)
{
    if (len > SMALL || !len || !mr_readable(from, len)) {
        mr_stage_end(fd);
        return MR_NOT_STAGED;
    }
    u32 k = mr_load(&stage_of[fd]);
    if (!k) {
        if (!mr_stage_after || mr_self.threads || !quick_and_small(fd)) return MR_NOT_STAGED;
        if (mr_self.depth != 1 || !begin(fd, e)) return MR_NOT_STAGED; /* an interrupted call may use the position */
    }
    k = k ? k : mr_load(&stage_of[fd]);
    if (!k) return MR_NOT_STAGED;
    struct own *o = &own[k - 1];
    mr_add(&o->inside, 1);
    if (mr_load(&stage_of[fd]) != k) { /* a signal handler ended it just now */
        mr_add(&o->inside, (u32)-1);
        return MR_NOT_STAGED;
    }
    if (unlikely(mr_load(&o->inside) > 1)) { /* the place behind `end` is the interrupted one's */
        end_stage(o);
        mr_add(&o->inside, (u32)-1);
        return MR_NOT_STAGED;
    }
    struct mr_stage *s = mr_stage_at(o->slot);
    char *bytes = mr_at(MR_STAGED, o->slot);
    long ret = (long)len;
    for (;;) {
        u64 end = mr_load(&s->end), at = end - mr_load(&s->from);
        if (end & MR_STOP) {
            ret = MR_NOT_STAGED;
            break;
        }
        if (at + len <= MR_STAGE_SIZE) {
            mr_copy_fast(bytes + at, from, len);
            if (mr_cas(&s->end, &end, end + len)) break;
            continue;
        }
        ret = flush(o);
        if (ret < 0 || (mr_load(&s->from) == end && !reserve(o, end))) {
            ret = MR_NOT_STAGED; /* the kernel says what is wrong */
            break;
        }
        ret = (long)len;
    }
    u64 now = ticks();
    int over = ret == MR_NOT_STAGED || now - o->last > SLOW;
    o->last = now;
    mr_add(&o->inside, (u32)-1);
    if (over) end_stage(o);
    return ret;
}

/* ---- everything else ---- */

void mr_stage_end(long fd)
{
    mr_ahead_end(fd);
    u32 k = (unsigned long)fd < MR_FDS ? stage_of[fd] : 0;
    if (k) end_stage(&own[k - 1]);
}

void mr_stage_end_all(void)
{
    mr_ahead_end_all();
    for (u32 i = 0; i < OWN; i++)
        if (own[i].used) end_stage(&own[i]);
}

/* Another process is about to get our descriptors. */
void mr_stage_before_child(void)
{
    for (u32 i = 0, n = mr_load(&mr_self.fd_top); i < n; i++) {
        u32 kind = mr_entry_kind(mr_fd[i]);
        int goes = kind == MR_WRITER || (kind == MR_READER && !(mr_sys(SYS_fcntl, i, F_GETFD, 0, 0) & FD_CLOEXEC));
        if (goes) __atomic_fetch_or(&mr_fd[i], MR_SHARED, __ATOMIC_SEQ_CST);
        if (kind) mr_touched[i] = 1;
    }
    mr_stage_end_all();
}

/* A call of another kind than write: whose descriptors must be as the kernel should know them? */
void mr_stage_before(const struct mr_call *c)
{
    switch (c->nr) {
    case SYS_write: case SYS_read: return;
    case SYS_close_range: case SYS_sync: case SYS_syncfs: mr_stage_end_all(); return;
    case SYS_splice: case SYS_copy_file_range: mr_stage_end(c->a[2]); break;
    case SYS_sendfile: mr_stage_end(c->a[1]); break;
    case SYS_sendmsg: case SYS_sendmmsg: mr_stage_before_child(); return; /* it may carry descriptors */
#if defined(__x86_64__)
    case SYS_dup2:
#endif
    case SYS_dup3: mr_stage_end(c->a[1]); break;
    }
    mr_stage_end(c->a[0]);
}
