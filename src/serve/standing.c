#include "serve/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "serve/control.h"

#define POST_HEAD "w"
#define POST_TAIL ".sock"

void hd_post_name(uint32_t pid, char name[HD_POST_NAME]) { snprintf(name, HD_POST_NAME, POST_HEAD "%u" POST_TAIL, pid); }

/* The process of a name that begins with `head`, else 0. */
static uint32_t process_of(const char *name, const char *head)
{
	char digits[16] = "";
	uint64_t pid = 0;
	size_t nhead = strlen(head), n = strlen(name), ntail = sizeof POST_TAIL - 1;

	if (strncmp(name, head, nhead) != 0 || n <= nhead + ntail || n - nhead - ntail >= sizeof digits || strcmp(name + n - ntail, POST_TAIL) != 0)
		return 0;
	memcpy(digits, name + nhead, n - nhead - ntail);
	return hd_num_u64(digits, INT32_MAX, &pid, NULL) ? 0 : (uint32_t)pid;
}

static enum hd_err call(const char *addr)
{
	struct hd_sock sock = { 0 };
	struct hd_net net;

	hd_net_real(&net);
	enum hd_err err = hd_sock_connect(&net, addr, &sock, NULL);
	hd_sock_close(&sock);
	return err;
}

/* Sockets of a folder with a long path lie elsewhere, where other runs have theirs, too: the head of their names is the run's. */
enum hd_err hd_posts_look(struct hd_fs *fs, const char *dir, bool sweep, uint32_t *living, struct hd_diag *diag)
{
	char folder[HD_ADDR_CAP], head[HD_ADDR_CAP], addr[HD_ADDR_CAP], name[HD_POST_NAME];
	struct hd_arena arena;
	char **names = NULL;
	size_t n = 0;

	*living = 0;
	hd_arena_init(&arena, 0);
	hd_post_name(0, name);
	enum hd_err err = hd_control_path(dir, name, addr, diag);
	if (err)
		return err;
	snprintf(folder, sizeof folder, "%s", addr + strlen("unix:"));
	char *slash = strrchr(folder, '/');
	*slash = '\0';
	snprintf(head, sizeof head, "%.*s", (int)(strlen(slash + 1) - strlen("0" POST_TAIL)), slash + 1);
	err = hd_fs_list(fs, *folder ? folder : "/", &arena, &names, &n, diag);
	for (size_t i = 0; i < n && !err; i++) {
		uint32_t pid = process_of(names[i], head);
		if (!pid || (size_t)snprintf(addr, sizeof addr, "unix:%s/%s", folder, names[i]) >= sizeof addr)
			continue;
		bool gone = call(addr) == HD_E_PEERLOST;
		*living += !gone;
		if (gone && sweep && !hd_pid_began((int)pid))
			(void)!hd_fs_unlink(fs, addr + strlen("unix:"), NULL);
	}
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_standing_look(struct hd_fs *fs, const char *dir, struct hd_standing *s, struct hd_diag *diag)
{
	*s = (struct hd_standing){ .hold = HD_HOLD_NONE };
	enum hd_err err = hd_posts_look(fs, dir, false, &s->workers, diag);

	return err || s->workers ? err : hd_rundir_held(fs, dir, &s->hold, &s->pid, diag);
}
