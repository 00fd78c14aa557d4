/*
 * millrace-spawn starts programs for the coordinator. A process with a large heap takes long to fork; this
 * one is small, starts programs by vfork, and waits for them with wait4, which tells what they used.
 *
 * Messages both ways: u32 length of what follows, u8 type, fields; numbers little-endian as the machine has
 * them, texts ended by NUL. See spawner.ts for the other side.
 *
 *   E environment   u32 slot, u32 count, count texts NAME=VALUE
 *   R run           u32 id, u32 environment slot, u64 CPUs to bind to (bits; 0: none),
 *                   u8 number of limits, each u8 resource and u64 value,
 *                   texts cwd, stdin, stdout, stderr, log (empty: none), u32 argc, argc texts
 *   K kill          u32 id, u32 signal: to the whole process group
 *   Q quit          ends without looking for processes that left their group
 *
 *   X ended         struct ended
 *   F not started   struct refused
 *
 * When the input ends without Q the coordinator is gone, and everything that was started is killed.
 */
#ifndef MILLRACE_SPAWNER_H
#define MILLRACE_SPAWNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum stage { STAGE_FORK, STAGE_CWD, STAGE_STDIN, STAGE_STDOUT, STAGE_STDERR, STAGE_LOG, STAGE_LIMIT, STAGE_EXEC };

struct __attribute__((packed)) ended {
    uint32_t length;
    uint8_t type;
    uint32_t id;
    int32_t exit_code; /* -1: ended by the signal */
    int32_t signal;
    uint8_t printed;
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

struct limit {
    int resource;
    uint64_t value;
};

#define MAX_LIMITS 16

/* One message "R", its texts still where it was read. */
struct request {
    uint32_t id;
    char **environment;
    uint64_t cpus;
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

struct running {
    uint32_t id;
    pid_t pid;
    uint64_t began_ns;
    struct log log;
    struct running *next;
};

void log_open(struct log *log, const char *path, int *error);
void log_show(struct log *log);
int log_close(struct log *log, int may_reuse);

/* Starts the program; 0, or the errno of what went wrong at *stage. */
int start(const struct request *request, struct running *running, enum stage *stage);

void usage_of(pid_t pid, struct ended *ended);

#endif
