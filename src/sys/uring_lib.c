#include "sys/uring.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "sys/file.h"

struct hd_uring {
	struct io_uring ring;
	struct hd_uring_read read[HD_URING_DEPTH];
	uint32_t depth, in_flight;        /* begun and not taken */
};

enum hd_err hd_uring_open(struct hd_uring **out, uint32_t depth, struct hd_diag *diag)
{
	struct hd_uring *r = hd_alloc(sizeof *r);

	*out = NULL;
	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "no memory for reads by io_uring");
	memset(r, 0, sizeof *r);
	r->depth = depth < 1 ? 1 : depth < HD_URING_DEPTH ? depth : HD_URING_DEPTH;
	int error = HD_FAILPOINT(URING_OPEN);
	error = error ? error : -io_uring_queue_init(r->depth, &r->ring, 0);
	if (error) {
		hd_free(r);
		return hd_fail(diag, HD_E_REFUSED, "io_uring cannot be used here (%s)", strerror(error));
	}
	*out = r;
	return HD_OK;
}

void hd_uring_close(struct hd_uring *r)
{
	if (!r)
		return;
	hd_uring_drain(r);
	io_uring_queue_exit(&r->ring);
	hd_free(r);
}

/* The queue has an entry for each slot, and what was begun before is handed over when it is full. */
static void queue(struct hd_uring *r, uint32_t slot)
{
	const struct hd_uring_read *read = &r->read[slot];
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	while (!sqe) {
		(void)io_uring_submit(&r->ring);
		sqe = io_uring_get_sqe(&r->ring);
	}
	io_uring_prep_read(sqe, read->file->id, read->into, read->len, (uint64_t)read->offset);
	io_uring_sqe_set_data64(sqe, slot);
}

void hd_uring_begin(struct hd_uring *r, uint32_t slot, const struct hd_uring_read *read)
{
	assert(slot < r->depth && r->in_flight < r->depth);
	r->read[slot] = *read;
	r->in_flight++;
	queue(r, slot);
}

enum hd_err hd_uring_wait(struct hd_uring *r, struct hd_diag *diag)
{
	int n;

	if (!r->in_flight)
		return HD_OK;
	do
		n = io_uring_submit_and_wait(&r->ring, 1);
	while (n == -EINTR || n == -EAGAIN || n == -EBUSY);
	return n >= 0 ? HD_OK : hd_fail_errno(diag, -n, "wait for", "reads by io_uring");
}

bool hd_uring_take(struct hd_uring *r, uint32_t *slot, int64_t *got)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&r->ring, &cqe)) {
		*slot = (uint32_t)io_uring_cqe_get_data64(cqe);
		*got = cqe->res;
		io_uring_cqe_seen(&r->ring, cqe);
		if (*got == -EINTR || *got == -EAGAIN) {
			queue(r, *slot);
			continue;
		}
		const int error = HD_FAILPOINT(BLOB_READ);
		*got = error ? -error : *got;
		r->in_flight--;
		return true;
	}
	return false;
}

void hd_uring_drain(struct hd_uring *r)
{
	uint32_t slot;
	int64_t got;

	while (r->in_flight && !hd_uring_wait(r, NULL))
		while (hd_uring_take(r, &slot, &got))
			;
}
