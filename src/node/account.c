// SPDX-License-Identifier: MIT
#include "node/account.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/xalloc.h"
#include "capture/target.h"
#include "node/http.h"
#include "node/recorder.h"

#define MOST_BYTES (260u << 10)   /* top_why's 256 KiB, and what is around them */
#define LINGERS_NS 10000000000ull /* after the last look: a page that is loaded anew goes on */
#define CHOOSE_NS  1000000000ull  /* between two looks at who is busy */
#define AGAIN_NS   10000000000ull /* after it ended by itself */
#define LEAST_NS   60000000000ull /* before it is made anew for other processes */
#define SENTENCE   600

/* ---- who makes it -------------------------------------------------------------------------- */

int account_send(int socket, const char *json, bool worn)
{
	const struct recorder_message message = { .kind = RECORDER_ACCOUNT, .worn = worn };
	AT_END(at_end_close) int fd = memfd_create("account", MFD_CLOEXEC);
	size_t bytes = strlen(json);

	if (fd < 0 || write(fd, json, bytes) != (ssize_t)bytes)
		return -ENOMEM;
	return worker_send_now(socket, &message, sizeof(message), fd);
}

void account_send_failure(int socket, const char *sentence)
{
	struct recorder_message message = { .kind = RECORDER_NOTICE };

	snprintf(message.text, sizeof(message.text), "%s", sentence);
	recorder_send(socket, &message);
}

/* ---- who has it ---------------------------------------------------------------------------- */

bool account_read(int fd, struct buf *json)
{
	struct stat stat;
	bool good = !fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 1 &&
	            stat.st_size <= MOST_BYTES;
	size_t bytes = good ? (size_t)stat.st_size : 0;

	if (good) {
		char *text = xmalloc(bytes);

		good = pread(fd, text, bytes, 0) == (ssize_t)bytes && text[0] == '{';
		for (size_t i = 0; i < bytes && good; i++)
			good = (unsigned char)text[i] >= ' ';
		if (good)
			buf_add(json, text, bytes);
		free(text);
	}
	close(fd);
	return good;
}

int account_check(const struct node_settings *settings, struct err *err)
{
	if (!settings->account || *settings->token)
		return 0;
	return err_set(err, EPERM,
	               "[account] needs the token of [tls]: whoever looks at the page has programs "
	               "entered, and sees names of their functions and files");
}

enum account_kind { ACCOUNT_NONE, ACCOUNT_CALLS, ACCOUNT_WHOLE };

static const char *const kinds[] = { "none", "calls", "whole" };

struct account {
	enum account_kind kind;
	uint64_t looked_ns; /* 0: nobody has */
	struct buf json;    /* what there is; empty: nothing */
	uint64_t number;    /* another one, something else */
	uint64_t taken;     /* of the flight recorder's */
	uint64_t told;
	const struct http *told_to;
	/* of the whole one */
	struct recorder_child child;
	char failed[SENTENCE]; /* what it said last */
	bool worn;             /* another one is to take its place */
	uint64_t began_ns, again_ns, chosen_ns;
	struct account_busy *busy; /* at the last look */
	size_t n_busy;
	struct account_busy of[ACCOUNT_PROCESSES_MOST]; /* that it is made of */
	size_t n_of;
};

static void set_text(struct account *account, const struct buf *json)
{
	buf_reset(&account->json);
	buf_add(&account->json, json->data ? json->data : "", json->len);
	account->number++;
}

static void set_state(struct account *account, const char *state, const char *sentence)
{
	AT_END(buf_free) struct buf text = { 0 };
	struct json json = { .out = &text };

	json_open(&json, NULL, '{');
	json_string(&json, "state", state);
	json_string(&json, "sentence", sentence);
	json_close(&json, '}');
	set_text(account, &text);
}

static void set_nothing(struct account *account)
{
	if (!account->json.len)
		return;
	buf_reset(&account->json);
	account->number++;
}

/* ---- of calls ------------------------------------------------------------------------------ */

static void turn_calls(struct account *account, struct recorder *recorder, bool looked)
{
	AT_END(buf_free) struct buf json = { 0 };

	recorder_look(recorder, looked);
	if (!recorder_account(recorder, &account->taken, &json))
		return;
	if (json.len)
		set_text(account, &json);
	else
		set_nothing(account);
}

/* ---- who is busy --------------------------------------------------------------------------- */

static uint64_t work_of(const struct counted_process *process)
{
	uint64_t work = process->counts[COUNT_LAUNCHES] + process->counts[COUNT_GRAPH_LAUNCHES] +
	                process->counts[COUNT_SETS];

	for (size_t i = 0; i < DIRECTION_COUNT; i++)
		work += process->counts[COUNT_COPIES + i];
	return work;
}

static const struct account_busy *find_busy(const struct account_busy *busy, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (busy[i].pid == pid)
			return &busy[i];
	}
	return NULL;
}

/* All of one that was not there is more. Of processes with series; those are few (`top`), and of no
 * user more than a share. One that is not traced takes nobody's place. */
static void look_at_busy(struct account *account, const struct counts *counts)
{
	const struct counted_process *const *shown;
	size_t n = counts_shown(counts, &shown), kept = 0;
	struct account_busy *busy = xcalloc(n + 1, sizeof(*busy));

	for (size_t i = 0; i < n; i++) {
		const struct process *process = shown[i]->process;
		const struct account_busy *before =
			find_busy(account->busy, account->n_busy, process->pid);
		struct account_busy *one = &busy[kept];

		if (shown[i]->ended)
			continue;
		one->pid = process->pid;
		one->person = counts_person(counts, process);
		one->work = work_of(shown[i]);
		one->more = one->work - (before && before->work <= one->work ? before->work : 0);
		if (one->more && target_is_valgrind((pid_t)one->pid))
			one->more = 0;
		snprintf(one->name, sizeof(one->name), "%s", process->comm);
		kept++;
	}
	free(account->busy);
	account->busy = busy;
	account->n_busy = kept;
}

static size_t chosen_of(const struct account_busy *busy, size_t n, uint64_t person)
{
	size_t chosen = 0;

	for (size_t i = 0; i < n; i++)
		chosen += busy[i].chosen && busy[i].person == person;
	return chosen;
}

static struct account_busy *choose_next(struct account_busy *busy, size_t n)
{
	struct account_busy *next = NULL;
	size_t next_of = 0;

	for (size_t i = 0; i < n; i++) {
		size_t of = chosen_of(busy, n, busy[i].person);

		if (busy[i].chosen || !busy[i].more ||
		    (next && (of > next_of || (of == next_of && busy[i].more <= next->more))))
			continue;
		next = &busy[i];
		next_of = of;
	}
	return next;
}

size_t account_choose(struct account_busy *busy, size_t n, size_t most)
{
	struct account_busy *next;
	size_t chosen = 0;

	while (chosen < most && (next = choose_next(busy, n))) {
		next->chosen = true;
		chosen++;
	}
	return chosen;
}

static void choose(struct account *account, size_t most)
{
	account_choose(account->busy, account->n_busy, most);
	account->n_of = 0;
	for (size_t i = 0; i < account->n_busy; i++) {
		if (account->busy[i].chosen)
			account->of[account->n_of++] = account->busy[i];
	}
}

/* One that asks for work is not in it, and there is room: or one that was in it has ended. */
static bool is_of_others(const struct account *account, size_t most)
{
	size_t living = 0, others = 0;

	for (size_t i = 0; i < account->n_busy; i++) {
		bool recorded = find_busy(account->of, account->n_of, account->busy[i].pid);

		living += recorded;
		others += !recorded && account->busy[i].more;
	}
	return others && living < most;
}

/* ---- the whole one ------------------------------------------------------------------------- */

static void start(struct account *account, uint64_t now)
{
	AT_END(buf_free) struct buf pids = { 0 };
	char name[] = ACCOUNT_NAME, why[] = "--why", of[] = "-p";
	char *argv[] = { name, why, of, NULL, NULL };
	const struct worker_program program = {
		.argv = argv, .environment = environ, .with = -1, .silent = true
	};
	int rc;

	for (size_t i = 0; i < account->n_of; i++)
		buf_printf(&pids, "%s%u", i ? "," : "", account->of[i].pid);
	argv[3] = pids.data;
	account->child = (struct recorder_child){ 0 };
	account->failed[0] = '\0';
	account->worn = false;
	account->began_ns = now;
	rc = worker_start(&account->child.worker, &program);
	if (rc) {
		account->again_ns = now + AGAIN_NS;
		set_state(account, "failed", strerror(-rc));
	}
}

/* What it says first is told: the rest is of others of them, or the same once more. */
static void take_notice(struct account *account, const struct account_view *view,
                        const struct recorder_message *message)
{
	AT_END(buf_free) struct buf text = { 0 };

	if (!account->failed[0] && view->say) {
		buf_printf(&text, "account: %.*s", SENTENCE - 1, message->text);
		view->say(view->data, text.data);
	}
	snprintf(account->failed, sizeof(account->failed), "%.*s", SENTENCE - 1, message->text);
}

static void take_message(struct account *account, const struct account_view *view,
                         const struct recorder_message *message, int fd)
{
	AT_END(buf_free) struct buf json = { 0 };

	if (message->kind == RECORDER_NOTICE)
		take_notice(account, view, message);
	if (fd < 0 || !account_read(fd, &json))
		return;
	set_text(account, &json);
	account->worn = message->worn;
	account->failed[0] = '\0'; /* it was of some that were passed over */
}

static void hear(struct account *account, const struct account_view *view)
{
	struct recorder_message message;

	for (int i = 0; i < 4 && account->child.worker.socket >= 0; i++) {
		struct pollfd ready = { .fd = account->child.worker.socket, .events = POLLIN };
		int fd = -1;

		if (poll(&ready, 1, 0) <= 0 ||
		    recorder_receive_with(account->child.worker.socket, &message, &fd))
			return;
		take_message(account, view, &message, fd);
	}
}

static void on_end(struct account *account, bool asked, uint64_t now)
{
	if (asked)
		return;
	account->again_ns = now + AGAIN_NS;
	set_state(account, "failed",
	          account->failed[0] ? account->failed
	                             : "no account: the processes that it was of have ended, or "
	                               "who makes it was; it begins anew");
}

static bool is_there(const struct account *account)
{
	return account->child.worker.pid;
}

static void look_at_child(struct account *account, const struct account_view *view, uint64_t now)
{
	bool asked = account->child.end_by_ns;

	if (!is_there(account))
		return;
	hear(account, view);
	if (recorder_child_ended(&account->child, now))
		on_end(account, asked, now);
}

static void turn_whole(struct account *account, const struct account_view *view, bool looked,
                       uint64_t now)
{
	size_t most = view->settings->account_processes;
	bool first;

	look_at_child(account, view, now);
	if (!looked) {
		recorder_child_stop(&account->child, now);
		account->n_busy = account->n_of = 0;
		return;
	}
	if (now - account->chosen_ns < CHOOSE_NS)
		return;
	account->chosen_ns = now;
	first = !account->n_busy;
	look_at_busy(account, view->counts);
	if (is_there(account)) {
		if (now - account->began_ns > LEAST_NS &&
		    (account->worn || is_of_others(account, most)))
			recorder_child_stop(&account->child, now);
		return;
	}
	if (now < account->again_ns)
		return;
	choose(account, first ? 0 : most); /* those that are seen a moment later count as well */
	if (account->n_of)
		start(account, now);
	else if (!account->json.len)
		set_state(account, "recording",
		          "no process that is older than a moment asks for work of a GPU");
}

/* ---- both ---------------------------------------------------------------------------------- */

static void add_kind(const struct account *account, struct buf *out)
{
	struct json json = { .out = out };

	json_open(&json, NULL, '{');
	json_string(&json, "account", kinds[account->kind]);
	json_open(&json, "processes", '[');
	for (size_t i = 0; i < account->n_of; i++) {
		json_open(&json, NULL, '{');
		json_u64(&json, "pid", account->of[i].pid);
		json_string(&json, "name", account->of[i].name);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
}

static void tell(struct account *account, struct http *http)
{
	AT_END(buf_free) struct buf text = { 0 };

	if (account->told == account->number && account->told_to == http)
		return;
	account->told = account->number;
	account->told_to = http;
	add_kind(account, &text);
	http_publish_account(http, account->json.len ? account->json.data : NULL);
	http_publish(http, text.data);
}

void account_turn(struct account *account, const struct account_view *view, uint64_t now_ns)
{
	enum account_kind kind = view->settings->account          ? ACCOUNT_WHOLE
	                         : recorder_holds(view->recorder) ? ACCOUNT_CALLS
	                                                          : ACCOUNT_NONE;
	bool looked;

	if (!view->http)
		return;
	if (http_is_read(view->http, now_ns))
		account->looked_ns = now_ns;
	looked = account->looked_ns && now_ns - account->looked_ns < LINGERS_NS;
	if (kind != account->kind) {
		account->kind = kind;
		account->taken = 0;
		account->number++;
		buf_reset(&account->json);
	}
	if (kind == ACCOUNT_WHOLE && !looked)
		set_nothing(account);
	turn_whole(account, view, looked && kind == ACCOUNT_WHOLE, now_ns);
	if (view->recorder)
		turn_calls(account, view->recorder, looked && kind == ACCOUNT_CALLS);
	tell(account, view->http);
}

struct account *account_new(void)
{
	struct account *account = xcalloc(1, sizeof(*account));

	account->number = 1;
	account->child.worker = (struct worker){ .pidfd = -1, .socket = -1 };
	return account;
}

/* Who makes it ends by itself, as its socket has. */
void account_free(struct account *account)
{
	if (account->child.worker.socket >= 0)
		close(account->child.worker.socket);
	buf_free(&account->json);
	free(account->busy);
	free(account);
}
