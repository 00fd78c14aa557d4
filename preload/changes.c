/* Files that were complete and are written again: who read them before has an older state. */
#include "board.h"

#include <sys/stat.h>

u64 mr_stamp(const struct stat *st)
{
    u64 h = (u64)st->st_size * 0x9e3779b97f4a7c15u ^ (u64)st->st_mtim.tv_sec;
    return (h * 0x9e3779b97f4a7c15u ^ (u64)st->st_mtim.tv_nsec) | 1u << 1; /* neither 0 nor 1 */
}

/* Complete, read, and then something else: who came before has an older state. */
void mr_written_again(u32 file, u32 step)
{
    const struct mr_file *f = mr_file_at(file);
    char text[200];
    struct mr_text t = {text, text + sizeof text};
    if (!f->reader) return;
    mr_put(&t, "it was written again after it had been complete, and ");
    mr_put(&t, f->reader == MR_STRANGER ? "a program of no step" : mr_text_at(mr_step_at(f->reader - 1u)->name));
    mr_put(&t, " had opened it before: commit it on_termination, or after more closes");
    mr_event(MR_EV_REWRITTEN, f->path + 1, step, 0, text);
}

void mr_look_for_changes(u32 file, u64 stamp, u32 step)
{
    char path[2200];
    struct mr_text t = {path, path + sizeof path};
    struct stat st;
    if (mr_file_at(file)->lower) return;
    mr_put(&t, mr_text_at(mr_b->dir));
    mr_put(&t, "/");
    mr_put(&t, mr_text_at(mr_file_at(file)->path));
    if (mr_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 && mr_stamp(&st) != stamp) mr_written_again(file, step);
}
