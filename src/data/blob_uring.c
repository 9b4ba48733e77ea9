#include <string.h>

#include "base/alloc.h"
#include "sys/uring.h"
#include "data/blob_file_int.h"

/* A file's requests by io_uring: a call has a ring of its own, so its thread alone has them all in flight;
 * stores that share rings have as many as there were calls at once.
 * What ends short or fails is read once more by pread, which knows the end of a file and says what is wrong.
 * Memory is not registered with the kernel: what may be locked is often too little for it. */

/* A ring, and memory for what goes through whole blocks. */
struct hd_uring_lane {
	struct hd_uring *ring;
	struct hd_pread_room room, again;
	struct hd_uring_lane *after;
};

/* The read that a slot has in flight: [offset, offset + len) of the file to `into`, `done` of it read; the
 * request begins `before` bytes into it. */
struct uring_slot {
	uint32_t request;
	uint8_t *into;
	size_t len, done, before;
	int64_t offset, began_ns;
	bool bounces, busy;
};

struct uring_call {
	struct hd_file_store *f;
	struct hd_uring_lane *lane;
	const struct hd_request *request;
	uint32_t n, next, depth, in_flight, failed;
	size_t stride;                    /* memory of a slot */
	struct uring_slot slot[HD_URING_DEPTH];
	enum hd_err err;                  /* of that one */
	struct hd_diag why;
	struct hd_diag *diag;
};

static uint64_t align_of(const struct hd_file_store *f) { return f->file.align ? f->file.align : 1; }

static size_t blocks_of(const struct hd_file_store *f, const struct hd_request *r)
{
	const uint64_t align = align_of(f), before = r->offset % align;

	return (size_t)((before + r->len + align - 1) / align * align);
}

static bool is_straight(const struct hd_file_store *f, const struct hd_request *r)
{
	return align_of(f) == 1 && r->nranges == 1 && r->range->offset <= r->offset;
}

static void begin(struct uring_call *c, uint32_t at)
{
	struct uring_slot *s = &c->slot[at];

	hd_uring_begin(c->lane->ring, at, &(struct hd_uring_read){ &c->f->file, s->into + s->done,
		(uint32_t)(s->len - s->done), s->offset + (int64_t)s->done });
}

static void begin_next(struct uring_call *c)
{
	const struct hd_request *r = &c->request[c->next];
	uint32_t at = 0;

	while (c->slot[at].busy)
		at++;
	const bool straight = is_straight(c->f, r);
	const size_t before = straight ? 0 : (size_t)(r->offset % align_of(c->f));
	c->slot[at] = (struct uring_slot){ .request = c->next++, .busy = true, .bounces = !straight,
		.into = straight ? (uint8_t *)r->range->into + (r->offset - r->range->offset) :
			(uint8_t *)c->lane->room.memory.at + at * c->stride,
		.len = straight ? (size_t)r->len : blocks_of(c->f, r), .before = before,
		.offset = (int64_t)(r->offset - before), .began_ns = hd_clock_now_ns(&c->f->clock) };
	c->in_flight++;
	begin(c, at);
}

/* All of it came, or pread says why not. */
static void end(struct uring_call *c, uint32_t at, bool failed)
{
	struct uring_slot *s = &c->slot[at];
	const struct hd_request *r = &c->request[s->request];
	struct hd_diag why = { "" };
	enum hd_err err = HD_OK;

	s->busy = false;
	c->in_flight--;
	if (failed || s->done < s->before + r->len)
		err = hd_pread_one(c->f, &c->lane->again, r, &why);
	else if (s->bounces)
		hd_ranges_put(r, r->offset, s->into + s->before, (size_t)r->len);
	hd_blob_served(&c->f->store, hd_clock_now_ns(&c->f->clock) - s->began_ns);
	if (!err)
		return;
	if (s->request < c->failed) {
		c->failed = s->request;
		c->err = err;
		c->why = why;
	}
	c->next = c->n;                   /* what is not under way is not begun */
}

static void take(struct uring_call *c, uint32_t at, int64_t got)
{
	struct uring_slot *s = &c->slot[at];

	if (got > 0)
		s->done += (size_t)got;
	if (got <= 0 || s->done >= s->len || (uint64_t)got % align_of(c->f))
		end(c, at, got < 0);      /* a direct read is not whole blocks at the end of a file alone */
	else
		begin(c, at);             /* it was short: the rest */
}

static enum hd_err run(struct uring_call *c)
{
	enum hd_err err = HD_OK;
	uint32_t at;
	int64_t got;

	while (!err && (c->next < c->n || c->in_flight)) {
		while (c->next < c->n && c->in_flight < c->depth)
			begin_next(c);
		err = hd_uring_wait(c->lane->ring, c->diag);
		while (!err && hd_uring_take(c->lane->ring, &at, &got))
			take(c, at, got);
	}
	return err || !c->err ? err : hd_fail(c->diag, c->err, "%s", c->why.text);
}

static void lane_close(struct hd_uring_lane *lane)
{
	hd_uring_close(lane->ring);
	hd_memory_give(&lane->room.memory);
	hd_memory_give(&lane->again.memory);
	hd_free(lane);
}

static struct hd_file_store *owner_of(struct hd_file_store *f)
{
	return f->store.rings ? (struct hd_file_store *)f->store.rings : f;
}

static struct hd_uring_lane *lane_take(struct hd_file_store *reader, struct hd_diag *diag)
{
	struct hd_file_store *f = owner_of(reader);

	hd_lock_take(&f->lock);
	struct hd_uring_lane *lane = f->lane;
	if (lane)
		f->lane = lane->after;
	hd_lock_give(&f->lock);
	if (lane)
		return lane;
	lane = hd_alloc(sizeof *lane);
	if (!lane)
		return NULL;
	memset(lane, 0, sizeof *lane);
	if (!hd_uring_open(&lane->ring, HD_URING_DEPTH, diag))
		return lane;
	hd_free(lane);
	return NULL;
}

static void lane_give(struct hd_file_store *reader, struct hd_uring_lane *lane)
{
	struct hd_file_store *f = owner_of(reader);

	hd_lock_take(&f->lock);
	lane->after = f->lane;
	f->lane = lane;
	hd_lock_give(&f->lock);
}

/* The ring is not kept: thousands of files may be open that are not read yet. */
bool hd_blob_uring_probe(struct hd_file_store *f)
{
	struct hd_diag why = { "" };
	struct hd_uring_lane *lane = lane_take(f, &why);

	if (lane)
		lane_close(lane);
	else
		(void)hd_fail(&f->store.by_why, HD_E_REFUSED, "%.300s: files are read by threads",
			why.text[0] ? why.text : "no memory for io_uring");
	return lane != NULL;
}

enum hd_err hd_blob_uring_read(struct hd_file_store *f, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	struct uring_call c = { .f = f, .request = request, .n = n, .failed = n, .diag = diag,
		.depth = depth < HD_URING_DEPTH ? depth : HD_URING_DEPTH };
	struct hd_uring_lane *lane = c.lane = lane_take(f, NULL);

	if (!lane)
		return HD_E_REFUSED;
	for (uint32_t i = 0; i < n; i++)
		if (!is_straight(f, &request[i]) && blocks_of(f, &request[i]) > c.stride)
			c.stride = blocks_of(f, &request[i]);
	c.depth = c.depth < n ? c.depth : n;
	enum hd_err err = c.stride ? hd_pread_room(&lane->room, c.depth * c.stride, diag) : HD_OK;
	if (!err)
		err = run(&c);
	if (c.in_flight)
		lane_close(lane);         /* its ring fails; closing it waits for what is in flight */
	else
		lane_give(f, lane);
	return err;
}

void hd_blob_uring_close(struct hd_file_store *f)
{
	for (struct hd_uring_lane *lane = f->lane, *after; lane; lane = after) {
		after = lane->after;
		lane_close(lane);
	}
	f->lane = NULL;
}
