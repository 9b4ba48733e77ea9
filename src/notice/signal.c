/* Signals anywhere else: systemd, a shell, a user. Of what follows nothing is known; 10 s is what most
 * give. */
#include "notice/source.h"

static bool is_here(char *const *environment)
{
	(void)environment;
	return true;
}

static void on_signal(const char *name, char *const *environment, struct hd_notice_seen *seen)
{
	(void)name;
	(void)environment;
	seen->end = HD_END_USUAL;
}

const struct hd_notice_source hd_notice_of_signal = {
	.name = "signal", .cloud = "signal", .about = "signals of no known sender",
	.way = HD_NOTICE_BY_SIGNAL,
	.lead_ns = 10 * HD_NOTICE_S, .is_here = is_here, .signal = on_signal,
};
