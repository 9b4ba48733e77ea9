#include "worker/elastic_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/memory.h"
#include "sys/process.h"
#include "plan/comm.h"

enum { HD_ELASTIC_STREAMS = 65536 };

enum hd_err hd_elastic_address(const char *text, char transport[16], char addr[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	const char *blank = strchr(text, ' ');

	if (!blank || blank == text || blank - text >= 16 || strlen(blank + 1) >= HD_ADDR_CAP || !blank[1])
		return hd_fail(diag, HD_E_INVAL,
			"address \"%s\": write TRANSPORT ADDRESS, as \"shm unix:run.sock\" or \"tls "
			"tcp:127.0.0.1:7000\"", text);
	snprintf(transport, 16, "%.*s", (int)(blank - text), text);
	snprintf(addr, HD_ADDR_CAP, "%s", blank + 1);
	return HD_OK;
}

/* A Unix path may hold a semicolon itself: it stands last, and is not searched. */
const char *hd_elastic_reach(const char *addresses, bool remote, char one[HD_ELASTIC_ADDR])
{
	const char *end = strchr(addresses, ';'), *path = strstr(addresses, "unix:");
	bool two = end && (!path || end < path);

	snprintf(one, HD_ELASTIC_ADDR, "%.*s", two && remote ? (int)(end - addresses) : HD_MSG_ADDR, two &&
		!remote ? end + 1 : addresses);
	return one;
}

struct hd_hash hd_elastic_realm(struct hd_hash realm, struct hd_hash job)
{
	static const struct hd_hash none = { { 0 } };

	return hd_hash_same(realm, none) ? job : realm;
}

static void wake(void *user) { hd_hub_wake(&((struct hd_elastic *)user)->hub); }

static void call_back(void *worker) { hd_dist_call(worker); }

/* On a device's thread, in the midst of a pass. */
static void on_final(void *user, uint32_t pass, uint32_t bucket)
{
	(void)pass;                       /* the pass that the compute thread has begun */
	hd_finals_note(user, bucket);
}

static void on_early(void *user, uint32_t bucket) { hd_finals_note(user, bucket); }

/* Notes of the run (checkpoints, evaluations, warnings) travel to the coordinator, which writes them
 * down. */
void hd_elastic_note_json(struct hd_elastic *e, const char *kind, const char *json)
{
	hd_lock_take(&e->notes_lock);
	if (e->nnotes < HD_ELASTIC_NOTES) {
		struct hd_note *note = &e->note[e->nnotes++];
		snprintf(note->kind, sizeof note->kind, "%s", kind);
		snprintf(note->json, sizeof note->json, "%s", json);
	}
	hd_lock_give(&e->notes_lock);
}

/* False: with what JSON makes of its bytes it is too long. */
static bool put_note(struct hd_elastic *e, const char *kind, const char *text)
{
	char room[sizeof e->note->json];
	struct hd_json_writer w;
	struct hd_text body;

	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", text);
	hd_json_close(&w);
	if (!body.full)
		hd_elastic_note_json(e, kind, room);
	return !body.full;
}

void hd_elastic_note(struct hd_elastic *e, const char *kind, const char *text)
{
	char words[256];

	if (put_note(e, kind, text))
		return;
	snprintf(words, sizeof words, "%.200s ... (cut)", text);
	(void)put_note(e, kind, words);
}

static void on_note(void *user, const char *kind, const char *text) { hd_elastic_note(user, kind, text); }

static void on_evaluating(void *user, const char *split)
{
	(void)split;
	hd_elastic_note_json(user, HD_NOTE_EVALUATING, "{}");
}

static void on_eval(void *user, uint64_t step, const char *split, const struct hd_metrics *metrics)
{
	char room[1500];
	struct hd_json_writer w;
	struct hd_text body;

	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)step);
	hd_rundir_eval_body(&w, split, metrics);
	hd_json_close(&w);
	if (!body.full)
		hd_elastic_note_json(user, "eval", room);
}

void hd_far_id(char id[HD_FAR_ID + 1])
{
	struct hd_proc_self self;
	char name[HD_HOST_CAP + 48], hex[HD_HASH_HEX];
	uint64_t boot[2];

	hd_proc_self(&self);
	memcpy(boot, self.boot, sizeof boot);
	const int n = snprintf(name, sizeof name, "%llx%llx %u %s", (unsigned long long)boot[0],
		(unsigned long long)boot[1], self.pid, self.host);
	hd_hash_hex(hd_hash(name, (size_t)n), hex);
	snprintf(id, HD_FAR_ID + 1, "%.*s", HD_FAR_ID, hex);
}

const char *hd_far_of_host(const char *host)
{
	const char *id = host + strlen(HD_FAR_HOST);

	return host && !strncmp(host, HD_FAR_HOST, strlen(HD_FAR_HOST)) && strlen(id) == HD_FAR_ID &&
		!id[strspn(id, "0123456789abcdef")] ? id : NULL;
}

static void own_name(const struct hd_elastic *e, char *host, size_t cap)
{
	struct hd_proc_self self;
	char id[HD_FAR_ID + 1];

	hd_proc_self(&self);
	hd_far_id(id);
	if (e->spec->far)
		snprintf(host, cap, HD_FAR_HOST "%s", id);
	else
		snprintf(host, cap, "pid:%u", self.pid);
}

static uint64_t last_step(const struct hd_elastic *e)
{
	return e->spec->stop_at && e->spec->stop_at < e->task->nsteps ? e->spec->stop_at : e->task->nsteps;
}

static enum hd_err make_machine(struct hd_elastic *e, struct hd_diag *diag)
{
	struct hd_member_config config = {
		.nvns = e->task->job->nvns, .nbuckets = e->nbuckets, .copies = e->copies,
		.servers = hd_job_servers(e->task->job), .bytes = e->task->layout.moved,
		.nsteps = last_step(e), .detect_ns = e->detect_ns,
		.job = hd_task_alike(e->task), .kernels = hd_worker_fingerprint(e->worker),
		.ndevices = hd_run_spec(e->run)->ndevices,
		.takes_over = e->spec->take_over != NULL, .none_takes_over = e->spec->far,
		.buckets = e->pipes.first.shape.nstages ? &e->pipes.first.buckets : NULL,
		.of_shape = hd_pipe_set_buckets, .of_shape_self = &e->pipes,
		.goes_on = e->pipes.first.shape.nstages > 1,
		.varies = hd_job_int(e->task->job, HD_JOB_MODE) == HD_MODE_BOUNDED,
		.early = hd_pipe_set_early,
		.pairs = hd_job_int(e->task->job, HD_JOB_COMM_PRIMITIVE) == HD_PRIMITIVE_HALVING,
	};
	struct hd_memory_info memory;
	uint64_t seed[2] = { (uint64_t)hd_clock_now_ns(e->spec->clock), 0 };
	struct hd_proc_self self;

	hd_memory_look(&memory);
	hd_proc_self(&self);
	seed[1] = self.pid;
	struct hd_hash nonce = hd_hash(seed, sizeof seed);
	memcpy(&config.nonce, &nonce, sizeof config.nonce);
	config.memory = memory.limit_bytes;
	config.vn_ps = e->spec->vn_ps;
	snprintf(config.address, sizeof config.address, "%s", e->address);
	own_name(e, config.host, sizeof config.host);
	snprintf(config.zone, sizeof config.zone, "%s", e->spec->zone ? e->spec->zone : "");
	return hd_member_create(&e->member, &config, diag);
}

static enum hd_err make_hub(struct hd_elastic *e, struct hd_diag *diag)
{
	struct hd_wire_events events = hd_elastic_events;
	struct hd_hub_config config = {
		.job = hd_elastic_realm(e->spec->realm, e->task->job_hash), .job_hash = e->task->job_hash,
			.kernels = hd_worker_fingerprint(e->worker),
		.worker = HD_WORKER_NONE, .role = HD_ROLE_WORKER,
		.detect_ms = (uint32_t)(e->detect_ns / 1000000),
		.peers_cap = HD_HUB_PEERS, .streams_cap = HD_ELASTIC_STREAMS,
		.kept_bytes = hd_comm_flight_bytes(&e->task->comm),
		.plaintext = e->spec->plaintext, .key = e->spec->key, .key_len = e->spec->key_len,
		.stamp = e->recorder ? hd_elastic_stamp : NULL,
	};
	char transport[16], addr[HD_ADDR_CAP];
	struct hd_text addresses;

	events.self = e;
	hd_net_real(&e->net);
	e->net.world = e->spec->key || e->spec->plaintext;
	enum hd_err err = hd_loop_init(&e->loop, e->spec->clock, diag);
	e->loop.rest = hd_elastic_yield;
	e->loop.rest_self = e;
	if (!err)
		err = hd_hub_init(&e->hub, &config, &events, &e->loop, &e->net, diag);
	hd_text_fixed(&addresses, e->address, sizeof e->address);
	for (size_t i = 0; i < HD_ELASTIC_LISTENS && e->spec->listen[i] && !err; i++) {
		err = hd_elastic_address(e->spec->listen[i], transport, addr, diag);
		if (!err)
			err = hd_hub_listen(&e->hub, transport, addr, diag);
		hd_text_addf(&addresses, "%s%s %s", i ? ";" : "", transport, addr);
	}
	return err || !addresses.full ? err : hd_fail(diag, HD_E_REFUSED,
		"the addresses of this worker, %s, are too long for a message", e->address);
}

static enum hd_err take_rooms(struct hd_elastic *e, struct hd_diag *diag)
{
	e->room = hd_alloc(HD_TELL_MAX);
	bool all = e->room != NULL;
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++) {
		e->chunk[i].bytes = hd_alloc(HD_CATCHUP_CHUNK);
		all &= e->chunk[i].bytes != NULL;
	}
	if (!all)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the messages of a worker");
	enum hd_err err = hd_elastic_slots_init(e, diag);
	err = err ? err : hd_later_init(&e->later, diag);
	err = err ? err : hd_elastic_spent_init(e, diag);
	if (!err)
		err = hd_relay_init(&e->relay, &e->hub, e->worker, &e->task->layout, e->task->job->nvns,
			diag);
	hd_relay_comm(&e->relay, &e->task->comm);
	/* each stage of a virtual node may be another worker's */
	return err ? err : hd_relay_planes(&e->relay, e->pipes.first.shape.nstages, diag);
}

static void give_back(struct hd_elastic *e)
{
	hd_run_watch(e->run, &(struct hd_run_watch){ 0 });
	hd_dist_watch(e->worker, NULL, NULL);
	hd_dist_watch_early(e->worker, NULL, NULL);
	hd_dist_mail_watch(e->worker, NULL, NULL);
	hd_hub_finish(&e->hub);
	hd_dist_mail_void(e->worker);
	hd_loop_finish(&e->loop);
	hd_member_destroy(e->member);
	hd_relay_finish(&e->relay);
	hd_elastic_slots_finish(e);
	hd_elastic_spent_finish(e);
	hd_catchup_sink_finish(&e->sink);
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++) {
		hd_catchup_source_finish(&e->transfer[i].source);
		for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++)
			hd_catchup_chunk_free(e->transfer[i].out[k].chunk);
	}
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++)
		hd_free(e->chunk[i].bytes);
	hd_free(e->room);
	hd_free(e->stood.arrived);
	hd_commands_finish(&e->commands);
	hd_finals_finish(&e->finals);
	hd_finals_finish(&e->early);
	hd_arena_finish(&e->messages);
	hd_pipe_set_finish(&e->pipes);
	hd_arena_finish(&e->plan_arena[0]);
	hd_arena_finish(&e->plan_arena[1]);
	hd_lock_finish(&e->notes_lock);
	hd_lock_finish(&e->turn);
	hd_later_finish(&e->later);
	hd_free(e);
}

/* How it ended, for the caller. An exit code that is no error of ours is passed on. */
static enum hd_err verdict(const struct hd_elastic *e, bool *fenced, struct hd_diag *diag)
{
	*fenced = e->fenced || hd_elastic_comes_back(e);
	if (e->io_err)
		return hd_fail(diag, e->io_err, "%s", e->io_diag.text);
	if (e->fenced || e->exit_code == 0)
		return HD_OK;
	return hd_fail(diag, hd_err_of_exit((int)e->exit_code), "%s",
		e->exit_text[0] ? e->exit_text : "the coordinator ended the run");
}

enum hd_err hd_elastic_attend(const struct hd_elastic_spec *spec, bool *fenced, struct hd_diag *diag)
{
	struct hd_elastic *e = hd_alloc(sizeof *e);

	if (!e)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a worker");
	*e = (struct hd_elastic){ .spec = spec, .run = spec->run, .worker = hd_run_worker(spec->run),
		.task = hd_run_task(spec->run), .recorder = hd_run_recorder(spec->run),
		.self = HD_NOBODY, .readmit = HD_NOBODY, .source = HD_NOBODY, .between = true };
	e->nbuckets = hd_layout_nbuckets(&e->task->layout);
	e->copies = hd_job_copies(e->task->job);
	e->partial = e->copies || hd_dist_by_stage(e->worker);
	e->detect_ns = hd_job_int(e->task->job, HD_JOB_DETECT);
	e->pace_ns = hd_job_int(e->task->job, HD_JOB_PACE);
	const int64_t order = hd_job_int(e->task->job, HD_JOB_COMM_ORDER);
	e->keeps_order = order == HD_COMM_FIFO || order == HD_COMM_RANDOM;
	atomic_init(&e->awaits, HD_NOBODY);
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		e->transfer[i].worker = HD_NOBODY;
	hd_lock_init(&e->notes_lock);
	hd_lock_init(&e->turn);
	hd_arena_init(&e->messages, 0);
	hd_arena_init(&e->plan_arena[0], 0);
	hd_arena_init(&e->plan_arena[1], 0);
	enum hd_err err = hd_pipe_set_init(&e->pipes, e->task, diag);
	if (!err)
		err = hd_commands_init(&e->commands, hd_elastic_done, e, diag);
	if (!err)
		err = hd_finals_init(&e->finals, e->nbuckets, wake, e, diag);
	if (!err)
		err = hd_finals_init(&e->early, e->nbuckets, wake, e, diag);
	if (!err)
		err = make_hub(e, diag);
	if (!err)
		err = make_machine(e, diag);
	if (!err)
		err = take_rooms(e, diag);
	if (!err)
		err = hd_dist_aside_open(e->worker, diag);
	if (!err) {
		e->commands.call = call_back;
		e->commands.compute = e->worker;
		hd_run_watch(e->run, &(struct hd_run_watch){ .user = e, .note = on_note, .eval = on_eval,
			.evaluating = on_evaluating });
		hd_dist_watch(e->worker, on_final, &e->finals);
		hd_dist_watch_early(e->worker, on_early, &e->early);
		hd_dist_mail_watch(e->worker, wake, e);
		hd_run_begin(e->run);
		e->relay.digest_every = hd_run_digest_every(e->run);
		e->longest_ns = e->took[0] = (uint64_t)(hd_task_flops(e->task) / HD_ELASTIC_SLOW_MFLOPS *
			1e3);
		e->ntook = 1;
		err = hd_thread_start(&e->wire, "wire", -1, hd_elastic_io, e, diag);
	}
	if (!err) {
		hd_elastic_compute(e);
		hd_thread_join(&e->wire);
		err = verdict(e, fenced, diag);
	}
	give_back(e);
	return err;
}
