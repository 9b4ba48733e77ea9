/* Without liburing. */
#include "sys/uring.h"

enum hd_err hd_uring_open(struct hd_uring **ring, uint32_t depth, struct hd_diag *diag)
{
	(void)depth;
	*ring = NULL;
	return hd_fail(diag, HD_E_REFUSED, "this build has no io_uring: it was made without liburing "
		"(liburing-dev)");
}

void hd_uring_close(struct hd_uring *ring) { (void)ring; }
void hd_uring_begin(struct hd_uring *ring, uint32_t slot, const struct hd_uring_read *read)
{
	(void)ring, (void)slot, (void)read;
}

enum hd_err hd_uring_wait(struct hd_uring *ring, struct hd_diag *diag)
{
	(void)ring;
	return hd_fail(diag, HD_E_REFUSED, "this build has no io_uring");
}

bool hd_uring_take(struct hd_uring *ring, uint32_t *slot, int64_t *got)
{
	(void)ring, (void)slot, (void)got;
	return false;
}

void hd_uring_drain(struct hd_uring *ring) { (void)ring; }
