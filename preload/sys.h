/* Raw system calls and the few string functions the library needs.
 *
 * Nothing here touches errno, thread-local storage or vector registers: the code runs in the middle of
 * libc's own functions, in signal handlers and in vfork children, where only the kernel's promise holds
 * (all registers but rax, rcx and r11 survive a system call). Results are the kernel's: -errno on failure. */
#ifndef MR_SYS_H
#define MR_SYS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <linux/futex.h>

/* Calls that the headers of an older system do not name; the numbers are the same on all machines. */
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define MR_NONE 0xffffffffu
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#if defined(__x86_64__)
static inline long mr_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return ret;
}
static inline void mr_pause(void) { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
static inline long mr_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}
static inline void mr_pause(void) { __asm__ volatile("yield"); }
#else
#error "libmillrace knows x86-64 and arm64"
#endif

#define mr_sys(nr, a, b, c, d) mr_sys6((nr), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

#define mr_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define mr_peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define mr_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define mr_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#define mr_swap(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define mr_cas(p, old, new) \
    __atomic_compare_exchange_n((p), (old), (new), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

struct mr_time {
    s64 sec, nsec;
};

static inline u64 mr_now(void)
{
    struct mr_time t = {0, 0};
    mr_sys(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC */, &t, 0, 0);
    return (u64)t.sec * 1000000000u + (u64)t.nsec;
}

static inline u64 mr_wall(void)
{
    struct mr_time t = {0, 0};
    mr_sys(SYS_clock_gettime, 0 /* CLOCK_REALTIME */, &t, 0, 0);
    return (u64)t.sec * 1000000000u + (u64)t.nsec;
}

/* Waits while *word == value, at most ns nanoseconds. */
static inline long mr_futex_wait(u32 *word, u32 value, u64 ns)
{
    struct mr_time t = {(s64)(ns / 1000000000u), (s64)(ns % 1000000000u)};
    return mr_sys(SYS_futex, word, FUTEX_WAIT, value, &t);
}

static inline void mr_futex_wake(u32 *word, int count)
{
    mr_sys(SYS_futex, word, FUTEX_WAKE, count, 0);
}

/* What was blocked before. */
static inline u64 mr_hold_signals(void)
{
    const u64 all = ~(u64)0;
    u64 before = 0;
    mr_sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &before, 8);
    return before;
}

static inline void mr_let_signals(u64 before) { mr_sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before, 0, 8); }

static inline size_t mr_len(const char *s)
{
    const char *p = s;
    while (*p) p++;
    return (size_t)(p - s);
}

static inline void mr_copy(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;
    while (n--) *t++ = *f++;
}

/* For more than a few bytes. */
static inline void mr_copy_fast(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    mr_copy(to, from, n);
#endif
}

static inline void mr_zero(void *p, size_t n)
{
    typedef u64 __attribute__((may_alias)) word;
    volatile char *c = p;
    for (; n >= 8 && ((u64)c & 7) == 0; n -= 8, c += 8) *(volatile word *)(volatile void *)c = 0;
    while (n--) *c++ = 0;
}

static inline u64 mr_word(const void *p) /* eight bytes, wherever they lie */
{
    u64 v;
    __builtin_memcpy(&v, p, 8);
    return v;
}

static inline int mr_same(const void *a, const void *b, size_t n)
{
    const char *x = a, *y = b;
    if (n >= 8) {
        for (const char *last = x + n - 8; x < last; x += 8, y += 8)
            if (mr_word(x) != mr_word(y)) return 0;
        size_t back = (size_t)(x - ((const char *)a + n - 8)); /* the last word overlaps the one before */
        return mr_word(x - back) == mr_word(y - back);
    }
    while (n--)
        if (*x++ != *y++) return 0;
    return 1;
}

static inline int mr_equal(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

/* Appends to a bounded buffer; always NUL-terminated, silently cut. */
struct mr_text {
    char *at, *end;
};

static inline void mr_put(struct mr_text *t, const char *s)
{
    while (*s && t->at + 1 < t->end) *t->at++ = *s++;
    if (t->at < t->end) *t->at = 0;
}

static inline void mr_put_n(struct mr_text *t, u64 v)
{
    char d[24];
    int i = 23;
    d[i] = 0;
    do d[--i] = (char)('0' + v % 10);
    while (v /= 10);
    mr_put(t, d + i);
}

static inline u64 mr_number(const char *s)
{
    u64 v = 0;
    while (*s >= '0' && *s <= '9') v = v * 10 + (u64)(*s++ - '0');
    return v;
}

#endif
