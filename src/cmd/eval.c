#include "cmd/session.h"

enum hd_err hd_cmd_eval(struct hd_cmd *cmd)
{
	struct hd_session s;
	struct hd_metrics m;
	enum hd_err err = hd_session_open(cmd, cmd->args.pos[0], &s);

	if (err)
		return err;
	const char *split = hd_session_split(cmd, &s);
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
