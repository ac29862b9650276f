/* SPDX-License-Identifier: MIT */
/*
 * A QEMU with a KVM guest, for the lab: its monitor, its guest's serial port,
 * migration from one to another. The lab's kernel has no sockets, so all of it
 * goes through pipes.
 *
 * Functions that return int return 0 or -1; qemu->err then says what failed.
 */
#ifndef SWIFTGIC_TOOLS_QEMU_H
#define SWIFTGIC_TOOLS_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

/* Where the lab's scripts put the guest, and where a QEMU's files are */
#define QEMU_GUEST_KERNEL "/guest/Image"
#define QEMU_GUEST_INITRD "/guest/initrd"
#define QEMU_DIR	  "/tmp/qemu"

#define QEMU_MAX_ARGS 32

/**
 * struct qemu_config - a QEMU to start
 * @binary:	the program
 * @type:	of the machine; NULL: virt, the newest that this QEMU has
 * @machine:	options of -M after the type and "gic-version=3", or NULL
 * @smp:	-smp
 * @mem:	-m
 * @queues:	of the guest's disk, each an LPI; 0: no disk
 * @append:	added to the guest's command line, or NULL
 * @args:	more arguments, up to the first NULL
 * @incoming:	waits for a migration from another QEMU ("", see
 *		qemu_migrate()), or from what this URI says; NULL: boots
 * @paused:	does not run the guest
 * @no_guest:	has none, and runs nothing
 */
struct qemu_config {
	const char *binary;
	const char *type;
	const char *machine;
	const char *smp;
	const char *mem;
	unsigned int queues;
	const char *append;
	const char *args[QEMU_MAX_ARGS];
	const char *incoming;
	bool paused;
	bool no_guest;
};

struct reader {
	int fd;
	size_t len;
	char buf[65536];
};

struct qemu {
	unsigned int nr;
	pid_t pid;
	int status; /* as of waitpid(), once pid is 0 */
	int monitor;
	int serial;
	struct reader monitor_out;
	struct reader serial_out;
	char migration[32]; /* the last status of the event MIGRATION */
	char err[512];
};

/* NULL: no memory. Otherwise qemu_free() it, started or not. */
struct qemu *qemu_new(void);

/* Ends it if it runs */
void qemu_free(struct qemu *qemu);

/* Returns once the monitor answers. */
int qemu_start(struct qemu *qemu, const struct qemu_config *config);

/*
 * A monitor command; @args become its own, NULL is none. What it returns goes
 * to *@ret, if that is not NULL, for the caller to delete.
 */
int qemu_command(struct qemu *qemu, const char *name, cJSON *args, cJSON **ret);

/* Is the guest's run state @status, "running" say, within @seconds? */
int qemu_wait_status(struct qemu *qemu, const char *status, int seconds);

/* Wait until the migration has completed; the other statuses are errors. */
int qemu_wait_migration(struct qemu *qemu, int seconds);

/* Wait until it has ended by itself. */
int qemu_wait_exit(struct qemu *qemu, int seconds);

/* Wait for the guest to have booted. */
int qemu_wait_guest(struct qemu *qemu, int seconds);

/*
 * Give the guest the command @name and put the line that answers it, without
 * "name: ", into @answer.
 */
int qemu_guest(struct qemu *qemu, const char *name, char *answer, size_t size);

/* The guest's own check of itself */
int qemu_check(struct qemu *qemu);

/*
 * Migrate to @to, which was started with incoming = "", and wait for the end;
 * the source is paused afterwards. @alter is "", or " AFTER OFFSET XOR" to
 * change a byte on the way; see relay.c.
 */
int qemu_migrate(struct qemu *qemu, struct qemu *to, const char *alter);

/* To a file, whose stream the URI "exec:@path -" is then, for incoming */
int qemu_save(struct qemu *qemu, const char *path);

/* What it has printed, and traced, as a string to free; or NULL */
char *qemu_log(const struct qemu *qemu);

#endif
