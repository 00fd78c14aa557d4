/* mmap. A mapping cannot wait where it is touched, so a consumer's mmap waits for the commit. A producer's
 * shared writable mapping keeps the description open, as it does in the kernel, until it is unmapped. */
#include "local.h"

#include <sys/mman.h>
#include <sys/vfs.h>

#define MAPS 128

struct map {
    u64 at, len, offset;
    u32 ofd, used; /* ofd: MR_NONE without a hold */
    struct mr_file *pinned;
};
static struct map maps[MAPS];

static s32 hold_number(u32 slot) { return -2 - (s32)slot; }

/* A file that is mapped stays where it is. One that cannot grow in memory moves before: a store into a mapping that
 * finds no memory is the end of the program. */
static long map_where_it_is(const struct mr_call *c, u64 e, struct mr_file **pinned)
{
    struct mr_file *f = mr_placed(e);
    struct statfs room;
    if (!f || mr_load(&f->state) == MR_COMMITTED) return mr_on(c, 4, e);
    int grows = mr_entry_kind(e) == MR_WRITER && (c->a[2] & PROT_WRITE) && (c->a[3] & MAP_TYPE) != MAP_PRIVATE;
    if (grows && mr_b->layer && mr_sys(SYS_fstatfs, c->a[4], &room, 0, 0) == 0 && (u64)room.f_bavail * (u64)room.f_bsize < (u64)c->a[1])
        mr_file_move(mr_entry_file(e), c->a[4]);
    mr_add(&f->pinned, 1);
    mr_place_wait(f);
    *pinned = f;
    return mr_on(c, 4, e);
}

/* A free slot, MAPS when there is none. Under the lock. */
static u32 note(const struct map *m)
{
    u32 i = 0;
    while (i < MAPS && maps[i].used) i++;
    if (i == MAPS) return i;
    maps[i] = *m;
    mr_add(&mr_self.maps, 1);
    return i;
}

long mr_do_mmap(const struct mr_call *c)
{
    long fd = (int)c->a[4]; /* the upper half of the register may hold anything */
    u64 e = (c->a[3] & MAP_ANONYMOUS) ? 0 : mr_entry_now(fd);
    if (c->a[3] & MAP_FIXED) mr_forget_pages((u64)c->a[0], (u64)c->a[1]);
    if (likely(!e)) return mr_plain(c);
    mr_entry_fresh(e);
    if (mr_entry_kind(e) == MR_READER) {
        mr_touched[fd] |= c->a[1] != 0; /* nothing: the size that it was told */
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_COMMIT, 0, 0);
        if (err < 0) return err;
        if (mr_outdated(fd, &e, mr_file_at(mr_entry_index(e)))) return -EIO;
    }
    struct map m = {.len = (u64)c->a[1], .offset = (u64)c->a[5], .ofd = MR_NONE, .used = 1};
    long at = map_where_it_is(c, e, &m.pinned);
    if (at < 0 && at > -4096) {
        if (m.pinned) mr_add(&m.pinned->pinned, (u32)-1);
        return at;
    }
    m.at = (u64)at;
    int shared = (c->a[3] & MAP_TYPE) != MAP_PRIVATE && (c->a[2] & PROT_WRITE);
    if (mr_entry_kind(e) == MR_WRITER && shared) m.ofd = mr_entry_index(e);
    if (m.ofd == MR_NONE && !m.pinned) return at;
    struct mr_who who = mr_who(0);
    struct mr_guard g;
    if (who.foreign || who.proc == MR_NONE) return at;
    mr_lock(&g);
    u32 i = note(&m);
    /* beyond the table the hold ends with the process: late, never early */
    if (m.ofd != MR_NONE) mr_hold_add(who.proc, hold_number(i), m.ofd);
    mr_unlock(&g);
    return at;
}

/* A fork has the mappings too, and takes its pins away by itself. */
void mr_maps_forked(void)
{
    for (u32 i = 0; i < MAPS && mr_load(&mr_self.maps); i++)
        if (maps[i].used && maps[i].pinned) mr_add(&maps[i].pinned->pinned, 1);
}

static void publish_map(const struct map *m, u64 at, u64 len)
{
    const struct mr_ofd *o = mr_ofd_at(m->ofd);
    struct mr_file *f = mr_file_at(o->file);
    if ((f->mode == MR_NO_UPDATE || mr_load(&f->twin)) && !o->gone) mr_publish(f, m->offset + (at - m->at), m->offset + (at - m->at) + len);
}

long mr_do_munmap(const struct mr_call *c)
{
    mr_forget_pages((u64)c->a[0], (u64)c->a[1]);
    if (likely(!mr_load(&mr_self.maps))) return MR_GO;
    u64 at = (u64)c->a[0], end = at + (u64)c->a[1];
    struct mr_who who = mr_who(0);
    long ret = mr_plain(c);
    if (ret < 0 || who.foreign) return ret;
    for (u32 i = 0; i < MAPS; i++) {
        struct map m = maps[i];
        struct mr_guard g;
        if (!m.used || m.at < at || m.at + m.len > ((end + 4095) & ~(u64)4095)) continue;
        if (m.ofd != MR_NONE) publish_map(&m, m.at, m.len);
        if (m.pinned) mr_add(&m.pinned->pinned, (u32)-1);
        mr_lock(&g);
        maps[i].used = 0;
        mr_add(&mr_self.maps, (u32)-1);
        if (m.ofd != MR_NONE) mr_hold_drop(who.proc, hold_number(i), m.ofd, MR_END_UNKNOWN);
        mr_unlock(&g);
    }
    return ret;
}

long mr_do_msync(const struct mr_call *c)
{
    u64 at = (u64)c->a[0], end = at + (u64)c->a[1];
    for (u32 i = 0; i < MAPS && mr_load(&mr_self.maps); i++) {
        struct map m = maps[i];
        if (!m.used || m.ofd == MR_NONE || at < m.at || at >= m.at + m.len) continue;
        publish_map(&m, at, (end > m.at + m.len ? m.at + m.len : end) - at);
    }
    return mr_plain(c);
}
