/* Waiting for a file.
 *
 * A waiter sleeps on the record's futex. It wakes when a producer books something, and on its own every
 * 100 ms to look for producers that died, for a deadlock and at the time limit: nothing depends on a dead
 * process having woken its waiters. */
#include "board.h"

#define LOOK_NS 100000000u
#define DEADLOCK_NS 400000000u
/* A reader at the frontier asks for a piece of this size before it is woken, but not for longer than a
 * moment: a wake-up costs as much as writing 200 KiB. */
#define PIECE (1u << 20)
#define MOMENT_NS 1000000u

/* A consumer of many small files that keeps up with its producer would be woken for each, which costs more than
 * the file. It lingers instead, so that the next files are there as well when it goes on: so long that a fair number
 * of them is. */
#define LINGER_NS 500000u
#define LINGER_MOST_NS 2000000u
#define ENOUGH 32u
#define OFTEN_NS 800000u
/* Who waits for a file to begin is woken when this much is there, or all of it: not twice for a small one. */
#define START (64u << 10)

u64 mr_wait_limit;
u32 mr_passes;

/* Of this process; threads may mix it up, which costs a moment at most. */
static struct {
    u32 often, on;     /* on: nanoseconds, 0 = it does not */
    u32 rest, penalty; /* waits before the next attempt, after one that did not pay; the more, the more often that was */
    u64 last;
} linger = {.penalty = 64};

/* Does it pay? Waits one after the other say that it may; files that were there without a wait after the last time
 * must say that it did. */
static u32 lingers(void)
{
    u64 now = mr_now();
    u32 found = mr_passes, longer = linger.on < LINGER_MOST_NS / 2 ? linger.on * 2 : LINGER_MOST_NS;
    if (now - linger.last < OFTEN_NS + linger.on) linger.often++;
    else linger.often -= linger.often > 2 ? 2 : linger.often;
    if (linger.often > 16) linger.often = 16;
    linger.last = now;
    mr_passes = 0;
    if (!linger.on) {
        if (linger.rest) linger.rest--;
        else if (linger.often >= 6) linger.on = LINGER_NS;
    } else if (found < 2 && linger.on == LINGER_MOST_NS) {
        linger.on = 0;
        linger.rest = linger.penalty;
        if (linger.penalty < 4096) linger.penalty *= 2;
    } else if (found < ENOUGH) {
        linger.on = longer;
    } else if (found > 4 * ENOUGH && linger.on > LINGER_NS) {
        linger.on /= 2;
    }
    if (found >= ENOUGH / 4 && linger.on) linger.penalty = 64;
    return linger.on;
}

static int satisfied(struct mr_file *f, u32 kind, u64 at, u64 len)
{
    u32 state = mr_load(&f->state);
    if (mr_load(&mr_b->gone) || state == MR_FAILED) return -EIO;
    if (state == MR_COMMITTED) return 1;
    if (f->mode != MR_NO_UPDATE) return 0;
    if (kind == MR_WAIT_EXISTS) return state == MR_GROWING;
    return kind == MR_WAIT_DATA && mr_available(f, at) >= at + len;
}

static u32 enter(u32 proc, u32 file, u32 kind, u64 at, u64 want)
{
    struct mr_guard g;
    mr_lock(&g);
    u32 slot = MR_NONE;
    struct mr_file *f = mr_file_at(file);
    if (mr_file_evaluate(file) < MR_COMMITTED && proc != MR_NONE) {
        slot = mr_take(MR_WAITS);
        if (slot != MR_NONE) {
            struct mr_wait *w = mr_wait_at(slot);
            w->proc = proc;
            w->tid = (u32)mr_sys(SYS_gettid, 0, 0, 0, 0);
            w->file = file;
            w->kind = kind;
            w->at = at;
            w->want = want;
            w->since = mr_now();
            mr_add(&f->waiters, 1);
        }
    }
    mr_unlock(&g);
    return slot;
}

static void leave(u32 slot, u32 proc, u32 file)
{
    struct mr_guard g;
    if (slot == MR_NONE) return;
    mr_lock(&g);
    struct mr_wait *w = mr_wait_at(slot);
    if (w->slot.used && w->proc == proc && w->file == file) {
        mr_add(&mr_file_at(file)->waiters, (u32)-1);
        mr_give(MR_WAITS, slot);
    }
    mr_unlock(&g);
}

static void ask_for(struct mr_file *f, u64 want)
{
    u64 now = mr_load(&f->want);
    while (want < now && !mr_cas(&f->want, &now, want)) {}
}

static void report(u32 kind, u32 proc, u32 file, const char *text)
{
    struct mr_guard g;
    mr_lock(&g);
    const struct mr_proc *p = proc == MR_NONE ? 0 : mr_proc_at(proc);
    mr_event(kind, mr_file_at(file)->path + 1, p ? p->step : MR_NONE, p ? p->pid : 0, text);
    mr_unlock(&g);
}

/* With hundreds of processes each looks less often. */
static u64 crowd(u32 region) { return 1 + mr_used(region) / 256; }

struct patience {
    u64 began, looked, stuck_progress, rested;
    u32 stuck;
};

/* The slow look, every 100 ms. A negative result ends the wait. */
static int look(struct patience *pa, u32 slot, u32 proc, u32 file)
{
    struct mr_guard g;
    char why[200];
    u64 now = mr_now(), limit = mr_wait_limit ? mr_wait_limit : mr_b->limit_ns;
    u64 last = mr_load(&mr_b->last_reap);
    /* one of the waiters looks, for all of them; reading /proc takes long, so without the lock */
    if (now > last && now - last >= LOOK_NS * crowd(MR_PROCS) && mr_cas(&mr_b->last_reap, &last, now) && mr_any_dead()) {
        mr_lock(&g);
        mr_reap();
        mr_unlock(&g);
    }
    if (limit && now - pa->began > limit) {
        report(MR_EV_TIMEOUT, proc, file, "waited longer than the time limit");
        return -ETIMEDOUT;
    }
    if (slot == MR_NONE || now - pa->looked < DEADLOCK_NS * crowd(MR_WAITS)) return 0;
    pa->looked = now;
    u64 progress = mr_load(&mr_b->progress);
    if (!mr_deadlocked(slot, why, sizeof why)) {
        pa->stuck = 0;
    } else if (!pa->stuck || pa->stuck_progress != progress) {
        pa->stuck = 1; /* seen once; believed when nothing at all has moved until the next look */
        pa->stuck_progress = progress;
    } else {
        report(MR_EV_DEADLOCK, proc, file, why);
        return -EDEADLK;
    }
    return 0;
}

/* For a caller that waits in its own way, since `began`: a moment's sleep, with the same looks. */
int mr_wait_moment(u32 proc, u32 file, u64 began)
{
    struct mr_guard g;
    struct mr_time moment = {0, 2000000};
    struct patience pa = {.began = began, .looked = began};
    mr_sys(SYS_nanosleep, &moment, 0, 0, 0);
    if (mr_load(&mr_b->gone)) return -EIO;
    int err = look(&pa, MR_NONE, proc, file);
    mr_lock(&g);
    mr_file_evaluate(file);
    mr_unlock(&g);
    return err;
}

/* A signal has cut a rest short. With one every millisecond, as profilers send them, no rest would ever be whole, and
 * no process would look: so the cut ones are added up. */
static long interrupted(struct patience *pa, u64 span)
{
    u64 now = mr_now();
    if (now - pa->rested < span) return -EINTR;
    pa->rested = now;
    return -ETIMEDOUT;
}

static int wait_for(u32 proc, u32 file, u32 kind, u64 at, u64 len)
{
    struct mr_file *f = mr_file_at(file);
    int ok = satisfied(f, kind, at, len);
    if (ok > 0 && kind != MR_WAIT_DATA) mr_passes++;
    if (ok) return ok < 0 ? ok : 0;
    u32 linger_ns = lingers();
    if (linger_ns) {
        struct mr_time moment = {0, linger_ns};
        mr_sys(SYS_nanosleep, &moment, 0, 0, 0);
        ok = satisfied(f, kind, at, len);
        if (ok) return ok < 0 ? ok : 0;
    }
    u32 slot = enter(proc, file, kind, at, at + len);
    struct patience pa = {.began = mr_now()};
    pa.looked = pa.rested = pa.began;
    int greedy = kind == MR_WAIT_DATA || (kind == MR_WAIT_EXISTS && f->mode == MR_NO_UPDATE);
    for (;;) {
        u32 seq = mr_load(&f->seq);
        u64 frontier = mr_load(&f->frontier);
        u32 what = greedy ? (u32)MR_WAIT_DATA : kind;
        u64 least = kind == MR_WAIT_DATA ? PIECE : START, amount = greedy && len < least ? least : len;
        if (what == MR_WAIT_DATA) ask_for(f, at + amount);
        if (what == MR_WAIT_EXISTS) ask_for(f, 1);
        ok = satisfied(f, what, at, amount);
        if (ok) break;
        u64 span = greedy || mr_load(&f->stage) ? MOMENT_NS : LOOK_NS;
        long r = mr_futex_wait(&f->seq, seq, span);
        if (unlikely(r == -EINTR)) r = interrupted(&pa, span);
        greedy = greedy && r != -ETIMEDOUT;
        ok = greedy ? satisfied(f, what, at, amount) : satisfied(f, kind, at, len);
        if (ok) break;
        if (r == -ETIMEDOUT || kind != MR_WAIT_DATA) {
            struct mr_guard g;
            mr_lock(&g);
            /* small writes that a writer gathers and does not come to an end with */
            if (kind == MR_WAIT_DATA && mr_load(&f->frontier) == frontier) mr_file_up_to_date(file);
            mr_file_evaluate(file);
            mr_unlock(&g);
            ok = satisfied(f, kind, at, len);
            if (ok) break;
        }
        if (r != -ETIMEDOUT || mr_now() - pa.began < LOOK_NS) continue;
        ok = look(&pa, slot, proc, file);
        if (ok == -EDEADLK && kind == MR_WAIT_DATA && mr_available(f, at) > at) ok = 1; /* less is better than never */
        if (ok) break;
    }
    leave(slot, proc, file);
    return ok < 0 ? ok : 0;
}

/* 0: go on (committed, there, or enough written); else -EIO, -EDEADLK or -ETIMEDOUT, which the program gets. */
int mr_wait_for(u32 proc, u32 file, u32 kind, u64 at, u64 len)
{
    int err = wait_for(proc, file, kind, at, len);
    if (unlikely(err < 0)) mr_spoil(proc, MR_BROKEN);
    return err;
}

/* The same for who can do with what there is, when the wait can never end. */
int mr_wait_if_it_ends(u32 proc, u32 file, u32 kind)
{
    int err = wait_for(proc, file, kind, 0, 0);
    if (unlikely(err < 0)) mr_spoil(proc, err == -EDEADLK ? MR_DOUBTFUL : MR_BROKEN);
    return err == -EDEADLK ? 0 : err;
}
