#include <string.h>

#include "base/json.h"
#include "cmd/plan/job.h"
#include "cmd/plan/schedule.h"

/* A job in JSON has a model, a graph of receives or gradients has none. */
static bool is_job(struct hd_cmd *cmd, const char *text, size_t len)
{
	const struct hd_json *root;
	struct hd_diag why = { "" };

	if (text[strspn(text, " \t\r\n")] != '{')
		return hd_cmd_is_job(text);
	return !hd_json_parse(&cmd->arena, "job", text, len, &root, &why) && hd_json_find(root, "model");
}

static enum hd_err read_job(struct hd_cmd *cmd, const struct hd_cmd_graph_readers *readers)
{
	struct hd_plan_input *in = hd_arena_take(&cmd->arena, 1, sizeof *in);

	if (!in)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	enum hd_err err = hd_plan_input_costs(cmd, in);
	return err ? err : readers->job(cmd, in, &in->cluster.level[in->cluster.nlevels - 1]);
}

enum hd_err hd_cmd_graph_file(struct hd_cmd *cmd, const struct hd_cmd_graph_readers *readers)
{
	static const enum hd_opt of_jobs[] = { HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
		HD_OPT_FORCE_PROFILE };
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum hd_err err = hd_file_read_all(&cmd->fs, cmd->args.pos[0], &cmd->arena, HD_JSON_BYTES, &bytes,
		&len, &cmd->diag);

	if (!err && is_job(cmd, (const char *)bytes, len))
		return read_job(cmd, readers);
	for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs && !err; i++)
		if (cmd->args.has[of_jobs[i]])
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s belongs to a JOB; the file says what takes how long",
				hd_opts[of_jobs[i]].name);
	return err ? err : readers->file(cmd, (const char *)bytes, len);
}
