/* A container of Kubernetes: a preStop hook may run `heddle stop --local --notice 30s` (hand.c), then comes
 * SIGTERM, and SIGKILL terminationGracePeriodSeconds after the beginning of both, by default 30, which a
 * container cannot see: elastic.notice.grace says it. */
#include "notice/source.h"

static bool is_here(char *const *environment)
{
	return hd_notice_env(environment, "KUBERNETES_SERVICE_HOST") != NULL;
}

static void on_signal(const char *name, char *const *environment, struct hd_notice_seen *seen)
{
	(void)name;
	(void)environment;
	seen->end = HD_END_USUAL;
}

const struct hd_notice_source hd_notice_of_kubernetes = {
	.name = "k8s", .cloud = "k8s", .about = "SIGTERM of Kubernetes", .way = HD_NOTICE_BY_SIGNAL,
	.lead_ns = 30 * HD_NOTICE_S, .is_here = is_here, .signal = on_signal,
};
