/* SPDX-License-Identifier: MIT */
/*
 * Names of pods and containers as the kubelet of this machine has them. A thread of its own asks
 * the kubelet every minute, and sooner where a pod is met that it has not told of. Whoever wants a
 * name never waits. From then on nothing that a container says of its own names is shown.
 */
#ifndef CUSCOPE_NODE_PROCESS_KUBELET_H
#define CUSCOPE_NODE_PROCESS_KUBELET_H

#include "node/process_curl.h"
#include "identity/process_identity.h"

#define PROCESS_KUBELET_MS       60000
#define PROCESS_KUBELET_AGAIN_MS 5000 /* at least between two questions */

struct process_kubelet;

struct process_kubelet_options {
	const char *url;       /* https://NODE:10250/pods */
	const char *token;     /* a file: who may ask */
	const char *authority; /* a file: certificates that the kubelet's is signed by, or itself */
};

/* Copies the options. NULL: there is no thread to be had. */
struct process_kubelet *process_kubelet_new(const struct process_kubelet_options *options);
void process_kubelet_free(struct process_kubelet *kubelet);

/* Others from the next question on, which is made at once. */
void process_kubelet_change(struct process_kubelet *kubelet,
                            const struct process_kubelet_options *options);

void process_kubelet_name(struct process_kubelet *kubelet, struct process_identity *identity);

/* Answers by outcome, and the pods that are known. */
size_t process_kubelet_count(struct process_kubelet *kubelet, uint64_t counts[PROCESS_CURL_COUNT]);

/* ---- process pods -------------------------------------------------------------------------- */

/*
 * Names of pods and containers by what only the kubelet and the runtime give them: a pod's UID and
 * a container's id. Filled from the kubelet's answer, the PodList of GET /pods.
 *
 * A pod that is no longer in the answer is kept for some answers more, since the figures of its
 * processes are shown for a while. Not for several threads at a time.
 */

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
