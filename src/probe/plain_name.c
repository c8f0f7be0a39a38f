// SPDX-License-Identifier: MIT
#include "probe/plain_name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/rights.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/kernel_name.h"
#include "probe/account.h"
#include "probe/helper_inside.h"

static bool call_rust(const char *linked, buf_piece_fn *add, void *opaque)
{
	return rust_demangle_callback(linked, 0, add, opaque);
}

static char *demangle_rust(const char *linked)
{
	struct buf text = { 0 };

	if (buf_demangle(&text, TEXT_NAME_MAX, linked, call_rust) && text.len) {
		text_cut_bytes(text.data, TEXT_NAME_MAX);
		return text.data;
	}
	buf_free(&text);
	return NULL;
}

/* What compilers append when they split a function, or fit it to its callers. */
static const char *const suffixes[] = { ".cold",  ".constprop.", ".isra.",
	                                ".llvm.", ".lto_priv.",  ".part." };

/*
 * As linked, without what compilers split off. The caller frees it. It is the same function to the
 * one who wrote it.
 */
static char *function_name_whole(const char *linked)
{
	const char *end = linked + strlen(linked);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		const char *at = strstr(linked, suffixes[i]);

		if (at && at > linked && at < end)
			end = at;
	}
	return xstrndup(linked, (size_t)(end - linked));
}

char *function_name_demangle(const char *linked)
{
	char *whole = function_name_whole(linked), *plain;

	/* Rust first: its old names are names of C++ as well, with "$LT$" and a hash in them. */
	plain = demangle_rust(whole);
	if (!plain)
		plain = kernel_name_demangle(whole);
	free(whole);
	return plain;
}

/* ---- plain name process -------------------------------------------------------------------- */

/* The other side of plain_name.h: the process without rights that demangles. */

#define MEMORY_BYTES ((uint64_t)512 << 20) /* what it was forked from included */

static int process_answers; /* the socket that they go to */

/* In the midst of a name: nothing of what it was at is any use. */
static void say_late(int signal)
{
	static const struct names_answer none;
	ssize_t n = write(process_answers, &none, sizeof(none.ran_ns));

	_exit(n < 0);
}

/* 0: no more. Only while it runs, and not while it waits. */
static void set_time(unsigned ms)
{
	const struct itimerval time = { .it_value = { .tv_usec = (suseconds_t)ms * 1000 } };

	if (setitimer(ITIMER_PROF, &time, NULL))
		_exit(1);
}

/* Bytes of the answer. */
static size_t read_name(const struct names_request *request, struct names_answer *answer)
{
	uint64_t begin = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	char *plain;
	size_t len;

	set_time(PLAIN_NAME_MS);
	plain = request->kind == NAMES_OF_KERNEL ? kernel_name_demangle(request->name)
	                                         : function_name_demangle(request->name);
	set_time(0); /* what it says from here on is of this name, and one answer */
	len = strnlen(plain, NAMES_BYTES - 1);
	memcpy(answer->text, plain, len);
	free(plain);
	answer->ran_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
	return sizeof(answer->ran_ns) + len;
}

void names_main(int socket)
{
	static struct names_request request;
	static struct names_answer answer;
	int32_t pid = getpid();
	ssize_t bytes;
	int fd;

	process_answers = socket;
	signal(SIGPROF, say_late);
	prctl(PR_SET_NAME, "cuscope-names");
	if (rights_give_up(MEMORY_BYTES) || worker_send(socket, &pid, sizeof(pid), -1))
		_exit(1);
	while ((bytes = worker_receive(socket, &request, sizeof(request), &fd)) > 0) {
		size_t end = (size_t)bytes - sizeof(request.kind);

		request.name[end < NAMES_BYTES ? end : NAMES_BYTES - 1] = '\0';
		if (worker_send(socket, &answer, read_name(&request, &answer), -1))
			break;
	}
	_exit(0);
}

/* ---- plain name ---------------------------------------------------------------------------- */

#define SIMPLE_MAX 512  /* letters of a name that is read here */
#define BUSY_MS    1000 /* for a process that the machine does not let run */
#define SUFFIX     ".abcdefghijklmnopqrstuvwxyz0123456789_"

/* What accounts are made for is waited for beside other work. This keeps the capture itself: one
 * second at once, and a fortieth of the time. */
#define WEIGHT 4

static struct {
	pthread_mutex_t lock;
	int socket; /* of the process; -1: there is none */
	pid_t pid;
	struct accounts users;
	struct plain_name_ends ends;
	struct names_request request;
	struct names_answer answer;
} names = { .lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1 };

/* ---- what is read here --------------------------------------------------------------------- */

/* What follows an identifier with its length before it; NULL where there is none. */
static const char *skip_identifier(const char *at)
{
	size_t len = 0;

	for (; isdigit((unsigned char)*at) && len <= SIMPLE_MAX; at++)
		len = 10 * len + (size_t)(*at - '0');
	return len && len <= strnlen(at, len) ? at + len : NULL;
}

/*
 * Identifiers, scopes, pointers and the types that are one letter. Without substitutions (S),
 * parameters of templates (T), their arguments (I, J), packs (D) and expressions (X, L with a type)
 * nothing stands for something else: each letter is read once, and printed once.
 */
static bool is_simple(const char *name)
{
	const char *at = name + 2;

	if (strncmp(name, "_Z", 2) || strnlen(name, SIMPLE_MAX + 1) > SIMPLE_MAX ||
	    strstr(name, KERNEL_NAME_STUB))
		return false;
	while (at && *at) {
		if (isdigit((unsigned char)*at))
			at = skip_identifier(at);
		else if (strchr("CD", *at) && at[1] >= '0' && at[1] <= '5')
			at += 2; /* a constructor, a destructor */
		else if (strchr("NELKPROvwbcahstijlmxynofdegz", *at))
			at++;
		else if (*at == '.') /* what compilers append */
			return !at[strspn(at, SUFFIX)];
		else
			return false;
	}
	return at != NULL;
}

static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) ||
	       !strncmp(name, KERNEL_NAME_STUB, strlen(KERNEL_NAME_STUB));
}

/* ---- the process --------------------------------------------------------------------------- */

static void drop_process(void)
{
	if (names.socket < 0)
		return;
	helper_kill(names.pid); /* it may have been stopped, or not run */
	close(names.socket);
	names.socket = -1;
}

void names_end(void)
{
	LOCKED(&names.lock);
	drop_process();
	accounts_free(&names.users);
}

/* Descriptors it has none to send, and there is no room for any. An answer without text says that
 * its time has run out. */
static bool receive(void)
{
	ssize_t bytes = worker_receive(names.socket, &names.answer, sizeof(names.answer), NULL);

	if (bytes < (ssize_t)sizeof(names.answer.ran_ns)) {
		names.ends.crashed++;
		return false;
	}
	bytes -= (ssize_t)sizeof(names.answer.ran_ns);
	names.answer.text[bytes < NAMES_BYTES ? bytes : NAMES_BYTES - 1] = '\0';
	names.ends.late += !names.answer.text[0];
	return names.answer.text[0] != '\0';
}

static bool exchange(enum names_kind kind, const char *name, size_t len)
{
	size_t bytes = sizeof(names.request.kind) + len;

	if (names.socket < 0 && helper_make(HELPER_MAKE_NAMES, &names.socket, &names.pid))
		return false;
	names.request.kind = kind;
	memcpy(names.request.name, name, len);
	if (worker_send(names.socket, &names.request, bytes, -1))
		return false;
	if (worker_wait(names.socket, BUSY_MS, NULL)) {
		names.ends.late++;
		return false;
	}
	return receive();
}

/* Of its time the process may say what it likes, but not more than was waited. */
static uint64_t time_of(bool is_read, uint64_t waited)
{
	return is_read && names.answer.ran_ns < waited ? names.answer.ran_ns : waited;
}

/* With the lock. NULL: there is no time for it. */
static char *ask(enum names_kind kind, const char *name, uint64_t person)
{
	struct account *account = accounts_of(&names.users, person, clock_now_ns());
	uint64_t begin = clock_now_ns(), now;
	size_t len = strlen(name);
	bool is_read;

	if (len >= NAMES_BYTES || account_is_over(account, begin))
		return NULL;
	is_read = exchange(kind, name, len);
	if (!is_read)
		drop_process();
	now = clock_now_ns();
	account_charge(account, WEIGHT * time_of(is_read, now - begin), now);
	return is_read ? xstrdup(names.answer.text) : NULL;
}

static char *read_aside(enum names_kind kind, const char *name, uint64_t person)
{
	char *plain = NULL;

	if (!is_mangled(name) || !helper_is_there())
		return xstrdup(name);
	pthread_mutex_lock(&names.lock);
	plain = ask(kind, name, person);
	pthread_mutex_unlock(&names.lock);
	return plain ? plain : xstrdup(name);
}

struct plain_name_ends plain_name_ends(void)
{

	LOCKED(&names.lock);
	return names.ends;
}

char *plain_kernel_name(const char *mangled, uint64_t person)
{
	return is_simple(mangled) ? kernel_name_demangle(mangled)
	                          : read_aside(NAMES_OF_KERNEL, mangled, person);
}

char *plain_function_name(const char *linked, uint64_t person)
{
	char *whole, *plain;

	if (is_simple(linked))
		return function_name_demangle(linked);
	whole = function_name_whole(linked);
	plain = read_aside(NAMES_OF_FUNCTION, whole, person);
	free(whole);
	return plain;
}
