/* Symbolic links in the managed directory, and what else is neither a file nor a directory.
 *
 * A link that a step made is followed to the name that the rules know. Links that Millrace made, to the lower layer or to an input, must not be seen as links: tar would pack the link,
 * find -type f pass it over. */
#include "local.h"

#include <sys/stat.h>

static int begins(const char *text, const char *with)
{
    while (*with && *text == *with) text++, with++;
    return *with ? 0 : *text == '/';
}

static int is_ours(const char *target, const struct mr_name *n)
{
    if (mr_b->layer && begins(target, mr_text_at(mr_b->layer))) return 1;
    const char *inputs = mr_text_at(mr_b->inputs);
    /* an input has the same name there; another link to that place is the user's own */
    return mr_b->inputs && begins(target, inputs) && mr_equal(target + mr_len(inputs) + 1, n->rel);
}

int mr_is_veiled(long dirfd, const char *path, const struct mr_name *n)
{
    char target[2200];
    if (!mr_has_veils()) return 0;
    long len = mr_sys(SYS_readlinkat, dirfd, path, target, sizeof target - 1);
    if (len <= 0) return 0;
    target[len] = 0;
    return is_ours(target, n);
}

/* The kinds of entries in a listing of a directory inside. */
void mr_veil_list(long fd, char *list, long len, int old)
{
    struct mr_name dir, n;
    int known = 0;
    if (!mr_has_veils()) return;
    for (long at = 0; at < len;) {
        char *e = list + at;
        u32 size = *(const u16 *)(const void *)(e + 16);
        u8 *kind = (u8 *)(old ? e + size - 1 : e + 18); /* getdents has it behind the name */
        const char *name = old ? e + 18 : e + 19;
        at += size;
        if (*kind != 10 /* DT_LNK */) continue;
        if (!known && mr_name_of_fd(fd, &dir) != MR_INSIDE) return;
        known = 1;
        struct mr_text t = {n.space, n.space + sizeof n.space};
        if (!(dir.len == 1 && dir.rel[0] == '.')) {
            mr_put(&t, dir.rel);
            mr_put(&t, "/");
        }
        mr_put(&t, name);
        n.rel = n.space;
        n.len = (u32)(t.at - n.space);
        struct stat st;
        if (mr_is_veiled(fd, name, &n) && mr_sys(SYS_newfstatat, fd, name, &st, 0) == 0) *kind = S_ISDIR(st.st_mode) ? 4 : 8;
    }
}

static long read_link(const struct mr_call *c, long dirfd, const char *path, const char *to, long size)
{
    struct mr_name n;
    if (!mr_has_veils() || likely(mr_name_of(dirfd, path, &n) != MR_INSIDE)) return MR_GO;
    char target[2200];
    long len = mr_plain(c);
    if (len <= 0) return len;
    if (len >= size || len >= (long)sizeof target) return mr_is_veiled(dirfd, path, &n) ? -EINVAL : len;
    mr_copy(target, to, (u64)len);
    target[len] = 0;
    return is_ours(target, &n) ? -EINVAL : len;
}

long mr_do_readlink(const struct mr_call *c) { return read_link(c, AT_FDCWD, (const char *)c->a[0], (const char *)c->a[1], c->a[2]); }
long mr_do_readlinkat(const struct mr_call *c) { return read_link(c, c->a[0], (const char *)c->a[1], (const char *)c->a[2], c->a[3]); }

/* ---- links that steps made ---- */

/* A path that no rule names may be a link to one that a rule does. */
void mr_follow_links(long dirfd, const char *path, struct mr_name *n, struct mr_rights *r)
{
    char target[2200], base[2200], full[2200];
    struct mr_name to;
    for (int depth = 0; r->rule == MR_NONE && depth < 8; depth++) {
        long len = mr_sys(SYS_readlinkat, dirfd, path, target, sizeof target - 1);
        if (len <= 0) return;
        target[len] = 0;
        struct mr_text t = {base, base + sizeof base};
        mr_put(&t, mr_self.dir);
        mr_put(&t, "/");
        char *rel = t.at;
        mr_put(&t, n->rel);
        while (t.at > rel && t.at[-1] != '/') *--t.at = 0;
        if (mr_name_in(base, target, &to) != MR_INSIDE) return;
        t = (struct mr_text){full, full + sizeof full};
        mr_put(&t, mr_self.dir);
        mr_put(&t, "/");
        mr_put(&t, to.rel);
        if (mr_name_of(AT_FDCWD, full, &to) != MR_INSIDE) return; /* links on the way of the target */
        mr_copy(n->space, to.rel, to.len);
        n->space[to.len] = 0;
        n->rel = n->space;
        n->len = to.len;
        mr_rights_of(n, r);
        dirfd = AT_FDCWD;
        path = full;
    }
}

static long made_link(const struct mr_call *c, long dirfd, const char *path)
{
    struct mr_name n;
    long ret = mr_plain(c);
    if (ret < 0) return ret;
    if (mr_name_of(dirfd, path, &n) != MR_INSIDE) {
        mr_outer_link(dirfd, path);
        return ret;
    }
    struct stat st; /* what is not there yet may come to be a directory */
    int leads_to_file = mr_sys(SYS_newfstatat, dirfd, path, &st, 0) == 0 && !S_ISDIR(st.st_mode);
    __atomic_fetch_or(&mr_b->links, leads_to_file ? MR_LINKS : MR_LINKS | MR_DIR_LINKS, __ATOMIC_SEQ_CST);
    return ret;
}

long mr_do_symlink(const struct mr_call *c) { return made_link(c, AT_FDCWD, (const char *)c->a[1]); }
long mr_do_symlinkat(const struct mr_call *c) { return made_link(c, c->a[1], (const char *)c->a[2]); }

/* ---- pipes, sockets, devices ---- */

static long make_node(const struct mr_call *c, long dirfd, const char *path, u32 mode)
{
    struct mr_name n;
    struct mr_rights r;
    struct mr_guard g;
    if (S_ISREG(mode) || !(mode & S_IFMT) || mr_name_of(dirfd, path, &n) != MR_INSIDE) return MR_GO;
    __atomic_fetch_or(&mr_b->links, MR_SPECIAL, __ATOMIC_SEQ_CST); /* before any process can open it */
    long ret = mr_plain(c);
    mr_rights_of(&n, &r);
    if (ret < 0 || !r.producer || mr_record(&n, &r) == MR_NONE) return ret;
    mr_lock(&g);
    mr_file_complete(r.file); /* who waits for it need not: whether there is something in it, the kernel knows */
    mr_unlock(&g);
    return ret;
}

long mr_do_mknod(const struct mr_call *c) { return make_node(c, AT_FDCWD, (const char *)c->a[0], (u32)c->a[1]); }
long mr_do_mknodat(const struct mr_call *c) { return make_node(c, c->a[0], (const char *)c->a[1], (u32)c->a[2]); }
