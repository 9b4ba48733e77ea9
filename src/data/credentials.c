#include "data/credentials.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Without blanks at both ends. */
static const char *trim(const char *at, const char *end, size_t *len)
{
	while (at < end && strchr(" \t\r", *at))
		at++;
	while (end > at && strchr(" \t\r", end[-1]))
		end--;
	*len = (size_t)(end - at);
	return at;
}

static bool is(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

static enum hd_err take(const char *name, const char *value, size_t len, char *to, size_t cap,
	struct hd_diag *diag)
{
	if (len >= cap)
		return hd_fail(diag, HD_E_INPUT, "%s: a key of %zu bytes is too long", name, len);
	for (size_t i = 0; i < len; i++)
		if (value[i] <= ' ' || value[i] > '~')
			return hd_fail(diag, HD_E_INPUT, "%s: a key has a blank or a sign that is no letter, "
				"digit or mark", name);
	memcpy(to, value, len);
	to[len] = '\0';
	return HD_OK;
}

/* One line KEY = VALUE of the profile. */
static enum hd_err take_line(const char *name, const char *at, const char *end, struct hd_aws_credentials *c,
	struct hd_diag *diag)
{
	const struct { const char *key; char *to; size_t cap; } rows[] = {
		{ "aws_access_key_id", c->key_id, sizeof c->key_id },
		{ "aws_secret_access_key", c->secret, sizeof c->secret },
		{ "aws_session_token", c->token, sizeof c->token },
	};
	const char *sign = memchr(at, '=', (size_t)(end - at));
	size_t key_len, len;

	if (!sign)
		return HD_OK;
	const char *key = trim(at, sign, &key_len), *value = trim(sign + 1, end, &len);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (is(key, key_len, rows[i].key))
			return take(name, value, len, rows[i].to, rows[i].cap, diag);
	return HD_OK;
}

enum hd_err hd_aws_credentials_read(const char *name, const char *text, size_t len, const char *profile,
	struct hd_aws_credentials *out, struct hd_diag *diag)
{
	struct hd_aws_credentials c = { .key_id = "" };
	bool ours = false, found = false;
	enum hd_err err = HD_OK;

	for (const char *at = text, *end = text + len, *next; at < end && !err; at = next) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t n;
		next = feed ? feed + 1 : end;
		at = trim(at, feed ? feed : end, &n);
		if (n && *at == '[') {
			size_t word;
			bool closed = at[n - 1] == ']';
			const char *is_named = trim(at + 1, at + n - closed, &word);
			ours = closed && is(is_named, word, profile);
			found |= ours;
		} else if (ours && n && *at != '#' && *at != ';') {
			err = take_line(name, at, at + n, &c, diag);
		}
	}
	if (!err && !found)
		err = hd_fail(diag, HD_E_INPUT, "%s has no profile [%.60s]: AWS_PROFILE names another one",
			name, profile);
	if (!err && (!c.key_id[0] || !c.secret[0]))
		err = hd_fail(diag, HD_E_INPUT, "%s: profile [%.60s] has no %s", name, profile,
			c.key_id[0] ? "aws_secret_access_key" : "aws_access_key_id");
	if (!err)
		*out = c;
	return err;
}

void hd_aws_region_of(const char *endpoint, char region[HD_AWS_REGION])
{
	static const char head[] = "https://lambda.";
	const char *at = strncmp(endpoint, head, sizeof head - 1) ? "" : endpoint + sizeof head - 1;
	size_t n = strcspn(at, "./");

	region[0] = '\0';
	if (n && n < HD_AWS_REGION && !strncmp(at + n, ".amazonaws.com", 14))
		snprintf(region, HD_AWS_REGION, "%.*s", (int)n, at);
}
