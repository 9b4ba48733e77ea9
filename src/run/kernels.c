#include "run/kernels.h"

#include <string.h>

#include "device/kernels_auto.h"
#include "engine/task.h"
#include "run/kept_job.h"

static bool is_open(const struct hd_job *job)
{
	return hd_job_int(job, HD_JOB_KERNELS) == HD_JOBKERNELS_AUTO &&
		hd_job_int(job, HD_JOB_KERNELS_AUTO) == HD_JOBAUTO_NONE;
}

/* Products in bf16 are our own; so is all of a build without the library. */
static bool has_choice(const struct hd_job *job)
{
	return hd_device_has_library() && hd_job_int(job, HD_JOB_PRODUCTS) == HD_PRODUCTS_F32;
}

static void settle_as(struct hd_job *job, enum hd_jobauto as)
{
	struct hd_job_value *v = &job->value[HD_JOB_KERNELS_AUTO];

	v->i = as;
	v->text = as == HD_JOBAUTO_LIBRARY ? "library" : "portable";
	v->is_standard = false;
}

enum hd_err hd_kernels_settle(struct hd_job *job, struct hd_fs *fs, const char *was, struct hd_diag *diag)
{
	bool library = was && !strcmp(was, "library");
	struct hd_arena arena;
	struct hd_graph graph;
	enum hd_err err = HD_OK;

	if (!is_open(job))
		return HD_OK;
	if (!library && (!was || strcmp(was, "portable") != 0) && has_choice(job)) {
		hd_arena_init(&arena, 0);
		err = hd_task_train_graph(job, fs, &arena, &graph, diag);
		library = !err && hd_kernels_auto(&hd_kernels_measured, hd_cpu_type(), &graph,
			job->per_vn) == HD_KERNELS_LIBRARY;
		hd_arena_finish(&arena);
	}
	if (!err)
		settle_as(job, library ? HD_JOBAUTO_LIBRARY : HD_JOBAUTO_PORTABLE);
	return err;
}

enum hd_err hd_kernels_keep(struct hd_rundir *dir, struct hd_job *job, const char *was,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	bool kept = !is_open(job) && job->value[HD_JOB_KERNELS_AUTO].origin <= HD_FROM_FILE;
	enum hd_err err = hd_kernels_settle(job, dir->fs, was, diag);
	const struct hd_kept_value value = { HD_JOB_KERNELS_AUTO, job->value[HD_JOB_KERNELS_AUTO] };

	return err || kept ? err : hd_kept_job_put(dir, &value, 1, arena, diag);
}

enum hd_kernels hd_kernels_of(const struct hd_job *job)
{
	int64_t asked = hd_job_int(job, HD_JOB_KERNELS);
	bool library = asked == HD_JOBKERNELS_LIBRARY || (asked == HD_JOBKERNELS_AUTO &&
		hd_job_int(job, HD_JOB_KERNELS_AUTO) == HD_JOBAUTO_LIBRARY);

	switch ((enum hd_products)hd_job_int(job, HD_JOB_PRODUCTS)) {
	case HD_PRODUCTS_BF16:     return HD_KERNELS_BF16;
	case HD_PRODUCTS_BF16_AMX: return HD_KERNELS_BF16_AMX;
	case HD_PRODUCTS_F32:      break;
	}
	return library ? HD_KERNELS_LIBRARY : HD_KERNELS_PORTABLE;
}
