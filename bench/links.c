/* links.c -- a switch between network namespaces whose links have a rate and a delay, for kernels without
 * netem: machines.sh builds and starts it where DELAY_MS is set.
 *
 *	cc -O2 -o links bench/links.c
 *	ip -n NAME tuntap add dev eth mode tun vnet_hdr       # for each; the k-th from 1 has address A.B.C.k
 *	./links FILE NAME...
 *
 * FILE holds "BITS_A_SECOND MICROSECONDS", read at the start and after each SIGHUP; 0 bits: no limit, and no
 * delay. SIGTERM: ends, with a line for each port.
 *
 * 1. A packet of A to B goes through A's queue at the rate, waits the delay, goes through B's queue at the
 *    rate. It reaches B's queue with its first byte, so a packet of many frames is not held up twice.
 * 2. A queue takes packets while what is before them takes at most QUEUE_NS; others are dropped, and counted.
 * 3. Times of a queue follow from times, not from when this process ran: one that is late sends what is due
 *    at once, and loses nothing of the rate. How late it was at most is counted.
 * 4. The kernel hands over what TCP sends uncut (many frames as one); the rate is of the frames, of Ethernet
 *    without preamble and checksum, as tc counts them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 64, ETHERNET = 14, MOST = 1 << 17,
	TURN = 16 /* packets of a port before what is due goes */ };
static const int64_t QUEUE_NS = 50 * 1000000, NEVER = INT64_MAX;

struct packet {
	struct packet *next;
	int64_t due, took;                /* ns: when it leaves its queue; what its bytes take */
	size_t to, len;
	char bytes[];
};

struct queue { struct packet *first, **last; int64_t free_at; };

struct port {
	int tun;
	struct queue up, down;
	uint64_t packets, bytes, dropped, strange;
};

struct links {
	const char *file;
	struct port port[PORTS];
	size_t nports;
	double bits_a_ns;                 /* 0: no limit */
	int64_t delay, late;
	char room[MOST];
};

static volatile sig_atomic_t again = 1, ends;

static void on_signal(int number)
{
	if (number == SIGHUP)
		again = 1;
	else
		ends = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "links: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- queues ---- */

static void put(struct queue *q, struct packet *p)
{
	p->next = NULL;
	*q->last = p;
	q->last = &p->next;
}

static struct packet *take(struct queue *q)
{
	struct packet *p = q->first;

	q->first = p->next;
	if (!q->first)
		q->last = &q->first;
	return p;
}

/* p comes at `at`, and leaves after those before it; if there is no room, it is gone. */
static void enters(struct port *port, struct queue *q, struct packet *p, int64_t at)
{
	if (q->free_at - at > QUEUE_NS) {
		port->dropped++;
		free(p);
		return;
	}
	p->due = later(at, q->free_at) + p->took;
	q->free_at = p->due;
	put(q, p);
}

/* Bytes on the wire of what the kernel handed over as one. */
static double wire_bytes(const struct virtio_net_hdr *head, const uint8_t *ip, size_t len)
{
	const size_t tcp = (ip[0] & 15u) * 4u;

	if (head->gso_type == VIRTIO_NET_HDR_GSO_NONE || !head->gso_size || len < tcp + 20)
		return (double)(len + ETHERNET);
	const size_t heads = tcp + (ip[tcp + 12] >> 4) * 4u, data = len > heads ? len - heads : 0,
		frames = (data + head->gso_size - 1) / head->gso_size;
	return (double)(data + frames * (heads + ETHERNET));
}

/* ---- what comes, what goes ---- */

static void one_in(struct links *l, struct port *from, size_t n)
{
	const struct virtio_net_hdr *head = (const void *)l->room;
	const uint8_t *ip = (const uint8_t *)l->room + sizeof *head;
	const size_t len = n - sizeof *head;

	if (n < sizeof *head + 20 || ip[0] >> 4 != 4 || ip[19] < 1 || ip[19] > l->nports) {
		from->strange++;
		return;
	}
	struct packet *p = malloc(sizeof *p + n);
	if (!p)
		fail("no memory for a packet");
	p->to = ip[19] - 1u;
	p->len = n;
	p->took = l->bits_a_ns > 0 ? (int64_t)(wire_bytes(head, ip, len) * 8 / l->bits_a_ns) : 0;
	memcpy(p->bytes, l->room, n);
	from->packets++;
	from->bytes += len;
	enters(from, &from->up, p, now());
}

static void come(struct links *l, struct port *from)
{
	for (int i = 0; i < TURN; i++) {
		ssize_t n = read(from->tun, l->room, sizeof l->room);
		if (n >= 0)
			one_in(l, from, (size_t)n);
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			fail("read");
	}
}

/* The queue whose first packet is due first. */
static struct queue *next_queue(struct links *l, int64_t *due)
{
	struct queue *found = NULL;

	*due = NEVER;
	for (size_t i = 0; i < l->nports; i++) {
		struct queue *both[] = { &l->port[i].up, &l->port[i].down };
		for (size_t k = 0; k < 2; k++) {
			const struct packet *p = both[k]->first;
			/* to the other queue goes what has left this one, after the delay */
			const int64_t at = !p ? NEVER : p->due + (k ? 0 : l->delay - p->took);
			if (at < *due) {
				found = both[k];
				*due = at;
			}
		}
	}
	return found;
}

static void go(struct links *l)
{
	struct queue *q;
	int64_t due;

	while ((q = next_queue(l, &due)) && due <= now()) {
		struct packet *p = take(q);
		struct port *to = &l->port[p->to];
		l->late = later(l->late, now() - due);
		if (q != &to->down) {
			enters(to, &to->down, p, due);
			continue;
		}
		if (write(to->tun, p->bytes, p->len) < 0)
			to->dropped++;
		free(p);
	}
}

/* ---- life ---- */

static void read_file(struct links *l)
{
	double bits, us;
	FILE *f = fopen(l->file, "r");

	if (!f || fscanf(f, "%lf %lf", &bits, &us) != 2 || !(bits >= 0) || !(us >= 0)) {
		fprintf(stderr, "links: %s: not \"BITS_A_SECOND MICROSECONDS\"\n", l->file);
		exit(2);
	}
	fclose(f);
	l->bits_a_ns = bits / 1e9;
	l->delay = bits > 0 ? (int64_t)(us * 1e3) : 0;
}

static int open_tun(const char *name)
{
	struct ifreq want = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	char path[256];

	snprintf(path, sizeof path, "/run/netns/%s", name);
	int space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET))
		fail(path);
	close(space);
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun < 0)
		fail("/dev/net/tun");
	strcpy(want.ifr_name, "eth");
	if (ioctl(tun, TUNSETIFF, &want) || ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4))
		fail(name);
	return tun;
}

static void serve(struct links *l)
{
	struct pollfd at[PORTS];
	sigset_t none;
	int64_t due;

	sigemptyset(&none);
	for (size_t i = 0; i < l->nports; i++)
		at[i] = (struct pollfd){ .fd = l->port[i].tun, .events = POLLIN };
	while (!ends) {
		if (again) {
			again = 0;
			read_file(l);
		}
		next_queue(l, &due);
		const int64_t wait = later(0, due - now());
		const struct timespec t = { wait / 1000000000, wait % 1000000000 };
		if (ppoll(at, l->nports, due == NEVER ? NULL : &t, &none) < 0 && errno != EINTR)
			fail("poll");
		for (size_t i = 0; i < l->nports; i++)
			come(l, &l->port[i]);
		go(l);
	}
}

int main(int argc, char **argv)
{
	static struct links l;
	struct sigaction act = { .sa_handler = on_signal };
	const int numbers[] = { SIGHUP, SIGTERM, SIGINT };
	sigset_t held;

	if (argc < 3 || argc - 2 > PORTS) {
		fprintf(stderr, "usage: links FILE NETNS...   (at most %d)\n", PORTS);
		return 2;
	}
	sigemptyset(&held);
	for (size_t i = 0; i < 3; i++) {
		sigaddset(&held, numbers[i]);
		sigaction(numbers[i], &act, NULL);
	}
	sigprocmask(SIG_BLOCK, &held, NULL);      /* they come while it waits, and only then */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	l.file = argv[1];
	for (l.nports = 0; l.nports < (size_t)argc - 2; l.nports++) {
		struct port *p = &l.port[l.nports];
		p->tun = open_tun(argv[2 + l.nports]);
		p->up.last = &p->up.first;
		p->down.last = &p->down.first;
	}
	serve(&l);
	for (size_t i = 0; i < l.nports; i++)
		printf("port %zu packets %" PRIu64 " bytes %" PRIu64 " dropped %" PRIu64 " strange %" PRIu64
			"\n", i + 1, l.port[i].packets, l.port[i].bytes, l.port[i].dropped,
			l.port[i].strange);
	printf("late_us %.0f\n", (double)l.late / 1e3);
	return 0;
}
