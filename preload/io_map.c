/* mmap. A mapping cannot wait where it is touched, so a consumer's mmap waits for the commit. A producer's
 * shared writable mapping keeps the description open, as it does in the kernel, until it is unmapped. */
#include "local.h"

#include <sys/mman.h>

#define MAPS 128

struct map {
    u64 at, len, offset;
    u32 ofd, used;
};
static struct map maps[MAPS];

static s32 hold_number(u32 slot) { return -2 - (s32)slot; }

long mr_do_mmap(const struct mr_call *c)
{
    u64 e = (c->a[3] & MAP_ANONYMOUS) ? 0 : mr_entry((int)c->a[4]);
    if (likely(!e)) return mr_plain(c);
    mr_entry_fresh(e);
    if (mr_entry_kind(e) == MR_READER) {
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_COMMIT, 0, 0);
        if (err < 0) return err;
        if (mr_size_of_map_trusted(c->a[4], e, (u64)c->a[5] + (u64)c->a[1])) return -EIO;
    }
    long at = mr_plain(c);
    if ((at < 0 && at > -4096) || mr_entry_kind(e) != MR_WRITER) return at;
    if ((c->a[3] & MAP_TYPE) == MAP_PRIVATE || !(c->a[2] & PROT_WRITE)) return at;
    struct mr_who who = mr_who(0);
    struct mr_guard g;
    if (who.foreign || who.proc == MR_NONE) return at;
    mr_lock(&g);
    u32 i = 0;
    while (i < MAPS && maps[i].used) i++;
    /* beyond the table the hold ends with the process: late, never early */
    mr_hold_add(who.proc, hold_number(i), mr_entry_index(e));
    if (i < MAPS) {
        maps[i] = (struct map){(u64)at, (u64)c->a[1], (u64)c->a[5], mr_entry_index(e), 1};
        mr_add(&mr_self.maps, 1);
    }
    mr_unlock(&g);
    return at;
}

static void publish_map(const struct map *m, u64 at, u64 len)
{
    const struct mr_ofd *o = mr_ofd_at(m->ofd);
    struct mr_file *f = mr_file_at(o->file);
    if (f->mode == MR_NO_UPDATE && !o->gone) mr_publish(f, m->offset + (at - m->at), m->offset + (at - m->at) + len);
}

long mr_do_munmap(const struct mr_call *c)
{
    if (likely(!mr_load(&mr_self.maps))) return mr_plain(c);
    u64 at = (u64)c->a[0], end = at + (u64)c->a[1];
    struct mr_who who = mr_who(0);
    long ret = mr_plain(c);
    if (ret < 0 || who.foreign) return ret;
    for (u32 i = 0; i < MAPS; i++) {
        struct map m = maps[i];
        struct mr_guard g;
        if (!m.used || m.at < at || m.at + m.len > ((end + 4095) & ~(u64)4095)) continue;
        publish_map(&m, m.at, m.len);
        mr_lock(&g);
        maps[i].used = 0;
        mr_add(&mr_self.maps, (u32)-1);
        mr_hold_drop(who.proc, hold_number(i), m.ofd, MR_END_UNKNOWN);
        mr_unlock(&g);
    }
    return ret;
}

long mr_do_msync(const struct mr_call *c)
{
    u64 at = (u64)c->a[0], end = at + (u64)c->a[1];
    for (u32 i = 0; i < MAPS && mr_load(&mr_self.maps); i++) {
        struct map m = maps[i];
        if (!m.used || at < m.at || at >= m.at + m.len) continue;
        publish_map(&m, at, (end > m.at + m.len ? m.at + m.len : end) - at);
    }
    return mr_plain(c);
}
