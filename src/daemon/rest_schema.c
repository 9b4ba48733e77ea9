/* OpenAPI 3.1: its schemas are JSON Schema 2020-12, and test generators read it. */
#include <assert.h>
#include <string.h>

#include "daemon/rest.h"

static void put_members(struct hd_json_writer *w, const struct hd_rest_field *f)
{
	static const char *const types[] = {
#define X(id, words, type) type,
		HD_REST_KINDS(X)
#undef X
	};
	bool bounded = f->min != 0 || f->max != 0;

	if (f->kind != HD_REST_NUMBERS || !bounded)
		hd_fields_put_members(w, types[f->kind]);
	hd_json_put_text(w, "description", f->about);
	if (!bounded)
		return;
	if (f->kind == HD_REST_TEXT || f->kind == HD_REST_JOB) {
		hd_json_put_i64(w, "minLength", 1);
		hd_json_put_i64(w, "maxLength", (int64_t)f->max);
		return;
	}
	if (f->kind == HD_REST_NUMBERS) {
		hd_json_put_text(w, "type", "object");
		hd_json_open_object(w, "additionalProperties");
		hd_json_put_text(w, "type", "number");
	}
	hd_json_put_f64(w, "minimum", f->min);
	hd_json_put_f64(w, "maximum", f->max);
	if (f->kind == HD_REST_NUMBERS)
		hd_json_close(w);
}

/* Whether `path` has the part {name}. */
static bool stands_in(const char *path, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = path ? strchr(path, '{') : NULL; at; at = strchr(at + 1, '{'))
		if (!strncmp(at + 1, name, len) && at[len + 1] == '}')
			return true;
	return false;
}

/* The members of a request but those in its path. */
static void put_request(struct hd_json_writer *w, const struct hd_rest_route *route)
{
	hd_json_put_text(w, "type", "object");
	hd_json_open_object(w, "properties");
	for (const struct hd_rest_field *f = route->ask; f->name; f++) {
		if (stands_in(route->path, f->name))
			continue;
		hd_json_open_object(w, f->name);
		put_members(w, f);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "required");
	for (const struct hd_rest_field *f = route->ask; f->name; f++)
		if (f->needed && !stands_in(route->path, f->name))
			hd_json_put_text(w, NULL, f->name);
	hd_json_close(w);
	hd_json_put_bool(w, "additionalProperties", false);
}

/* A content of `type`: of the request, or with these members. */
static void put_content(struct hd_json_writer *w, const char *type, const struct hd_rest_route *request,
	const struct hd_fields *answer)
{
	hd_json_open_object(w, "content");
	hd_json_open_object(w, type);
	hd_json_open_object(w, "schema");
	if (answer)
		hd_fields_schema(answer, 0, w);
	else
		put_request(w, request);
	hd_json_close(w);
	hd_json_close(w);
	hd_json_close(w);
}

static void put_parameters(struct hd_json_writer *w, const struct hd_rest_route *route)
{
	bool get = !strcmp(route->method, "GET");

	hd_json_open_array(w, "parameters");
	for (const struct hd_rest_field *f = route->ask; f->name; f++) {
		bool path = stands_in(route->path, f->name);
		if (!path && !get)
			continue;
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", f->name);
		hd_json_put_text(w, "in", path ? "path" : "query");
		hd_json_put_bool(w, "required", f->needed);
		hd_json_open_object(w, "schema");
		put_members(w, f);
		hd_json_close(w);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_route(struct hd_json_writer *w, const struct hd_rest_route *route)
{
	bool get = !strcmp(route->method, "GET");

	hd_json_open_object(w, get ? "get" : "post");
	hd_json_put_text(w, "summary", route->about);
	put_parameters(w, route);
	if (!get) {
		hd_json_open_object(w, "requestBody");
		put_content(w, "application/json", route, NULL);
		hd_json_close(w);
	}
	hd_json_open_object(w, "responses");
	hd_json_open_object(w, "200");
	hd_json_put_text(w, "description", route->about);
	put_content(w, route->how == HD_REST_STREAM ? "text/event-stream" :
		route->how == HD_REST_METRICS ? "text/plain" : "application/json", route, route->answer);
	hd_json_close(w);
	hd_json_open_object(w, "default");
	hd_json_put_text(w, "description", "refused, or not possible");
	put_content(w, "application/json", route, &hd_answer_error_fields);
	hd_json_close(w);
	hd_json_close(w);
	hd_json_close(w);
}

void hd_rest_schema(bool run, struct hd_json_writer *w)
{
	const struct hd_rest_route *open = NULL;

	hd_json_put_text(w, "openapi", "3.1.0");
	hd_json_open_object(w, "info");
	hd_json_put_text(w, "title", "heddle");
	hd_json_put_text(w, "version", "1");
	hd_json_close(w);
	hd_json_open_object(w, "paths");
	for (const struct hd_rest_route *route = hd_rest_routes; route->method; route++) {
		if (run && !route->run)
			continue;
		if (!open || strcmp(open->path, route->path) != 0) {
			if (open)
				hd_json_close(w);
			hd_json_open_object(w, route->path);
		}
		put_route(w, route);
		open = route;
	}
	if (open)
		hd_json_close(w);
	hd_json_close(w);
}
