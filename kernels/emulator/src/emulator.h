// CUDA C++ on a processor, as far as the kernels use it: a launch is a loop over the threads. Kernels whose threads wait for
// each other would need more than that.
#include <cmath>
#include <cstring>
#include <thread>

#define __global__
#define __device__
#define __grid_constant__

struct EmulatedIndex {
    unsigned x;
};
// Several devices run kernels at once, each on a thread of the host.
static thread_local EmulatedIndex blockIdx, blockDim, threadIdx;

static inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double __dsqrt_rn(double value) { return std::sqrt(value); }

static inline unsigned atomicAdd(unsigned *counter, unsigned more) {
    return __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

using std::fabs;

// Threads start in no order on a device: here one after the other, forwards or backwards, or every other one beside the
// rest.
enum Order { FORWARDS, BACKWARDS, BESIDE };

template <typename Kernel>
static void emulate(unsigned blocks, unsigned threads, Order order, Kernel kernel) {
    unsigned long long all = (unsigned long long)blocks * threads;
    auto run = [=](unsigned long long first, unsigned long long step) {
        blockDim.x = threads;
        for (unsigned long long started = first; started < all; started += step) {
            unsigned long long thread = order == BACKWARDS ? all - 1 - started : started;
            blockIdx.x = (unsigned)(thread / threads);
            threadIdx.x = (unsigned)(thread % threads);
            kernel();
        }
    };
    if (order != BESIDE) return run(0, 1);
    std::thread beside(run, 1, 2);
    run(0, 2);
    beside.join();
}

#define EMULATE(kernel, Args)                                                                               \
    extern "C" unsigned long long args_bytes() { return sizeof(Args); }                                     \
    extern "C" void launch(const void *args, unsigned blocks, unsigned threads, int order) {                \
        emulate(blocks, threads, (Order)order, [=] { warptape::kernel(*(const Args *)args); });             \
    }
