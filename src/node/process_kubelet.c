// SPDX-License-Identifier: MIT
#include "node/process_kubelet.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_in.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "base/secure_file.h"
#include "identity/process_identity.h"

/* ---- process pods -------------------------------------------------------------------------- */

/* A pod or a container. */
struct process_pods_entry {
	char id[IDENTITY_ID]; /* UID, or 64 digits */
	unsigned missed;      /* answers without it, in a row */
	UT_hash_handle hh;
	char namespace[IDENTITY_LABEL]; /* "" of a container */
	char name[];
};

struct process_pods {
	struct process_pods_entry *pods, *containers;
};

struct process_pods *process_pods_new(void)
{
	return xcalloc(1, sizeof(struct process_pods));
}

static void pods_forget(struct process_pods_entry **entries, struct process_pods_entry *entry)
{
	MAP_DROP(*entries, entry);
}

void process_pods_free(struct process_pods *pods)
{
	if (!pods)
		return;
	while (pods->pods)
		pods_forget(&pods->pods, pods->pods);
	while (pods->containers)
		pods_forget(&pods->containers, pods->containers);
	free(pods);
}

size_t process_pods_count(const struct process_pods *pods)
{
	return HASH_COUNT(pods->pods);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void pods_put(struct process_pods *pods, bool pod, const char *id, const char *name,
                     const char *namespace)
{
	struct process_pods_entry **entries = pod ? &pods->pods : &pods->containers, *entry;
	unsigned most = pod ? PROCESS_PODS_MAX : PROCESS_CONTAINERS_MAX;
	size_t len = strlen(name);

	if (strlen(id) >= IDENTITY_ID || !id[0])
		return;
	entry = MAP_FIND_TEXT(*entries, id);
	if (entry || HASH_COUNT(*entries) >= most)
		return;
	entry = xcalloc(1, sizeof(*entry) + len + 1);
	strcpy(entry->id, id);
	strcpy(entry->namespace, namespace);
	memcpy(entry->name, name, len);
	HASH_ADD_STR(*entries, id, entry);
}

struct pods_reading {
	struct process_pods *pods;
	char uid[IDENTITY_ID], name[IDENTITY_POD], namespace[IDENTITY_LABEL];
	char hash[IDENTITY_ID]; /* that a pod without an API server has for a UID in cgroups */
	char source[8];         /* where the pod is from, which the kubelet sets, whoever made it */
	char container[IDENTITY_LABEL], id[32 + IDENTITY_ID]; /* "containerd://ID" */
};

static bool is_key(const char *key, size_t bytes, const char *wanted)
{
	return bytes == strlen(wanted) && !memcmp(key, wanted, bytes);
}

static void read_annotation(void *data, struct json_in *in, const char *key, size_t bytes)
{
	struct pods_reading *reading = data;

	if (is_key(key, bytes, "kubernetes.io/config.hash"))
		json_in_text(in, reading->hash, sizeof(reading->hash));
	else if (is_key(key, bytes, "kubernetes.io/config.source"))
		json_in_text(in, reading->source, sizeof(reading->source));
	else
		json_in_skip(in);
}

static void read_metadata(void *data, struct json_in *in, const char *key, size_t bytes)
{
	struct pods_reading *reading = data;

	if (is_key(key, bytes, "uid"))
		json_in_text(in, reading->uid, sizeof(reading->uid));
	else if (is_key(key, bytes, "name"))
		json_in_text(in, reading->name, sizeof(reading->name));
	else if (is_key(key, bytes, "namespace"))
		json_in_text(in, reading->namespace, sizeof(reading->namespace));
	else if (is_key(key, bytes, "annotations"))
		json_in_each(in, '{', read_annotation, reading);
	else
		json_in_skip(in);
}

static void read_container_word(void *data, struct json_in *in, const char *key, size_t bytes)
{
	struct pods_reading *reading = data;

	if (is_key(key, bytes, "name"))
		json_in_text(in, reading->container, sizeof(reading->container));
	else if (is_key(key, bytes, "containerID"))
		json_in_text(in, reading->id, sizeof(reading->id));
	else
		json_in_skip(in);
}

static void read_container(void *data, struct json_in *in, const char *key, size_t bytes)
{
	struct pods_reading *reading = data;
	const char *id;

	reading->container[0] = reading->id[0] = '\0';
	json_in_each(in, '{', read_container_word, reading);
	id = strstr(reading->id, "://");
	if (id && process_pod_is_name(reading->container, IDENTITY_LABEL - 1, false))
		pods_put(reading->pods, false, id + 3, reading->container, "");
}

static void read_status(void *data, struct json_in *in, const char *key, size_t bytes)
{
	if (is_key(key, bytes, "containerStatuses") ||
	    is_key(key, bytes, "initContainerStatuses") ||
	    is_key(key, bytes, "ephemeralContainerStatuses"))
		json_in_each(in, '[', read_container, data);
	else
		json_in_skip(in);
}

static void read_pod_part(void *data, struct json_in *in, const char *key, size_t bytes)
{
	if (is_key(key, bytes, "metadata"))
		json_in_each(in, '{', read_metadata, data);
	else if (is_key(key, bytes, "status"))
		json_in_each(in, '{', read_status, data);
	else
		json_in_skip(in);
}

/* Pods from the API server may have any annotation, and another pod's UID in it. */
static bool has_hash(const struct pods_reading *reading)
{
	return (!strcmp(reading->source, "file") || !strcmp(reading->source, "http")) &&
	       strlen(reading->hash) == 32 && strspn(reading->hash, "0123456789abcdef") == 32;
}

static void read_pod(void *data, struct json_in *in, const char *key, size_t bytes)
{
	struct pods_reading *reading = data;

	reading->uid[0] = reading->name[0] = reading->namespace[0] = '\0';
	reading->hash[0] = reading->source[0] = '\0';
	json_in_each(in, '{', read_pod_part, reading);
	if (!process_pod_is_name(reading->name, IDENTITY_POD - 1, true) ||
	    !process_pod_is_name(reading->namespace, IDENTITY_LABEL - 1, false))
		return;
	pods_put(reading->pods, true, reading->uid, reading->name, reading->namespace);
	if (has_hash(reading))
		pods_put(reading->pods, true, reading->hash, reading->name, reading->namespace);
}

static void read_answer(void *data, struct json_in *in, const char *key, size_t bytes)
{
	if (is_key(key, bytes, "items"))
		json_in_each(in, '[', read_pod, data);
	else
		json_in_skip(in);
}

int process_pods_read(struct process_pods *pods, const char *json, size_t bytes)
{
	struct json_in in = { .at = json, .end = json + bytes };
	struct pods_reading reading = { .pods = pods };

	json_in_each(&in, '{', read_answer, &reading);
	return json_in_ends(&in) ? 0 : -EBADMSG;
}

/* Of the old entries into the new ones; these are left with what is to be freed. */
static void pods_renew(struct process_pods_entry **old, struct process_pods_entry **newer,
                       unsigned most)
{
	struct process_pods_entry *entry, *next, *other, *all;

	HASH_ITER (hh, *old, entry, next) {
		other = MAP_FIND_TEXT(*newer, entry->id);
		if (other || entry->missed >= PROCESS_PODS_KEPT || HASH_COUNT(*newer) >= most)
			continue;
		HASH_DEL(*old, entry);
		entry->missed++;
		HASH_ADD_STR(*newer, id, entry);
	}
	all = *old;
	*old = *newer;
	*newer = all;
}

void process_pods_renew(struct process_pods *pods, struct process_pods *newer)
{
	pods_renew(&pods->pods, &newer->pods, PROCESS_PODS_MAX);
	pods_renew(&pods->containers, &newer->containers, PROCESS_CONTAINERS_MAX);
}

/* ---- names --------------------------------------------------------------------------------- */

bool process_pods_name(const struct process_pods *pods, struct process_identity *identity)
{
	const struct process_pods_entry *pod = NULL, *container = NULL;

	identity->pod[0] = identity->namespace[0] = '\0';
	identity->pod_by = IDENTITY_UNKNOWN;
	if (identity->pod_uid_by != IDENTITY_CGROUP)
		return true;
	pod = MAP_FIND_TEXT(pods->pods, identity->pod_uid);
	if (identity->container_by == IDENTITY_CGROUP)
		container = MAP_FIND_TEXT(pods->containers, identity->container_id);
	if (pod) {
		process_text(identity->pod, sizeof(identity->pod), pod->name, strlen(pod->name));
		process_text(identity->namespace, sizeof(identity->namespace), pod->namespace,
		             strlen(pod->namespace));
		identity->pod_by = IDENTITY_KUBELET;
	}
	if (container)
		process_text(identity->container_name, sizeof(identity->container_name),
		             container->name, strlen(container->name));
	return pod && (container || identity->container_by != IDENTITY_CGROUP);
}

/* ---- process kubelet ----------------------------------------------------------------------- */

struct process_kubelet_words {
	char *url, *token, *authority;
};

struct process_kubelet {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct process_kubelet_words words;
	struct process_pods *pods;
	bool stop, changed, missed; /* missed: a pod that is not known was asked for */
	unsigned least_ms;          /* until the next question */
	uint64_t counts[PROCESS_CURL_COUNT];
};

/* ---- asking, without the lock -------------------------------------------------------------- */

/* The first line, if it is a token. */
static bool read_token(const char *path, struct buf *token)
{
	if (secure_file_read(path, SECURE_FILE_PUBLIC, token, NULL) || !token->data)
		return false;
	token->data[strcspn(token->data, "\r\n")] = '\0';
	return process_curl_is_token(token->data);
}

static enum process_curl_outcome ask(const struct process_kubelet_words *words, struct buf *answer,
                                     const bool *stop)
{
	AT_END(buf_free) struct buf token = { 0 }, authority = { 0 };
	enum process_curl_outcome outcome = PROCESS_CURL_NO_FILES;

	if (read_token(words->token, &token) &&
	    !secure_file_read(words->authority, SECURE_FILE_PUBLIC, &authority, NULL) &&
	    authority.len)
		outcome = process_curl(words->url, token.data, &authority, answer, stop);
	if (token.data)
		explicit_bzero(token.data, token.cap);
	return outcome;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void set_words(struct process_kubelet_words *words, const char *url, const char *token,
                      const char *authority)
{
	FREE_ALL(words->url, words->token, words->authority);
	*words = (struct process_kubelet_words){ xstrdup(url), xstrdup(token), xstrdup(authority) };
}

/* Understanding it may take a tenth of a second: nobody waits for that. */
static struct process_pods *understand(const struct buf *answer)
{
	struct process_pods *pods = process_pods_new();

	if (answer->data && !process_pods_read(pods, answer->data, answer->len))
		return pods;
	process_pods_free(pods);
	return NULL;
}

static void ask_once(struct process_kubelet *kubelet)
{
	struct process_kubelet_words words = { 0 };
	enum process_curl_outcome outcome;
	struct process_pods *pods = NULL;
	AT_END(buf_free) struct buf answer = { 0 };

	set_words(&words, kubelet->words.url, kubelet->words.token, kubelet->words.authority);
	kubelet->missed = kubelet->changed = false;
	pthread_mutex_unlock(&kubelet->lock);
	outcome = ask(&words, &answer, &kubelet->stop);
	if (outcome == PROCESS_CURL_READ)
		pods = understand(&answer);
	if (outcome == PROCESS_CURL_READ && !pods)
		outcome = PROCESS_CURL_NOT_UNDERSTOOD;
	pthread_mutex_lock(&kubelet->lock);
	if (pods)
		process_pods_renew(kubelet->pods, pods);
	kubelet->counts[outcome]++;
	process_pods_free(pods);
	FREE_ALL(words.url, words.token, words.authority);
}

static void wait_until(struct process_kubelet *kubelet, const struct timespec *from, unsigned ms,
                       const bool *wake)
{
	struct timespec until = *from;

	until.tv_sec += ms / 1000;
	while (!kubelet->stop && !kubelet->changed && !(wake && *wake) &&
	       !pthread_cond_timedwait(&kubelet->wake, &kubelet->lock, &until))
		;
}

/* Until it is time, or a pod is not known. Where no answer tells of it, each wait is longer. */
static void wait_for_next(struct process_kubelet *kubelet)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	wait_until(kubelet, &now, kubelet->least_ms, NULL);
	kubelet->least_ms = kubelet->missed ? kubelet->least_ms * 2 : PROCESS_KUBELET_AGAIN_MS;
	if (kubelet->least_ms > PROCESS_KUBELET_MS)
		kubelet->least_ms = PROCESS_KUBELET_MS;
	wait_until(kubelet, &now, PROCESS_KUBELET_MS, &kubelet->missed);
}

static void *work(void *data)
{
	struct process_kubelet *kubelet = data;

	LOCKED(&kubelet->lock);
	while (!kubelet->stop) {
		ask_once(kubelet);
		wait_for_next(kubelet);
	}
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void free_all(struct process_kubelet *kubelet)
{
	pthread_cond_destroy(&kubelet->wake);
	pthread_mutex_destroy(&kubelet->lock);
	process_pods_free(kubelet->pods);
	FREE_ALL(kubelet->words.url, kubelet->words.token, kubelet->words.authority, kubelet);
}

struct process_kubelet *process_kubelet_new(const struct process_kubelet_options *options)
{
	struct process_kubelet *kubelet = xcalloc(1, sizeof(*kubelet));
	pthread_condattr_t attributes;
	sigset_t all, old;
	int rc;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&kubelet->lock, NULL);
	pthread_cond_init(&kubelet->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	kubelet->pods = process_pods_new();
	kubelet->least_ms = PROCESS_KUBELET_AGAIN_MS;
	set_words(&kubelet->words, options->url, options->token, options->authority);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the main thread */
	rc = pthread_create(&kubelet->thread, NULL, work, kubelet);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return kubelet;
	free_all(kubelet);
	return NULL;
}

void process_kubelet_free(struct process_kubelet *kubelet)
{
	if (!kubelet)
		return;
	__atomic_store_n(&kubelet->stop, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&kubelet->lock);
	pthread_cond_signal(&kubelet->wake);
	pthread_mutex_unlock(&kubelet->lock);
	pthread_join(kubelet->thread, NULL);
	free_all(kubelet);
}

/* ---- questions ----------------------------------------------------------------------------- */

void process_kubelet_change(struct process_kubelet *kubelet,
                            const struct process_kubelet_options *options)
{
	LOCKED(&kubelet->lock);
	kubelet->changed = strcmp(kubelet->words.url, options->url) ||
	                   strcmp(kubelet->words.token, options->token) ||
	                   strcmp(kubelet->words.authority, options->authority);
	if (kubelet->changed) {
		set_words(&kubelet->words, options->url, options->token, options->authority);
		pthread_cond_signal(&kubelet->wake);
	}
}

void process_kubelet_name(struct process_kubelet *kubelet, struct process_identity *identity)
{
	LOCKED(&kubelet->lock);
	if (!process_pods_name(kubelet->pods, identity) && !kubelet->missed) {
		kubelet->missed = true;
		pthread_cond_signal(&kubelet->wake);
	}
}

size_t process_kubelet_count(struct process_kubelet *kubelet, uint64_t counts[PROCESS_CURL_COUNT])
{

	LOCKED(&kubelet->lock);
	memcpy(counts, kubelet->counts, sizeof(kubelet->counts));
	return process_pods_count(kubelet->pods);
}
