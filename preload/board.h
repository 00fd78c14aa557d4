/* The board: one shared-memory file that holds the rules and the state of a workflow.
 *
 * Everything is an index into a fixed region, never a pointer. Regions lie far apart in a sparse file and
 * are backed with memory (fallocate) piece by piece as they fill, so touching one never raises SIGBUS.
 * All changes are made under one lock (lock.c) except: frontier, want, seq, waiters (atomics, stream.c),
 * and the look-up of a file record, which only follows links that were published whole. */
#ifndef MR_BOARD_H
#define MR_BOARD_H

#include "sys.h"

#define MR_MAGIC 0x4d524233u
/* includes the sizes: a board of another layout is never taken for one of ours */
#define MR_VERSION (7u << 24 | (u32)(sizeof(struct mr_board) + 3 * sizeof(struct mr_file) + 7 * sizeof(struct mr_proc) + 11 * sizeof(struct mr_rule)))

enum { /* regions */
    MR_STEPS, MR_RULES, MR_LISTS, MR_TEXT, MR_BUCKETS, MR_FILES, MR_EXTENTS, MR_OFDS, MR_HOLDS, MR_PROCS,
    MR_INSTANCES, MR_WAITS, MR_EVENTS, MR_STAGES, MR_STAGED, MR_REGIONS
};

#define MR_DIR_MAX 1000u /* bytes of the managed directory */
#define MR_BUCKET_COUNT (1u << 16)
#define MR_EVENT_COUNT 2048u
#define MR_FOLDER_BITS 4096u
#define MR_MAX_STEPS 65536u
#define MR_STRANGER 0xffffu

struct mr_region {
    u64 off;      /* of element 0 in the file */
    u64 reserved; /* bytes backed with memory */
    u32 size;     /* of one element */
    u32 cap;      /* elements */
    u32 used;     /* elements ever handed out (high-water mark) */
    u32 free;     /* index + 1 of the first element given back */
};

/* Elements of the regions that take elements back start with these two words. */
struct mr_slot {
    u32 used;
    u32 link; /* free list, or the owner's list: index + 1 */
};

enum { MR_ON_TERMINATION, MR_ON_CLOSE, MR_ON_FILE, MR_ON_N_FILES };
enum { MR_UPDATE, MR_NO_UPDATE };
enum { MR_RULE_FILE, MR_RULE_DIR, MR_RULE_EXCLUDE, MR_RULE_PERMANENT, MR_RULE_MEMORY, MR_RULE_FS };

struct mr_step {
    u32 name;     /* text */
    u32 expected; /* instances, 0 = unknown */
    u32 running;  /* instances */
    u32 ended_ok, ended_failed;
    u32 closed;   /* 1 ended for good and well, 2 for good and badly (step-end) */
    u64 idle_since;
    u64 idle_seen; /* when a waiter looked last and found no live process of it */
    u32 reason;    /* text, why it failed */
    u32 idle_looks; /* how often, since then */
};

struct mr_rule {
    u32 kind, glob, text, text_len;
    u32 commit, count, mode;
    u32 producers, producer_count; /* MR_LISTS */
    u32 deps, dep_count;           /* MR_LISTS, of text */
};

enum { MR_ABSENT, MR_GROWING, MR_COMMITTED, MR_FAILED };
/* Of a file: published bytes were written again; its home is another node, which decides when it is complete; steps on two
 * nodes write it. */
enum { MR_OVERWRITTEN = 1, MR_REMOTE = 2, MR_DISPUTED = 4 };

/* Three cache lines: what finds it, what readers and writers look at, the rest. */
struct mr_file {
    u32 next; /* hash chain, index + 1 */
    u32 hash;
    u32 path, path_len;
    char name[40]; /* the path again when it is short: found without another cache line */
    u32 rule;   /* index */
    u16 is_dir; /* governed by its own dir rule */
    u16 reader; /* a step that has opened it to read and does not write it, plus one (MR_STRANGER: no step); 0: none has */

    u32 state;
    u32 seq;     /* futex: grows when a waiter should look again */
    u32 waiters;
    u32 generation; /* grows when bytes that readers may have seen are taken back */
    u64 frontier; /* written without a hole up to here */
    u64 want;     /* the smallest frontier a waiter asks for, ~0 = none */
    u32 mode, commit, count; /* of the rule, on_n_files of a directory already turned for its files */
    u32 extents; /* index + 1, pieces beyond the frontier, in order */
    u32 stage;   /* index + 1, bytes of its one writer that are not in the file yet */
    u32 lower;   /* text: the path of its bytes on the lower layer, 0 while they are in memory (spill.c) */
    u32 place;   /* futex: odd while it moves */
    u32 twin;    /* index + 1: the next name of the same file, in a ring (twins.c); 0: it has no other that we know */

    u32 parent; /* index + 1 of the record of its directory, when that has a dir rule */
    u16 extent_lost; /* a piece was not recorded: it becomes readable on commit */
    u16 marks; /* MR_OVERWRITTEN, … */
    u32 closes;
    u32 writers; /* descriptions open for writing by producers */
    u32 begun_children, committed_children;
    u32 reason;  /* text */
    u32 reason_step;
    u32 mover;   /* thread */
    u32 place_lock;
    u64 moved;   /* its size when it moved */
    u32 doubts, doubted_by; /* closes that count once their instance (index + 1) has ended well */
    u32 pinned;  /* a process maps it, or has it open in a way that we do not follow: it stays where it is */
    u32 inode;   /* of a file that has several names, its last 32 bits; else 0 */
};
_Static_assert(sizeof(struct mr_file) == 192, "a record fills cache lines");

struct mr_extent {
    struct mr_slot slot;
    u64 from, to;
};

/* An open file description on a governed file, opened for writing by a producer. */
struct mr_ofd {
    struct mr_slot slot;
    u32 file;
    u32 refs; /* holds */
    u32 step;
    u32 gone; /* its file was removed or replaced: what it writes is not followed any more */
    u32 stage; /* index + 1 */
    u32 passed; /* of refs, those on their way through a socket (io_pass.c) */
    u64 stamp;  /* of the file, when it was opened again after its commit; else 0 */
};

/* One descriptor (fd >= 0) or shared writable mapping (fd < 0) of one process on a description. */
struct mr_hold {
    struct mr_slot slot;
    u32 proc, ofd;
    s32 fd;
    u32 pad;
};

/* Small writes on their way into a file, gathered (stage.c). The bytes are element number so-and-so of MR_STAGED. */
#define MR_STAGE_SIZE (128u << 10)
#define MR_STAGE_COUNT 256u
#define MR_STOP ((u64)1 << 63)
struct mr_stage {
    struct mr_slot slot;
    u32 ofd;  /* MR_NONE: unused */
    u32 busy; /* the writer is giving it to the kernel */
    u64 dev, ino;
    u64 from; /* offset in the file of the first byte */
    u64 end;  /* behind the last one; with MR_STOP it grows no more */
};

enum { MR_EMBRYO = 1, MR_ALIVE = 2 };
enum { MR_EXECING = 1, MR_ROOT = 2, MR_KEEPER = 4 };

struct mr_proc {
    struct mr_slot slot;
    u32 state, pid;
    u64 start;    /* kernel's start time: tells a process from a later one with its pid */
    u64 since;
    u32 step;     /* MR_NONE: no step */
    u32 instance; /* index, MR_NONE without a step */
    u32 flags;
    u32 holds;    /* index + 1 */
    u32 maker;    /* pid that forked it (while an embryo) */
    s32 status;
};

struct mr_instance {
    struct mr_slot slot;
    u32 step, live;
    s32 status; /* of the root: exit status, 128 + signal when killed */
    u32 root_pid;
    u32 spoiled; /* MR_DOUBTFUL: a wait could not end, and it went on without; MR_BROKEN: it was told that an input is broken */
    u32 unkept; /* its keeper was killed: how its processes end is not known any more */
};

enum { MR_WAIT_EXISTS, MR_WAIT_COMMIT, MR_WAIT_DATA, MR_WAIT_LIST };

struct mr_wait {
    struct mr_slot slot;
    u32 proc, tid, file, kind;
    u64 at, want, since;
};

enum { MR_EV_COMMITTED, MR_EV_FAILED, MR_EV_ENDED, MR_EV_KILLED, MR_EV_DEADLOCK, MR_EV_TIMEOUT, MR_EV_FULL, MR_EV_NOTE, MR_EV_TRUSTED, MR_EV_MOVED, MR_EV_BROKEN, MR_EV_REWRITTEN, MR_EV_UNSEEN };

struct mr_event {
    u64 seq, wall;
    u32 kind, path, step, pid; /* path: text + 1, step MR_NONE */
    char text[216];
};

enum { MR_LINKS = 1, MR_DIR_LINKS = 2, MR_SPECIAL = 4, MR_HARD_LINKS = 8, MR_OUTER_LINKS = 16 };

#define MR_AROUND (16u << 10)
struct mr_board {
    u32 magic, version;
    u32 ready, gone;
    u32 lock, recovered;
    u32 uid, owner; /* owner: pid that keeps the board alive, 0 = none */
    u64 owner_start, created_wall, created;
    u64 limit_ns, grace_ns;
    u64 last_reap, last_deadlock;
    u64 event_seq, progress; /* progress: grows with every booked event, for the deadlock check */
    u64 bytes;
    u32 workflow, dir, dir_len, failed;
    u32 excludes, dir_rules; /* how many such rules there are */
    u32 layer, inputs; /* text: the folder of the lower layer, and where inputs are linked from; 0: none */
    u32 links; /* MR_LINKS: there are symbolic links; MR_DIR_LINKS: some may lead to directories inside;
                * MR_SPECIAL: there may be pipes, sockets or devices; MR_HARD_LINKS: files with several names;
                * MR_OUTER_LINKS: links outside that lead into the managed directory */
    u32 adopted; /* grows when descriptors were booked for processes that do not know it yet (adopt.c) */
    u64 moves;
    u32 settled_seq, settled_waiters; /* futex: grows when a file is committed or fails */
    u32 around_len, pad;
    char around[MR_AROUND]; /* a line of `ps` about the other nodes, as the process of this node wrote it */
    char shm[160];
    u64 folders[MR_FOLDER_BITS / 64]; /* a bit for each directory that records lie below, by the hash of its path */
    struct mr_region region[MR_REGIONS];
};

extern struct mr_board *mr_b;

static inline void *mr_at(u32 region, u32 index)
{
    const struct mr_region *r = &mr_b->region[region];
    return (char *)mr_b + r->off + (u64)index * r->size;
}

#define mr_step_at(i) ((struct mr_step *)mr_at(MR_STEPS, (i)))
#define mr_rule_at(i) ((struct mr_rule *)mr_at(MR_RULES, (i)))
#define mr_list_at(i) ((u32 *)mr_at(MR_LISTS, (i)))
#define mr_text_at(i) ((char *)mr_at(MR_TEXT, (i)))
#define mr_file_at(i) ((struct mr_file *)mr_at(MR_FILES, (i)))
#define mr_extent_at(i) ((struct mr_extent *)mr_at(MR_EXTENTS, (i)))
#define mr_ofd_at(i) ((struct mr_ofd *)mr_at(MR_OFDS, (i)))
#define mr_hold_at(i) ((struct mr_hold *)mr_at(MR_HOLDS, (i)))
#define mr_proc_at(i) ((struct mr_proc *)mr_at(MR_PROCS, (i)))
#define mr_instance_at(i) ((struct mr_instance *)mr_at(MR_INSTANCES, (i)))
#define mr_wait_at(i) ((struct mr_wait *)mr_at(MR_WAITS, (i)))
#define mr_event_at(i) ((struct mr_event *)mr_at(MR_EVENTS, (i)))
#define mr_stage_at(i) ((struct mr_stage *)mr_at(MR_STAGES, (i)))
#define mr_used(which) (mr_b->region[which].used)

struct stat;

/* board.c */
void mr_board_name(char *to, size_t size, u32 uid, const char *workflow);
int mr_board_layout(int fd, const char *shm);       /* a new, empty board in mr_b */
int mr_board_open(const char *shm, u32 uid);        /* maps an existing one into mr_b */
u32 mr_take(u32 region);                            /* a zeroed element, or MR_NONE when full */
u32 mr_take_run(u32 region, u32 count);             /* count elements in a row */
void mr_give(u32 region, u32 index);
u32 mr_text_add(const char *s, size_t n);           /* offset, or MR_NONE */
void mr_event(u32 kind, u32 path, u32 step, u32 pid, const char *text);

/* lock.c */
struct mr_guard {
    u64 signals;
    u32 held; /* they are held off */
};
extern u32 mr_only_thread; /* its id, while no other thread or vfork child can be in our memory; else 0 */
extern u32 mr_no_handlers; /* no signal handler is known to be set */
void mr_lock(struct mr_guard *g);
void mr_unlock(struct mr_guard *g);
void mr_wake_later(u32 *word); /* all who wait there, when the lock is given back */
void mr_lock_word(u32 *word, struct mr_guard *g); /* another lock of the same kind, that needs no repair */
void mr_unlock_word(u32 *word, struct mr_guard *g);
int mr_thread_lives(u32 tid);
int mr_task_state(u32 pid, u64 *start, u32 *parent, u32 *threads); /* kernel's letter, 0 when there is none */
int mr_alive(u32 pid, u64 start);

/* rules.c */
int mr_glob(const char *pattern, const char *text);
int mr_rule_matches(const struct mr_rule *r, const char *path, u32 len);
int mr_is_marked(u32 kind, const char *path, u32 len);
u32 mr_rule_find(const char *path, u32 len, int *is_dir); /* governing rule or MR_NONE */
int mr_may_govern_below(u32 step, const char *path, u32 len); /* a rule of this producer; never a wrong no */
int mr_produces(const struct mr_rule *r, u32 step);
u32 mr_step_find(const char *name);

/* files.c: all but mr_file_find under the lock */
u32 mr_file_find(const char *path, u32 len);
int mr_has_records_below(const char *path, u32 len); /* without the lock; never a wrong no */
u32 mr_file_get(const char *path, u32 len, u32 rule, int is_dir);
void mr_file_begin(u32 file);
void mr_file_complete(u32 file); /* whatever its rule says */
void mr_file_fail(u32 file, u32 step, const char *why);
void mr_dispute(u32 file, u32 step); /* it fails for good: steps on two nodes write it */
void mr_file_reset(u32 file);
int mr_file_evaluate(u32 file); /* the state after looking at the rule */
void mr_file_wake(struct mr_file *f);
void mr_file_wake_later(struct mr_file *f); /* under the lock, when it is given back */
void mr_step_changed(u32 step);
int mr_step_over(u32 step);
extern u32 mr_in_steps; /* this is a program of a step, not the tool */
int mr_step_failed(u32 step);

/* stream.c */
void mr_publish(struct mr_file *f, u64 from, u64 to);
void mr_publish_locked(struct mr_file *f, u64 from, u64 to); /* under the lock */
void mr_cut(struct mr_file *f, u64 size); /* under the lock */
u64 mr_available(struct mr_file *f, u64 at);

/* twins.c: all but mr_next_name under the lock */
u32 mr_next_name(u32 file); /* of the same file; itself when it has no other */
int mr_same_file(u32 a, u32 b);
void mr_names_join(u32 a, u32 b);
void mr_name_leave(u32 file);
void mr_name_known(u32 file, const struct stat *st);
u32 mr_file_of_inode(const struct stat *st, u32 but);
u32 mr_writers_of_names(u32 file);
void mr_cut_names(u32 file, u64 size);
void mr_twins_recover(void);

/* stage.c: under the lock */
u32 mr_stage_new(u32 ofd, u64 at, u64 dev, u64 ino);
int mr_stage_stop(u32 stage);
void mr_stage_drop(u32 stage);
void mr_stage_follow(u32 ofd, u32 file);
int mr_file_up_to_date(u32 file);

/* procs.c, holds.c: under the lock */
u32 mr_proc_find(u32 pid);
u32 mr_proc_join(u32 pid, u64 start, u32 step, u32 parent_pid);
u32 mr_proc_embryo(u32 proc, u32 maker);
void mr_proc_conceived(u32 proc, u32 maker, u32 pid);
void mr_proc_born(u32 proc, u32 pid, u64 start);
enum { MR_END_EXIT, MR_END_KILLED, MR_END_UNKNOWN, MR_END_DOUBTFUL };
void mr_proc_end(u32 proc, int how, s32 status);
u32 mr_reap(void);
int mr_any_dead(void); /* without the lock */
u32 mr_ofd_new(u32 proc, s32 fd, u32 file, u32 step);
void mr_ofd_detach(u32 file);
void mr_count_close(u32 file, u32 proc, int doubtful);
enum { MR_DOUBTFUL = 1, MR_BROKEN = 2 };
void mr_spoil(u32 proc, u32 how); /* takes the lock */
int mr_hold_add(u32 proc, s32 fd, u32 ofd);
void mr_hold_drop(u32 proc, s32 fd, u32 ofd, int how);
u32 mr_hold_find(u32 proc, s32 fd);
u32 mr_hold_arrived(u32 proc, s32 fd, u32 file); /* of a descriptor that came through a socket */
void mr_instance_end(u32 instance);
void mr_recover(void);

/* wait.c */
int mr_wait_for(u32 proc, u32 file, u32 kind, u64 at, u64 len);
int mr_wait_if_it_ends(u32 proc, u32 file, u32 kind);
int mr_wait_moment(u32 proc, u32 file, u64 began);
extern u64 mr_wait_limit;
extern u32 mr_passes; /* gates that were open, since the last wait */

/* changes.c: under the lock, but for the first */
u64 mr_stamp(const struct stat *st);
void mr_written_again(u32 file, u32 step);
void mr_look_for_changes(u32 file, u64 stamp, u32 step);

/* unseen.c */
const char *mr_not_intercepted(long dirfd, const char *path, u32 uid, u32 gid, int depth);
void mr_report_unseen(u32 step, u32 pid, const char *path, const char *why); /* under the lock */

/* spill.c */
long mr_file_move(u32 file, long own);
void mr_place_wait(struct mr_file *f);
u64 mr_relieve(u32 but);

/* deadlock.c */
int mr_deadlocked(u32 wait, char *why, size_t size);
int mr_cannot_move(u32 proc); /* without the lock: all its threads are in waits of ours, or wait for children */

#endif
