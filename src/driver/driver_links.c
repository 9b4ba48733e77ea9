#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"
#include "worker/elastic.h"

static bool make_machine(struct driver *c)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_coordinator_create(&c->machine, &c->config, hd_clock_now_ns(c->spec->clock),
		&diag);

	if (err)
		driver_fail(c, err, &diag);
	return !err;
}

/* One worker of an earlier coordinator is alive: the others may be about to connect. They count as started
 * for as long as a start waits for all, or there would be twice as many. */
static void presume(struct driver *c)
{
	uint32_t left = c->config.target > c->local.n + c->to_start + 1 ?
		c->config.target - c->local.n - c->to_start - 1 : 0;

	if (c->spec->target || c->config.record.started)
		return;
	c->presumed = left;
	c->presumed_ns = hd_clock_now_ns(c->spec->clock) + HD_TIMEOUT_NS(SHORT_HANDED, c->detect_ns);
}

/* The first worker that joins fixes the kernels of the job: stored before any membership. */
static bool begin(struct driver *c, const struct hd_msg *msg)
{
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;

	if (c->machine)
		return true;
	if (msg->kind != HD_MSG_JOIN)
		return false;
	if (!c->has_kernels) {
		c->config.kernels = msg->join.kernels;
		err = driver_keep_kernels(c, &diag);
	}
	if (err)
		driver_fail(c, err, &diag);
	presume(c);
	return !err && make_machine(c);
}

/* No worker has connected. If the store knows members and no target was given, the machine starts without
 * them and asks for new ones. If there were none, the stored target is started. Else a worker must join
 * within workers.min_wait, or within the time of a start where that is more. */
void driver_look_for_a_start(struct driver *c, int64_t waited_ns)
{
	int64_t start_ns = HD_TIMEOUT_NS(START, c->detect_ns),
		most_ns = c->config.min_wait_ns > start_ns ? c->config.min_wait_ns : start_ns;
	struct hd_diag diag = { "" };

	if (c->machine || c->over)
		return;
	/* none can come as long as all wait in a queue */
	if (c->queued_ns && hd_clock_now_ns(c->spec->clock) - c->queued_ns < waited_ns)
		waited_ns = hd_clock_now_ns(c->spec->clock) - c->queued_ns;
	if (c->config.record.started && !c->spec->target &&
		waited_ns > HD_TIMEOUT_NS(CALLED_BACK, c->detect_ns))
		(void)make_machine(c);
	else if (c->config.record.halting && waited_ns > HD_TIMEOUT_NS(CALLED_BACK, c->detect_ns)) {
		c->exit_code = c->config.record.halt_code;
		snprintf(c->exit_text, sizeof c->exit_text, "%s", c->config.record.halt_why);
		c->over = true;
	} else if (!c->spec->target && !c->asked_for_all && c->spec->worker_argv &&
		waited_ns > HD_TIMEOUT_NS(CALLED_BACK, c->detect_ns)) {
		c->asked_for_all = true;
		c->to_start += c->config.target;
	} else if (waited_ns > most_ns)
		driver_fail(c, hd_fail(&diag, HD_E_WORKERS,
			"no worker joined within workers.min_wait: %s/log says why",
			c->spec->dir->path), &diag);
}

static void tell_job(struct driver *c, uint32_t worker)
{
	const struct hd_task *task = c->spec->task;
	const char *text = c->spec->job_text ? c->spec->job_text : "",
		*folder = c->spec->job_folder ? c->spec->job_folder : "";
	const struct hd_msg msg = { .kind = HD_MSG_OFFER, .offer = { .job = task->job_hash,
		.data = task->data->hash, .data_count = task->data->count,
		.ntext = (uint32_t)strcspn(text, "\n"), .text = text, .nfolder = (uint32_t)strlen(folder),
		.folder = folder } };

	size_t len = 0;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_msg_encode(&msg, c->buf, HD_TELL_MAX, &len, &diag);

	if (!err)
		err = hd_hub_tell(&c->hub, worker, HD_MSG_OFFER, 0, c->buf, len, &diag);
	if (err && err != HD_E_PEERLOST)          /* the worker can ask again; the run goes on */
		hd_hub_drop(&c->hub, worker, HD_CLOSE_DROPPED, diag.text);
}

/* A worker that comes over the network and says that it shares the run's folder: *shares, it does. */
static bool says_far(const struct driver *c, const struct hd_msg *msg, bool *shares)
{
	char host[HD_MSG_KIND_NAME + 1] = "", path[HD_PATH_CAP];
	struct hd_stat stat;

	if (msg->kind != HD_MSG_JOIN || msg->join.nhost >= sizeof host)
		return false;
	memcpy(host, msg->join.host, msg->join.nhost);
	const char *id = hd_far_of_host(host);
	snprintf(path, sizeof path, "%s/" HD_FAR_FOLDER "/%s", c->spec->dir->path, id ? id : "");
	*shares = id && !hd_fs_stat(c->spec->fs, path, &stat, NULL);
	return id != NULL;
}

/* What it saved would be lost. */
static void refuse(struct driver *c, uint32_t guest)
{
	static const char why[] = "the folder in which it was started is not this run's, but a copy: "
		"--far is for "
		"a folder that both machines share; without, join by --join HOST:PORT --key FILE";
	const struct hd_msg msg = { .kind = HD_MSG_REFUSE, .refuse = { .code = 2, .nwhy = sizeof why - 1,
		.why = why } };
	size_t len = 0;

	if (hd_msg_encode(&msg, c->buf, HD_TELL_MAX, &len, NULL) || hd_hub_tell(&c->hub, guest,
		HD_MSG_REFUSE, 0,
		c->buf, len, NULL))
		hd_hub_drop(&c->hub, guest, HD_CLOSE_DROPPED, why);
}

static void on_message(void *self, const struct hd_message *m)
{
	struct driver *c = self;
	struct hd_diag diag = { "" };
	bool remote = hd_hub_is_away(&c->hub, m->worker);
	struct hd_msg msg;

	hd_arena_reset(&c->messages);
	enum hd_err err = hd_msg_decode(&msg, m->id, m->bytes, m->len, &c->messages, &diag);
	if (err == HD_E_PROTOCOL)
		hd_hub_drop(&c->hub, m->worker, HD_CLOSE_FRAME, diag.text);
	else if (err)
		driver_fail(c, err, &diag);
	if (err)
		return;
	bool shares = false;
	const bool far = remote && says_far(c, &msg, &shares);
	remote = remote && !far;
	if (far && !shares) {
		refuse(c, m->worker);
		return;
	}
	if (msg.kind == HD_MSG_ASK)
		tell_job(c, m->worker);
	else if (remote && !c->machine && !c->config.record.started)
		hd_hub_drop(&c->hub, m->worker, HD_CLOSE_DROPPED, "the run has not begun; call again");
	else if (begin(c, &msg) && msg.kind == HD_MSG_SEAL && msg.seal.ran)
		hd_reshape_seal(&c->reshape, m->worker, msg.seal.step, &msg.seal.news,
			hd_coordinator_view(c->machine));
	if (c->machine)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = m->worker,
			.msg = &msg, .remote = remote });
}

static void on_up(void *self, const struct hd_peer_info *peer)
{
	(void)self;
	(void)peer;                       /* it says JOIN */
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	(void)why;
	(void)text;
	driver_feed(self, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker,
		.why = HD_CLOSED });
}

static void on_suspect(void *self, uint32_t worker, int64_t silent_ms)
{
	driver_feed(self, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker,
		.why = silent_ms ? HD_SILENT : HD_HEARD });
}

/* No transfer ends here. */
static void on_arrived(void *self, const struct hd_arrival *arrival) { (void)self; (void)arrival; }
static void on_sent(void *self, const struct hd_sent *sent) { (void)self; (void)sent; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self; (void)worker; (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self; (void)probe; }
/* Users read it, and a coordinator that follows listens there again. */
static enum hd_err tell_address(struct driver *c, const char *addr, struct hd_diag *diag)
{
	char text[HD_ADDR_CAP + 64];

	snprintf(c->address, sizeof c->address, "%s", addr + (strncmp(addr, "tcp:", 4) ? 0 : 4));
	snprintf(text, sizeof text, "workers of other machines join at %s%s", c->address,
		c->spec->key ? "" : ", without a key");
	driver_note(c, "listening", HD_NOBODY, text);
	return hd_rundir_put(c->spec->dir, HD_DRIVER_ADDRESS, c->address, strlen(c->address), diag);
}

enum hd_err driver_open_links(struct driver *c, struct hd_diag *diag)
{
	const struct hd_wire_events events = { .self = c, .up = on_up, .lost = on_lost, .suspect = on_suspect,
		.message = on_message,
		.arrived = on_arrived, .sent = on_sent, .stale = on_epoch, .ahead = on_epoch,
		.probed = on_probed };
	struct hd_hub_config config = { .job = hd_elastic_realm(c->spec->realm, c->spec->task->job_hash),
		.job_hash = c->spec->task->job_hash,
		.worker = HD_COORDINATOR_LINK, .role = HD_ROLE_COORDINATOR,
		.detect_ms = (uint32_t)(c->detect_ns / 1000000),
		.peers_cap = HD_HUB_PEERS, .streams_cap = 4096,
		.plaintext = c->spec->plaintext, .key = c->spec->key, .key_len = c->spec->key_len,
		.stamp = c->recorder ? driver_trace_stamp : NULL };
	char transport[16], addr[HD_ADDR_CAP];

	hd_net_real(&c->net);
	c->net.world = c->spec->key || c->spec->plaintext;
	enum hd_err err = hd_loop_init(&c->loop, c->spec->clock, diag);
	if (!err)
		err = hd_hub_init(&c->hub, &config, &events, &c->loop, &c->net, diag);
	for (size_t i = 0; i < HD_DRIVER_LISTENS && c->spec->listen[i] && !err; i++) {
		err = hd_elastic_address(c->spec->listen[i], transport, addr, diag);
		if (!err)
			err = hd_hub_listen(&c->hub, transport, addr, diag);
		if (!err && i)
			err = tell_address(c, addr, diag);
	}
	c->control = (struct hd_control){ .self = c, .answer = driver_answer, .tag = 1 };
	if (!err)
		err = hd_control_path(c->spec->dir->path, "run.sock", addr, diag);
	return err ? err : hd_control_open(&c->control, addr, &c->loop, &c->net, diag);
}
