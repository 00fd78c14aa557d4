/* What the parts of the add-on share. Communicators, requests and files are numbers on the side of JavaScript. */
#ifndef MILLRACE_MPI_PARTS_H
#define MILLRACE_MPI_PARTS_H

#include <mpi.h>
#include <napi.h>

#define MOST_ARGUMENTS 8

/* A call from JavaScript. */
struct call {
    napi_env env;
    size_t count;
    napi_value given[MOST_ARGUMENTS];
};

/* A typed array; `length` counts elements. */
struct array {
    void *data;
    int length;
    int kind;
    MPI_Datatype type;
};

/* A communicator, and what has to be told of it when ranks do not agree. */
struct group {
    MPI_Comm comm;
    uint32_t id;
    int32_t is_whole; /* all ranks of the task */
    int32_t size, rank;
    int32_t collectives;
    int32_t splits;
    /* World ranks of the members before and after this one; -1 for a member that is not known. */
    int32_t before, after;
};

/* Numbers of the calls, in the order of src/node/mpi/places.ts. */
enum call_kind {
    CALL_NONE,
    CALL_BARRIER,
    CALL_BCAST,
    CALL_REDUCE,
    CALL_ALLREDUCE,
    CALL_GATHER,
    CALL_GATHERV,
    CALL_ALLGATHER,
    CALL_ALLGATHERV,
    CALL_SCATTER,
    CALL_SCATTERV,
    CALL_ALLTOALL,
    CALL_ALLTOALLV,
    CALL_IBARRIER,
    CALL_IBCAST,
    CALL_IREDUCE,
    CALL_IALLREDUCE,
    CALL_IGATHER,
    CALL_IALLGATHER,
    CALL_ISCATTER,
    CALL_IALLTOALL,
    CALL_SPLIT,
    CALL_FILE_OPEN,
    CALL_FILE_READ_ALL,
    CALL_FILE_WRITE_ALL,
    CALL_FILE_VIEW,
    CALL_FILE_SIZE,
    CALL_FILE_SYNC,
    CALL_FILE_CLOSE,
    CALL_HDF5_OPEN,
    CALL_HDF5_DATASET,
    CALL_HDF5_WRITE,
    CALL_HDF5_READ,
    CALL_HDF5_CLOSE,
    CALL_LAST_COLLECTIVE = CALL_HDF5_CLOSE,
    CALL_SEND,
    CALL_RECV,
    CALL_WAIT,
    CALL_PROBE,
    CALL_FILE_READ,
    CALL_FILE_WRITE,
    CALL_SENDRECV
};

/* Arguments. A wrong one leaves zero: the side of JavaScript has checked them. */
struct call arguments(napi_env env, napi_callback_info info);
int integer(const struct call *call, int index);
double real(const struct call *call, int index);
/* Throws and returns 0 for an array that is longer than MPI takes. What is no array has no elements. */
int array(const struct call *call, int index, struct array *found);
int *integers(const struct call *call, int index);
/* Ranks and tags to receive from, as MPI has them: any where negative. */
static inline int peer_of(int rank) { return rank < 0 ? MPI_ANY_SOURCE : rank; }
static inline int tag_of(int tag) { return tag < 0 ? MPI_ANY_TAG : tag; }
struct group *group_at(const struct call *call, int index);
struct group *group_numbered(int number);
int add_group(MPI_Comm comm, uint32_t id);
void free_group(int number);

napi_value number_value(napi_env env, double value);
/* Throws unless it is MPI_SUCCESS; `what` names the call. Returns undefined in any case. */
napi_value outcome(napi_env env, int error, const char *what);

/*
 * Says where this rank is. For collective calls, compares with what the ranks before and after have called as their
 * same collective call; throws and returns 0 when it is another one. `count` is -1 where ranks may differ.
 */
int enter(napi_env env, struct group *group, enum call_kind kind, int64_t count, int type, int op, int root);
void leave(void);
/* For calls of two ranks: `peer` and `tag` are -1 for any. */
void enter_message(struct group *group, enum call_kind kind, int peer, int tag);
/* The rank waits for a request that was begun by `kind`. */
void enter_wait(struct group *group, enum call_kind kind, int peer, int tag);
/* Requests that have begun and are not complete. */
void count_pending(enum call_kind kind, int change);

/* A request that has begun: JavaScript knows it by the number that is returned. */
struct pending {
    MPI_Request request;
    MPI_Datatype type;
    enum call_kind kind;
    int peer, tag;
    int used;
};
struct pending *new_pending(int *number, MPI_Datatype type, enum call_kind kind, int peer, int tag);
/* The number, or what went wrong; the request is forgotten then. */
napi_value begun(napi_env env, int number, int error, const char *what);
MPI_Op op_of(int number);

void add_status(napi_env env, napi_value exports);
void add_calls(napi_env env, napi_value exports);
void add_collectives(napi_env env, napi_value exports);
void add_requests(napi_env env, napi_value exports);
void add_binding(napi_env env, napi_value exports);
void add_files(napi_env env, napi_value exports);

#endif
