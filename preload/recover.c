/* What the death of a process inside the lock may have left half done, counted anew from the facts:
 * a process is alive, a hold names its process and description, a file has its state. */
#include "board.h"

static void rebuild_free(u32 region)
{
    struct mr_region *r = &mr_b->region[region];
    r->free = 0;
    for (u32 i = r->used; i-- > 0;) {
        struct mr_slot *s = mr_at(region, i);
        if (s->used) continue;
        s->link = r->free;
        r->free = i + 1;
    }
}

void mr_recover(void)
{
    for (u32 i = 0; i < mr_used(MR_STEPS); i++) mr_step_at(i)->running = 0;
    for (u32 i = 0; i < mr_used(MR_INSTANCES); i++) mr_instance_at(i)->live = 0;
    for (u32 i = 0; i < mr_used(MR_OFDS); i++) mr_ofd_at(i)->refs = mr_ofd_at(i)->passed;
    for (u32 i = 0; i < mr_used(MR_PROCS); i++) {
        struct mr_proc *p = mr_proc_at(i);
        p->holds = 0;
        if (p->slot.used && p->state == 0) p->slot.used = 0; /* taken, not yet filled */
        if (p->slot.used && p->instance != MR_NONE) mr_instance_at(p->instance)->live++;
    }
    for (u32 i = 0; i < mr_used(MR_INSTANCES); i++) {
        struct mr_instance *n = mr_instance_at(i);
        if (n->slot.used) mr_step_at(n->step)->running++;
    }
    for (u32 i = 0; i < mr_used(MR_HOLDS); i++) {
        struct mr_hold *h = mr_hold_at(i);
        if (!h->slot.used) continue;
        struct mr_proc *p = mr_proc_at(h->proc);
        if (!p->slot.used || !mr_ofd_at(h->ofd)->slot.used) {
            h->slot.used = 0;
            continue;
        }
        h->slot.link = p->holds;
        p->holds = i + 1;
        mr_ofd_at(h->ofd)->refs++;
    }
    for (u32 i = 0; i < mr_used(MR_FILES); i++) {
        struct mr_file *f = mr_file_at(i);
        f->writers = f->waiters = f->begun_children = f->committed_children = 0;
        f->want = ~(u64)0;
        f->stage = 0;
    }
    for (u32 i = 0; i < mr_used(MR_OFDS); i++) {
        struct mr_ofd *o = mr_ofd_at(i);
        if (o->slot.used && o->stage && mr_stage_at(o->stage - 1)->ofd != i) o->stage = 0;
        if (o->slot.used && !o->refs) {
            if (o->stage) mr_stage_stop(o->stage - 1);
            o->slot.used = 0;
        }
        if (o->slot.used && o->stage && !o->gone) mr_file_at(o->file)->stage = o->stage;
        if (o->slot.used && !o->gone) mr_file_at(o->file)->writers++;
    }
    for (u32 i = 0; i < mr_used(MR_STAGES); i++) {
        struct mr_stage *s = mr_stage_at(i);
        if (s->ofd == MR_NONE || !mr_ofd_at(s->ofd)->slot.used) s->slot.used = 0;
    }
    for (u32 i = 0; i < mr_used(MR_WAITS); i++) {
        struct mr_wait *w = mr_wait_at(i);
        if (w->slot.used && mr_proc_at(w->proc)->slot.used) mr_file_at(w->file)->waiters++;
        else w->slot.used = 0;
    }
    for (u32 i = 0; i < mr_used(MR_FILES); i++) {
        struct mr_file *f = mr_file_at(i);
        if (!f->parent) continue;
        struct mr_file *d = mr_file_at(f->parent - 1);
        d->begun_children += f->state != MR_ABSENT;
        d->committed_children += f->state == MR_COMMITTED;
    }
    mr_twins_recover();
    static const u32 regions[] = {MR_EXTENTS, MR_OFDS, MR_HOLDS, MR_PROCS, MR_INSTANCES, MR_WAITS, MR_STAGES};
    for (u32 i = 0; i < sizeof regions / sizeof *regions; i++) rebuild_free(regions[i]);
    mr_event(MR_EV_NOTE, 0, MR_NONE, 0, "a process died while it held the board's lock; the board was repaired");
    for (u32 i = 0; i < mr_used(MR_INSTANCES); i++)
        if (mr_instance_at(i)->slot.used && !mr_instance_at(i)->live) mr_instance_end(i);
    /* waiting processes look again */
    for (u32 i = 0; i < mr_used(MR_FILES); i++) mr_file_wake(mr_file_at(i));
}
