/* Launchers of processes: workers of this machine, and of others by ssh. Both are children of this process;
 * of
 * ssh the child is its client, whose exit code is that of the worker. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "launch/hosts.h"
#include "launch/launcher_ops.h"
#include "launch/local_workers.h"

enum { HOSTS_FILE = 1 << 20, SSH_ARGS = 10 };
#define KILL_NS INT64_C(3000000000)
#define POLL_NS INT64_C(20000000)
/* one that lived so long did something, whatever it ended with */
#define LIVED_NS INT64_C(60000000000)

struct processes {
	struct hd_launcher head;
	struct hd_launcher_spec spec;
	struct hd_local_workers local;    /* the mark of a child: its host */
	struct hd_launch_hosts hosts;     /* of ssh; n 0: this machine */
	const char *command;              /* what a shell there runs; "": of ssh alone */
	const char *argv[SSH_ARGS];       /* of the next ssh */
	uint32_t want;
	struct hd_arena arena;
};

static struct processes *of(struct hd_launcher *launcher) { return (struct processes *)launcher; }
static int64_t now(const struct processes *p) { return hd_clock_now_ns(p->spec.clock); }

/* ---- this machine */

static enum hd_err make(const struct hd_launcher_ops *ops, const struct hd_launcher_spec *spec,
	struct processes **made, struct hd_diag *diag)
{
	struct processes *p = hd_alloc(sizeof *p);

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a launcher");
	*p = (struct processes){ .head = { .ops = ops }, .spec = *spec, .command = "" };
	hd_arena_init(&p->arena, 0);
	hd_local_init(&p->local, &(struct hd_local_spec){ .host = spec->host, .fs = spec->fs, .clock =
		spec->clock,
		.dir = spec->dir, .argv = spec->argv });
	*made = p;
	return HD_OK;
}

static enum hd_err local_open(const struct hd_launcher_spec *spec, struct hd_launcher **launcher,
	struct hd_diag *diag)
{
	struct processes *p = NULL;
	enum hd_err err = make(&hd_launcher_of_local, spec, &p, diag);

	if (!err)
		*launcher = &p->head;
	return err;
}

static enum hd_err local_check(struct hd_launcher *launcher, uint32_t most, char own[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	(void)launcher;
	own[0] = '\0';
	return most <= HD_LOCAL_CHILDREN ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"--workers is at most %d on one machine",
		HD_LOCAL_CHILDREN);
}

/* ---- ssh */

static void close_(struct hd_launcher *launcher)
{
	struct processes *p = of(launcher);

	hd_local_finish(&p->local, 0);
	hd_arena_finish(&p->arena);
	hd_free(p);
}

static enum hd_err take_hosts(struct processes *p, struct hd_diag *diag)
{
	const char *file = p->spec.settings->ssh.hosts;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(p->spec.fs, file, &p->arena, HOSTS_FILE, &bytes, &len, diag);

	return err ? err : hd_launch_hosts_parse(&p->hosts, file, (const char *)bytes, len, &p->arena, diag);
}

/* launch.ssh.command is a program's name there, in place of this one. */
static enum hd_err make_command(struct processes *p, struct hd_diag *diag)
{
	const char *argv[HD_LAUNCHER_ARGS + 1];
	struct hd_text text;
	size_t n = 0;

	for (; p->spec.argv[n] && n < HD_LAUNCHER_ARGS; n++)
		argv[n] = p->spec.argv[n];
	argv[n] = NULL;
	if (*p->spec.settings->ssh.command)
		argv[0] = p->spec.settings->ssh.command;
	hd_text_init(&text, &p->arena);
	hd_text_add(&text, "exec ");
	hd_launcher_quote_all(&text, argv);
	p->command = text.at;
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the command of ssh") : HD_OK;
}

static enum hd_err ssh_open(const struct hd_launcher_spec *spec, struct hd_launcher **launcher,
	struct hd_diag *diag)
{
	struct processes *p = NULL;
	enum hd_err err = make(&hd_launcher_of_ssh, spec, &p, diag);

	if (err)
		return err;
	err = take_hosts(p, diag);
	err = err ? err : make_command(p, diag);
	if (err)
		close_(&p->head);
	else
		*launcher = &p->head;
	return err;
}

static enum hd_err ssh_check(struct hd_launcher *launcher, uint32_t most, char own[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	const struct processes *p = of(launcher);
	char host[HD_ADDR_CAP], to[HD_ADDR_CAP + 16], from[HD_ADDR_CAP];

	own[0] = '\0';
	if (most > p->hosts.slots)
		return hd_fail(diag, HD_E_INVAL, "--nodes asks for %u, and %s has %u slots: ask for "
			"fewer, or write HOST "
			"slots=N", most, p->spec.settings->ssh.hosts, p->hosts.slots);
	const char *name = p->hosts.at[0].name, *at = strchr(name, '@');
	/* an alias of ssh's configuration is no name of the resolver: then net.listen has to say it */
	if (hd_sock_lookup(at ? at + 1 : name, host, NULL))
		return HD_OK;
	snprintf(to, sizeof to, strchr(host, ':') ? "tcp:[%.80s]:1" : "tcp:%.80s:1", host);
	if (!hd_sock_source(to, from, NULL))
		snprintf(own, HD_ADDR_CAP, "%.*s", (int)(strrchr(from, ':') - from - 4), from + 4);
	return HD_OK;
}

/* The host with the most free slots, the first of them. */
static uint32_t next_host(const struct processes *p)
{
	uint32_t best = 0;
	int64_t most = INT64_MIN;

	for (uint32_t h = 0; h < p->hosts.n; h++) {
		int64_t free_slots = p->hosts.at[h].slots;
		for (uint32_t i = 0; i < HD_LOCAL_CHILDREN; i++)
			free_slots -= p->local.child[i].proc.host && p->local.child[i].mark == h;
		if (free_slots > most) {
			most = free_slots;
			best = h;
		}
	}
	return best;
}

static void aim(struct processes *p)
{
	const uint32_t host = next_host(p);
	const char *argv[] = { "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15",
		p->hosts.at[host].name, "--",
		p->command, NULL };

	static_assert(sizeof argv <= sizeof p->argv, "there is room for them");
	memcpy(p->argv, argv, sizeof argv);
	p->local.spec.argv = p->argv;
	p->local.mark = host;
}

/* A line a place, in the order in which they are started. */
static enum hd_err ssh_show(const struct hd_launcher_spec *spec, uint32_t n, struct hd_text *text,
	struct hd_diag *diag)
{
	struct hd_launcher *launcher = NULL;
	enum hd_err err = ssh_open(spec, &launcher, diag);

	if (err)
		return err;
	struct processes *p = of(launcher);
	for (uint32_t i = 0; i < n && i < HD_LOCAL_CHILDREN; i++) {
		aim(p);
		hd_launcher_quote_all(text, p->argv);
		hd_text_add(text, "\n");
		/* its slot is taken, as by a child */
		p->local.child[i] = (struct hd_child){ .proc = { .host = spec->host },
			.mark = p->local.mark };
	}
	memset(p->local.child, 0, sizeof p->local.child);
	close_(launcher);
	return HD_OK;
}

/* ---- both */

static void want(struct hd_launcher *launcher, uint32_t n) { of(launcher)->want = n; }

static enum hd_err look(struct hd_launcher *launcher, struct hd_diag *diag)
{
	struct processes *p = of(launcher);
	enum hd_err err = HD_OK;

	while (p->local.n < p->want && !err) {
		uint32_t number = 0;
		struct hd_diag why = { "" };
		if (p->hosts.n)
			aim(p);
		err = hd_local_start(&p->local, &number, &why);
		if (!err && p->hosts.n)
			hd_launcher_say(&p->head, HD_LAUNCHER_NEWS, "worker %u is started on %s", number,
				p->hosts.at[p->local.mark].name);
		if (err && err != HD_E_AGAIN && p->local.nalike >= HD_LAUNCHER_ALIKE)
			return hd_fail(diag, err, "%s", why.text);
	}
	return HD_OK;
}

static bool ended(struct hd_launcher *launcher, struct hd_launcher_end *end)
{
	struct processes *p = of(launcher);
	struct hd_child_end child;

	if (!hd_local_ended(&p->local, &child))
		return false;
	const bool failed = hd_launcher_is_failure(child.code) && child.lived_ns < LIVED_NS;
	(void)hd_local_judge(&p->local, &child, !failed);
	*end = (struct hd_launcher_end){ .code = child.code, .alike = failed ? p->local.nalike : 0 };
	if (p->hosts.n)
		snprintf(end->name, sizeof end->name, "worker %u on %.30s", child.number,
			p->hosts.at[child.mark].name);
	else
		snprintf(end->name, sizeof end->name, "process %d", child.pid);
	snprintf(end->log, sizeof end->log, "log/hand-%u.log", child.number);
	return true;
}

static void count(const struct hd_launcher *launcher, struct hd_launcher_count *count)
{
	const struct processes *p = (const struct processes *)launcher;

	*count = (struct hd_launcher_count){ .running = p->local.n };
	if (p->want > p->local.n)
		count->waiting = p->want - p->local.n;
	if (count->waiting && now(p) < p->local.ready_ns)
		snprintf(count->why, sizeof count->why, "the last ones failed; a pause before the next");
}

static enum hd_err stop(struct hd_launcher *launcher, int64_t grace_ns, struct hd_diag *diag)
{
	struct processes *p = of(launcher);
	const int64_t until_ns = now(p) + grace_ns;
	struct hd_launcher_end end;

	(void)diag;
	p->want = 0;
	while (p->local.n && now(p) < until_ns)
		if (!ended(launcher, &end))
			hd_clock_wait_until(p->spec.clock, now(p) + POLL_NS);
	hd_local_finish(&p->local, KILL_NS);
	return HD_OK;
}

const struct hd_launcher_ops hd_launcher_of_local = {
	.name = "local", .about = "processes of this machine", .open = local_open, .check = local_check,
		.want = want,
	.look = look, .ended = ended, .count = count, .stop = stop, .close = close_,
};

const struct hd_launcher_ops hd_launcher_of_ssh = {
	.name = "ssh", .about = "processes of hosts that ssh reaches", .net = true, .open = ssh_open,
	.show = ssh_show,
	.check = ssh_check, .want = want, .look = look, .ended = ended, .count = count, .stop = stop, .close
		= close_,
};
