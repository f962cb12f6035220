// CUDA C++ on a processor, as far as kernels use it.
//
// A launch is a loop over blocks, a block a loop over its warps, a warp a loop over its threads. A thread that waits for
// others leaves its stack, which is a fibre's, and another fibre goes on with the next thread: so a kernel whose threads
// do not wait runs on one. A warp goes as far as it can before the next one begins, and threads are taken in an order that
// the launch names: what holds only while threads keep step does not hold here.
//
//   __syncthreads                         waits for all threads of the block
//   __syncwarp, __shfl_…, __ballot_sync   wait for those of the warp that the mask names, who must ask for the same
//
// To wait for what never comes is a failure: `launch` gives a text that says who waits for whom.
#include <cmath>
#include <cstring>
#include <memory>
#include <setjmp.h>
#include <string>
#include <thread>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __grid_constant__
// A block stays on one thread of the host.
#define __shared__ static thread_local

struct EmulatedIndex {
    unsigned x;
};
// Several devices run kernels at once, each on a thread of the host.
static thread_local EmulatedIndex gridDim, blockIdx, blockDim, threadIdx;

namespace emulator {

static const unsigned WARP = 32;

enum Order { FORWARDS, BACKWARDS, INTERLEAVED, BESIDE };

// What is taken at a position, of so many.
static inline unsigned at(Order order, unsigned position, unsigned count) {
    if (order == BACKWARDS) return count - 1 - position;
    unsigned even = (count + 1) / 2;
    if (order == INTERLEAVED) return position < even ? 2 * position : 2 * (position - even) + 1;
    return position;
}

// A stack, entered and left by jumps once it has been made: without calls of the system.
class Fibre {
    static const std::size_t STACK_BYTES = 64 * 1024;

    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    jmp_buf inside, outside;

    static void begin();

  public:
    Fibre();
    Fibre(const Fibre &) = delete;

    // Goes on inside until that leaves.
    __attribute__((noinline)) void enter() {
        if (!_setjmp(outside)) _longjmp(inside, 1);
    }

    __attribute__((noinline)) void leave() {
        if (!_setjmp(inside)) _longjmp(outside, 1);
    }
};

enum State { READY, WAITS, ENDED };

struct Thread {
    State state;
    const char *call;          // What it waits at.
    unsigned mask;             // Which threads of its warp it waits for; none: all of the block.
    unsigned long long gives;  // What it has for them.
    unsigned long long given;  // What it had for them when they met.
    std::unique_ptr<Fibre> fibre;  // Where it waits.
};

// Blocks at work on a thread of the host, one after the other.
class Blocks {
    void (*const kernel)(const void *args);
    const void *const args;
    const Order order;
    std::vector<Thread> threads;
    unsigned first = 0;     // Thread of the warp at work.
    unsigned position = 0;  // At which its next fresh thread is.
    std::size_t ended = 0;  // Threads of the block.
    Thread *running = nullptr;
    std::unique_ptr<Fibre> fibre;  // Where it runs.

    void run_warp(unsigned warp, bool fresh);
    void resume();
    bool meet();
    bool meets(unsigned lane) const;
    std::string stuck() const;

  public:
    std::string misuse;

    Blocks(void (*kernel)(const void *), const void *args, Order order, unsigned threads)
        : kernel(kernel), args(args), order(order), threads(threads) {}

    // Gives what went wrong.
    std::string run(unsigned block);
    // On a fibre: the fresh threads of the warp.
    void run_fresh();
    // The running thread waits for those of its warp, or for its block.
    void wait_in_warp(const char *call, unsigned mask, unsigned long long gives);
    void wait(const char *call, unsigned mask, unsigned long long gives);
    // What a thread of the warp had for the running one.
    unsigned long long given(unsigned lane);
};

static thread_local Blocks *at_work;
static thread_local Fibre *unborn;
static thread_local std::vector<std::unique_ptr<Fibre>> idle;

inline Fibre::Fibre() {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack.get();
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, begin, 0);
    unborn = this;
    if (!_setjmp(outside)) setcontext(&context);
}

inline void Fibre::begin() {
    Fibre *self = unborn;
    for (;;) {
        self->leave();
        at_work->run_fresh();
    }
}

inline void Blocks::run_fresh() {
    while (position < WARP) {
        unsigned thread = first + at(order, position++, WARP);
        running = &threads[thread];
        threadIdx.x = thread;
        kernel(args);
        running->state = ENDED;
        ++ended;
    }
}

// Goes on where the fibre is, until a thread waits there or none is left to run.
inline void Blocks::resume() {
    fibre->enter();
    if (fibre) idle.push_back(std::move(fibre));
}

inline void Blocks::wait(const char *call, unsigned mask, unsigned long long gives) {
    running->state = WAITS;
    running->call = call;
    running->mask = mask;
    running->gives = gives;
    running->fibre = std::move(fibre);
    running->fibre->leave();
}

inline void Blocks::wait_in_warp(const char *call, unsigned mask, unsigned long long gives) {
    unsigned lane = threadIdx.x % WARP;
    if (mask >> lane & 1) return wait(call, mask, gives);
    misuse = std::string(call) + " is called in lane " + std::to_string(lane) + ", which its mask does not name";
}

inline unsigned long long Blocks::given(unsigned lane) {
    if (running->mask >> lane & 1) return threads[first + lane].given;
    misuse = std::string(running->call) + " reads from lane " + std::to_string(lane) + ", which its mask does not name";
    return 0;
}

// Whether all that a thread waits for wait for it, at the same.
inline bool Blocks::meets(unsigned lane) const {
    const Thread &one = threads[first + lane];
    bool met = one.state == WAITS && one.mask >> lane & 1;
    for (unsigned named = 0; named < WARP && met; ++named) {
        const Thread &other = threads[first + named];
        if (!(one.mask >> named & 1)) continue;
        met = other.state == WAITS && other.mask == one.mask && !std::strcmp(other.call, one.call);
    }
    return met;
}

// Lets threads of the warp go on that wait for each other alone.
inline bool Blocks::meet() {
    bool met = false;
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (!meets(lane)) continue;
        unsigned mask = threads[first + lane].mask;
        for (unsigned named = 0; named < WARP; ++named) {
            if (!(mask >> named & 1)) continue;
            Thread &thread = threads[first + named];
            thread.given = thread.gives;
            thread.state = READY;
        }
        met = true;
    }
    return met;
}

// A warp runs as far as it can without the others.
inline void Blocks::run_warp(unsigned warp, bool fresh) {
    std::size_t first_ended = ended;
    first = warp * WARP;
    // Threads that are fresh, then those that waited.
    for (position = fresh ? 0 : WARP; position < WARP;) {
        if (idle.empty()) idle.push_back(std::make_unique<Fibre>());
        fibre = std::move(idle.back());
        idle.pop_back();
        resume();
    }
    // Most kernels wait for nothing.
    if (ended == first_ended + WARP) return;
    do {
        for (unsigned lane = 0; lane < WARP; ++lane) {
            running = &threads[first + at(order, lane, WARP)];
            if (running->state != READY) continue;
            threadIdx.x = (unsigned)(running - threads.data());
            fibre = std::move(running->fibre);
            resume();
        }
    } while (meet());
}

inline std::string Blocks::run(unsigned block) {
    at_work = this;
    blockIdx.x = block;
    ended = 0;
    unsigned warps = (unsigned)threads.size() / WARP;
    for (bool fresh = true;; fresh = false) {
        for (unsigned warp = 0; warp < warps; ++warp) run_warp(at(order, warp, warps), fresh);
        if (!misuse.empty()) return misuse;
        if (ended == threads.size()) return "";
        for (const Thread &thread : threads) {
            if (thread.state != WAITS || thread.mask) return stuck();
        }
        for (Thread &thread : threads) thread.state = READY;
    }
}

inline std::string Blocks::stuck() const {
    auto name = [&](const Thread &thread) { return "thread " + std::to_string(&thread - threads.data()); };
    for (const Thread &thread : threads) {
        if (thread.state != WAITS) continue;
        std::size_t warp = (&thread - threads.data()) / WARP;
        for (const Thread &other : threads) {
            std::size_t number = &other - threads.data();
            bool awaited = !thread.mask || (number / WARP == warp && thread.mask >> number % WARP & 1);
            bool same = other.state == WAITS && other.mask == thread.mask && !std::strcmp(other.call, thread.call);
            if (!awaited || same) continue;
            std::string does = other.state == WAITS ? std::string("waits at ") + other.call : "has ended";
            return name(thread) + " of block " + std::to_string(blockIdx.x) + " waits at " + thread.call + " for " +
                name(other) + ", which " + does;
        }
    }
    return "threads wait for each other";
}

static inline std::string launch(
    void (*kernel)(const void *), const void *args, unsigned blocks, unsigned threads, Order order
) {
    auto run = [=](unsigned begin, unsigned step, std::string *failure) {
        gridDim.x = blocks;
        blockDim.x = threads;
        Blocks work(kernel, args, order, threads);
        for (unsigned block = begin; block < blocks && failure->empty(); block += step) {
            *failure = work.run(at(order, block, blocks));
        }
    };
    std::string failures[2];
    if (order == BESIDE && blocks > 1) {
        std::thread beside(run, 1, 2, &failures[1]);
        run(0, 2, &failures[0]);
        beside.join();
    } else {
        run(0, 1, &failures[0]);
    }
    return failures[0].empty() ? failures[1] : failures[0];
}

// The value that each thread of the warp gives, from the thread that each one names; its own where `own`.
template <typename Value>
static inline Value exchanged(const char *call, unsigned mask, Value value, unsigned from, bool own) {
    static_assert(std::is_trivially_copyable<Value>::value && sizeof value <= 8, "as CUDA has it");
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    at_work->wait_in_warp(call, mask, bits);
    if (own) return value;
    bits = at_work->given(from);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace emulator

static const int warpSize = emulator::WARP;

static inline void __syncthreads() { emulator::at_work->wait("__syncthreads", 0, 0); }

static inline void __syncwarp(unsigned mask = 0xffffffffu) { emulator::at_work->wait_in_warp("__syncwarp", mask, 0); }

static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    emulator::at_work->wait_in_warp("__ballot_sync", mask, predicate != 0);
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < emulator::WARP; ++lane) {
        if (mask >> lane & 1) ballot |= (unsigned)emulator::at_work->given(lane) << lane;
    }
    return ballot;
}

template <typename Value>
static inline Value __shfl_sync(unsigned mask, Value value, int from, int width = warpSize) {
    unsigned lane = threadIdx.x % emulator::WARP, segment = lane & ~(unsigned)(width - 1);
    return emulator::exchanged("__shfl_sync", mask, value, segment + ((unsigned)from & (unsigned)(width - 1)), false);
}

template <typename Value>
static inline Value __shfl_up_sync(unsigned mask, Value value, unsigned delta, int width = warpSize) {
    unsigned lane = threadIdx.x % emulator::WARP;
    bool own = (lane & (unsigned)(width - 1)) < delta;
    return emulator::exchanged("__shfl_up_sync", mask, value, lane - delta, own);
}

template <typename Value>
static inline Value __shfl_down_sync(unsigned mask, Value value, unsigned delta, int width = warpSize) {
    unsigned lane = threadIdx.x % emulator::WARP;
    bool own = (lane & (unsigned)(width - 1)) + delta >= (unsigned)width;
    return emulator::exchanged("__shfl_down_sync", mask, value, lane + delta, own);
}

template <typename Value>
static inline Value __shfl_xor_sync(unsigned mask, Value value, int lanes, int width = warpSize) {
    unsigned lane = threadIdx.x % emulator::WARP, from = lane ^ (unsigned)lanes;
    // To a segment behind there is no way.
    bool own = from / (unsigned)width > lane / (unsigned)width;
    return emulator::exchanged("__shfl_xor_sync", mask, value, from, own);
}

// Atomics are of integers: sums of floats would depend on their order.
template <typename Integer>
static inline Integer atomicAdd(Integer *at, Integer more) {
    static_assert(std::is_integral<Integer>::value, "no float atomics");
    return __atomic_fetch_add(at, more, __ATOMIC_RELAXED);
}

template <typename Integer>
static inline Integer atomicExch(Integer *at, Integer value) {
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

template <typename Integer>
static inline Integer atomicCAS(Integer *at, Integer expected, Integer value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

template <typename Integer>
static inline Integer atomicMax(Integer *at, Integer value) {
    Integer found = *(volatile Integer *)at;
    for (Integer before; found < value; found = before) {
        before = atomicCAS(at, found, value);
        if (before == found) break;
    }
    return found;
}

template <typename Integer>
static inline Integer atomicMin(Integer *at, Integer value) {
    Integer found = *(volatile Integer *)at;
    for (Integer before; found > value; found = before) {
        before = atomicCAS(at, found, value);
        if (before == found) break;
    }
    return found;
}

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

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

using std::fabs;

// `launch_KERNEL` gives an empty text, or what went wrong, until the thread's next launch.
#define EMULATE(kernel, Args)                                                                                       \
    extern "C" unsigned long long args_bytes_##kernel() { return sizeof(Args); }                                    \
    extern "C" const char *launch_##kernel(const void *args, unsigned blocks, unsigned threads, int order) {        \
        static thread_local std::string failure;                                                                    \
        auto run = [](const void *args) { warptape::kernel(*(const Args *)args); };                                 \
        failure = emulator::launch(run, args, blocks, threads, (emulator::Order)order);                             \
        return failure.c_str();                                                                                     \
    }
