#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/thread.h"
#include "worker/allreduce_bench_int.h"

struct member {
	const struct hd_allreduce_bench *bench;
	uint32_t me;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_allreduce sum;
	struct hd_collective_sum *by;     /* owned: [ncases]; NULL: there are none */
	uint32_t now;                     /* the case that is summed */
	uint64_t round;                   /* begun, of all cases: 1, 2, ... */
	bool is_over;
	int64_t end_ns;                   /* at member 0: when what is left is not summed; 0: never */
	struct hd_memory values, first;   /* first: what is put back before each round */
	uint8_t key[HD_ALLREDUCE_KEY];
	uint8_t peers[HD_ALLREDUCE_MEMBERS * HD_ADDR_CAP];
	bool has_key, has_peers, reported, dismissed;
	uint32_t nup;                     /* members */
	uint32_t ready_of;                /* at member 0: bits of members that are ready for the next round */
	uint64_t go;                      /* at others: the round that member 0 said may begin */
	enum hd_err err;
	struct hd_diag diag;
};

/* ---- the values, and what their sum must be ---- */

/* Of both signs and eight magnitudes, so that another order of adding has other bits. */
static float value_of(uint32_t member, uint64_t k)
{
	uint32_t h = (uint32_t)k * 2654435761u ^ (member + 1) * 0x9e3779b9u, bits;
	float value;

	h = (h ^ h >> 15) * 0x2c1b3c6du;
	h = (h ^ h >> 12) * 0x297a2d39u;
	bits = (h & 0x807fffff) | (120 + (h >> 28 & 7)) << 23;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static float sum_of(uint32_t low, uint32_t end, uint64_t k)
{
	uint32_t half = 1;

	if (end - low == 1)
		return value_of(low, k);
	while (half < end - low - half)
		half *= 2;
	return sum_of(low, low + half, k) + sum_of(low + half, end, k);
}

/* The ring: part i of a bucket begins with the values of member i, and each on the way adds its own. */
static float ring_of(uint32_t n, uint64_t len, uint64_t k)
{
	uint64_t at = k % HD_COLLECTIVE_BUCKET, left = len - k + at,
		size = left < HD_COLLECTIVE_BUCKET ? left : HD_COLLECTIVE_BUCKET;
	uint32_t part = (uint32_t)(at * n / size);

	while (size * (part + 1) / n <= at)
		part++;
	float sum = value_of(part, k);
	for (uint32_t i = 1; i < n; i++)
		sum += value_of((part + i) % n, k);
	return sum;
}

/* The binary tree: a member's own values, then those of its children 2 i + 1 and 2 i + 2. */
static float heap_of(uint32_t n, uint32_t i, uint64_t k)
{
	float sum = value_of(i, k);

	for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
		sum += heap_of(n, child, k);
	return sum;
}

static uint64_t bytes_of(const struct member *m)
{
	return m->by ? m->bench->cases[m->now].bytes : m->bench->bytes;
}

static float expected_of(const struct member *m, uint64_t k)
{
	enum hd_collective kind = m->by ? m->bench->cases[m->now].kind : HD_COLLECTIVE_DIRECT;

	if (kind == HD_COLLECTIVE_RING)
		return ring_of(m->bench->n, bytes_of(m) / sizeof(float), k);
	return kind == HD_COLLECTIVE_TREE ? heap_of(m->bench->n, 0, k) : sum_of(0, m->bench->n, k);
}

static enum hd_err compare(const struct member *m, struct hd_diag *diag)
{
	const float *values = m->values.at;

	for (uint64_t k = 0; k < bytes_of(m) / sizeof(float); k++) {
		float expected = expected_of(m, k);
		if (memcmp(&expected, &values[k], sizeof expected) != 0)
			return hd_fail(diag, HD_E_INTEGRITY,
				"element %llu of the sum at member %u is %.9g, not %.9g; the transport or "
				"the adding is wrong: "
				"tell us of it", (unsigned long long)k, m->me, (double)values[k],
				(double)expected);
	}
	return HD_OK;
}

/* ---- what the hub says ---- */

static void failed(struct member *m, enum hd_err err) { m->err = m->err ? m->err : err; }

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct member *m = self;
	m->nup += peer->worker < m->bench->n;
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct member *m = self;

	(void)why;
	if (worker == HD_ALLREDUCE_LEADER)
		m->dismissed = true;
	if (!m->reported)
		failed(m, hd_fail(&m->diag, HD_E_PEERLOST, "member %u lost %s %u: %s", m->me,
			worker == HD_ALLREDUCE_LEADER ? "the leader," : "member",
			worker, text));
}

/* OVER is said of benches that may be over before all is summed. */
static bool is_over_said(const struct member *m, const struct hd_message *message)
{
	return message->id == HD_SAYS_OVER && m->bench->budget_ns && !message->worker &&
		message->step == m->round + 1 && m->go < message->step;
}

/* The leader says START and PEERS once each, START while there is no other peer; of each round the others
 * say READY to member 0, once, and it says GO to them. None is a round ahead: READY for the one after the
 * next would need a GO that was not said. */
static void on_message(void *self, const struct hd_message *message)
{
	struct member *m = self;
	/* 0: it is no member */
	uint32_t bit = message->worker < m->bench->n ? 1u << message->worker : 0;
	bool leads = message->worker == HD_ALLREDUCE_LEADER, next = message->step == m->round + 1;

	if (message->id == HD_SAYS_READY && !m->me && bit && next && !(m->ready_of & bit))
		m->ready_of |= bit;
	else if ((message->id == HD_SAYS_GO && !message->worker && next && m->go < message->step) ||
		is_over_said(m, message)) {
		m->go = message->step;
		m->is_over = message->id == HD_SAYS_OVER;
	} else if (message->id == HD_SAYS_START && !m->has_key && message->len == sizeof m->key) {
		memcpy(m->key, message->bytes, sizeof m->key);
		m->has_key = true;
	} else if (message->id == HD_SAYS_PEERS && leads && !m->has_peers &&
		   message->len == m->bench->n * HD_ADDR_CAP) {
		memcpy(m->peers, message->bytes, message->len);
		m->has_peers = true;
	} else
		failed(m, hd_fail(&m->diag, HD_E_PROTOCOL,
			"member %u: message %u of %u bytes from %u has no place here", m->me,
			message->id, message->len, message->worker));
}

static void on_arrived(void *self, const struct hd_arrival *arrival)
{
	struct member *m = self;
	failed(m, m->by ? hd_collective_sum_arrived(&m->by[m->now], arrival, &m->diag) :
		hd_allreduce_arrived(&m->sum, arrival, &m->diag));
}

static void on_sent(void *self, const struct hd_sent *sent)
{
	struct member *m = self;
	failed(m, m->by ? hd_collective_sum_sent(&m->by[m->now], sent, &m->diag) :
		hd_allreduce_sent(&m->sum, sent, &m->diag));
}

static void on_suspect(void *self, uint32_t worker, int64_t silent_ms) { (void)self, (void)worker,
	(void)silent_ms; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self, (void)worker, (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }

/* ---- waiting ---- */

static bool has_key(const struct member *m) { return m->has_key; }
static bool has_peers(const struct member *m) { return m->has_peers; }
static bool all_up(const struct member *m) { return m->nup == m->bench->n - 1; }
static bool all_ready(const struct member *m) { return m->ready_of == (1u << m->bench->n) - 2; }
static bool may_go(const struct member *m) { return m->go == m->round + 1; }
static bool is_summed(const struct member *m)
{
	return m->by ? hd_collective_sum_done(&m->by[m->now]) : hd_allreduce_done(&m->sum);
}
static bool is_dismissed(const struct member *m) { return m->dismissed; }

static enum hd_err wait_until(struct member *m, bool (*is)(const struct member *m), const char *what)
{
	int64_t deadline_ns = hd_clock_now_ns(m->bench->clock) + HD_ALLREDUCE_PATIENCE_NS;
	struct hd_loop_event event;
	bool more = true;                 /* a round may have nothing to wait for */
	size_t n;

	while (!m->err && !is(m)) {
		int64_t now = hd_clock_now_ns(m->bench->clock);
		if (now >= deadline_ns)
			return hd_fail(&m->diag, HD_E_PEERLOST, "member %u waited %d s for %s", m->me,
				(int)(HD_ALLREDUCE_PATIENCE_NS / HD_NS_PER_S), what);
		failed(m, hd_hub_poll(&m->hub, more ? now : deadline_ns, &event, 1, &n, &m->diag));
		failed(m, m->by ? hd_collective_sum_turn(&m->by[m->now], &more, &m->diag) :
			hd_allreduce_turn(&m->sum, &more, &m->diag));
	}
	return m->err;
}

/* ---- life ---- */

/* One after the other: ids of a case follow those of the one before. */
static enum hd_err take_cases(struct member *m)
{
	uint32_t id = 0;
	enum hd_err err = HD_OK;

	m->by = hd_alloc(m->bench->ncases * sizeof *m->by);
	if (!m->by)
		return hd_fail(&m->diag, HD_E_NOMEM, "out of memory for %u cases", m->bench->ncases);
	memset(m->by, 0, m->bench->ncases * sizeof *m->by);
	for (uint32_t i = 0; i < m->bench->ncases && !err; i++) {
		const struct hd_allreduce_case *c = &m->bench->cases[i];
		err = hd_collective_sum_init(&m->by[i], &(struct hd_collective_sum_spec){ .hub = &m->hub,
			.me = m->me, .kind = c->kind, .shape = c->shape, .values = m->values.at,
			.len = c->bytes / sizeof(float), .first_id = id }, &m->diag);
		id += err ? 0 : hd_collective_sum_ids(&m->by[i]);
	}
	return err;
}

/* The rows of all cases are one channel. */
static enum hd_err open_cases(struct member *m, uint32_t peer)
{
	size_t n[2] = { 0, 0 };

	for (uint32_t i = 0; i < m->bench->ncases; i++)
		for (int out = 0; out < 2; out++)
			n[out] += hd_collective_sum_rows(&m->by[i], peer, out, NULL);
	struct hd_transfer *row = hd_alloc((n[0] + n[1] + 1) * sizeof *row), *at[2] = { row, row + n[0] };
	if (!row)
		return hd_fail(&m->diag, HD_E_NOMEM, "out of memory for %zu transfers", n[0] + n[1]);
	for (uint32_t i = 0; i < m->bench->ncases; i++)
		for (int out = 0; out < 2; out++)
			at[out] += hd_collective_sum_rows(&m->by[i], peer, out, at[out]);
	enum hd_err err = hd_hub_channel(&m->hub, peer, row, n[0], row + n[0], n[1], &m->diag);
	hd_free(row);
	return err;
}

static enum hd_err open_all(struct member *m)
{
	enum hd_err err = HD_OK;

	if (!m->by)
		return hd_allreduce_open(&m->sum, &m->diag);
	for (uint32_t i = 0; i < m->bench->n && !err; i++)
		if (i != m->me)
			err = open_cases(m, i);
	return err;
}

static enum hd_err take(struct member *m)
{
	uint64_t len = m->bench->bytes / sizeof(float);
	struct hd_hub_config config = hd_allreduce_config(m->bench, m->me, HD_ROLE_WORKER, m->key);
	struct hd_wire_events events = { m, on_up, on_lost, on_suspect, on_message, on_arrived, on_sent,
		on_epoch, on_epoch, on_probed };
	struct hd_cores cores;

	hd_cores_usable(&cores);
	config.spin = cores.n >= m->bench->n;
	hd_net_real(&m->net);
	enum hd_err err = hd_memory_take(m->bench->bytes, HD_MEMORY_TOUCH, &m->values, &m->diag);
	if (!err)
		err = hd_memory_take(m->bench->bytes, HD_MEMORY_TOUCH, &m->first, &m->diag);
	if (!err)
		err = hd_loop_init(&m->loop, m->bench->clock, &m->diag);
	if (!err)
		err = hd_hub_init(&m->hub, &config, &events, &m->loop, &m->net, &m->diag);
	if (!err)
		err = m->bench->ncases ? take_cases(m) : hd_allreduce_init(&m->sum,
			&(struct hd_allreduce_spec){
			&m->hub, m->me, m->bench->n, m->values.at, len }, &m->diag);
	for (uint64_t k = 0; k < len && !err; k++)
		((float *)m->first.at)[k] = value_of(m->me, k);
	return err;
}

static enum hd_err listen_there(struct member *m)
{
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	if (!hd_hub_names_hosts(m->bench->transport))
		snprintf(addr, sizeof addr, "unix:%s/%u", m->bench->folder, m->me);
	enum hd_err err = hd_hub_listen(&m->hub, m->bench->transport, addr, &m->diag);
	return err ? err : hd_hub_tell(&m->hub, HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, addr, sizeof addr,
		&m->diag);
}

static enum hd_err meet(struct member *m)
{
	char addr[HD_ADDR_CAP];

	hd_allreduce_leader_addr(m->bench, addr);
	hd_hub_epoch(&m->hub, 1, (struct hd_hash){ "all-reduce" });
	enum hd_err err = hd_hub_connect(&m->hub, HD_ALLREDUCE_LEADER, "unix", addr, &m->diag);
	if (!err)
		err = wait_until(m, has_key, "the leader");
	if (!err)
		err = listen_there(m);
	if (!err)
		err = wait_until(m, has_peers, "the addresses of the others");
	for (uint32_t i = 0; i < m->me && !err; i++) {
		memcpy(addr, m->peers + i * HD_ADDR_CAP, HD_ADDR_CAP);
		addr[HD_ADDR_CAP - 1] = 0;
		err = hd_hub_connect(&m->hub, i, m->bench->transport, addr, &m->diag);
	}
	if (!err)
		err = wait_until(m, all_up, "connections with the others");
	return err ? err : open_all(m);
}

/* All are about to begin the next round. */
static enum hd_err line_up(struct member *m)
{
	uint64_t next = m->round + 1;
	enum hd_err err;

	if (m->me) {
		err = hd_hub_tell(&m->hub, 0, HD_SAYS_READY, next, NULL, 0, &m->diag);
		return err ? err : wait_until(m, may_go, "the word to begin");
	}
	err = wait_until(m, all_ready, "the others to be ready");
	m->ready_of = 0;
	m->is_over = m->end_ns && hd_clock_now_ns(m->bench->clock) >= m->end_ns;
	for (uint32_t i = 1; i < m->bench->n && !err; i++)
		err = hd_hub_tell(&m->hub, i, m->is_over ? HD_SAYS_OVER : HD_SAYS_GO, next, NULL, 0,
			&m->diag);
	return err;
}

static enum hd_err one_round(struct member *m, uint64_t *ns)
{
	memcpy(m->values.at, m->first.at, bytes_of(m));
	enum hd_err err = m->by ? hd_collective_sum_prepare(&m->by[m->now], &m->diag) : HD_OK;
	if (!err)
		err = line_up(m);
	int64_t from_ns = hd_clock_now_ns(m->bench->clock);
	*ns = 0;
	if (err || m->is_over)
		return err;
	m->round++;
	err = m->by ? hd_collective_sum_begin(&m->by[m->now], &m->diag) : hd_allreduce_begin(&m->sum,
		&m->diag);
	if (!err)
		err = wait_until(m, is_summed, "the sums of a round");
	*ns = (uint64_t)(hd_clock_now_ns(m->bench->clock) - from_ns);
	return err;
}

static enum hd_err all_rounds(struct member *m, uint8_t *result)
{
	uint32_t ncases = m->bench->ncases ? m->bench->ncases : 1, warmup = m->bench->ncases ? 1 :
		HD_ALLREDUCE_WARMUP, last = warmup + m->bench->rounds - 1;
	enum hd_err err = HD_OK;

	m->end_ns = m->bench->budget_ns ? hd_clock_now_ns(m->bench->clock) + m->bench->budget_ns : 0;
	for (uint32_t i = 0; i < (last + 1) * ncases && !err && !m->is_over; i++) {
		uint32_t r = i / ncases;
		uint64_t ns;
		m->now = i % ncases;
		err = one_round(m, &ns);
		if (!err && !m->is_over && (r == 0 || r == last))
			err = compare(m, &m->diag);
		if (r >= warmup)
			hd_put64(result + (i - warmup * ncases) * sizeof ns, ns);
	}
	if (!err)
		err = hd_hub_tell(&m->hub, HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, result,
			hd_allreduce_bench_times(m->bench) * sizeof(uint64_t), &m->diag);
	m->reported = !err;
	return err ? err : wait_until(m, is_dismissed, "the leader's good-bye");
}

static void give(struct member *m)
{
	hd_hub_finish(&m->hub);
	hd_loop_finish(&m->loop);
	hd_allreduce_finish(&m->sum);
	for (uint32_t i = 0; m->by && i < m->bench->ncases; i++)
		hd_collective_sum_finish(&m->by[i]);
	hd_free(m->by);
	hd_memory_give(&m->values);
	hd_memory_give(&m->first);
}

enum hd_err hd_allreduce_bench_member(const struct hd_allreduce_bench *bench, uint32_t me,
	struct hd_diag *diag)
{
	struct member m = { .bench = bench, .me = me };
	struct hd_memory result = { 0 };

	enum hd_err err = take(&m);
	if (!err)
		err = meet(&m);
	if (!err)
		err = hd_memory_take(hd_allreduce_bench_times(bench) * sizeof(uint64_t), HD_MEMORY_TOUCH,
			&result, &m.diag);
	if (!err)
		err = all_rounds(&m, result.at);
	give(&m);
	hd_memory_give(&result);
	return err ? hd_fail(diag, err, "%s", m.diag.text) : HD_OK;
}
