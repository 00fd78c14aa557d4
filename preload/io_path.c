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
    case SYS_stat: case SYS_access: case SYS_chmod: case SYS_chown: case SYS_utime: case SYS_utimes: case SYS_futimesat:
#endif
    case SYS_faccessat: case SYS_fchmodat: case SYS_statfs: case SYS_getxattr: case SYS_listxattr: return 1;
    case SYS_inotify_add_watch: return !(c->a[2] & 0x2000000 /* IN_DONT_FOLLOW */);
    case SYS_fchownat: return !(c->a[4] & AT_SYMLINK_NOFOLLOW);
    case SYS_newfstatat: case SYS_faccessat2: case SYS_utimensat: return !(c->a[3] & AT_SYMLINK_NOFOLLOW);
    case SYS_statx: return !(c->a[2] & AT_SYMLINK_NOFOLLOW);
    default: return 0;
    }
}

static int changes_what_is_there(long nr)
{
    switch (nr) {
#if defined(__x86_64__)
    case SYS_chmod: case SYS_chown: case SYS_lchown: case SYS_utime: case SYS_utimes: case SYS_futimesat:
#endif
    case SYS_fchmodat: case SYS_fchownat: case SYS_utimensat: return 1;
    default: return 0;
    }
}

/* tar, find, cp and rsync ask in this way before they list a directory, and compare its times afterwards. Who follows
 * links ([ -d dir ], cd, mkdir -p) asks whether it is there. */
static int asks_for_times(const struct mr_call *c) { return asks_for_size(c->nr) && !mr_only_looks(c); }

static long wait_and_look(const struct mr_call *c, long dirfd, const char *path, struct mr_name *n, u32 file);

static inline long look_at(const struct mr_call *c, long dirfd, const char *path)
{
    struct mr_name n;
    if (likely((mr_only_looks(c) ? mr_name_followed(dirfd, path, &n) : mr_name_of(dirfd, path, &n)) != MR_INSIDE)) return MR_GO;
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
    if (r.rule != MR_NONE && !r.producer && changes_what_is_there(c->nr) && mr_is_strangers(dirfd, path, r.file)) return unveiled(c, dirfd, path, name);
    for (u64 began = 0;;) {
        long err = mr_gate(dirfd, path, name, &r);
        /* the size of a growing file is not known; when the wait can never end, what there is must do */
        if (err == 0 && r.rule != MR_NONE && !r.producer) {
            u32 state = mr_load(&mr_file_at(r.file)->state);
            if (r.is_dir ? asks_for_times(c) && state != MR_COMMITTED : size && state == MR_GROWING)
                err = mr_wait_if_it_ends(mr_who(0).proc, r.file, r.is_dir ? MR_WAIT_LIST : MR_WAIT_COMMIT);
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

/* stat, lstat, access, chmod, chown, statfs, getxattr and others */
long mr_do_path1(const struct mr_call *c) { return look_at(c, AT_FDCWD, (const char *)c->a[0]); }
/* newfstatat, statx, faccessat, fchmodat, fchownat: an empty path is the descriptor */
long mr_do_pathat(const struct mr_call *c)
{
    const char *path = (const char *)c->a[1];
    if (asks_for_size(c->nr) && mr_readable(path, 1) && !*path) return mr_stat_descriptor(c);
    return look_at(c, c->a[0], path);
}

long mr_do_utimens(const struct mr_call *c) { return c->a[1] ? look_at(c, c->a[0], (const char *)c->a[1]) : mr_do_descriptor(c); }
/* What is there is watched at once: the very event that it is watched for may be the end of its writing. */
long mr_do_watch(const struct mr_call *c)
{
    if (mr_sys(SYS_faccessat, AT_FDCWD, c->a[1], 0, 0) == 0) return MR_GO;
    return look_at(c, AT_FDCWD, (const char *)c->a[1]);
}

long mr_do_getdents(const struct mr_call *c)
{
    u64 e = mr_entry(c->a[0]);
    if (mr_entry_kind(e) == MR_DIRECTORY && mr_entry_index(e) != MR_NONE) {
        int err = mr_wait_for(mr_who(0).proc, mr_entry_index(e), MR_WAIT_LIST, 0, 0);
        if (err < 0) return err;
    }
    if (likely(!e || !mr_has_veils())) return MR_GO;
    long len = mr_plain(c);
    if (len > 0) mr_veil_list(c->a[0], (char *)c->a[1], len, c->nr != SYS_getdents64);
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
    if (likely(mr_name_followed(AT_FDCWD, (const char *)c->a[0], &n) != MR_INSIDE)) return MR_GO;
    mr_rights_of(&n, &r);
    if (unlikely(r.rule == MR_NONE && (mr_b->links & MR_LINKS))) mr_follow_links(AT_FDCWD, (const char *)c->a[0], &n, &r);
    if (unlikely(mr_b->links & MR_HARD_LINKS)) mr_other_name(AT_FDCWD, (const char *)c->a[0], &n, &r);
    if (r.file != MR_NONE) mr_see_writes(r.file);
    if (r.producer && r.file != MR_NONE) {
        mr_lock(&g);
        mr_cut_names(r.file, c->a[1] < 0 ? 0 : (u64)c->a[1]);
        mr_unlock(&g);
    }
    return mr_plain(c);
}

/* ---- appearing ---- */

/* A governed path that a producer put there whole: by mkdir, link or rename. */
void mr_appeared(long dirfd, const char *path, const struct mr_name *n)
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
    if (file != MR_NONE && S_ISREG(st.st_mode) && st.st_nlink > 1) mr_name_known(file, &st);
    if (file != MR_NONE && written) {
        mr_adopt(file, &st);
        mr_unlock(&g);
        mr_learn_path(n, &st);
        mr_lock(&g);
    }
    mr_sys(SYS_newfstatat, dirfd, path, &st, AT_SYMLINK_NOFOLLOW); /* what is written from now on is booked for this name */
    if (file != MR_NONE) {
        struct mr_file *f = mr_file_at(file);
        if (S_ISREG(st.st_mode) && f->state == MR_COMMITTED) mr_written_again(file, mr_self.step);
        if (S_ISREG(st.st_mode) && f->state < MR_COMMITTED && (u64)st.st_size > f->frontier)
            mr_store(&f->frontier, (u64)st.st_size);
        mr_file_begin(file);
        /* No process has it open: its writer has closed it before. A writer that we do not see ends with the step. */
        if (!r.is_dir && !mr_writers_of_names(file) && written != 1) mr_count_close(file, mr_self.proc, 0);
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
    if (ret == 0) mr_appeared(dirfd, path, &n);
    return ret;
}

long mr_do_mkdir(const struct mr_call *c) { return make_dir(c, AT_FDCWD, (const char *)c->a[0]); }
long mr_do_mkdirat(const struct mr_call *c) { return make_dir(c, c->a[0], (const char *)c->a[1]); }

/* ---- going ---- */

/* It has no writer and no waiting reader: its name can go without an announcement. */
int mr_is_settled(u32 file)
{
    const struct mr_file *f = mr_file_at(file == MR_NONE ? 0 : file);
    return file == MR_NONE || (mr_load(&f->state) == MR_COMMITTED && !mr_load(&f->writers) && !mr_load(&f->inode) && !mr_load(&f->twin));
}

void mr_vanished(u32 file)
{
    struct mr_guard g;
    if (mr_is_settled(file)) return;
    mr_lock(&g);
    mr_ofd_detach(file);
    if (mr_file_at(file)->state == MR_GROWING) mr_file_reset(file);
    mr_unlock(&g);
}

u32 mr_completed(const struct mr_name *n)
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
    r.file = mr_completed(&n);
    mr_rights_found(&n, &r);
    if (r.rule == MR_NONE || (r.file != MR_NONE && mr_is_settled(r.file))) return MR_GO;
    long ret = mr_plain(c);
    if (ret == 0) mr_vanished(mr_file_find(n.rel, n.len));
    return ret;
}

long mr_do_unlink(const struct mr_call *c) { return remove_path(c, AT_FDCWD, (const char *)c->a[0]); }
long mr_do_unlinkat(const struct mr_call *c) { return remove_path(c, c->a[0], (const char *)c->a[1]); }
