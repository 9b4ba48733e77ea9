#include "device/grid.h"

static enum hd_err no_amx(const char *path, struct hd_diag *diag)
{
	static const char *const why[] = {
		[HD_AMX_NO_KERNELS] = "needs AMX-BF16, which is not in the kernels that run here: those for ",
		[HD_AMX_NO_PROCESSOR] = "needs AMX-BF16 (Intel since Sapphire Rapids), and this "
			"processor has none",
		[HD_AMX_NOT_LENT] = "needs a system that lends the processor's tiles (Linux since 5.16), "
			"and this one lends none",
		[HD_AMX_OTHERWISE] = "needs AMX-BF16 as it is defined, and this processor adds otherwise",
	};
	const enum hd_amx_lack lack = hd_cpu_lacks_amx(path);

	return hd_fail(diag, HD_E_REFUSED,
		"job.precision: bf16-amx %s%s: take another machine, or start with job.precision: %s",
		why[lack], lack == HD_AMX_NO_KERNELS ? path : "",
		hd_cpu_has_bf16(path) ? "bf16 or f32" : "f32");
}

/* The path is a matter of the machine: one that is asked for by name and that it has not
 * is refused. The kind of kernels is one of the job, and the table's (cpu_kernels.h). */
static enum hd_err cpu_open(struct hd_device *device, const struct hd_device_spec *spec, struct hd_diag *diag)
{
	const char *path = hd_cpu_path(spec->path);

	if (!path)
		return hd_fail(diag, HD_E_REFUSED,
			"this processor has no kernels for '%s': use auto or portable", spec->path);
	if (spec->kernels == HD_KERNELS_LIBRARY && !hd_cpu_has_library())
		return hd_fail(diag, HD_E_REFUSED,
			"this build has no library kernels (oneDNN): use job.kernels: portable or auto, or "
			"build with HD_DNNL=ON");
	if (spec->kernels == HD_KERNELS_BF16 && !hd_cpu_has_bf16(path))
		return hd_fail(diag, HD_E_REFUSED,
			"job.precision: bf16 needs AVX512-BF16 (AMD since Zen 4, Intel since Sapphire "
			"Rapids), and the kernels for %s that run here have none: take another machine, or "
			"start with job.precision: f32", path);
	if (spec->kernels == HD_KERNELS_BF16_AMX && !hd_cpu_has_amx(path))
		return no_amx(path, diag);
	return hd_grid_open(device, spec, &(struct hd_grid_kernels){ hd_cpu_table(spec->kernels, path),
		hd_cpu_table(HD_KERNELS_PORTABLE, path),
		hd_cpu_vectors(path),
		hd_cpu_thread_init, path, hd_edge_kernels(path) }, diag);
}

bool hd_device_has_library(void) { return hd_cpu_has_library(); }

const struct hd_device_ops hd_device_cpu = {
	HD_GRID_OPS,
	.name = "cpu",
	.about =
	"this machine's processor: our vector kernels, with products and convolutions by oneDNN if the job "
	"wants `library` kernels",
	.powers = HD_DEVICE_HOST_MEMORY, .open = cpu_open,
};
