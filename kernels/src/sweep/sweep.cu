// Trading rules over the closes of a symbol: one thread per rule and symbol, which works through all its bars.

#include "device.cuh"
#include "ties.cuh"

namespace warptape {

// A rule: `DeviceRule` of the twin.
struct TradingRule {
    u64 kind;         // 0: averages crossing, 1: relative strength, 2: against the bands, 3: with them.
    u64 windows[2];   // In bars; only averages have a second one.
    double limits[2]; // Low and high; or squares of the deviations at entry and exit.
};

// Results of a rule on a symbol's bars.
struct SymbolSums {
    double profit;
    double squares;
    double drawdown;
    double trades;
};

struct SweepArgs {
    u64 rules;
    u64 symbols;
    const TradingRule *rule;
    const double *close;
    const double *change;
    const u64 *end;     // By symbol: end of its bars.
    const double *scale; // By symbol: the power of ten by which its closes are whole numbers; 0 if there is none.
    SymbolSums *sums;   // By symbol, then by rule.
    double cost;
};

// The next state of an average at a sample, counted from 1. It is 0, then the sum, then the first mean, and beyond the
// n-th sample `next`.
__device__ inline double seeded(double next, double state, double input, double sample, double length) {
    double sum = state + input;
    if (sample < 1.0) return 0.0;
    if (sample < length) return sum;
    return sample == length ? sum / length : next;
}

__device__ inline double exponential(double state, double input, double sample, double length) {
    double alpha = 2.0 / (length + 1.0);
    return seeded(state + (input - state) * alpha, state, input, sample, length);
}

__device__ inline double wilder(double state, double input, double sample, double length) {
    double inverse = 1.0 / length;
    return seeded((state * (length - 1.0) + input) * inverse, state, input, sample, length);
}

// State of a rule.
struct RuleState {
    double first;
    double second;
    double largest;  // Greatest difference of a price so far from the first, or share of a close.
    u64 limbs[3];    // Sum of the closes of a window, as a whole number: `window_sum.rs`.
    u64 next;        // Bar before which that window ends.
    double scale;
};

__device__ inline double cross(const TradingRule &rule, RuleState &state, const double *close, u64 bar, double position) {
    double fast = (double)rule.windows[0], slow = (double)rule.windows[1], sample = (double)bar + 1.0;
    state.first = exponential(state.first, close[bar], sample, fast);
    state.second = exponential(state.second, close[bar], sample, slow);
    if (sample < fast || sample < slow) return 0.0;
    return state.first > state.second ? 1.0 : state.first < state.second ? -1.0 : position;
}

__device__ inline double relative_strength(const TradingRule &rule, RuleState &state, const double *close, u64 bar,
                                           double position) {
    double length = (double)rule.windows[0], sample = (double)bar;
    double change = close[bar] - close[bar == 0 ? 0 : bar - 1];
    double up = change > 0.0 ? change : 0.0;
    state.first = wilder(state.first, up, sample, length);
    state.second = wilder(state.second, up - change, sample, length);
    if (sample < length) return 0.0;
    double scaled = 100.0 * state.first, all = state.first + state.second;
    return scaled < rule.limits[0] * all ? 1.0 : scaled > rule.limits[1] * all ? -1.0 : position;
}

// Number of bars after which windows are summed anew, as in the twin.
static const u64 CHUNK = 4096;
static const double STILL = 1e-12;
static const double LEAST_DISTANCE = 1e-150;
static const double CLOSE_SHARE = 1.0 / 4096.0;

// The sums of the window before a bar.
__device__ inline void sum_anew(RuleState &state, const double *close, u64 bar, u64 window) {
    state.first = state.second = 0.0;
    for (u64 at = bar > window ? bar - window : 0; at < bar; at++) {
        double value = close[at] - close[0];
        state.first = state.first + value;
        state.second = state.second + value * value;
    }
}

__device__ inline void add_shifted(u64 *limbs, long long number, u32 shift) {
    u32 first = shift / 64, bit = shift % 64;
    u64 sign = (u64)(number >> 63), low = (u64)number << bit;
    u64 high = bit == 0 ? sign : (u64)(number >> (64 - bit)), carry = 0;
    for (u32 place = first; place < 3; ++place) {
        u64 part = place == first ? low : place == first + 1 ? high : sign;
        u64 sum = limbs[place] + part, one = sum < part;
        limbs[place] = sum + carry;
        carry = one | (limbs[place] < carry);
    }
}

__device__ inline void add_close(u64 *limbs, double close, double scale, long long times) {
    u64 bits = (u64)__double_as_longlong(close), whole = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    u32 shift = (u32)(bits >> 52) - 1075u + 83u;
    if (scale > 0.0) whole = (u64)rounded(close * scale), shift = 0;
    add_shifted(limbs, (long long)(whole & ((1ull << 26) - 1)) * times, shift);
    add_shifted(limbs, (long long)(whole >> 26) * times, shift + 26u);
}

// The side of the window's mean on which its last close lies, exactly.
__device__ inline double side_of_mean(RuleState &state, const double *close, u64 bar, u64 length) {
    if (bar + 1 - state.next >= length) {
        state.limbs[0] = state.limbs[1] = state.limbs[2] = 0;
        state.next = bar + 1 - length;
        for (; state.next <= bar; ++state.next) add_close(state.limbs, close[state.next], state.scale, 1);
    }
    for (; state.next <= bar; ++state.next) {
        add_close(state.limbs, close[state.next], state.scale, 1);
        if (state.next >= length) add_close(state.limbs, close[state.next - length], state.scale, -1);
    }
    u64 less[3] = {state.limbs[0], state.limbs[1], state.limbs[2]};
    add_close(less, close[bar], state.scale, -(long long)length);
    if ((less[0] | less[1] | less[2]) == 0) return 0.0;
    return (long long)less[2] < 0 ? 1.0 : -1.0;
}

__device__ inline double bands(const TradingRule &rule, RuleState &state, const double *close, u64 bar, double position) {
    u64 window = rule.windows[0];
    double value = close[bar] - close[0], inverse = 1.0 / (double)window;
    double oldest = bar >= window ? close[bar - window] - close[0] : 0.0;
    if (bar % CHUNK == 0) sum_anew(state, close, bar, window);
    state.first = state.first + (value - oldest);
    state.second = state.second + (value * value - oldest * oldest);
    double doubtful = close[bar] * CLOSE_SHARE;
    double size = fabs(value) > doubtful ? fabs(value) : doubtful;
    if (size > state.largest) state.largest = size;
    if (bar + 1 < window) return 0.0;
    double mean = state.first * inverse, mean_square = state.second * inverse;
    double variance = mean_square - mean * mean;
    bool varies = variance > STILL * mean_square;
    if (!varies) variance = 0.0;
    double distance = varies ? value - mean : 0.0;
    double doubt = ((double)window + 2.0 * (double)CHUNK + 8.0) * 2.220446049250313e-16;
    if (varies && fabs(distance) <= doubt * state.largest) {
        double exact = side_of_mean(state, close, bar, window);
        double least = fabs(distance) > LEAST_DISTANCE ? fabs(distance) : LEAST_DISTANCE;
        distance = exact == 0.0 ? 0.0 : exact * least;
    }
    double square = distance * distance;
    double side = distance > 0.0 ? 1.0 : -1.0;
    bool reversion = rule.kind == 2;
    if (square > rule.limits[0] * variance) return reversion ? -side : side;
    bool over = reversion ? square <= rule.limits[1] * variance : position * distance < 0.0;
    return over ? 0.0 : position;
}

extern "C" __global__ void sweep_rules(const __grid_constant__ SweepArgs args) {
    u64 thread = thread_number();
    if (thread >= args.rules * args.symbols) return;
    // Threads side by side read the same closes.
    u64 symbol = thread / args.rules;
    u64 begin = symbol == 0 ? 0 : args.end[symbol - 1], bars = args.end[symbol] - begin;
    const double *close = args.close + begin, *change = args.change + begin;
    TradingRule rule = args.rule[thread % args.rules];
    RuleState state = {0.0, 0.0, 0.0, {0, 0, 0}, 0, args.scale[symbol]};
    SymbolSums sums = {0.0, 0.0, 0.0, 0.0};
    double position = 0.0, peak = 0.0;
    for (u64 bar = 0; bar < bars; bar++) {
        double target = rule.kind == 0   ? cross(rule, state, close, bar, position)
                        : rule.kind == 1 ? relative_strength(rule, state, close, bar, position)
                                         : bands(rule, state, close, bar, position);
        double traded = fabs(target - position);
        double profit = position * change[bar] - args.cost * traded;
        sums.profit = sums.profit + profit;
        sums.squares = sums.squares + profit * profit;
        if (sums.profit > peak) peak = sums.profit;
        double below = peak - sums.profit;
        if (below > sums.drawdown) sums.drawdown = below;
        if (traded > 0.0 && target != 0.0) sums.trades = sums.trades + 1.0;
        position = target;
    }
    args.sums[thread] = sums;
}

}  // namespace warptape
