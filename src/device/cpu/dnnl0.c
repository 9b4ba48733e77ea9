#include "device/cpu/dnnl.h"

/* Without the library nothing is ever made: library.c asks hd_dnnl_present() first. */

bool hd_dnnl_present(void) { return false; }
void hd_dnnl_thread_init(void) {}

static enum hd_err absent(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_REFUSED,
		"this build has no oneDNN; install libdnnl-dev and build again, or set kernels: portable");
}

enum hd_err hd_dnnl_matmul_make(struct hd_dnnl **made, const struct hd_dnnl_matmul *shape,
	struct hd_diag *diag)
{
	(void)made;
	(void)shape;
	return absent(diag);
}

enum hd_err hd_dnnl_conv_make(struct hd_dnnl **made, const struct hd_dnnl_conv *shape, struct hd_diag *diag)
{
	(void)made;
	(void)shape;
	return absent(diag);
}

void hd_dnnl_destroy(struct hd_dnnl *made) { (void)made; }
size_t hd_dnnl_scratch(const struct hd_dnnl *made) { (void)made; return 0; }

void hd_dnnl_run(const struct hd_dnnl *made, const void *a, const void *b, void *out, void *scratch)
{
	(void)made;
	(void)a;
	(void)b;
	(void)out;
	(void)scratch;
}
