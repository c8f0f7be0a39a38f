# SPDX-License-Identifier: MIT
# make golden      writes the traces in tests/golden anew: after a change of the format

$(B)/tests/golden/make: $(B)/tests/golden/make.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

golden: $(B)/tests/golden/make
	$< tests/golden

.PHONY: golden
