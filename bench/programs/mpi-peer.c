/* mpi-peer WHAT: the same as mpi.mjs in C. Prints seconds of one repetition. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, repeat = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "barrier";
    size_t bytes = strcmp(what, "ping8") == 0 ? 8 : strcmp(what, "ping1m") == 0 ? 1 << 20 : 8 << 20;
    if (strcmp(what, "write") == 0) bytes = (256 << 20) / size;
    char *data = calloc(1, bytes), *into = calloc(1, bytes);
    /* Pages that were never written are all one page. */
    for (size_t i = 0; i < bytes / 8; i++) ((double *)data)[i] = ((double *)into)[i] = 1;
    if (strncmp(what, "ping", 4) == 0) repeat = bytes == 8 ? 20000 : 500;
    else if (strcmp(what, "allreduce") == 0) repeat = 20;
    /* Each round writes a new file, as ours does. */
    if (rank == 0) remove("peer.bin");
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < repeat; i++) {
        if (strcmp(what, "allreduce") == 0) {
            MPI_Allreduce(data, into, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        } else if (strcmp(what, "write") == 0) {
            MPI_File file;
            MPI_File_open(MPI_COMM_WORLD, "peer.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
            MPI_File_write_at_all(file, (MPI_Offset)(rank * bytes), data, (int)(bytes / 8), MPI_DOUBLE, MPI_STATUS_IGNORE);
            MPI_File_close(&file);
        } else if (rank == 0) {
            MPI_Send(data, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) printf("%.9f\n", (MPI_Wtime() - began) / repeat);
    MPI_Finalize();
    return 0;
}
