/* Messages between two ranks. */
#include "parts.h"

/* What came: source, tag, number of elements. */
static int *told;

static void tell(const MPI_Status *status, MPI_Datatype type) {
    if (!told) return;
    told[0] = status->MPI_SOURCE;
    told[1] = status->MPI_TAG;
    MPI_Get_count(status, type, &told[2]);
}

/* send(comm, array, to, tag) */
static napi_value send_array(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data;
    if (!array(&call, 1, &data)) return NULL;
    int to = integer(&call, 2);
    enter_message(group, CALL_SEND, to, integer(&call, 3));
    int error = MPI_Send(data.data, data.length, data.type, to, integer(&call, 3), group->comm);
    leave();
    return outcome(env, error, "send");
}

/* told(array): the array in which arrivals are announced, for as long as the process lives. */
static napi_value set_told(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    told = integers(&call, 0);
    return NULL;
}

/* recv(comm, array, from, tag) */
static napi_value recv_array(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data;
    if (!array(&call, 1, &data)) return NULL;
    int from = integer(&call, 2);
    MPI_Status status;
    enter_message(group, CALL_RECV, from, integer(&call, 3));
    int error = MPI_Recv(data.data, data.length, data.type, peer_of(from), tag_of(integer(&call, 3)), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(&status, data.type);
    return outcome(env, error, "recv");
}

/* sendrecv(comm, array, to, into, from, tag) */
static napi_value exchange(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 3, &into)) return NULL;
    int from = integer(&call, 4), tag = integer(&call, 5);
    MPI_Status status;
    enter_message(group, CALL_SENDRECV, from, tag);
    int error = MPI_Sendrecv(data.data, data.length, data.type, integer(&call, 2), tag, into.data, into.length, into.type,
                             peer_of(from), tag_of(tag), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(&status, into.type);
    return outcome(env, error, "sendrecv");
}

/* probe(comm, from, tag, isWaiting): counts bytes; returns 1 when there is one. */
static napi_value probe(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    int from = peer_of(integer(&call, 1)), tag = tag_of(integer(&call, 2)), found = 1, error;
    MPI_Status status;
    if (integer(&call, 3)) {
        enter_message(group, CALL_PROBE, integer(&call, 1), integer(&call, 2));
        error = MPI_Probe(from, tag, group->comm, &status);
        leave();
    } else error = MPI_Iprobe(from, tag, group->comm, &found, &status);
    if (error != MPI_SUCCESS) return outcome(env, error, "probe");
    if (found) tell(&status, MPI_BYTE);
    return number_value(env, found);
}

void add_calls(napi_env env, napi_value exports) {
    napi_export(env, exports, "send", send_array, NULL);
    napi_export(env, exports, "recv", recv_array, NULL);
    napi_export(env, exports, "sendrecv", exchange, NULL);
    napi_export(env, exports, "probe", probe, NULL);
    napi_export(env, exports, "told", set_told, NULL);
}
