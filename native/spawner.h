/*
 * millrace-spawn starts programs for the coordinator. A process with a large heap takes long to fork; this
 * one is small, starts programs by vfork, and waits for them with wait4, which tells what they used.
 *
 * Messages both ways: u32 length of what follows, u8 type, fields; numbers little-endian as the machine has
 * them, texts ended by NUL. See spawner.ts for the other side.
 *
 *   E environment   u32 slot, u32 count, count texts NAME=VALUE
 *   R run           u32 id, u32 lane (NO_LANE: none), u32 environment slot, u16 number of CPUs to bind to, u16 each,
 *                   u8 number of limits, each u8 resource and u64 value,
 *                   texts cwd, stdin, stdout, stderr, log (empty: none), u32 argc, argc texts
 *   K kill          u32 id, u32 signal: to the whole process group
 *   B back          u32 id: it is not to be run any more, if it has not begun
 *   Q quit          ends without looking for processes that left their group
 *
 *   X ended         struct ended
 *   F not started   struct refused
 *   C came back     struct came_back: it never began, because of B or K
 *
 * Programs of a lane are run one after the other, each by the thread of the lane: it starts the next one without
 * asking another thread, and hears of its end by waiting for it. Programs without a lane have a thread each.
 *
 * When the input ends without Q the coordinator is gone, and everything that was started is killed.
 */
#ifndef MILLRACE_SPAWNER_H
#define MILLRACE_SPAWNER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NO_LANE UINT32_MAX
#define MOST_LANES 4096

enum stage { STAGE_FORK, STAGE_CWD, STAGE_STDIN, STAGE_STDOUT, STAGE_STDERR, STAGE_LOG, STAGE_LIMIT, STAGE_EXEC };

struct __attribute__((packed)) ended {
    uint32_t length;
    uint8_t type;
    uint32_t id;
    int32_t exit_code; /* -1: ended by the signal */
    int32_t signal;
    uint8_t printed;
    uint8_t starved; /* it, or its last child, was killed, and the system had killed a process for lack of memory */
    uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
    uint64_t user_us, system_us;
    uint64_t peak_bytes; /* of the largest process of the tree */
    uint64_t asked_bytes, written_bytes;      /* by read and write calls */
    uint64_t device_read_bytes, device_write_bytes;
};

struct __attribute__((packed)) refused {
    uint32_t length;
    uint8_t type;
    uint32_t id;
    uint8_t stage;
    int32_t error;
};

struct __attribute__((packed)) came_back {
    uint32_t length;
    uint8_t type;
    uint32_t id;
};

struct limit {
    int resource;
    uint64_t value;
};

#define MAX_LIMITS 16

/* Variables for many programs. Freed when a newer one has its slot and no program waits to be started with it. */
struct environment {
    int users;
    char *variables[];
};

/* One message "R". Its texts follow it in the same piece of memory. */
struct job {
    struct job *next;
    uint32_t id;
    uint32_t lane;
    struct environment *environment;
    int cpu_count;
    /* Two bytes each; not aligned. */
    const unsigned char *cpus;
    int limit_count;
    struct limit limits[MAX_LIMITS];
    const char *cwd, *in, *out, *err, *log;
    char **argv;
};

/* Where the output of one program goes that has no file of its own; see log.c. */
struct log {
    int fd;
    char *path;   /* its name, once it has one or is to get one */
    int is_named; /* a file with a name is there already */
};

/* A file without a name that serves the next program; each thread has its own. */
struct spare {
    int fd; /* -1: none */
    char *folder;
};

void log_open(struct log *log, const char *path, struct spare *spare, int *error);
void log_show(struct log *log);
int log_close(struct log *log, struct spare *spare, int may_reuse);

/* To be called once, before the first. */
void prepare_starts(void);

/* Starts the program; 0, or the errno of what went wrong at *stage. */
int start(const struct job *job, int log, pid_t *pid, uint64_t *began_ns, enum stage *stage);

void usage_of(pid_t pid, struct ended *ended);

/* How many processes the system had killed for lack of memory when it was last looked; `look_for_kills` looks. */
uint64_t known_kills(void);
void look_for_kills(void);
int was_starved(const struct ended *ended, uint64_t kills_before);

/* workers.c */
void *need(void *memory);
uint64_t now_ns(void);
/* Takes the job. */
void work_on(struct job *job);
/* Signals the job with this id, or takes it out of its queue; with signal 0 only the latter. */
void tell_job(uint32_t id, int signal);
void set_slot(struct environment **slot, struct environment *environment);
void show_logs(void);
int is_busy(void);
/* No job begins any more, and those that run are killed, with all that they have left. */
void kill_everything(void);

/* replies.c */
int open_replies(void);
/* `is_urgent`: the program may wait for it. Others go with the next that is, or a moment later. */
void reply(const void *message, size_t size, int is_urgent);
/* Returns 0 when the reader has gone. */
int flush_replies(void);

#endif
