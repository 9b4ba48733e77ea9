#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/file.h"

/* ---- the heap of timers and posts, by (at_ns, sequence): both rows use it ---- */

static bool earlier(const struct hd_loop_timer *a, const struct hd_loop_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static void sift_up(struct hd_loop *loop, size_t i)
{
	struct hd_loop_timer moved = loop->timers[i];

	for (; i && earlier(&moved, &loop->timers[(i - 1) / 2]); i = (i - 1) / 2)
		loop->timers[i] = loop->timers[(i - 1) / 2];
	loop->timers[i] = moved;
}

static void sift_down(struct hd_loop *loop, size_t i)
{
	struct hd_loop_timer moved = loop->timers[i];

	for (size_t child; (child = 2 * i + 1) < loop->n_timers; i = child) {
		child += child + 1 < loop->n_timers && earlier(&loop->timers[child + 1],
			&loop->timers[child]);
		if (!earlier(&loop->timers[child], &moved))
			break;
		loop->timers[i] = loop->timers[child];
	}
	loop->timers[i] = moved;
}

static enum hd_err push(struct hd_loop *loop, struct hd_loop_timer timer, struct hd_diag *diag)
{
	if (loop->n_timers == HD_LOOP_TIMERS)
		return hd_fail(diag, HD_E_NOSPACE,
			"the loop holds %d timers already; a bug of its caller",
			HD_LOOP_TIMERS);
	timer.sequence = ++loop->sequence;
	loop->timers[loop->n_timers] = timer;
	sift_up(loop, loop->n_timers++);
	return HD_OK;
}

static struct hd_loop_timer drop(struct hd_loop *loop, size_t i)
{
	struct hd_loop_timer gone = loop->timers[i];

	loop->timers[i] = loop->timers[--loop->n_timers];
	if (i < loop->n_timers) {
		sift_up(loop, i);
		sift_down(loop, i);
	}
	return gone;
}

/* What is due, in order; a post to an id that is not watched, or not for this, is dropped. */
static size_t take_due(struct hd_loop *loop, int64_t now_ns, struct hd_loop_event *out, size_t cap)
{
	size_t n = 0;

	while (n < cap && loop->n_timers && loop->timers[0].at_ns <= now_ns) {
		struct hd_loop_timer due = drop(loop, 0);
		unsigned what = due.what;
		if (due.id >= 0)
			what &= loop->watched[due.id].interest ?
				loop->watched[due.id].interest | HD_LOOP_LOST : 0;
		if (what)
			out[n++] = (struct hd_loop_event){ what,
				due.id >= 0 ? loop->watched[due.id].tag : due.tag };
	}
	return n;
}

/* ---- epoll ---- */

enum { BATCH = 64 };

static enum hd_err epoll_watch(struct hd_loop *loop, int id, unsigned interest, struct hd_diag *diag)
{
	unsigned had = loop->watched[id].interest;
	struct epoll_event event = { .events = (interest & HD_LOOP_READ ? EPOLLIN | EPOLLRDHUP : 0u) |
		(interest & HD_LOOP_WRITE ? EPOLLOUT : 0u),
				     .data.fd = id };
	int what = !interest ? EPOLL_CTL_DEL : had ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (!interest && !had)
		return HD_OK;
	if (epoll_ctl(loop->epoll_fd, what, id, &event) && interest)
		return hd_fail_errno(diag, errno, "watch", "a descriptor");
	return HD_OK;
}

static unsigned what_of(uint32_t events, unsigned interest)
{
	unsigned what = (events & (EPOLLIN | EPOLLRDHUP) ? HD_LOOP_READ : 0u) | (events & EPOLLOUT ?
		HD_LOOP_WRITE : 0u);

	return (what & interest) | (events & (EPOLLERR | EPOLLHUP) ? HD_LOOP_LOST : 0u);
}

/* Rounded up: a wait that ends before its time would spin. */
static int wait_ms(struct hd_loop *loop, int64_t at_ns)
{
	if (at_ns == INT64_MAX)
		return -1;
	int64_t left = at_ns - hd_clock_now_ns(loop->clock);
	int64_t ms = left <= 0 ? 0 : left / HD_NS_PER_MS + (left % HD_NS_PER_MS > 0);
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static enum hd_err epoll_collect(struct hd_loop *loop, int64_t at_ns, struct hd_loop_event *out, size_t cap,
	size_t *n, struct hd_diag *diag)
{
	struct epoll_event events[BATCH];
	uint64_t wakes;

	*n = 0;
	const int ms = wait_ms(loop, at_ns);
	if (ms && loop->rest)
		loop->rest(loop->rest_self, true);
	const int got = epoll_wait(loop->epoll_fd, events, cap < BATCH ? (int)cap : BATCH, ms), error = errno;
	if (ms && loop->rest)
		loop->rest(loop->rest_self, false);
	if (got < 0 && error == EINTR) {
		out[(*n)++] = (struct hd_loop_event){ HD_LOOP_WAKE, 0 };
		return HD_OK;
	}
	if (got < 0)
		return hd_fail_errno(diag, error, "wait for", "descriptors");
	for (int i = 0; i < got; i++) {
		int id = events[i].data.fd;
		if (id == loop->wake_fd) {
			ssize_t r = read(loop->wake_fd, &wakes, sizeof wakes);
			(void)r;        /* EAGAIN: another wake was read together with this one */
			out[(*n)++] = (struct hd_loop_event){ HD_LOOP_WAKE, 0 };
			continue;
		}
		out[(*n)++] = (struct hd_loop_event){ what_of(events[i].events, loop->watched[id].interest),
			loop->watched[id].tag };
	}
	return HD_OK;
}

static void epoll_wake(struct hd_loop *loop)
{
	uint64_t one = 1;
	ssize_t r;

	do {
		r = write(loop->wake_fd, &one, sizeof one);
	/* EAGAIN: 2^64 - 2 wakes are pending, one more says nothing */
	} while (r < 0 && errno == EINTR);
}

static void epoll_finish(struct hd_loop *loop)
{
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
}

static const struct hd_loop_ops epoll_ops = { "epoll", epoll_watch, epoll_collect, epoll_wake, epoll_finish };

/* ---- the simulation ---- */

static enum hd_err sim_watch(struct hd_loop *loop, int id, unsigned interest, struct hd_diag *diag)
{
	if (!(interest & HD_LOOP_WRITE) || loop->watched[id].interest & HD_LOOP_WRITE)
		return HD_OK;
	return push(loop, (struct hd_loop_timer){ .at_ns = loop->sim->now_ns, .id = id,
		.what = HD_LOOP_WRITE }, diag);
}

/* Time jumps to the next timer or post, or to the caller's deadline; with neither it stands
 * still: a simulated wait for ever with nothing to come is the end of the simulation. */
static enum hd_err sim_collect(struct hd_loop *loop, int64_t at_ns, struct hd_loop_event *out, size_t cap,
	size_t *n, struct hd_diag *diag)
{
	(void)diag;
	(void)cap;
	*n = 0;
	if (atomic_exchange(&loop->woken, false)) {
		out[(*n)++] = (struct hd_loop_event){ HD_LOOP_WAKE, 0 };
		return HD_OK;
	}
	int64_t next = loop->n_timers && loop->timers[0].at_ns < at_ns ? loop->timers[0].at_ns : at_ns;
	if (next != INT64_MAX)
		hd_clock_wait_until(loop->clock, next);
	return HD_OK;
}

static void sim_wake(struct hd_loop *loop) { atomic_store(&loop->woken, true); }
static void sim_finish(struct hd_loop *loop) { (void)loop; }

static const struct hd_loop_ops sim_ops = { "simulated", sim_watch, sim_collect, sim_wake, sim_finish };

/* ---- both ---- */

static enum hd_err take_tables(struct hd_loop *loop, struct hd_diag *diag)
{
	loop->timers = hd_alloc(HD_LOOP_TIMERS * sizeof *loop->timers);
	loop->watched = hd_alloc(HD_LOOP_WATCHED * sizeof *loop->watched);
	if (!loop->timers || !loop->watched) {
		hd_loop_finish(loop);
		return hd_fail(diag, HD_E_NOMEM, "out of memory for an event loop");
	}
	memset(loop->watched, 0, HD_LOOP_WATCHED * sizeof *loop->watched);
	return HD_OK;
}

enum hd_err hd_loop_init(struct hd_loop *loop, struct hd_clock *real, struct hd_diag *diag)
{
	*loop = (struct hd_loop){ .ops = &epoll_ops, .clock = real, .epoll_fd = -1, .wake_fd = -1 };
	enum hd_err err = take_tables(loop, diag);
	if (err)
		return err;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = loop->epoll_fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = loop->wake_fd };
	if (loop->wake_fd < 0 || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event)) {
		err = hd_fail_errno(diag, errno, "make", "an event loop");
		hd_loop_finish(loop);
	}
	return err;
}

enum hd_err hd_loop_sim_init(struct hd_loop *loop, struct hd_clock_sim *clock, struct hd_diag *diag)
{
	*loop = (struct hd_loop){ .ops = &sim_ops, .clock = &clock->clock, .sim = clock, .epoll_fd = -1,
		.wake_fd = -1 };
	return take_tables(loop, diag);
}

void hd_loop_finish(struct hd_loop *loop)
{
	if (!loop->ops)
		return;
	loop->ops->finish(loop);
	hd_free(loop->timers);
	hd_free(loop->watched);
	*loop = (struct hd_loop){ 0 };
}

enum hd_err hd_loop_watch(struct hd_loop *loop, int id, unsigned interest, uint64_t tag, struct hd_diag *diag)
{
	assert(interest && !(interest & ~(unsigned)(HD_LOOP_READ | HD_LOOP_WRITE)));
	if (id < 0 || id >= HD_LOOP_WATCHED)
		return hd_fail(diag, HD_E_NOSPACE,
			"the loop watches descriptors below %d, not %d; open fewer files", HD_LOOP_WATCHED,
			id);
	enum hd_err err = loop->ops->watch(loop, id, interest, diag);
	if (err)
		return err;
	loop->watched[id].tag = tag;
	loop->watched[id].interest = interest;
	return HD_OK;
}

void hd_loop_unwatch(struct hd_loop *loop, int id)
{
	if (id < 0 || id >= HD_LOOP_WATCHED)
		return;
	enum hd_err err = loop->ops->watch(loop, id, 0, NULL);
	assert(!err);
	(void)err;
	loop->watched[id].interest = 0;
}

enum hd_err hd_loop_timer_at(struct hd_loop *loop, int64_t at_ns, uint64_t tag, uint64_t *timer,
	struct hd_diag *diag)
{
	enum hd_err err = push(loop, (struct hd_loop_timer){ .at_ns = at_ns, .tag = tag, .id = -1,
		.what = HD_LOOP_TIMER }, diag);

	if (!err)
		*timer = loop->sequence;
	return err;
}

void hd_loop_timer_cancel(struct hd_loop *loop, uint64_t timer)
{
	for (size_t i = 0; i < loop->n_timers; i++)
		if (loop->timers[i].sequence == timer && loop->timers[i].id < 0) {
			drop(loop, i);
			return;
		}
}

void hd_loop_wake(struct hd_loop *loop) { loop->ops->wake(loop); }

enum hd_err hd_loop_poll(struct hd_loop *loop, int64_t at_ns, struct hd_loop_event *out, size_t cap,
	size_t *n, struct hd_diag *diag)
{
	size_t due, ready = 0;

	assert(cap >= 1);
	do {
		due = take_due(loop, hd_clock_now_ns(loop->clock), out, cap);
		int64_t until = due ? 0 : loop->n_timers &&
			loop->timers[0].at_ns < at_ns ? loop->timers[0].at_ns : at_ns;
		if (due < cap) {
			enum hd_err err = loop->ops->wait(loop, until, out + due, cap - due, &ready, diag);
			if (err)
				return err;
		}
		if (!due && !ready)
			due = take_due(loop, hd_clock_now_ns(loop->clock), out, cap);
	} while (!due && !ready && hd_clock_now_ns(loop->clock) < at_ns &&
		(at_ns != INT64_MAX || !loop->sim || loop->n_timers));
	*n = due + ready;
	return HD_OK;
}

enum hd_err hd_loop_sim_post(struct hd_loop *loop, int64_t at_ns, int id, unsigned what, struct hd_diag *diag)
{
	assert(loop->sim && id >= 0 && id < HD_LOOP_WATCHED);
	return push(loop, (struct hd_loop_timer){ .at_ns = at_ns, .id = id, .what = what }, diag);
}

int64_t hd_loop_sim_next_ns(const struct hd_loop *loop)
{
	assert(loop->sim);
	return atomic_load(&loop->woken) ? INT64_MIN : loop->n_timers ? loop->timers[0].at_ns : INT64_MAX;
}
