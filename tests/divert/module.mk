# SPDX-License-Identifier: MIT
# $(B)/tests/divert/call_all    calls all CUDA functions of a library, as they are and diverted; tests/integration runs it

$(B)/tests/divert/call_all: $(B)/tests/divert/call_all.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

ifeq ($(ARCH),x86_64)
programs: $(B)/tests/divert/call_all
endif
