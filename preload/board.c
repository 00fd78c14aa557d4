/* Laying out, mapping and filling the board. */
#include "board.h"

#include <sys/mman.h>
#include <sys/stat.h>

struct mr_board *mr_b;

static const struct {
    u32 size, cap;
} shape[MR_REGIONS] = {
    [MR_STEPS] = {sizeof(struct mr_step), MR_MAX_STEPS},
    [MR_RULES] = {sizeof(struct mr_rule), 1u << 16},
    [MR_LISTS] = {sizeof(u32), 1u << 20},
    [MR_TEXT] = {1, 256u << 20},
    [MR_BUCKETS] = {sizeof(u32), MR_BUCKET_COUNT},
    [MR_FILES] = {sizeof(struct mr_file), 1u << 20},
    [MR_EXTENTS] = {sizeof(struct mr_extent), 1u << 18},
    [MR_OFDS] = {sizeof(struct mr_ofd), 1u << 18},
    [MR_HOLDS] = {sizeof(struct mr_hold), 1u << 19},
    [MR_PROCS] = {sizeof(struct mr_proc), 1u << 16},
    [MR_INSTANCES] = {sizeof(struct mr_instance), 1u << 16},
    [MR_WAITS] = {sizeof(struct mr_wait), 1u << 16},
    [MR_EVENTS] = {sizeof(struct mr_event), MR_EVENT_COUNT},
    [MR_STAGES] = {sizeof(struct mr_stage), MR_STAGE_COUNT},
    [MR_STAGED] = {MR_STAGE_SIZE, MR_STAGE_COUNT},
};

#define PIECE (128u << 10)

void mr_board_name(char *to, size_t size, u32 uid, const char *workflow)
{
    struct mr_text t = {to, to + size};
    mr_put(&t, "/dev/shm/millrace.");
    mr_put_n(&t, uid);
    mr_put(&t, ".");
    char *name = t.at;
    mr_put(&t, workflow);
    for (; *name; name++)
        if (*name == '/') *name = '_';
}

static u64 page_up(u64 v) { return (v + 4095) & ~(u64)4095; }

int mr_board_layout(int fd, const char *shm)
{
    struct mr_region region[MR_REGIONS];
    u64 off = page_up(sizeof(struct mr_board));
    mr_zero(region, sizeof region);
    for (u32 i = 0; i < MR_REGIONS; i++) {
        region[i].off = off;
        region[i].size = shape[i].size;
        region[i].cap = shape[i].cap;
        off = page_up(off + (u64)shape[i].size * shape[i].cap);
    }
    long err = mr_sys(SYS_ftruncate, fd, off, 0, 0);
    if (err < 0) return (int)err;
    err = mr_sys(SYS_fallocate, fd, 0, 0, page_up(sizeof(struct mr_board)));
    if (err < 0) return (int)err;
    long at = mr_sys6(SYS_mmap, 0, (long)off, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at < 0 && at > -4096) return (int)at;
    mr_b = (struct mr_board *)at;
    mr_b->magic = MR_MAGIC;
    mr_b->version = MR_VERSION;
    mr_b->bytes = off;
    mr_copy(mr_b->region, region, sizeof region);
    mr_copy(mr_b->shm, shm, mr_len(shm) + 1);
    /* text 0 is the empty string; buckets are used at once, all of them */
    if (mr_take_run(MR_TEXT, 1) == MR_NONE || mr_take_run(MR_BUCKETS, MR_BUCKET_COUNT) == MR_NONE) return -ENOSPC;
    return 0;
}

int mr_board_open(const char *shm, u32 uid)
{
    long fd = mr_sys(SYS_openat, AT_FDCWD, shm, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0) return (int)fd;
    struct stat st;
    long at = mr_sys(SYS_fstat, fd, &st, 0, 0);
    if (at == 0 && (st.st_uid != uid || (u64)st.st_size < sizeof(struct mr_board))) at = -EPERM;
    if (at == 0) at = mr_sys6(SYS_mmap, 0, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mr_sys(SYS_close, fd, 0, 0, 0);
    if (at < 0 && at > -4096) return (int)at;
    struct mr_board *b = (struct mr_board *)at;
    if (b->magic != MR_MAGIC || b->version != MR_VERSION || b->bytes != (u64)st.st_size || !mr_load(&b->ready)) {
        mr_sys(SYS_munmap, at, st.st_size, 0, 0);
        return -EPROTO;
    }
    mr_b = b;
    return 0;
}

/* Backs the region with memory up to `bytes`; the mapping itself spans everything already. */
static int back(struct mr_region *r, u64 bytes)
{
    if (likely(bytes <= r->reserved)) return 0;
    u64 to = (bytes + PIECE - 1) / PIECE * PIECE, all = page_up((u64)r->size * r->cap);
    if (to > all) to = all;
    long fd = mr_sys(SYS_openat, AT_FDCWD, mr_b->shm, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return (int)fd;
    long err = mr_sys(SYS_fallocate, fd, 0, r->off + r->reserved, to - r->reserved);
    mr_sys(SYS_close, fd, 0, 0, 0);
    if (err < 0) return (int)err;
    r->reserved = to;
    return 0;
}

static u32 full(u32 region)
{
    static const char *const name[MR_REGIONS] = {"steps", "rules", "lists", "text", "buckets", "files", "extents",
        "descriptions", "descriptors", "processes", "instances", "waits", "events", "stages", "staged bytes"};
    char text[128];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, "the board is full (");
    mr_put(&t, name[region]);
    mr_put(&t, "), or /dev/shm is");
    if (mr_b->region[MR_EVENTS].used) mr_event(MR_EV_FULL, 0, MR_NONE, 0, text);
    return MR_NONE;
}

u32 mr_take_run(u32 region, u32 count)
{
    struct mr_region *r = &mr_b->region[region];
    if (count > r->cap - r->used || back(r, (u64)(r->used + count) * r->size) < 0) return full(region);
    u32 index = r->used;
    mr_store(&r->used, index + count);
    return index;
}

u32 mr_take(u32 region)
{
    struct mr_region *r = &mr_b->region[region];
    u32 index;
    if (r->free) {
        index = r->free - 1;
        r->free = ((struct mr_slot *)mr_at(region, index))->link;
    } else {
        index = mr_take_run(region, 1);
        if (index == MR_NONE) return MR_NONE;
    }
    struct mr_slot *s = mr_at(region, index);
    mr_zero(s, r->size);
    s->used = 1;
    return index;
}

void mr_give(u32 region, u32 index)
{
    struct mr_region *r = &mr_b->region[region];
    struct mr_slot *s = mr_at(region, index);
    mr_store(&s->used, 0);
    s->link = r->free;
    r->free = index + 1;
}

u32 mr_text_add(const char *s, size_t n)
{
    u32 at = mr_take_run(MR_TEXT, (u32)n + 1);
    if (at == MR_NONE) return MR_NONE;
    mr_copy(mr_text_at(at), s, n);
    mr_text_at(at)[n] = 0;
    return at;
}

void mr_event(u32 kind, u32 path, u32 step, u32 pid, const char *text)
{
    mr_b->progress++;
    if (!mr_b->region[MR_EVENTS].used) return;
    u64 seq = ++mr_b->event_seq;
    struct mr_event *e = mr_event_at((u32)(seq % MR_EVENT_COUNT));
    e->seq = 0;
    e->wall = mr_wall();
    e->kind = kind;
    e->path = path;
    e->step = step;
    e->pid = pid;
    struct mr_text t = {e->text, e->text + sizeof e->text};
    *t.at = 0;
    mr_put(&t, text);
    mr_store(&e->seq, seq);
}
