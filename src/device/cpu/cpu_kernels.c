#include "device/cpu/cpu_kernels.h"

#include <string.h>

#include "device/cpu/cpu_isa.h"
#include "device/cpu/dnnl.h"
#include "device/kernels_auto.h"

enum hd_err hd_cpu_prepare_none(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	(void)call;
	(void)diag;
	*prepared = NULL;
	return HD_OK;
}

void hd_cpu_release_none(void *prepared) { (void)prepared; }

/* Each answer also covers the operating system: it must save the wide registers. */
static bool has_avx512(void)
{
#ifdef __SANITIZE_THREAD__
	return false;                    /* its objects are not instrumented: cmake/kernels.cmake */
#endif
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool has_portable(void) { return true; }

static const struct path { const char *name; bool (*has)(void); const struct hd_cpu_isa *isa; } paths[] = {
#define X(path) { #path, has_##path, &hd_cpu_##path },
	HD_CPU_PATHS(X)
#undef X
};
enum { NPATHS = sizeof paths / sizeof paths[0] };

const char *hd_cpu_path(const char *wanted)
{
	bool any = !wanted || strcmp(wanted, "auto") == 0;

	for (int i = 0; i < NPATHS; i++)
		if ((any || strcmp(wanted, paths[i].name) == 0) && paths[i].has())
			return paths[i].name;
	return NULL;
}

const char *hd_cpu_type(void)
{
	if (!has_avx512())
		return "other";
	return __builtin_cpu_is("amd") ? "amd-avx512" : __builtin_cpu_is("intel") ? "intel-avx512" : "other";
}

const struct hd_cpu_isa *hd_cpu_isa_of(const char *path)
{
	for (int i = 0; i < NPATHS; i++)
		if (strcmp(path, paths[i].name) == 0)
			return paths[i].isa;
	return &hd_cpu_portable;
}

const struct hd_cpu_row *hd_cpu_table(enum hd_kernels kernels, const char *path)
{
	const struct hd_cpu_isa *isa = hd_cpu_isa_of(path);
	return kernels == HD_KERNELS_LIBRARY && hd_dnnl_present() ? isa->library_rows : isa->rows;
}

const struct hd_cpu_vector *hd_cpu_vectors(const char *path) { return hd_cpu_isa_of(path)->vector; }

void hd_cpu_thread_init(void) { hd_dnnl_thread_init(); }
bool hd_cpu_has_library(void) { return hd_dnnl_present(); }
