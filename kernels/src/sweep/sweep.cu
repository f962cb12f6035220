// Trading rules over the closes of a symbol: one thread per rule and symbol, which works through all its bars.

#include "device.cuh"

namespace warptape {

// A rule: `DeviceRule` of the twin.
struct TradingRule {
    u64 kind;         // 0: averages crossing, 1: relative strength, 2: against the bands, 3: with them.
    u64 windows[2];   // In bars; the second of averages alone.
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
    const u64 *end;     // By symbol: where its bars end.
    SymbolSums *sums;   // By symbol, then by rule.
    double cost;
};

// The next state of an average over n samples, which are counted from 1: `next` beyond the n-th, and the sum or the first mean before.
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

// The sums of the window before a bar.
__device__ inline void sum_anew(RuleState &state, const double *close, u64 bar, u64 window) {
    state = {0.0, 0.0};
    for (u64 at = bar > window ? bar - window : 0; at < bar; at++) {
        double value = close[at] - close[0];
        state.first = state.first + value;
        state.second = state.second + value * value;
    }
}

__device__ inline double bands(const TradingRule &rule, RuleState &state, const double *close, u64 bar, double position) {
    u64 window = rule.windows[0];
    double value = close[bar] - close[0], inverse = 1.0 / (double)window;
    double oldest = bar >= window ? close[bar - window] - close[0] : 0.0;
    if (bar % CHUNK == 0) sum_anew(state, close, bar, window);
    state.first = state.first + (value - oldest);
    state.second = state.second + (value * value - oldest * oldest);
    if (bar + 1 < window) return 0.0;
    double mean = state.first * inverse, mean_square = state.second * inverse;
    double variance = mean_square - mean * mean;
    bool varies = variance > STILL * mean_square;
    if (!varies) variance = 0.0;
    double distance = varies ? value - mean : 0.0, square = distance * distance;
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
    RuleState state = {0.0, 0.0};
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
