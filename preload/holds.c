/* Who holds which description open for writing, and what follows when the last one closes it. */
#include "board.h"

int mr_hold_add(u32 proc, s32 fd, u32 ofd)
{
    u32 i = mr_take(MR_HOLDS);
    if (i == MR_NONE) return -ENOMEM;
    struct mr_hold *h = mr_hold_at(i);
    struct mr_proc *p = mr_proc_at(proc);
    h->proc = proc;
    h->ofd = ofd;
    h->fd = fd;
    h->slot.link = p->holds;
    mr_ofd_at(ofd)->refs++;
    p->holds = i + 1;
    return 0;
}

u32 mr_ofd_new(u32 proc, s32 fd, u32 file, u32 step)
{
    u32 i = mr_take(MR_OFDS);
    if (i == MR_NONE) return MR_NONE;
    struct mr_ofd *o = mr_ofd_at(i);
    o->file = file;
    o->step = step;
    if (mr_hold_add(proc, fd, i) < 0) {
        mr_give(MR_OFDS, i);
        return MR_NONE;
    }
    mr_file_at(file)->writers++;
    if (mr_file_at(file)->marks & MR_REMOTE) mr_dispute(file, step);
    return i;
}

/* The name of the file that the descriptions write is gone. They write it under another name, or under none. */
void mr_ofd_detach(u32 file)
{
    struct mr_file *f = mr_file_at(file);
    u32 heir = mr_next_name(file);
    if (f->state != MR_COMMITTED) mr_add(&f->generation, 1); /* else who has it open has all of it */
    for (u32 i = 0, n = mr_used(MR_OFDS); i < n && f->writers; i++) {
        struct mr_ofd *o = mr_ofd_at(i);
        if (!o->slot.used || o->file != file || o->gone) continue;
        mr_stage_follow(i, heir == file ? MR_NONE : heir);
        if (heir == file) o->gone = 1;
        else mr_file_at(heir)->writers++;
        o->file = heir;
        f->writers--;
    }
    mr_name_leave(file);
}

/* The last descriptor was closed, or its process ended, as far as one name of the file is concerned. */
static void name_closed(u32 file, const struct mr_proc *p, int how)
{
    const struct mr_file *f = mr_file_at(file);
    if (how == MR_END_UNKNOWN || how == MR_END_DOUBTFUL) {
        mr_count_close(file, (u32)(p - mr_proc_at(0)), how == MR_END_DOUBTFUL);
    } else if (f->commit == MR_ON_CLOSE && f->state < MR_COMMITTED) {
        char why[160];
        struct mr_text t = {why, why + sizeof why};
        mr_put(&t, "process ");
        mr_put_n(&t, p->pid);
        mr_put(&t, " of ");
        mr_put(&t, p->step == MR_NONE ? "no step" : mr_text_at(mr_step_at(p->step)->name));
        mr_put(&t, how == MR_END_KILLED ? " was killed while it wrote it" : " failed while it wrote it");
        mr_file_fail(file, p->step, why);
    }
}

static void ofd_closed(u32 ofd, const struct mr_proc *p, int how)
{
    u64 stamp = mr_ofd_at(ofd)->stamp;
    u32 file = mr_ofd_at(ofd)->file, gone = mr_ofd_at(ofd)->gone, stage = mr_ofd_at(ofd)->stage;
    struct mr_file *f = mr_file_at(file);
    if (stage) { /* only a process that died leaves one */
        int err = mr_stage_stop(stage - 1);
        mr_stage_drop(stage - 1);
        mr_give(MR_STAGES, stage - 1);
        if (err < 0 && !gone) mr_file_fail(file, p->step, "the last bytes of a process that was killed could not be put into it");
    }
    mr_give(MR_OFDS, ofd);
    if (gone) return;
    if (unlikely(stamp)) mr_look_for_changes(file, stamp, p->step);
    if (f->writers) f->writers--;
    for (u32 i = file, left = 256; left--;) {
        u32 next = mr_next_name(i);
        name_closed(i, p, how);
        if ((i = next) == file) return;
    }
}

/* how: MR_END_UNKNOWN is an ordinary close; the others say how the process ended that still held it. */
void mr_hold_drop(u32 proc, s32 fd, u32 ofd, int how)
{
    struct mr_proc *p = mr_proc_at(proc);
    for (u32 *link = &p->holds; *link; link = &mr_hold_at(*link - 1)->slot.link) {
        u32 i = *link - 1;
        const struct mr_hold *h = mr_hold_at(i);
        if (h->fd != fd || (ofd != MR_NONE && h->ofd != ofd)) continue;
        u32 held = h->ofd;
        *link = h->slot.link;
        mr_give(MR_HOLDS, i);
        struct mr_ofd *o = mr_ofd_at(held);
        if (o->refs && --o->refs == 0) ofd_closed(held, p, how);
        return;
    }
}

u32 mr_hold_find(u32 proc, s32 fd)
{
    for (u32 h = mr_proc_at(proc)->holds; h; h = mr_hold_at(h - 1)->slot.link)
        if (mr_hold_at(h - 1)->fd == fd) return mr_hold_at(h - 1)->ofd;
    return MR_NONE;
}

u32 mr_hold_arrived(u32 proc, s32 fd, u32 file)
{
    for (u32 i = 0, n = mr_used(MR_OFDS); i < n; i++) {
        struct mr_ofd *o = mr_ofd_at(i);
        if (!o->slot.used || !o->passed || o->gone || !mr_same_file(o->file, file)) continue;
        if (mr_hold_add(proc, fd, i) < 0) return MR_NONE;
        o->passed--;
        o->refs--;
        return i;
    }
    return MR_NONE;
}
