/* A file with several names, by hard links. Each name has a record with a rule of its own, which says when that name may
 * be read; what is done to the file through one of them counts for all. The records are a ring (`twin`).
 *
 * A name that no rule knows has no record: `inode` of those that have one tells, when such a name is opened, whose
 * file it is. The ring is changed under the lock and walked without it; records are never given back. */
#include "board.h"

#include <sys/stat.h>

#define MOST 256u /* a walk ends, whatever a process that was killed may have left */

u32 mr_next_name(u32 file)
{
    u32 twin = mr_load(&mr_file_at(file)->twin);
    return twin ? twin - 1 : file;
}

static u32 before(u32 file)
{
    u32 i = file;
    for (u32 left = MOST; left-- && mr_next_name(i) != file;) i = mr_next_name(i);
    return i;
}

int mr_same_file(u32 a, u32 b)
{
    u32 i = a;
    for (u32 left = MOST; left--; i = mr_next_name(i)) {
        if (i == b) return 1;
        if (mr_next_name(i) == a) return 0;
    }
    return 0;
}

void mr_name_leave(u32 file)
{
    struct mr_file *f = mr_file_at(file);
    u32 next = mr_next_name(file), last = before(file);
    f->inode = 0;
    if (next == file) return;
    mr_store(&mr_file_at(last)->twin, last == next ? 0 : next + 1);
    mr_store(&f->twin, 0);
}

void mr_names_join(u32 a, u32 b)
{
    if (a == b || mr_same_file(a, b)) return;
    /* what is gathered is put into the file: only one of the names would be told */
    mr_file_up_to_date(a);
    mr_file_up_to_date(b);
    u32 behind = mr_next_name(a);
    mr_store(&mr_file_at(a)->twin, mr_next_name(b) + 1);
    mr_store(&mr_file_at(b)->twin, behind + 1);
}

u32 mr_writers_of_names(u32 file)
{
    u32 sum = 0, i = file;
    for (u32 left = MOST; left--;) {
        sum += mr_file_at(i)->writers;
        if ((i = mr_next_name(i)) == file) break;
    }
    return sum;
}

/* The record of another name of this file, MR_NONE when there is none. */
u32 mr_file_of_inode(const struct stat *st, u32 but)
{
    char path[2200];
    for (u32 i = 0, n = mr_used(MR_FILES); i < n; i++) {
        const struct mr_file *f = mr_file_at(i);
        struct mr_text t = {path, path + sizeof path};
        struct stat named;
        if (i == but || f->inode != (u32)st->st_ino || !f->inode) continue;
        mr_put(&t, mr_text_at(mr_b->dir));
        mr_put(&t, "/");
        mr_put(&t, mr_text_at(f->path));
        if (mr_sys(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == st->st_ino && named.st_dev == st->st_dev) return i;
    }
    return MR_NONE;
}

/* The file of this record has, or may get, other names. Under the lock. */
void mr_name_known(u32 file, const struct stat *st)
{
    u32 twin = mr_file_of_inode(st, file);
    mr_file_at(file)->inode = (u32)st->st_ino;
    __atomic_fetch_or(&mr_b->links, MR_HARD_LINKS, __ATOMIC_SEQ_CST);
    if (twin != MR_NONE) mr_names_join(twin, file);
}

/* Bytes of the file go, under all its names. Under the lock. */
void mr_cut_names(u32 file, u64 size)
{
    u32 i = file;
    for (u32 left = MOST; left--;) {
        if (mr_file_at(i)->state < MR_COMMITTED) mr_cut(mr_file_at(i), size);
        if ((i = mr_next_name(i)) == file) break;
    }
}

/* Rings as they follow from the files' numbers (recover.c). */
void mr_twins_recover(void)
{
    for (u32 i = 0; i < mr_used(MR_FILES); i++) mr_file_at(i)->twin = 0;
    for (u32 i = 0; i < mr_used(MR_FILES); i++)
        for (u32 k = 0; mr_file_at(i)->inode && k < i; k++)
            if (mr_file_at(k)->inode == mr_file_at(i)->inode) {
                mr_names_join(k, i);
                break;
            }
}
