#include "cmd/slurmrestd.h"

#include <stdlib.h>
#include <string.h>

#include "sys/account.h"

/* What slurmrestd(8) and packages of it listen at. */
static const char *const usual[] = { "/run/slurmrestd.socket", "/run/slurmrestd/slurmrestd.socket" };

static const char *usual_path(void)
{
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (hd_account_owner(usual[i]) != HD_NO_UID)
			return usual[i];
	return "";
}

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

enum hd_err hd_slurmrestd_find(struct hd_cmd *cmd, const char *path, struct hd_launcher_settings *settings)
{
	struct hd_account *own = hd_arena_take(&cmd->arena, 1, sizeof *own);

	if (!own)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the launcher");
	if (!path)
		path = *from_environment("SLURMRESTD") ? from_environment("SLURMRESTD") : usual_path();
	if (!strncmp(path, "unix:", 5))
		path += 5;
	settings->slurm.socket = path;
	settings->slurm.token = from_environment("SLURM_JWT");
	/* a token of a user without a name is of no use to slurmrestd */
	settings->slurm.user = hd_account_of(hd_account_self(), 0, own) ? "" : own->name;
	if (settings->slurm.token[strspn(settings->slurm.token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"abcdefghijklmnopqrstuvwxyz0123456789-_.=+/")])
		return hd_fail(&cmd->diag, HD_E_INVAL, "SLURM_JWT is no token: set what `scontrol token` "
		"prints "
			"behind SLURM_JWT=");
	return HD_OK;
}
