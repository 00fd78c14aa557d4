/* Messages between two ranks. */
#include "parts.h"

/*
 * Calls of two ranks are made often and take little time, so they have no arguments. JavaScript writes numbers into memory
 * that both sides see, and says which arrays are sent and filled only when they are others than in the call before.
 */
enum { SOURCE, ITS_TAG, COUNT, COMM, TO, FROM, TAG };
static int *numbers;
static struct array out, in;

static void tell(const MPI_Status *status, MPI_Datatype type) {
    if (!numbers) return;
    numbers[SOURCE] = status->MPI_SOURCE;
    numbers[ITS_TAG] = status->MPI_TAG;
    MPI_Get_count(status, type, &numbers[COUNT]);
}

/* numbers(array): for as long as the process lives. */
static napi_value set_numbers(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    numbers = integers(&call, 0);
    return NULL;
}

/* aim(array, isInto): what the next calls send, or fill. JavaScript keeps it alive for as long. */
static napi_value aim(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct array data;
    if (array(&call, 0, &data)) *(integer(&call, 1) ? &in : &out) = data;
    return NULL;
}

static napi_value send_array(napi_env env, napi_callback_info info) {
    (void)info;
    struct group *group = group_numbered(numbers[COMM]);
    int to = numbers[TO], tag = numbers[TAG];
    enter_message(group, CALL_SEND, to, tag);
    int error = MPI_Send(out.data, out.length, out.type, to, tag, group->comm);
    leave();
    return outcome(env, error, "send");
}

static napi_value recv_array(napi_env env, napi_callback_info info) {
    (void)info;
    struct group *group = group_numbered(numbers[COMM]);
    int from = numbers[FROM], tag = numbers[TAG];
    MPI_Status status;
    enter_message(group, CALL_RECV, from, tag);
    int error = MPI_Recv(in.data, in.length, in.type, peer_of(from), tag_of(tag), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(&status, in.type);
    return outcome(env, error, "recv");
}

static napi_value exchange(napi_env env, napi_callback_info info) {
    (void)info;
    struct group *group = group_numbered(numbers[COMM]);
    int from = numbers[FROM], tag = numbers[TAG];
    MPI_Status status;
    enter_message(group, CALL_SENDRECV, from, tag);
    int error = MPI_Sendrecv(out.data, out.length, out.type, numbers[TO], tag, in.data, in.length, in.type,
                             peer_of(from), tag_of(tag), group->comm, &status);
    leave();
    if (error == MPI_SUCCESS) tell(&status, in.type);
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
    napi_export(env, exports, "aim", aim, NULL);
    napi_export(env, exports, "send", send_array, NULL);
    napi_export(env, exports, "recv", recv_array, NULL);
    napi_export(env, exports, "sendrecv", exchange, NULL);
    napi_export(env, exports, "probe", probe, NULL);
    napi_export(env, exports, "numbers", set_numbers, NULL);
}
