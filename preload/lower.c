/* Calls on a descriptor whose file has moved to the lower layer since it was opened (spill.c).
 *
 * The descriptor stays what the kernel and its other holders know, with its position. The call is made on a stand-in:
 * the new file, opened in the same way, at the same position. */
#include "local.h"

#include <sys/stat.h>
#include <sys/uio.h>

/* The record of the file behind an entry; null when it lies where it was opened, whatever happens. */
struct mr_file *mr_placed(u64 e)
{
    u32 index = mr_entry_index(e);
    if (!e || (e & MR_BELOW)) return 0;
    switch (mr_entry_kind(e)) {
    case MR_READER: return mr_file_at(index);
    case MR_WRITER: return mr_file_at(mr_ofd_at(index)->file);
    case MR_MAYBE: return index == MR_NONE ? 0 : mr_file_at(index);
    default: return 0;
    }
}

const char *mr_lower_of(u64 e)
{
    const struct mr_file *f = mr_placed(e);
    u32 lower = f ? mr_load(&f->lower) : 0;
    return lower ? mr_text_at(lower) : 0;
}

enum { LOOKS, MOVES, BLOCKS };

/* MOVES: uses and changes the position. BLOCKS: does so too, and may wait for a pipe. */
static int manner(long nr)
{
    switch (nr) {
    case SYS_read: case SYS_write: case SYS_readv: case SYS_writev: case SYS_lseek: case SYS_preadv2: case SYS_pwritev2:
        return MOVES;
    case SYS_sendfile: case SYS_splice: case SYS_copy_file_range:
        return BLOCKS;
    default:
        return LOOKS;
    }
}

static long stand_in(const struct mr_call *c, int which, struct mr_file *f)
{
    long fd = c->a[which];
    int how = manner(c->nr);
    long flags = mr_sys(SYS_fcntl, fd, F_GETFL, 0, 0);
    long there = mr_sys(SYS_openat, AT_FDCWD, mr_text_at(f->lower), (flags & (O_ACCMODE | O_APPEND)) | O_CLOEXEC, 0);
    if (there == -EACCES) /* its mode may have changed since it was opened */
        there = mr_sys(SYS_openat, AT_FDCWD, mr_text_at(f->lower), O_RDONLY | O_CLOEXEC, 0);
    if (there < 0) return there;
    struct mr_call d = *c;
    struct mr_guard g;
    d.a[which] = there;
    if (how == MOVES) mr_lock_word(&f->place_lock, &g); /* the position may be shared */
    if (how != LOOKS) mr_sys(SYS_lseek, there, mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0), SEEK_SET, 0);
    long ret = mr_plain(&d);
    if (how != LOOKS) mr_sys(SYS_lseek, fd, mr_sys(SYS_lseek, there, 0, SEEK_CUR, 0), SEEK_SET, 0);
    if (how == MOVES) mr_unlock_word(&f->place_lock, &g);
    mr_sys(SYS_close, there, 0, 0, 0);
    return ret;
}

/* The bytes that a writing call was asked to write; 0 for others. */
static u64 to_write(const struct mr_call *c)
{
    u64 sum = 0;
    const struct iovec *v = (const struct iovec *)c->a[1];
    switch (c->nr) {
    case SYS_write: case SYS_pwrite64:
        return (u64)c->a[2];
    case SYS_writev: case SYS_pwritev: case SYS_pwritev2:
        if (c->a[2] <= 0 || c->a[2] > 1024 || !mr_readable(v, (u64)c->a[2] * sizeof *v)) return 0;
        for (long i = 0; i < c->a[2]; i++) sum += v[i].iov_len;
        return sum;
    default:
        return 0;
    }
}

/* Memory is full, or was on the way: some programs take half a write for a failure. */
static int is_full(const struct mr_call *c, long ret)
{
    if (likely(ret != -ENOSPC && ret != -EDQUOT)) return ret >= 0 && unlikely((u64)ret < to_write(c));
    return 1;
}

static int uses_position(const struct mr_call *c)
{
    if (c->nr == SYS_preadv2 || c->nr == SYS_pwritev2) return c->a[3] == -1;
    return manner(c->nr) == MOVES && c->nr != SYS_lseek;
}

/* The call is to be made again, below. 1: not needed, what it wrote has moved along. */
static int step_back(const struct mr_call *c, long fd, long ret, const struct mr_file *f)
{
    if (ret <= 0 || !uses_position(c)) return 0;
    if (to_write(c) && (mr_sys(SYS_fcntl, fd, F_GETFL, 0, 0) & O_APPEND) && mr_load(&f->lower)) {
        u64 end = (u64)mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0);
        if (end <= f->moved) return 1; /* a second time it would go to the end */
    }
    mr_sys(SYS_lseek, fd, -ret, SEEK_CUR, 0);
    return 0;
}

/* Others may make room, or have done so: the coordinator moves complete files, a few times a second. */
static int make_room(u32 but, int tries)
{
    struct mr_time moment = {0, 30000000};
    if (!mr_b->layer || tries == 100) return 0;
    if (!mr_relieve(but)) mr_sys(SYS_nanosleep, &moment, 0, 0, 0);
    return 1;
}

/* A file that no rule names cannot move. */
static long plain_or_room(const struct mr_call *c, u64 e)
{
    long ret = mr_plain(c);
    if (likely(mr_entry_kind(e) != MR_MAYBE || (e & MR_BELOW))) return ret;
    for (int tries = 0; (ret == -ENOSPC || ret == -EDQUOT) && make_room(MR_NONE, tries); tries++) ret = mr_plain(c);
    return ret;
}

/* The call c, whose argument `which` is a descriptor with this entry, wherever the bytes of its file are. */
long mr_on(const struct mr_call *c, int which, u64 e)
{
    struct mr_file *f = mr_placed(e);
    if (!f) return plain_or_room(c, e);
    for (int tries = 0;; tries++) {
        u32 seq = mr_load(&f->place);
        if (unlikely(seq & 1)) {
            mr_place_wait(f);
            continue;
        }
        if (unlikely(mr_load(&f->lower))) return stand_in(c, which, f);
        long ret = mr_plain(c);
        if (likely(mr_load(&f->place) == seq)) {
            if (likely(!is_full(c, ret)) || mr_entry_kind(e) != MR_WRITER) return ret;
            u32 gone = mr_ofd_at(mr_entry_index(e))->gone; /* it has no name, so it cannot move */
            if ((gone || mr_file_move(mr_entry_file(e), c->a[which]) < 0) && !make_room(gone ? MR_NONE : mr_entry_file(e), tries)) return ret;
        }
        if (step_back(c, c->a[which], ret, f)) return ret;
    }
}

/* Is this descriptor open on the lower file already? Then it needs no help. */
int mr_is_below(long fd, const struct mr_file *f)
{
    struct stat open, there;
    u32 lower = mr_load(&f->lower);
    return unlikely(lower) && mr_sys(SYS_fstat, fd, &open, 0, 0) == 0 &&
           mr_sys(SYS_newfstatat, AT_FDCWD, mr_text_at(lower), &there, 0) == 0 && open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

/* fchmod, fchown, fallocate and the like: what concerns the file goes where it is. */
long mr_do_descriptor(const struct mr_call *c) { return mr_on(c, 0, mr_entry(c->a[0])); }
