/* read and write in all their forms, lseek, truncate, sendfile, splice, copy_file_range.
 *
 * Reads of a growing file by a consumer wait until all the bytes they ask for are written, or the file is
 * committed: programs take a short read of a regular file for its end. Writes go to the kernel first and
 * are published afterwards. */
#include "local.h"

#include <sys/stat.h>
#include <sys/uio.h>

static u64 position(long fd)
{
    long at = mr_sys(SYS_lseek, fd, 0, SEEK_CUR, 0);
    return at < 0 ? 0 : (u64)at;
}

static u64 total(const struct iovec *v, long n)
{
    u64 sum = 0;
    if (n <= 0 || n > 1024 || !mr_readable(v, (u64)n * sizeof *v)) return 0;
    for (long i = 0; i < n; i++) sum += v[i].iov_len;
    return sum;
}

static struct mr_file *reading(u64 e)
{
    return mr_entry_kind(e) == MR_READER ? mr_file_at(mr_entry_index(e)) : 0;
}

static void committed(long fd, u64 e)
{
    if (mr_lower_of(e)) return;
    if (!mr_who(0).foreign) mr_cas(&mr_fd[fd], &e, 0); /* from now on a plain descriptor */
}

/* Bytes of the file were taken back since it was opened: cut, or another file has its name now. Fine for who has
 * read nothing yet and still has the file of that name; otherwise an error, for the rules said this would not be. */
int mr_outdated(long fd, u64 *e, const struct mr_file *f)
{
    char path[2200];
    struct mr_text t = {path, path + sizeof path};
    struct stat open, named;
    u32 generation = mr_load(&f->generation);
    if (likely(mr_entry_generation(*e) == (generation & 0xffff))) return 0;
    mr_put(&t, mr_self.dir);
    mr_put(&t, "/");
    mr_put(&t, mr_text_at(f->path));
    int same = mr_lower_of(*e) || (mr_sys(SYS_fstat, fd, &open, 0, 0) == 0 && mr_sys(SYS_newfstatat, AT_FDCWD, path, &named, 0) == 0 &&
               open.st_ino == named.st_ino && open.st_dev == named.st_dev);
    if (!same || position(fd) != 0) {
        mr_spoil(mr_who(0).proc, MR_BROKEN);
        return 1;
    }
    u64 fresh = (*e & ~(u64)0xffff0000) | (generation & 0xffff) << 16;
    if (!mr_who(0).foreign) mr_cas(&mr_fd[fd], e, fresh);
    *e = fresh;
    return 0;
}

/* The board says that there is more, the kernel that there is not: a process that we do not see changed the file. */
static int rest_a_moment(u32 file, u64 *began)
{
    if (!*began) *began = mr_now();
    return mr_wait_moment(mr_who(0).proc, file, *began);
}

/* How much is written behind the position. Without signals: a handler that reads would move it meanwhile, and a read
 * beyond what is published can get zeros in the place of bytes that are just being written. */
static int know_ahead(long fd, struct mr_file *f, u64 len)
{
    u64 signals = mr_hold_signals(), from = position(fd), to = mr_available(f, from);
    int enough = to >= from + len;
    if (enough) mr_store(&mr_pos[fd], (s64)(to - from));
    mr_let_signals(signals);
    return enough;
}

/* Of what is known to be written behind the position, len bytes. 0: it is not, or was taken back. */
static long read_known(const struct mr_call *c, u64 e, u64 len)
{
    long fd = c->a[0], ret = 0;
    const struct mr_file *f = mr_file_at(mr_entry_index(e));
    u32 generation = mr_load(&f->generation);
    long ahead = c->nr == SYS_read ? mr_ahead_fill(c, e) : MR_NOT_STAGED;
    if (ahead != MR_NOT_STAGED) {
        ret = ahead;
    /* each read takes its share before it reads, so threads on one descriptor cannot pass the frontier together */
    } else if (__atomic_fetch_sub(&mr_pos[fd], (s64)len, __ATOMIC_SEQ_CST) >= (s64)len) {
        ret = mr_on(c, 0, e);
    }
    if (ret == 0) mr_store(&mr_pos[fd], 0);
    return ret == 0 || mr_load(&f->generation) == generation ? ret : -EIO;
}

/* A read of len bytes, at an explicit offset (at >= 0) or at the position. */
static long read_some(const struct mr_call *c, u64 len, s64 at)
{
    long fd = c->a[0];
    u64 e = mr_entry(fd);
    struct mr_file *f = reading(e);
    if (likely(!f) || !len) {
        mr_entry_fresh(e);
        return mr_on(c, 0, e);
    }
    int mine = at < 0 && !(e & MR_SHARED), known = 1;
    mr_touched[fd] = 1;
    if (mine && c->nr == SYS_read && mr_load(&f->state) != MR_FAILED) {
        long ret = mr_ahead_take(fd, (void *)c->a[1], len);
        if (likely(ret != MR_NOT_STAGED)) return mr_entry_generation(e) == (mr_load(&f->generation) & 0xffff) ? ret : -EIO;
    }
    for (u64 began = 0;;) {
        u32 state = mr_load(&f->state);
        if (mr_outdated(fd, &e, f)) return -EIO;
        if (state == MR_COMMITTED) {
            committed(fd, e);
            return mr_on(c, 0, e);
        }
        if (mine && state == MR_GROWING && mr_peek(&mr_pos[fd]) >= (s64)len) {
            long ret = read_known(c, e, len);
            if (ret != 0) return ret;
            known = 0;
        }
        u64 from = at < 0 ? position(fd) : (u64)at;
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_DATA, from, len);
        if (err < 0) return err;
        if (mr_outdated(fd, &e, f)) return -EIO;
        /* else less is all there will be, or a handler has moved the position */
        if (mine && known && mr_load(&f->state) == MR_GROWING && (know_ahead(fd, f, len) || position(fd) != from)) continue;
        u32 generation = mr_load(&f->generation);
        int over = mr_load(&f->state) == MR_COMMITTED;
        long ret = mr_on(c, 0, e);
        if (ret != 0 || over) return mr_load(&f->generation) == generation ? ret : -EIO;
        /* nothing, although it was written and is not committed: it was cut meanwhile; wait again */
        err = rest_a_moment(mr_entry_index(e), &began);
        if (err < 0) return err;
        known = 1;
    }
}

long mr_do_read(const struct mr_call *c) { return read_some(c, (u64)c->a[2], -1); }
long mr_do_pread(const struct mr_call *c) { return read_some(c, (u64)c->a[2], c->a[3] < 0 ? 0 : c->a[3]); }
long mr_do_readv(const struct mr_call *c)
{
    if (likely(!mr_entry(c->a[0]))) return mr_plain(c);
    return read_some(c, total((const struct iovec *)c->a[1], c->a[2]), -1);
}
long mr_do_preadv(const struct mr_call *c) /* and preadv2, where offset -1 means the position */
{
    if (likely(!mr_entry(c->a[0]))) return mr_plain(c);
    return read_some(c, total((const struct iovec *)c->a[1], c->a[2]), c->a[3]);
}

/* ---- writing ---- */

static void wrote(long fd, u64 e, u64 count, s64 at)
{
    const struct mr_ofd *o = mr_ofd_at(mr_entry_index(e));
    struct mr_file *f = mr_file_at(o->file);
    if (o->gone || (mr_load(&f->state) != MR_GROWING && !mr_load(&f->twin))) {
        if (!(e & (MR_SHARED | MR_APPEND)) && at < 0) mr_pos[fd] += (s64)count;
        return;
    }
    if (at >= 0 && (e & MR_APPEND)) { /* Linux appends here whatever the offset says */
        u64 size = mr_size_of(fd);
        mr_publish(f, size > count ? size - count : 0, size);
    } else if (at >= 0) {
        mr_publish(f, (u64)at, (u64)at + count);
    } else if (!(e & (MR_SHARED | MR_APPEND))) {
        u64 from = (u64)__atomic_fetch_add(&mr_pos[fd], (s64)count, __ATOMIC_SEQ_CST);
        mr_publish(f, from, from + count);
    } else {
        u64 to = position(fd);
        mr_publish(f, to > count ? to - count : 0, to);
    }
}

/* A file that was opened under a name whose rule is update may have another name by now. What was written before was
 * published with that name; our own count of the position was not kept. */
static void wrote_any(long fd, u64 e, long count, s64 at)
{
    if (unlikely(mr_entry_kind(e) == MR_MAYBE)) e = mr_entry_now(fd); /* it may have got such a name during this very call */
    if (likely(mr_entry_kind(e) != MR_WRITER || count <= 0)) return;
    if (unlikely(!(e & MR_PUBLISH))) {
        const struct mr_file *f = mr_file_at(mr_entry_file(e));
        if (likely(f->mode != MR_NO_UPDATE && !mr_load(&f->twin))) return;
        e |= MR_PUBLISH | MR_SHARED;
        if (!mr_who(0).foreign) __atomic_fetch_or(&mr_fd[fd], MR_PUBLISH | MR_SHARED, __ATOMIC_SEQ_CST);
    }
    wrote(fd, e, (u64)count, at);
}

static long write_some(const struct mr_call *c, s64 at)
{
    u64 e = mr_entry_now(c->a[0]);
    long ret = mr_on(c, 0, e);
    wrote_any(c->a[0], e, ret, at);
    return ret;
}

long mr_do_write(const struct mr_call *c)
{
    u64 e = mr_entry(c->a[0]);
    if ((e & (MR_STAGEABLE | MR_SHARED)) == MR_STAGEABLE && mr_entry_kind(e) == MR_WRITER) {
        long ret = mr_stage_write(c->a[0], e, (const void *)c->a[1], (u64)c->a[2]);
        if (ret != MR_NOT_STAGED) return ret;
    }
    return write_some(c, -1);
}
long mr_do_pwrite(const struct mr_call *c) { return write_some(c, c->a[3]); }
long mr_do_writev(const struct mr_call *c) { return write_some(c, -1); }
long mr_do_pwritev(const struct mr_call *c) { return write_some(c, c->a[3]); }

/* ---- moving about ---- */

long mr_do_lseek(const struct mr_call *c)
{
    u64 e = mr_entry(c->a[0]);
    if (likely(!e)) return mr_plain(c);
    struct mr_file *f = reading(e);
    mr_entry_fresh(e);
    if (f && c->a[2] != SEEK_SET && c->a[2] != SEEK_CUR && mr_load(&f->state) != MR_COMMITTED) {
        /* the end, or the next hole, of a file that still grows: not known yet */
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_COMMIT, 0, 0);
        if (err < 0) return err;
    }
    if (f) {
        mr_store(&mr_pos[c->a[0]], 0);
        mr_ahead_opened(c->a[0]);
    }
    long ret = mr_on(c, 0, e);
    if (ret >= 0 && mr_entry_kind(e) == MR_WRITER) mr_store(&mr_pos[c->a[0]], ret);
    if (ret >= 0 && f && c->a[2] == SEEK_END && !mr_who(0).foreign) mr_store(&mr_told[c->a[0]], 0); /* it knows the last size */
    return ret;
}

long mr_do_ftruncate(const struct mr_call *c)
{
    u64 e = mr_entry_now(c->a[0]);
    struct mr_guard g;
    if (mr_entry_kind(e) == MR_WRITER) {
        mr_lock(&g);
        if (!mr_ofd_at(mr_entry_index(e))->gone) mr_cut_names(mr_entry_file(e), c->a[1] < 0 ? 0 : (u64)c->a[1]);
        mr_unlock(&g);
    }
    return mr_on(c, 0, e);
}

/* ---- in the kernel, from descriptor to descriptor ---- */

/* Waits until part of what follows `from` may be moved; cuts *count to it. 0: all that is left is allowed. */
static long source_ready(long fd, u64 e, u64 from, long *count)
{
    struct mr_file *f = reading(e);
    if (!f || *count <= 0) return 0;
    mr_touched[fd] = 1;
    if (mr_outdated(fd, &e, f)) return -EIO;
    if (mr_load(&f->state) == MR_COMMITTED) {
        committed(fd, e);
        return 0;
    }
    u64 want = (u64)*count > (1u << 20) ? 1u << 20 : (u64)*count;
    int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_DATA, from, want);
    if (err < 0) return err;
    if (mr_outdated(fd, &e, f)) return -EIO;
    if (mr_load(&f->state) == MR_COMMITTED) return 0;
    u64 to = mr_available(f, from);
    if (to > from && (u64)*count > to - from) *count = (long)(to - from);
    mr_store(&mr_pos[fd], 0);
    return 0;
}

/* Either side may have moved to the lower layer. */
static long mr_between(const struct mr_call *c, int in, u64 from_e, int out, u64 to_e)
{
    struct mr_file *f = mr_placed(from_e);
    if (!f) return mr_on(c, out, to_e);
    for (long ret; !mr_lower_of(from_e);) {
        mr_add(&f->pinned, 1); /* what has gone into a pipe cannot be taken back: it must not move meanwhile */
        int stays = !(mr_load(&f->place) & 1) && !mr_load(&f->lower);
        ret = stays ? mr_on(c, out, to_e) : 0;
        mr_add(&f->pinned, (u32)-1);
        if (stays) return ret;
        mr_place_wait(f);
    }
    const char *below = mr_lower_of(from_e);
    if (!mr_lower_of(to_e)) return mr_on(c, in, from_e);
    struct mr_call d = *c;
    long there = mr_sys(SYS_openat, AT_FDCWD, below, O_RDONLY | O_CLOEXEC, 0);
    if (there < 0) return there;
    mr_sys(SYS_lseek, there, position(c->a[in]), SEEK_SET, 0);
    d.a[in] = there;
    long ret = mr_on(&d, out, to_e);
    mr_sys(SYS_lseek, c->a[in], position(there), SEEK_SET, 0);
    mr_sys(SYS_close, there, 0, 0, 0);
    return ret;
}

/* in/out: argument numbers of the descriptors and their offset pointers; size: of the count. */
static long move(const struct mr_call *c, int in, int in_off, int out, int out_off, int size)
{
    u64 from_e = mr_entry(c->a[in]), to_e = mr_entry_now(c->a[out]);
    if (likely(!from_e && !to_e)) return mr_plain(c);
    mr_entry_fresh(from_e);
    const s64 *at = in_off >= 0 ? (const s64 *)c->a[in_off] : 0;
    const s64 *to = out_off >= 0 ? (const s64 *)c->a[out_off] : 0;
    if ((at && !mr_readable(at, 8)) || (to && !mr_readable(to, 8))) return mr_plain(c);
    s64 out_at = to ? *to : -1;
    struct mr_call d = *c;
    for (u64 began = 0;;) {
        struct mr_file *f = reading(from_e);
        if (f) {
            long err = source_ready(c->a[in], from_e, at ? (u64)*at : position(c->a[in]), &d.a[size]);
            if (err < 0) return err;
        }
        int over = !f || mr_load(&f->state) == MR_COMMITTED;
        long ret = mr_between(&d, in, from_e, out, to_e);
        wrote_any(c->a[out], to_e, ret, out_at);
        if (ret != 0 || over) return ret;
        int err = rest_a_moment(mr_entry_index(from_e), &began);
        if (err < 0) return err;
    }
}

long mr_do_sendfile(const struct mr_call *c) { return move(c, 1, 2, 0, -1, 3); }
long mr_do_splice(const struct mr_call *c) { return move(c, 0, 1, 2, 3, 4); }
long mr_do_copy_file_range(const struct mr_call *c) { return move(c, 0, 1, 2, 3, 4); }
