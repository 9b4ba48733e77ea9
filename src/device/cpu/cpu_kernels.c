#include "device/cpu/cpu_kernels.h"

#include <string.h>

#include "device/bf16.h"
#include "device/cpu/bf16_rows.h"
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

	if (kernels == HD_KERNELS_BF16)
		return isa->bf16_rows;
	return kernels == HD_KERNELS_LIBRARY && hd_dnnl_present() ? isa->library_rows : isa->rows;
}

const struct hd_cpu_vector *hd_cpu_vectors(const char *path) { return hd_cpu_isa_of(path)->vector; }

/* Rounding, ties, subnormals of all kinds, the order of the pair: one answer each that differs from those of
 * other rules. */
static bool answers_as_defined(void)
{
	static const struct { float sum, a[2], b[2]; } asked[] = {
		{ 1, { 0x1p-24f, 0x1p-24f }, { 1, 1 } },                /* rounded after each term */
		{ -1, { 1, 0x1p-25f }, { 1, 1 } },                      /* the odd term first */
		{ 0x1p24f, { 1, 1 }, { 1, 1 } }, { 0, { 0x1p-130f, 0 }, { 0x1p20f, 0 } },
		{ 0, { 0x1p-70f, 0 }, { 0x1p-60f, 0 } }, { 0x1p-130f, { 0, 0 }, { 0, 0 } },
		{ 0x1p-126f, { -0x1p-64f, 0 }, { 0x1p-63f, 0 } }, { 3, { 0x1.02p0f, 7 }, { 0x1.fep9f, -2 } },
	};
	enum { NASKED = sizeof asked / sizeof asked[0] };
	uint32_t a[16] = { 0 }, b[16] = { 0 };
	float sum[16] = { 0 }, got[16], want[16] = { 0 };

	_Static_assert(NASKED <= 16, "a register");
	for (int i = 0; i < NASKED; i++) {
		sum[i] = asked[i].sum;
		a[i] = hd_bits_of_f32(asked[i].a[1]) | hd_bits_of_f32(asked[i].a[0]) >> 16;
		b[i] = hd_bits_of_f32(asked[i].b[1]) | hd_bits_of_f32(asked[i].b[0]) >> 16;
		want[i] = hd_bf16_pair(sum[i], asked[i].a, asked[i].b);
	}
	hd_bf16_unit(sum, a, b, got);
	return memcmp(got, want, sizeof got) == 0;
}

bool hd_cpu_has_bf16(const char *path)
{
	return hd_cpu_isa_of(path)->bf16_rows && has_avx512() && __builtin_cpu_supports("avx512bf16") &&
		answers_as_defined();
}

void hd_cpu_thread_init(void) { hd_dnnl_thread_init(); }
bool hd_cpu_has_library(void) { return hd_dnnl_present(); }
