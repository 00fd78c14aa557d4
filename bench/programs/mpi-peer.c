/* mpi-peer WHAT: the same as mpi.mjs in C. Prints seconds of one repetition, the median over pieces as in mpi-pieces.mjs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct work {
    const char *name;
    size_t bytes;
    int pieces, each;
} WORKS[] = {{"ping8", 8, 400, 100}, {"ping1m", 1 << 20, 100, 5}, {"allreduce", 8 << 20, 40, 1}, {"write", 128 << 20, 9, 1}};

static int rank;
static char *data, *into;

static void before(const struct work *work) {
    if (strncmp(work->name, "ping", 4) == 0) return;
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(work->name, "write") != 0) return;
    if (rank == 0) remove("peer.bin");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void once(const struct work *work) {
    int count = (int)(work->bytes / 8), bytes = (int)work->bytes, other = 1 - rank;
    if (strcmp(work->name, "allreduce") == 0) {
        MPI_Allreduce(data, into, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (strcmp(work->name, "write") == 0) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, "peer.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
        MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, data, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    } else if (rank == 0) {
        MPI_Send(data, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(data, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const struct work *work = NULL;
    for (size_t i = 0; i < sizeof WORKS / sizeof *WORKS; i++)
        if (argc > 1 && strcmp(argv[1], WORKS[i].name) == 0) work = &WORKS[i];
    if (!work) MPI_Abort(MPI_COMM_WORLD, 2);
    data = calloc(1, work->bytes);
    into = calloc(1, work->bytes);
    /* Pages that were never written are all one page. */
    if (strncmp(work->name, "ping", 4) != 0)
        for (size_t i = 0; i < work->bytes / 8; i++) ((double *)data)[i] = ((double *)into)[i] = 1;
    double *took = calloc((size_t)work->pieces, sizeof *took);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int piece = 0; piece < work->pieces; piece++) {
        before(work);
        double began = MPI_Wtime();
        for (int i = 0; i < work->each; i++) once(work);
        took[piece] = (MPI_Wtime() - began) / work->each;
    }
    qsort(took, (size_t)work->pieces, sizeof *took, by_size);
    if (rank == 0) printf("%.9f\n", took[work->pieces / 2]);
    MPI_Finalize();
    return 0;
}
