/* SPDX-License-Identifier: MIT */
/*
 * Names of pods and containers by what only the kubelet and the runtime give them: a pod's UID and
 * a container's id. Filled from the kubelet's answer, the PodList of GET /pods.
 *
 * A pod that is no longer in the answer is kept for some answers more, since the figures of its
 * processes are shown for a while. Not for several threads at a time.
 */
#ifndef CUSCOPE_NODE_PROCESS_PODS_H
#define CUSCOPE_NODE_PROCESS_PODS_H

#include "identity/process_identity.h"

#define PROCESS_PODS_MAX       2048 /* some 400 bytes each */
#define PROCESS_CONTAINERS_MAX 8192 /* some 250 bytes each */
#define PROCESS_PODS_KEPT      5    /* answers without it */

struct process_pods;

struct process_pods *process_pods_new(void);
void process_pods_free(struct process_pods *pods);

/* What an answer tells. -EBADMSG: it is none, though a part of it may be in. */
int process_pods_read(struct process_pods *pods, const char *json, size_t bytes);

/* All of `newer` takes the place of what is there, which stays for PROCESS_PODS_KEPT times where it
 * is not in there; `newer` is to be freed then. */
void process_pods_renew(struct process_pods *pods, struct process_pods *newer);

/*
 * Names pod, namespace and container, where the cgroup that tells their ids is root's. What the
 * container says of itself is dropped in any case. False: it is in a pod that is not known.
 */
bool process_pods_name(const struct process_pods *pods, struct process_identity *identity);

size_t process_pods_count(const struct process_pods *pods);

#endif
