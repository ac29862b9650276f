// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* pipe2(), vasprintf() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "qemu.h"

/* An emulated machine that emulates a machine, on a busy host */
#define COMMAND_SECONDS	  600
#define START_SECONDS	  300
#define MIGRATION_SECONDS 600
#define CHECK_SECONDS	  300

static int fail(struct qemu *qemu, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int fail(struct qemu *qemu, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(qemu->err, sizeof(qemu->err), fmt, ap);
	va_end(ap);
	return -1;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void path_of(const struct qemu *qemu, const char *what, char path[64])
{
	snprintf(path, 64, QEMU_DIR "/%u.%s", qemu->nr, what);
}

/* Lines */

/* The next whole line; "" is none within the time, NULL is the end */
static const char *read_line(struct reader *reader, char *line, size_t size,
			     double until)
{
	struct pollfd pollfd = { .fd = reader->fd, .events = POLLIN };
	char *end;
	ssize_t n;
	double left;

	for (;;) {
		end = memchr(reader->buf, '\n', reader->len);
		if (end) {
			n = end - reader->buf;
			snprintf(line, size, "%.*s", (int)n, reader->buf);
			line[strcspn(line, "\r")] = '\0';
			reader->len -= n + 1;
			memmove(reader->buf, end + 1, reader->len);
			if (*line)
				return line;
			continue;
		}
		left = until - now_s();
		if (left <= 0 || reader->len == sizeof(reader->buf))
			return "";
		if (poll(&pollfd, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		n = read(reader->fd, reader->buf + reader->len,
			 sizeof(reader->buf) - reader->len);
		if (n <= 0)
			return NULL;
		reader->len += n;
	}
}

/* The monitor */

static void note_event(struct qemu *qemu, const cJSON *msg)
{
	const char *event = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(msg, "event"));
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(msg, "data");
	const char *status = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(data, "status"));

	if (event && status && !strcmp(event, "MIGRATION"))
		snprintf(qemu->migration, sizeof(qemu->migration), "%s",
			 status);
}

static int ended(struct qemu *qemu)
{
	char *log, *last;
	int status;

	if (qemu->pid && waitpid(qemu->pid, &status, 0) == qemu->pid) {
		qemu->pid = 0;
		qemu->status = status;
	}
	log = qemu_log(qemu);
	last = log ? log + strlen(log) : NULL;
	if (last && last - log > 300)
		last -= 300;
	else
		last = log;
	fail(qemu, "QEMU has ended (status %#x); its log: %s", qemu->status,
	     last ? last : "none");
	free(log);
	return -1;
}

/* A message that is no event; NULL with err set */
static cJSON *next_message(struct qemu *qemu, double until)
{
	static char buf[65536];
	const char *line;
	cJSON *msg;

	for (;;) {
		line = read_line(&qemu->monitor_out, buf, sizeof(buf), until);
		if (!line) {
			ended(qemu);
			return NULL;
		}
		if (!*line) {
			fail(qemu, "QEMU's monitor does not answer");
			return NULL;
		}
		msg = cJSON_Parse(line);
		if (!cJSON_HasObjectItem(msg, "event"))
			return msg;
		note_event(qemu, msg);
		cJSON_Delete(msg);
	}
}

/* Read what events there are, and more until then. */
static int poll_events(struct qemu *qemu, double until)
{
	char line[4096];
	const char *got;
	cJSON *msg;

	got = read_line(&qemu->monitor_out, line, sizeof(line), until);
	if (!got)
		return ended(qemu);
	msg = cJSON_Parse(got);
	note_event(qemu, msg);
	cJSON_Delete(msg);
	return 0;
}

int qemu_command(struct qemu *qemu, const char *name, cJSON *args, cJSON **ret)
{
	cJSON *cmd = cJSON_CreateObject(), *msg;
	const char *desc;
	char *text;
	bool sent;

	cJSON_AddStringToObject(cmd, "execute", name);
	if (args)
		cJSON_AddItemToObject(cmd, "arguments", args);
	text = cJSON_PrintUnformatted(cmd);
	cJSON_Delete(cmd);
	sent = text && dprintf(qemu->monitor, "%s\n", text) > 0;
	free(text);
	if (!sent)
		return ended(qemu);

	msg = next_message(qemu, now_s() + COMMAND_SECONDS);
	if (!msg)
		return -1;
	desc = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(msg, "error"), "desc"));
	if (desc)
		fail(qemu, "%s: %s", name, desc);
	if (ret)
		*ret = desc ? NULL : cJSON_DetachItemFromObject(msg, "return");
	cJSON_Delete(msg);
	return desc ? -1 : 0;
}

int qemu_wait_status(struct qemu *qemu, const char *status, int seconds)
{
	double until = now_s() + seconds;
	char is[32] = "";
	cJSON *ret;

	do {
		if (qemu_command(qemu, "query-status", NULL, &ret))
			return -1;
		snprintf(is, sizeof(is), "%s",
			 cJSON_GetStringValue(
				 cJSON_GetObjectItem(ret, "status")));
		cJSON_Delete(ret);
		if (!strcmp(is, status))
			return 0;
		if (poll_events(qemu, now_s() + 0.1))
			return -1;
	} while (now_s() < until);
	return fail(qemu, "the run state is %s, not %s", is, status);
}

/* The last error of a migration, as the source has it */
static void migration_error(struct qemu *qemu, char *text, size_t size)
{
	const char *desc;
	cJSON *ret;

	*text = '\0';
	if (qemu_command(qemu, "query-migrate", NULL, &ret))
		return;
	desc = cJSON_GetStringValue(cJSON_GetObjectItem(ret, "error-desc"));
	if (desc)
		snprintf(text, size, ": %s", desc);
	cJSON_Delete(ret);
}

int qemu_wait_migration(struct qemu *qemu, int seconds)
{
	double until = now_s() + seconds;
	char why[256];

	while (strcmp(qemu->migration, "completed")) {
		if (!strcmp(qemu->migration, "failed") ||
		    !strcmp(qemu->migration, "cancelled") || now_s() > until) {
			migration_error(qemu, why, sizeof(why));
			return fail(qemu,
				    "the migration is not completed, but "
				    "%s%s",
				    qemu->migration, why);
		}
		if (poll_events(qemu, until))
			return -1;
	}
	return 0;
}

int qemu_wait_exit(struct qemu *qemu, int seconds)
{
	double until = now_s() + seconds;
	char line[4096];
	const char *got;

	while ((got = read_line(&qemu->monitor_out, line, sizeof(line), until)))
		if (!*got)
			return fail(qemu, "QEMU still runs after %d s",
				    seconds);
	ended(qemu);
	return 0;
}

/* Starting and ending */

struct qemu *qemu_new(void)
{
	static unsigned int nr;
	struct qemu *qemu = calloc(1, sizeof(*qemu));

	if (!qemu)
		return NULL;
	qemu->nr = nr++;
	qemu->monitor = -1;
	qemu->serial = -1;
	qemu->monitor_out.fd = -1;
	qemu->serial_out.fd = -1;
	return qemu;
}

static const char *const own_files[] = {
	"log", "serial.in", "serial.out", "forth", "back",
};

#define NR_OWN_FILES (sizeof(own_files) / sizeof(own_files[0]))

void qemu_free(struct qemu *qemu)
{
	char path[64];
	size_t i;

	if (!qemu)
		return;
	if (qemu->pid) {
		kill(qemu->pid, SIGKILL);
		waitpid(qemu->pid, NULL, 0);
	}
	close(qemu->monitor);
	close(qemu->serial);
	close(qemu->monitor_out.fd);
	close(qemu->serial_out.fd);
	for (i = 0; i < NR_OWN_FILES; i++) {
		path_of(qemu, own_files[i], path);
		unlink(path);
	}
	free(qemu);
}

static int make_fifos(struct qemu *qemu)
{
	char path[64];
	size_t i;

	mkdir(QEMU_DIR, 0755);
	for (i = 1; i < NR_OWN_FILES; i++) {
		path_of(qemu, own_files[i], path);
		if (mkfifo(path, 0600))
			return fail(qemu, "%s: %s", path, strerror(errno));
	}
	/* For both, so that it does not wait for the other end */
	path_of(qemu, "serial.in", path);
	qemu->serial = open(path, O_RDWR | O_CLOEXEC);
	path_of(qemu, "serial.out", path);
	qemu->serial_out.fd = open(path, O_RDWR | O_CLOEXEC);
	if (qemu->serial < 0 || qemu->serial_out.fd < 0)
		return fail(qemu, "%s: %s", path, strerror(errno));
	return 0;
}

struct args {
	char *arg[96];
	size_t nr;
};

static void add(struct args *args, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add(struct args *args, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (args->nr + 1 < sizeof(args->arg) / sizeof(args->arg[0]) &&
	    vasprintf(&args->arg[args->nr], fmt, ap) >= 0)
		args->nr++;
	va_end(ap);
}

static void add_disk(struct args *args, unsigned int queues)
{
	add(args, "-blockdev");
	add(args, "driver=null-co,node-name=disk,read-zeroes=on,size=67108864");
	add(args, "-device");
	add(args,
	    "virtio-blk-pci,drive=disk,num-queues=%u,romfile=,"
	    "disable-legacy=on,vectors=%u",
	    queues, queues + 1);
}

static void add_incoming(struct args *args, const struct qemu *qemu,
			 const char *incoming)
{
	char forth[64], back[64];

	add(args, "-incoming");
	if (*incoming) {
		add(args, "%s", incoming);
		return;
	}
	path_of(qemu, "forth", forth);
	path_of(qemu, "back", back);
	add(args, "exec:%s %s", forth, back);
}

static void make_args(struct args *args, const struct qemu *qemu,
		      const struct qemu_config *config)
{
	char path[64];
	size_t i;

	path_of(qemu, "serial", path);
	add(args, "%s", config->binary);
	add(args, "-M");
	add(args, "%s,gic-version=3%s%s", config->type ? config->type : "virt",
	    config->machine ? "," : "", config->machine ? config->machine : "");
	add(args, "-accel");
	add(args, "kvm");
	add(args, "-cpu");
	add(args, "host");
	add(args, "-smp");
	add(args, "%s", config->smp);
	add(args, "-m");
	add(args, "%s", config->mem);
	add(args, "-nodefaults");
	add(args, "-display");
	add(args, "none");
	add(args, "-chardev");
	add(args, "stdio,id=monitor,signal=off");
	add(args, "-mon");
	add(args, "monitor,mode=control");
	add(args, "-chardev");
	add(args, "pipe,id=serial,path=%s", path);
	add(args, "-serial");
	add(args, "chardev:serial");
	if (!config->no_guest) {
		add(args, "-kernel");
		add(args, QEMU_GUEST_KERNEL);
		add(args, "-initrd");
		add(args, QEMU_GUEST_INITRD);
		add(args, "-append");
		/* A busy machine is no fault of the guest's. */
		add(args,
		    "console=ttyAMA0 quiet panic=-1 iomem=relaxed nowatchdog "
		    "rcupdate.rcu_cpu_stall_suppress=1 %s",
		    config->append ? config->append : "");
	}
	if (config->queues)
		add_disk(args, config->queues);
	if (config->incoming)
		add_incoming(args, qemu, config->incoming);
	if (config->paused || config->no_guest)
		add(args, "-S");
	for (i = 0; i < QEMU_MAX_ARGS && config->args[i]; i++)
		add(args, "%s", config->args[i]);
	args->arg[args->nr] = NULL;
}

static _Noreturn void exec_qemu(char **args, int in, int out, const char *log)
{
	int err = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv(args[0], args);
	dprintf(STDERR_FILENO, "%s: %s\n", args[0], strerror(errno));
	_exit(127);
}

static int spawn(struct qemu *qemu, const struct qemu_config *config)
{
	struct args args = { .nr = 0 };
	int in[2], out[2];
	char log[64];
	size_t i;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return fail(qemu, "pipe: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	path_of(qemu, "log", log);
	make_args(&args, qemu, config);
	qemu->pid = fork();
	if (!qemu->pid)
		exec_qemu(args.arg, in[0], out[1], log);
	close(in[0]);
	close(out[1]);
	qemu->monitor = in[1];
	qemu->monitor_out.fd = out[0];
	for (i = 0; i < args.nr; i++)
		free(args.arg[i]);
	return qemu->pid > 0 ? 0 : fail(qemu, "fork: %s", strerror(errno));
}

static cJSON *capability(const char *name)
{
	cJSON *args = cJSON_CreateObject();
	cJSON *one = cJSON_CreateObject();

	cJSON_AddStringToObject(one, "capability", name);
	cJSON_AddBoolToObject(one, "state", true);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(args, "capabilities"), one);
	return args;
}

int qemu_start(struct qemu *qemu, const struct qemu_config *config)
{
	cJSON *greeting;

	if (make_fifos(qemu) || spawn(qemu, config))
		return -1;
	greeting = next_message(qemu, now_s() + START_SECONDS);
	if (!greeting)
		return -1;
	cJSON_Delete(greeting);
	if (qemu_command(qemu, "qmp_capabilities", NULL, NULL))
		return -1;
	return qemu_command(qemu, "migrate-set-capabilities",
			    capability("events"), NULL);
}

char *qemu_log(const struct qemu *qemu)
{
	char path[64];

	path_of(qemu, "log", path);
	return read_text(path);
}

/* The guest */

/* The guest's line that begins with @prefix, without that */
static int guest_line(struct qemu *qemu, const char *prefix, int seconds,
		      char *answer, size_t size)
{
	double until = now_s() + seconds;
	char line[1024];
	const char *got;

	for (;;) {
		got = read_line(&qemu->serial_out, line, sizeof(line), until);
		if (!got || !*got)
			return fail(qemu, "the guest does not say '%s' in %d s",
				    prefix, seconds);
		if (!strncmp(line, prefix, strlen(prefix)))
			break;
		fprintf(stderr, "guest: %s\n", line);
		if (!strncmp(line, "failed: ", 8) ||
		    strstr(line, "Kernel panic"))
			return fail(qemu, "the guest %s", line);
	}
	snprintf(answer, size, "%s", line + strlen(prefix));
	return 0;
}

int qemu_wait_guest(struct qemu *qemu, int seconds)
{
	char answer[8];

	return guest_line(qemu, "ready", seconds, answer, sizeof(answer));
}

int qemu_guest(struct qemu *qemu, const char *name, char *answer, size_t size)
{
	char prefix[64];

	if (dprintf(qemu->serial, "%s\n", name) < 0)
		return fail(qemu, "the guest's serial port: %s",
			    strerror(errno));
	snprintf(prefix, sizeof(prefix), "%s: ", name);
	return guest_line(qemu, prefix, CHECK_SECONDS, answer, size);
}

int qemu_check(struct qemu *qemu)
{
	char answer[256];

	if (qemu_guest(qemu, "check", answer, sizeof(answer)))
		return -1;
	if (strncmp(answer, "ok", 2))
		return fail(qemu, "the guest's check: %s", answer);
	return 0;
}

/* Migration */

static int start_migration(struct qemu *qemu, const char *uri)
{
	cJSON *args = cJSON_CreateObject();
	cJSON *limits = cJSON_CreateObject();

	qemu->migration[0] = '\0';
	cJSON_AddNumberToObject(limits, "max-bandwidth", 1e12);
	if (qemu_command(qemu, "migrate-set-parameters", limits, NULL)) {
		cJSON_Delete(args);
		return -1;
	}
	cJSON_AddStringToObject(args, "uri", uri);
	return qemu_command(qemu, "migrate", args, NULL);
}

int qemu_migrate(struct qemu *qemu, struct qemu *to, const char *alter)
{
	char forth[64], back[64], uri[256];

	path_of(to, "forth", forth);
	path_of(to, "back", back);
	snprintf(uri, sizeof(uri), "exec:%s %s%s", back, forth, alter);
	if (qemu_command(qemu, "migrate-set-capabilities",
			 capability("return-path"), NULL) ||
	    start_migration(qemu, uri))
		return -1;
	return qemu_wait_migration(qemu, MIGRATION_SECONDS);
}

/* A relay that copies what comes out of the pipe @from to a file */
static pid_t start_copy(const char *from, const char *path)
{
	char command[80];
	pid_t pid;

	snprintf(command, sizeof(command), "%s -", from);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600),
		     STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return pid;
}

/*
 * Not through the URI file:, which QEMU has since 8.2. The end of a migration
 * through a command is not yet that of the command, but the copy's is that of
 * the stream.
 */
int qemu_save(struct qemu *qemu, const char *path)
{
	char forth[64], uri[96];
	int ret, status = 0;
	pid_t copy;

	path_of(qemu, "forth", forth);
	copy = start_copy(forth, path);
	if (copy < 0)
		return fail(qemu, "fork: %s", strerror(errno));
	snprintf(uri, sizeof(uri), "exec:- %s", forth);
	ret = start_migration(qemu, uri);
	if (!ret)
		ret = qemu_wait_migration(qemu, MIGRATION_SECONDS);
	if (ret)
		kill(copy, SIGKILL);
	waitpid(copy, &status, 0);
	if (!ret && status)
		return fail(qemu, "%s: the copy's status is %#x", path, status);
	return ret;
}
