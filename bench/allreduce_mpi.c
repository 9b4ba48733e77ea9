/* allreduce_mpi.c -- MPI_Allreduce timed as `heddle bench allreduce` times ours: values put back, all wait
 * for one another, the slowest process counts. Prints the median in milliseconds.
 *
 *	mpicc -O3 -o allreduce_mpi bench/allreduce_mpi.c && mpirun -np 2 ./allreduce_mpi BYTES REPEAT */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long bytes = argc > 1 ? atol(argv[1]) : 25000000, repeat = argc > 2 ? atol(argv[2]) : 8,
		n = bytes / 4;
	float *values = malloc((size_t)bytes);
	double *ms = malloc((size_t)repeat * sizeof *ms);
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (long r = -3; r < repeat; r++) {
		for (long i = 0; i < n; i++)
			values[i] = (float)(rank + 1);
		MPI_Barrier(MPI_COMM_WORLD);
		double took = -MPI_Wtime(), most;
		MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		took += MPI_Wtime();
		MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		if (values[n - 1] != (float)(size * (size + 1) / 2))
			return 1;
		if (r >= 0)
			ms[r] = most * 1e3;
	}
	qsort(ms, (size_t)repeat, sizeof *ms, rising);
	if (!rank)
		printf("%.3f\n", ms[(repeat - 1) / 2]);
	MPI_Finalize();
	free(ms);
	free(values);
	return 0;
}
