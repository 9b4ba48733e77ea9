#include "plan/comm.h"

#include <assert.h>
#include <string.h>

#include "base/philox.h"

const char *const hd_comm_order_names[HD_NCOMM_ORDERS] = {
#define X(id, text) [HD_COMM_##id] = text,
	HD_COMM_ORDERS(X)
#undef X
};

/* ---- reading ---- */

struct comm_words { const char *at; struct hd_arena *arena; struct hd_diag *diag; };

static enum hd_err refuse(const struct comm_words *w, const char *what)
{
	return hd_fail(w->diag, HD_E_INPUT, "\"%.40s\": %s", w->at, what);
}

static bool word(struct comm_words *w, const char *text)
{
	const size_t len = strlen(text);

	if (strncmp(w->at, text, len) != 0 || (w->at[len] && w->at[len] != ' '))
		return false;
	w->at += len;
	w->at += strspn(w->at, " ");
	return true;
}

/* Below 2^31, without a sign. */
static bool number(const char **at, uint32_t *out)
{
	uint64_t n = 0;
	const char *from = *at;

	for (; **at >= '0' && **at <= '9' && n <= INT32_MAX; (*at)++)
		n = n * 10 + (uint64_t)(**at - '0');
	*out = (uint32_t)n;
	return *at > from && n <= INT32_MAX;
}

/* An item: `n` numbers from `first` on, each `by` more. */
static bool item(const char **at, uint32_t *first, uint32_t *n, int *by)
{
	uint32_t second = 0;

	*n = 1;
	*by = 0;
	if (!number(at, first))
		return false;
	const char how = **at;
	if (how != '-' && how != 'x')
		return true;
	(*at)++;
	if (!number(at, &second))
		return false;
	if (how == 'x') {
		*n = *first;
		*first = second;
		return true;
	}
	*by = second < *first ? -1 : 1;
	*n = 1 + (*by < 0 ? *first - second : second - *first);
	return true;
}

/* How many there are; with `out`, into it. 0: it is no list, or a longer one than HD_COMM_BUCKETS. */
static uint32_t numbers(const char **at, uint32_t *out)
{
	uint64_t n = 0;

	do {
		uint32_t first, many;
		int by;
		*at += n > 0;             /* a comma */
		if (!item(at, &first, &many, &by) || !many || many > HD_COMM_BUCKETS - n)
			return 0;
		for (uint32_t i = 0; out && i < many; i++)
			out[n + i] = (uint32_t)((int64_t)first + (int64_t)by * i);
		n += many;
	} while (**at == ',');
	return **at && **at != ' ' ? 0 : (uint32_t)n;
}

static enum hd_err list(struct comm_words *w, uint32_t **out, uint32_t *n)
{
	const char *from = w->at;

	*n = numbers(&from, NULL);
	if (!*n)
		return refuse(w, "no list of numbers as 0-4,7,3x8");
	*out = hd_arena_take(w->arena, *n, sizeof **out);
	if (!*out)
		return hd_fail(w->diag, HD_E_NOMEM, "no memory for %u buckets", *n);
	(void)numbers(&w->at, *out);
	w->at += strspn(w->at, " ");
	return HD_OK;
}

static enum hd_err read_segments(struct comm_words *w, struct hd_comm *c)
{
	uint32_t n = 0;
	enum hd_err err = list(w, &c->nsegments, &n);

	if (err)
		return err;
	if (n != c->nbuckets)
		return refuse(w, "as many counts of segments as ranks");
	for (uint32_t b = 0; b < n; b++)
		if (!c->nsegments[b])
			return refuse(w, "a bucket has at least one segment");
	return HD_OK;
}

/* Of a link that is known. */
static enum hd_err read_link(struct comm_words *w, struct hd_comm_pace *link)
{
	if (!number(&w->at, &link->kib_per_s) || !link->kib_per_s || *w->at != ' ')
		return refuse(w, "KiB/s of 1 or more stand here, then nanoseconds");
	w->at += strspn(w->at, " ");
	if (!number(&w->at, &link->latency_ns) || (*w->at && *w->at != ' '))
		return refuse(w, "the nanoseconds of a latency stand here");
	w->at += strspn(w->at, " ");
	return HD_OK;
}

enum hd_err hd_comm_read(struct hd_comm *comm, const char *text, struct hd_arena *arena, struct hd_diag *diag)
{
	struct comm_words w = { text, arena, diag };
	struct hd_comm c = { .order = HD_COMM_FIFO };

	if (strlen(text) >= HD_COMM_TEXT)
		return hd_fail(diag, HD_E_INPUT, "more than %d bytes", HD_COMM_TEXT - 1);
	while (c.order < HD_NCOMM_ORDERS && !word(&w, hd_comm_order_names[c.order]))
		c.order++;
	if (c.order == HD_NCOMM_ORDERS)
		return refuse(&w, "no order");
	c.parts = word(&w, "parts");
	if (!word(&w, "ranks"))
		return refuse(&w, "ranks LIST stands here");
	enum hd_err err = list(&w, &c.rank, &c.nbuckets);
	for (uint32_t b = 0; b < c.nbuckets && !err; b++)
		if (c.rank[b] >= c.nbuckets)
			err = refuse(&w, "a rank is below the number of buckets");
	if (!err && word(&w, "segments"))
		err = read_segments(&w, &c);
	if (!err && word(&w, "link"))
		err = read_link(&w, &c.link);
	if (!err && *w.at)
		err = refuse(&w, "nothing more is known");
	if (!err)
		*comm = c;
	return err;
}

/* ---- printing ---- */

/* From place i on: how many numbers go on by `by`. */
static uint32_t run_of(const uint32_t *at, uint32_t n, uint32_t i, int by)
{
	uint32_t len = 1;

	while (i + len < n && (int64_t)at[i + len] == (int64_t)at[i + len - 1] + by)
		len++;
	return len;
}

static void put_list(const uint32_t *at, uint32_t n, struct hd_text *text)
{
	for (uint32_t i = 0, len; i < n; i += len) {
		const uint32_t same = run_of(at, n, i, 0), up = run_of(at, n, i, 1),
			down = run_of(at, n, i, -1);
		if (i)
			hd_text_add(text, ",");
		len = same > up ? same : up;
		len = len > down ? len : down;
		if (len == 1)
			hd_text_addf(text, "%u", at[i]);
		else if (len == same)
			hd_text_addf(text, "%ux%u", len, at[i]);
		else
			hd_text_addf(text, "%u-%u", at[i], at[i + len - 1]);
	}
}

void hd_comm_put(const struct hd_comm *c, struct hd_text *text)
{
	assert(c->nbuckets && c->order != HD_COMM_AUTO);
	hd_text_addf(text, "%s%s ranks ", hd_comm_order_names[c->order], c->parts ? " parts" : "");
	put_list(c->rank, c->nbuckets, text);
	if (c->nsegments) {
		hd_text_add(text, " segments ");
		put_list(c->nsegments, c->nbuckets, text);
	}
	if (c->link.kib_per_s)
		hd_text_addf(text, " link %u %u", c->link.kib_per_s, c->link.latency_ns);
}

/* ---- use ---- */

/* Below n. */
static uint32_t draw(uint32_t seed, uint32_t n, bool part, const struct hd_comm_turn *turn)
{
	const struct hd_philox x = hd_philox((uint32_t[]){ seed, (uint32_t)turn->step, turn->from, turn->to },
		hd_philox_key(turn->step >> 32, HD_RNG_USER));

	return (uint32_t)((uint64_t)x.word[part] * n >> 32);
}

uint32_t hd_comm_urgency(const struct hd_comm *c, uint32_t nbuckets, uint32_t bucket, bool part,
	const struct hd_comm_turn *turn)
{
	const bool decided = c && c->nbuckets == nbuckets;
	const uint32_t behind = nbuckets - 1 - bucket, rank = !decided ? behind :
		c->order == HD_COMM_RANDOM && turn ? draw(c->rank[bucket], nbuckets, part, turn) :
		c->rank[bucket];

	if (decided && c->parts)
		return 1 + 2 * rank + !part;
	return 1 + (part ? behind : nbuckets + rank);
}

uint32_t hd_comm_flight_bytes(const struct hd_comm *c)
{
	if (!c || !c->link.kib_per_s)
		return 0;
	const double bytes = c->link.kib_per_s * (1024 * 1e-9) *
		(2.0 * c->link.latency_ns + (double)HD_COMM_SLACK_NS);

	return bytes < HD_COMM_FLIGHT ? HD_COMM_FLIGHT : bytes < INT32_MAX ? (uint32_t)bytes : INT32_MAX;
}

uint64_t hd_comm_takes_ns(const struct hd_comm *c, uint64_t bytes)
{
	if (!c || !c->link.kib_per_s)
		return 0;
	const double ns = (double)bytes * (1e9 / 1024) / c->link.kib_per_s + c->link.latency_ns;

	return ns < 1 ? 1 : ns < 9e18 ? (uint64_t)ns : UINT64_C(9000000000000000000);
}
