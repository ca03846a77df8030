/* A table that is made much larger than what goes into it, and cleared as a whole: the kernel fills each of its pages with zeros, the
 * program fills them with zeros once more, and nine tenths are never used.
 *
 *     oversized-touch VARIANT [MIB]
 *
 *     kept       a vector of so many MiB (40 unless said otherwise), of which the first tenth gets values; lives until the end
 *     returned   the same, given back when it was used
 *     sized      twin of both: a vector of the tenth that gets values
 *     full       every byte gets a value
 *     sparse     every page gets one value and is zero else
 *     untouched  memory of calloc, of which nothing is touched
 *     file       a private mapping of a file of zeros, of which every page is read
 *
 * Prints one line: blocks that were cleared, the pages of them that the kernel filled, those of them that got no value; the minor
 * faults of all this as the kernel counted them; and its CPU time in ms. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr size_t page = 4096;

[[noreturn]] void fail(const char *what)
{
	std::perror(what);
	std::exit(2);
}

double cpu_ms()
{
	timespec now{};
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now))
		fail("clock_gettime");
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

long minor_faults()
{
	rusage usage{};
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* The block that is returned begins 16 bytes behind the begin of its mapping, and so ends in one page more than it has bytes. */
long pages_of(size_t bytes)
{
	return static_cast<long>((bytes + 16 + page - 1) / page);
}

__attribute__((noinline)) std::vector<char> make_table(size_t bytes)
{
	return std::vector<char>(bytes);
}

__attribute__((noinline)) void use(char *table, size_t bytes, size_t step)
{
	for (size_t at = 0; at < bytes; at += step)
		table[at] = static_cast<char>(at / step % 200 + 1);
}

long read_file(size_t bytes)
{
	char name[] = "/var/tmp/oversized-touch-XXXXXX";
	int file = mkstemp(name);
	if (file < 0 || unlink(name) || ftruncate(file, static_cast<off_t>(bytes)))
		fail("a file of zeros");
	void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (place == MAP_FAILED)
		fail("mmap");
	long sum = 0;
	for (size_t at = 0; at < bytes; at += page)
		sum += static_cast<volatile char *>(place)[at];
	close(file);
	return sum;
}

}

int main(int count, char **words)
{
	std::string variant = count > 1 ? words[1] : "";
	long mib = count > 2 ? std::atol(words[2]) : 40;
	bool is_known = false;
	for (const char *one : {"kept", "returned", "sized", "full", "sparse", "untouched", "file"})
		is_known |= variant == one;
	if (!is_known || count > 3 || mib < 1 || mib > 1024) {
		std::fprintf(stderr, "usage: oversized-touch kept|returned|sized|full|sparse|untouched|file [MIB]\n");
		return 2;
	}
	/* A page is 4 KiB, however the machine is set. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	size_t bytes = static_cast<size_t>(mib) << 20, used = bytes / 10;
	long operations = 0, pages = 0, unused = 0, zeros = 0;
	/* Never deleted: what is in it then lives until the process ends. */
	auto &table = *new std::vector<char>;
	void *untouched = nullptr;
	long faults = minor_faults();
	double before = cpu_ms();
	if (variant == "untouched") {
		untouched = std::calloc(1, bytes);
		if (!untouched)
			fail("calloc");
	} else if (variant == "file") {
		zeros = read_file(bytes);
	} else {
		size_t made = variant == "sized" ? used : bytes;
		table = make_table(made);
		bool is_full = variant == "full" || variant == "sparse";
		use(table.data(), is_full ? bytes : used, variant == "sparse" ? page : 1);
		operations = 1;
		pages = pages_of(made);
		unused = pages - pages_of(is_full || made == used ? made : used);
	}
	if (variant == "returned")
		std::vector<char>().swap(table);
	double taken = cpu_ms() - before;
	faults = minor_faults() - faults;
	std::printf("%s operations=%ld pages=%ld unused=%ld minflt=%ld cpu_ms=%.3f sum=%ld\n", variant.c_str(), operations, pages, unused,
		    faults, taken, zeros + (table.empty() ? 0 : table[0]));
	std::free(untouched);
}
