#include "chaos/metadata.h"

#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "base/json.h"
#include "base/num.h"

#define S INT64_C(1000000000)

void hd_metadata_init(struct hd_metadata *m, int64_t now_ns)
{
	memset(m, 0, sizeof *m);
	m->began_ns = now_ns;
}

static struct hd_metadata_node *any_gone(struct hd_metadata *m)
{
	for (uint32_t i = 0; i < m->nnodes; i++)
		if (m->node[i].gone)
			return &m->node[i];
	return NULL;
}

void hd_metadata_forget(struct hd_metadata *m, const char *name)
{
	for (uint32_t i = 0; i < m->nnodes; i++)
		if (!strcmp(m->node[i].name, name))
			m->node[i].gone = true;
}

/* A name that is no part of a path, or one too many: NULL. */
static struct hd_metadata_node *node_of(struct hd_metadata *m, const char *name, size_t len)
{
	if (len >= HD_METADATA_NAME)
		return NULL;
	for (uint32_t i = 0; i < m->nnodes; i++)
		if (strlen(m->node[i].name) == len && !memcmp(m->node[i].name, name, len))
			return &m->node[i];
	struct hd_metadata_node *n = m->nnodes < HD_METADATA_NODES ? &m->node[m->nnodes++] : any_gone(m);
	if (!n)
		return NULL;
	*n = (struct hd_metadata_node){ .failing = -1, .incarnation = 1 };
	memcpy(n->name, name, len);
	return n;
}

/* ---- events ---- */

static const char *const does[] = {
#define X(id, word, text) word,
	HD_METADATA_DOES(X)
#undef X
};
static const char *const clouds[] = { "ec2", "gce", "azure", "all" };

const char *hd_metadata_do_name(enum hd_metadata_do what) { return does[what]; }
const char *hd_metadata_cloud_name(enum hd_metadata_cloud cloud) { return clouds[cloud]; }

static int index_of(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return (int)i;
	return -1;
}

/* Seconds that may be missing. */
static enum hd_err read_span(const struct hd_json *json, const char *key, int64_t *ns, struct hd_diag *diag)
{
	double s = 0;

	if (!hd_json_find(json, key))
		return HD_OK;
	enum hd_err err = hd_json_get_f64(json, key, &s, diag);
	if (!err && !(s >= 0 && s <= 1e8))
		err = hd_fail(diag, HD_E_INPUT, "\"%s\" is not between 0 and 1e8 seconds", key);
	if (!err)
		*ns = (int64_t)(s * 1e9);
	return err;
}

static enum hd_err read_words(const struct hd_json *json, struct hd_metadata_event *e, struct hd_diag *diag)
{
	/* in the order of enum hd_proc_signal */
	static const char *const signals[] = { "TERM", "KILL", "INT", "STOP", "CONT", "USR1" };
	const char *word = "", *node = "", *cloud = "all", *action = "terminate", *signal = "TERM";
	enum hd_err err = hd_json_get_text(json, "do", &word, diag);

	if (!err)
		err = hd_json_get_text(json, "node", &node, diag);
	if (!err && hd_json_find(json, "cloud"))
		err = hd_json_get_text(json, "cloud", &cloud, diag);
	if (!err && hd_json_find(json, "action"))
		err = hd_json_get_text(json, "action", &action, diag);
	if (!err && hd_json_find(json, "sig"))
		err = hd_json_get_text(json, "sig", &signal, diag);
	int what = index_of(does, sizeof does / sizeof *does, word), which = index_of(clouds, 4, cloud),
		sig = index_of(signals, sizeof signals / sizeof *signals, signal);
	if (!err && sig < 0)
		err = hd_fail(diag, HD_E_INPUT, "sig is \"%.24s\"; there are TERM, KILL, INT, STOP, CONT, "
			"USR1",
			signal);
	if (!err && (what < 0 || which < 0))
		err = hd_fail(diag, HD_E_INPUT,
			"no service does \"%.24s\" of cloud \"%.24s\"; there are notice, rebalance, migrate, "
			"maintain, withdraw, start, expire, fail, silence, heal, add, kill, freeze, signal; "
			"ec2, gce, azure, all", word, cloud);
	if (!err && (!*node || strlen(node) >= sizeof e->node || strspn(node, "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(node) ||
		index_of((const char *const[]){ "terminate", "stop", "hibernate" }, 3, action) < 0))
		err = hd_fail(diag, HD_E_INPUT,
			"node is \"%.40s\" and action \"%.24s\"; a node has 1 to %d of A-Z a-z 0-9 . _ -, "
			"an action is terminate, stop or hibernate", node, action, HD_METADATA_NAME - 1);
	if (err)
		return err;
	e->what = (enum hd_metadata_do)what;
	e->cloud = (enum hd_metadata_cloud)which;
	e->sig = (enum hd_proc_signal)sig;
	snprintf(e->node, sizeof e->node, "%s", node);
	snprintf(e->action, sizeof e->action, "%s", action);
	return HD_OK;
}

enum hd_err hd_metadata_read(const char *line, size_t len, struct hd_metadata_event *event,
	struct hd_diag *diag)
{
	static const char *const keys[] = { "t", "node", "do", "cloud", "lead", "late", "status", "action",
		"sig", "step", "members", "when", NULL };
	struct hd_metadata_event e = { .lead_ns = -1, .status = 503 };
	const struct hd_json *json;
	struct hd_arena arena;
	const char *when = "";
	int64_t status = 503;

	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_json_parse(&arena, "event", line, len, &json, diag);
	if (!err)
		err = hd_json_only(json, keys, diag);
	if (!err)
		err = read_words(json, &e, diag);
	if (!err)
		err = read_span(json, "t", &e.at_ns, diag);
	if (!err)
		err = read_span(json, "lead", &e.lead_ns, diag);
	if (!err)
		err = read_span(json, "late", &e.late_ns, diag);
	if (!err && hd_json_find(json, "status"))
		err = hd_json_get_i64(json, "status", 0, 599, &status, diag);
	if (!err && status && status < 100)
		err = hd_fail(diag, HD_E_INPUT, "status is %d; write 100 to 599, or 0 for garbage",
		(int)status);
	e.status = (int)status;
	if (!err && hd_json_find(json, "step"))
		err = hd_json_get_i64(json, "step", 0, INT64_MAX, &e.step, diag);
	if (!err && hd_json_find(json, "members"))
		err = hd_json_get_i64(json, "members", 1, INT64_MAX, &e.members, diag);
	if (!err && hd_json_find(json, "when"))
		err = hd_json_get_text(json, "when", &when, diag);
	if (!err && strcmp(when, "") != 0 && strcmp(when, "starved") != 0)
		err = hd_fail(diag, HD_E_INPUT, "when is \"%.24s\"; there is \"starved\": the run gave up "
			"for lack of "
			"machines", when);
	e.starved = *when;
	if (!err)
		*event = e;
	hd_arena_finish(&arena);
	return err == HD_E_INVAL ? HD_E_INPUT : err;
}

bool hd_metadata_add(struct hd_metadata *m, const struct hd_metadata_event *event)
{
	if (m->nscript == HD_METADATA_SCRIPT)
		return false;
	m->script[m->nscript++] = *event;
	return true;
}

static bool is_for(const struct hd_metadata_event *e, enum hd_metadata_cloud cloud)
{
	return e->cloud == cloud || e->cloud == HD_CLOUD_ALL;
}

static void announce(struct hd_metadata_node *n, const struct hd_metadata_event *e, int64_t wall_ns)
{
	static const int64_t usual_s[] = { 120, 30, 30 };
	int64_t lead[3];

	for (int c = 0; c < 3; c++)
		lead[c] = (e->lead_ns < 0 ? usual_s[c] * S : e->lead_ns) - e->late_ns;
	if (is_for(e, HD_CLOUD_EC2)) {
		n->interrupted = true;
		n->ends_wall_ns = wall_ns + lead[0];
		memcpy(n->action, e->action, sizeof n->action);
	}
	n->preempted |= is_for(e, HD_CLOUD_GCE);
	if (is_for(e, HD_CLOUD_AZURE)) {
		n->event = true;
		n->frozen = n->started = false;
		n->event_wall_ns = wall_ns + lead[2];
		n->events++;
	}
}

static void migrate(struct hd_metadata_node *n, const struct hd_metadata_event *e, int64_t wall_ns)
{
	n->migrates |= is_for(e, HD_CLOUD_GCE);
	if (!is_for(e, HD_CLOUD_AZURE))
		return;
	n->event = n->frozen = true;
	n->started = false;
	n->freeze_s = e->lead_ns < 0 ? 5 : e->lead_ns / S;
	n->event_wall_ns = wall_ns + 900 * S;
	n->events++;
}

static void withdraw(struct hd_metadata_node *n, const struct hd_metadata_event *e)
{
	if (is_for(e, HD_CLOUD_EC2)) {
		n->interrupted = false;
		n->rebalance_wall_ns = 0;
	}
	if (is_for(e, HD_CLOUD_GCE))
		n->preempted = n->migrates = n->terminated = false;
	if (is_for(e, HD_CLOUD_AZURE))
		n->event = n->started = false;
}

static void happen(struct hd_metadata_node *n, const struct hd_metadata_event *e, int64_t wall_ns)
{
	switch (e->what) {
	case HD_METADATA_NOTICE:    announce(n, e, wall_ns); break;
	case HD_METADATA_REBALANCE: n->rebalance_wall_ns = wall_ns; break;
	case HD_METADATA_MIGRATE:   migrate(n, e, wall_ns); break;
	case HD_METADATA_MAINTAIN:  n->terminated = true; break;
	case HD_METADATA_WITHDRAW:  withdraw(n, e); break;
	case HD_METADATA_START:     n->started = n->event; break;
	case HD_METADATA_EXPIRE:    n->expired = n->tokens; break;
	case HD_METADATA_FAIL:      n->failing = e->status; break;
	case HD_METADATA_SILENCE:   n->silent = true; break;
	case HD_METADATA_HEAL:
		n->silent = false;
		n->failing = -1;
		break;
	case HD_METADATA_ADD:
	case HD_METADATA_KILL:
	case HD_METADATA_FREEZE:
	case HD_METADATA_SIGNAL: return;
	}
	n->changes++;
	n->incarnation++;
}

int64_t hd_metadata_turn(struct hd_metadata *m, int64_t now_ns, int64_t wall_ns)
{
	int64_t next_ns = INT64_MAX;
	uint32_t left = 0;

	for (uint32_t i = 0; i < m->nscript; i++) {
		struct hd_metadata_event e = m->script[i];
		struct hd_metadata_node *n;
		int64_t at_ns = m->began_ns + e.at_ns + e.late_ns;
		if (at_ns > now_ns) {
			next_ns = at_ns < next_ns ? at_ns : next_ns;
			m->script[left++] = e;
			continue;
		}
		n = node_of(m, e.node, strlen(e.node));
		if (n)
			happen(n, &e, wall_ns);
	}
	m->nscript = left;
	return next_ns;
}

/* ---- answers ---- */

static enum hd_err reply(struct hd_text *out, int status, int64_t wall_ns, const char *lines,
	const char *body)
{
	char date[HD_DATE_HTTP];

	hd_date_http(wall_ns, date);
	hd_text_addf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: heddle\r\n%sContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%s", status, status < 300 ? "OK" : "no", date, lines, strlen(body),
		body);
	return HD_OK;
}

/* One request to one node. */
struct metadata_question {
	struct hd_metadata *m;
	struct hd_metadata_node *n;
	const struct hd_metadata_request *r;
	const char *path;                 /* what follows the node's name */
	size_t path_len;                  /* without what follows '?' */
	const char *query;                /* [query_len] */
	size_t query_len;
	int64_t now_ns, wall_ns, *until_ns;
	struct hd_text *out;
};

static bool is_path(const struct metadata_question *q,
	const char *path) { return q->path_len == strlen(path) &&
	!memcmp(q->path, path, q->path_len); }

static bool has(const struct metadata_question *q, const char *name, const char *value)
{
	return hd_http_is(hd_http_find(q->r->head, name), value);
}

/* The value of an argument; at NULL: it is not there. */
static struct hd_http_span argument(const struct metadata_question *q, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < q->query_len; i++) {
		size_t len = 0;
		while (i + len < q->query_len && q->query[i + len] != '&')
			len++;
		if (len > n && !memcmp(q->query + i, name, n) && q->query[i + n] == '=')
			return (struct hd_http_span){ q->query + i + n + 1, len - n - 1 };
		i += len;
	}
	return (struct hd_http_span){ NULL, 0 };
}

static bool read_u64(struct hd_http_span text, uint64_t max, uint64_t *n)
{
	char digits[24];

	if (!text.at || !text.len || text.len >= sizeof digits)
		return false;
	memcpy(digits, text.at, text.len);
	digits[text.len] = '\0';
	return hd_num_u64(digits, max, n, NULL) == HD_OK;
}

static enum hd_err give_token(const struct metadata_question *q)
{
	uint64_t ttl = 0;
	char token[HD_METADATA_NAME + 32];

	if (!hd_http_is(q->r->head->method, "PUT"))
		return reply(q->out, 405, q->wall_ns, "", "");
	if (!read_u64(hd_http_find(q->r->head, "X-aws-ec2-metadata-token-ttl-seconds"), 21600, &ttl) || !ttl)
		return reply(q->out, 400, q->wall_ns, "", "");
	q->n->tokens++;
	q->n->until_ns[q->n->tokens % HD_METADATA_TOKENS] = q->now_ns + (int64_t)ttl * S;
	snprintf(token, sizeof token, "%s-%u==", q->n->name, q->n->tokens);
	return reply(q->out, 200, q->wall_ns, "Content-Type: text/plain\r\n", token);
}

/* One of the last that were given, while it lives. */
static bool has_token(const struct metadata_question *q)
{
	char token[HD_METADATA_NAME + 32];
	uint32_t last = q->n->tokens, first = last > HD_METADATA_TOKENS ? last - HD_METADATA_TOKENS : 0;

	for (uint32_t i = first > q->n->expired ? first : q->n->expired; i < last; i++) {
		snprintf(token, sizeof token, "%s-%u==", q->n->name, i + 1);
		if (has(q, "X-aws-ec2-metadata-token", token))
			return q->now_ns < q->n->until_ns[(i + 1) % HD_METADATA_TOKENS];
	}
	return false;
}

static void put_time(int64_t wall_ns, char out[40])
{
	int64_t s = wall_ns / S;
	char http[HD_DATE_HTTP];

	/* "Mon, 19 Sep 2016 18:29:47 GMT" -> "2016-09-19T18:29:47Z" */
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	hd_date_http(s * S, http);
	char month[4] = { http[8], http[9], http[10], 0 };
	const char *at = strstr(names, month);
	snprintf(out, 40, "%.4s-%02d-%.2sT%.8sZ", http + 12, at ? (int)(at - names) / 3 + 1 : 0, http + 5,
		http + 17);
}

static enum hd_err answer_ec2(const struct metadata_question *q)
{
	char body[128], time[40];

	if (is_path(q, "/latest/api/token"))
		return give_token(q);
	if (!has_token(q))
		return reply(q->out, 401, q->wall_ns, "", "");
	if (is_path(q, "/latest/meta-data/spot/instance-action") && q->n->interrupted) {
		put_time(q->n->ends_wall_ns, time);
		snprintf(body, sizeof body, "{\"action\":\"%s\",\"time\":\"%s\"}", q->n->action, time);
		return reply(q->out, 200, q->wall_ns, "Content-Type: text/plain\r\n", body);
	}
	if (is_path(q, "/latest/meta-data/events/recommendations/rebalance") && q->n->rebalance_wall_ns) {
		put_time(q->n->rebalance_wall_ns, time);
		snprintf(body, sizeof body, "{\"noticeTime\":\"%s\"}", time);
		return reply(q->out, 200, q->wall_ns, "Content-Type: text/plain\r\n", body);
	}
	return reply(q->out, 404, q->wall_ns, "", "");
}

static enum hd_err answer_gce(const struct metadata_question *q)
{
	bool preempted = is_path(q, "/computeMetadata/v1/instance/preempted"),
		event = is_path(q, "/computeMetadata/v1/instance/maintenance-event");
	char etag[24], lines[96];
	uint64_t wait_s = 0;

	if (!has(q, "Metadata-Flavor", "Google"))
		return reply(q->out, 403, q->wall_ns, "", "Missing Metadata-Flavor:Google header.");
	if (!preempted && !event)
		return reply(q->out, 404, q->wall_ns, "Metadata-Flavor: Google\r\n", "");
	snprintf(etag, sizeof etag, "%016llx", (unsigned long long)q->n->changes);
	if (hd_http_is(argument(q, "wait_for_change"), "true") && hd_http_is(argument(q, "last_etag"),
		etag)) {
		if (!read_u64(argument(q, "timeout_sec"), 3600, &wait_s))
			wait_s = 3600;
		*q->until_ns = q->r->came_ns + (int64_t)wait_s * S;
		if (q->now_ns < *q->until_ns)
			return HD_E_AGAIN;
	}
	snprintf(lines, sizeof lines, "Metadata-Flavor: Google\r\nETag: %s\r\n", etag);
	return reply(q->out, 200, q->wall_ns, lines, preempted ? q->n->preempted ? "TRUE" : "FALSE" :
		q->n->terminated ? "TERMINATE_ON_HOST_MAINTENANCE" :
		q->n->migrates ? "MIGRATE_ON_HOST_MAINTENANCE" : "NONE");
}

static void event_id(const struct hd_metadata_node *n, char id[64])
{
	snprintf(id, 64, "%.20s-event-%llu", n->name, (unsigned long long)n->events);
}

static enum hd_err approve(const struct metadata_question *q)
{
	char id[64];

	event_id(q->n, id);
	if (!q->n->event || !strstr(q->r->body, "\"StartRequests\"") || !strstr(q->r->body, id))
		return reply(q->out, 400, q->wall_ns, "", "");
	q->m->approved++;
	q->n->started = true;
	q->n->incarnation++;
	return reply(q->out, 200, q->wall_ns, "", "");
}

static enum hd_err answer_azure(const struct metadata_question *q)
{
	char body[640], id[64], at[HD_DATE_HTTP] = "";
	int n = 0;

	if (!has(q, "Metadata", "true") || !argument(q, "api-version").at)
		return reply(q->out, 400, q->wall_ns, "", "{\"error\":\"Bad request\"}");
	if (is_path(q, "/metadata/instance/compute/name"))
		return reply(q->out, 200, q->wall_ns, "Content-Type: text/plain\r\n", q->n->name);
	if (!is_path(q, "/metadata/scheduledevents"))
		return reply(q->out, 404, q->wall_ns, "", "");
	if (hd_http_is(q->r->head->method, "POST"))
		return approve(q);
	n = snprintf(body, sizeof body, "{\"DocumentIncarnation\":%llu,\"Events\":[",
		(unsigned long long)q->n->incarnation);
	event_id(q->n, id);
	if (!q->n->started)
		hd_date_http(q->n->event_wall_ns, at);
	if (q->n->event)
		n += snprintf(body + n, sizeof body - (size_t)n,
			"{\"EventId\":\"%s\",\"EventType\":\"%s\",\"ResourceType\":\"VirtualMachine\","
			"\"Resources\":[\"%s\"],\"EventStatus\":\"%s\",\"NotBefore\":\"%s\","
			"\"Description\":\"\",\"EventSource\":\"Platform\",\"DurationInSeconds\":%lld}", id,
			q->n->frozen ? "Freeze" : "Preempt", q->n->name, q->n->started ? "Started" :
			"Scheduled",
			at, (long long)(q->n->frozen ? q->n->freeze_s : -1));
	snprintf(body + n, sizeof body - (size_t)n, "]}");
	return reply(q->out, 200, q->wall_ns, "Content-Type: application/json; charset=utf-8\r\n", body);
}

enum hd_err hd_metadata_answer(struct hd_metadata *m, const struct hd_metadata_request *request,
	int64_t now_ns, int64_t wall_ns, struct hd_text *out, int64_t *until_ns)
{
	static const struct {
		const char *prefix;
		enum hd_err (*answer)(const struct metadata_question *q);
	} row[] = {
		{ "/latest/", answer_ec2 }, { "/computeMetadata/", answer_gce }, { "/metadata/",
			answer_azure } };
	struct hd_http_span target = request->head->target;
	const char *path = target.len ? memchr(target.at + 1, '/', target.len - 1) : NULL;
	struct hd_metadata_node *n = path ? node_of(m, target.at + 1, (size_t)(path - target.at - 1)) : NULL;

	*until_ns = INT64_MAX;
	if (!n)
		return reply(out, 404, wall_ns, "", "");
	if (n->silent)
		return HD_E_AGAIN;
	if (!n->failing)
		hd_text_add(out, "\x16\x03\x01 this is no answer\n");
	if (n->failing >= 0)
		return n->failing ? reply(out, n->failing, wall_ns, "", "") : HD_OK;
	size_t left = target.len - (size_t)(path - target.at);
	const char *mark = memchr(path, '?', left);
	struct metadata_question q = { .m = m, .n = n, .r = request, .path = path, .now_ns = now_ns,
		.wall_ns = wall_ns,
		.until_ns = until_ns, .out = out, .path_len = mark ? (size_t)(mark - path) : left,
		.query = mark ? mark + 1 : path + left, .query_len = mark ? left - (size_t)(mark + 1 - path) :
		0 };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (q.path_len > strlen(row[i].prefix) && !memcmp(path, row[i].prefix, strlen(row[i].prefix)))
			return row[i].answer(&q);
	return reply(out, 404, wall_ns, "", "");
}
