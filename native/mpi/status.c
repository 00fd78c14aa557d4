/* Where each rank is, in memory that the ranks of a machine and the coordinator share. */
#include "parts.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define HISTORY 16

/* One collective call of a rank. */
struct signature {
    _Atomic uint64_t at; /* communicator << 32 | number of the call on it */
    uint32_t kind, type, op;
    int32_t root;
    int64_t count;
};

/* The layout is that of src/node/mpi/places.ts. */
struct place {
    _Atomic int32_t kind; /* of the call that the rank is in, 0 for none */
    int32_t type, op, root;
    uint32_t comm;
    int32_t size, sequence, calls;
    int64_t count;
    int32_t rank;    /* in the task */
    int32_t sending; /* sends that have begun and are not complete */
    struct signature history[HISTORY];
    char where[320]; /* the line of the program, as far as it is known */
    int32_t peer, tag; /* of messages, -1 for any */
    int32_t awaits;    /* in a wait: the call that began the request */
    int32_t receiving; /* receives that have begun and are not complete */
    int32_t is_whole;  /* the communicator has all ranks of the task */
};

#define PLACE_BYTES 1024
_Static_assert(sizeof(struct place) <= PLACE_BYTES, "a place is too large");

static char *pages;
static int own_rank;

static struct place *place_of(int rank) { return (struct place *)(pages + (size_t)rank * PLACE_BYTES); }

/* places(array, rank): the memory with all places. */
static napi_value set_places(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    pages = (void *)integers(&call, 0);
    own_rank = integer(&call, 1);
    return NULL;
}

static const char *NAMES[] = {"nothing",    "barrier",    "bcast",     "reduce",     "allreduce",  "gather",
                              "gatherv",    "allgather",  "allgatherv", "scatter",   "scatterv",   "alltoall",
                              "alltoallv",  "ibarrier",   "ibcast",    "ireduce",    "iallreduce", "igather",
                              "iallgather", "iscatter",   "ialltoall", "split",      "file open",  "readAtAll",
                              "writeAtAll", "setView",    "setSize",   "sync",       "file close", "hdf5 open",
                              "hdf5 dataset", "hdf5 write", "hdf5 read", "hdf5 close", "send",     "recv",
                              "wait",       "probe",      "readAt",    "writeAt",    "sendrecv"};
static const char *TYPES[] = {"int8",  "uint8",  "uint8",   "int16",   "uint16", "int32",
                              "uint32", "float32", "float64", "bigint64", "biguint64", "values"};
static const char *OPS[] = {"sum", "prod", "min", "max", "land", "lor", "band", "bor"};

static int describe(char *text, size_t size, const struct signature *it) {
    int at = snprintf(text, size, "%s", NAMES[it->kind <= CALL_SENDRECV ? it->kind : 0]);
    if (it->count >= 0) at += snprintf(text + at, size - at, " of %lld %s", (long long)it->count, TYPES[it->type % 12]);
    else if (it->kind == CALL_GATHERV || it->kind == CALL_ALLGATHERV || it->kind == CALL_SCATTERV || it->kind == CALL_ALLTOALLV)
        at += snprintf(text + at, size - at, " of %s", TYPES[it->type % 12]);
    int reduces = it->kind == CALL_REDUCE || it->kind == CALL_ALLREDUCE || it->kind == CALL_IREDUCE || it->kind == CALL_IALLREDUCE;
    if (reduces) at += snprintf(text + at, size - at, " by %s", OPS[it->op % 8]);
    if (it->root >= 0) at += snprintf(text + at, size - at, " with root %d", it->root);
    return at;
}

static int differs(const struct signature *a, const struct signature *b) {
    if (a->kind != b->kind || a->root != b->root || a->op != b->op || a->type != b->type) return 1;
    return a->count >= 0 && b->count >= 0 && a->count != b->count;
}

static int told(char *text, size_t size, const struct signature *it, const struct place *place) {
    int at = describe(text, size, it);
    at += snprintf(text + at, size - at, " in rank %d", place->rank);
    if (place->where[0]) at += snprintf(text + at, size - at, " (%.300s)", place->where);
    return at;
}

/* The ranks call one collective after the other in the same order, so that one's third is the other's third. */
static int disagrees(napi_env env, const struct signature *own, int other) {
    if (other < 0 || other == own_rank) return 0;
    uint64_t at = atomic_load(&own->at);
    const struct place *place = place_of(other);
    const struct signature *its = &place->history[(at & 0xffffffff) % HISTORY];
    if (atomic_load(&its->at) != at || !differs(own, its)) return 0;
    struct signature copy = *its;
    if (atomic_load(&its->at) != at) return 0;
    char text[1024];
    int used = snprintf(text, sizeof text, "ranks do not agree: collective call %d is ", (int)(at & 0xffffffff));
    used += told(text + used, sizeof text - used, own, place_of(own_rank));
    used += snprintf(text + used, sizeof text - used, " and ");
    told(text + used, sizeof text - used, &copy, place);
    napi_throw_error(env, "MR_MPI_MISUSE", text);
    return 1;
}

int enter(napi_env env, struct group *group, enum call_kind kind, int64_t count, int type, int op, int root) {
    if (!pages) return 1;
    struct place *place = place_of(own_rank);
    int collective = kind <= CALL_LAST_COLLECTIVE;
    if (collective) group->collectives++;
    place->type = type;
    place->op = op;
    place->root = root;
    place->comm = group->id;
    place->is_whole = group->is_whole;
    place->size = group->size;
    place->sequence = group->collectives;
    place->count = count;
    place->calls++;
    atomic_store_explicit(&place->kind, kind, memory_order_release);
    if (!collective) return 1;
    struct signature *own = &place->history[(uint32_t)group->collectives % HISTORY];
    atomic_store(&own->at, 0);
    own->kind = kind;
    own->type = (uint32_t)type;
    own->op = (uint32_t)op;
    own->root = root;
    own->count = count;
    atomic_store(&own->at, (uint64_t)group->id << 32 | (uint32_t)group->collectives);
    if (!disagrees(env, own, group->before) && !disagrees(env, own, group->after)) return 1;
    leave();
    return 0;
}

void enter_message(struct group *group, enum call_kind kind, int peer, int tag) {
    if (!pages) return;
    struct place *place = place_of(own_rank);
    place->comm = group->id;
    place->is_whole = group->is_whole;
    place->size = group->size;
    place->sequence = group->collectives;
    place->peer = peer < 0 ? -1 : peer;
    place->tag = tag < 0 ? -1 : tag;
    place->awaits = CALL_NONE;
    place->calls++;
    atomic_store_explicit(&place->kind, kind, memory_order_release);
}

void enter_wait(struct group *group, enum call_kind kind, int peer, int tag) {
    enter_message(group, CALL_WAIT, peer, tag);
    if (pages) place_of(own_rank)->awaits = kind;
}

void count_pending(enum call_kind kind, int change) {
    if (!pages) return;
    if (kind == CALL_SEND) place_of(own_rank)->sending += change;
    if (kind == CALL_RECV) place_of(own_rank)->receiving += change;
}

void leave(void) {
    if (pages) atomic_store_explicit(&place_of(own_rank)->kind, CALL_NONE, memory_order_release);
}

/* begin(rank): a task begins, in which this process has that rank. Its calls stay until then: others may come to them later. */
static napi_value begin(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    if (!pages) return NULL;
    struct place *place = place_of(own_rank);
    place->kind = CALL_NONE;
    place->sequence = place->calls = place->sending = place->receiving = 0;
    memset(place->where, 0, sizeof place->where);
    place->rank = integer(&call, 0);
    return NULL;
}

/* enter(comm, kind) and leave(): for collective calls that another add-on makes. */
static napi_value enter_call(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    enter(env, group_at(&call, 0), (enum call_kind)integer(&call, 1), -1, 0, 0, -1);
    return NULL;
}

static napi_value leave_call(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    leave();
    return NULL;
}

void add_status(napi_env env, napi_value exports) {
    napi_export(env, exports, "places", set_places, NULL);
    napi_export(env, exports, "begin", begin, NULL);
    napi_export(env, exports, "enter", enter_call, NULL);
    napi_export(env, exports, "leave", leave_call, NULL);
}
