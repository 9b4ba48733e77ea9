/* testing_hubs.h -- two or three hubs over one transport, in one process: simulated, or on the machine's
 * clock (for the room's tests). */
#ifndef HD_WIRE_TESTING_HUBS_H
#define HD_WIRE_TESTING_HUBS_H

#include <sys/stat.h>
#include <unistd.h>

#include "sys/loop.h"
#include "wire/hub.h"
#include "wire/peer.h"
#include "wire/testing.h"
#include "wire/transport.h"

/* On the machine's clock nothing is decided by T, and a machine that has other things to do is waited for. */
enum { HUBS = 3, T_MS = 1000, T_REAL_MS = 30000, TIMEOUT_S = 100 };

struct hubs_world {
	const char *row;
	bool simulated;
	struct hd_net real;
	struct hd_net_sim sim;
	struct hd_clock clock_real, *clock;
	struct hd_clock_sim clock_sim;
	struct hd_loop loops[HUBS];
	struct hd_net_host hosts[HUBS];
	struct hd_hub hubs[HUBS];
	struct wire_heard heard[HUBS];
	struct hd_hub_config config[HUBS];
	char addr[HUBS][HD_ADDR_CAP], folder[40];
	struct hd_diag diag;
};

static const struct hd_hash plan = { { 7 } };
static const char *const rows[] __attribute__((unused)) = {
#define X(name) #name,
	HD_WIRE_TRANSPORTS(X)
#undef X
};
static const uint8_t job_key[32] = "a key of the job, thirty-two by.";

static inline struct hd_net *net_of(struct hubs_world *w, int i) { return w->simulated ? &w->hosts[i].net :
	&w->real; }

static inline void start_hub(struct hubs_world *w, int i)
{
	struct hd_wire_events events = hear_with(&w->heard[i]);

	w->heard[i].clock = w->clock;
	assert_int_equal(hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i),
		&w->diag), HD_OK);
	snprintf(w->addr[i], sizeof w->addr[i], hd_hub_names_hosts(w->row) ? "tcp:127.0.0.1:0" : "unix:%s/%d",
		w->folder, i);
	CHECK(hd_hub_listen(&w->hubs[i], w->row, w->addr[i], &w->diag) == HD_OK, "%s", w->diag.text);
}

static inline struct hubs_world *enter(const char *row, int n)
{
	struct hubs_world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->row = row;
	w->simulated = !strcmp(row, "sim");
	hd_clock_real(&w->clock_real);
	hd_clock_sim(&w->clock_sim, HD_NS_PER_S, 0);
	w->clock = w->simulated ? &w->clock_sim.clock : &w->clock_real;
	hd_net_real(&w->real);
	if (w->simulated)
		assert_int_equal(hd_net_sim_init(&w->sim, w->clock, NULL, &w->diag), HD_OK);
	memcpy(w->folder, "/tmp/hd_hub.XXXXXX", 19);
	assert_non_null(mkdtemp(w->folder));
	for (int i = 0; i < HUBS; i++) {
		assert_int_equal(w->simulated ? hd_loop_sim_init(&w->loops[i], &w->clock_sim, &w->diag) :
			hd_loop_init(&w->loops[i], w->clock, &w->diag), HD_OK);
		hd_net_sim_host(&w->sim, (uint32_t)i, &w->loops[i], &w->hosts[i]);
		w->config[i] = (struct hd_hub_config){ .job = { { 1 } }, .job_hash = { { 2 } },
			.kernels = { { 3 } }, .worker = (uint32_t)i,
			.role = HD_ROLE_WORKER, .detect_ms = w->simulated ? T_MS : T_REAL_MS, .peers_cap = 8,
			.streams_cap = 64, .plaintext = true,
			.key = job_key, .key_len = 32 };
	}
	for (int i = 0; i < n; i++)
		start_hub(w, i);
	return w;
}

static inline void leave(struct hubs_world *w)
{
	for (int i = 0; i < HUBS; i++) {
		hd_hub_finish(&w->hubs[i]);
		hd_loop_finish(&w->loops[i]);
	}
	if (w->simulated)
		hd_net_sim_finish(&w->sim);
	assert_int_equal(rmdir(w->folder), 0);
	free(w);
}

/* One turn of the hub that is due first (simulated), or of each (real). False: nothing more can happen before
 * until_ns. */
static inline bool turn(struct hubs_world *w, int64_t until_ns)
{
	struct hd_loop_event other[8];
	size_t n;
	int first = -1;
	int64_t at = until_ns;

	for (int i = 0; i < HUBS; i++) {
		if (!w->hubs[i].impl)
			continue;
		if (!w->simulated) {
			assert_int_equal(hd_hub_poll(&w->hubs[i], hd_clock_now_ns(w->clock) + 200000, other,
				8, &n, &w->diag), HD_OK);
			continue;
		}
		int64_t due = hd_hub_due_ns(&w->hubs[i]), next = hd_loop_sim_next_ns(&w->loops[i]);
		due = next < due ? next : due;
		if (due < at) {
			at = due;
			first = i;
		}
	}
	if (!w->simulated)
		return hd_clock_now_ns(w->clock) < until_ns;
	if (first < 0) {
		hd_clock_wait_until(w->clock, until_ns);
		return false;
	}
	CHECK(hd_hub_poll(&w->hubs[first], at, other, 8, &n, &w->diag) == HD_OK, "%s", w->diag.text);
	return true;
}

static inline void run_for(struct hubs_world *w, int64_t ms)
{
	int64_t until = hd_clock_now_ns(w->clock) + ms * HD_NS_PER_MS;

	while (turn(w, until))
		;
}

/* Until *what reaches n. */
static inline void run_until(struct hubs_world *w, const uint32_t *what, uint32_t n, const char *name)
{
	int64_t until = hd_clock_now_ns(w->clock) + TIMEOUT_S * HD_NS_PER_S;

	while (*(const volatile uint32_t *)what < n)
		CHECK(turn(w, until) || *(const volatile uint32_t *)what >= n,
			"%s: waited too long for %s; lost: %s", w->row, name,
			w->heard[0].n_losts ? w->heard[0].losts[0].text : w->heard[1].n_losts ?
			w->heard[1].losts[0].text : "no peer");
}

static inline void meet(struct hubs_world *w, int a, int b)
{
	uint32_t ups_a = w->heard[a].n_ups, ups_b = w->heard[b].n_ups;

	CHECK(hd_hub_connect(&w->hubs[a], w->config[b].worker, w->row, w->addr[b], &w->diag) == HD_OK,
		"%s: %s", w->row, w->diag.text);
	run_until(w, &w->heard[a].n_ups, ups_a + 1, "up");
	run_until(w, &w->heard[b].n_ups, ups_b + 1, "up");
}

/* What worker says first; `crc`: by a way that is open to others. */
static inline void put_hello(const struct hubs_world *w, uint32_t worker, bool crc,
	uint8_t bytes[HD_FRAME_HEADER + hd_greeting_len])
{
	struct hd_greeting_payload hello = { HD_WIRE_VERSION, HD_WIRE_VERSION, worker, HD_ROLE_WORKER, T_MS,
		w->config[0].job,
		w->config[0].job_hash, w->config[0].kernels, { { 5 } } };

	hd_greeting_put(&hello, bytes + HD_FRAME_HEADER);
	struct hd_frame frame = { .type = HD_FRAME_HELLO, .len = hd_greeting_len };
	if (crc) {
		frame.flags = HD_FRAME_CRC;
		frame.payload_crc = hd_crc32c(0, bytes + HD_FRAME_HEADER, hd_greeting_len);
	}
	hd_frame_put(&frame, bytes);
}

static inline uint64_t closed(struct hubs_world *w, int i, enum hd_close why)
{
	struct hd_hub_stats stats;

	hd_hub_stats(&w->hubs[i], &stats);
	return stats.closed[why];
}

#endif
