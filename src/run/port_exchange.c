#include "run/port_exchange.h"

#include <math.h>

enum { PART, SUM, KINDS, MOST = HD_PORT_FLUID };

/* What goes from one worker to another of one bucket. */
struct port_message { double left, ready_ns; };        /* bytes; left 0: none, or it has arrived */

struct flow { uint32_t from, to; struct port_message *of; uint8_t kind; uint32_t bucket; double rate; };

struct port_flows {
	const struct hd_port_exchange *x;
	struct port_message *message;          /* [bucket][kind][from][to] */
	uint32_t *due;                    /* [bucket] messages of partial sums that its owner waits for */
	bool handed;                      /* rule 4 */
	struct flow flow[MOST * MOST]; uint32_t nflows;
	double now_ns, done_ns;
};

static struct port_message *at(struct port_flows *e, uint32_t bucket, uint8_t kind, uint32_t from,
	uint32_t to)
{
	return &e->message[((bucket * KINDS + kind) * MOST + from) * MOST + to];
}

static void send(struct port_flows *e, uint32_t bucket, uint32_t from, uint32_t to)
{
	const struct hd_port_bucket *of = &e->x->bucket[bucket];

	*at(e, bucket, SUM, from, to) = (struct port_message){ of->bytes,
		fmax(e->now_ns + e->x->late_ns, of->ready_ns[from]) };
}

/* The holder after this one in the line of the bucket, which its owner begins; the worker itself: none. */
static uint32_t next_of(const struct port_flows *e, uint32_t bucket, uint32_t worker)
{
	const struct hd_port_bucket *b = &e->x->bucket[bucket];
	const uint32_t n = e->x->nworkers;

	for (uint32_t i = 1; i < n && (worker + i) % n != b->owner; i++)
		if (b->holds[(worker + i) % n])
			return (worker + i) % n;
	return worker;
}

static bool all_hold(const struct port_flows *e, const struct hd_port_bucket *b)
{
	for (uint32_t w = 0; w < e->x->nworkers; w++)
		if (!b->holds[w] && w != b->owner)
			return false;
	return true;
}

/* Rule 3: worker `from` has the sum. */
static void pass_on(struct port_flows *e, uint32_t bucket, uint32_t from)
{
	const struct hd_port_bucket *b = &e->x->bucket[bucket];
	const uint32_t next = next_of(e, bucket, from);

	if (!all_hold(e, b)) {
		if (next != from)
			send(e, bucket, from, next);
		return;
	}
	for (uint32_t w = 0; w < e->x->nworkers && from == b->owner; w++)
		if (w != from)
			send(e, bucket, from, w);
}

/* Rule 4; false: there are none. */
static bool hand_out(struct port_flows *e)
{
	bool any = false;

	if (!e->x->apart || e->handed)
		return false;
	e->handed = true;
	for (uint32_t b = 0; b < e->x->nbuckets; b++) {
		const struct hd_port_bucket *of = &e->x->bucket[b];
		uint32_t last = of->owner;
		while (next_of(e, b, last) != last)
			last = next_of(e, b, last);
		for (uint32_t w = 0; w < e->x->nworkers; w++)
			if (w != of->owner && !of->holds[w]) {
				send(e, b, last, w);
				any = true;
			}
	}
	return any;
}

static void begin(struct port_flows *e)
{
	for (uint32_t b = 0; b < e->x->nbuckets; b++) {
		const struct hd_port_bucket *of = &e->x->bucket[b];
		for (uint32_t w = 0; w < e->x->nworkers; w++)
			if (w != of->owner && of->parts[w]) {
				*at(e, b, PART, w, of->owner) = (struct port_message){
					of->parts[w] * of->bytes, of->ready_ns[w] };
				e->due[b]++;
			}
	}
	/* of a bucket that no other has a part of: its sum is there when it is made */
	for (uint32_t b = 0; b < e->x->nbuckets; b++)
		if (!e->due[b]) {
			e->now_ns = -e->x->late_ns;
			pass_on(e, b, e->x->bucket[b].owner);
		}
	e->now_ns = 0;
}

/* Rule 1; and when the next message is ready. */
static double choose(struct port_flows *e)
{
	double next_ns = INFINITY;

	e->nflows = 0;
	for (uint32_t from = 0; from < e->x->nworkers; from++)
		for (uint32_t to = 0; to < e->x->nworkers; to++) {
			struct flow f = { .from = from, .to = to };
			for (uint8_t kind = 0; kind < KINDS; kind++)
				for (uint32_t b = 0; b < e->x->nbuckets; b++) {
					struct port_message *m = at(e, b, kind, from, to);
					if (m->left <= 0)
						continue;
					if (m->ready_ns > e->now_ns)
						next_ns = fmin(next_ns, m->ready_ns);
					else if (!f.of)
						f = (struct flow){ from, to, m, kind, b, 0 };
				}
			if (f.of)
				e->flow[e->nflows++] = f;
		}
	return next_ns;
}

/* Rule 2: the port that is shared most finely sets the rate of its flows, then the next of what is left. */
static void share(struct port_flows *e)
{
	double left[2][MOST];

	for (uint32_t w = 0; w < MOST; w++)
		left[0][w] = left[1][w] = 1 / e->x->ns_per_byte;
	for (uint32_t given = 0; given < e->nflows;) {
		uint32_t n[2][MOST] = { { 0 } }, side = 0, port = 0;
		double least = INFINITY;
		for (uint32_t i = 0; i < e->nflows; i++)
			if (e->flow[i].rate <= 0) {
				n[0][e->flow[i].from]++;
				n[1][e->flow[i].to]++;
			}
		for (uint32_t s = 0; s < 2; s++)
			for (uint32_t w = 0; w < MOST; w++)
				if (n[s][w] && left[s][w] / n[s][w] < least) {
					least = left[s][w] / n[s][w];
					side = s;
					port = w;
				}
		for (uint32_t i = 0; i < e->nflows; i++) {
			struct flow *f = &e->flow[i];
			if (f->rate > 0 || (side ? f->to : f->from) != port)
				continue;
			f->rate = least;
			left[0][f->from] -= least;
			left[1][f->to] -= least;
			given++;
		}
	}
}

static void arrive(struct port_flows *e, const struct flow *f)
{
	f->of->left = 0;
	e->done_ns = e->now_ns + e->x->late_ns;
	if (e->handed)
		return;
	if (f->kind == SUM || !--e->due[f->bucket])
		pass_on(e, f->bucket, f->to);
}

/* Until the first message has arrived or another is ready. Either time goes on to next_ns or one flow ends
 * at least, whatever rounding leaves of it: late in a long step a byte of a fast port takes no time that a
 * double can add. So turns are bounded by messages. */
static void go_on(struct port_flows *e, double next_ns)
{
	double until_ns = next_ns, end_ns[MOST * MOST];

	share(e);
	for (uint32_t i = 0; i < e->nflows; i++) {
		end_ns[i] = e->now_ns + e->flow[i].of->left / e->flow[i].rate;
		until_ns = fmin(until_ns, end_ns[i]);
	}
	const double ns = until_ns - e->now_ns;
	e->now_ns = until_ns;
	for (uint32_t i = 0; i < e->nflows; i++) {
		const struct flow *f = &e->flow[i];
		f->of->left -= f->rate * ns;
		/* one that would end together with the first has less than a millionth left */
		if (end_ns[i] <= until_ns || f->of->left <= 1e-6 * e->x->bucket[f->bucket].bytes)
			arrive(e, f);
	}
}

/* ---- rule 5 */

static double out_of(const struct hd_port_exchange *x, const struct hd_port_bucket *b, uint32_t worker)
{
	uint32_t holders = 0;

	for (uint32_t w = 0; w < x->nworkers; w++)
		holders += w != b->owner && (b->holds[w] || x->apart);
	return (worker == b->owner ? holders : b->parts[worker]) * b->bytes;
}

static double into(const struct hd_port_exchange *x, const struct hd_port_bucket *b, uint32_t worker)
{
	uint32_t parts = 0;

	for (uint32_t w = 0; w < x->nworkers; w++)
		parts += w != b->owner ? b->parts[w] : 0;
	return (worker == b->owner ? parts : b->holds[worker] || x->apart) * b->bytes;
}

/* When a worker's last byte has left and come. */
static double alone(const struct hd_port_exchange *x, uint32_t worker)
{
	double left_ns = 0, come_ns = 0;

	for (uint32_t b = 0; b < x->nbuckets; b++) {
		const struct hd_port_bucket *of = &x->bucket[b];
		const double out = out_of(x, of, worker), in = into(x, of, worker);
		left_ns = out > 0 ? fmax(left_ns, of->ready_ns[worker]) + out * x->ns_per_byte : left_ns;
		come_ns = in > 0 ? fmax(come_ns, of->ready_ns[worker]) + in * x->ns_per_byte : come_ns;
	}
	return fmax(left_ns, come_ns);
}

static double of_each(const struct hd_port_exchange *x)
{
	double done_ns = 0;

	for (uint32_t w = 0; w < x->nworkers; w++)
		done_ns = fmax(done_ns, alone(x, w));
	return done_ns > 0 ? done_ns + 2 * x->late_ns : 0;
}

enum hd_err hd_port_exchange_time(double *done_ns, const struct hd_port_exchange *x, struct hd_arena *arena,
	struct hd_diag *diag)
{
	if (x->nworkers > HD_PORT_FLUID || x->nbuckets > HD_PORT_BUCKETS) {
		*done_ns = of_each(x);
		return HD_OK;
	}
	struct port_flows *e = hd_arena_take(arena, 1, sizeof *e);
	struct port_message *message = hd_arena_take(arena, (size_t)x->nbuckets * KINDS * MOST * MOST + 1,
		sizeof *message);
	uint32_t *due = hd_arena_take(arena, (size_t)x->nbuckets + 1, sizeof *due);

	if (!e || !message || !due)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	*e = (struct port_flows){ .x = x, .message = message, .due = due };
	begin(e);
	for (;;) {
		const double next_ns = choose(e);
		if (e->nflows)
			go_on(e, next_ns);
		else if (next_ns < INFINITY)
			e->now_ns = next_ns;
		else if (!hand_out(e))
			break;
	}
	*done_ns = e->done_ns;
	return HD_OK;
}
