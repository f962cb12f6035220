// CUDA C++ on a processor, as far as the kernels use it: a launch is a loop over the threads. Kernels whose threads wait for
// each other would need more than that.
#include <cmath>
#include <cstring>

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
    unsigned before = *counter;
    *counter += more;
    return before;
}

using std::fabs;

// Threads start in no order on a device: here forwards or backwards.
template <typename Kernel>
static void emulate(unsigned blocks, unsigned threads, bool backwards, Kernel kernel) {
    blockDim.x = threads;
    unsigned long long all = (unsigned long long)blocks * threads;
    for (unsigned long long started = 0; started < all; ++started) {
        unsigned long long thread = backwards ? all - 1 - started : started;
        blockIdx.x = (unsigned)(thread / threads);
        threadIdx.x = (unsigned)(thread % threads);
        kernel();
    }
}

#define EMULATE(kernel, Args)                                                                               \
    extern "C" unsigned long long args_bytes() { return sizeof(Args); }                                     \
    extern "C" void launch(const void *args, unsigned blocks, unsigned threads, int backwards) {            \
        emulate(blocks, threads, backwards != 0, [=] { warptape::kernel(*(const Args *)args); });           \
    }
