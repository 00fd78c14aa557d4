/* Writing the jumps and the trampolines (x86-64). */
#include "patch.h"

#include <sys/mman.h>

#if defined(__x86_64__)

void mr_stub(void);
void mr_stub_path1(void);
void mr_stub_path2(void);

/* The stubs, in reach of all trampolines. */
struct stubs {
    u64 any, path1, path2;
};

#define ROOM 128 /* bytes per trampoline, at most */

struct pen {
    u8 *at;
};

static void put(struct pen *p, const u8 *bytes, u32 n)
{
    mr_copy(p->at, bytes, n);
    p->at += n;
}
#define PUT(p, ...) put((p), (const u8[]){__VA_ARGS__}, sizeof((const u8[]){__VA_ARGS__}))

static void put32(struct pen *p, u32 v) { put(p, (const u8 *)&v, 4); }
static void put64(struct pen *p, u64 v) { put(p, (const u8 *)&v, 8); }

static void put_near(struct pen *p, u8 what, u64 to)
{
    PUT(p, what);
    put32(p, (u32)(to - ((u64)p->at + 4)));
}

static void put_jump(struct pen *p, u64 to) { put_near(p, 0xe9, to); }

/* The system call itself, with the count of children in our memory raised around it. The child does not
 * lower it: it shares the word with its parent. Only rcx, r11 and rax may change. */
static void put_raw(struct pen *p)
{
    PUT(p, 0x49, 0xbb); /* movabs $vforks,%r11 */
    put64(p, (u64)&mr_self.vforks);
    PUT(p, 0xf0, 0x41, 0xff, 0x03); /* lock incl (%r11) */
    PUT(p, 0x0f, 0x05);
    PUT(p, 0x48, 0x85, 0xc0, 0x74, 14); /* test %rax,%rax; je over */
    PUT(p, 0x49, 0xbb);
    put64(p, (u64)&mr_self.vforks);
    PUT(p, 0xf0, 0x41, 0xff, 0x0b); /* lock decl (%r11) */
}

static void put_call(struct pen *p, const u64 *stub)
{
    s64 way = (s64)(*stub - ((u64)p->at + 10));
    PUT(p, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp: over the red zone */
    if (way == (s32)way) {
        PUT(p, 0xe8); /* call stub */
        put32(p, (u32)way);
    } else {
        PUT(p, 0xff, 0x15); /* call *stub(%rip) */
        put32(p, (u32)((u64)stub - ((u64)p->at + 4)));
    }
    PUT(p, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0); /* lea 128(%rsp),%rsp */
}

static void put_call_or_go(struct pen *p, const u64 *stub)
{
    put_call(p, stub);
    PUT(p, 0x73, 2, 0x0f, 0x05); /* jnc over; syscall */
}

/* A short jump written before comes here. */
static void land(struct pen *p, u8 *jump) { *jump = (u8)(p->at - jump - 1); }

/* Calls whose first argument is a descriptor, and that are plain when it is not in the table. */
static int by_descriptor(u32 nr)
{
    static const u16 calls[] = {SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_preadv,
        SYS_preadv2, SYS_pwritev, SYS_pwritev2, SYS_lseek, SYS_ftruncate, SYS_getdents64, SYS_close, SYS_fstat, SYS_newfstatat};
    for (u32 i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == nr) return 1;
    return 0;
}

/* Calls that are plain when the path is outside: in the first or second argument, else 0. */
static int names_path(u32 nr)
{
    switch (nr) {
    case SYS_open: case SYS_creat: case SYS_stat: case SYS_lstat: case SYS_access: case SYS_mkdir: case SYS_rmdir: case SYS_unlink:
    case SYS_readlink: case SYS_truncate: case SYS_chmod: case SYS_chown: case SYS_lchown: case SYS_utimes:
    case SYS_statfs: case SYS_getxattr: case SYS_lgetxattr: case SYS_listxattr: case SYS_llistxattr:
        return 1;
    case SYS_openat: case SYS_newfstatat: case SYS_statx: case SYS_faccessat: case SYS_faccessat2: case SYS_mkdirat: case SYS_unlinkat:
    case SYS_readlinkat: case SYS_fchmodat: case SYS_fchownat: case SYS_utimensat: case SYS_inotify_add_watch:
        return 2;
    default:
        return 0;
    }
}

static void put_number(struct pen *p, u32 nr)
{
    PUT(p, 0xb8); /* mov $nr,%eax */
    put32(p, nr);
}

/* What the site did after its system call, and back. */
static void put_end(struct pen *p, u64 base, const struct mr_site *s)
{
    u64 site = base + s->off;
    if (s->kind == MR_SITE_CMP) put(p, (const u8 *)site + 2, s->cmp);
    put_jump(p, s->kind == MR_SITE_CMP ? site + 2 + s->cmp : site + 7);
}

/* read and write on a descriptor that is not in the table, without a call of ours; all else goes on behind it. */
static void put_plain_data(struct pen *p, u64 base, const struct mr_site *s)
{
    PUT(p, 0x83, 0xf8, SYS_write, 0x77, 0); /* cmp $1,%eax; ja slow */
    u8 *jump1 = p->at - 1;
    PUT(p, 0x89, 0xf9, 0x81, 0xf9); /* mov %edi,%ecx; cmp $MR_FDS,%ecx */
    put32(p, MR_FDS);
    PUT(p, 0x73, 0, 0x49, 0xbb); /* jae slow; movabs $mr_fd,%r11 */
    u8 *jump2 = p->at - 3;
    put64(p, (u64)mr_fd);
    PUT(p, 0x49, 0x83, 0x3c, 0xcb, 0, 0x75, 0); /* cmpq $0,(%r11,%rcx,8); jne slow */
    u8 *jump3 = p->at - 1;
    PUT(p, 0x0f, 0x05);
    put_end(p, base, s);
    land(p, jump1);
    land(p, jump2);
    land(p, jump3);
}

/* The number is on the stack; such calls never make a process. */
static void write_load(struct pen *p, u64 base, const struct mr_site *s, const struct stubs *stubs)
{
    put(p, (const u8 *)base + s->off, 5);
    put_plain_data(p, base, s);
    PUT(p, 0x3d, SYS_openat & 255, SYS_openat >> 8, 0, 0, 0x75, 0); /* cmp $257,%eax; jne any */
    u8 *jump1 = p->at - 1;
    put_call(p, &stubs->path2);
    PUT(p, 0xeb, 0); /* jmp over */
    u8 *jump2 = p->at - 1;
    land(p, jump1);
    put_call(p, &stubs->any);
    land(p, jump2);
    PUT(p, 0x73, 2, 0x0f, 0x05); /* jnc over; syscall */
    put_end(p, base, s);
}

/* In front of the inner function (see sites.c), whose arguments are the thread's state, the number, and those of the
 * call, two of them on the stack: what is ours is done, for all else it is entered as if we were not here. */
static void write_before_inner(struct pen *p, u64 base, const struct mr_site *s, const struct stubs *stubs)
{
    const u8 *call = (const u8 *)base + s->off;
    s32 way;
    mr_copy(&way, call + 1, 4);
    u64 inner = (u64)call + 5 + (u64)(s64)way;
    /* Data on a descriptor that is not in the table: a thread that sleeps there can be cancelled. */
    PUT(p, 0x8d, 0x46, (u8)-SYS_pread64, 0x83, 0xf8, 3, 0x76, 5); /* lea -17(%rsi),%eax; cmp $3,%eax; jbe over */
    PUT(p, 0x83, 0xfe, SYS_write, 0x77, 0, 0x81, 0xfa);           /* cmp $1,%esi; ja slow; cmp $MR_FDS,%edx */
    u8 *jump1 = p->at - 3;
    put32(p, MR_FDS);
    PUT(p, 0x73, 0, 0x89, 0xd0, 0x49, 0xbb); /* jae slow; mov %edx,%eax; movabs $mr_fd,%r11 */
    u8 *jump2 = p->at - 5;
    put64(p, (u64)mr_fd);
    PUT(p, 0x49, 0x83, 0x3c, 0xc3, 0, 0x75, 0); /* cmpq $0,(%r11,%rax,8); jne slow */
    u8 *jump3 = p->at - 1;
    put_jump(p, inner);
    land(p, jump1);
    land(p, jump2);
    land(p, jump3);
    PUT(p, 0x57, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7);             /* push %rdi; mov %rsi,%rax; mov %rdx,%rdi */
    PUT(p, 0x48, 0x89, 0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca); /* mov %rcx,%rsi; mov %r8,%rdx; mov %r9,%r10 */
    PUT(p, 0x4c, 0x8b, 0x44, 0x24, 0x10);                         /* mov 16(%rsp),%r8 */
    PUT(p, 0x4c, 0x8b, 0x4c, 0x24, 0x18);                         /* mov 24(%rsp),%r9 */
    put_call(p, &stubs->any);
    PUT(p, 0x72, 2, 0x59, 0xc3);                                  /* jc over; pop %rcx; ret */
    PUT(p, 0x4d, 0x89, 0xd1, 0x49, 0x89, 0xd0, 0x48, 0x89, 0xf1); /* mov %r10,%r9; mov %rdx,%r8; mov %rsi,%rcx */
    PUT(p, 0x48, 0x89, 0xfa, 0x48, 0x89, 0xc6, 0x5f);             /* mov %rdi,%rdx; mov %rax,%rsi; pop %rdi */
    put_jump(p, inner);
}

static void write_trampoline(struct pen *p, u64 base, const struct mr_site *s, const struct stubs *stubs)
{
    if (s->kind == MR_SITE_LOAD) return write_load(p, base, s, stubs);
    if (s->kind == MR_SITE_CALL) return write_before_inner(p, base, s, stubs);
    if (s->kind == MR_SITE_RAW) {
        put_number(p, s->nr | (u32)MR_ABOUT_TO);
        put_call(p, &stubs->any); /* gives the number back */
        put_raw(p);
        put_end(p, base, s);
        return;
    }
    if (s->nr != MR_SITE_ANY) {
        if (by_descriptor(s->nr)) {
            PUT(p, 0x89, 0xf9, 0x81, 0xf9); /* mov %edi,%ecx; cmp $MR_FDS,%ecx */
            put32(p, MR_FDS);
            PUT(p, 0x73, 0, 0x49, 0xbb); /* jae slow; movabs $mr_fd,%r11 */
            u8 *jump1 = p->at - 3, *jump4 = 0, *jump5 = 0;
            put64(p, (u64)mr_fd);
            PUT(p, 0x49, 0x83, 0x3c, 0xcb, 0, 0x75, 0); /* cmpq $0,(%r11,%rcx,8); jne slow */
            u8 *jump2 = p->at - 1, *jump3 = 0;
            if (s->nr == SYS_newfstatat) { /* with an empty path, in a page that is known, it is fstat */
                PUT(p, 0x48, 0x89, 0xf1, 0x48, 0xc1, 0xe9, 12); /* mov %rsi,%rcx; shr $12,%rcx */
                PUT(p, 0x89, 0xc8, 0x25);                       /* mov %ecx,%eax; and $MR_PAGES - 1,%eax */
                put32(p, MR_PAGES - 1);
                PUT(p, 0x49, 0xbb); /* movabs $mr_pages,%r11 */
                put64(p, (u64)mr_pages);
                PUT(p, 0x49, 0x3b, 0x0c, 0xc3, 0x75, 0); /* cmp (%r11,%rax,8),%rcx; jne slow */
                jump4 = p->at - 1;
                PUT(p, 0x80, 0x3e, 0, 0x75, 0); /* cmpb $0,(%rsi); jne slow */
                jump5 = p->at - 1;
            }
            if (s->nr == SYS_close) { /* a vfork child's close is booked, whatever our table says */
                PUT(p, 0x49, 0xbb);   /* movabs $vforks,%r11 */
                put64(p, (u64)&mr_self.vforks);
                PUT(p, 0x41, 0x83, 0x3b, 0, 0x75, 0); /* cmpl $0,(%r11); jne slow */
                jump3 = p->at - 1;
            }
            put_number(p, s->nr);
            PUT(p, 0x0f, 0x05);
            put_end(p, base, s);
            land(p, jump1);
            land(p, jump2);
            if (jump3) land(p, jump3);
            if (jump4) land(p, jump4);
            if (jump5) land(p, jump5);
        }
        const u64 *by_kind[] = {&stubs->any, &stubs->path1, &stubs->path2};
        put_number(p, s->nr);
        put_call_or_go(p, by_kind[names_path(s->nr)]);
        put_end(p, base, s);
        return;
    }
    /* clone, vfork and clone3 by number: the child must not come back through C */
    PUT(p, 0x83, 0xf8, SYS_clone, 0x74, 0); /* cmp $56,%eax; je raw */
    u8 *jump1 = p->at - 1;
    PUT(p, 0x83, 0xf8, SYS_vfork, 0x74, 0);
    u8 *jump2 = p->at - 1;
    PUT(p, 0x3d, SYS_clone3 & 255, SYS_clone3 >> 8, 0, 0, 0x74, 0);
    u8 *jump3 = p->at - 1;
    put_call_or_go(p, &stubs->any);
    PUT(p, 0xeb, 0); /* jmp over */
    u8 *jump4 = p->at - 1;
    land(p, jump1);
    land(p, jump2);
    land(p, jump3);
    PUT(p, 0x0d); /* or $MR_ABOUT_TO,%eax */
    put32(p, MR_ABOUT_TO);
    put_call(p, &stubs->any);
    put_raw(p);
    land(p, jump4);
    put_end(p, base, s);
}

static u8 *near_memory(u64 base, u64 text_to, u64 size)
{
    const u64 reach = 0x7ff00000u;
    for (int attempt = 0; attempt < 64; attempt++) {
        u64 hint = attempt ? (base - size - ((u64)attempt << 24)) & ~(u64)4095 : 0;
        long at = mr_sys6(SYS_mmap, (long)hint, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at < 0 && at > -4096) continue;
        u64 low = (u64)at < base ? (u64)at : base, high = (u64)at + size > base + text_to ? (u64)at + size : base + text_to;
        if (high - low < reach) return (u8 *)at;
        mr_sys(SYS_munmap, at, size, 0, 0);
    }
    return 0;
}

int mr_patch(u64 base, const struct mr_sites *s)
{
    u64 size = (64 + (u64)s->count * ROOM + 4095) & ~(u64)4095;
    u64 from = (base + s->text_from) & ~(u64)4095, to = (base + s->text_to + 4095) & ~(u64)4095;
    u8 *memory = s->count ? near_memory(base, s->text_to, size) : 0;
    if (!memory) return -ENOMEM;
    struct stubs *stubs = (struct stubs *)(void *)memory;
    *stubs = (struct stubs){(u64)mr_stub, (u64)mr_stub_path1, (u64)mr_stub_path2};
    struct pen p = {memory + 64};
    u8 *entry[MR_SITES];
    for (u32 i = 0; i < s->count; i++) {
        entry[i] = p.at;
        write_trampoline(&p, base, &s->site[i], stubs);
        p.at = (u8 *)(((u64)p.at + 15) & ~(u64)15);
    }
    long err = mr_sys(SYS_mprotect, memory, size, PROT_READ | PROT_EXEC, 0);
    if (err == 0) err = mr_sys(SYS_mprotect, from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC, 0);
    if (err < 0) return (int)err;
    for (u32 i = 0; i < s->count; i++) {
        struct pen at = {(u8 *)base + s->site[i].off};
        if (s->site[i].kind == MR_SITE_CALL) put_near(&at, 0xe8, (u64)entry[i]);
        else put_jump(&at, (u64)entry[i]);
    }
    mr_sys(SYS_mprotect, from, to - from, PROT_READ | PROT_EXEC, 0);
    return 0;
}

#endif
