// SPDX-License-Identifier: MIT
/*
 * PID 1 of the guest that is migrated. Brings CPUs online (online=N of the
 * kernel's command line, spread evenly), loads the virtio modules, and has a
 * thread on each CPU sleep and read from the disk's queue of that CPU, for
 * ever. With /usr/bin/redis-server there, redis-benchmark sets keys, too.
 *
 * It answers commands on the serial port, each by one line:
 *   check       does every queue's interrupt, every CPU's timer and every
 *               thread still advance, and the load, and is the log clean?
 *   gic         hashes of the distributor's state, see print_gic()
 *   edge, level makes an unused interrupt of the kernel that
 *   config      says what it is now
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define SERIAL	     "/dev/ttyAMA0"
#define DISK	     "/dev/vda"
#define REDIS_SOCKET "/tmp/redis"
#define REDIS_SERVER "/usr/bin/redis-server"
#define REDIS_LOG    "/tmp/redis.log"

#define MAX_CPUS   512
#define MAX_QUEUES 512

#define BLOCK_BYTES 4096

/* Where QEMU's virt machine has the distributor, and what of it is free */
#define GICD_BASE	0x08000000
#define GICD_BYTES	0x10000
#define GICD_ISENABLER	0x100
#define GICD_IPRIORITYR 0x400
#define GICD_ICFGR	0xc00
#define GICD_IROUTER	0x6000
#define FIRST_SPI	32
#define END_SPI		288
#define FIRST_FREE_SPI	160 /* platform-bus devices, of which there is none */
#define END_FREE_SPI	208
#define CONFIG_SPI	200

/* QEMU up to 10.0 loses the affinity of interrupts from this one on. */
#define FIRST_LOST_SPI 145

static struct {
	pthread_t thread;
	bool online;
	atomic_ulong rounds;
} cpus[MAX_CPUS];

static int nr_cpus;
static int period_ms = 20;
static int serial;
static int kmsg;
static char *gicd;
static bool has_redis;

static void answer(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void answer(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(serial, line, len) < 0)
		abort();
}

static _Noreturn void fatal(const char *what)
{
	answer("failed: %s: %s", what, strerror(errno));
	for (;;)
		pause();
}

static void sleep_ms(long ms)
{
	const struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Returns the bytes read, all of a small file's, with a NUL after them. */
static ssize_t read_all(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = 0, n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buf[len] = '\0';
	return len;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fatal(path);
	close(fd);
}

static int option(const char *name, int otherwise)
{
	char line[2048], *at;

	if (read_all("/proc/cmdline", line, sizeof(line)) < 0)
		fatal("/proc/cmdline");
	at = strstr(line, name);
	return at ? atoi(at + strlen(name)) : otherwise;
}

/* Setting up */

static void load_modules(void)
{
	static const char *const modules[] = {
		"virtio_ring",		 "virtio",     "virtio_pci_legacy_dev",
		"virtio_pci_modern_dev", "virtio_pci", "virtio_blk",
	};
	char path[64];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		snprintf(path, sizeof(path), "/lib/%s.ko", modules[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			fatal(path);
		close(fd);
	}
}

static void bring_up_cpus(void)
{
	int wanted, cpu, i;
	char path[64];

	nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	wanted = option("online=", nr_cpus);
	cpus[0].online = true;
	for (i = 1; i < wanted; i++) {
		cpu = (long)i * nr_cpus / wanted;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/online", cpu);
		write_file(path, "1");
		cpus[cpu].online = true;
		if (i % 10 == 0)
			answer("%d of %d CPUs are online", i, wanted);
	}
}

static void *cpu_thread(void *arg)
{
	int cpu = (intptr_t)arg;
	void *block;
	cpu_set_t set;
	int fd;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fatal("sched_setaffinity");
	fd = open(DISK, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&block, BLOCK_BYTES, BLOCK_BYTES))
		fatal(DISK);
	for (;;) {
		sleep_ms(period_ms);
		if (pread(fd, block, BLOCK_BYTES, cpu * BLOCK_BYTES) !=
		    BLOCK_BYTES)
			fatal("reading " DISK);
		cpus[cpu].rounds++;
	}
}

static void start_threads(void)
{
	pthread_attr_t attr;
	int cpu, i;

	for (i = 0; i < 500 && access(DISK, R_OK); i++)
		sleep_ms(20);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		if (cpus[cpu].online &&
		    pthread_create(&cpus[cpu].thread, &attr, cpu_thread,
				   (void *)(intptr_t)cpu))
			fatal("pthread_create");
}

static pid_t spawn(const char *const *args)
{
	pid_t pid = fork();
	int log;

	if (pid)
		return pid;
	log = open(REDIS_LOG, O_RDWR | O_CREAT | O_TRUNC, 0600);
	dup2(log, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execv(args[0], (char **)args);
	_exit(127);
}

static int redis_connect(void)
{
	const struct sockaddr_un addr = {
		.sun_family = AF_UNIX,
		.sun_path = REDIS_SOCKET,
	};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

static void start_redis(void)
{
	static const char *const server[] = {
		REDIS_SERVER,	REDIS_SOCKET ".conf", "--port", "0",
		"--unixsocket", REDIS_SOCKET,	      "--save", "",
		NULL,
	};
	static const char *const benchmark[] = {
		"/usr/bin/redis-benchmark",
		"-s",
		REDIS_SOCKET,
		"-t",
		"set",
		"-n",
		"2000000000",
		"-r",
		"100000",
		"-c",
		"50",
		"-q",
		NULL,
	};
	char log[400];
	pid_t pid;
	int fd, i;

	has_redis = !access(REDIS_SERVER, X_OK);
	if (!has_redis)
		return;
	close(open(REDIS_SOCKET ".conf", O_CREAT | O_WRONLY, 0600));
	pid = spawn(server);
	for (i = 0; (fd = redis_connect()) < 0; i++) {
		if (i == 30000 || waitpid(pid, NULL, WNOHANG) == pid) {
			read_all(REDIS_LOG, log, sizeof(log));
			answer("failed: redis-server does not answer: %s", log);
			pause();
		}
		sleep_ms(20);
	}
	close(fd);
	spawn(benchmark);
}

/* How many commands redis has processed, or -1 */
static long redis_commands(void)
{
	static const char query[] = "INFO stats\r\n";
	static const char key[] = "total_commands_processed:";
	int fd = redis_connect();
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char buf[8192], *at = NULL;
	ssize_t len = 0, n;

	if (fd < 0 || write(fd, query, strlen(query)) < 0)
		return -1;
	while (!at && poll(&poll_fd, 1, 10000) > 0) {
		n = read(fd, buf + len, sizeof(buf) - 1 - len);
		if (n <= 0)
			break;
		len += n;
		buf[len] = '\0';
		at = strstr(buf, key);
		if (at && !strchr(at, '\r'))
			at = NULL;
	}
	close(fd);
	return at ? atol(at + strlen(key)) : -1;
}

/*
 * Accesses to a device that KVM emulates: it cannot decode one that updates
 * its base register, of which a compiler knows nothing.
 */
static uint32_t gicd_read(uint32_t offset)
{
	uint32_t val;

	asm volatile("ldr %w0, [%1]" : "=r"(val) : "r"(gicd + offset));
	return val;
}

static void gicd_write(uint32_t offset, uint32_t val)
{
	asm volatile("str %w0, [%1]" : : "r"(val), "r"(gicd + offset));
}

/* Interrupts that are never enabled, each with a state of its own */
static void configure_free_spis(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	int spi, cpu;

	gicd = mmap(NULL, GICD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    GICD_BASE);
	if (gicd == MAP_FAILED)
		fatal("mapping the distributor");
	close(fd);
	for (spi = FIRST_FREE_SPI; spi < END_FREE_SPI; spi++) {
		cpu = spi % (nr_cpus < 16 ? nr_cpus : 16);
		gicd_write(GICD_IROUTER + 8 * spi, cpu);
		if (spi % 4 == 0)
			gicd_write(GICD_IPRIORITYR + spi, spi * 0x08182838);
	}
}

/* The check */

struct counts {
	long queues[MAX_QUEUES];
	long timers[MAX_CPUS];
	int nr_queues;
};

/*
 * A line of /proc/interrupts is a name, a count for each CPU that is online,
 * and what it is.
 */
static void count_interrupts(struct counts *counts)
{
	static char text[4 << 20];
	char *line, *next, *at, *end;
	long sum, count;
	bool timer;
	int cpu;

	memset(counts, 0, sizeof(*counts));
	if (read_all("/proc/interrupts", text, sizeof(text)) < 0)
		fatal("/proc/interrupts");
	for (line = strchr(text, '\n'); line; line = next) {
		next = strchr(++line, '\n');
		if (next)
			*next = '\0';
		timer = strstr(line, "arch_timer");
		if (!timer && !strstr(line, "-req."))
			continue;
		at = strchr(line, ':') + 1;
		sum = 0;
		for (cpu = 0; cpu < nr_cpus; cpu++) {
			if (!cpus[cpu].online)
				continue;
			count = strtol(at, &end, 10);
			at = end;
			sum += count;
			if (timer)
				counts->timers[cpu] += count;
		}
		if (!timer && counts->nr_queues < MAX_QUEUES)
			counts->queues[counts->nr_queues++] = sum;
	}
}

/* Is there a thread on a CPU of this queue? */
static bool is_used(int queue)
{
	char path[64], list[8192], *at, *end;
	long cpu;

	snprintf(path, sizeof(path), "/sys/block/vda/mq/%d/cpu_list", queue);
	if (read_all(path, list, sizeof(list)) < 0)
		fatal(path);
	for (at = list; *at; at = *end ? end + 1 : end) {
		cpu = strtol(at, &end, 10);
		if (end == at)
			break;
		if (cpu < nr_cpus && cpus[cpu].online)
			return true;
	}
	return false;
}

/* The first thing of which the log complains, since the last time; or NULL */
static const char *complaint(void)
{
	static const char *const signs[] = {
		"WARNING:",	"BUG:",
		"Oops",		"Call trace",
		"I/O error",	"blocked for more than",
		"nobody cared", "ITS queue timeout",
	};
	static char record[8192];
	const char *found = NULL;
	ssize_t len;
	size_t i;

	while ((len = read(kmsg, record, sizeof(record) - 1)) > 0 ||
	       errno == EPIPE) {
		if (len <= 0)
			continue;
		record[len] = '\0';
		for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
			if (!found && strstr(record, signs[i]))
				found = strdup(strchr(record, ';'));
	}
	return found;
}

/* Wait until every thread has been round twice: which has not? */
static int wait_for_threads(void)
{
	unsigned long before[MAX_CPUS];
	double end = now_s() + 30;
	int cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++)
		before[cpu] = cpus[cpu].rounds;
	for (cpu = 0; cpu < nr_cpus; cpu++)
		while (cpus[cpu].online && cpus[cpu].rounds < before[cpu] + 2) {
			if (now_s() > end)
				return cpu;
			sleep_ms(5);
		}
	return -1;
}

static void check(void)
{
	static struct counts before, after;
	long commands = 0, more = 0;
	const char *log;
	int nr_online = 0, nr_used = 0;
	int cpu, queue;

	if (has_redis)
		commands = redis_commands();
	count_interrupts(&before);
	cpu = wait_for_threads();
	if (cpu >= 0) {
		answer("check: the thread of CPU %d does not advance", cpu);
		return;
	}
	count_interrupts(&after);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		if (!cpus[cpu].online)
			continue;
		nr_online++;
		if (after.timers[cpu] <= before.timers[cpu]) {
			answer("check: no timer interrupt on CPU %d", cpu);
			return;
		}
	}
	for (queue = 0; queue < after.nr_queues; queue++) {
		if (!is_used(queue))
			continue;
		nr_used++;
		if (after.queues[queue] <= before.queues[queue]) {
			answer("check: no interrupt of queue %d", queue);
			return;
		}
	}
	if (has_redis) {
		more = redis_commands();
		if (commands < 0 || more <= commands + 1) {
			answer("check: redis does not advance: %ld, %ld",
			       commands, more);
			return;
		}
	}
	log = complaint();
	if (log) {
		answer("check: the log has %.200s", log);
		return;
	}
	answer("check: ok: %d CPUs, %d queues, %ld sets", nr_online, nr_used,
	       more);
}

/* The distributor */

static uint64_t hash(uint64_t seed, uint32_t offset, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < bytes; i += 4)
		seed = (seed ^ gicd_read(offset + i)) * 0x100000001b3ULL;
	return seed;
}

/* Of what does not change by itself: what every QEMU moves, and the rest */
static void print_gic(void)
{
	uint64_t kept = 0xcbf29ce484222325ULL, lost = kept;

	kept = hash(kept, GICD_ISENABLER + FIRST_SPI / 8,
		    (END_SPI - FIRST_SPI) / 8);
	kept = hash(kept, GICD_ICFGR + FIRST_SPI / 4,
		    (END_SPI - FIRST_SPI) / 4);
	kept = hash(kept, GICD_IPRIORITYR + FIRST_SPI, END_SPI - FIRST_SPI);
	kept = hash(kept, GICD_IROUTER + 8 * FIRST_SPI,
		    8 * (FIRST_LOST_SPI - FIRST_SPI));
	lost = hash(lost, GICD_IROUTER + 8 * FIRST_LOST_SPI,
		    8 * (END_SPI - FIRST_LOST_SPI));
	answer("gic: %016llx %016llx", (unsigned long long)kept,
	       (unsigned long long)lost);
}

#define CONFIG_WORD (GICD_ICFGR + CONFIG_SPI / 16 * 4)
#define CONFIG_BIT  (2U << CONFIG_SPI % 16 * 2)

static void run_command(const char *line)
{
	if (!strcmp(line, "check")) {
		check();
	} else if (!strcmp(line, "gic")) {
		print_gic();
	} else if (!strcmp(line, "edge")) {
		gicd_write(CONFIG_WORD, gicd_read(CONFIG_WORD) | CONFIG_BIT);
		answer("edge: done");
	} else if (!strcmp(line, "level")) {
		gicd_write(CONFIG_WORD, gicd_read(CONFIG_WORD) & ~CONFIG_BIT);
		answer("level: done");
	} else if (!strcmp(line, "config")) {
		answer("config: %s",
		       gicd_read(CONFIG_WORD) & CONFIG_BIT ? "edge" : "level");
	} else {
		answer("failed: no command '%s'", line);
	}
}

static void mount_all(void)
{
	mkdir("/dev", 0755);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/tmp", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
}

int main(void)
{
	struct termios tio;
	char line[128];
	FILE *in;

	mount_all();
	serial = open(SERIAL, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (serial < 0)
		return 1;
	tcgetattr(serial, &tio);
	cfmakeraw(&tio);
	tcsetattr(serial, TCSANOW, &tio);

	period_ms = option("period=", period_ms);
	bring_up_cpus();
	load_modules();
	configure_free_spis();
	start_threads();
	start_redis();

	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	in = fdopen(dup(serial), "r");
	answer("ready");
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line)
			run_command(line);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	fatal("serial port");
}
