#include "launch/hosts.h"

#include <string.h>

#include "base/num.h"

static bool is_host(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@%[]-";

	return *name && *name != '-' && !name[strspn(name, letters)];
}

/* The next word of a line, in the arena; NULL: none is left. */
static const char *word_of(const char **at, const char *end, struct hd_arena *arena)
{
	while (*at < end && strchr(" \t\r", **at))
		(*at)++;
	const char *first = *at;
	while (*at < end && !strchr(" \t\r", **at))
		(*at)++;
	return first < *at ? hd_arena_text(arena, first, (size_t)(*at - first)) : NULL;
}

static enum hd_err take_line(struct hd_launch_hosts *hosts, const char *file, uint32_t number, const char
	*line,
	const char *end, struct hd_arena *arena, struct hd_diag *diag)
{
	const char *hash = memchr(line, '#', (size_t)(end - line)), *at = line;
	uint64_t slots = 1;

	end = hash ? hash : end;
	const char *name = word_of(&at, end, arena), *more = name ? word_of(&at, end, arena) : NULL;
	if (!name)
		return HD_OK;
	if (!is_host(name))
		return hd_fail(diag, HD_E_INPUT, "%s:%u: \"%.60s\" is no host", file, number, name);
	if (more && (strncmp(more, "slots=", 6) != 0 || hd_num_u64(more + 6, HD_HOST_SLOTS, &slots, NULL) ||
		!slots ||
		word_of(&at, end, arena)))
		return hd_fail(diag, HD_E_INPUT, "%s:%u: \"%.60s\": after a host there is slots=N, 1 to %d",
			file, number,
			more, HD_HOST_SLOTS);
	if (hosts->n == HD_HOSTS)
		return hd_fail(diag, HD_E_INPUT, "%s:%u: more than %d hosts", file, number, HD_HOSTS);
	hosts->at[hosts->n++] = (struct hd_launch_host){ name, (uint32_t)slots };
	hosts->slots += (uint32_t)slots;
	return HD_OK;
}

enum hd_err hd_launch_hosts_parse(struct hd_launch_hosts *hosts, const char *file, const char *text, size_t
	len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_launch_hosts all = { .at = hd_arena_take(arena, HD_HOSTS, sizeof *all.at) };
	const char *at = text, *last = text + len;
	enum hd_err err = all.at ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the hosts of %s", file);

	for (uint32_t number = 1; at < last && !err; number++) {
		const char *nl = memchr(at, '\n', (size_t)(last - at)), *end = nl ? nl : last;
		err = memchr(at, '\0', (size_t)(end - at)) ? hd_fail(diag, HD_E_INPUT, "%s:%u: a byte 0",
			file, number) :
			take_line(&all, file, number, at, end, arena, diag);
		at = end + (nl != NULL);
	}
	if (!err && !all.n)
		err = hd_fail(diag, HD_E_INPUT, "%s: no host in it; write one a line", file);
	if (!err)
		*hosts = all;
	return err;
}
