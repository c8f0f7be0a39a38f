// SPDX-License-Identifier: MIT
#include "node/process_kubelet.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/xalloc.h"
#include "node/process_pods.h"
#include "base/secure_file.h"

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
	struct buf token = { 0 }, authority = { 0 };
	enum process_curl_outcome outcome = PROCESS_CURL_NO_FILES;

	if (read_token(words->token, &token) &&
	    !secure_file_read(words->authority, SECURE_FILE_PUBLIC, &authority, NULL) &&
	    authority.len)
		outcome = process_curl(words->url, token.data, &authority, answer, stop);
	if (token.data)
		explicit_bzero(token.data, token.cap);
	buf_free(&token);
	buf_free(&authority);
	return outcome;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void set_words(struct process_kubelet_words *words, const char *url, const char *token,
                      const char *authority)
{
	free(words->url);
	free(words->token);
	free(words->authority);
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
	struct buf answer = { 0 };

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
	buf_free(&answer);
	free(words.url);
	free(words.token);
	free(words.authority);
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

	pthread_mutex_lock(&kubelet->lock);
	while (!kubelet->stop) {
		ask_once(kubelet);
		wait_for_next(kubelet);
	}
	pthread_mutex_unlock(&kubelet->lock);
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void free_all(struct process_kubelet *kubelet)
{
	pthread_cond_destroy(&kubelet->wake);
	pthread_mutex_destroy(&kubelet->lock);
	process_pods_free(kubelet->pods);
	free(kubelet->words.url);
	free(kubelet->words.token);
	free(kubelet->words.authority);
	free(kubelet);
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
	pthread_mutex_lock(&kubelet->lock);
	kubelet->changed = strcmp(kubelet->words.url, options->url) ||
	                   strcmp(kubelet->words.token, options->token) ||
	                   strcmp(kubelet->words.authority, options->authority);
	if (kubelet->changed) {
		set_words(&kubelet->words, options->url, options->token, options->authority);
		pthread_cond_signal(&kubelet->wake);
	}
	pthread_mutex_unlock(&kubelet->lock);
}

void process_kubelet_name(struct process_kubelet *kubelet, struct process_identity *identity)
{
	pthread_mutex_lock(&kubelet->lock);
	if (!process_pods_name(kubelet->pods, identity) && !kubelet->missed) {
		kubelet->missed = true;
		pthread_cond_signal(&kubelet->wake);
	}
	pthread_mutex_unlock(&kubelet->lock);
}

size_t process_kubelet_count(struct process_kubelet *kubelet, uint64_t counts[PROCESS_CURL_COUNT])
{
	size_t n;

	pthread_mutex_lock(&kubelet->lock);
	memcpy(counts, kubelet->counts, sizeof(kubelet->counts));
	n = process_pods_count(kubelet->pods);
	pthread_mutex_unlock(&kubelet->lock);
	return n;
}
