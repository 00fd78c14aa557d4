/* rename and link: names that come to be, go, or mean another file. */
#include "local.h"

#include <sys/stat.h>

/* Something else took its name: who still has the old file open writes into nothing. */
static void replaced(u32 file)
{
    struct mr_guard g;
    if (mr_is_settled(file)) return;
    mr_lock(&g);
    mr_ofd_detach(file);
    if (mr_file_at(file)->state < MR_COMMITTED) mr_cut(mr_file_at(file), 0); /* what was published was the other file */
    mr_unlock(&g);
}

/* Descriptions open on the old name now write the new one. */
static void follow(const struct mr_name *from, const struct mr_name *to, int stays)
{
    struct mr_rights r;
    struct mr_guard g;
    u32 old = mr_file_find(from->rel, from->len);
    mr_rights_of(to, &r);
    if (old == MR_NONE || r.rule == MR_NONE || (stays && !r.producer)) return;
    mr_lock(&g);
    u32 new = mr_file_get(to->rel, to->len, r.rule, r.is_dir);
    if (new != MR_NONE && mr_file_at(old)->lower) { /* the bytes stay where they are, the link was renamed */
        mr_file_begin(new);
        mr_file_at(new)->moved = mr_file_at(old)->moved;
        mr_store(&mr_file_at(new)->lower, mr_file_at(old)->lower);
        mr_add(&mr_file_at(new)->place, 2);
    }
    if (new != MR_NONE && new != old && (stays || mr_next_name(old) != old)) mr_names_join(old, new);
    for (u32 i = 0, n = mr_used(MR_OFDS); !stays && i < n && new != MR_NONE && mr_file_at(old)->writers; i++) {
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
            if (c->known) follow(&c->from, &c->to, 0);
            mr_appeared(AT_FDCWD, c->path, &c->to);
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

/* All that lies in the directory has come to be there. from: where it was, null when that is of no use. */
static void filled(const struct mr_name *from, const struct mr_name *to)
{
    struct carried c = {.known = from != 0};
    struct mr_text t = {c.path, c.path + sizeof c.path};
    copy_name(&c.to, to);
    copy_name(&c.from, from ? from : to);
    mr_put(&t, mr_self.dir);
    mr_put(&t, "/");
    mr_put(&t, c.to.rel);
    carry(&c, 0);
}

static void emptied(const struct mr_name *from)
{
    for (u32 i = 0, n = mr_used(MR_FILES); i < n; i++) {
        const struct mr_file *f = mr_file_at(i);
        const char *path = mr_text_at(f->path);
        if (f->path_len <= from->len || path[from->len] != '/' || !mr_same(path, from->rel, from->len)) continue;
        mr_vanished(i);
    }
}

static void moved_directory(const struct mr_name *from, const struct mr_name *to)
{
    if (to) filled(from, to);
    if (from) emptied(from);
}

/* May a name below this directory mean anything? Records of what lay below `from`, rules of ours for what comes to lie
 * below `to`. Else it does not matter whether a directory was moved. */
static int matters_below(const struct mr_name *from, const struct mr_name *to)
{
    return (from && mr_has_records_below(from->rel, from->len)) || (to && mr_self.step != MR_NONE && mr_may_govern_below(mr_self.step, to->rel, to->len));
}

/* A name that rules know, of a file that has got another. */
static void has_other_names(const struct mr_name *n, const struct stat *st)
{
    struct mr_rights r;
    struct mr_guard g;
    mr_rights_of(n, &r);
    if (r.rule == MR_NONE || !r.producer || r.is_dir || mr_record(n, &r) == MR_NONE) return;
    mr_lock(&g);
    mr_name_known(r.file, st);
    mr_unlock(&g);
}

/* A name that no rule knows, of a file that has another: who writes through it writes that one. */
void mr_other_name(long dirfd, const char *path, struct mr_name *n, struct mr_rights *r)
{
    struct stat st;
    struct mr_guard g;
    struct mr_rights other;
    if (r->rule != MR_NONE || mr_sys(SYS_newfstatat, dirfd, path, &st, 0) < 0 || st.st_nlink < 2 || !S_ISREG(st.st_mode)) return;
    mr_lock(&g);
    other.file = mr_file_of_inode(&st, MR_NONE);
    mr_unlock(&g);
    if (other.file == MR_NONE) return;
    mr_rights_found(n, &other);
    if (!other.producer) return; /* for others it is a plain file */
    const struct mr_file *f = mr_file_at(other.file);
    mr_copy(n->space, mr_text_at(f->path), f->path_len + 1);
    n->rel = n->space;
    n->len = f->path_len;
    *r = other;
}

static void moved(long dir1, const char *path1, const struct mr_name *a, long dir2, const char *path2, const struct mr_name *b, int stays)
{
    struct stat st, old;
    int found = mr_sys(SYS_newfstatat, dir2, path2, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (a && b && !stays && found && st.st_nlink > 1 && mr_sys(SYS_newfstatat, dir1, path1, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        old.st_ino == st.st_ino && old.st_dev == st.st_dev)
        return; /* two names of one file: the kernel leaves both */
    if (b && !stays) replaced(mr_file_find(b->rel, b->len));
    if (a && stays && found && S_ISREG(st.st_mode)) has_other_names(a, &st);
    if (a && b) follow(a, b, stays);
    if (b) mr_appeared(dir2, path2, b);
    if (a && !stays) mr_vanished(mr_file_find(a->rel, a->len));
    if (!stays && found && S_ISDIR(st.st_mode)) moved_directory(a, b);
}

/* Two files that change places: both names are gone, and there again. Who writes them is found anew (adopt.c). */
static void exchanged(long dir1, const char *path1, const struct mr_name *a, long dir2, const char *path2, const struct mr_name *b)
{
    const struct mr_name *name[2] = {a, b};
    const char *path[2] = {path1, path2};
    long dir[2] = {dir1, dir2};
    u32 file[2] = {a ? mr_file_find(a->rel, a->len) : MR_NONE, b ? mr_file_find(b->rel, b->len) : MR_NONE};
    struct mr_guard g;
    struct stat one, other;
    if (mr_sys(SYS_newfstatat, dir1, path1, &one, AT_SYMLINK_NOFOLLOW) == 0 && mr_sys(SYS_newfstatat, dir2, path2, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
        one.st_ino == other.st_ino && one.st_dev == other.st_dev)
        return; /* two names of one file */
    for (int i = 0; i < 2; i++) {
        if (name[i]) mr_vanished(file[i]);
        if (name[i]) emptied(name[i]);
    }
    if (file[0] != MR_NONE && file[1] != MR_NONE) { /* what has moved to the lower layer stays there */
        struct mr_file *f = mr_file_at(file[0]), *o = mr_file_at(file[1]);
        mr_lock(&g);
        u32 lower = f->lower;
        u64 size = f->moved;
        if (lower || o->lower) {
            mr_file_begin(file[0]);
            mr_file_begin(file[1]);
            mr_store(&f->lower, o->lower), f->moved = o->moved;
            mr_store(&o->lower, lower), o->moved = size;
            mr_add(&f->place, 2);
            mr_add(&o->place, 2);
        }
        mr_unlock(&g);
    }
    for (int i = 0; i < 2; i++) {
        if (!name[i]) continue;
        mr_appeared(dir[i], path[i], name[i]);
        filled(0, name[i]);
    }
}

/* A consumer that renames or links a file takes it for complete, so it must be. */
static long whole(long dirfd, const char *path, const struct mr_name *n, u32 file)
{
    struct mr_rights r = {.file = file};
    if (likely(file != MR_NONE && mr_load(&mr_file_at(file)->state) == MR_COMMITTED)) return 0;
    mr_rights_found(n, &r);
    if (r.rule == MR_NONE || r.producer) return 0;
    if (mr_is_strangers(dirfd, path, r.file)) return 0;
    long err = mr_gate(dirfd, path, n, &r);
    if (err == 0 && r.rule != MR_NONE && !r.producer && !r.is_dir && mr_load(&mr_file_at(r.file)->state) == MR_GROWING)
        err = mr_wait_for(mr_who(0).proc, r.file, MR_WAIT_COMMIT, 0, 0);
    return err;
}

static long move_path(const struct mr_call *c, long dir1, const char *path1, long dir2, const char *path2, int stays, u32 flags)
{
    struct mr_name from, to;
    const struct mr_name *a = mr_name_of(dir1, path1, &from) == MR_INSIDE ? &from : 0;
    const struct mr_name *b = mr_name_of(dir2, path2, &to) == MR_INSIDE ? &to : 0;
    if (likely(!a && !b)) return MR_GO;
    struct mr_rights r = {.rule = MR_NONE};
    u32 old = a ? mr_completed(a) : MR_NONE;
    long err = a ? whole(dir1, path1, a, old) : 0;
    if (!err && b && (flags & 2 /* RENAME_EXCHANGE */)) err = whole(dir2, path2, b, mr_completed(b));
    if (err < 0) return err;
    if (b) {
        r.file = mr_completed(b);
        mr_rights_found(b, &r);
    }
    /* Complete and plain files that get a name which says nothing new: nothing is to be booked. */
    int governed = (flags & 2) || (r.rule != MR_NONE && (r.producer || (old != MR_NONE && mr_load(&mr_file_at(old)->lower))));
    if (mr_is_settled(old) && (!b || mr_is_settled(r.file)) && !governed && (stays || !matters_below(a, b))) return MR_GO;
    long ret = mr_plain(c);
    if (ret < 0) return ret;
    if (a && b && a->len == b->len && mr_same(a->rel, b->rel, a->len)) return ret; /* onto itself: nothing moved */
    if (flags & 2 /* RENAME_EXCHANGE */) exchanged(dir1, path1, a, dir2, path2, b);
    else moved(dir1, path1, a, dir2, path2, b, stays);
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
