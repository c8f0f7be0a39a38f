// SPDX-License-Identifier: MIT
// C++ for cut_target.c: an exception that leaves a function of the driver through a callback.
#include <stdexcept>

typedef int calls_back(void (*)(void *), void *);

extern "C" int cut_throws(calls_back *function);

static void throws(void *)
{
	throw std::runtime_error("out of a callback");
}

/* Whether it arrived. */
int cut_throws(calls_back *function)
{
	try {
		function(throws, nullptr);
	} catch (const std::runtime_error &) {
		return 1;
	}
	return 0;
}
