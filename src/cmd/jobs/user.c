/* heddle user: users of a scheduler, and their tokens. */
#include <stdio.h>

#include "base/num.h"
#include "cmd/jobs/scheduler.h"

/* A list of names, if there are so many; a scheduler before this one has none. */
static enum hd_err print_names(struct hd_cmd *cmd, const struct hd_json *answer, const char *key,
	size_t least)
{
	const struct hd_json *names = hd_json_find(answer, key);
	enum hd_err err = HD_OK;
	const char *name = "";

	if (!names || hd_json_count(names) < least)
		return HD_OK;
	printf("%s:", key);
	for (size_t i = 0; i < hd_json_count(names) && !err; i++) {
		err = hd_json_as_text(hd_json_item(names, i), &name, &cmd->diag);
		printf("%s %s", i ? "," : "", err ? "" : name);
	}
	printf("\n");
	return err;
}

static enum hd_err verb_user_show(struct hd_cmd *cmd)
{
	const struct hd_json *answer, *quotas = NULL;
	struct hd_answer_quota quota = { 0 };
	struct hd_answer_me me = { 0 };
	enum hd_err err = hd_scheduler_ask(cmd, "GET", "/v1/me", NULL, &answer);

	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_fields_read(&hd_answer_me_fields, 0, answer, &me, &cmd->diag);
	if (!err)
		err = hd_json_get(answer, "quotas", HD_JSON_ARRAY, &quotas, &cmd->diag);
	if (err)
		return err;
	printf("%s (uid %lld): %s%s%s%s\n", me.user, (long long)me.uid, me.role,
		me.owner ? ", the owner" : "",
		*me.account ? ", account " : "", me.account);
	err = print_names(cmd, answer, "accounts", 2);
	if (!err)
		err = print_names(cmd, answer, "operates", 1);
	if (err)
		return err;
	if (*me.wrong)
		printf("users.yaml: %s\n", me.wrong);
	if (hd_json_count(quotas))
		hd_scheduler_head(cmd, &hd_answer_quota_fields);
	for (size_t i = 0; i < hd_json_count(quotas) && !err; i++) {
		err = hd_fields_read(&hd_answer_quota_fields, 0, hd_json_item(quotas, i), &quota, &cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_quota_fields, &quota);
	}
	return err;
}

const struct hd_verb hd_verb_user_show = {
	.name = "user show", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "as what user a scheduler knows you, with role and quotas",
	.more = "-1 in a column: no limit.",
	.opts = HD_OPTS(),
	.run = verb_user_show, .test = "program_users.sh",
};

static enum hd_err verb_user_token(struct hd_cmd *cmd)
{
	const struct hd_args *a = &cmd->args;
	struct hd_answer_token_new token = { 0 };
	const struct hd_json *answer;
	struct hd_json_writer w;
	struct hd_text text;
	uint64_t ms = 0;

	if (a->has[HD_OPT_TOKEN_FOR] && (hd_num_duration(a->text[HD_OPT_TOKEN_FOR],
		UINT64_C(31622400000), &ms, NULL) || ms < 1000))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--for %s: a time from 1s to 366d", a->text[
			HD_OPT_TOKEN_FOR]);
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	if (a->npos)
		hd_json_put_text(&w, "user", a->pos[0]);
	if (ms)
		hd_json_put_f64(&w, "for_s", (double)ms / 1e3);
	hd_json_close(&w);
	enum hd_err err = text.full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a token") :
		hd_scheduler_ask(cmd, "POST", "/v1/tokens", text.at, &answer);
	if (!err && a->has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_fields_read(&hd_answer_token_new_fields, 0, answer, &token, &cmd->diag);
	if (err)
		return err;
	printf("%s\n", token.token);
	if (!a->has[HD_OPT_QUIET])
		fprintf(stderr, ">> token %lld of %s, for the header \"Authorization: Bearer TOKEN\"; it is "
			"not shown again\n>> `heddle user revoke %lld` ends it\n", (long long)token.id,
			token.user, (long long)token.id);
	return HD_OK;
}

const struct hd_verb hd_verb_user_token = {
	.name = "user token", .args = "[NAME]", .npos_min = 0, .npos_max = 1,
	.about = "make a token with which a user speaks to a scheduler over its port",
	.more =
		"Its text goes to stdout, once: the scheduler keeps a hash of it. NAME is of the scheduler's "
		"users.yaml; without it you. Tokens of others only admins make.",
	.opts = HD_OPTS(HD_OPT_TOKEN_FOR),
	.run = verb_user_token, .test = "program_users.sh",
};

static enum hd_err verb_user_tokens(struct hd_cmd *cmd)
{
	const struct hd_json *answer, *list = NULL;
	struct hd_answer_token token = { 0 };
	enum hd_err err = hd_scheduler_ask(cmd, "GET", "/v1/tokens", NULL, &answer);

	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_json_get(answer, "tokens", HD_JSON_ARRAY, &list, &cmd->diag);
	if (!err)
		hd_scheduler_head(cmd, &hd_answer_token_fields);
	for (size_t i = 0; !err && i < hd_json_count(list); i++) {
		err = hd_fields_read(&hd_answer_token_fields, 0, hd_json_item(list, i), &token, &cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_token_fields, &token);
	}
	return err;
}

const struct hd_verb hd_verb_user_tokens = {
	.name = "user tokens", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "your tokens of a scheduler; an admin's: all",
	.more = "Their texts are not kept, and not shown.",
	.opts = HD_OPTS(),
	.run = verb_user_tokens, .test = "program_users.sh",
};

static enum hd_err verb_user_revoke(struct hd_cmd *cmd)
{
	const struct hd_json *answer;
	char target[80];
	uint64_t id = 0;

	if (hd_num_u64(cmd->args.pos[0], INT32_MAX, &id, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "\"%.60s\" is no number of a token; `heddle user "
			"tokens` lists them", cmd->args.pos[0]);
	snprintf(target, sizeof target, "/v1/tokens/%llu/revoke", (unsigned long long)id);
	enum hd_err err = hd_scheduler_ask(cmd, "POST", target, NULL, &answer);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		printf("token %llu holds no longer\n", (unsigned long long)id);
	return err;
}

const struct hd_verb hd_verb_user_revoke = {
	.name = "user revoke", .args = "TOKEN", .npos_min = 1, .npos_max = 1,
	.about = "end a token of a scheduler, by its number",
	.more = "Requests with it are refused from then on, and streams that have it end.",
	.opts = HD_OPTS(),
	.run = verb_user_revoke, .test = "program_users.sh",
};
