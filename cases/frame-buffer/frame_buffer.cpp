// A video call's way with a frame: a helper process (the camera) puts it into shared memory 30 times a second, one thread copies
// it into a block that it allocates, another thread copies it back out, for the viewer, and frees the block.
//
//     frame-buffer VARIANT [FRAMES [PER_SECOND]]
//
//     each       a block for every frame, mapped and unmapped every time
//     kept       its twin: the same copies through one block that is kept
//     in-place   the frame is used where it lies: no block, no copies
//     recycled   a block for every frame, which malloc keeps and gives out again
//     once       as kept, with one large block at start
//     small      every frame in rows of 1280 bytes, allocated one by one: glibc gives the top of the thread's arena back each time
//     as-set     a block for every frame, from malloc as it is set from outside: with
//                GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 it is mapped and unmapped every time
//
// Prints one line: what it did, and the CPU time of this process and of the helper in ms. The helper checks every frame that
// comes back; the exit code is 1 where one does not.

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <malloc.h>
#include <mutex>
#include <semaphore.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

// 1280 x 720 pixels of 12 bits (NV12): 1.32 MiB.
constexpr size_t WIDTH = 1280, ROWS = 720 * 3 / 2, FRAME = WIDTH * ROWS;
// One block that costs as much as many frames.
constexpr size_t LARGE = size_t{64} << 20;

enum class Variant { Each, Kept, InPlace, Recycled, Once, Small, AsSet };

// What both processes see.
struct Shared {
    unsigned char captured[FRAME];
    unsigned char shown[FRAME];
    sem_t ready, done;
};

// A frame on its way from thread to thread.
struct Block {
    unsigned char *pixels = nullptr;
    std::vector<unsigned char *> rows;
};

Variant variant;
long frames = 300, per_second = 30;
Shared *shared;
unsigned char *kept_block;

std::mutex mutex;
std::condition_variable changed;
Block waiting;
bool is_waiting = false;

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "frame-buffer: %s: %s\n", what, std::strerror(errno));
    std::exit(2);
}

void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        if (errno != EINTR)
            fail("sem_wait");
}

double cpu_ms() {
    timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
        fail("clock_gettime");
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

// The helper: makes frames in time, and looks at what becomes of them.
int camera() {
    int status = 0;
    timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long frame = 0; frame < frames; frame++) {
        next.tv_nsec += 1000000000 / per_second;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr) == EINTR) {
        }
        std::memset(shared->captured, static_cast<int>(frame * 7 + 1), FRAME);
        sem_post(&shared->ready);
        wait_for(&shared->done);
        if (variant != Variant::InPlace && std::memcmp(shared->shown, shared->captured, FRAME) != 0)
            status = 1;
    }
    return status;
}

__attribute__((noinline)) unsigned char *copy_frame(const unsigned char *from) {
    auto *block = static_cast<unsigned char *>(std::malloc(FRAME));
    if (!block)
        fail("malloc");
    std::memcpy(block, from, FRAME);
    return block;
}

__attribute__((noinline)) std::vector<unsigned char *> copy_rows(const unsigned char *from) {
    std::vector<unsigned char *> rows;
    for (size_t row = 0; row < ROWS; row++) {
        rows.push_back(static_cast<unsigned char *>(std::malloc(WIDTH)));
        std::memcpy(rows.back(), from + row * WIDTH, WIDTH);
    }
    return rows;
}

__attribute__((noinline)) void deliver(Block &block) {
    for (size_t row = 0; row < block.rows.size(); row++) {
        std::memcpy(shared->shown + row * WIDTH, block.rows[row], WIDTH);
        std::free(block.rows[row]);
    }
    if (!block.pixels)
        return;
    std::memcpy(shared->shown, block.pixels, FRAME);
    if (block.pixels != kept_block)
        std::free(block.pixels);
}

// First thread: takes each frame out of shared memory.
void capture() {
    for (long frame = 0; frame < frames; frame++) {
        wait_for(&shared->ready);
        Block block;
        if (variant == Variant::Small)
            block.rows = copy_rows(shared->captured);
        else if (kept_block)
            block.pixels = static_cast<unsigned char *>(std::memcpy(kept_block, shared->captured, FRAME));
        else if (variant != Variant::InPlace)
            block.pixels = copy_frame(shared->captured);
        std::lock_guard lock(mutex);
        waiting = std::move(block);
        is_waiting = true;
        changed.notify_one();
    }
}

// Second thread: gives each frame to the viewer. There is one frame at a time: the camera waits for it.
void view() {
    for (long frame = 0; frame < frames; frame++) {
        Block block;
        {
            std::unique_lock lock(mutex);
            changed.wait(lock, [] { return is_waiting; });
            block = std::move(waiting);
            is_waiting = false;
        }
        deliver(block);
        sem_post(&shared->done);
    }
}

bool choose(const std::string &name) {
    const char *names[] = {"each", "kept", "in-place", "recycled", "once", "small", "as-set"};
    for (int number = 0; number < 7; number++) {
        variant = static_cast<Variant>(number);
        if (name == names[number])
            return true;
    }
    return false;
}

// glibc's default learns from the first block that is freed and recycles the others. Allocators of other systems do not, nor does
// glibc where a program sets the threshold, as some do to give memory back at once.
void set_allocator() {
    bool is_set = true;
    if (variant == Variant::Each)
        is_set = mallopt(M_MMAP_THRESHOLD, 128 << 10);
    else if (variant == Variant::Recycled)
        is_set = mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, 256 << 20);
    if (!is_set)
        fail("mallopt");
}

__attribute__((noinline)) void prepare() {
    if (variant == Variant::Kept || variant == Variant::Once)
        kept_block = static_cast<unsigned char *>(std::malloc(FRAME));
    if (variant == Variant::Once) {
        // Kept until the end.
        static unsigned char *large = static_cast<unsigned char *>(std::malloc(LARGE));
        std::memset(large, 1, LARGE);
    }
}

} // namespace

int main(int count, char **words) {
    if (count < 2 || count > 4 || !choose(words[1]) || (count > 2 && (frames = std::atol(words[2])) < 1) ||
        (count > 3 && (per_second = std::atol(words[3])) < 1)) {
        std::fprintf(stderr, "usage: frame-buffer each|kept|in-place|recycled|once|small|as-set [FRAMES [PER_SECOND]]\n");
        return 2;
    }
    // A page is 4 KiB, however the machine is set.
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    set_allocator();
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    shared = static_cast<Shared *>(memory);
    if (sem_init(&shared->ready, 1, 0) != 0 || sem_init(&shared->done, 1, 0) != 0)
        fail("sem_init");
    pid_t helper = fork();
    if (helper < 0)
        fail("fork");
    if (helper == 0) {
        // Without the other process nobody waits for frames.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(camera());
    }
    prepare();
    double before = cpu_ms();
    std::thread first(capture), second(view);
    first.join();
    second.join();
    double used = cpu_ms() - before;
    int status;
    rusage usage;
    if (wait4(helper, &status, 0, &usage) != helper)
        fail("wait4");
    double helper_ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
    std::printf("%s frames=%ld bytes=%zu cpu_ms=%.3f helper_ms=%.3f\n", words[1], frames, FRAME, used, helper_ms);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
