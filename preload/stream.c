/* How far a growing file is written: the frontier, and pieces beyond it.
 *
 * Writers raise the frontier without the lock. Pieces that do not touch it wait in an ordered list (under
 * the lock) until the gap closes. A writer that raised the frontier looks for pieces afterwards, a writer
 * that added a piece looks at the frontier afterwards: one of them sees the other. */
#include "board.h"

static void drop(struct mr_file *f, u32 *link)
{
    u32 i = *link - 1;
    (void)f;
    *link = mr_extent_at(i)->slot.link;
    mr_give(MR_EXTENTS, i);
}

static void raise_to(struct mr_file *f, u64 to)
{
    u64 now = mr_load(&f->frontier);
    while (now < to && !mr_cas(&f->frontier, &now, to)) {}
}

static void mark(struct mr_file *f, u16 which) { __atomic_fetch_or(&f->marks, which, __ATOMIC_SEQ_CST); }

static void absorb(struct mr_file *f)
{
    while (f->extents) {
        const struct mr_extent *e = mr_extent_at(f->extents - 1);
        if (e->from > mr_load(&f->frontier)) return;
        raise_to(f, e->to);
        drop(f, &f->extents);
    }
}

static void add_piece(struct mr_file *f, u64 from, u64 to)
{
    u32 *link = &f->extents;
    while (*link && mr_extent_at(*link - 1)->to < from) link = &mr_extent_at(*link - 1)->slot.link;
    /* swallow all that overlap or touch */
    while (*link && mr_extent_at(*link - 1)->from <= to) {
        const struct mr_extent *e = mr_extent_at(*link - 1);
        if (e->from < from) from = e->from;
        if (e->to > to) to = e->to;
        drop(f, link);
    }
    u32 i = mr_take(MR_EXTENTS);
    if (i == MR_NONE) {
        f->extent_lost = 1;
        return;
    }
    struct mr_extent *e = mr_extent_at(i);
    e->from = from;
    e->to = to;
    e->slot.link = *link;
    mr_store(link, i + 1);
}

static void publish_locked(struct mr_file *f, u64 from, u64 to)
{
    u64 frontier = mr_load(&f->frontier);
    if (from < frontier) mark(f, MR_OVERWRITTEN);
    if (from > frontier) add_piece(f, from, to);
    else raise_to(f, to);
    absorb(f);
    if (mr_load(&f->waiters)) mr_file_wake_later(f);
}

static void publish(struct mr_file *f, u64 from, u64 to)
{
    struct mr_guard g;
    u64 frontier = mr_load(&f->frontier);
    int beyond = from > frontier;
    if (unlikely(from < frontier) && !(mr_load(&f->marks) & MR_OVERWRITTEN)) mark(f, MR_OVERWRITTEN);
    if (!beyond) raise_to(f, to);
    if (unlikely(beyond || mr_load(&f->extents))) {
        mr_lock(&g);
        if (beyond) add_piece(f, from, to);
        absorb(f);
        mr_unlock(&g);
        if (mr_load(&f->waiters)) mr_file_wake(f);
        return;
    }
    u64 want = mr_load(&f->want);
    if (unlikely(want <= to) && want <= mr_load(&f->frontier)) mr_file_wake(f);
}

/* The same for all names of a file, each as its own rule says. */
static void publish_names(struct mr_file *f, u64 from, u64 to, void (*how)(struct mr_file *f, u64 from, u64 to))
{
    u32 first = (u32)(f - mr_file_at(0)), i = first;
    for (u32 left = 256; left--;) {
        struct mr_file *name = mr_file_at(i);
        if (name->mode == MR_NO_UPDATE && mr_load(&name->state) == MR_GROWING) how(name, from, to);
        if ((i = mr_next_name(i)) == first) return;
    }
}

void mr_publish(struct mr_file *f, u64 from, u64 to)
{
    if (unlikely(mr_load(&f->twin))) publish_names(f, from, to, publish);
    else publish(f, from, to);
}

void mr_publish_locked(struct mr_file *f, u64 from, u64 to)
{
    if (unlikely(mr_load(&f->twin))) publish_names(f, from, to, publish_locked);
    else publish_locked(f, from, to);
}

void mr_cut(struct mr_file *f, u64 size)
{
    int taken = mr_load(&f->frontier) > size;
    if (taken) mr_store(&f->frontier, size);
    for (u32 *link = &f->extents; *link;) {
        struct mr_extent *e = mr_extent_at(*link - 1);
        taken |= e->to > size;
        if (e->from >= size) {
            drop(f, link);
            continue;
        }
        if (e->to > size) e->to = size;
        link = &e->slot.link;
    }
    if (taken) mr_add(&f->generation, 1);
}

u64 mr_available(struct mr_file *f, u64 at)
{
    u64 frontier = mr_load(&f->frontier);
    if (at < frontier || !mr_load(&f->extents)) return frontier;
    struct mr_guard g;
    u64 to = 0;
    mr_lock(&g);
    for (u32 i = f->extents; i; i = mr_extent_at(i - 1)->slot.link) {
        const struct mr_extent *e = mr_extent_at(i - 1);
        if (e->from <= at && at < e->to) to = e->to;
    }
    mr_unlock(&g);
    return to > frontier ? to : frontier;
}
