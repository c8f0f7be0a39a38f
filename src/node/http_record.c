// SPDX-License-Identifier: MIT
#include "node/http_record.h"

#include <microhttpd.h>

#include "base/parse.h"
#include "node/recorder.h"

#define LAST_MOST_NS 3600000000000ull

static unsigned record_without(struct buf *out)
{
	buf_puts(out, "There is no flight recorder: [recorder] enabled = no.\n");
	return MHD_HTTP_NOT_FOUND;
}

unsigned http_record_ask(struct recorder *recorder, const char *last, struct buf *out)
{
	uint64_t last_ns = 0, number;

	if (!recorder_holds(recorder))
		return record_without(out);
	if (last && (!parse_duration_ns(last, &last_ns) || !last_ns || last_ns > LAST_MOST_NS)) {
		buf_puts(out, "last is no duration up to 1h (30s, 2m).\n");
		return MHD_HTTP_BAD_REQUEST;
	}
	number = recorder_request(recorder, last_ns);
	if (!number) {
		buf_puts(out, "Requests are off: [rules] request = no.\n");
		return MHD_HTTP_FORBIDDEN;
	}
	buf_printf(out, "request=%llu\n", (unsigned long long)number);
	return MHD_HTTP_ACCEPTED;
}

unsigned http_record_tell(struct recorder *recorder, const char *request, struct buf *out)
{
	static const unsigned status[] = {
		[RECORDER_WAITING] = MHD_HTTP_ACCEPTED,
		[RECORDER_WRITTEN] = MHD_HTTP_OK,
		[RECORDER_REFUSED] = MHD_HTTP_TOO_MANY_REQUESTS,
		[RECORDER_FAILED] = MHD_HTTP_SERVICE_UNAVAILABLE,
		[RECORDER_UNKNOWN] = MHD_HTTP_NOT_FOUND,
	};
	char text[RECORDER_ANSWER_TEXT] = "";
	enum recorder_answer answer;
	uint64_t number;

	if (!recorder_holds(recorder))
		return record_without(out);
	if (!request || !parse_number(request, UINT64_MAX / 2, &number)) {
		buf_puts(out, "POST /record asks for a recording, GET /record?request=N tells what "
		              "came of it.\n");
		return MHD_HTTP_BAD_REQUEST;
	}
	answer = recorder_request_answer(recorder, number, text);
	if (answer == RECORDER_WAITING)
		buf_puts(out, "waiting\n");
	else if (answer == RECORDER_UNKNOWN)
		buf_puts(out, "There is no such request, or it is long over.\n");
	else
		buf_printf(out, "%s\n", text);
	return status[answer];
}
