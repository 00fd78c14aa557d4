/* Finding the sites, once per build of libc: scanning takes milliseconds, so the offsets are kept in a
 * small file named after the build id. What the file says is checked against the bytes before use. */
#include "patch.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define MAGIC 0x4d52533au

static int compare_after(const u8 *t)
{
    int wide = t[0] == 0x48;
    const u8 *c = t + wide;
    return c[0] == 0x3d && (c[1] == 0 || c[1] == 1) && c[2] == 0xf0 && c[3] == 0xff && c[4] == 0xff ? 5 + wide : 0;
}

/* mov $nr,%eax right before the syscall at t; not the tail of a mov to r8..r15 */
static int number_before(const u8 *t)
{
    if (t[-5] != 0xb8 || t[-2] || t[-1] || (t[-6] & 0xf0) == 0x40) return -1;
    int nr = t[-4] | t[-3] << 8;
    return nr < 600 ? nr : -1;
}

/* xor %eax,%eax right before: a read */
static int zero_before(const u8 *t) { return t[-2] == 0x31 && t[-1] == 0xc0 && (t[-3] & 0xf0) != 0x40; }

/* mov x(%rsp),%rax right before */
static int load_before(const u8 *t) { return t[-5] == 0x48 && t[-4] == 0x8b && t[-3] == 0x44 && t[-2] == 0x24 && t[-1] < 0x80; }

/* The function that a call at t leads to, if it lies in the text. */
static const u8 *callee(const u8 *t, const u8 *text, u64 len)
{
    if (t[0] != 0xe8) return 0;
    s32 d = (s32)(t[1] | (u32)t[2] << 8 | (u32)t[3] << 16 | (u32)t[4] << 24);
    s64 to = (t - text) + 5 + d;
    return to >= 64 && to + 40 < (s64)len ? text + to : 0;
}

/* From 2.41 on, the calls of glibc that can be cancelled go through two functions. Where there are several threads, the
 * inner one is an assembly function that looks whether the thread was cancelled: mov (%rdi),%eax; testb $8,(%rdi). A
 * signal finds out by its place whether the call was made, so plain calls are still made there. */
static int is_inner(const u8 *f)
{
    if (f[0] == 0xf3 && f[1] == 0x0f && f[2] == 0x1e && f[3] == 0xfa) f += 4; /* endbr64 */
    return f[0] == 0x8b && f[1] == 0x07 && f[2] == 0xf6 && f[3] == 0x07 && f[4] == 0x08;
}

#define NEAR 192 /* bytes between the two ways to the kernel in the outer function */

static const u8 *inner_call(const u8 *load, const u8 *text, u64 len)
{
    for (const u8 *t = load - NEAR < text + 64 ? text + 64 : load - NEAR; t < load + NEAR && t + 8 < text + len; t++) {
        const u8 *f = callee(t, text, len);
        if (f && is_inner(f)) return t;
    }
    return 0;
}

static int is_futex(const u8 *t)
{
    for (int i = 5; i < 56; i++)
        if (t[-i] == 0xb8 && t[1 - i] == 0xca && !t[2 - i] && !t[3 - i] && !t[4 - i]) return 1;
    return 0;
}

static void add(struct mr_sites *s, u64 off, int nr, int kind, int cmp)
{
    if (s->count == MR_SITES) return;
    s->site[s->count++] = (struct mr_site){(u32)off, (u16)nr, (u8)kind, (u8)cmp};
}

/* A jump to the compare that we replaced would land inside our jump: such a site stays as it is. */
static void drop_jumped_to(const u8 *t, u64 len, u64 off, struct mr_sites *s)
{
    for (u64 i = 64; i + 8 < len; i++) {
        s64 to;
        if ((t[i] & 0xf0) == 0x70 || t[i] == 0xeb) to = (s64)i + 2 + (signed char)t[i + 1];
        else if (t[i] == 0xe9 || (t[i] == 0x0f && (t[i + 1] & 0xf0) == 0x80)) {
            u32 k = t[i] == 0x0f ? 2 : 1;
            s32 d = (s32)(t[i + k] | (u32)t[i + k + 1] << 8 | (u32)t[i + k + 2] << 16 | (u32)t[i + k + 3] << 24);
            to = (s64)i + k + 4 + d;
        } else {
            continue;
        }
        if (to < 64 || to >= (s64)len || t[to - 2] != 0x0f || t[to - 1] != 0x05) continue;
        for (u32 k = 0; k < s->count; k++)
            if (s->site[k].kind == MR_SITE_CMP && s->site[k].off == off + (u64)to - 2) {
                s->site[k] = s->site[--s->count];
                break;
            }
    }
}

void mr_sites_scan(const u8 *t, u64 len, u64 off, struct mr_sites *s)
{
    for (u64 i = 64; i + 16 < len; i++) {
        if (t[i] != 0x0f || t[i + 1] != 0x05) continue;
        int nr = number_before(t + i), cmp = compare_after(t + i + 2);
#if defined(__x86_64__)
        if (nr == SYS_clone3 || nr == SYS_vfork || (nr == SYS_clone && !cmp)) add(s, off + i - 5, nr, MR_SITE_RAW, 0);
        else if (nr >= 0 && mr_wanted((u32)nr)) add(s, off + i - 5, nr, MR_SITE_MOV, 0);
        else if (nr < 0 && cmp && !is_futex(t + i)) add(s, off + i, zero_before(t + i) ? SYS_read : (int)MR_SITE_ANY, MR_SITE_CMP, cmp);
#else
        (void)nr, (void)cmp;
#endif
    }
    for (u64 i = 64; i + 16 < len; i++) {
        if (t[i] != 0x0f || t[i + 1] != 0x05 || !load_before(t + i)) continue;
        const u8 *call = inner_call(t + i, t, len);
        if (!call) continue;
        add(s, off + i - 5, (int)MR_SITE_ANY, MR_SITE_LOAD, 0);
        add(s, off + (u64)(call - t), (int)MR_SITE_ANY, MR_SITE_CALL, 0);
    }
    drop_jumped_to(t, len, off, s);
}

/* Whether f goes to the kernel by way of both: it calls the outer function, or one that does. */
int mr_cancels(const u8 *text, u64 len, const u8 *f, u64 off, const struct mr_sites *s)
{
    for (u32 i = 0; i < s->count; i++) {
        if (s->site[i].kind != MR_SITE_LOAD) continue;
        const u8 *load = text + (s->site[i].off - off);
        for (const u8 *t = f; t < f + 384 && t + 8 < text + len; t++) {
            const u8 *to = callee(t, text, len);
            for (const u8 *u = to; to && u < to + 32; u++) {
                const u8 *outer = u == to ? to : callee(u, text, len);
                if (outer && outer <= load && load - outer < NEAR) return 1;
            }
        }
    }
    return 0;
}

static int is_site(const u8 *t, const struct mr_site *p, const u8 *text, u64 len)
{
    switch (p->kind) {
    case MR_SITE_CMP: return t[0] == 0x0f && t[1] == 0x05 && compare_after(t + 2) == p->cmp && (p->nr == MR_SITE_ANY || zero_before(t));
    case MR_SITE_LOAD: return load_before(t + 5) && t[5] == 0x0f && t[6] == 0x05;
    case MR_SITE_CALL: {
        const u8 *f = callee(t, text, len);
        return f && is_inner(f);
    }
    default: return number_before(t + 5) == p->nr && t[5] == 0x0f && t[6] == 0x05;
    }
}

static int still_there(u64 base, const struct mr_sites *s)
{
    if (s->count > MR_SITES) return 0;
    for (u32 i = 0; i < s->count; i++) {
        const struct mr_site *p = &s->site[i];
        if (p->off < s->text_from + 64 || p->off + 16 > s->text_to) return 0;
        if (!is_site((const u8 *)base + p->off, p, (const u8 *)base + s->text_from, s->text_to - s->text_from)) return 0;
    }
    return 1;
}

/* Of the format, and of what is looked for: a library that handles another call finds other sites. */
static u32 version(void)
{
    u32 h = MAGIC;
    for (u32 nr = 0; nr < 512; nr++)
        if (mr_wanted(nr)) h = (h ^ nr) * 0x01000193u;
    return h;
}

static void cache_name(char *to, u32 size, const char *dir, u32 uid, const struct mr_sites *s)
{
    struct mr_text t = {to, to + size};
    mr_put(&t, dir);
    mr_put(&t, "/millrace.");
    mr_put_n(&t, uid);
    mr_put(&t, ".sites.");
    mr_put_n(&t, s->magic); /* builds of two versions do not take turns with one file */
    mr_put(&t, ".");
    for (u32 i = 0; i < s->id_len; i++) {
        char hex[3] = {"0123456789abcdef"[s->id[i] >> 4], "0123456789abcdef"[s->id[i] & 15], 0};
        mr_put(&t, hex);
    }
}

static int from_cache(const char *path, u32 uid, struct mr_sites *s)
{
    long fd = mr_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0) return 0;
    struct stat st;
    u32 head = (u32)offsetof(struct mr_sites, site), magic = s->magic, id_len = s->id_len;
    u64 from = s->text_from, to = s->text_to;
    u8 id[20];
    mr_copy(id, s->id, 20);
    int ok = mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && (st.st_uid == uid || st.st_uid == 0) && !(st.st_mode & 022) && st.st_size >= head;
    long n = ok ? mr_sys(SYS_read, fd, s, sizeof *s, 0) : 0;
    mr_sys(SYS_close, fd, 0, 0, 0);
    ok = n >= (long)head && s->magic == magic && s->count <= MR_SITES && n == (long)(head + s->count * sizeof(struct mr_site)) &&
         s->text_from == from && s->text_to == to && s->id_len == id_len && mr_same(s->id, id, 20);
    s->magic = magic;
    s->id_len = id_len;
    s->text_from = from;
    s->text_to = to;
    mr_copy(s->id, id, 20);
    return ok;
}

static int to_cache(const char *path, const struct mr_sites *s)
{
    char tmp[1240];
    struct mr_text t = {tmp, tmp + sizeof tmp};
    mr_put(&t, path);
    mr_put(&t, ".");
    mr_put_n(&t, (u64)mr_sys(SYS_getpid, 0, 0, 0, 0));
    long fd = mr_sys(SYS_openat, AT_FDCWD, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return 0;
    long len = (long)(offsetof(struct mr_sites, site) + s->count * sizeof(struct mr_site));
    int ok = mr_sys(SYS_write, fd, s, len, 0) == len;
    mr_sys(SYS_close, fd, 0, 0, 0);
    ok = ok && mr_sys(SYS_renameat, AT_FDCWD, tmp, AT_FDCWD, path) == 0;
    if (!ok) mr_sys(SYS_unlinkat, AT_FDCWD, tmp, 0, 0);
    return ok;
}

/* s->text_from, text_to, id and id_len are set; the offsets are kept in the first of the two folders where that is
 * possible. 1: from there, 0: scanned. */
int mr_sites_of(u64 base, struct mr_sites *s, const char *const folder[2], u32 uid)
{
    char path[2][1200];
    s->magic = version();
    for (int i = 0; i < 2 && s->id_len; i++) {
        if (!folder[i] || !*folder[i]) continue;
        cache_name(path[i], sizeof path[i], folder[i], uid, s);
        if (from_cache(path[i], uid, s) && still_there(base, s)) return 1;
    }
    s->count = 0;
    mr_sites_scan((const u8 *)base + s->text_from, s->text_to - s->text_from, s->text_from, s);
    for (int i = 0; i < 2 && s->id_len; i++)
        if (folder[i] && *folder[i] && to_cache(path[i], s)) break;
    return 0;
}
