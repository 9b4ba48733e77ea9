#include "sys/socket.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/clock.h"
#include "sys/loop.h"

enum { NO_END = -1, PARCELS = 256 };

/* Bytes of one write, not to be seen before at_ns. */
struct parcel { int64_t at_ns; size_t len; };

enum state {
	FREE,             /* unused */
	/* `peer` unused; connections that wait are ends in WAITING whose `listener` is this */
	LISTENING,
	WAITING,          /* the far end of a connect, not accepted yet; it takes bytes already */
	OPEN,
	ENDED,            /* the peer closed: its bytes can be read, then there is the end */
};

/* One socket, with what is under way to it. */
struct hd_net_end {
	enum state state;
	int peer, listener;
	bool taken;                       /* a hd_sock of it exists */
	bool mute;                        /* what it writes is lost, without an error */
	const struct hd_net_host *host;   /* whose socket it is */
	int64_t born_ns;                  /* before, a connect is under way */
	int64_t cut_ns;                   /* from then on the connection is gone; INT64_MAX: it is not */
	int64_t last_ns;                  /* arrival of the last parcel: none overtakes */
	size_t first_parcel, n_parcels, first_byte, n_bytes;
	struct parcel parcels[PARCELS];
	uint8_t bytes[HD_NET_SIM_QUEUE];
	char addr[HD_ADDR_CAP];
};

static struct hd_net_sim *sim_of(struct hd_net *net) { return ((struct hd_net_host *)net)->sim; }
static struct hd_net_host *host_of(struct hd_net *net) { return (struct hd_net_host *)net; }
static int64_t now(struct hd_net_sim *sim) { return hd_clock_now_ns(sim->clock); }

static int end_new(struct hd_net_sim *sim, enum state state, struct hd_diag *diag, enum hd_err *err)
{
	for (int i = 0; i < HD_NET_SIM_SOCKS; i++)
		if (sim->ends[i].state == FREE) {
			memset(&sim->ends[i], 0, offsetof(struct hd_net_end, parcels));
			sim->ends[i].state = state;
			sim->ends[i].peer = sim->ends[i].listener = NO_END;
			sim->ends[i].cut_ns = INT64_MAX;
			return i;
		}
	*err = hd_fail(diag, HD_E_REFUSED, "the simulated net holds %d sockets already", HD_NET_SIM_SOCKS);
	return NO_END;
}

/* The loop, if there is one, hears of it; a full loop shows as a stalled simulation in the test. */
static void post(struct hd_net_sim *sim, int64_t at_ns, int id, unsigned what)
{
	if (id == NO_END || !sim->ends[id].host->loop)
		return;
	enum hd_err err = hd_loop_sim_post(sim->ends[id].host->loop, at_ns, id, what, NULL);
	assert(!err);
	(void)err;
}

static int listener_at(const struct hd_net_sim *sim, const char *addr)
{
	for (int i = 0; i < HD_NET_SIM_SOCKS; i++)
		if (sim->ends[i].state == LISTENING && !strcmp(sim->ends[i].addr, addr))
			return i;
	return NO_END;
}

static enum hd_err sim_listen(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);
	enum hd_err err = HD_OK;

	if (listener_at(sim, sock->addr) != NO_END)
		return hd_fail(diag, HD_E_REFUSED,
			"cannot listen on %s: it is in use; choose another address", sock->addr);
	int id = end_new(sim, LISTENING, diag, &err);
	if (err)
		return err;
	memcpy(sim->ends[id].addr, sock->addr, HD_ADDR_CAP);
	sim->ends[id].host = host_of(net);
	sim->ends[id].taken = true;
	sock->id = id;
	return HD_OK;
}

static struct hd_net_fate fate_of(struct hd_net_sim *sim, uint32_t from, uint32_t to, size_t len)
{
	struct hd_net_trip trip = { now(sim), sim->writes, from, to, len };

	return sim->fate ? sim->fate(sim->user, &trip) : (struct hd_net_fate){ 0 };
}

static enum hd_err sim_connect(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);
	enum hd_err err = HD_OK;

	int listener = listener_at(sim, sock->addr);
	if (listener == NO_END)
		return hd_fail(diag, HD_E_PEERLOST,
			"cannot connect to %s: no process listens there; is it alive?", sock->addr);
	struct hd_net_fate fate = fate_of(sim, host_of(net)->host, sim->ends[listener].host->host, 0);
	if (fate.cut)
		return hd_fail(diag, HD_E_PEERLOST,
			"cannot connect to %s: it refuses; is the other process alive?", sock->addr);
	int near = end_new(sim, OPEN, diag, &err);
	int far = err ? NO_END : end_new(sim, WAITING, diag, &err);
	if (err) {
		if (near != NO_END)
			sim->ends[near].state = FREE;
		return err;
	}
	sim->ends[near].peer = far;
	sim->ends[near].taken = true;
	sim->ends[near].host = host_of(net);
	sim->ends[far].host = sim->ends[listener].host;
	sim->ends[far].peer = near;
	sim->ends[far].listener = listener;
	sim->ends[near].born_ns = sim->ends[far].born_ns = fate.lost ? INT64_MAX : now(sim) + fate.delay_ns;
	sock->id = near;
	if (fate.lost)
		return HD_OK;
	post(sim, now(sim) + fate.delay_ns, listener, HD_LOOP_READ);
	if (fate.delay_ns)
		post(sim, now(sim) + fate.delay_ns, near, HD_LOOP_WRITE);
	return HD_OK;
}

static enum hd_err sim_accept(struct hd_net *net, struct hd_sock *listener, struct hd_sock *sock,
	struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);

	(void)diag;
	for (int i = 0; i < HD_NET_SIM_SOCKS; i++) {
		struct hd_net_end *end = &sim->ends[i];
		if (end->state == FREE || end->taken || end->listener != listener->id ||
			end->born_ns > now(sim))
			continue;
		end->taken = true;
		end->state = end->state == WAITING ? OPEN : end->state;
		sock->id = i;
		sock->from = end->peer == NO_END ? 0 : 1 + (uint64_t)sim->ends[end->peer].host->host;
		memcpy(sock->addr, listener->addr, HD_ADDR_CAP);
		return HD_OK;
	}
	return HD_E_AGAIN;
}

static enum hd_err gone(const struct hd_sock *sock, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_PEERLOST, "the connection to %s is gone; is the other process alive?",
		sock->addr);
}

static enum hd_err sim_connected(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);
	struct hd_net_end *end = &sim->ends[sock->id];

	if (end->born_ns > now(sim))
		return HD_E_AGAIN;
	return end->cut_ns <= now(sim) ? gone(sock, diag) : HD_OK;
}

/* Where byte i of the pieces lies. */
static uint8_t *byte_of(const struct hd_vec *vec, size_t i)
{
	for (; i >= vec->len; vec++)
		i -= vec->len;
	return (uint8_t *)vec->at + i;
}

static size_t len_of(const struct hd_vec *vec, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += vec[i].len;
	return len;
}

static enum hd_err sim_read(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n_vec,
	size_t *got, struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);
	struct hd_net_end *end = &sim->ends[sock->id];
	struct parcel *parcel = &end->parcels[end->first_parcel];

	if (end->cut_ns <= now(sim))
		return gone(sock, diag);
	if (!end->n_parcels) {
		if (end->state != ENDED)
			return HD_E_AGAIN;
		*got = 0;
		return HD_OK;
	}
	if (parcel->at_ns > now(sim))
		return HD_E_AGAIN;
	bool was_full = end->n_bytes == HD_NET_SIM_QUEUE || end->n_parcels == PARCELS;
	size_t len = len_of(vec, n_vec), n = len < parcel->len ? len : parcel->len;
	for (size_t i = 0; i < n; i++)
		*byte_of(vec, i) = end->bytes[(end->first_byte + i) % HD_NET_SIM_QUEUE];
	end->first_byte = (end->first_byte + n) % HD_NET_SIM_QUEUE;
	end->n_bytes -= n;
	parcel->len -= n;
	if (!parcel->len) {
		end->first_parcel = (end->first_parcel + 1) % PARCELS;
		end->n_parcels--;
	}
	if (was_full)
		post(sim, now(sim), end->peer, HD_LOOP_WRITE);
	*got = n;
	return HD_OK;
}

static struct hd_net_fault fault_now(struct hd_net_sim *sim)
{
	sim->writes++;
	for (size_t i = 0; i < sim->n_faults; i++)
		if (sim->faults[i].write == sim->writes)
			return sim->faults[i];
	return (struct hd_net_fault){ 0 };
}

static enum hd_err sim_write(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n_vec,
	size_t *put, struct hd_diag *diag)
{
	struct hd_net_sim *sim = sim_of(net);
	struct hd_net_end *near = &sim->ends[sock->id];

	size_t len = len_of(vec, n_vec);
	if (near->cut_ns <= now(sim) || (!near->mute && (near->state == ENDED || near->peer == NO_END)))
		return gone(sock, diag);
	if (near->mute) {
		*put = len;
		return HD_OK;
	}
	struct hd_net_end *far = &sim->ends[near->peer];
	size_t space = HD_NET_SIM_QUEUE - far->n_bytes;
	if (near->born_ns > now(sim) || !space || far->n_parcels == PARCELS)
		return HD_E_AGAIN;
	struct hd_net_fault fault = fault_now(sim);
	struct hd_net_fate fate = fate_of(sim, near->host->host, far->host->host, len);
	int64_t at_ns = now(sim) + sim->latency_ns + fault.delay_ns + fate.delay_ns;
	if (fate.lost) {
		near->mute = true;
		*put = len;
		return HD_OK;
	}
	if (fault.cut || fate.cut) {
		near->cut_ns = now(sim);
		far->cut_ns = at_ns;
		post(sim, at_ns, near->peer, HD_LOOP_LOST);
		return gone(sock, diag);
	}
	at_ns = at_ns < far->last_ns ? far->last_ns : at_ns;
	size_t n = len < space ? len : space;
	for (size_t i = 0; i < n; i++)
		far->bytes[(far->first_byte + far->n_bytes + i) % HD_NET_SIM_QUEUE] = *byte_of(vec, i);
	far->parcels[(far->first_parcel + far->n_parcels++) % PARCELS] = (struct parcel){ at_ns, n };
	far->n_bytes += n;
	far->last_ns = at_ns;
	post(sim, at_ns, near->peer, HD_LOOP_READ);
	*put = n;
	return HD_OK;
}

static void end_close(struct hd_net_sim *sim, int id)
{
	struct hd_net_end *end = &sim->ends[id];
	struct hd_net_end *peer = end->peer != NO_END ? &sim->ends[end->peer] : NULL;

	if (peer && end->mute) {
		peer->mute = true;        /* half-open: no error, no answer */
		peer->peer = NO_END;
	} else if (peer) {
		/* What was not read is lost, and the peer hears of it as of a reset, as from a real
		 * socket. */
		if (end->n_parcels && peer->cut_ns == INT64_MAX)
			peer->cut_ns = now(sim) + sim->latency_ns;
		peer->state = ENDED;
		peer->peer = NO_END;
		post(sim, now(sim) + sim->latency_ns, end->peer, HD_LOOP_READ);
	}
	end->state = FREE;
}

static void sim_close(struct hd_net *net, struct hd_sock *sock)
{
	struct hd_net_sim *sim = sim_of(net);

	if (sim->ends[sock->id].state == LISTENING)
		for (int i = 0; i < HD_NET_SIM_SOCKS; i++)
			if (sim->ends[i].state != FREE && !sim->ends[i].taken &&
				sim->ends[i].listener == sock->id)
				end_close(sim, i);
	end_close(sim, sock->id);
}

static bool sim_is_private(struct hd_net *net, const char *addr)
{
	(void)net;
	(void)addr;
	return true;
}

static bool sim_is_same_user(struct hd_net *net, struct hd_sock *sock)
{
	(void)net;
	(void)sock;
	return true;
}

static void sim_tune(struct hd_net *net, struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value)
{
	(void)net;
	(void)sock;
	(void)knob;
	(void)value;
}

static uint32_t sim_unsent(struct hd_net *net, struct hd_sock *sock) { return (void)net, (void)sock, 0; }

static enum hd_err no_ids(struct hd_diag *diag) { return hd_fail(diag, HD_E_REFUSED,
	"a simulated net carries no descriptors; use sim instead of shm"); }

static enum hd_err sim_give(struct hd_net *net, struct hd_sock *sock, const int *ids, size_t n,
	struct hd_diag *diag)
{
	(void)net;
	(void)sock;
	(void)ids;
	(void)n;
	return no_ids(diag);
}

static enum hd_err sim_take(struct hd_net *net, struct hd_sock *sock, int *ids, size_t n,
	struct hd_diag *diag)
{
	(void)net;
	(void)sock;
	(void)ids;
	(void)n;
	return no_ids(diag);
}

static const struct hd_net_ops sim_ops = {
	.name = "simulated", .listen = sim_listen, .accept = sim_accept, .connect = sim_connect,
		.connected = sim_connected,
	.read = sim_read, .write = sim_write, .is_private = sim_is_private, .is_same_user = sim_is_same_user,
	.tune = sim_tune, .unsent = sim_unsent,
	.give = sim_give, .take = sim_take, .close = sim_close,
};

enum hd_err hd_net_sim_init(struct hd_net_sim *sim, struct hd_clock *clock, struct hd_loop *loop,
	struct hd_diag *diag)
{
	*sim = (struct hd_net_sim){ .own = { { &sim_ops, true }, sim, loop, 0 }, .clock = clock };
	sim->ends = hd_alloc(HD_NET_SIM_SOCKS * sizeof *sim->ends);
	if (!sim->ends)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a simulated net");
	for (int i = 0; i < HD_NET_SIM_SOCKS; i++)
		sim->ends[i].state = FREE;
	return HD_OK;
}

void hd_net_sim_host(struct hd_net_sim *sim, uint32_t number, struct hd_loop *loop, struct hd_net_host *host)
{
	*host = (struct hd_net_host){ { &sim_ops, true }, sim, loop, number };
}

void hd_net_sim_finish(struct hd_net_sim *sim)
{
	hd_free(sim->ends);
	*sim = (struct hd_net_sim){ 0 };
}
