/* Small reads of a growing file, served from memory: the reader's side of what io_stage.c does for writers.
 *
 * After a number of small reads one behind the other, through a descriptor that no other process has, the library reads a
 * large piece and hands it out. The kernel's position is then ahead of the program's, so the first call of another
 * kind on the descriptor, a fork, an exec or a thread puts it back first. Only bytes that are written for good are
 * taken; if they are taken back (the file's generation), they are not handed out any more.
 *
 * Only in a process of one thread. Signals are held off while position and memory disagree; a handler that reads in the
 * middle of a read finds its place taken already, puts the position back and asks the kernel. */
#include "local.h"

#define OWN 4u
#define SIZE (128u << 10)
#define SMALL 8192u /* larger reads gain nothing */
#define NOWHERE ((u64)1 << 63)

struct ahead {
    u32 used, inside; /* inside: reads at work on it, two when a signal handler interrupted the first */
    u32 left;         /* ended, but the interrupted read does not know yet */
    s32 fd;
    u64 at, end;
};
static struct ahead own[OWN];
static char bytes[OWN][SIZE];
static u8 ahead_of[MR_FDS]; /* index + 1 in own */
static u8 small[MR_FDS];    /* small reads so far */

/* Between this thread and its signal handlers. */
#define barrier() __asm__ volatile("" : : : "memory")

static void leave(struct ahead *o)
{
    o->inside--;
    barrier();
    if (unlikely(o->left) && !o->inside) o->used = 0;
}

/* Another file has this number now. */
void mr_ahead_opened(long fd) { small[fd] = 0; }

void mr_ahead_end(long fd)
{
    if ((unsigned long)fd >= MR_FDS) return;
    small[fd] = 0;
    if (likely(!ahead_of[fd])) return;
    u64 signals = mr_hold_signals();
    u32 k = ahead_of[fd];
    if (k) {
        struct ahead *o = &own[k - 1];
        ahead_of[fd] = 0;
        if (o->at < o->end) mr_sys(SYS_lseek, fd, (s64)o->at - (s64)o->end, SEEK_CUR, 0);
        mr_store(&mr_pos[fd], 0);
        o->at = NOWHERE;
        o->left = 1;
        if (!o->inside) o->used = 0;
        mr_self.staged--;
    }
    mr_let_signals(signals);
}

void mr_ahead_end_all(void)
{
    for (u32 i = 0; i < OWN; i++)
        if (own[i].used && !own[i].left) mr_ahead_end(own[i].fd);
}

/* MR_NOT_STAGED: there is not enough of it. */
long mr_ahead_take(long fd, void *to, u64 len)
{
    u32 k = ahead_of[fd];
    if (!k) return MR_NOT_STAGED;
    if (unlikely(!mr_writable(to, len))) {
        mr_ahead_end(fd);
        return MR_NOT_STAGED;
    }
    struct ahead *o = &own[k - 1];
    o->inside++;
    barrier();
    u64 at = mr_peek(&o->at);
    /* taken before it is copied: what a handler reads now comes behind it; one that was here before us has ended it */
    int ours = ahead_of[fd] == k && o->inside == 1 && at + len <= o->end && mr_cas(&o->at, &at, at + len);
    if (likely(ours)) {
        mr_copy_fast(to, bytes[k - 1] + at, len);
        barrier();
    }
    leave(o);
    if (likely(ours)) return (long)len;
    mr_ahead_end(fd);
    return MR_NOT_STAGED;
}

static struct ahead *free_one(void)
{
    for (u32 i = 0; i < OWN; i++)
        if (!own[i].used) return &own[i];
    return 0;
}

/* The read c at the position, when enough is written behind it (mr_pos). MR_NOT_STAGED: the kernel has to do it. */
long mr_ahead_fill(const struct mr_call *c, u64 e)
{
    long fd = c->a[0];
    u64 len = (u64)c->a[2];
    if (len > SMALL) return MR_NOT_STAGED;
    if (small[fd] < 255) small[fd]++;
    if (!mr_stage_after || small[fd] < mr_stage_after) return MR_NOT_STAGED;
    if (mr_self.threads || mr_self.depth != 1 || !mr_writable((void *)c->a[1], len)) return MR_NOT_STAGED; /* an interrupted call may be about to use the position */
    u64 signals = mr_hold_signals();
    struct ahead *o = ahead_of[fd] ? 0 : free_one();
    s64 there = mr_peek(&mr_pos[fd]), most = there > (s64)SIZE ? (s64)SIZE : there;
    long got = 0;
    if (o && there >= 2 * (s64)len) {
        struct mr_call d = {SYS_read, {fd, (long)bytes[o - own], most, 0, 0, 0}};
        got = mr_on(&d, 0, e);
        mr_store(&mr_pos[fd], got == most ? there - got : 0);
        if (got >= (long)len) {
            *o = (struct ahead){.used = 1, .inside = 1, .fd = (s32)fd, .at = len, .end = (u64)got};
            ahead_of[fd] = (u8)(o - own + 1);
            mr_self.staged++;
        } else if (got > 0) {
            mr_sys(SYS_lseek, fd, -got, SEEK_CUR, 0);
        }
    }
    mr_let_signals(signals);
    if (got < (long)len) return MR_NOT_STAGED;
    mr_copy_fast((void *)c->a[1], bytes[o - own], len);
    leave(o);
    return (long)len;
}
