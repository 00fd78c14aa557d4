/* Is a path inside the managed directory? Nearly always it is not, and that must cost next to nothing:
 * compare the first bytes, and look for "." components, which alone could lead back in. */
#include "local.h"

struct mr_self mr_self;
struct mr_fence mr_fence = {~(u64)0, 0, 0};

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
    for (char before = *p == '/' ? *p++ : '/'; *p; before = *p++) {
        if (likely(before != '/')) continue;
        if (*p == '/' && p[1]) return 1;
        if (*p != '.') continue;
        const char *end = p[1] == '.' ? p + 2 : p + 1;
        if (!*end || *end == '/') return 1;
    }
    return 0;
}

#if defined(__x86_64__)
/* stub.S: the length, or -1 when a '/' is followed by '.' or '/', sixteen bytes at a time */
s64 mr_scan(const char *p);
#else
static s64 mr_scan(const char *p) { return has_dots(p) ? -1 : (s64)mr_len(p); }
#endif

/* The length of a path without such components, -1 when it has some. */
static s64 clean_length(const char *p)
{
    s64 len = *p == '.' ? -1 : mr_scan(p);
    if (unlikely(len < 0) && !has_dots(p)) len = (s64)mr_len(p); /* only a hidden file */
    return len;
}

/* rest: what follows the managed directory in a clean path; stays: it outlives the call */
static int take(const char *rest, u32 len, int stays, struct mr_name *n)
{
    if (len > MR_NAME_MAX) return MR_OUTSIDE;
    if (unlikely(len == 0 || rest[len - 1] == '/')) stays = 0;
    while (len && rest[len - 1] == '/') len--;
    if (len == 0) rest = ".", len = 1;
    n->len = len;
    n->rel = stays ? rest : n->space;
    if (stays) return MR_INSIDE;
    mr_copy(n->space, rest, len);
    n->space[len] = 0;
    return MR_INSIDE;
}

/* Of a clean absolute path. */
int mr_name_at(const char *abs, struct mr_name *n)
{
    const char *rest = 0;
    int where = place(abs, (u32)mr_len(abs), &rest);
    return where == MR_INSIDE ? take(rest, (u32)mr_len(rest), 0, n) : where;
}

static int slowly(const char *base, const char *path, struct mr_name *n)
{
    char abs[4096];
    u32 len = mr_normal(base, path, abs, sizeof abs - 1);
    return len ? mr_name_at(abs, n) : MR_OUTSIDE;
}

int mr_name_in(const char *base, const char *path, struct mr_name *n) { return slowly(base, path, n); }

long mr_link_of(long fd, char *to, u32 size)
{
    char path[40];
    struct mr_text t = {path, path + sizeof path};
    mr_put(&t, "/proc/self/fd/");
    mr_put_n(&t, (u64)fd);
    long len = mr_sys(SYS_readlinkat, AT_FDCWD, path, to, size - 1);
    if (len >= 0) to[len] = 0;
    return len;
}

static int has_moved(const char *rel, u32 len)
{
    u32 file = mr_file_find(rel, len);
    return file != MR_NONE && mr_file_at(file)->lower;
}

/* A file of the lower layer: the name that it has in the managed directory. */
static int below(const char *abs, struct mr_name *n)
{
    const char *layer = mr_text_at(mr_b->layer);
    u32 len = (u32)mr_len(layer);
    if (!len || !mr_same(abs, layer, len) || abs[len] != '/') return MR_OUTSIDE;
    for (u32 i = 0, used = mr_used(MR_FILES); i < used; i++) {
        const struct mr_file *f = mr_file_at(i);
        if (f->lower && mr_equal(mr_text_at(f->lower), abs)) return take(mr_text_at(f->path), f->path_len, 0, n);
    }
    return MR_OUTSIDE;
}

int mr_name_of_fd(long fd, struct mr_name *n)
{
    char abs[4096];
    const char *rest = 0;
    long len = mr_link_of(fd, abs, sizeof abs);
    if (len <= 0 || abs[0] != '/') return MR_OUTSIDE;
    int where = place(abs, (u32)len, &rest);
    if (where == MR_OUTSIDE && mr_b->moves) return below(abs, n);
    if (where != MR_INSIDE) return where;
    u32 left = (u32)mr_len(rest);
    /* its name leads to the lower layer now, the descriptor is still on the file that had it */
    if (unlikely(mr_b->moves && left > 10 && mr_equal(rest + left - 10, " (deleted)")) && has_moved(rest, left - 10)) left -= 10;
    return take(rest, left, 0, n);
}

/* A clean path from the current directory, which is inside. */
static int in_cwd(const char *path, u32 len, struct mr_name *n)
{
    u32 above = mr_self.cwd_len - mr_self.cwd_from;
    if (likely(!above)) return take(path, len, 1, n);
    if (above + 1 + len > MR_NAME_MAX) return MR_OUTSIDE;
    while (len && path[len - 1] == '/') len--;
    mr_copy(n->space, mr_self.cwd + mr_self.cwd_from, above);
    n->space[above] = '/';
    mr_copy(n->space + above + 1, path, len);
    n->len = above + 1 + len;
    n->space[n->len] = 0;
    n->rel = n->space;
    return MR_INSIDE;
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
        s64 len = clean_length(path);
        if (mr_self.cwd_place == MR_OUTSIDE && len >= 0) return MR_OUTSIDE;
        if (mr_self.cwd_place == MR_INSIDE && len >= 0) return in_cwd(path, (u32)len, n);
        return slowly(mr_self.cwd, path, n);
    }
    u32 kind = mr_entry_kind(mr_entry(dirfd));
    if (kind != MR_DIRECTORY && kind != MR_MAYBE && !mr_load(&mr_self.vforks) && clean_length(path) >= 0) return MR_OUTSIDE;
    if (mr_link_of(dirfd, base, sizeof base) <= 0 || base[0] != '/') return MR_OUTSIDE;
    return slowly(base, path, n);
}

/* /dev/stdin, /dev/fd/N and /proc/self/fd/N open what the descriptor has open. -1: another path. */
static long names_descriptor(const char *path)
{
    static const char *const std[] = {"in", "out", "err"};
    const char *p = 0;
    if (mr_same(path, "/dev/std", 8)) {
        for (int i = 0; i < 3; i++)
            if (mr_equal(path + 8, std[i])) return i;
    } else if (mr_same(path, "/dev/fd/", 8)) {
        p = path + 8;
    } else if (mr_same(path, "/proc/se", 8) && mr_same(path + 8, "lf/fd/", 6)) {
        p = path + 14;
    }
    if (!p || *p < '0' || *p > '9') return -1;
    long fd = (long)mr_number(p);
    while (*p >= '0' && *p <= '9') p++;
    return *p ? -1 : fd;
}

/* Before its length is known: eight bytes at a time, but none beyond the page. */
__attribute__((no_sanitize("address"))) static int begins_like_dir(const char *path)
{
    typedef u64 __attribute__((may_alias, aligned(1))) word;
    u32 n = mr_self.dir_len, i = 0;
    for (; i + 8 <= n && ((u64)(path + i) & 4095) <= 4096 - 8; i += 8)
        if (*(const word *)(const void *)(path + i) != *(const word *)(const void *)(mr_self.dir + i)) return 0;
    if (i && i + 8 > n && ((u64)(path + n - 8) & 4095) <= 4096 - 8)
        return *(const word *)(const void *)(path + n - 8) == *(const word *)(const void *)(mr_self.dir + n - 8);
    while (i < n && path[i] == mr_self.dir[i]) i++; /* ends with the path at the latest */
    return i == n;
}

static int by_spelling(long dirfd, const char *path, struct mr_name *n)
{
    if (!mr_text_readable(path) || !*path) return MR_OUTSIDE; /* the kernel says what is wrong with it */
    if (*path != '/') return relative(dirfd, path, n);
    u32 dir = mr_self.dir_len;
    int begins = begins_like_dir(path);
    if (begins && path[dir] == '/' && path[dir + 1] != '.' && path[dir + 1] != '/') {
        s64 rest = mr_scan(path + dir + 1);
        if (likely(rest > 0)) return take(path + dir + 1, (u32)rest, 1, n);
    }
    s64 len = clean_length(path);
    if (unlikely(len < 0)) return slowly("", path, n);
    if (begins && len >= dir && (path[dir] == '/' || !path[dir])) {
        u32 skip = path[dir] == '/';
        return take(path + dir + skip, (u32)len - dir - skip, 1, n);
    }
    if (mr_self.alias_len || (len < dir && mr_same(path, mr_self.dir, (size_t)len))) return slowly("", path, n);
    if (unlikely(len >= 9 && (path[1] == 'd' || path[1] == 'p') && path[5 - (path[1] == 'd')] == '/')) {
        long fd = names_descriptor(path);
        if (fd >= 0 && mr_name_of_fd(fd, n) == MR_INSIDE) return MR_INSIDE;
    }
    return MR_OUTSIDE;
}

/* Where the directories on the way may be links, the kernel says where they lead. The last name is not followed: that is
 * for those who open it (veil.c). Its case is the spelling's when it is `.` or `..`, or leads out of the managed directory. */
static void through_links(long dirfd, const char *path, struct mr_name *n)
{
    char above[4096];
    const char *rest = 0;
    u32 end = (u32)mr_len(path), cut;
    while (end && path[end - 1] == '/') end--;
    for (cut = end; cut && path[cut - 1] != '/';) cut--;
    u32 last = end - cut;
    if (!cut || !last || cut >= sizeof above || (last < 3 && path[cut] == '.' && path[end - 1] == '.')) return;
    mr_copy(above, path, cut);
    above[cut] = 0;
    long fd = mr_sys(SYS_openat, dirfd, above, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return;
    long len = mr_link_of(fd, above, sizeof above);
    mr_sys(SYS_close, fd, 0, 0, 0);
    if (len <= 0 || place(above, (u32)len, &rest) != MR_INSIDE) return;
    u32 at = (u32)mr_len(rest);
    if (at + 1 + last > MR_NAME_MAX) return;
    char name[MR_NAME_MAX + 1]; /* the path may lie in n */
    mr_copy(name, path + cut, last);
    mr_copy(n->space, rest, at);
    if (at) n->space[at++] = '/';
    mr_copy(n->space + at, name, last);
    n->len = at + last;
    n->space[n->len] = 0;
    n->rel = n->space;
}

int mr_name_of(long dirfd, const char *path, struct mr_name *n)
{
    int where = by_spelling(dirfd, path, n);
    if (unlikely(where == MR_INSIDE && (mr_b->links & MR_DIR_LINKS))) through_links(dirfd, path, n);
    if (unlikely(where != MR_INSIDE && (mr_b->links & MR_OUTER_LINKS)) && mr_text_readable(path) && *path) return mr_lead(dirfd, path, 0, n);
    return where;
}

void mr_cwd_changed(void)
{
    const char *rest = 0;
    long len = mr_sys(SYS_getcwd, mr_self.cwd, sizeof mr_self.cwd, 0, 0);
    if (len <= 1 || mr_self.cwd[0] != '/') mr_copy(mr_self.cwd, "/", 2), len = 2;
    mr_self.cwd_place = (u32)place(mr_self.cwd, (u32)len - 1, &rest);
    mr_self.cwd_len = (u32)len - 1;
    mr_self.cwd_from = rest ? (u32)(rest - mr_self.cwd) : 0;
}
