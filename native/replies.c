/*
 * Replies to the coordinator. Waking it costs more than what it does with a reply, so replies of lanes that have
 * more to do are kept for a moment and go together.
 */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MOMENT_NS 10000000
/* Bytes of replies that go without waiting longer. */
#define MANY (40 * sizeof(struct ended))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *output;
static size_t output_size, output_room;
static int timer = -1;
static int is_gone;

/* Becomes readable when replies have been kept for a moment. */
int open_replies(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return timer;
}

static void send_all(void) {
    size_t at = 0;
    while (at < output_size && !is_gone) {
        ssize_t size = write(1, output + at, output_size - at);
        if (size >= 0) at += (size_t)size;
        else if (errno == EAGAIN) {
            struct pollfd room = {1, POLLOUT, 0};
            poll(&room, 1, -1);
        } else if (errno != EINTR) is_gone = 1;
    }
    output_size = 0;
}

void reply(const void *message, size_t size, int is_urgent) {
    pthread_mutex_lock(&lock);
    if (output_size + size > output_room) {
        output_room = (output_size + size) * 2;
        output = need(realloc(output, output_room));
    }
    int is_first = output_size == 0;
    memcpy(output + output_size, message, size);
    output_size += size;
    struct itimerspec soon = {{0, 0}, {0, MOMENT_NS}};
    if (is_urgent || output_size >= MANY || (is_first && timerfd_settime(timer, 0, &soon, NULL) != 0)) send_all();
    pthread_mutex_unlock(&lock);
}

int flush_replies(void) {
    uint64_t times;
    if (read(timer, &times, sizeof times) < 0 && errno != EAGAIN) return 0;
    pthread_mutex_lock(&lock);
    send_all();
    int is_heard = !is_gone;
    pthread_mutex_unlock(&lock);
    return is_heard;
}
