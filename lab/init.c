// SPDX-License-Identifier: MIT
/*
 * PID 1 of the lab's host. Mounts what a test may want, runs the command
 * that /cmd holds (its arguments, each ended by a NUL), with the virtio
 * console as its output, writes "LAB-EXIT <status>" after it, and powers the
 * machine off. Ports of the virtio console are /dev/virtio-ports/<name>.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>

#define CMD_FILE     "/cmd"
#define CONSOLE	     "/dev/hvc0"
#define LIMIT_MODULE "/lib/vgic_limit.ko"
#define KCSAN	     "/sys/kernel/debug/kcsan"
#define KMEMLEAK     "/sys/kernel/debug/kmemleak"

/* The status of a command that has succeeded, but left memory behind */
#define LEAKED 123

#define PORTS_CLASS "/sys/class/virtio-ports"
#define PORTS_LINKS "/dev/virtio-ports"

/* The virtio console brings its ports up by itself; a slow kernel takes longer. */
#define WAIT_NS	  10000000
#define MAX_WAITS 1000

#define MAX_CMD_BYTES 65536
#define MAX_ARGS      1024

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *type;
	const char *dir;
} mounts[] = {
	{ "devtmpfs", "/dev" },
	{ "proc", "/proc" },
	{ "sysfs", "/sys" },
	{ "tmpfs", "/tmp" },
	{ "tracefs", "/sys/kernel/tracing" },
	{ "debugfs", "/sys/kernel/debug" },
	{ "cgroup2", "/sys/fs/cgroup" },
};

/* What the module takes the address of, as it is not exported */
static struct {
	const char *param;
	const char *symbol;
	unsigned long address;
} limit_params[] = {
	{ "dist", "vgic_v3_dist_uaccess", 0 },
	{ "redist", "vgic_v3_redist_uaccess", 0 },
	{ "sysregs", "vgic_v3_cpu_sysregs_uaccess", 0 },
	{ "level", "vgic_v3_line_level_info_uaccess", 0 },
};

static void mount_all(void)
{
	size_t i;

	/* A kernel without one of them is fine; a test that needs it skips. */
	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].dir, 0755);
		mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, NULL);
	}
}

static void wait_a_little(void)
{
	const struct timespec ts = { .tv_nsec = WAIT_NS };

	nanosleep(&ts, NULL);
}

static void open_console(void)
{
	struct termios tio;
	int fd, i;

	for (i = 0; i < MAX_WAITS; i++) {
		fd = open(CONSOLE, O_RDWR);
		if (fd >= 0)
			break;
		wait_a_little();
	}
	if (fd < 0)
		fd = open("/dev/console", O_RDWR);
	if (fd < 0)
		return;

	/* Output is data: no CR before each LF. */
	if (!tcgetattr(fd, &tio)) {
		cfmakeraw(&tio);
		tcsetattr(fd, TCSANOW, &tio);
	}
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);

	fd = open("/dev/null", O_RDONLY);
	if (fd > STDIN_FILENO) {
		dup2(fd, STDIN_FILENO);
		close(fd);
	}
}

/* /dev/virtio-ports/NAME for each named port, as udev would have it: how many */
static int link_ports(void)
{
	int links = 0;
	char path[300], dev[270], name[64];
	struct dirent *entry;
	DIR *dir;
	FILE *f;

	dir = opendir(PORTS_CLASS);
	if (!dir)
		return 0;
	mkdir(PORTS_LINKS, 0755);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), PORTS_CLASS "/%s/name",
			 entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%63[^/\n]", name) == 1) {
			snprintf(path, sizeof(path), PORTS_LINKS "/%s", name);
			snprintf(dev, sizeof(dev), "/dev/%s", entry->d_name);
			if (symlink(dev, path))
				fprintf(stderr, "init: %s: %s\n", path,
					strerror(errno));
			links++;
		}
		fclose(f);
	}
	closedir(dir);
	return links;
}

static void find_symbols(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long address;
	char name[256];
	size_t i;

	if (!f)
		return;
	while (fscanf(f, "%lx %*c %255s%*[^\n]", &address, name) == 2)
		for (i = 0; i < ARRAY_SIZE(limit_params); i++)
			if (!strcmp(name, limit_params[i].symbol))
				limit_params[i].address = address;
	fclose(f);
}

static void load_limit_module(void)
{
	char params[256];
	size_t i, len = 0;
	int fd;

	fd = open(LIMIT_MODULE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	find_symbols();
	for (i = 0; i < ARRAY_SIZE(limit_params); i++)
		len += snprintf(params + len, sizeof(params) - len, "%s=%#lx ",
				limit_params[i].param, limit_params[i].address);
	if (syscall(SYS_finit_module, fd, params, 0))
		fprintf(stderr, "init: " LIMIT_MODULE ": %s (%s)\n",
			strerror(errno), params);
	close(fd);
}

/*
 * A VM that is there as long as the lab is. The first VM and the last switch a
 * static key, with which the scheduler tells KVM that a vCPU's thread is switched
 * out: the kernel rewrites its code. QEMU's TCG, as of 7.2, can miss that on the
 * CPU that is translating this very code; vCPUs were then switched in and never
 * out, and a thread came back from KVM_RUN with the TPIDR_EL0 of its guest.
 */
static void keep_vm(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm >= 0)
		ioctl(kvm, KVM_CREATE_VM, 0);
}

/* The kernel's detector of data races, if it has one, is to report the VGIC's. */
static void watch_races(void)
{
	FILE *symbols = fopen("/proc/kallsyms", "r");
	int fd = open(KCSAN, O_WRONLY | O_CLOEXEC);
	char name[256], type;

	if (fd >= 0 && symbols) {
		dprintf(fd, "whitelist");
		while (fscanf(symbols, "%*x %c %255s%*[^\n]", &type, name) == 2)
			if (strchr("tT", type) && strstr(name, "vgic"))
				dprintf(fd, "!%s", name);
		dprintf(fd, "on");
	}
	if (fd >= 0)
		close(fd);
	if (symbols)
		fclose(symbols);
}

/* What the kernel's memory leak detector, if it has one, has found */
static int check_leaks(void)
{
	/* It reports nothing that is younger than 5 s. */
	const struct timespec age = { .tv_sec = 6 };
	char buf[4096];
	bool leaks = false;
	ssize_t n;
	int fd, i;

	fd = open(KMEMLEAK, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	nanosleep(&age, NULL);
	/* Twice: a pointer may have moved while it looked. */
	for (i = 0; i < 2; i++)
		if (write(fd, "scan", strlen("scan")) < 0)
			fprintf(stderr, "init: " KMEMLEAK ": %s\n",
				strerror(errno));
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		leaks = true;
		fwrite(buf, 1, n, stderr);
	}
	close(fd);
	return leaks ? LEAKED : 0;
}

static int read_cmd(char **args)
{
	static char buf[MAX_CMD_BYTES];
	ssize_t len = 0, n;
	int nr = 0, fd;
	char *p;

	fd = open(CMD_FILE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += n;
	close(fd);
	for (p = buf; p < buf + len && nr < MAX_ARGS; p += strlen(p) + 1)
		args[nr++] = p;
	args[nr] = NULL;
	return nr ? 0 : -1;
}

static int run(char **args)
{
	pid_t child, pid;
	int status;

	child = fork();
	if (!child) {
		setsid();
		execv(args[0], args);
		fprintf(stderr, "init: %s: %s\n", args[0], strerror(errno));
		_exit(127);
	}
	/* As PID 1, reap everything that the command leaves behind. */
	do {
		pid = wait(&status);
	} while (pid > 0 && pid != child);

	if (pid != child)
		return 126;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

int main(void)
{
	static char *args[MAX_ARGS + 1];
	int status = 126;
	int i;

	mount_all();
	open_console();
	for (i = 0; !link_ports() && i < MAX_WAITS; i++)
		wait_a_little();
	load_limit_module();
	keep_vm();
	watch_races();
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/tmp", 1);
	if (read_cmd(args))
		fprintf(stderr, "init: no command in " CMD_FILE "\n");
	else
		status = run(args);
	if (!status)
		status = check_leaks();

	printf("LAB-EXIT %d\n", status);
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	reboot(RB_POWER_OFF);
	return 0;
}
