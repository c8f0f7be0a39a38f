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

#endif
