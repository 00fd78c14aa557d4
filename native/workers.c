/* The threads of millrace-spawn: each runs one program at a time and waits for its end. See spawner.h. */
#define _GNU_SOURCE
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK (128 * 1024)
/* A lane with this many jobs left asks for new ones, so that they come before it runs out. */
#define FEW 6

struct worker {
    struct worker *next; /* of all */
    uint32_t lane;
    /* Under `lock`. */
    struct job *first, *last;
    unsigned queued;
    int is_idle;
    pthread_cond_t wakes;
    /* Under `own`, which is taken after `lock` where both are. */
    pthread_mutex_t own;
    uint32_t id; /* of the job that it has begun; 0: none */
    pid_t pid;   /* 0: not started yet, or reaped */
    int signal;  /* came before it was started */
    struct log log;
    /* Of the thread alone. */
    struct spare spare;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *workers;
static struct worker *lanes[MOST_LANES];
/* `busy` counts all jobs that have not ended. */
static unsigned idle_lanes, busy, starting;
static int is_over;

void *need(void *memory) {
    if (memory) return memory;
    fputs("millrace-spawn: out of memory\n", stderr);
    exit(1);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- environments: counted under `lock` --- */

static void leave(struct environment *environment) {
    if (environment && --environment->users == 0) free(environment);
}

void set_slot(struct environment **slot, struct environment *environment) {
    pthread_mutex_lock(&lock);
    leave(*slot);
    environment->users = 1;
    *slot = environment;
    pthread_mutex_unlock(&lock);
}

static void free_job(struct job *job) {
    pthread_mutex_lock(&lock);
    leave(job->environment);
    pthread_mutex_unlock(&lock);
    free(job->argv);
    free(job);
}

/* --- one job --- */

static void refuse(const struct job *job, enum stage stage, int error) {
    struct refused refused = {sizeof refused - 4, 'F', job->id, (uint8_t)stage, error};
    reply(&refused, sizeof refused, 1);
}

static void give_back(uint32_t id) {
    struct came_back back = {sizeof back - 4, 'C', id};
    reply(&back, sizeof back, 1);
}

/* Returns 0 when the program could not be started. */
static int begin(struct worker *worker, const struct job *job, pid_t *pid, uint64_t *began_ns) {
    int error;
    struct log log;
    enum stage stage = STAGE_LOG;
    log_open(&log, job->log, &worker->spare, &error);
    if (!error) {
        error = start(job, log.fd, pid, began_ns, &stage);
        if (error) log_close(&log, &worker->spare, 1);
    }
    pthread_mutex_lock(&worker->own);
    if (!error) {
        worker->pid = *pid;
        worker->log = log;
        if (worker->signal) kill(-*pid, worker->signal);
    } else worker->id = 0;
    pthread_mutex_unlock(&worker->own);
    if (error) refuse(job, stage, error);
    return !error;
}

static void finish(struct worker *worker, pid_t pid, struct ended *ended) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {}
    ended->ended_ns = now_ns();
    pthread_mutex_lock(&worker->own);
    /* What the program left behind belongs to the task and ends with it. Before it is reaped, because
       afterwards its number may be another's. */
    kill(-pid, SIGKILL);
    usage_of(pid, ended);
    int group_is_gone = kill(-pid, 0) != 0;
    worker->id = 0;
    worker->pid = 0;
    ended->printed = (uint8_t)log_close(&worker->log, &worker->spare, group_is_gone);
    pthread_mutex_unlock(&worker->own);
}

static struct job *next_job(struct worker *worker) {
    pthread_mutex_lock(&lock);
    while (!worker->first || is_over) {
        worker->is_idle = 1;
        if (worker->lane != NO_LANE) idle_lanes++;
        pthread_cond_wait(&worker->wakes, &lock);
        if (worker->lane != NO_LANE) idle_lanes--;
        worker->is_idle = 0;
    }
    struct job *job = worker->first;
    worker->first = job->next;
    if (!worker->first) worker->last = NULL;
    worker->queued--;
    starting++;
    pthread_mutex_lock(&worker->own);
    worker->id = job->id;
    worker->pid = 0;
    worker->signal = 0;
    worker->log.fd = -1;
    pthread_mutex_unlock(&worker->own);
    pthread_mutex_unlock(&lock);
    return job;
}

/* Returns whether the coordinator should hear at once of the job that has ended. */
static int has_ended(struct worker *worker) {
    pthread_mutex_lock(&lock);
    busy--;
    /* Told once, and again when it was in vain. */
    int is_urgent = worker->queued == FEW || worker->queued == 0 || idle_lanes > 0;
    pthread_mutex_unlock(&lock);
    return is_urgent;
}

static void *work(void *given) {
    struct worker *worker = given;
    for (;;) {
        struct job *job = next_job(worker);
        struct ended ended;
        memset(&ended, 0, sizeof ended);
        ended.length = sizeof ended - 4;
        ended.type = 'X';
        ended.id = job->id;
        pid_t pid;
        uint64_t began_ns, kills = known_kills();
        int has_begun = begin(worker, job, &pid, &began_ns);
        pthread_mutex_lock(&lock);
        starting--;
        pthread_mutex_unlock(&lock);
        free_job(job);
        if (has_begun) {
            ended.began_ns = began_ns;
            finish(worker, pid, &ended);
            ended.starved = (uint8_t)was_starved(&ended, kills);
        }
        int is_urgent = has_ended(worker);
        /* A failure may change what is to be run at all. */
        if (has_begun) reply(&ended, sizeof ended, is_urgent || ended.exit_code != 0);
    }
    return NULL;
}

/* --- handing out --- */

/* NULL when the system has no room for another thread. */
static struct worker *new_worker(uint32_t lane) {
    struct worker *worker = need(calloc(1, sizeof *worker));
    worker->lane = lane;
    worker->spare.fd = -1;
    worker->log.fd = -1;
    pthread_mutex_init(&worker->own, NULL);
    pthread_cond_init(&worker->wakes, NULL);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK > PTHREAD_STACK_MIN ? STACK : PTHREAD_STACK_MIN);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, work, worker);
    pthread_attr_destroy(&attributes);
    if (error) {
        free(worker);
        errno = error;
        return NULL;
    }
    worker->next = workers;
    workers = worker;
    return worker;
}

static struct worker *worker_for(uint32_t lane) {
    if (lane < MOST_LANES) {
        if (!lanes[lane]) lanes[lane] = new_worker(lane);
        return lanes[lane];
    }
    for (struct worker *one = workers; one; one = one->next) {
        if (one->lane == NO_LANE && one->is_idle && !one->first) return one;
    }
    return new_worker(NO_LANE);
}

void work_on(struct job *job) {
    pthread_mutex_lock(&lock);
    struct worker *worker = worker_for(job->lane);
    int error = errno;
    if (worker) {
        if (job->environment) job->environment->users++;
        if (worker->last) worker->last->next = job;
        else worker->first = job;
        worker->last = job;
        worker->queued++;
        busy++;
        if (worker->is_idle) pthread_cond_signal(&worker->wakes);
    }
    pthread_mutex_unlock(&lock);
    if (worker) return;
    refuse(job, STAGE_FORK, error);
    free(job->argv);
    free(job);
}

static struct job *unqueue(struct worker *worker, uint32_t id) {
    struct job *before = NULL;
    for (struct job *job = worker->first; job; before = job, job = job->next) {
        if (job->id != id) continue;
        if (before) before->next = job->next;
        else worker->first = job->next;
        if (worker->last == job) worker->last = before;
        worker->queued--;
        busy--;
        return job;
    }
    return NULL;
}

void tell_job(uint32_t id, int signal) {
    struct job *queued = NULL;
    pthread_mutex_lock(&lock);
    for (struct worker *worker = workers; worker && !queued; worker = worker->next) {
        queued = unqueue(worker, id);
        if (queued || signal == 0) continue;
        pthread_mutex_lock(&worker->own);
        if (worker->id == id) {
            if (worker->pid) kill(-worker->pid, signal);
            else worker->signal = signal;
        }
        pthread_mutex_unlock(&worker->own);
    }
    pthread_mutex_unlock(&lock);
    if (!queued) return;
    free_job(queued);
    give_back(id);
}

void show_logs(void) {
    pthread_mutex_lock(&lock);
    for (struct worker *worker = workers; worker; worker = worker->next) {
        pthread_mutex_lock(&worker->own);
        if (worker->pid) log_show(&worker->log);
        pthread_mutex_unlock(&worker->own);
    }
    pthread_mutex_unlock(&lock);
}

int is_busy(void) {
    pthread_mutex_lock(&lock);
    int is = busy > 0;
    pthread_mutex_unlock(&lock);
    return is;
}

/* --- the end --- */

static int kill_children(const char *thread) {
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    FILE *children = fopen(path, "re");
    int pid, found = 0;
    while (children && fscanf(children, "%d", &pid) == 1) {
        found++;
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    if (children) fclose(children);
    return found;
}

/* Also those that left their group and were given to us. */
void kill_everything(void) {
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_mutex_unlock(&lock);
    for (int tries = 0; tries < 1000; tries++) {
        pthread_mutex_lock(&lock);
        int found = (int)starting;
        pthread_mutex_unlock(&lock);
        DIR *threads = opendir("/proc/self/task");
        for (struct dirent *one; threads && (one = readdir(threads));) found += kill_children(one->d_name);
        if (threads) closedir(threads);
        while (waitpid(-1, NULL, WNOHANG | __WNOTHREAD) > 0) {}
        if (!found) return;
        struct timespec moment = {0, 2000000};
        nanosleep(&moment, NULL);
    }
}
