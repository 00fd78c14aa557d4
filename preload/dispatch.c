/* One entry for all intercepted system calls. */
#include "local.h"

#include <sched.h>

#define CALLS 512
_Static_assert(__builtin_offsetof(struct mr_board, links) == 144 && MR_OUTER_LINKS == 16, "stub.S knows them");

/* Calls that name a path: no position of a descriptor is at stake. */
static mr_handler *const by_path[CALLS] = {
#if defined(__x86_64__)
    [SYS_open] = mr_do_open, [SYS_creat] = mr_do_creat,
    [SYS_stat] = mr_do_path1, [SYS_lstat] = mr_do_path1, [SYS_access] = mr_do_path1,
    [SYS_mkdir] = mr_do_mkdir, [SYS_rmdir] = mr_do_unlink, [SYS_unlink] = mr_do_unlink,
    [SYS_rename] = mr_do_rename, [SYS_link] = mr_do_link, [SYS_readlink] = mr_do_readlink, [SYS_symlink] = mr_do_symlink,
    [SYS_mknod] = mr_do_mknod,
    [SYS_chmod] = mr_do_path1, [SYS_chown] = mr_do_path1, [SYS_lchown] = mr_do_path1,
    [SYS_utime] = mr_do_path1, [SYS_utimes] = mr_do_path1, [SYS_futimesat] = mr_do_pathat,
#endif
    [SYS_statfs] = mr_do_path1, [SYS_getxattr] = mr_do_path1, [SYS_lgetxattr] = mr_do_path1, [SYS_listxattr] = mr_do_path1, [SYS_llistxattr] = mr_do_path1,
    [SYS_fchmodat] = mr_do_pathat, [SYS_fchownat] = mr_do_pathat, [SYS_inotify_add_watch] = mr_do_watch,
    [SYS_openat] = mr_do_openat, [SYS_openat2] = mr_do_openat2, [SYS_truncate] = mr_do_truncate,
    [SYS_newfstatat] = mr_do_pathat, [SYS_statx] = mr_do_pathat, [SYS_faccessat] = mr_do_pathat, [SYS_faccessat2] = mr_do_pathat,
    [SYS_fstat] = mr_stat_descriptor, [SYS_utimensat] = mr_do_utimens, [SYS_chdir] = mr_do_chdir, [SYS_fchdir] = mr_do_fchdir,
    [SYS_mkdirat] = mr_do_mkdirat, [SYS_unlinkat] = mr_do_unlinkat,
    [SYS_renameat] = mr_do_renameat, [SYS_renameat2] = mr_do_renameat, [SYS_linkat] = mr_do_linkat, [SYS_readlinkat] = mr_do_readlinkat,
    [SYS_symlinkat] = mr_do_symlinkat, [SYS_mknodat] = mr_do_mknodat,
};

static mr_handler *const by_descriptor[CALLS] = {
#if defined(__x86_64__)
    [SYS_dup2] = mr_do_dup2, [SYS_getdents] = mr_do_getdents, [SYS_fork] = mr_do_fork,
#endif
    [SYS_close] = mr_do_close, [SYS_close_range] = mr_do_close_range,
    [SYS_dup] = mr_do_dup, [SYS_dup3] = mr_do_dup3, [SYS_fcntl] = mr_do_fcntl,
    [SYS_read] = mr_do_read, [SYS_pread64] = mr_do_pread, [SYS_readv] = mr_do_readv,
    [SYS_preadv] = mr_do_preadv, [SYS_preadv2] = mr_do_preadv,
    [SYS_write] = mr_do_write, [SYS_pwrite64] = mr_do_pwrite, [SYS_writev] = mr_do_writev,
    [SYS_pwritev] = mr_do_pwritev, [SYS_pwritev2] = mr_do_pwritev,
    [SYS_lseek] = mr_do_lseek, [SYS_ftruncate] = mr_do_ftruncate, [SYS_fallocate] = mr_do_descriptor,
    [SYS_fchmod] = mr_do_descriptor, [SYS_fchown] = mr_do_descriptor,
    [SYS_sendfile] = mr_do_sendfile, [SYS_splice] = mr_do_splice, [SYS_copy_file_range] = mr_do_copy_file_range,
    [SYS_mprotect] = mr_do_memory, [SYS_mremap] = mr_do_memory, [SYS_brk] = mr_do_memory,
    [SYS_mmap] = mr_do_mmap, [SYS_munmap] = mr_do_munmap, [SYS_msync] = mr_do_msync,
    [SYS_getdents64] = mr_do_getdents,
    [SYS_clone] = mr_do_clone, [SYS_execve] = mr_do_execve, [SYS_execveat] = mr_do_execveat,
    [SYS_rt_sigaction] = mr_do_sigaction, [SYS_fsync] = mr_do_settled, [SYS_fdatasync] = mr_do_settled, [SYS_sync_file_range] = mr_do_settled,
    [SYS_sync] = mr_do_settled, [SYS_syncfs] = mr_do_settled, [SYS_flock] = mr_do_settled,
    [SYS_sendmsg] = mr_do_sendmsg, [SYS_sendmmsg] = mr_do_sendmmsg, [SYS_recvmsg] = mr_do_recvmsg, [SYS_recvmmsg] = mr_do_recvmmsg,
    [SYS_exit_group] = mr_do_exit, [SYS_io_uring_setup] = mr_do_refuse,
};

long mr_do_settled(const struct mr_call *c) { return mr_plain(c); }

/* The call itself is made by the trampoline, for its child comes back on another stack or in our memory. */
static long mr_about_to_spawn(const struct mr_call *c)
{
    long nr = c->nr & ~MR_ABOUT_TO;
    u64 flags = 0;
    if (nr == SYS_clone) flags = (u64)c->a[0];
    if (nr == SYS_clone3 && mr_readable((const void *)c->a[0], 8)) flags = *(const u64 *)c->a[0];
    mr_only_thread = 0;
    if (!mr_self.on || mr_who(0).foreign) return nr;
    if (flags & CLONE_THREAD) mr_self.threads = 1;
    if (flags & CLONE_THREAD) mr_stage_end_all();
    else mr_stage_before_child();
    return nr;
}

int mr_wanted(u32 nr) { return nr < CALLS && (by_path[nr] || by_descriptor[nr]); }

long mr_decide(const struct mr_call *c)
{
    if (unlikely((unsigned long)c->nr >= CALLS)) return c->nr & MR_ABOUT_TO ? mr_about_to_spawn(c) : MR_GO;
    if (unlikely(!mr_self.on)) return MR_GO;
    if (unlikely(mr_self.staged)) mr_stage_before(c);
    mr_handler *h = by_path[c->nr];
    if (h) return h(c);
    h = by_descriptor[c->nr];
    if (unlikely(!h)) return MR_GO;
    if (unlikely(mr_load(&mr_self.vforks))) return h(c); /* a child's exec does not come back to count it down */
    mr_self.depth++;
    long ret = h(c);
    mr_self.depth--;
    return ret;
}

/* A call that names a path inside the managed directory, as its spelling says (stub.S). Complete files first. */
long mr_decide_inside(const struct mr_call *c, const char *path, u32 len)
{
    u32 skip = mr_self.dir_len + 1;
    if (likely(len > skip && path[skip - 1] == '/' && mr_self.on && !(mr_peek(&mr_b->links) & MR_DIR_LINKS) && mr_same(path, mr_self.dir, skip - 1))) {
        u32 file = mr_file_find(path + skip, len - skip);
        if (file != MR_NONE && mr_peek(&mr_file_at(file)->state) == MR_COMMITTED) {
            if (mr_only_looks(c)) return MR_GO;
            long fd = c->nr == SYS_openat ? mr_open_complete(c, file, c->a[2]) : MR_GO;
            if (fd != MR_GO) return fd;
        }
    }
    return mr_decide(c);
}

long mr_dispatch(const struct mr_call *c)
{
    long ret = mr_decide(c);
    return ret == MR_GO ? mr_plain(c) : ret;
}
