#include "cmd/jobs/scheduler.h"

#include <string.h>

#include "base/names.h"
#include "daemon/http_client.h"
#include "cmd/json_line.h"

#define HD_SCHEDULER_WAIT_NS INT64_C(30000000000)     /* a submission is on the disk before it is answered */

const char *hd_scheduler_dir(const struct hd_cmd *cmd) { return hd_args_text(&cmd->args, HD_OPT_DIR, "."); }

enum hd_err hd_scheduler_ask(struct hd_cmd *cmd, const char *method, const char *target, const char *body,
	const struct hd_json **answer)
{
	const struct hd_http_call call = { hd_scheduler_dir(cmd), method, target, body,
		HD_SCHEDULER_WAIT_NS };

	return hd_http_ask(&call, &cmd->arena, answer, &cmd->diag);
}

enum hd_err hd_scheduler_target(struct hd_cmd *cmd, const char *job, const char *rest, char target[200])
{
	if (!hd_name_valid(job))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"\"%.80s\" is neither a job's number nor its name; `heddle jobs` lists them", job);
	snprintf(target, 200, "/v1/jobs/%s%s", job, rest);
	return HD_OK;
}

void hd_scheduler_head(struct hd_cmd *cmd, const struct hd_fields *fields)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_fields_head(fields, &text);
	fputs(text.at, stdout);
}

void hd_scheduler_line(struct hd_cmd *cmd, const struct hd_fields *fields, const void *from)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_fields_line(fields, from, &text);
	fputs(text.at, stdout);
}

static void copy(struct hd_json_writer *w, const char *key, const struct hd_json *json)
{
	const char *text = "";
	int64_t n = 0;
	double v = 0;
	bool b = false;

	switch (hd_json_kind(json)) {              /* as_...: of that kind, they cannot fail */
	case HD_JSON_NULL: hd_json_put_null(w, key); return;
	case HD_JSON_BOOL: (void)!hd_json_as_bool(json, &b, NULL); hd_json_put_bool(w, key, b); return;
	case HD_JSON_INT: (void)!hd_json_as_i64(json, INT64_MIN, INT64_MAX, &n, NULL);
		hd_json_put_i64(w, key, n); return;
	case HD_JSON_REAL: (void)!hd_json_as_f64(json, &v, NULL); hd_json_put_f64(w, key, v); return;
	case HD_JSON_TEXT: (void)!hd_json_as_text(json, &text, NULL); hd_json_put_text(w, key, text); return;
	case HD_JSON_ARRAY: hd_json_open_array(w, key); break;
	case HD_JSON_OBJECT: hd_json_open_object(w, key); break;
	}
	for (size_t i = 0; i < hd_json_count(json); i++)
		copy(w, hd_json_kind(json) == HD_JSON_OBJECT ? hd_json_key(json, i) : NULL,
			hd_json_item(json, i));
	hd_json_close(w);
}

enum hd_err hd_scheduler_print(struct hd_cmd *cmd, const struct hd_json *json)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	copy(&w, NULL, json);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the answer");
	printf("%s\n", text.at);
	return HD_OK;
}
