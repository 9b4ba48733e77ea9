#include "worker/link.h"

#include <stdio.h>
#include <string.h>

#include "sys/netns.h"
#include "sys/process.h"
#include "worker/link_relay.h"

enum stage { NEW, OTHER_THERE, OPENED, JOINED, LISTENS, FAILED };

#define NEAR "10.255.77.1"
#define FAR "10.255.77.2"

static const char *const names[HD_LINK_KINDS] = { "none", "netns", "relay" };

const char *hd_link_name(enum hd_link_kind kind) { return names[kind]; }

void hd_link_init(struct hd_link *link, const struct hd_link_spec *spec)
{
	*link = (struct hd_link){ .spec = *spec };
	hd_net_real(&link->net);
}

/* ---- waiting for the other thread ---- */

static enum hd_err await(struct hd_link *link, enum stage stage, struct hd_diag *diag)
{
	const int64_t until = hd_clock_now_ns(link->spec.clock) + HD_LINK_PATIENCE_NS;

	for (;;) {
		const int now = atomic_load(&link->stage);
		if (now == FAILED)
			return hd_fail(diag, HD_E_PEERLOST, "the other end of the link failed");
		if (now >= (int)stage)
			return HD_OK;
		if (hd_clock_now_ns(link->spec.clock) >= until)
			return hd_fail(diag, HD_E_PEERLOST, "the other end of the link did not come");
		hd_clock_wait_until(link->spec.clock, hd_clock_now_ns(link->spec.clock) + HD_NS_PER_MS / 2);
	}
}

static void reach(struct hd_link *link, enum stage stage)
{
	int was = atomic_load(&link->stage);

	while (was != FAILED && !atomic_compare_exchange_weak(&link->stage, &was, (int)stage))
		;
}

void hd_link_fail(struct hd_link *link) { atomic_store(&link->stage, FAILED); }

/* ---- commands ---- */

enum { WORDS = 24 };

/* One command, its words parted by single blanks; in the calling thread's network. */
static enum hd_err does(const char *line, struct hd_diag *diag)
{
	char text[256];
	const char *argv[WORDS + 1] = { NULL };
	struct hd_host host;
	struct hd_proc proc = { .host = NULL };
	size_t n = 0;
	int code = 0;

	snprintf(text, sizeof text, "%s", line);
	for (char *at = text; at && n < WORDS; n++) {
		argv[n] = at;
		at = strchr(at, ' ');
		if (at)
			*at++ = '\0';
	}
	hd_host_real(&host);
	enum hd_err err = hd_proc_spawn(&host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = 2,
		.err = -1 }, &proc, NULL);
	if (err)
		return hd_fail(diag, HD_E_REFUSED, "%s cannot be started; a relay needs nothing", argv[0]);
	err = hd_proc_wait(&proc, HD_LINK_PATIENCE_NS, &code, diag);
	hd_proc_finish(&proc);
	return !err && !code ? HD_OK : hd_fail(diag, HD_E_REFUSED,
		"%s ended with exit code %d; a relay needs nothing", line, code);
}

/* One end: its address, and so many bits a second from it. */
static enum hd_err shape(const struct hd_link *link, const char *device, const char *address,
	struct hd_diag *diag)
{
	/* a burst of 1 ms, 128 KiB at most, and what waits for 10 ms more */
	const uint64_t ms = (uint64_t)link->spec.rate_mbit * 125;
	char line[4][200];

	snprintf(line[0], sizeof line[0], "ip link set lo up");
	snprintf(line[1], sizeof line[1], "ip addr add %s/30 dev %s", address, device);
	snprintf(line[2], sizeof line[2], "ip link set %s up", device);
	snprintf(line[3], sizeof line[3], "tc qdisc add dev %s root tbf rate %umbit burst %llu latency 10ms",
		device, link->spec.rate_mbit, (unsigned long long)(ms < 16 << 10 ? 16 << 10 : ms > 128 << 10 ?
		128 << 10 : ms));
	enum hd_err err = HD_OK;
	for (size_t i = 0; i < 4 && !err; i++)
		err = does(line[i], diag);
	return err;
}

/* ---- rows ---- */

static enum hd_err open_netns(struct hd_link *link, struct hd_diag *diag)
{
	char line[128];

	enum hd_err err = hd_netns_own(diag);
	if (!err)
		err = await(link, OTHER_THERE, diag);
	snprintf(line, sizeof line, "ip link add hdnear type veth peer name hdfar netns %d",
		atomic_load(&link->other_id));
	if (!err)
		err = does(line, diag);
	if (!err)
		err = shape(link, "hdnear", NEAR, diag);
	return err;
}

static enum hd_err join_netns(struct hd_link *link, struct hd_diag *diag)
{
	enum hd_err err = hd_netns_own(diag);
	if (err)
		return err;
	atomic_store(&link->other_id, hd_netns_id());
	reach(link, OTHER_THERE);
	err = await(link, OPENED, diag);
	return err ? err : shape(link, "hdfar", FAR, diag);
}

static enum hd_err open_relay(struct hd_link *link, struct hd_diag *diag)
{
	return link_relay_listen(link, diag);
}

static enum hd_err (*const opens[HD_LINK_KINDS])(struct hd_link *link, struct hd_diag *diag) = {
	[HD_LINK_NETNS] = open_netns, [HD_LINK_RELAY] = open_relay };
static enum hd_err (*const joins[HD_LINK_KINDS])(struct hd_link *link, struct hd_diag *diag) = {
	[HD_LINK_NETNS] = join_netns };

enum hd_err hd_link_open(struct hd_link *link, struct hd_diag *diag)
{
	enum hd_err err = opens[link->spec.kind] ? opens[link->spec.kind](link, diag) : HD_OK;

	reach(link, err ? FAILED : OPENED);
	return err ? err : await(link, JOINED, diag);
}

enum hd_err hd_link_join(struct hd_link *link, char addr[HD_ADDR_CAP], struct hd_diag *diag)
{
	enum hd_err err = joins[link->spec.kind] ? joins[link->spec.kind](link, diag) : HD_OK;

	if (!err)
		err = await(link, OPENED, diag);
	reach(link, err ? FAILED : JOINED);
	snprintf(addr, HD_ADDR_CAP, "tcp:%s:0", link->spec.kind == HD_LINK_NETNS ? FAR : "127.0.0.1");
	return err;
}

void hd_link_listens(struct hd_link *link, const char *addr)
{
	snprintf(link->addr, sizeof link->addr, "%s", addr);
	reach(link, LISTENS);
}

enum hd_err hd_link_caller(struct hd_link *link, char addr[HD_ADDR_CAP], struct hd_diag *diag)
{
	enum hd_err err = await(link, LISTENS, diag);
	const bool relayed = !err && link->spec.kind == HD_LINK_RELAY && !strncmp(link->addr, "tcp:", 4);

	if (relayed)
		err = hd_thread_start_small(&link->relay, "relay", link_relay_run, link, diag);
	if (!err)
		snprintf(addr, HD_ADDR_CAP, "%s", relayed ? link->door.addr : link->addr);
	return err;
}

void hd_link_close(struct hd_link *link)
{
	atomic_store(&link->ends, true);
	hd_thread_join(&link->relay);
	hd_sock_close(&link->door);
}

/* ---- which ---- */

struct probe { enum hd_err err; };

static void try_netns(void *user)
{
	struct probe *p = user;

	p->err = hd_netns_own(NULL);
	if (!p->err)
		p->err = does("ip link add hdtry type veth peer name hdtried", NULL);
	if (!p->err)
		p->err = does("tc qdisc add dev hdtry root tbf rate 1mbit burst 16384 latency 10ms", NULL);
}

enum hd_link_kind hd_link_best(uint32_t delay_ms)
{
	struct probe probe = { HD_E_REFUSED };
	struct hd_thread thread = { .started = false };

	if (delay_ms || hd_thread_start(&thread, "probe", -1, try_netns, &probe, NULL))
		return HD_LINK_RELAY;
	hd_thread_join(&thread);
	return probe.err ? HD_LINK_RELAY : HD_LINK_NETNS;
}
