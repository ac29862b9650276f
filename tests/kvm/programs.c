// SPDX-License-Identifier: MIT
/*
 * The programs: the example VMM, and what of the command needs a host
 *
 * lab: --smp 2 --file build/arm64/examples/vmm --file build/arm64/swiftgic
 */
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include <swiftgic.h>

#include "harness.h"

#define MAX_ARGS     12
#define SNAPSHOT     "/tmp/snapshot"
#define OTHER	     "/tmp/other"
#define SMALL_FS     "/tmp/small"
#define SMALL_BYTES  "size=16k"
#define MAX_SNAPSHOT (1 << 20)

/* What the last program has printed, to either stream */
static char output[8192];

static void read_output(int fd)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, output + len, sizeof(output) - 1 - len)) > 0)
		len += n;
	output[len] = '\0';
}

/* Run a command line, split at its spaces; its exit status */
static int run(const char *line)
{
	posix_spawn_file_actions_t actions;
	char copy[256], *args[MAX_ARGS + 1] = { 0 };
	int pipe_fds[2], status, err;
	size_t n = 0;
	char *word;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok(copy, " "); word && n < MAX_ARGS;
	     word = strtok(NULL, " "))
		args[n++] = word;

	REQUIRE(!pipe(pipe_fds), "no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
	posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
	err = posix_spawn(&pid, args[0], &actions, NULL, args, NULL);
	posix_spawn_file_actions_destroy(&actions);
	close(pipe_fds[1]);
	REQUIRE(!err, "%s: %s", args[0], strerror(err));
	read_output(pipe_fds[0]);
	close(pipe_fds[0]);
	REQUIRE(waitpid(pid, &status, 0) == pid, "%s is not there", args[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* One diagnostic a line of output */
static void show_output(void)
{
	char *line = strtok(output, "\n");

	for (; line; line = strtok(NULL, "\n"))
		test_diag("%s", line);
}

static void expect(const char *line, int want)
{
	int status = run(line);

	if (!CHECK(status == want, "%s: exit status %d, not %d", line, status,
		   want))
		show_output();
}

static void expect_output(const char *text)
{
	CHECK(strstr(output, text), "no '%s' in '%s'", text, output);
}

static size_t read_file(const char *path, char *buf)
{
	FILE *f = fopen(path, "r");
	size_t n;

	REQUIRE(f, "%s: %s", path, strerror(errno));
	n = fread(buf, 1, MAX_SNAPSHOT, f);
	fclose(f);
	return n;
}

static void check_same_files(const char *a, const char *b)
{
	static char bytes_a[MAX_SNAPSHOT], bytes_b[MAX_SNAPSHOT];
	size_t size_a = read_file(a, bytes_a), size_b = read_file(b, bytes_b);

	CHECK(size_a && size_a == size_b && !memcmp(bytes_a, bytes_b, size_a),
	      "%s has %zu bytes, %s other %zu", a, size_a, b, size_b);
}

static void example(void)
{
	unsigned int ticks, lpis, msis, ticks_later, lpis_later;

	expect("/bin/vmm save " SNAPSHOT, 0);
	REQUIRE(sscanf(output,
		       "at the save: %u timer interrupts, %u LPIs of %u MSIs",
		       &ticks, &lpis, &msis) == 3,
		"'%s'", output);
	CHECK(lpis + 1 == msis, "%u of %u LPIs are pending", msis - lpis, msis);

	expect("/bin/vmm restore " SNAPSHOT, 0);
	REQUIRE(sscanf(output,
		       "restored: %u timer interrupts, %u LPIs of %u MSIs",
		       &ticks_later, &lpis_later, &msis) == 3,
		"'%s'", output);
	CHECK(ticks_later > ticks, "%u timer interrupts, then %u", ticks,
	      ticks_later);
	CHECK(lpis_later == lpis + 1, "%u LPIs, then %u", lpis, lpis_later);
	show_output();
}

static void example_has_errors(void)
{
	expect("/bin/vmm", 2);
	expect("/bin/vmm restore /no/such/file", 1);
	expect_output("/no/such/file: No such file or directory");
	expect("/bin/vmm restore /bin/vmm", 1);
	expect_output("no file of vmm's");
}

static void probe_finds_all(void)
{
	cJSON *root;

	expect("/bin/swiftgic probe", 0);
	expect_output("batch call  yes, up to 4096 registers");
	expect("/bin/swiftgic probe --json", 0);
	root = cJSON_Parse(output);
	REQUIRE(root, "no JSON: '%s'", output);
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(root, "kvm")), "no KVM");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(root, "vgicv3")), "no VGICv3");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(root, "its")), "no ITS");
	CHECK(cJSON_IsNull(cJSON_GetObjectItem(root, "advice")), "advice");
	cJSON_Delete(root);
}

static void probe_has_advice(void)
{
	REQUIRE(!rename("/dev/kvm", "/dev/kvm.away"), "no /dev/kvm");
	expect("/bin/swiftgic probe", 3);
	rename("/dev/kvm.away", "/dev/kvm");
	expect_output("There is no KVM");
}

static void same_bytes(void)
{
	expect("/bin/swiftgic save --vcpus 40 --seed 7 " SNAPSHOT, 0);
	expect_output("batched");
	expect("/bin/swiftgic save --vcpus 40 --seed 7 --no-batch " OTHER, 0);
	expect_output("one by one");
	check_same_files(SNAPSHOT, OTHER);
}

static void restores(void)
{
	expect("/bin/swiftgic restore " SNAPSHOT, 0);
	expect_output("batched");
	expect_output("saved again, it is the same");
	expect("/bin/swiftgic restore --no-batch " SNAPSHOT, 0);
	expect_output("one by one");
	expect_output("saved again, it is the same");
}

static void refuses_corrupt(void)
{
	int fd = open(SNAPSHOT, O_WRONLY);

	REQUIRE(fd >= 0 && pwrite(fd, "x", 1, 200) == 1, "cannot spoil it");
	close(fd);
	expect("/bin/swiftgic restore " SNAPSHOT, 1);
	expect_output(SNAPSHOT ": ");
}

static unsigned int nr_files(const char *path)
{
	unsigned int n = 0;
	DIR *dir = opendir(path);

	REQUIRE(dir, "%s: %s", path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* Neither half of a new file, nor half of the one that was there */
static void whole_or_not_there(void)
{
	test_need_lock_depth(160);
	mkdir(SMALL_FS, 0755);
	if (mount("tmpfs", SMALL_FS, "tmpfs", 0, SMALL_BYTES))
		test_skip("no small file system: %s", strerror(errno));

	expect("/bin/swiftgic save --vcpus 1 " SMALL_FS "/file", 0);
	CHECK(!rename(SMALL_FS "/file", SMALL_FS "/kept"), "no file");
	expect("/bin/swiftgic save --vcpus 1 " OTHER, 0);
	expect("/bin/swiftgic save --vcpus 160 " SMALL_FS "/file", 1);
	expect_output("No space left on device");
	expect("/bin/swiftgic save --vcpus 160 " SMALL_FS "/kept", 1);
	CHECK(nr_files(SMALL_FS) == 1, "%u files", nr_files(SMALL_FS));
	check_same_files(SMALL_FS "/kept", OTHER);
	umount(SMALL_FS);

	expect("/bin/swiftgic save --vcpus 1 /dev/full", 1);
	expect_output("No space left on device");
}

/* A VM's tables are in its memory, which a snapshot does not have. */
static void refuses_lpis(void)
{
	struct vm *vm = plain_vm(2);
	const struct sgic_device_config config = {
		.size = sizeof(config),
		.gic_fd = vm->gic_fd,
		.its_fds = &vm->its_fd,
		.nr_its = 1,
		.mpidrs = vm->mpidrs,
		.nr_vcpus = 2,
	};
	struct sgic_state *state = sgic_state_new();
	struct sgic_device *device;
	struct sgic_error error;
	int fd = open(SNAPSHOT, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	REQUIRE(state && !sgic_device_new(&config, &device, &error), "%s",
		error.message);
	CHECK(!sgic_device_save(device, state, &error) &&
		      !sgic_state_write(state, fd, &error),
	      "%s", error.message);
	close(fd);
	sgic_device_free(device);
	sgic_state_free(state);
	expect("/bin/swiftgic restore " SNAPSHOT, 3);
	expect_output("guest memory");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "the example's guest goes on in another process", example },
		{ "the example says what is wrong with its file",
		  example_has_errors },
		{ "swiftgic probe finds all there is", probe_finds_all },
		{ "without KVM it says what to do", probe_has_advice },
		{ "swiftgic save writes the same batched and one by one",
		  same_bytes },
		{ "swiftgic restore does both ways, and reads the same back",
		  restores },
		{ "a corrupt file is refused by name", refuses_corrupt },
		{ "a file is whole or as it was", whole_or_not_there },
		{ "a snapshot without its guest memory is refused",
		  refuses_lpis },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
