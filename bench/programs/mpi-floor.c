/* The least that a message can cost in Node: functions of an add-on without arguments, which send and receive and do nothing else. */
#include <mpi.h>
#include <napi.h>
#include <stdlib.h>

static int rank, bytes;
static char *data;

/* begin(bytes): the rank. */
static napi_value begin(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value given, result;
    napi_get_cb_info(env, info, &count, &given, NULL, NULL);
    napi_get_value_int32(env, given, &bytes);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = calloc(1, (size_t)bytes);
    napi_create_int32(env, rank, &result);
    return result;
}

static napi_value send_data(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    return NULL;
}

static napi_value recv_data(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static napi_value wtime(napi_env env, napi_callback_info info) {
    (void)info;
    napi_value result;
    napi_create_double(env, MPI_Wtime(), &result);
    return result;
}

static napi_value end(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    MPI_Finalize();
    return NULL;
}

static napi_value init(napi_env env, napi_value exports) {
    napi_export(env, exports, "begin", begin, NULL);
    napi_export(env, exports, "send", send_data, NULL);
    napi_export(env, exports, "recv", recv_data, NULL);
    napi_export(env, exports, "wtime", wtime, NULL);
    napi_export(env, exports, "end", end, NULL);
    return exports;
}

NAPI_MODULE(init)
