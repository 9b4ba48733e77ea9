#include "cost/profile.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "cost/int.h"

#define FORMAT "heddle-profile"
enum { VERSION = 1, IGNORED_CAP = 256, SMALL_MAX = 1 << 20 };
#define RATE_MAX 1e18
#define OVERLAP_MAX 100.0

/* The readers below stop at the first error, which stays in `err`. */
struct profile_reader {
	struct hd_arena *arena;
	struct hd_diag *diag;
	enum hd_err err;
	struct hd_text ignored;
};

static int64_t get_i64(struct profile_reader *r, const struct hd_json *at, const char *key, int64_t max)
{
	int64_t v = 0;

	if (!r->err)
		r->err = hd_json_get_i64(at, key, 0, max, &v, r->diag);
	return v;
}

static int64_t opt_i64(struct profile_reader *r, const struct hd_json *at, const char *key, int64_t max,
	int64_t absent)
{
	return hd_json_find(at, key) ? get_i64(r, at, key, max) : absent;
}

static double opt_f64(struct profile_reader *r, const struct hd_json *at, const char *key, double max,
	double absent)
{
	const struct hd_json *json = hd_json_find(at, key);
	char path[200];
	double v = absent;

	if (!json || r->err)
		return absent;
	r->err = hd_json_as_f64(json, &v, r->diag);
	if (!r->err && !(v >= 0 && v <= max))
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s is not from 0 to %g",
			hd_json_path(json, path, sizeof path), max);
	return v;
}

static bool opt_bool(struct profile_reader *r, const struct hd_json *at, const char *key, bool absent)
{
	bool v = absent;

	if (!r->err && hd_json_find(at, key))
		r->err = hd_json_get_bool(at, key, &v, r->diag);
	return v;
}

static const char *copy(struct profile_reader *r, const char *text)
{
	const char *mine = hd_arena_text(r->arena, text, strlen(text));

	if (!mine && !r->err)
		r->err = hd_fail(r->diag, HD_E_NOMEM, "no memory for a profile");
	return mine ? mine : "";
}

static const char *get_text(struct profile_reader *r, const struct hd_json *at, const char *key)
{
	const char *v = "";

	if (!r->err)
		r->err = hd_json_get_text(at, key, &v, r->diag);
	return copy(r, v);
}

static const char *opt_text(struct profile_reader *r, const struct hd_json *at, const char *key)
{
	return hd_json_find(at, key) ? get_text(r, at, key) : "";
}

static void *take(struct profile_reader *r, size_t n, size_t size)
{
	void *at = hd_arena_take(r->arena, n + 1, size);

	if (!at && !r->err)
		r->err = hd_fail(r->diag, HD_E_NOMEM, "no memory for a profile");
	return at;
}

/* An array of at most `max` items; NULL: absent or refused. */
static const struct hd_json *list(struct profile_reader *r, const struct hd_json *at, const char *key,
	size_t max,
	uint32_t *n)
{
	const struct hd_json *json = NULL;
	char path[200];

	*n = 0;
	if (!r->err)
		r->err = hd_json_get(at, key, HD_JSON_ARRAY, &json, r->diag);
	if (!r->err && hd_json_count(json) > max)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s has %zu items; %zu are the most",
			hd_json_path(json, path, sizeof path), hd_json_count(json), max);
	if (!r->err)
		*n = (uint32_t)hd_json_count(json);
	return json;
}

/* Members that no list names are reported, once each. */
static void tell_others(struct profile_reader *r, const struct hd_json *at, const char *const known[])
{
	for (size_t i = 0; i < hd_json_count(at); i++) {
		const char *key = hd_json_key(at, i);
		const char *const *k = known;
		while (key && *k && strcmp(*k, key) != 0)
			k++;
		if (!key || *k || strstr(r->ignored.at, key) ||
			r->ignored.len + strlen(key) + 3 > IGNORED_CAP)
			continue;
		hd_text_add(&r->ignored, r->ignored.len ? ", " : "");
		hd_text_add(&r->ignored, key);
	}
}

static struct hd_profile_cost get_cost(struct profile_reader *r, const struct hd_json *node, const char *key)
{
	static const char *const known[] = { "p50", "mean", "sd", "min", "n", NULL };
	const struct hd_json *at = NULL;
	struct hd_profile_cost cost = { 0 };

	if (!r->err)
		r->err = hd_json_get(node, key, HD_JSON_OBJECT, &at, r->diag);
	if (r->err)
		return cost;
	cost.p50_ns = get_i64(r, at, "p50", HD_PROFILE_SUM_MAX);
	cost.mean_ns = opt_i64(r, at, "mean", HD_PROFILE_SUM_MAX, cost.p50_ns);
	cost.sd_ns = opt_i64(r, at, "sd", HD_PROFILE_SUM_MAX, 0);
	cost.min_ns = opt_i64(r, at, "min", HD_PROFILE_SUM_MAX, cost.p50_ns);
	cost.n = (uint64_t)opt_i64(r, at, "n", INT64_MAX, 0);
	tell_others(r, at, known);
	return cost;
}

static void get_node(struct profile_reader *r, const struct hd_json *at, struct hd_profile_node *node)
{
	static const char *const known[] = { "id", "op", "f", "i", "w", "r", "out", "param", "saved", "act_w",
		"work", "opt", "tied", "recompute_ok", NULL };

	if (r->err || (r->err = hd_json_as(at, HD_JSON_OBJECT, r->diag)))
		return;
	node->id = get_text(r, at, "id");
	node->op = get_text(r, at, "op");
	node->f = get_cost(r, at, "f");
	node->i = get_cost(r, at, "i");
	node->w = get_cost(r, at, "w");
	node->r_ns = opt_i64(r, at, "r", HD_PROFILE_SUM_MAX, -1);
	const struct hd_json *out = list(r, at, "out", HD_PROFILE_OUTS, &node->nouts);
	node->out = take(r, node->nouts, sizeof *node->out);
	for (uint32_t i = 0; i < node->nouts && !r->err; i++)
		r->err = hd_json_as_i64(hd_json_item(out, i), 0, HD_PROFILE_SUM_MAX, &node->out[i], r->diag);
	node->param = get_i64(r, at, "param", HD_PROFILE_SUM_MAX);
	node->saved = get_i64(r, at, "saved", HD_PROFILE_SUM_MAX);
	node->act_w = opt_f64(r, at, "act_w", 1, 1);
	node->work = opt_i64(r, at, "work", HD_PROFILE_SUM_MAX, 0);
	node->opt = opt_i64(r, at, "opt", HD_PROFILE_SUM_MAX, 0);
	node->tied = opt_text(r, at, "tied");
	node->recompute_ok = opt_bool(r, at, "recompute_ok", true);
	tell_others(r, at, known);
}

static void get_nodes(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p,
	struct hd_profile_ids *ids)
{
	uint32_t n;
	const struct hd_json *nodes = list(r, root, "nodes", HD_PROFILE_NODES, &n);
	char path[200];

	p->node = take(r, n, sizeof *p->node);
	if (r->err)
		return;
	if (!hd_profile_ids_init(ids, p->node, n, r->arena)) {
		r->err = hd_fail(r->diag, HD_E_NOMEM, "no memory for %u nodes", n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_json *at = hd_json_item(nodes, i);
		get_node(r, at, &p->node[i]);
		if (r->err)
			return;
		const char *id = p->node[i].id;
		if (!*id || hd_profile_ids_find(ids, id, strlen(id)) != UINT32_MAX) {
			r->err = hd_fail(r->diag, HD_E_INPUT, "%s.id is \"%s\": empty, or another node's too",
				hd_json_path(at, path, sizeof path), id);
			return;
		}
		p->nnodes = i + 1;
		hd_profile_ids_add(ids, i);
	}
}

static uint32_t get_end(struct profile_reader *r, const struct hd_json *json,
	const struct hd_profile_ids *ids)
{
	const char *id;
	char path[200];
	uint32_t v = 0;

	if (!r->err && !(r->err = hd_json_as_text(json, &id, r->diag)) &&
		(v = hd_profile_ids_find(ids, id, strlen(id))) == UINT32_MAX)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s is \"%s\": there is no such node",
			hd_json_path(json, path, sizeof path), id);
	return v;
}

static void get_edge(struct profile_reader *r, const struct hd_json *at, const struct hd_profile *p,
	const struct hd_profile_ids *ids, struct hd_profile_edge *edge)
{
	char path[200];
	int64_t out = 0;

	if (!r->err)
		r->err = hd_json_as(at, HD_JSON_ARRAY, r->diag);
	if (!r->err && hd_json_count(at) != 3)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s is not [from, to, output index]",
			hd_json_path(at, path, sizeof path));
	if (r->err)
		return;
	edge->from = get_end(r, hd_json_item(at, 0), ids);
	edge->to = get_end(r, hd_json_item(at, 1), ids);
	if (!r->err)
		r->err = hd_json_as_i64(hd_json_item(at, 2), 0, HD_PROFILE_OUTS, &out, r->diag);
	edge->out = (uint32_t)out;
	if (!r->err && (edge->from == edge->to || edge->out >= p->node[edge->from].nouts))
		r->err = hd_fail(r->diag, HD_E_INPUT,
			"%s: node \"%s\" has %u outputs and none of them goes to itself",
			hd_json_path(at, path, sizeof path),
			p->node[edge->from].id, p->node[edge->from].nouts);
}

static void get_edges(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p,
	const struct hd_profile_ids *ids)
{
	const struct hd_json *edges = list(r, root, "edges", HD_PROFILE_EDGES, &p->nedges);

	p->edge = take(r, p->nedges, sizeof *p->edge);
	for (uint32_t i = 0; i < p->nedges && !r->err; i++)
		get_edge(r, hd_json_item(edges, i), p, ids, &p->edge[i]);
}

static void get_links(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p)
{
	static const char *const known[] = { "level", "kind", "latency", "bytes_per_s", "duplex", NULL };

	if (r->err || !hd_json_find(root, "links"))
		return;
	const struct hd_json *links = list(r, root, "links", HD_PROFILE_LINKS, &p->nlinks);
	p->link = take(r, p->nlinks, sizeof *p->link);
	for (uint32_t i = 0; i < p->nlinks && !r->err; i++) {
		const struct hd_json *at = hd_json_item(links, i);
		r->err = hd_json_as(at, HD_JSON_OBJECT, r->diag);
		if (r->err)
			return;
		p->link[i].level = (uint32_t)get_i64(r, at, "level", HD_PROFILE_LINKS);
		p->link[i].kind = get_text(r, at, "kind");
		p->link[i].latency_ns = get_i64(r, at, "latency", HD_PROFILE_SUM_MAX);
		p->link[i].bytes_per_s = opt_f64(r, at, "bytes_per_s", RATE_MAX, 0);
		p->link[i].duplex = opt_bool(r, at, "duplex", true);
		tell_others(r, at, known);
	}
}

static void get_device(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p)
{
	static const char *const known[] = { "kind", "name", "threads", "isa", NULL },
		*const step[] = { "optimizer", "sum", NULL };
	const struct hd_json *at;

	p->device_kind = p->device_name = p->isa = "";
	p->threads = 1;
	if (!r->err && hd_json_find(root, "device") && !(r->err = hd_json_get(root, "device", HD_JSON_OBJECT,
		&at, r->diag))) {
		p->device_kind = opt_text(r, at, "kind");
		p->device_name = opt_text(r, at, "name");
		p->threads = (uint32_t)opt_i64(r, at, "threads", SMALL_MAX, 1);
		p->isa = opt_text(r, at, "isa");
		tell_others(r, at, known);
	}
	if (!r->err && hd_json_find(root, "step") && !(r->err = hd_json_get(root, "step", HD_JSON_OBJECT, &at,
		r->diag))) {
		p->step_ns_per_byte = opt_f64(r, at, "optimizer", RATE_MAX, 0);
		p->sum_ns_per_byte = opt_f64(r, at, "sum", RATE_MAX, 0);
		tell_others(r, at, step);
	}
}

static void get_method(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p)
{
	const char *name = get_text(r, root, "method");
	char path[200];
	uint32_t m = 0;

	while (m < HD_NPROFILE_METHODS && strcmp(name, hd_profile_method_name((enum hd_profile_method)m)) !=
		0)
		m++;
	if (!r->err && m == HD_NPROFILE_METHODS)
		r->err = hd_fail(r->diag, HD_E_INPUT,
			"%s.method is \"%s\", not measured, imported or modelled",
			hd_json_path(root, path, sizeof path), name);
	p->method = (enum hd_profile_method)m;
	const char *split = opt_text(r, root, "split");
	p->split_assumed = !strcmp(split, "assumed");
	if (!r->err && *split && !p->split_assumed)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s.split is \"%s\"; it is \"assumed\" or left out",
			hd_json_path(root, path, sizeof path), split);
}

static void get_head(struct profile_reader *r, const struct hd_json *root, struct hd_profile *p,
	const char *file)
{
	const char *format = get_text(r, root, "format");
	const struct hd_json *graph = hd_json_find(root, "graph");

	if (!r->err && strcmp(format, FORMAT) != 0)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s: .format is \"%s\", not \"%s\"", file, format,
			FORMAT);
	int64_t version = get_i64(r, root, "version", SMALL_MAX);
	if (!r->err && version != VERSION)
		r->err = hd_fail(r->diag, HD_E_INPUT, "%s: version %lld of the format; this build reads %d",
			file, (long long)version, VERSION);
	if (!r->err && graph)
		r->err = hd_json_as_u64(graph, UINT64_MAX, &p->graph, r->diag);
	p->dtype = opt_text(r, root, "dtype");
	p->ovl = opt_f64(r, root, "ovl", OVERLAP_MAX, 0);
	p->comm_tax = opt_f64(r, root, "comm_tax", OVERLAP_MAX, 0);
	p->vn_size = (uint32_t)opt_i64(r, root, "vn_size", UINT32_MAX, 0);
	p->tensor_shards = (uint32_t)opt_i64(r, root, "tensor_shards", SMALL_MAX, 1);
	p->warmup = (uint64_t)opt_i64(r, root, "warmup", INT64_MAX, 0);
	p->samples = (uint64_t)opt_i64(r, root, "samples", INT64_MAX, 0);
}

enum hd_err hd_profile_parse(struct hd_profile *profile, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const char *const known[] = { "format", "version", "graph", "device", "dtype", "vn_size",
		"tensor_shards", "method", "split", "warmup",
		"samples", "step", "ovl", "comm_tax", "nodes", "edges", "links", NULL };
	struct hd_profile p = { 0 };
	struct hd_profile_ids ids;
	struct profile_reader r = { .arena = arena, .diag = diag };
	const struct hd_json *root;
	const char *why;
	uint32_t bad;

	hd_text_init(&r.ignored, arena);
	enum hd_err err = hd_json_parse(arena, file, text, len, &root, diag);
	if (!err)
		err = hd_json_as(root, HD_JSON_OBJECT, diag);
	if (err)
		return err;
	get_head(&r, root, &p, file);
	get_method(&r, root, &p);
	get_device(&r, root, &p);
	get_links(&r, root, &p);
	get_nodes(&r, root, &p, &ids);
	get_edges(&r, root, &p, &ids);
	if (r.err)
		return r.err;
	tell_others(&r, root, known);
	p.ignored = r.ignored.at ? r.ignored.at : "";
	err = hd_profile_verify(&p, &why, &bad, arena);
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "%s: no memory for %u nodes", file, p.nnodes);
	if (err && bad < p.nnodes)
		return hd_fail(diag, err, "%s: .nodes[%u] (\"%s\"): %s", file, bad, p.node[bad].id, why);
	if (err)
		return hd_fail(diag, err, "%s: .nodes: %s", file, why);
	*profile = p;
	return HD_OK;
}

static void put_cost(struct hd_json_writer *w, const char *key, const struct hd_profile_cost *cost)
{
	hd_json_open_object(w, key);
	hd_json_put_i64(w, "p50", cost->p50_ns);
	hd_json_put_i64(w, "mean", cost->mean_ns);
	hd_json_put_i64(w, "sd", cost->sd_ns);
	hd_json_put_i64(w, "min", cost->min_ns);
	hd_json_put_i64(w, "n", (int64_t)cost->n);
	hd_json_close(w);
}

static void put_node(struct hd_json_writer *w, const struct hd_profile_node *node)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "id", node->id);
	hd_json_put_text(w, "op", node->op);
	put_cost(w, "f", &node->f);
	put_cost(w, "i", &node->i);
	put_cost(w, "w", &node->w);
	if (node->r_ns >= 0)
		hd_json_put_i64(w, "r", node->r_ns);
	hd_json_open_array(w, "out");
	for (uint32_t i = 0; i < node->nouts; i++)
		hd_json_put_i64(w, NULL, node->out[i]);
	hd_json_close(w);
	hd_json_put_i64(w, "param", node->param);
	hd_json_put_i64(w, "saved", node->saved);
	hd_json_put_f64(w, "act_w", node->act_w);
	hd_json_put_i64(w, "work", node->work);
	hd_json_put_i64(w, "opt", node->opt);
	if (*node->tied)
		hd_json_put_text(w, "tied", node->tied);
	hd_json_put_bool(w, "recompute_ok", node->recompute_ok);
	hd_json_close(w);
}

static void put_links(struct hd_json_writer *w, const struct hd_profile *p)
{
	hd_json_open_array(w, "links");
	for (uint32_t i = 0; i < p->nlinks; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "level", p->link[i].level);
		hd_json_put_text(w, "kind", p->link[i].kind);
		hd_json_put_i64(w, "latency", p->link[i].latency_ns);
		hd_json_put_f64(w, "bytes_per_s", p->link[i].bytes_per_s);
		hd_json_put_bool(w, "duplex", p->link[i].duplex);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_head(struct hd_json_writer *w, const struct hd_profile *p)
{
	hd_json_put_text(w, "format", FORMAT);
	hd_json_put_i64(w, "version", VERSION);
	hd_json_put_u64(w, "graph", p->graph);
	hd_json_open_object(w, "device");
	hd_json_put_text(w, "kind", p->device_kind);
	hd_json_put_text(w, "name", p->device_name);
	hd_json_put_i64(w, "threads", p->threads);
	hd_json_put_text(w, "isa", p->isa);
	hd_json_close(w);
	hd_json_put_text(w, "dtype", p->dtype);
	hd_json_put_i64(w, "vn_size", p->vn_size);
	hd_json_put_i64(w, "tensor_shards", p->tensor_shards);
	hd_json_put_text(w, "method", hd_profile_method_name(p->method));
	if (p->split_assumed)
		hd_json_put_text(w, "split", "assumed");
	hd_json_put_i64(w, "warmup", (int64_t)p->warmup);
	hd_json_put_i64(w, "samples", (int64_t)p->samples);
	hd_json_open_object(w, "step");
	hd_json_put_f64(w, "optimizer", p->step_ns_per_byte);
	hd_json_put_f64(w, "sum", p->sum_ns_per_byte);
	hd_json_close(w);
	if (p->ovl > 0)
		hd_json_put_f64(w, "ovl", p->ovl);
	if (p->comm_tax > 0)
		hd_json_put_f64(w, "comm_tax", p->comm_tax);
}

void hd_profile_print(const struct hd_profile *p, struct hd_text *text)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	put_head(&w, p);
	put_links(&w, p);
	hd_json_open_array(&w, "nodes");
	for (uint32_t i = 0; i < p->nnodes; i++)
		put_node(&w, &p->node[i]);
	hd_json_close(&w);
	hd_json_open_array(&w, "edges");
	for (uint32_t e = 0; e < p->nedges; e++) {
		hd_json_open_array(&w, NULL);
		hd_json_put_text(&w, NULL, p->node[p->edge[e].from].id);
		hd_json_put_text(&w, NULL, p->node[p->edge[e].to].id);
		hd_json_put_i64(&w, NULL, p->edge[e].out);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
}
