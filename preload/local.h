/* What one process knows by itself: its descriptors on governed files, its place in the board. */
#ifndef MR_LOCAL_H
#define MR_LOCAL_H

#include "board.h"

/* A system call as it came in: number and six arguments. The layout is the stub's (stub.S). */
struct mr_call {
    long nr;
    long a[6];
};

static inline long mr_plain(const struct mr_call *c)
{
    return mr_sys6(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
}

enum { MR_OUTSIDE, MR_ABOVE, MR_INSIDE };

struct mr_self {
    u32 on;
    u32 pid, proc, step, uid, gid;
    u32 vforks;  /* clone or vfork calls in flight: a child may be running in our memory */
    u32 cwd_place, cwd_from, cwd_len; /* from: where the part inside the managed directory begins */
    u32 fd_top;  /* all entries at and above are empty */
    u32 maps;    /* entries in use in mr_map */
    u32 threads; /* it has, or had, more than one */
    u32 staged;  /* descriptors whose small writes are gathered, or read ahead of */
    u32 depth;   /* calls at work: more than one when a signal handler makes one in the middle of another */
    u32 adopted; /* the board's, when this process looked last */
    u32 told;    /* the size of some growing file has been told */
    u32 dir_len, alias_len;
    char dir[1024], alias[1024]; /* the managed directory, canonical and as the user spelled it */
    char cwd[4096];
};
extern struct mr_self mr_self;

/* The descriptor table: 0 is not ours. MAYBE: inside, perhaps a directory, of a governed file that we need not wait
 * for (index), or of none. BELOW: opened on the lower layer. Written by the process itself, never by a vfork child. */
#define MR_FDS 1048576u /* the kernel gives no more by default; memory is taken where they are used */
enum { MR_READER = 1, MR_WRITER = 2, MR_DIRECTORY = 3, MR_MAYBE = 4, MR_KIND = 15, MR_SHARED = 16, MR_PUBLISH = 32, MR_APPEND = 64, MR_BELOW = 128, MR_STAGEABLE = 256 };
extern u64 mr_fd[MR_FDS];
/* READER: bytes that may be read without looking; WRITER: the file position. Not used when SHARED. */
extern s64 mr_pos[MR_FDS];

static inline u64 mr_entry(long fd) { return (unsigned long)fd < MR_FDS ? mr_peek(&mr_fd[fd]) : 0; }
static inline u32 mr_entry_kind(u64 e) { return (u32)e & MR_KIND; }
static inline u32 mr_entry_index(u64 e) { return (u32)(e >> 32); }
static inline u32 mr_entry_generation(u64 e) { return (u32)e >> 16; } /* of a READER, its last 16 bits */
static inline u64 mr_make_entry(u32 kind_and_flags, u32 index) { return (u64)index << 32 | kind_and_flags; }
void mr_fd_set(long fd, u64 entry, s64 pos);
void mr_fd_share_all(void);
u32 mr_entry_file(u64 e); /* record of a READER or WRITER */

/* Who is calling: the process, or a vfork child in its memory. */
struct mr_who {
    u32 proc;
    int foreign;
};
struct mr_who mr_who(int must_be_known);

int mr_outdated(long fd, u64 *e, const struct mr_file *f); /* io_data.c */

/* io_size.c: a READER was told 0 for the size of a growing file */
extern u8 mr_told[MR_FDS];
extern u8 mr_touched[MR_FDS]; /* it was read from, or others may read from it */
void mr_maps_forked(void);
long mr_stat_descriptor(const struct mr_call *c);
void mr_size_at_close(long fd, u64 e);
void mr_size_at_exit(void);

/* io_stage.c */
#define MR_NOT_STAGED (-1000000L)
extern u32 mr_stage_after; /* small writes, 0 = never */
long mr_stage_write(long fd, u64 e, const void *from, u64 len);
void mr_stage_opened(long fd);
void mr_stage_end(long fd);
void mr_stage_end_all(void);
void mr_stage_before_child(void);
void mr_stage_before(const struct mr_call *c);

/* io_ahead.c */
void mr_ahead_opened(long fd);
long mr_ahead_take(long fd, void *to, u64 len);
long mr_ahead_fill(const struct mr_call *c, u64 e);
void mr_ahead_end(long fd);
void mr_ahead_end_all(void);
void mr_see_writes(u32 file); /* gate.c: of other processes of the step, too */

/* A descriptor of a producer on a file of its own step: what others have written must be in it. */
static inline void mr_entry_fresh(u64 e)
{
    if (mr_entry_kind(e) == MR_MAYBE && mr_entry_index(e) != MR_NONE) mr_see_writes(mr_entry_index(e));
}

/* paths.c */
#define MR_NAME_MAX 1000
struct mr_name {
    u32 len;
    const char *rel; /* relative to the managed directory, "." for itself; in the caller's path, or in space */
    char space[MR_NAME_MAX + 24];
};
int mr_name_of(long dirfd, const char *path, struct mr_name *n); /* MR_INSIDE, MR_ABOVE or MR_OUTSIDE */
int mr_name_of_fd(long fd, struct mr_name *n);
int mr_name_at(const char *abs, struct mr_name *n);
int mr_name_in(const char *base, const char *path, struct mr_name *n);
void mr_cwd_changed(void);
long mr_link_of(long fd, char *to, u32 size);
u32 mr_normal(const char *base, const char *path, char *to, u32 size);

/* outer.c */
int mr_lead(long dirfd, const char *path, int last, struct mr_name *n);
int mr_name_followed(long dirfd, const char *path, struct mr_name *n); /* also where the last name is a link outside */
void mr_outer_link(long dirfd, const char *path);
void mr_notice_links(char **argv);

/* lower.c */
long mr_on(const struct mr_call *c, int which, u64 e);
const char *mr_lower_of(u64 e);
struct mr_file *mr_placed(u64 e);
int mr_is_below(long fd, const struct mr_file *f);

/* veil.c */
struct mr_rights;
void mr_follow_links(long dirfd, const char *path, struct mr_name *n, struct mr_rights *r);
int mr_is_veiled(long dirfd, const char *path, const struct mr_name *n);
static inline int mr_has_veils(void) { return mr_b->layer || mr_b->inputs; }
void mr_veil_list(long fd, char *list, long len, int old);

/* adopt.c */
struct stat;
int mr_is_written(long dirfd, const char *path);
int mr_has_open(u32 pid, const struct stat *st);
void mr_adopt(u32 file, const struct stat *st); /* under the lock */
void mr_adopted(void);

/* The entry of a descriptor that is about to be written through, closed or copied: perhaps its file has become governed. */
static inline u64 mr_entry_now(long fd)
{
    u64 e = mr_entry(fd);
    if (unlikely(mr_entry_kind(e) == MR_MAYBE && mr_load(&mr_b->adopted) != mr_self.adopted)) {
        mr_adopted();
        e = mr_entry(fd);
    }
    return e;
}

/* io_path.c */
struct mr_rights;
void mr_appeared(long dirfd, const char *path, const struct mr_name *n);
void mr_vanished(u32 file);
int mr_is_settled(u32 file);
u32 mr_completed(const struct mr_name *n);

/* A process that does not write the file opens it to read. */
static inline void mr_note_reader(struct mr_file *f)
{
    if (likely(f->reader) || (mr_self.step != MR_NONE && mr_produces(mr_rule_at(f->rule), mr_self.step))) return;
    f->reader = mr_self.step == MR_NONE ? MR_STRANGER : (u16)(mr_self.step + 1);
}

/* io_exec.c */
void mr_keep_environment(char **envp);

/* io_rename.c */
void mr_other_name(long dirfd, const char *path, struct mr_name *n, struct mr_rights *r);

/* gate.c */
struct mr_rights {
    u32 file; /* record, or MR_NONE when there is none yet */
    u32 rule; /* MR_NONE: a plain file */
    int is_dir, producer;
    u32 generation; /* of the file, before it was opened */
};
void mr_rights_of(const struct mr_name *n, struct mr_rights *r);
void mr_rights_found(const struct mr_name *n, struct mr_rights *r);
u32 mr_record(const struct mr_name *n, struct mr_rights *r);
long mr_gate(long dirfd, const char *path, const struct mr_name *n, struct mr_rights *r);
int mr_is_strangers(long dirfd, const char *path, u32 file); /* a temporary file that no rule is about */
u64 mr_size_of(long fd);
int mr_is_special(long fd); /* a pipe, a socket or a device */

/* the families; each handler answers one system call */
typedef long mr_handler(const struct mr_call *c);
mr_handler mr_do_read, mr_do_pread, mr_do_readv, mr_do_preadv, mr_do_write, mr_do_pwrite, mr_do_writev, mr_do_pwritev;
mr_handler mr_do_lseek, mr_do_ftruncate, mr_do_sendfile, mr_do_splice, mr_do_copy_file_range;
mr_handler mr_do_mmap, mr_do_munmap, mr_do_msync;
mr_handler mr_do_open, mr_do_openat, mr_do_openat2, mr_do_creat;
mr_handler mr_do_close, mr_do_close_range, mr_do_dup, mr_do_dup2, mr_do_dup3, mr_do_fcntl;
mr_handler mr_do_path1, mr_do_pathat, mr_do_getdents, mr_do_chdir, mr_do_fchdir, mr_do_truncate;
mr_handler mr_do_mkdir, mr_do_mkdirat, mr_do_unlink, mr_do_unlinkat, mr_do_rename, mr_do_renameat;
mr_handler mr_do_link, mr_do_linkat, mr_do_readlink, mr_do_readlinkat, mr_do_symlink, mr_do_symlinkat, mr_do_mknod, mr_do_mknodat, mr_do_descriptor, mr_do_utimens, mr_do_watch;
mr_handler mr_do_sendmsg, mr_do_sendmmsg, mr_do_recvmsg, mr_do_recvmmsg;
mr_handler mr_do_settled; /* plain, but not before gathered writes are in the file */
mr_handler mr_do_clone, mr_do_fork, mr_do_execve, mr_do_execveat, mr_do_exit, mr_do_refuse, mr_do_sigaction, mr_do_memory;

int mr_has_handlers(void);
#define MR_ABOUT_TO 0x10000L /* added to the number of a call that is about to be made: clone, clone3, vfork */
/* What a handler returns when the call is to be made as it is and nothing follows: the trampoline makes it. */
#define MR_GO (-5000L)
long mr_decide(const struct mr_call *c);
long mr_decide_inside(const struct mr_call *c, const char *path, u32 len);
long mr_open_complete(const struct mr_call *c, u32 file, long flags);
int mr_only_looks(const struct mr_call *c); /* stat, access, chmod and their relatives, through links: nothing is booked */
/* reach.c */
#define MR_PAGES 1024u
extern u64 mr_pages[MR_PAGES]; /* numbers of pages that are known to be readable, each at its place; stub.S looks too */
int mr_readable(const void *p, u64 len);
int mr_writable(void *p, u64 len); /* may spoil what is there */
int mr_text_readable(const char *text);
void mr_forget_pages(u64 at, u64 len);

struct mr_fence {
    u64 len, head, tail; /* of the managed directory: its length, its first and its last eight bytes */
};
extern struct mr_fence mr_fence;
long mr_dispatch(const struct mr_call *c); /* the same, and makes the call */
int mr_wanted(u32 nr); /* has a handler */

/* fds.c */
long mr_opened(const struct mr_name *n, struct mr_rights *r, long fd, long flags);
void mr_learn_fds(void);
void mr_arrived(long fd); /* through a socket */
void mr_learn_path(const struct mr_name *n, const struct stat *file);

#endif
