/* Calls that all ranks of a communicator make together. */
#include "parts.h"

MPI_Op op_of(int number) {
    switch (number) {
    case 1: return MPI_PROD;
    case 2: return MPI_MIN;
    case 3: return MPI_MAX;
    case 4: return MPI_LAND;
    case 5: return MPI_LOR;
    case 6: return MPI_BAND;
    case 7: return MPI_BOR;
    default: return MPI_SUM;
    }
}

static napi_value barrier(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    if (!enter(env, group, CALL_BARRIER, -1, 0, 0, -1)) return NULL;
    int error = MPI_Barrier(group->comm);
    leave();
    return outcome(env, error, "barrier");
}

/* bcast(comm, array, root) */
static napi_value bcast(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data;
    if (!array(&call, 1, &data)) return NULL;
    int root = integer(&call, 2);
    if (!enter(env, group, CALL_BCAST, data.length, data.kind, 0, root)) return NULL;
    int error = MPI_Bcast(data.data, data.length, data.type, root, group->comm);
    leave();
    return outcome(env, error, "bcast");
}

/* reduce(comm, array, into, op, root): root -1 for all. `into` may be the array itself. */
static napi_value reduce(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 2, &into)) return NULL;
    int op = integer(&call, 3), root = integer(&call, 4);
    int for_all = root < 0, is_root = for_all || group->rank == root;
    if (!enter(env, group, for_all ? CALL_ALLREDUCE : CALL_REDUCE, data.length, data.kind, op, root)) return NULL;
    void *from = is_root && data.data == into.data ? MPI_IN_PLACE : data.data;
    int error = for_all ? MPI_Allreduce(from, into.data, data.length, data.type, op_of(op), group->comm)
                        : MPI_Reduce(from, into.data, data.length, data.type, op_of(op), root, group->comm);
    leave();
    return outcome(env, error, for_all ? "allreduce" : "reduce");
}

/* gather(comm, array, into, root, counts, displacements): root -1 for all; counts of one rank each, or absent. */
static napi_value gather(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 2, &into)) return NULL;
    int root = integer(&call, 3), error, all = root < 0;
    int *counts = integers(&call, 4), *starts = integers(&call, 5);
    int varies = call.count > 6 && integer(&call, 6);
    enum call_kind kind = all ? (varies ? CALL_ALLGATHERV : CALL_ALLGATHER) : (varies ? CALL_GATHERV : CALL_GATHER);
    if (!enter(env, group, kind, varies ? -1 : data.length, data.kind, 0, root)) return NULL;
    if (all && varies) {
        error = MPI_Allgatherv(data.data, data.length, data.type, into.data, counts, starts, data.type, group->comm);
    } else if (all) {
        error = MPI_Allgather(data.data, data.length, data.type, into.data, data.length, data.type, group->comm);
    } else if (varies) {
        error = MPI_Gatherv(data.data, data.length, data.type, into.data, counts, starts, data.type, root, group->comm);
    } else error = MPI_Gather(data.data, data.length, data.type, into.data, data.length, data.type, root, group->comm);
    leave();
    return outcome(env, error, all ? "allgather" : "gather");
}

/* scatter(comm, array, into, root, counts, displacements, varies): the array counts at the root only. */
static napi_value scatter(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 2, &into)) return NULL;
    int root = integer(&call, 3), varies = integer(&call, 6), error;
    if (!enter(env, group, varies ? CALL_SCATTERV : CALL_SCATTER, varies ? -1 : into.length, into.kind, 0, root))
        return NULL;
    if (varies) {
        error = MPI_Scatterv(data.data, integers(&call, 4), integers(&call, 5), into.type, into.data, into.length, into.type,
                             root, group->comm);
    } else error = MPI_Scatter(data.data, into.length, into.type, into.data, into.length, into.type, root, group->comm);
    leave();
    return outcome(env, error, "scatter");
}

/* alltoall(comm, array, into) */
static napi_value alltoall(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 2, &into)) return NULL;
    int each = data.length / group->size;
    if (!enter(env, group, CALL_ALLTOALL, each, data.kind, 0, -1)) return NULL;
    int error = MPI_Alltoall(data.data, each, data.type, into.data, each, into.type, group->comm);
    leave();
    return outcome(env, error, "alltoall");
}

/* alltoallv(comm, array, counts, displacements, into, its counts, its displacements) */
static napi_value alltoallv(napi_env env, napi_callback_info info) {
    struct call call = arguments(env, info);
    struct group *group = group_at(&call, 0);
    struct array data, into;
    if (!array(&call, 1, &data) || !array(&call, 4, &into)) return NULL;
    if (!enter(env, group, CALL_ALLTOALLV, -1, data.kind, 0, -1)) return NULL;
    int error = MPI_Alltoallv(data.data, integers(&call, 2), integers(&call, 3), data.type, into.data, integers(&call, 5),
                              integers(&call, 6), into.type, group->comm);
    leave();
    return outcome(env, error, "alltoallv");
}

void add_collectives(napi_env env, napi_value exports) {
    napi_export(env, exports, "barrier", barrier, NULL);
    napi_export(env, exports, "bcast", bcast, NULL);
    napi_export(env, exports, "reduce", reduce, NULL);
    napi_export(env, exports, "gather", gather, NULL);
    napi_export(env, exports, "scatter", scatter, NULL);
    napi_export(env, exports, "alltoall", alltoall, NULL);
    napi_export(env, exports, "alltoallv", alltoallv, NULL);
}
