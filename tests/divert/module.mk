# SPDX-License-Identifier: MIT
# $(B)/tests/divert/call_all    calls all CUDA functions of a library, as they are and diverted; tests/integration runs it
# dist/call_all                 the same with nothing but glibc needed, for another machine
# $(B)/tests/divert/places      diverts while a thread stands at each of the first instructions
# $(B)/tests/divert/hostile     diverts in processes that change meanwhile
# $(B)/tests/divert/held        orders that cuscope-divert does not read
# $(B)/tests/divert/ended       who diverts is ended in the middle
# $(B)/tests/divert/peers       processes that share their memory with others
# $(B)/tests/divert/forks       processes that fork without end
# $(B)/tests/divert/odd         processes of kinds that are seldom
# $(B)/tests/divert/cut         diverts them in a process that calls them all the time, and takes them back; so does this

$(B)/tests/divert/call_all: $(B)/tests/divert/call_all.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

dist/call_all: $(B)/tests/divert/call_all.o $(B)/libcuscope.a $(B)/static/libZydis.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--gc-sections -static-libgcc -o $@ $^ -l:libstdc++.a -liberty -ldl -lm -pthread
	strip $@

$(B)/tests/divert/cut_throws.o: tests/divert/cut_throws.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -Wall -Wextra -Werror $(SANITIZE) -c -o $@ $<

$(B)/tests/divert/cut: $(addprefix $(B)/tests/divert/,cut.o cut_target.o cut_throws.o) $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/divert/places: $(B)/tests/divert/places.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/divert/hostile: $(B)/tests/divert/hostile.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(addprefix $(B)/tests/divert/,ended forks held odd peers): %: %.o $(B)/tests/divert/one_target.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

ifeq ($(ARCH),x86_64)
programs: $(addprefix $(B)/tests/divert/,call_all cut ended forks held hostile odd peers places)
endif
