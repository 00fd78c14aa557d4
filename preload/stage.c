/* Small writes, gathered: what a writer has written and the kernel does not have yet.
 *
 * A million system calls of 1 KiB take longer than the bytes. So the writer of a file puts small writes one behind
 * the other into memory of the board, and gives them to the kernel in one piece (io_stage.c). The memory is shared:
 * a process that needs the bytes now, or finds the writer dead, puts them into the file itself. Until then the file is
 * shorter than it could be, never wrong.
 *
 * Only the writer adds: it copies behind `end` and then moves `end` with compare-and-swap. Others only set MR_STOP
 * there, after which that swap fails and the bytes in [from, end) stay as they are. The writer moves `from` when the
 * kernel has the bytes, and looks for MR_STOP again before it uses their place anew. A stage exists only while its
 * description is the only one that is open for writing. */
#include "board.h"

#include <sys/stat.h>

u32 mr_stage_new(u32 ofd, u64 at, u64 dev, u64 ino)
{
    struct mr_ofd *o = mr_ofd_at(ofd);
    const struct mr_region *r = &mr_b->region[MR_STAGES];
    struct mr_file *f = mr_file_at(o->file);
    if (o->gone || o->stage || f->stage || f->writers != 1 || f->twin || f->state != MR_GROWING) return MR_NONE;
    if (f->lower || (mr_load(&f->place) & 1)) return MR_NONE; /* it has moved, or moves just now (spill.c) */
    if (!r->free && r->used == r->cap) return MR_NONE; /* no event: without one it only takes longer */
    u32 i = mr_take(MR_STAGES);
    if (i == MR_NONE) return MR_NONE;
    mr_stage_at(i)->ofd = MR_NONE;
    while (mr_used(MR_STAGED) <= i)
        if (mr_take_run(MR_STAGED, 1) == MR_NONE) {
            mr_give(MR_STAGES, i);
            return MR_NONE;
        }
    struct mr_stage *s = mr_stage_at(i);
    s->dev = dev;
    s->ino = ino;
    s->from = s->end = at;
    s->ofd = ofd;
    mr_store(&o->stage, i + 1);
    mr_store(&f->stage, i + 1);
    return i;
}

static long open_file(const struct mr_file *f, const struct mr_stage *s)
{
    char path[2200];
    struct mr_text t = {path, path + sizeof path};
    struct stat st;
    mr_put(&t, mr_text_at(mr_b->dir));
    mr_put(&t, "/");
    mr_put(&t, mr_text_at(f->path));
    long fd = mr_sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0) return fd;
    if (mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && (u64)st.st_dev == s->dev && (u64)st.st_ino == s->ino) return fd;
    mr_sys(SYS_close, fd, 0, 0, 0);
    return -ESTALE;
}

/* Nothing is added any more, and all of it is in the file. Negative: it is stopped, but the writer itself must
 * still put the bytes there. */
int mr_stage_stop(u32 stage)
{
    struct mr_stage *s = mr_stage_at(stage);
    u64 end = __atomic_fetch_or(&s->end, MR_STOP, __ATOMIC_SEQ_CST) & ~MR_STOP, from;
    /* a writer in the middle of it has nearly done so; one that is dead or stopped has not, and it is done again */
    for (u32 tries = 0; mr_load(&s->busy) && tries < 1000; tries++) mr_sys(SYS_sched_yield, 0, 0, 0, 0);
    from = mr_load(&s->from);
    if (from >= end) return 0;
    if (s->ofd == MR_NONE || mr_ofd_at(s->ofd)->gone) return -ESTALE;
    struct mr_file *f = mr_file_at(mr_ofd_at(s->ofd)->file);
    const char *bytes = mr_at(MR_STAGED, stage);
    long fd = open_file(f, s);
    if (fd < 0) return (int)fd;
    for (u64 at = from; at < end;) {
        long n = mr_sys(SYS_pwrite64, fd, bytes + (at - from), end - at, at);
        if (n <= 0) {
            mr_sys(SYS_close, fd, 0, 0, 0);
            return n < 0 ? (int)n : -EIO;
        }
        at += (u64)n;
    }
    mr_sys(SYS_close, fd, 0, 0, 0);
    mr_store(&s->from, end);
    if ((f->mode == MR_NO_UPDATE && f->state == MR_GROWING) || f->twin) mr_publish_locked(f, from, end);
    return 0;
}

/* Its description has no stage any more. */
void mr_stage_drop(u32 stage)
{
    struct mr_stage *s = mr_stage_at(stage);
    u32 ofd = s->ofd;
    s->ofd = MR_NONE;
    if (ofd == MR_NONE) return;
    struct mr_ofd *o = mr_ofd_at(ofd);
    if (o->stage != stage + 1) return;
    o->stage = 0;
    if (mr_file_at(o->file)->stage == stage + 1) mr_store(&mr_file_at(o->file)->stage, 0);
}

/* The description writes another file from now on, or one without a name (MR_NONE). */
void mr_stage_follow(u32 ofd, u32 file)
{
    const struct mr_ofd *o = mr_ofd_at(ofd);
    if (!o->stage) return;
    if (mr_file_at(o->file)->stage == o->stage) mr_store(&mr_file_at(o->file)->stage, 0);
    if (file != MR_NONE) mr_store(&mr_file_at(file)->stage, o->stage);
}

int mr_file_up_to_date(u32 file)
{
    u32 stage = mr_load(&mr_file_at(file)->stage);
    return stage ? mr_stage_stop(stage - 1) : 0;
}
