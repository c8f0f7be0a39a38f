// SPDX-License-Identifier: MIT
#include "capture/wakers.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define THREADS_MAX 4096

struct waker {
	uint32_t tid;
	uint64_t blocked_ns;
	UT_hash_handle hh;
};

struct wakers {
	struct waker *threads;
};

struct wakers *wakers_new(void)
{
	return xcalloc(1, sizeof(struct wakers));
}

static void forget(struct wakers *w)
{
	struct waker *waker, *next;

	HASH_ITER (hh, w->threads, waker, next) {
		HASH_DEL(w->threads, waker);
		free(waker);
	}
}

void wakers_free(struct wakers *w)
{
	if (!w)
		return;
	forget(w);
	free(w);
}

bool wakers_note(struct wakers *w, uint32_t tid, uint64_t blocked_ns)
{
	struct waker *waker;
	bool mattered;

	HASH_FIND_INT(w->threads, &tid, waker);
	if (!waker) {
		if (HASH_COUNT(w->threads) >= THREADS_MAX)
			forget(w);
		waker = xcalloc(1, sizeof(*waker));
		waker->tid = tid;
		HASH_ADD_INT(w->threads, tid, waker);
	}
	mattered = waker->blocked_ns >= WAKERS_MATTER_NS;
	if (blocked_ns > UINT64_MAX - waker->blocked_ns)
		blocked_ns = UINT64_MAX - waker->blocked_ns;
	waker->blocked_ns += blocked_ns;
	return !mattered && waker->blocked_ns >= WAKERS_MATTER_NS;
}
