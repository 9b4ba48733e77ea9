#include "chaos/cloud.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ARGS = 24, TEXT = 200 };
#define AGAIN_NS INT64_C(500000000)
#define WAIT_NS INT64_C(10000000000)

void hd_cloud_init(struct hd_cloud *c, const struct hd_cloud_spec *spec)
{
	*c = (struct hd_cloud){ .spec = *spec };
}

static struct hd_cloud_machine *find(struct hd_cloud *c, const char *name)
{
	for (size_t i = 0; i < HD_MACHINES_MOST; i++)
		if (!strcmp(c->machine[i].name, name))
			return &c->machine[i];
	return NULL;
}

/* ---- the process of a machine */

static enum hd_err open_log(struct hd_cloud *c, const struct hd_cloud_machine *m, struct hd_file *log,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	(void)snprintf(path, sizeof path, "%.400s/log", c->spec.dir);
	enum hd_err err = hd_fs_mkdirs(c->spec.fs, path, diag);
	(void)snprintf(path, sizeof path, "%.400s/log/machine-%s.log", c->spec.dir, m->name);
	return err ? err : hd_file_open(c->spec.fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
		log,
		diag);
}

static enum hd_err start(struct hd_cloud *c, struct hd_cloud_machine *m, struct hd_diag *diag)
{
	const char *argv[ARGS] = { "/proc/self/exe", "worker", "--join", c->spec.dir, "--devices",
		c->spec.devices, "-q", "--wait", "600s" };
	char base[TEXT], source[TEXT], every[TEXT];
	const double every_ms = 5000 / c->spec.speed;
	struct hd_file log = { 0 };
	uint32_t n = 9;

	(void)snprintf(source, sizeof source, "elastic.notice.source=%s", c->spec.noticed ?
		hd_metadata_cloud_name(m->cloud) : "none");
	(void)snprintf(base, sizeof base, "elastic.notice.base=http://%s/%s",
		c->spec.services->listener.addr + strlen("tcp:"), m->name);
	(void)snprintf(every, sizeof every, "elastic.notice.every=%d ms", every_ms < 50 ? 50 : (int)every_ms);
	for (size_t i = 0; i < 3; i++) {
		argv[n++] = "-s";
		argv[n++] = (const char *const[]){ source, base, every }[i];
	}
	const char *const more[][2] = { { "--slow", c->spec.slow }, { "--vn-time", c->spec.vn_time },
		{ "--steps", c->spec.steps } };
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i][1]) {
			argv[n++] = more[i][0];
			argv[n++] = more[i][1];
		}
	enum hd_err err = open_log(c, m, &log, diag);
	if (!err)
		err = hd_proc_spawn(c->spec.host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id,
			.err = log.id, .tie = &m->tie }, &m->proc, diag);
	if (log.fs)
		(void)!hd_file_close(&log, NULL);         /* nothing was written by this process */
	m->began_ns = hd_clock_now_ns(c->spec.clock);
	return err;
}

static void pay(struct hd_cloud *c, struct hd_cloud_machine *m)
{
	c->paid_ms += (hd_clock_now_ns(c->spec.clock) - m->began_ns) / HD_NS_PER_MS;
	m->proc = (struct hd_proc){ 0 };
}

/* Its process group, and the memory of it. */
static void end(struct hd_cloud *c, struct hd_cloud_machine *m)
{
	int code;

	if (m->proc.host) {
		(void)!hd_proc_signal(&m->proc, HD_PROC_KILL_ALL, NULL);
		if (hd_proc_wait(&m->proc, WAIT_NS, &code, NULL))
			hd_proc_finish(&m->proc);
		pay(c, m);
	}
	hd_tie_cut(&m->tie);
	hd_metadata_forget(&c->spec.services->metadata, m->name);
	*m = (struct hd_cloud_machine){ .name = "" };
	c->n--;
}

/* ---- what happens to it */

static enum hd_err add(struct hd_cloud *c, const struct hd_metadata_event *e, struct hd_diag *diag)
{
	struct hd_cloud_machine *m = find(c, "");

	assert(m);
	*m = (struct hd_cloud_machine){ .name = "" };
	memcpy(m->name, e->node, sizeof m->name);
	m->cloud = e->cloud;
	c->added++;
	c->n++;
	c->most = c->n > c->most ? c->n : c->most;
	enum hd_err err = hd_tie_open(&m->tie, diag);
	return err ? err : start(c, m, diag);
}

static void freeze(struct hd_cloud *c, struct hd_cloud_machine *m, const struct hd_metadata_event *e)
{
	m->thaw_ns = hd_clock_now_ns(c->spec.clock) + (e->lead_ns < 0 ? HD_CLOUD_FREEZE_NS : e->lead_ns);
	if (m->proc.host)
		(void)!hd_proc_signal(&m->proc, HD_PROC_STOP, NULL);
}

/* What services say from now on; m NULL: of no machine that is there. */
static enum hd_err tell_services(struct hd_cloud *c, struct hd_cloud_machine *m,
	const struct hd_metadata_event *e, struct hd_diag *diag)
{
	struct hd_metadata_event now = *e;

	now.at_ns = 0;
	c->warned += e->what == HD_METADATA_NOTICE;
	if (m)
		m->warned = e->what == HD_METADATA_NOTICE || (m->warned && e->what != HD_METADATA_WITHDRAW);
	return hd_metadata_add(&c->spec.services->metadata, &now) ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"more than %d events of services at once", HD_METADATA_SCRIPT);
}

enum hd_err hd_cloud_do(struct hd_cloud *c, const struct hd_metadata_event *e, struct hd_diag *diag)
{
	struct hd_cloud_machine *m = find(c, e->node);

	assert(m || e->what == HD_METADATA_ADD || !hd_metadata_of_machine(e->what));
	if (c->spec.said)
		c->spec.said(c->spec.user, e);
	if (!hd_metadata_of_machine(e->what))
		return tell_services(c, m, e, diag);
	if (e->what == HD_METADATA_ADD)
		return add(c, e, diag);
	if (e->what == HD_METADATA_KILL) {
		c->killed++;
		end(c, m);
	} else if (e->what == HD_METADATA_FREEZE) {
		freeze(c, m, e);
	} else {
		c->signals++;
		if (m->proc.host)
			(void)!hd_proc_signal(&m->proc, e->sig, NULL);
	}
	return HD_OK;
}

static enum hd_err look_at(struct hd_cloud *c, struct hd_cloud_machine *m, bool again, struct hd_diag *diag)
{
	const int64_t now_ns = hd_clock_now_ns(c->spec.clock);
	int code = 0;

	if (m->thaw_ns && now_ns >= m->thaw_ns && m->proc.host) {
		m->thaw_ns = 0;
		(void)!hd_proc_signal(&m->proc, HD_PROC_CONT, NULL);
	}
	if (m->proc.host && hd_proc_wait(&m->proc, 0, &code, NULL) == HD_OK) {
		pay(c, m);
		m->again_ns = now_ns + AGAIN_NS;
		/* released (10), asked to stop (75), or killed by something else: the run says what
		 * follows */
		m->failed = code && code < 128 && code != hd_err_exit(HD_E_WORKERS) &&
			code != hd_err_exit(HD_E_PREEMPTED) ? m->failed + 1 : 0;
		if (m->failed >= HD_CLOUD_ALIKE)
			return hd_fail(diag, HD_E_INTEGRITY, "the worker of machine %s ended %u times with "
				"an "
				"error, the last time with exit code %d: %s/log/machine-%s.log says why",
				m->name, m->failed, code, c->spec.dir, m->name);
	}
	if (again && !m->proc.host && !m->warned && now_ns >= m->again_ns) {
		c->again++;
		return start(c, m, diag);
	}
	return HD_OK;
}

enum hd_err hd_cloud_look(struct hd_cloud *c, bool again, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < HD_MACHINES_MOST && !err; i++)
		if (c->machine[i].name[0])
			err = look_at(c, &c->machine[i], again, diag);
	return err;
}

void hd_cloud_finish(struct hd_cloud *c)
{
	for (size_t i = 0; i < HD_MACHINES_MOST; i++)
		if (c->machine[i].name[0])
			end(c, &c->machine[i]);
}
