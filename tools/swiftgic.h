/* SPDX-License-Identifier: MIT */
#ifndef SWIFTGIC_TOOLS_SWIFTGIC_H
#define SWIFTGIC_TOOLS_SWIFTGIC_H

/* Exit statuses of every subcommand but diff, whose are diff's */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* a check or a target failed */
	EXIT_USAGE = 2,
	EXIT_CANNOT = 3, /* no KVM, no VGICv3, ... */
};

/* Prints "swiftgic: ", the text and a line feed to stderr; returns @status. */
int failed(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

int cmd_bench(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_inject(int argc, char **argv);
int cmd_migrate(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_save(int argc, char **argv);
int cmd_show(int argc, char **argv);

#endif
