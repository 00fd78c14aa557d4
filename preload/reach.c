/* Pointers that a program hands over. The kernel answers a bad one with EFAULT; we would crash on it.
 *
 * Pages that were found readable (or writable) once are kept in a table, until the program unmaps or protects them. For
 * others the kernel is asked, in a way that does nothing else. A page that is taken away behind our back (by the dynamic
 * linker, by another thread in that very moment) is the one case in which a bad pointer is still fatal. */
#include "local.h"

#define MASK (MR_PAGES - 1)

#define NO_PAGE (~(u64)0)

u64 mr_pages[MR_PAGES] = {NO_PAGE}; /* the other zeros lie where page 0 does not belong */
static u64 to_write[MR_PAGES] = {NO_PAGE};

/* A mask is copied in before `how` is looked at, and refused then. */
static int may_read(u64 page)
{
    return page && mr_sys(SYS_rt_sigprocmask, -1, page << 12, 0, 8) != -EFAULT; /* 0 would mean: no mask */
}

/* `at` is going to be overwritten anyway. */
static int may_write(u64 at) { return mr_sys(SYS_getrandom, at, 1, 1 /* GRND_NONBLOCK */, 0) != -EFAULT; }

int mr_readable(const void *p, u64 len)
{
    u64 first = (u64)p >> 12, last = ((u64)p + (len ? len - 1 : 0)) >> 12;
    if (unlikely(last < first)) return 0;
    for (u64 page = first; page <= last; page++) {
        if (likely(mr_peek(&mr_pages[page & MASK]) == page)) continue;
        if (!may_read(page)) return 0;
        mr_pages[page & MASK] = page;
    }
    return 1;
}

/* All of it is about to be written. */
int mr_writable(void *p, u64 len)
{
    u64 first = (u64)p >> 12, last = ((u64)p + (len ? len - 1 : 0)) >> 12;
    if (unlikely(last < first || !len)) return 0;
    for (u64 page = first; page <= last; page++) {
        if (likely(mr_peek(&to_write[page & MASK]) == page)) continue;
        if (!may_write(page == first ? (u64)p : page << 12)) return 0;
        to_write[page & MASK] = page;
    }
    return 1;
}

/* Eight bytes at a time, but none beyond the page that the text ends in. */
__attribute__((no_sanitize("address"))) int mr_text_readable(const char *text)
{
    typedef u64 __attribute__((may_alias)) word;
    const u64 ones = 0x0101010101010101u;
    if (!mr_readable(text, 1)) return 0;
    const char *p = text;
    for (; (u64)p & 7; p++)
        if (!*p) return 1;
    for (;; p += 8) {
        if (unlikely(((u64)p & 4095) == 0) && !mr_readable(p, 1)) return 0;
        u64 w = *(const word *)(const void *)p;
        if ((w - ones) & ~w & ones << 7) return 1;
    }
}

/* The program changes what lies there. */
void mr_forget_pages(u64 at, u64 len)
{
    u64 first = at >> 12, last = (at + len + 4095) >> 12;
    if (last < first || last - first > MR_PAGES) first = 0, last = MASK;
    int all = first == 0;
    for (u64 page = first; page <= last; page++) {
        if (all || mr_peek(&mr_pages[page & MASK]) == page) mr_pages[page & MASK] = NO_PAGE;
        if (all || mr_peek(&to_write[page & MASK]) == page) to_write[page & MASK] = NO_PAGE;
    }
}

/* mprotect, mremap; brk says only where it ends, and what lay behind it is gone. */
long mr_do_memory(const struct mr_call *c)
{
    if (c->nr == SYS_brk) {
        if (c->a[0]) mr_forget_pages((u64)c->a[0], (u64)MR_PAGES << 13);
    } else {
        mr_forget_pages((u64)c->a[0], (u64)c->a[1]);
    }
    return MR_GO;
}
