/* SPDX-License-Identifier: MIT */
/*
 * What the cgroups of a process tell: its container, pod, job and unit. Runtimes name cgroups after
 * these, each in a way of its own, and differently when systemd makes them for the runtime.
 *
 * A name counts from the outside in. Whoever may make cgroups below his own could name them like
 * another's container: a container, a user by his own systemd, a service that systemd has handed
 * its cgroup to. So the outermost container is taken, and what stands below a unit that is no
 * runtime's is marked as somebody's own word.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_CGROUP_H
#define CUSCOPE_IDENTITY_PROCESS_CGROUP_H

#include "identity/process_identity.h"

struct process_cgroup {
	char runtime[IDENTITY_NUMBER], container_id[IDENTITY_ID];
	char pod_uid[40], qos[IDENTITY_NUMBER];
	char slurm_job[IDENTITY_NUMBER], slurm_step[IDENTITY_NUMBER];
	char unit[IDENTITY_VALUE];
	enum identity_source container_by, pod_by, slurm_by;
};

/* Of one path. */
void process_cgroup_parse(const char *path, struct process_cgroup *cgroup);

/*
 * Of the text of /proc/PID/cgroup, which has a line for each hierarchy. What one line does not tell
 * is taken from the others. The text is changed.
 */
void process_cgroups_parse(char *text, struct process_cgroup *cgroup);

#endif
