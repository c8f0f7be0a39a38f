# SPDX-License-Identifier: MIT
# make golden      writes the traces in tests/golden anew: after a change of the format. Before it, traces of a version that
#                  was released are copied to tests/golden/older/VERSION, where nothing writes.

$(B)/tests/golden/make: $(B)/tests/golden/make.o $(B)/tests/golden/host.o $(B)/tests/golden/driver.o $(B)/tests/golden/idle.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

golden: $(B)/tests/golden/make
	$< tests/golden

.PHONY: golden

# make test-golden     the reports of these traces against tests/golden/expected
# make golden-update   takes what they print as right: look at the difference before a commit

test-golden: $(B)/cuscope
	@tests/golden/check.py $(B)/cuscope

golden-update: $(B)/cuscope
	@tests/golden/check.py $(B)/cuscope --update

.PHONY: test-golden golden-update

# make test-format     the golden traces, read by what was written from docs/trace-format.md alone

test-format: $(B)/cuscope
	@tests/golden/reader.py --check $(B)/cuscope tests/golden/*.cuscope tests/golden/older/*/*.cuscope

.PHONY: test-format
