#include "cmd/session.h"

/* A split the data have: the one asked for, else valid, else test. */
static const char *split_of(struct hd_cmd *cmd, const struct hd_session *s)
{
	const struct hd_dataset *data = hd_run_task(s->run)->data;
	uint32_t valid = hd_dataset_split(data, "valid");

	if (cmd->args.has[HD_OPT_SPLIT])
		return cmd->args.text[HD_OPT_SPLIT];
	return valid != HD_NONE && data->split[valid].count ? "valid" : "test";
}

enum hd_err hd_cmd_eval(struct hd_cmd *cmd)
{
	struct hd_session s;
	struct hd_metrics m;
	enum hd_err err = hd_session_open(cmd, cmd->args.pos[0], &s);

	if (err)
		return err;
	const char *split = split_of(cmd, &s);
	err = hd_run_eval(s.run, split, &m, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_JSON])
		printf("{\"step\":%llu,\"split\":\"%s\",\"rows\":%llu,\"loss\":%.17g,\"accuracy\":%.17g,\"loss_hex\":\"%a\"}\n",
			(unsigned long long)s.ckpt.step, split, (unsigned long long)m.rows, hd_metrics_loss(&m), hd_metrics_accuracy(&m), hd_metrics_loss(&m));
	else if (!err)
		printf("step %llu  %s  loss %.4f  accuracy %.2f %%  (%llu rows)\n", (unsigned long long)s.ckpt.step, split, hd_metrics_loss(&m),
			hd_metrics_accuracy(&m) * 100, (unsigned long long)m.rows);
	hd_session_close(&s);
	return err;
}
