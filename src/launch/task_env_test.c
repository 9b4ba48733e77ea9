/* Variables as srun of Slurm 22.05 and Open MPI 4.1 set them. */
#include "launch/task_env.h"

#include <string.h>

#include "tests/check.h"

enum { VARIABLES = 12 };

static void a_task_knows_its_rank_and_its_processors(void **state)
{
	static const struct {
		char *env[VARIABLES];
		uint32_t rank, size, cpus, local;
		const char *says;
	} cases[] = {
		{ { "HOME=/root", NULL }, 0, 0, 0, 0, "" },
		{ { "SLURM_JOB_ID=7", NULL }, 0, 0, 0, 0, "" },
		{ { "SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_LOCALID=1", "SLURM_CPUS_ON_NODE=16", "SLURM_STEP_TASKS_PER_NODE=4(x2)", "SLURMD_NODENAME=k1", "SLURM_JOB_ID=77", NULL }, 3, 8, 4, 4, "task 3 of 8 of Slurm job 77 on k1" },
		{ { "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_CPUS_ON_NODE=4", "SLURM_JOB_ID=7", NULL }, 1, 2, 4, 1, "task 1 of 2 of Slurm job 7" },
		{ { "SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_CPUS_PER_TASK=6", "SLURM_CPUS_ON_NODE=16", "SLURM_JOB_ID=7", NULL }, 0, 1, 6, 0, "task 0 of 1 of Slurm job 7" },
		{ { "SLURM_PROCID=0", "SLURM_NTASKS=3", "SLURM_TASKS_PER_NODE=2,1", "SLURM_CPUS_ON_NODE=16", NULL }, 0, 3, 16, 0, "task 0 of 3 of Slurm job without a name" },
		/* mpirun in an allocation: its own daemon was a task of srun */
		{ { "SLURM_PROCID=1", "SLURM_NTASKS=2", "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=3", "SLURM_JOB_ID=7", NULL }, 5, 6, 0, 3, "task 5 of 6 of Open MPI job without a name" },
		{ { "PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=9", NULL }, 1, 2, 0, 0, "task 1 of 2 of MPI job 9" },
		{ { "PMIX_RANK=4", "PMIX_NAMESPACE=slurm.pmix.7.0", NULL }, 4, 0, 0, 0, "task 4 of PMIx job slurm.pmix.7.0" },
	};
	char said[200];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_task_env t;
		assert_int_equal(hd_task_env_read(&t, cases[i].env, NULL), HD_OK);
		CHECK(t.rank == cases[i].rank && t.size == cases[i].size && t.cpus == cases[i].cpus &&
			t.local_size == cases[i].local, "case %zu: %u of %u, %u processors, %u here", i,
			t.rank, t.size,
			t.cpus, t.local_size);
		assert_string_equal(hd_task_env_say(&t, said), cases[i].says);
		CHECK(t.twice == !strncmp(cases[i].env[0], "SLURM_STEP_ID", 13), "case %zu", i);
	}
}

static void nonsense_is_refused_by_its_name(void **state)
{
	static const struct { char *env[VARIABLES]; const char *says; } cases[] = {
		{ { "SLURM_PROCID=x", NULL }, "SLURM_PROCID is \"x\"" },
		{ { "SLURM_PROCID=", NULL }, "SLURM_PROCID is \"\"" },
		{ { "SLURM_PROCID=8", "SLURM_NTASKS=8", NULL }, "SLURM_PROCID is 8 and SLURM_NTASKS is 8" },
		{ { "OMPI_COMM_WORLD_RANK=-1", NULL }, "OMPI_COMM_WORLD_RANK is \"-1\"" },
		{ { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL }, "OMPI_COMM_WORLD_LOCAL_RANK is 2" },
		{ { "PMI_RANK=9999999999", NULL }, "PMI_RANK is" },
		{ { "SLURM_PROCID=0", "SLURM_CPUS_PER_TASK=many", NULL }, "SLURM_CPUS_PER_TASK is \"many\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_task_env t = { .rank = 99 };
		struct hd_diag diag = { "" };
		CHECK(hd_task_env_read(&t, cases[i].env, &diag) == HD_E_INVAL && t.rank == 99, "case %zu", i);
		CHECK(!strncmp(diag.text, cases[i].says, strlen(cases[i].says)), "case %zu: %s", i,
			diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_knows_its_rank_and_its_processors),
		cmocka_unit_test(nonsense_is_refused_by_its_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
