/* May this process go on with this path? */
#include "local.h"

#include <sys/stat.h>

void mr_rights_of(const struct mr_name *n, struct mr_rights *r)
{
    r->file = mr_file_find(n->rel, n->len);
    mr_rights_found(n, r);
}

/* r->file is known. */
void mr_rights_found(const struct mr_name *n, struct mr_rights *r)
{
    if (r->file != MR_NONE) {
        r->generation = mr_load(&mr_file_at(r->file)->generation);
        r->rule = mr_file_at(r->file)->rule;
        r->is_dir = (int)mr_file_at(r->file)->is_dir;
    } else {
        r->generation = 0;
        r->rule = mr_rule_find(n->rel, n->len, &r->is_dir);
    }
    r->producer = r->rule != MR_NONE && mr_self.step != MR_NONE && mr_produces(mr_rule_at(r->rule), mr_self.step);
}

/* The record of a governed path, made when it is the first time. MR_NONE: the board is full. */
u32 mr_record(const struct mr_name *n, struct mr_rights *r)
{
    if (r->file == MR_NONE) {
        struct mr_guard g;
        mr_lock(&g);
        r->file = mr_file_get(n->rel, n->len, r->rule, r->is_dir);
        mr_unlock(&g);
    }
    return r->file;
}

/* Small writes to the file that are still gathered elsewhere go into it. */
void mr_see_writes(u32 file)
{
    struct mr_guard g;
    if (likely(!mr_load(&mr_file_at(file)->stage))) return;
    mr_lock(&g);
    mr_file_up_to_date(file);
    mr_unlock(&g);
}

int mr_is_special(long fd)
{
    struct stat st;
    return (mr_load(&mr_b->links) & MR_SPECIAL) && mr_sys(SYS_fstat, fd, &st, 0, 0) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

u64 mr_size_of(long fd)
{
    struct stat st;
    const char *below = mr_lower_of(mr_entry(fd));
    long err = below ? mr_sys(SYS_newfstatat, AT_FDCWD, below, &st, 0) : mr_sys(SYS_fstat, fd, &st, 0, 0);
    return err < 0 || !S_ISREG(st.st_mode) ? 0 : (u64)st.st_size;
}

/* A temporary file of a step, whose name a wildcard of another step happens to match, or one without a name: no
 * producer will ever begin it, so no reader waits until it is complete. */
int mr_is_strangers(long dirfd, const char *path, u32 file)
{
    struct stat st;
    if (file != MR_NONE && mr_load(&mr_file_at(file)->state) != MR_ABSENT) return 0;
    if (mr_sys(SYS_newfstatat, dirfd, path, &st, 0) != 0) return 0;
    return st.st_nlink == 0 || (file != MR_NONE && mr_load(&mr_file_at(file)->pinned));
}

/* A consumer that names a governed file: waits until its rule lets it see it. Others pass. */
long mr_gate(long dirfd, const char *path, const struct mr_name *n, struct mr_rights *r)
{
    if (r->rule == MR_NONE || r->producer) return 0;
    if (mr_record(n, r) == MR_NONE) return -ENOSPC;
    struct mr_file *f = mr_file_at(r->file);
    if (mr_load(&f->state) == MR_COMMITTED) {
        mr_passes++;
        return 0;
    }
    if (r->is_dir || mr_load(&f->state) == MR_ABSENT || (mr_load(&mr_b->links) & MR_SPECIAL)) {
        /* directories can be opened once they are there (listing them waits); a directory that a file's
         * pattern happens to match is a plain one, but not one that a step names as its output */
        struct stat st;
        int found = mr_sys(SYS_newfstatat, dirfd, path, &st, 0) == 0;
        int is_dir = found && S_ISDIR(st.st_mode);
        if (is_dir && (r->is_dir || mr_rule_at(r->rule)->glob)) return 0;
        if (found && !is_dir && !S_ISREG(st.st_mode)) { /* a pipe, a socket, a device: the kernel knows when there is something in it */
            __atomic_fetch_or(&mr_b->links, MR_SPECIAL, __ATOMIC_SEQ_CST);
            r->rule = r->file = MR_NONE;
            return 0;
        }
    }
    int err = mr_wait_for(mr_who(0).proc, r->file, f->mode == MR_NO_UPDATE ? MR_WAIT_EXISTS : MR_WAIT_COMMIT, 0, 0);
    r->generation = mr_load(&f->generation);
    return err;
}
