// SPDX-License-Identifier: MIT
/* What the time of each account consists of, part by part of it. */
#include <math.h>
#include <stdlib.h>

#include "account/gpu_time.h"
#include "report/why_inside.h"

#define WINDOW_LINES 8
#define WINDOW_LEAST 1000 /* ns */

/* Of one account, while its parts are told. */
struct windows {
	struct why *why;
	const struct account *account;
	struct why_window window;
	why_window_fn *tell;
	void *data;
};

static void windows_tell_line(struct windows *windows, const struct answer_line *line)
{
	AT_END(buf_free) struct buf where = { 0 };
	struct buf *before = windows->why->out;
	struct why_window *window = &windows->window;

	buf_puts(&where, "");
	window->cause =
		line->cause == ACCOUNT_CAUSES ? "all else" : account_cause_text(line->cause);
	windows->why->out = &where;
	if (line->cause != ACCOUNT_CAUSES)
		why_where(windows->why, windows->account, line);
	windows->why->out = before;
	window->where = where.data;
	window->ns = line->ns > 0 ? (uint64_t)llround(line->ns) : 0;
	windows->tell(windows->data, window);
}

static void windows_tell(struct windows *windows, struct gpu_time *gpus, uint64_t *budget)
{
	const struct fact_span span = { windows->window.begin_ns, windows->window.end_ns, 0 };
	const struct facts *facts = &windows->why->facts;
	struct answer_line lines[WINDOW_LINES];
	struct account part;
	size_t n;

	account_of_spans(&part, facts, gpus, windows->account, &span, 1, budget);
	n = answer_lines(&windows->why->answer, &part, lines, WINDOW_LINES);
	for (size_t i = 0; i < n; i++)
		windows_tell_line(windows, &lines[i]);
	free(part.parts);
}

void why_windows(struct consumer *self, size_t n, why_window_fn *tell, void *data)
{
	struct why *why = (struct why *)self;
	struct gpu_time *gpus;
	uint64_t budget = ACCOUNT_BUDGET;

	if (why_none(self))
		return;
	gpus = gpu_times_of(&why->facts);
	for (size_t i = 0; i < why->accounts.n; i++) {
		const struct account *account = &why->accounts.of[i];
		struct windows windows = {
			.why = why, .account = account, .tell = tell, .data = data
		};
		uint64_t ns = account->end_ns - account->first_ns;

		windows.window.process = account->process;
		windows.window.device =
			account->device == FACTS_NONE ? WHY_NO_DEVICE : account->device;
		if (ns / n < WINDOW_LEAST)
			continue;
		for (size_t k = 0; k < n; k++) {
			windows.window.begin_ns = account->first_ns + ns / n * k;
			windows.window.end_ns =
				k + 1 < n ? account->first_ns + ns / n * (k + 1) : account->end_ns;
			windows_tell(&windows, gpus, &budget);
		}
	}
}
