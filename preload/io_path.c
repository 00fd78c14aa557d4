/* Calls that name a path: those that look at it wait like open, those that change it are booked. */
#include "local.h"

#include <sys/stat.h>

static int asks_for_size(long nr)
{
#if defined(__x86_64__)
    if (nr == SYS_stat || nr == SYS_lstat) return 1;
#endif
    return nr == SYS_newfstatat || nr == SYS_statx;
}

/* lstat and its relatives: what we made a link of is what it leads to. */
static long unveiled(const struct mr_call *c, long dirfd, const char *path, const struct mr_name *n)
{
    long ret = mr_plain(c);
    if (ret < 0 || !asks_for_size(c->nr)) return ret;
    struct mr_call d = *c;
    int is_link = 0;
    if (c->nr == SYS_statx) {
        is_link = (c->a[2] & AT_SYMLINK_NOFOLLOW) && S_ISLNK(((const struct statx *)c->a[4])->stx_mode);
        d.a[2] &= ~(long)AT_SYMLINK_NOFOLLOW;
    } else if (c->nr == SYS_newfstatat) {
        is_link = (c->a[3] & AT_SYMLINK_NOFOLLOW) && S_ISLNK(((const struct stat *)c->a[2])->st_mode);
        d.a[3] &= ~(long)AT_SYMLINK_NOFOLLOW;
#if defined(__x86_64__)
    } else if (c->nr == SYS_lstat) {
        is_link = S_ISLNK(((const struct stat *)c->a[1])->st_mode);
        d.nr = SYS_stat;
#endif
    }
    return unlikely(is_link) && mr_is_veiled(dirfd, path, n) ? mr_plain(&d) : ret;
}

int mr_only_looks(const struct mr_call *c)
{
    switch (c->nr) {
#if defined(__x86_64__)
    case SYS_stat: case SYS_access:
#endif
    case SYS_faccessat: return 1;
    case SYS_newfstatat: case SYS_faccessat2: return !(c->a[3] & AT_SYMLINK_NOFOLLOW);
    case SYS_statx: return !(c->a[2] & AT_SYMLINK_NOFOLLOW);
    default: return 0;
    }
}

static long wait_and_look(const struct mr_call *c, long dirfd, const char *path, struct mr_name *n, u32 file);

static inline long look_at(const struct mr_call *c, long dirfd, const char *path)
{
    struct mr_name n;
    if (likely(mr_name_of(dirfd, path, &n) != MR_INSIDE)) return MR_GO;
    u32 file = mr_file_find(n.rel, n.len);
    if (file != MR_NONE && mr_peek(&mr_file_at(file)->state) == MR_COMMITTED && mr_only_looks(c)) return MR_GO;
    return wait_and_look(c, dirfd, path, &n, file);
}

static long wait_and_look(const struct mr_call *c, long dirfd, const char *path, struct mr_name *name, u32 file)
{
    struct mr_rights r = {.file = file};
    if (r.file != MR_NONE && mr_load(&mr_file_at(r.file)->state) == MR_COMMITTED) return unveiled(c, dirfd, path, name);
    mr_rights_found(name, &r);
    if (unlikely(r.rule == MR_NONE && (mr_b->links & MR_LINKS)) && (mr_only_looks(c) || c->nr == SYS_chdir)) mr_follow_links(dirfd, path, name, &r);
    int size = asks_for_size(c->nr);
    if (r.producer && r.file != MR_NONE) mr_see_writes(r.file);
    for (u64 began = 0;;) {
        long err = mr_gate(dirfd, path, name, &r);
        /* the size of a growing file is not known; when the wait can never end, what there is must do */
        if (err == 0 && size && r.rule != MR_NONE && !r.producer && !r.is_dir && mr_load(&mr_file_at(r.file)->state) == MR_GROWING) {
            err = mr_wait_for(mr_who(0).proc, r.file, MR_WAIT_COMMIT, 0, 0);
            if (err == -EDEADLK) err = 0;
        }
        if (err < 0) return err;
        long ret = unveiled(c, dirfd, path, name);
        if (ret != -ENOENT || r.rule == MR_NONE || r.producer) return ret;
        if (mr_load(&mr_file_at(r.file)->state) != MR_GROWING) return ret;
        if (!began) began = mr_now();
        err = mr_wait_moment(mr_who(0).proc, r.file, began);
        if (err < 0) return err;
    }
}

/* stat, lstat, access */
long mr_do_path1(const struct mr_call *c) { return look_at(c, AT_FDCWD, (const char *)c->a[0]); }
/* newfstatat, statx, faccessat, faccessat2: an empty path is the descriptor */
long mr_do_pathat(const struct mr_call *c)
{
    const char *path = (const char *)c->a[1];
    if (asks_for_size(c->nr) && mr_readable(path, 1) && !*path) return mr_stat_descriptor(c);
    return look_at(c, c->a[0], path);
}

long mr_do_getdents(const struct mr_call *c)
{
    u64 e = mr_entry(c->a[0]);
    if (mr_entry_kind(e) == MR_DIRECTORY && mr_entry_index(e) != MR_NONE) {
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_LIST, 0, 0);
        if (err < 0) return err;
    }
    long len = mr_plain(c);
    if (e && len > 0) mr_veil_list(c->a[0], (char *)c->a[1], len, c->nr != SYS_getdents64);
    return len;
}

long mr_do_chdir(const struct mr_call *c)
{
    long ret = look_at(c, AT_FDCWD, (const char *)c->a[0]);
    if (ret == MR_GO) ret = mr_plain(c);
    if (ret == 0 && !mr_who(0).foreign) mr_cwd_changed();
    return ret;
}

long mr_do_fchdir(const struct mr_call *c)
{
    long ret = mr_plain(c);
    if (ret == 0 && !mr_who(0).foreign) mr_cwd_changed();
    return ret;
}

long mr_do_truncate(const struct mr_call *c)
{
    struct mr_name n;
    struct mr_rights r;
    struct mr_guard g;
    if (likely(mr_name_of(AT_FDCWD, (const char *)c->a[0], &n) != MR_INSIDE)) return MR_GO;
    mr_rights_of(&n, &r);
    if (unlikely(r.rule == MR_NONE && (mr_b->links & MR_LINKS))) mr_follow_links(AT_FDCWD, (const char *)c->a[0], &n, &r);
    if (r.file != MR_NONE) mr_see_writes(r.file);
    if (r.producer && r.file != MR_NONE) {
        struct mr_file *f = mr_file_at(r.file);
        mr_lock(&g);
        if (f->state < MR_COMMITTED) mr_cut(f, c->a[1] < 0 ? 0 : (u64)c->a[1]);
        mr_unlock(&g);
    }
    return mr_plain(c);
}

/* ---- appearing ---- */

/* A governed path that a producer put there whole: by mkdir, link or rename. */
static void appeared(long dirfd, const char *path, const struct mr_name *n)
{
    struct mr_rights r;
    struct mr_guard g;
    struct stat st;
    mr_rights_of(n, &r);
    if (r.rule == MR_NONE || !r.producer) return;
    if (mr_sys(SYS_newfstatat, dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
    if (S_ISDIR(st.st_mode) && !r.is_dir) return;
    int written = S_ISREG(st.st_mode) ? mr_is_written(dirfd, path) : 0;
    mr_lock(&g);
    u32 file = mr_file_get(n->rel, n->len, r.rule, r.is_dir);
    if (file != MR_NONE && written) {
        mr_adopt(file, &st);
        mr_unlock(&g);
        mr_learn_path(n, &st);
        mr_lock(&g);
    }
    if (file != MR_NONE) {
        struct mr_file *f = mr_file_at(file);
        if (S_ISREG(st.st_mode) && f->state < MR_COMMITTED && (u64)st.st_size > f->frontier)
            mr_store(&f->frontier, (u64)st.st_size);
        mr_file_begin(file);
        /* Nobody has it open: whoever wrote it has closed it before. Somebody whom we do not see: that ends with the step. */
        if (!r.is_dir && !f->writers && written != 1) mr_count_close(file, mr_self.proc, 0);
        mr_file_evaluate(file);
    }
    mr_unlock(&g);
}

static long make_dir(const struct mr_call *c, long dirfd, const char *path)
{
    struct mr_name n;
    struct mr_rights r;
    if (likely(mr_name_of(dirfd, path, &n) != MR_INSIDE)) return MR_GO;
    mr_rights_of(&n, &r);
    if (r.rule == MR_NONE || !r.producer) return MR_GO;
    long ret = mr_plain(c);
    if (ret == 0) appeared(dirfd, path, &n);
    return ret;
}

long mr_do_mkdir(const struct mr_call *c) { return make_dir(c, AT_FDCWD, (const char *)c->a[0]); }
long mr_do_mkdirat(const struct mr_call *c) { return make_dir(c, c->a[0], (const char *)c->a[1]); }

/* ---- going ---- */

/* Nobody writes it and nobody waits for it: its name can go without a word. */
static int is_settled(u32 file)
{
    return file == MR_NONE || (mr_load(&mr_file_at(file)->state) == MR_COMMITTED && !mr_load(&mr_file_at(file)->writers));
}

static void vanished(u32 file)
{
    struct mr_guard g;
    if (is_settled(file)) return;
    mr_lock(&g);
    mr_ofd_detach(file);
    if (mr_file_at(file)->state == MR_GROWING) mr_file_reset(file);
    mr_unlock(&g);
}

static u32 completed(const struct mr_name *n)
{
    u32 file = mr_file_find(n->rel, n->len);
    if (file != MR_NONE) mr_see_writes(file);
    return file;
}

static long remove_path(const struct mr_call *c, long dirfd, const char *path)
{
    struct mr_name n;
    struct mr_rights r;
    if (likely(mr_name_of(dirfd, path, &n) != MR_INSIDE)) return MR_GO;
    r.file = completed(&n);
    mr_rights_found(&n, &r);
    if (r.rule == MR_NONE || (r.file != MR_NONE && is_settled(r.file))) return MR_GO;
    long ret = mr_plain(c);
    if (ret == 0) vanished(mr_file_find(n.rel, n.len));
    return ret;
}

long mr_do_unlink(const struct mr_call *c) { return remove_path(c, AT_FDCWD, (const char *)c->a[0]); }
long mr_do_unlinkat(const struct mr_call *c) { return remove_path(c, c->a[0], (const char *)c->a[1]); }

/* Something else took its name: who still has the old file open writes into nothing. */
static void replaced(u32 file)
{
    struct mr_guard g;
    if (is_settled(file)) return;
    mr_lock(&g);
    mr_ofd_detach(file);
    if (mr_file_at(file)->state < MR_COMMITTED) mr_cut(mr_file_at(file), 0); /* what was published was the other file */
    mr_unlock(&g);
}

/* Descriptions open on the old name now write the new one. */
static void follow(const struct mr_name *from, const struct mr_name *to)
{
    struct mr_rights r;
    struct mr_guard g;
    u32 old = mr_file_find(from->rel, from->len);
    mr_rights_of(to, &r);
    if (old == MR_NONE || r.rule == MR_NONE) return;
    mr_lock(&g);
    u32 new = mr_file_get(to->rel, to->len, r.rule, r.is_dir);
    if (new != MR_NONE && mr_file_at(old)->lower) { /* the bytes stay where they are, the link was renamed */
        mr_file_begin(new);
        mr_file_at(new)->moved = mr_file_at(old)->moved;
        mr_store(&mr_file_at(new)->lower, mr_file_at(old)->lower);
        mr_add(&mr_file_at(new)->place, 2);
    }
    for (u32 i = 0, n = mr_used(MR_OFDS); i < n && new != MR_NONE && mr_file_at(old)->writers; i++) {
        struct mr_ofd *o = mr_ofd_at(i);
        if (!o->slot.used || o->file != old || o->gone) continue;
        mr_stage_follow(i, new);
        o->file = new;
        mr_file_at(old)->writers--;
        mr_file_at(new)->writers++;
    }
    mr_unlock(&g);
}

/* A directory has another name now, and so has all that lies in it. */
struct carried {
    struct mr_name from, to;
    char path[2200];
    int known; /* it came from inside */
};

static void add(struct mr_name *n, const char *name)
{
    struct mr_text t = {n->space + n->len, n->space + sizeof n->space};
    mr_put(&t, "/");
    mr_put(&t, name);
    n->len = (u32)(t.at - n->space);
}

static void carry(struct carried *c, int depth)
{
    char list[1024];
    long dir = mr_sys(SYS_openat, AT_FDCWD, c->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir < 0) return;
    for (long len; (len = mr_sys(SYS_getdents64, dir, list, sizeof list, 0)) > 0;)
        for (long at = 0; at < len;) {
            const char *e = list + at, *name = e + 19;
            u32 from = c->from.len, to = c->to.len, path = (u32)mr_len(c->path);
            struct mr_text t = {c->path + path, c->path + sizeof c->path};
            at += *(const u16 *)(const void *)(e + 16);
            if (mr_equal(name, ".") || mr_equal(name, "..") || to + mr_len(name) >= MR_NAME_MAX || from + mr_len(name) >= MR_NAME_MAX) continue;
            add(&c->from, name);
            add(&c->to, name);
            mr_put(&t, "/");
            mr_put(&t, name);
            if (c->known) follow(&c->from, &c->to);
            appeared(AT_FDCWD, c->path, &c->to);
            if (e[18] == 4 /* DT_DIR */ && depth < 32) carry(c, depth + 1);
            c->from.space[c->from.len = from] = c->to.space[c->to.len = to] = c->path[path] = 0;
        }
    mr_sys(SYS_close, dir, 0, 0, 0);
}

static void copy_name(struct mr_name *to, const struct mr_name *from)
{
    mr_copy(to->space, from->rel, from->len);
    to->space[to->len = from->len] = 0;
    to->rel = to->space;
}

static void moved_directory(const struct mr_name *from, const struct mr_name *to)
{
    if (to) {
        struct carried c = {.known = from != 0};
        struct mr_text t = {c.path, c.path + sizeof c.path};
        copy_name(&c.to, to);
        copy_name(&c.from, from ? from : to);
        mr_put(&t, mr_self.dir);
        mr_put(&t, "/");
        mr_put(&t, c.to.rel);
        carry(&c, 0);
    }
    for (u32 i = 0, n = mr_used(MR_FILES); from && i < n; i++) {
        const struct mr_file *f = mr_file_at(i);
        const char *path = mr_text_at(f->path);
        if (f->path_len <= from->len || path[from->len] != '/' || !mr_same(path, from->rel, from->len)) continue;
        vanished(i);
    }
}

/* May a name below this directory mean anything? Records of what lay below `from`, rules of ours for what comes to lie
 * below `to`. Else it does not matter whether a directory was moved. */
static int matters_below(const struct mr_name *from, const struct mr_name *to)
{
    return (from && mr_has_records_below(from->rel, from->len)) || (to && mr_self.step != MR_NONE && mr_may_govern_below(mr_self.step, to->rel, to->len));
}

static void moved(long dir1, const char *path1, const struct mr_name *a, long dir2, const char *path2, const struct mr_name *b, int stays)
{
    struct stat st, old;
    int found = mr_sys(SYS_newfstatat, dir2, path2, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (a && b && !stays && found && st.st_nlink > 1 && mr_sys(SYS_newfstatat, dir1, path1, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        old.st_ino == st.st_ino && old.st_dev == st.st_dev)
        return; /* two names of one file: the kernel leaves both */
    if (b && !stays) replaced(mr_file_find(b->rel, b->len));
    if (a && b && !stays) follow(a, b);
    if (b) appeared(dir2, path2, b);
    if (a && !stays) vanished(mr_file_find(a->rel, a->len));
    if (!stays && found && S_ISDIR(st.st_mode)) moved_directory(a, b);
}

static long move_path(const struct mr_call *c, long dir1, const char *path1, long dir2, const char *path2, int stays, u32 flags)
{
    struct mr_name from, to;
    const struct mr_name *a = mr_name_of(dir1, path1, &from) == MR_INSIDE ? &from : 0;
    const struct mr_name *b = mr_name_of(dir2, path2, &to) == MR_INSIDE ? &to : 0;
    if (likely(!a && !b)) return MR_GO;
    struct mr_rights r = {.rule = MR_NONE};
    u32 old = a ? completed(a) : MR_NONE;
    if (b) {
        r.file = completed(b);
        mr_rights_found(b, &r);
    }
    /* Complete and plain files that get a name which says nothing new: nothing is to be booked. */
    int governed = r.rule != MR_NONE && (r.producer || (old != MR_NONE && mr_load(&mr_file_at(old)->lower)));
    if (is_settled(old) && (!b || is_settled(r.file)) && !governed && (stays || !matters_below(a, b))) return MR_GO;
    long ret = mr_plain(c);
    if (ret < 0 || (flags & 2 /* RENAME_EXCHANGE */)) return ret;
    if (a && b && a->len == b->len && mr_same(a->rel, b->rel, a->len)) return ret; /* onto itself: nothing moved */
    moved(dir1, path1, a, dir2, path2, b, stays);
    return ret;
}

long mr_do_rename(const struct mr_call *c)
{
    return move_path(c, AT_FDCWD, (const char *)c->a[0], AT_FDCWD, (const char *)c->a[1], 0, 0);
}
long mr_do_renameat(const struct mr_call *c) /* and renameat2 */
{
    u32 flags = c->nr == SYS_renameat2 ? (u32)c->a[4] : 0;
    return move_path(c, c->a[0], (const char *)c->a[1], c->a[2], (const char *)c->a[3], 0, flags);
}
long mr_do_link(const struct mr_call *c)
{
    return move_path(c, AT_FDCWD, (const char *)c->a[0], AT_FDCWD, (const char *)c->a[1], 1, 0);
}
long mr_do_linkat(const struct mr_call *c)
{
    return move_path(c, c->a[0], (const char *)c->a[1], c->a[2], (const char *)c->a[3], 1, 0);
}
