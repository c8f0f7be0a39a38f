// SPDX-License-Identifier: MIT
/* From the account of time to rows: what each part of it consists of. */
#include "page/rows.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "report/why.h"

#define ACCOUNT_PARTS 400

/* What an account's part consists of, as it is written: before the cause and the place. */
struct page_window {
	uint32_t process, device;
	uint32_t cause, where; /* bytes */
	uint64_t begin_ns, ns;
};

/* Of the account that is told; its parts come one after the other. */
struct page_account {
	struct page_rows *rows;
	struct page_track *track;
	uint32_t process, device;
	uint64_t part_ns, at_ns; /* the part's begin; where its next row goes */
};

static void account_track(struct page_account *account, const struct page_window *window)
{
	struct page_track_options options = { .shape = PAGE_ACCOUNT };
	char title[64] = "what its time consists of";

	if (account->track && account->process == window->process &&
	    account->device == window->device)
		return;
	if (window->device != WHY_NO_DEVICE)
		snprintf(title, sizeof(title), "what the time of GPU %u consists of",
		         window->device);
	options.title = title;
	options.process = window->process;
	account->track = page_track_new(account->rows->blocks, &options);
	account->process = window->process;
	account->device = window->device;
	account->part_ns = UINT64_MAX;
}

/* Within a part its causes stand side by side, the largest first: each has its share of it. */
static void account_add(struct page_account *account, const struct page_window *window,
                        const char *cause, const char *where)
{
	struct page_rows *rows = account->rows;
	uint32_t name = rows_name(rows, cause);
	uint64_t *row, key = hash_long(where, strlen(where));
	AT_END(buf_free) struct buf safe = { 0 };

	account_track(account, window);
	if (account->part_ns != window->begin_ns)
		account->part_ns = account->at_ns = window->begin_ns;
	row = page_row(rows->blocks, account->track);
	rows_place(rows, row, account->at_ns, account->at_ns + window->ns);
	account->at_ns += window->ns;
	row[PAGE_AT_NAME] = name;
	if (!account->track)
		return;
	row[ACCOUNT_DETAIL] = page_text_find(account->track, key);
	if (row[ACCOUNT_DETAIL])
		return;
	buf_puts(&safe, "");
	text_add_safe(&safe, where);
	row[ACCOUNT_DETAIL] = page_text_add(rows->blocks, account->track, key, safe.data);
}

static void window_write(void *data, const struct why_window *window)
{
	const struct page_window written = { window->process->id,
		                             window->device,
		                             (uint32_t)strlen(window->cause),
		                             (uint32_t)strlen(window->where),
		                             window->begin_ns,
		                             window->ns };

	fwrite(&written, sizeof(written), 1, data);
	fwrite(window->cause, written.cause, 1, data);
	fwrite(window->where, written.where, 1, data);
}

void page_windows_write(struct consumer *why, FILE *to)
{
	why_windows(why, ACCOUNT_PARTS, window_write, to);
}

static const char *window_text(struct buf *text, FILE *file, size_t len)
{
	buf_reset(text);
	buf_reserve(text, len + 1);
	text->len = fread(text->data, 1, len, file);
	text->data[text->len] = '\0';
	return text->data;
}

void page_rows_account(struct page_rows *rows, FILE *windows)
{
	AT_END(buf_free) struct buf cause = { 0 }, where = { 0 };
	struct page_account account = { .rows = rows };
	struct page_window window;

	while (fread(&window, sizeof(window), 1, windows) == 1) {
		const char *text = window_text(&cause, windows, window.cause);

		account_add(&account, &window, text, window_text(&where, windows, window.where));
	}
}
