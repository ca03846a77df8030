// An arena that requests are served from: it is emptied after each request, and its pages are given back to the kernel at once.
//
//     arena-purge VARIANT [ROUNDS]
//
//     each    madvise(MADV_DONTNEED) on what a request used: the next one faults it in again
//     kept    its twin: the arena is emptied and its pages stay
//     free    madvise(MADV_FREE): the kernel may take them, and does not while it has enough
//     walk    as each, and every request has a part of the arena that no other one had: given back for good
//     end     as kept, with one madvise(MADV_DONTNEED) after the last request
//
// Prints one line: releases whose pages were touched again, how many pages those are, the minor faults of all rounds as the kernel
// counted them, and their CPU time in ms.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace {

constexpr size_t PAGE = 4096, REQUEST = 1024 * PAGE;

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "arena-purge: %s: %s\n", what, std::strerror(errno));
    std::exit(2);
}

double cpu_ms() {
    timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
        fail("clock_gettime");
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

long minor_faults() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

class Arena {
public:
    explicit Arena(size_t size) : size(size) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        begin = static_cast<unsigned char *>(memory);
    }

    ~Arena() { munmap(begin, size); }

    unsigned char *at(size_t offset) { return begin + offset; }

    // Gives the pages of a request back.
    __attribute__((noinline)) void purge(size_t offset, int advice) {
        if (madvise(begin + offset, REQUEST, advice) != 0)
            fail("madvise");
    }

private:
    unsigned char *begin;
    size_t size;
};

__attribute__((noinline)) void serve(unsigned char *memory, long round) {
    std::memset(memory, static_cast<int>(round), REQUEST);
}

} // namespace

int main(int count, char **words) {
    std::string variant = count > 1 ? words[1] : "";
    long rounds = count > 2 ? std::atol(words[2]) : 200;
    bool each = variant == "each", walk = variant == "walk", free = variant == "free", end = variant == "end";
    if (!(each || walk || free || end || variant == "kept") || count > 3 || rounds < 1) {
        std::fprintf(stderr, "usage: arena-purge each|kept|free|walk|end [ROUNDS]\n");
        return 2;
    }
    // A page is 4 KiB, however the machine is set.
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    Arena arena(walk ? rounds * REQUEST : REQUEST);
    long faults = minor_faults();
    double before = cpu_ms();
    for (long round = 0; round < rounds; round++) {
        size_t offset = walk ? round * REQUEST : 0;
        serve(arena.at(offset), round);
        if (each || walk || (end && round + 1 == rounds))
            arena.purge(offset, MADV_DONTNEED);
        else if (free)
            arena.purge(offset, MADV_FREE);
    }
    double used = cpu_ms() - before;
    faults = minor_faults() - faults;
    long operations = each ? rounds - 1 : 0;
    std::printf("%s rounds=%ld operations=%ld pages=%ld minflt=%ld cpu_ms=%.3f\n", variant.c_str(), rounds, operations,
                operations * static_cast<long>(REQUEST / PAGE), faults, used);
    return 0;
}
