/* Calls that begin, and are waited for later. */
#include "parts.h"

#include <stdlib.h>

static struct pending *pending;
static int pending_count;

struct pending *new_pending(int *number, MPI_Datatype type, enum call_kind kind, int peer, int tag) {
    int at = 0;
    while (at < pending_count && pending[at].used) at++;
    if (at == pending_count) {
        pending = realloc(pending, (size_t)++pending_count * sizeof *pending);
        if (!pending) abort();
    }
    pending[at] = (struct pending){MPI_REQUEST_NULL, type, kind, peer, tag, 1};
    *number = at;
    return &pending[at];
}

napi_value begun(napi_env env, int number, int error, const char *what) {
    if (error == MPI_SUCCESS) {
        count_pending(pending[number].kind, 1);
        return number_value(env, number);
    }
    pending[number].used = 0;
    return outcome(env, error, what);
}

static void over(struct pending *it) {
    it->used = 0;
    count_pending(it->kind, -1);
}

/* What came: source, tag, number of elements; of collective calls nothing. */
static void tell(int *told, const MPI_Status *status, const struct pending *it) {
    if (!told || it->kind != CALL_RECV) return;
    told[0] = status->MPI_SOURCE;
    told[1] = status->MPI_TAG;
    MPI_Get_count(status, it->type, &told[2]);
}

/* isend(comm, array, to, tag) */
static napi_value isend(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array data;
    if (!array(&call, 1, &data)) return NULL;
    int number, to = integer(&call, 2), tag = integer(&call, 3);
    struct pending *made = new_pending(&number, data.type, CALL_SEND, to, tag);
    int error = MPI_Isend(data.data, data.length, data.type, to, tag, group_at(&call, 0)->comm, &made->request);
    return begun(env, number, error, "isend");
}

/* irecv(comm, array, from, tag) */
static napi_value irecv(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array data;
    if (!array(&call, 1, &data)) return NULL;
    int number, from = integer(&call, 2), tag = integer(&call, 3);
    struct pending *made = new_pending(&number, data.type, CALL_RECV, from, tag);
    int error = MPI_Irecv(data.data, data.length, data.type, peer_of(from), tag_of(tag), group_at(&call, 0)->comm, &made->request);
    return begun(env, number, error, "irecv");
}

/* icollective(comm, kind, array, into, op, root): kind 0 barrier, 1 bcast, 2 reduce, 3 gather, 4 scatter, 5 alltoall; root -1 for all. */
static napi_value icollective(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    int what = integer(&call, 1), op = integer(&call, 4), root = integer(&call, 5);
    struct array data, into;
    if (!array(&call, 2, &data) || !array(&call, 3, &into)) return NULL;
    int all = root < 0, number, error;
    static const enum call_kind ONE[] = {CALL_IBARRIER, CALL_IBCAST, CALL_IREDUCE, CALL_IGATHER, CALL_ISCATTER, CALL_IALLTOALL};
    enum call_kind kind = all && what == 2 ? CALL_IALLREDUCE : all && what == 3 ? CALL_IALLGATHER : ONE[what % 6];
    /* The array counts at the root only of a scatter; each rank has as many elements. */
    struct array *counted = what == 4 ? &into : &data;
    int each = what == 5 ? data.length / group->size : counted->length;
    if (!enter(env, group, kind, what == 0 ? -1 : each, what == 0 ? 0 : counted->kind, op, root)) return NULL;
    struct pending *made = new_pending(&number, data.type, kind, root, -1);
    MPI_Request *request = &made->request;
    MPI_Comm comm = group->comm;
    void *from = (all || group->rank == root) && data.data == into.data ? MPI_IN_PLACE : data.data;
    switch (kind) {
    case CALL_IBARRIER: error = MPI_Ibarrier(comm, request); break;
    case CALL_IBCAST: error = MPI_Ibcast(data.data, each, data.type, root, comm, request); break;
    case CALL_IREDUCE: error = MPI_Ireduce(from, into.data, each, data.type, op_of(op), root, comm, request); break;
    case CALL_IALLREDUCE: error = MPI_Iallreduce(from, into.data, each, data.type, op_of(op), comm, request); break;
    case CALL_IGATHER: error = MPI_Igather(data.data, each, data.type, into.data, each, data.type, root, comm, request); break;
    case CALL_IALLGATHER: error = MPI_Iallgather(data.data, each, data.type, into.data, each, data.type, comm, request); break;
    case CALL_ISCATTER: error = MPI_Iscatter(data.data, each, into.type, into.data, each, into.type, root, comm, request); break;
    default: error = MPI_Ialltoall(data.data, each, data.type, into.data, each, data.type, comm, request);
    }
    leave();
    return begun(env, number, error, "icollective");
}

/* wait(comm, request, told) */
static napi_value wait_for(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct pending *it = &pending[integer(&call, 1)];
    MPI_Status status;
    enter_wait(group_at(&call, 0), it->kind, it->peer, it->tag);
    int error = MPI_Wait(&it->request, &status);
    leave();
    if (error == MPI_SUCCESS) tell(integers(&call, 2), &status, it);
    over(it);
    return outcome(env, error, "wait");
}

/* test(request, told): 1 when it is complete. */
static napi_value test(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct pending *it = &pending[integer(&call, 0)];
    MPI_Status status;
    int done = 0;
    int error = MPI_Test(&it->request, &done, &status);
    if (done && error == MPI_SUCCESS) tell(integers(&call, 1), &status, it);
    if (done || error != MPI_SUCCESS) over(it);
    if (error != MPI_SUCCESS) return outcome(env, error, "test");
    return number_value(env, done);
}

/* giveUp(request): a receive that the program left open. Returns 0 when it was not matched; else it is complete. */
static napi_value give_up(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct pending *it = &pending[integer(&call, 0)];
    MPI_Status status;
    int cancelled = 0;
    int error = MPI_Cancel(&it->request);
    if (error == MPI_SUCCESS) error = MPI_Wait(&it->request, &status);
    if (error == MPI_SUCCESS) MPI_Test_cancelled(&status, &cancelled);
    over(it);
    if (error != MPI_SUCCESS) return outcome(env, error, "cancel");
    return number_value(env, !cancelled);
}

void add_requests(napi_env env, napi_value exports) {
    napi_export(env, exports, "isend", isend, NULL);
    napi_export(env, exports, "irecv", irecv, NULL);
    napi_export(env, exports, "icollective", icollective, NULL);
    napi_export(env, exports, "wait", wait_for, NULL);
    napi_export(env, exports, "test", test, NULL);
    napi_export(env, exports, "giveUp", give_up, NULL);
}
