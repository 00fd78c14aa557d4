/* Messages between two ranks. */
#include "parts.h"

#include <stdlib.h>

static int peer_of(int rank) { return rank < 0 ? MPI_ANY_SOURCE : rank; }
static int tag_of(int tag) { return tag < 0 ? MPI_ANY_TAG : tag; }

/* What came: source, tag, number of elements. */
static void tell(int *told, const MPI_Status *status, MPI_Datatype type) {
    if (!told) return;
    told[0] = status->MPI_SOURCE;
    told[1] = status->MPI_TAG;
    MPI_Get_count(status, type, &told[2]);
}

/* send(comm, array, to, tag) */
static napi_value send_array(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data = array(&call, 1);
    int to = integer(&call, 2);
    enter(env, group, CALL_SEND, data.length, data.kind, 0, to);
    int error = MPI_Send(data.data, data.length, data.type, to, integer(&call, 3), group->comm);
    leave();
    return outcome(env, error, "send");
}

/* recv(comm, array, from, tag, told) */
static napi_value recv_array(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data = array(&call, 1);
    int from = integer(&call, 2);
    MPI_Status status;
    enter(env, group, CALL_RECV, data.length, data.kind, 0, from);
    int error = MPI_Recv(data.data, data.length, data.type, peer_of(from), tag_of(integer(&call, 3)), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(integers(&call, 4), &status, data.type);
    return outcome(env, error, "recv");
}

/* sendrecv(comm, array, to, into, from, tag, told) */
static napi_value exchange(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data = array(&call, 1), into = array(&call, 3);
    int from = integer(&call, 4), tag = integer(&call, 5);
    MPI_Status status;
    enter(env, group, CALL_RECV, into.length, into.kind, 0, from);
    int error = MPI_Sendrecv(data.data, data.length, data.type, integer(&call, 2), tag, into.data, into.length, into.type,
                             peer_of(from), tag_of(tag), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(integers(&call, 6), &status, into.type);
    return outcome(env, error, "sendrecv");
}

/* --- without waiting --- */

struct pending {
    MPI_Request request;
    MPI_Datatype type;
    int used;
};

static struct pending *pending;
static int pending_count;

static struct pending *new_pending(int *number, MPI_Datatype type) {
    int at = 0;
    while (at < pending_count && pending[at].used) at++;
    if (at == pending_count) {
        pending = realloc(pending, (size_t)++pending_count * sizeof *pending);
        if (!pending) abort();
    }
    pending[at] = (struct pending){MPI_REQUEST_NULL, type, 1};
    *number = at;
    return &pending[at];
}

static napi_value isend(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array data = array(&call, 1);
    int number;
    struct pending *made = new_pending(&number, data.type);
    int error = MPI_Isend(data.data, data.length, data.type, integer(&call, 2), integer(&call, 3), group_at(&call, 0)->comm,
                          &made->request);
    if (error == MPI_SUCCESS) return number_value(env, number);
    made->used = 0;
    return outcome(env, error, "isend");
}

static napi_value irecv(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array data = array(&call, 1);
    int number;
    struct pending *made = new_pending(&number, data.type);
    int error = MPI_Irecv(data.data, data.length, data.type, peer_of(integer(&call, 2)), tag_of(integer(&call, 3)),
                          group_at(&call, 0)->comm, &made->request);
    if (error == MPI_SUCCESS) return number_value(env, number);
    made->used = 0;
    return outcome(env, error, "irecv");
}

/* wait(comm, request, told) */
static napi_value wait_for(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct pending *it = &pending[integer(&call, 1)];
    MPI_Status status;
    enter(env, group_at(&call, 0), CALL_WAIT, -1, 0, 0, -1);
    int error = MPI_Wait(&it->request, &status);
    leave();
    if (error == MPI_SUCCESS) tell(integers(&call, 2), &status, it->type);
    it->used = 0;
    return outcome(env, error, "wait");
}

/* test(request, told): 1 when it is complete. */
static napi_value test(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct pending *it = &pending[integer(&call, 0)];
    MPI_Status status;
    int done = 0;
    int error = MPI_Test(&it->request, &done, &status);
    if (done && error == MPI_SUCCESS) tell(integers(&call, 1), &status, it->type);
    if (done || error != MPI_SUCCESS) it->used = 0;
    if (error != MPI_SUCCESS) return outcome(env, error, "test");
    return number_value(env, done);
}

/* probe(comm, from, tag, told, isWaiting): counts bytes; returns 1 when there is one. */
static napi_value probe(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    int from = peer_of(integer(&call, 1)), tag = tag_of(integer(&call, 2)), found = 1, error;
    MPI_Status status;
    if (integer(&call, 4)) {
        enter(env, group, CALL_PROBE, -1, 0, 0, integer(&call, 1));
        error = MPI_Probe(from, tag, group->comm, &status);
        leave();
    } else error = MPI_Iprobe(from, tag, group->comm, &found, &status);
    if (error != MPI_SUCCESS) return outcome(env, error, "probe");
    if (found) tell(integers(&call, 3), &status, MPI_BYTE);
    return number_value(env, found);
}

void add_calls(napi_env env, napi_value exports) {
    napi_export(env, exports, "send", send_array, NULL);
    napi_export(env, exports, "recv", recv_array, NULL);
    napi_export(env, exports, "sendrecv", exchange, NULL);
    napi_export(env, exports, "isend", isend, NULL);
    napi_export(env, exports, "irecv", irecv, NULL);
    napi_export(env, exports, "wait", wait_for, NULL);
    napi_export(env, exports, "test", test, NULL);
    napi_export(env, exports, "probe", probe, NULL);
}
