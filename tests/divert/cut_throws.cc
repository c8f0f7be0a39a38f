// SPDX-License-Identifier: MIT
// C++ for cut_target.c: an exception that leaves a function of the driver through a callback.
#include <cstdint>
#include <stdexcept>
#include <unwind.h>

typedef int calls_back(void (*)(void *), void *);

extern "C" int cut_throws(calls_back *function);

static _Unwind_Reason_Code keep_address(_Unwind_Context *frame, void *last)
{
	*static_cast<uintptr_t *>(last) = _Unwind_GetIP(frame);
	return _URC_NO_REASON;
}

// Of a function with a return probe the stack ends at the kernel's trampoline, at the begin of a
// page. No handler is found behind that, and an exception would end the program.
static bool has_return_probe()
{
	uintptr_t last = 1;

	_Unwind_Backtrace(keep_address, &last);
	return last && last % 4096 == 0;
}

static void throws(void *probed)
{
	*static_cast<bool *>(probed) = has_return_probe();
	if (!*static_cast<bool *>(probed))
		throw std::runtime_error("out of a callback");
}

int cut_throws(calls_back *function)
{
	bool probed = false;

	try {
		function(throws, &probed);
	} catch (const std::runtime_error &) {
		return 1;
	}
	return probed ? -1 : 0;
}
