#include "driver/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "sys/process.h"
#include "driver/control.h"

#define POST_HEAD "w"
#define POST_TAIL ".sock"
enum { NOBODYS = 1 << 16 };

static uint32_t tag_of_machine(void)
{
	struct hd_proc_self self;

	hd_proc_self(&self);
	struct hd_hash hash = hd_hash(self.host, strlen(self.host));
	return (uint32_t)hash.byte[0] << 8 | hash.byte[1];
}

void hd_post_name(uint32_t pid, char name[HD_POST_NAME]) { snprintf(name, HD_POST_NAME,
	POST_HEAD "%u-%04x" POST_TAIL, pid, tag_of_machine()); }

/* The process and the machine of a name that begins with `head`; false: it is none. Names of an earlier
 * program have no machine: never swept. */
static bool read_name(const char *name, const char *head, uint32_t *pid, uint32_t *tag)
{
	char digits[16] = "";
	size_t nhead = strlen(head), n = strlen(name), ntail = sizeof POST_TAIL - 1;
	uint64_t number = 0;

	if (strncmp(name, head, nhead) != 0 || n <= nhead + ntail || n - nhead - ntail >= sizeof digits ||
		strcmp(name + n - ntail, POST_TAIL) != 0)
		return false;
	memcpy(digits, name + nhead, n - nhead - ntail);
	char *dash = strchr(digits, '-'), *end = dash;
	*tag = NOBODYS;
	if (dash) {
		*dash = '\0';
		*tag = (uint32_t)strtoul(dash + 1, &end, 16);
		if (strlen(dash + 1) != 4 || *end)
			return false;
	}
	*pid = hd_num_u64(digits, INT32_MAX, &number, NULL) ? 0 : (uint32_t)number;
	return *pid != 0;
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

/* Sockets of a folder with a long path lie elsewhere, where other runs have theirs, too: the head of their
 * names is the run's. */
static enum hd_err look_beside(struct hd_fs *fs, const char *addr_of_one, size_t nname, bool sweep,
	uint32_t *living, struct hd_diag *diag)
{
	char folder[HD_ADDR_CAP], head[HD_ADDR_CAP], addr[HD_ADDR_CAP];
	uint32_t ours = tag_of_machine(), pid, tag;
	struct hd_arena arena;
	char **names = NULL;
	size_t n = 0;

	snprintf(folder, sizeof folder, "%s", addr_of_one + strlen("unix:"));
	char *slash = strrchr(folder, '/');
	*slash = '\0';
	snprintf(head, sizeof head, "%.*s" POST_HEAD, (int)(strlen(slash + 1) - nname), slash + 1);
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_fs_list(fs, *folder ? folder : "/", &arena, &names, &n, diag);
	for (size_t i = 0; i < n && !err; i++) {
		if (!read_name(names[i], head, &pid, &tag) ||
			(size_t)snprintf(addr, sizeof addr, "unix:%s/%s", folder, names[i]) >= sizeof addr)
			continue;
		bool gone = call(addr) == HD_E_PEERLOST;
		*living += !gone;
		if (gone && sweep && tag == ours && !hd_pid_began((int)pid))
			(void)!hd_fs_unlink(fs, addr + strlen("unix:"), NULL);
	}
	hd_arena_finish(&arena);
	return err;
}

/* Near the limit of a path the socket of a small number lies in the folder, and that of a large one
 * elsewhere. */
enum hd_err hd_posts_look(struct hd_fs *fs, const char *dir, bool sweep, uint32_t *living,
	struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP], further[HD_ADDR_CAP], name[HD_POST_NAME], long_name[HD_POST_NAME];

	*living = 0;
	hd_post_name(1, name);
	hd_post_name(INT32_MAX, long_name);
	enum hd_err err = hd_control_path(dir, name, addr, diag);
	if (!err)
		err = look_beside(fs, addr, strlen(name), sweep, living, diag);
	/* then no worker with a large pid listens anywhere */
	if (err || hd_control_path(dir, long_name, further, NULL))
		return err;
	bool same = strlen(further) - strlen(long_name) == strlen(addr) - strlen(name) &&
		!strncmp(further, addr, strlen(addr) - strlen(name));
	return same ? HD_OK : look_beside(fs, further, strlen(long_name), sweep, living, diag);
}

enum hd_err hd_standing_look(struct hd_fs *fs, const char *dir, struct hd_standing *s, struct hd_diag *diag)
{
	*s = (struct hd_standing){ .held.hold = HD_HOLD_NONE };
	enum hd_err err = hd_posts_look(fs, dir, false, &s->workers, diag);

	return err || s->workers ? err : hd_rundir_held(fs, dir, &s->held, diag);
}
