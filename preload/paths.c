/* Is a path inside the managed directory? Nearly always it is not, and that must cost next to nothing:
 * compare the first bytes, and look for "." components, which alone could lead back in. */
#include "local.h"

struct mr_self mr_self;

/* Joins and cleans lexically; symbolic links are not followed. Returns the length, 0 when too long. */
u32 mr_normal(const char *base, const char *path, char *to, u32 size)
{
    u32 n = 0;
    const char *part[2] = {*path == '/' ? "" : base, path};
    for (int k = 0; k < 2; k++) {
        for (const char *p = part[k]; *p;) {
            while (*p == '/') p++;
            const char *end = p;
            while (*end && *end != '/') end++;
            u32 len = (u32)(end - p);
            if (len == 2 && p[0] == '.' && p[1] == '.') {
                while (n > 0 && to[--n] != '/') {}
            } else if (len && !(len == 1 && p[0] == '.')) {
                if (n + len + 2 > size) return 0;
                to[n++] = '/';
                mr_copy(to + n, p, len);
                n += len;
            }
            p = end;
        }
    }
    if (n == 0) to[n++] = '/';
    to[n] = 0;
    return n;
}

/* Where a clean absolute path lies; sets *rest to what follows the managed directory. */
static int place(const char *abs, u32 len, const char **rest)
{
    const char *dirs[2] = {mr_self.dir, mr_self.alias};
    u32 lens[2] = {mr_self.dir_len, mr_self.alias_len};
    for (int k = 0; k < 2; k++) {
        u32 d = lens[k], common = len < d ? len : d;
        if (!d || !mr_same(abs, dirs[k], common)) continue;
        if (len >= d && (abs[d] == '/' || abs[d] == 0)) {
            *rest = abs + d + (abs[d] == '/');
            return MR_INSIDE;
        }
        if (len < d && (dirs[k][len] == '/' || len == 1)) return MR_ABOVE;
    }
    return MR_OUTSIDE;
}

/* A component "." or "..", or an empty one. */
static int has_dots(const char *p)
{
    for (char before = '/'; *p; before = *p++) {
        if (likely(before != '/')) continue;
        if (*p == '/' && p[1]) return 1;
        if (*p != '.') continue;
        const char *end = p[1] == '.' ? p + 2 : p + 1;
        if (!*end || *end == '/') return 1;
    }
    return 0;
}

/* Whether has_dots might be true, eight bytes at a time: a '/' followed by '.' or '/'. Words are read aligned,
 * so they never reach into a page that the string does not. */
static int may_have_dots(const char *p)
{
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
    return has_dots(p);
#else
    const u64 ones = 0x0101010101010101u, high = 0x8080808080808080u;
    u64 before = *p == '.' || *p == '/' ? 0x80 : 0; /* the start is like behind a '/' */
    const u64 *word = (const u64 *)((u64)p & ~(u64)7);
    u32 skip = ((u32)(u64)p & 7) * 8;
    u64 w = *word;
    if (skip) w |= ((u64)1 << skip) - 1; /* bytes before the string: 0xff, neither end nor '/' nor '.' */
    if (before && *p == '/') before = 0;
    else if (before) return has_dots(p);
    for (;;) {
        u64 slash = w ^ (0x2f * ones), dot = w ^ (0x2e * ones);
        slash = (slash - ones) & ~slash & high;
        dot = (dot - ones) & ~dot & high;
        if ((slash << 8 | before) & (slash | dot)) return has_dots(p);
        if ((w - ones) & ~w & high) return 0;
        before = slash >> 56;
        w = *++word;
    }
#endif
}

static int take(const char *rest, struct mr_name *n)
{
    u32 len = (u32)mr_len(rest);
    if (len > MR_NAME_MAX) return MR_OUTSIDE;
    while (len && rest[len - 1] == '/') len--;
    if (len == 0) rest = ".", len = 1;
    mr_copy(n->rel, rest, len);
    n->rel[len] = 0;
    n->len = len;
    return MR_INSIDE;
}

static int slowly(const char *base, const char *path, struct mr_name *n)
{
    char abs[4096];
    const char *rest = 0;
    u32 len = mr_normal(base, path, abs, sizeof abs - 1);
    if (!len) return MR_OUTSIDE;
    int where = place(abs, len, &rest);
    return where == MR_INSIDE ? take(rest, n) : where;
}

static long link_of(long fd, char *to, u32 size)
{
    char path[40];
    struct mr_text t = {path, path + sizeof path};
    mr_put(&t, "/proc/self/fd/");
    mr_put_n(&t, (u64)fd);
    long len = mr_sys(SYS_readlinkat, AT_FDCWD, path, to, size - 1);
    if (len >= 0) to[len] = 0;
    return len;
}

int mr_name_of_fd(long fd, struct mr_name *n)
{
    char abs[4096];
    const char *rest = 0;
    long len = link_of(fd, abs, sizeof abs);
    if (len <= 0 || abs[0] != '/') return MR_OUTSIDE;
    int where = place(abs, (u32)len, &rest);
    return where == MR_INSIDE ? take(rest, n) : where;
}

static int relative(long dirfd, const char *path, struct mr_name *n)
{
    char base[4096];
    if ((int)dirfd == AT_FDCWD) {
        /* a vfork child may have changed its own directory: ask the kernel */
        if (mr_load(&mr_self.vforks) && (u32)mr_sys(SYS_getpid, 0, 0, 0, 0) != mr_self.pid) {
            if (mr_sys(SYS_getcwd, base, sizeof base, 0, 0) <= 0) return MR_OUTSIDE;
            return slowly(base, path, n);
        }
        if (mr_self.cwd_place == MR_OUTSIDE && !may_have_dots(path)) return MR_OUTSIDE;
        return slowly(mr_self.cwd, path, n);
    }
    u32 kind = mr_entry_kind(mr_entry(dirfd));
    if (kind != MR_DIRECTORY && kind != MR_MAYBE && !mr_load(&mr_self.vforks) && !may_have_dots(path)) return MR_OUTSIDE;
    if (link_of(dirfd, base, sizeof base) <= 0 || base[0] != '/') return MR_OUTSIDE;
    return slowly(base, path, n);
}

int mr_name_of(long dirfd, const char *path, struct mr_name *n)
{
    if (!path || !*path) return MR_OUTSIDE;
    if (*path != '/') return relative(dirfd, path, n);
    const char *p = path, *d = mr_self.dir;
    while (*d && *p == *d) p++, d++;
    if (!*d && (*p == '/' || !*p) && !may_have_dots(p)) return take(*p ? p + 1 : p, n);
    if (!mr_self.alias_len && *p && *d && !may_have_dots(path)) return MR_OUTSIDE;
    return slowly("", path, n);
}

void mr_cwd_changed(void)
{
    const char *rest;
    long len = mr_sys(SYS_getcwd, mr_self.cwd, sizeof mr_self.cwd, 0, 0);
    if (len <= 1 || mr_self.cwd[0] != '/') mr_copy(mr_self.cwd, "/", 2), len = 2;
    mr_self.cwd_place = (u32)place(mr_self.cwd, (u32)len - 1, &rest);
}
