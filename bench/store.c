/* store.c -- an object store with a latency and a rate, for benches: ranges of the files of a folder by HTTP,
 * or as S3 with checked signatures (path style, /bucket/NAME).
 *
 *	cc -O2 -o store bench/store.c
 *	store FOLDER WHERE [DELAY_MS [RATE_MB_S [EACH_MB_S]]]
 *
 * WHERE gets its address. DELAY_MS passes before each answer; RATE_MB_S is what all answers together are
 * given, EACH_MB_S what one connection is; 0: no bound. A thread for each connection, bodies by sendfile: it
 * costs a copy in the kernel, so that it is not what is measured. Keys: AKIDTEST, secret-of-the-test. It
 * trusts its user: no test of anything but signatures.
 *
 * A rate is a line of time: each piece of a body moves "free at" on by its bytes, and its thread sleeps until
 * then. What was not used is not kept for later but for 5 ms. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 16384, PIECE = 256 << 10, SPARE_NS = 5000000 };

struct rate { pthread_mutex_t lock; double bytes_ns; long long free_ns; };

static const char *folder;
static long long delay_ns;
static struct rate all = { .lock = PTHREAD_MUTEX_INITIALIZER };
static double each_bytes_ns;

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long at_ns)
{
	const struct timespec t = { at_ns / 1000000000, at_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static void pass(struct rate *r, size_t bytes)
{
	if (r->bytes_ns <= 0)
		return;
	pthread_mutex_lock(&r->lock);
	const long long now = now_ns();
	if (r->free_ns < now - SPARE_NS)
		r->free_ns = now - SPARE_NS;
	r->free_ns += (long long)((double)bytes / r->bytes_ns);
	const long long due = r->free_ns;
	pthread_mutex_unlock(&r->lock);
	if (due > now)
		sleep_until(due);
}

/* ---- signatures: AWS, version 4 ---- */

#define TURNED(x, n) ((x) >> (n) | (x) << (32 - (n)))

static void sha_block(uint32_t h[8], const unsigned char *at)
{
	static const uint32_t k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
		0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
		0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
		0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
		0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
		0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
		0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
		0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
		0xc67178f2 };
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)at[4 * i] << 24 | at[4 * i + 1] << 16 | at[4 * i + 2] << 8 | at[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
			(TURNED(w[i - 15], 7) ^ TURNED(w[i - 15], 18) ^ w[i - 15] >> 3) +
			(TURNED(w[i - 2], 17) ^ TURNED(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		const uint32_t a = v[7] + (TURNED(v[4], 6) ^ TURNED(v[4], 11) ^ TURNED(v[4], 25)) +
			((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		const uint32_t b = (TURNED(v[0], 2) ^ TURNED(v[0], 13) ^ TURNED(v[0], 22)) +
			((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += a;
		v[0] = a + b;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

/* At most HEAD bytes. */
static void sha256(const void *bytes, size_t n, unsigned char out[32])
{
	uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
		0x5be0cd19 };
	const size_t whole = (n + 9 + 63) / 64 * 64;
	unsigned char padded[HEAD + 72] = { 0 };

	memcpy(padded, bytes, n);
	padded[n] = 0x80;
	for (int i = 0; i < 8; i++)
		padded[whole - 1 - i] = (unsigned char)((uint64_t)n * 8 >> 8 * i);
	for (size_t at = 0; at < whole; at += 64)
		sha_block(h, padded + at);
	for (int i = 0; i < 32; i++)
		out[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* HMAC, of a key of less than 64 bytes. */
static void sign(const void *key, size_t nkey, const char *text, unsigned char out[32])
{
	unsigned char inner[HEAD], outer[96];
	const size_t n = strlen(text);

	for (int i = 0; i < 64; i++) {
		const unsigned char byte = i < (int)nkey ? ((const unsigned char *)key)[i] : 0;
		inner[i] = byte ^ 0x36;
		outer[i] = byte ^ 0x5c;
	}
	memcpy(inner + 64, text, n < HEAD - 64 ? n : HEAD - 64);
	sha256(inner, 64 + n, outer + 64);
	sha256(outer, 96, out);
}

static void hex(const unsigned char in[32], char out[65])
{
	for (int i = 0; i < 32; i++)
		sprintf(out + 2 * i, "%02x", in[i]);
}

static void digest(const char *text, char out[65])
{
	unsigned char sum[32];

	sha256(text, strlen(text), sum);
	hex(sum, out);
}

/* The value of a header line; NULL: it has none. The head's lines end with CRLF. */
static const char *line_of(const char *head, const char *name, char *value, size_t cap)
{
	const size_t n = strlen(name);

	for (const char *at = strstr(head, "\r\n"); at; at = strstr(at + 2, "\r\n"))
		if (!strncasecmp(at + 2, name, n) && at[2 + n] == ':') {
			const char *from = at + 3 + n + strspn(at + 3 + n, " ");
			snprintf(value, cap, "%.*s", (int)strcspn(from, "\r"), from);
			return value;
		}
	return NULL;
}

static int is_signed(const char *head, const char *path)
{
	char auth[2048], value[2048], canonical[8192], text[8300], names[512], given[65], day[9], region[64];
	char sum[65];
	unsigned char key[32], next[32];
	size_t n;

	if (!line_of(head, "Authorization", auth, sizeof auth) ||
		sscanf(auth, "AWS4-HMAC-SHA256 Credential=AKIDTEST/%8[0-9]/%63[^/]/s3/aws4_request, "
			"SignedHeaders=%511[^,], Signature=%64[0-9a-f]", day, region, names, given) != 4)
		return 0;
	n = (size_t)snprintf(canonical, sizeof canonical, "GET\n%s\n\n", path);
	for (char *rest = strdupa(names), *name; (name = strsep(&rest, ";"));)
		n += (size_t)snprintf(canonical + n, sizeof canonical - n, "%s:%s\n", name,
			line_of(head, name, value, sizeof value) ? value : "");
	digest("", sum);
	snprintf(canonical + n, sizeof canonical - n, "\n%s\n%s", names,
		line_of(head, "x-amz-content-sha256", value, sizeof value) ? value : sum);
	digest(canonical, sum);
	snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s",
		line_of(head, "x-amz-date", value, sizeof value) ? value : "", day, region, sum);
	sign("AWS4secret-of-the-test", 22, day, key);
	sign(key, 32, region, next);
	sign(next, 32, "s3", key);
	sign(key, 32, "aws4_request", next);
	sign(next, 32, text, key);
	hex(key, sum);
	return !strcmp(sum, given);
}

/* ---- answers ---- */

static int put(int to, const char *text)
{
	const size_t n = strlen(text);

	return send(to, text, n, MSG_NOSIGNAL | MSG_MORE) == (ssize_t)n;
}

static int refuse(int to, int status)
{
	char text[200];

	snprintf(text, sizeof text, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n", status);
	return put(to, text) && !setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

static int send_body(int to, int from, off_t at, off_t end, struct rate *own)
{
	while (at < end) {
		const size_t left = (size_t)(end - at), n = left < PIECE ? left : PIECE;
		pass(&all, n);
		pass(own, n);
		for (const off_t until = at + (off_t)n; at < until;)
			if (sendfile(to, from, &at, (size_t)(until - at)) <= 0)
				return 0;
	}
	return 1;
}

static int answer(int to, const char *head, struct rate *own)
{
	char path[1024], name[2100], value[256], text[600];
	long long first, last;
	struct stat stat;

	sleep_until(now_ns() + delay_ns);
	if (sscanf(head, "GET %1023[^ ?]", path) != 1 || strstr(path, ".."))
		return refuse(to, 400);
	const int s3 = !strncmp(path, "/bucket/", 8);
	if (s3 && !is_signed(head, path))
		return refuse(to, 403);
	snprintf(name, sizeof name, "%s/%s", folder, path + (s3 ? 8 : 1));
	const int from = open(name, O_RDONLY);
	if (from < 0 || fstat(from, &stat))
		return refuse(to, 404);
	if (!line_of(head, "Range", value, sizeof value) ||
		sscanf(value, "bytes=%lld-%lld", &first, &last) != 2)
		first = 0, last = stat.st_size - 1;
	last = last < stat.st_size ? last : stat.st_size - 1;
	snprintf(text, sizeof text, "HTTP/1.1 206 Partial\r\nContent-Range: bytes %lld-%lld/%lld\r\n"
		"ETag: \"%llx\"\r\nContent-Length: %lld\r\n\r\n", first, last, (long long)stat.st_size,
		(long long)stat.st_mtime, last - first + 1);
	const int good = first <= last && put(to, text) && send_body(to, from, first, last + 1, own);
	close(from);
	return good;
}

static void *serve(void *user)
{
	struct rate own = { .lock = PTHREAD_MUTEX_INITIALIZER, .bytes_ns = each_bytes_ns };
	const int to = (int)(long)user;
	char head[HEAD];
	size_t have = 0;
	int good = 1;

	prctl(PR_SET_TIMERSLACK, 1);
	setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	while (good) {
		const ssize_t n = recv(to, head + have, HEAD - 1 - have, 0);
		char *end;
		if (n <= 0)
			break;
		have += (size_t)n;
		head[have] = '\0';
		while (good && (end = strstr(head, "\r\n\r\n"))) {
			end[2] = '\0';            /* keeps the CRLF of its last line */
			good = answer(to, head, &own);
			have -= (size_t)(end + 4 - head);
			memmove(head, end + 4, have + 1);
		}
		good = good && have < HEAD - 1;
	}
	close(to);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof at;
	char temporary[1024];
	pthread_attr_t small;

	if (argc < 3)
		return fprintf(stderr, "store FOLDER WHERE [DELAY_MS [RATE_MB_S [EACH_MB_S]]]\n"), 2;
	folder = argv[1];
	delay_ns = argc > 3 ? (long long)(atof(argv[3]) * 1e6) : 0;
	all.bytes_ns = argc > 4 ? atof(argv[4]) * 1e6 / 1e9 : 0;
	each_bytes_ns = argc > 5 ? atof(argv[5]) * 1e6 / 1e9 : 0;
	signal(SIGPIPE, SIG_IGN);
	const int door = socket(AF_INET, SOCK_STREAM, 0);
	if (door < 0 || bind(door, (struct sockaddr *)&at, len) || listen(door, 1024) ||
		getsockname(door, (struct sockaddr *)&at, &len))
		return perror("store"), 1;
	snprintf(temporary, sizeof temporary, "%s.tmp", argv[2]);
	FILE *where = fopen(temporary, "w");
	if (!where || fprintf(where, "http://127.0.0.1:%d", ntohs(at.sin_port)) < 0 || fclose(where) ||
		rename(temporary, argv[2]))
		return perror(argv[2]), 1;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	for (;;) {
		pthread_t thread;
		const int to = accept(door, NULL, NULL);
		if (to >= 0 && pthread_create(&thread, &small, serve, (void *)(long)to))
			close(to);
	}
}
