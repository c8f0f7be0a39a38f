// SPDX-License-Identifier: MIT
// C++ for test_probes_flow.c: an exception that passes through a thunk, with a destructor on its way.
#include <stdexcept>

extern "C" {
int throws(int what);
int catches(int (*thunk)(int), int what, int *destroyed);
}

int throws(int what)
{
	if (what < 0)
		throw std::runtime_error("below zero");
	return what;
}

namespace
{
struct guard {
	int *destroyed;
	~guard()
	{
		++*destroyed;
	}
};
}

int catches(int (*thunk)(int), int what, int *destroyed)
{
	guard held{ destroyed };

	try {
		return thunk(what);
	} catch (const std::runtime_error &) {
		return -1;
	}
}
