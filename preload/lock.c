/* The board's lock. A word holds the owner's thread id; a waiter that finds the owner dead takes the lock
 * over and repairs what the owner left half done (mr_recover). Signals are held off while it is taken, so
 * a handler that does I/O cannot meet its own thread's lock; not where there is no handler, for that takes two calls
 * more than all the rest. */
#include "board.h"

#define WAITED 0x80000000u
#define LOOK_NS 20000000u

static int read_small(const char *path, char *to, size_t size)
{
    long fd = mr_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return (int)fd;
    long n = mr_sys(SYS_read, fd, to, size - 1, 0);
    mr_sys(SYS_close, fd, 0, 0, 0);
    to[n > 0 ? n : 0] = 0;
    return (int)n;
}

int mr_task_state(u32 pid, u64 *start, u32 *parent, u32 *threads)
{
    char path[40], text[512];
    struct mr_text t = {path, path + sizeof path};
    mr_put(&t, "/proc/");
    mr_put_n(&t, pid);
    mr_put(&t, "/stat");
    if (read_small(path, text, sizeof text) <= 0) return 0;
    char *p = text, *last = 0;
    for (; *p; p++)
        if (*p == ')') last = p;
    if (!last || last[1] != ' ') return 0;
    p = last + 2;
    int state = *p;
    for (int field = 3; *p; p++) {
        if (*p != ' ') continue;
        field++;
        if (field == 4 && parent) *parent = (u32)mr_number(p + 1);
        if (field == 20 && threads) *threads = (u32)mr_number(p + 1);
        if (field == 22) {
            if (start) *start = mr_number(p + 1);
            break;
        }
    }
    return state;
}

int mr_alive(u32 pid, u64 start)
{
    u64 now = 0;
    u32 threads = 0;
    if (mr_sys(SYS_kill, pid, 0, 0, 0) == -ESRCH) return 0;
    int state = mr_task_state(pid, &now, 0, &threads);
    /* no /proc, or no descriptor left to read it with: then the signal above is all we know */
    if (!state && !mr_task_state((u32)mr_sys(SYS_getpid, 0, 0, 0, 0), 0, 0, 0)) return 1;
    /* a leader that left its threads behind is a zombie too, but its process lives */
    if (!state || ((state == 'Z' || state == 'X') && threads <= 1)) return 0;
    return !start || now == start;
}

/* One thread, not its process: a thread may be gone, by exec for example, while the others live. */
static int owner_died(u32 tid)
{
    if (mr_sys(SYS_kill, tid, 0, 0, 0) == -ESRCH) return 1;
    int state = mr_task_state(tid, 0, 0, 0);
    if (!state) return mr_task_state((u32)mr_sys(SYS_getpid, 0, 0, 0, 0), 0, 0, 0) != 0;
    return state == 'Z' || state == 'X';
}

int mr_thread_lives(u32 tid) { return !owner_died(tid); }

u32 mr_only_thread, mr_no_handlers;

void mr_lock_word(u32 *word, struct mr_guard *g)
{
    u32 me = mr_peek(&mr_only_thread);
    g->held = !me || !mr_no_handlers;
    if (g->held) g->signals = mr_hold_signals();
    if (!me) me = (u32)mr_sys(SYS_gettid, 0, 0, 0, 0);
    u32 mine = me;
    for (int spin = 0;; spin++) {
        u32 seen = 0;
        if (mr_cas(word, &seen, mine)) return;
        if (spin < 60) {
            mr_pause();
            continue;
        }
        mine = me | WAITED; /* others may wait too: a process that gets it after a sleep must wake the next */
        if (!(seen & WAITED)) {
            u32 with = seen | WAITED;
            if (!mr_cas(word, &seen, with)) continue;
            seen = with;
        }
        if (mr_futex_wait(word, seen, LOOK_NS) != -ETIMEDOUT) continue;
        if (!owner_died(seen & ~WAITED)) continue;
        if (!mr_cas(word, &seen, mine)) continue;
        if (word != &mr_b->lock) return;
        mr_recover();
        mr_b->recovered++;
        return;
    }
}

void mr_unlock_word(u32 *word, struct mr_guard *g)
{
    if (mr_swap(word, 0) & WAITED) mr_futex_wake(word, 1);
    if (g->held) mr_let_signals(g->signals);
}

void mr_lock(struct mr_guard *g) { mr_lock_word(&mr_b->lock, g); }

/* Who is woken wants the lock at once: so he is woken when it is free. Under the lock, as all that it touches. */
#define LATER 16u
static u32 *later[LATER];
static u32 later_count;

void mr_wake_later(u32 *word)
{
    if (later_count < LATER) later[later_count++] = word;
    else mr_futex_wake(word, 0x7fffffff);
}

void mr_unlock(struct mr_guard *g)
{
    u32 *now[LATER], n = later_count;
    for (u32 i = 0; i < n; i++) now[i] = later[i];
    later_count = 0;
    if (mr_swap(&mr_b->lock, 0) & WAITED) mr_futex_wake(&mr_b->lock, 1);
    for (u32 i = 0; i < n; i++) mr_futex_wake(now[i], 0x7fffffff);
    if (g->held) mr_let_signals(g->signals);
}
