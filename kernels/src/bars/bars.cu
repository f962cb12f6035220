// Folds trades into bars and closes them: the twin of `slab.rs`, `time.rs`, `filled.rs` and `quotes.rs`. Rows come sorted by
// slot, each slot's in log order; trades, quotes and watermarks apart.
//
//   fold_runs    one thread per RUN of trades: neighbours of one slot and bar become one part, so that a busy slot's
//                trades are folded in parallel. Folding is exact and associative.
//   close_bars   one thread per slot: merges its parts into its open bars, and closes those that are over or full.
//   fold_quotes  one thread per slot, after all specifications: its last quote.
//
// Volume bars have no parts, because where one ends depends on where the one before it ended: their trades are taken one by
// one. Prices and sizes of trades are not negative.

#include "device.cuh"

namespace warptape {

static const u64 RUN = 32;

enum Kind { TIME, TRADES, VOLUME };

struct Bar {
    i128 volume_e9;
    i128 notional_e18;
    i64 number;  // Time bars: how many intervals after the epoch. Bars of so many trades: counted in the batch.
    i64 open_time_ns;
    i64 close_time_ns;
    i64 open_e9;
    i64 high_e9;
    i64 low_e9;
    i64 close_e9;
    i64 trades;
};

// What neighbouring trades of one slot and bar come to.
struct Part {
    Bar bar;
    u32 place;
    u32 first_row;
    u32 last_row;
    u32 unused;
};

struct Trade {
    u32 place;
    u32 row;
    i64 time_ns;
    i64 price_e9;
    i64 size_e9;
};

struct Quote {
    u64 row;
    i64 bid_e9;
    i64 ask_e9;
};

// A watermark.
struct Mark {
    u64 row;
    i64 time_ns;
};

struct FoldArgs {
    u64 spec;  // Number of the specification.
    u64 kind;
    i64 parameter;  // Interval in nanoseconds, number of trades, or volume in 1e-9.
    u64 places;     // Slots that may change.
    const u32 *slot;  // By place.
    const u32 *group;  // By place: whose watermarks are its.
    u64 trades;
    const u32 *trade_begin;  // By place, and the end.
    const Trade *trade;
    const u32 *quote_begin;  // By place, and the end.
    const Quote *quote;
    const u32 *mark_begin;  // By group, and the end.
    const Mark *mark;
    u64 open_max;
    Bar *open;        // By slot, so many for each, by ascending number.
    u64 *open_count;  // By slot.
    i64 *bid_e9;      // By slot.
    i64 *ask_e9;
    Part *parts;        // By trade: each run's at its first trades.
    u32 *part_count;    // By run.
    u64 closed_max;
    u32 *closed_count;
    u32 *failed;  // Set where there were more open or closed bars than there is room for: then the state is no more good.
    u32 *first;   // By place: its first closed bar of this specification.
    u32 *closed_by_place;  // How many bars it has closed, of all specifications.
    ClosedBar *closed;
};

__device__ inline i128 greatest_i128() { return (i128)(((unsigned __int128)1 << 127) - 1); }

__device__ inline Bar bar_of_trade(const Trade &trade, i64 number) {
    i64 time_ns = trade.time_ns, price = trade.price_e9, size = trade.size_e9;
    return {(i128)size, (i128)price * size, number, time_ns, time_ns, price, price, price, price, 1};
}

// Adds what came after it.
__device__ inline void add(bool by_event_time, Bar &bar, const Bar &later) {
    if (by_event_time && later.open_time_ns < bar.open_time_ns) {
        bar.open_time_ns = later.open_time_ns;
        bar.open_e9 = later.open_e9;
    }
    if (!by_event_time || later.close_time_ns >= bar.close_time_ns) {
        bar.close_time_ns = later.close_time_ns;
        bar.close_e9 = later.close_e9;
    }
    if (later.high_e9 > bar.high_e9) bar.high_e9 = later.high_e9;
    if (later.low_e9 < bar.low_e9) bar.low_e9 = later.low_e9;
    bar.volume_e9 += later.volume_e9;
    bool fits = later.notional_e18 <= greatest_i128() - bar.notional_e18;
    bar.notional_e18 = fits ? bar.notional_e18 + later.notional_e18 : greatest_i128();
    bar.trades += later.trades;
}

__device__ inline i64 floor_divide(i64 dividend, i64 divisor) {
    i64 quotient = dividend / divisor;
    return dividend % divisor < 0 ? quotient - 1 : quotient;
}

// The ends of the range of i64 stand for times beyond them.
__device__ inline i64 time_of(i128 number, i64 interval_ns) {
    const i64 GREATEST = 0x7fffffffffffffffll;
    if (number > GREATEST) number = GREATEST;
    i128 time = number * interval_ns;
    return time > GREATEST ? GREATEST : time < -(i128)GREATEST - 1 ? -GREATEST - 1 : (i64)time;
}

__device__ inline i64 bar_number(const FoldArgs &args, u32 place, u64 trade) {
    if (args.kind == TIME) return floor_divide(args.trade[trade].time_ns, args.parameter);
    u32 slot = args.slot[place];
    i64 before = args.open_count[slot] > 0 ? args.open[slot * args.open_max].trades : 0;
    return (before + (i64)(trade - args.trade_begin[place])) / args.parameter;
}

extern "C" __global__ void fold_runs(const __grid_constant__ FoldArgs args) {
    u64 run = thread_number();
    u64 begin = run * RUN;
    if (args.kind == VOLUME || begin >= args.trades) return;
    u64 end = begin + RUN < args.trades ? begin + RUN : args.trades;
    u32 count = 0;
    Part part = {};
    for (u64 trade = begin; trade < end; ++trade) {
        const Trade &at = args.trade[trade];
        u32 place = at.place, row = at.row;
        Bar bar = bar_of_trade(at, bar_number(args, place, trade));
        if (trade > begin && part.place == place && part.bar.number == bar.number) {
            add(args.kind == TIME, part.bar, bar);
            part.last_row = row;
            continue;
        }
        if (trade > begin) args.parts[begin + count++] = part;
        part = {bar, place, row, row, 0};
    }
    args.parts[begin + count++] = part;
    args.part_count[run] = count;
}

// The first of some positions from which on a condition holds.
template <typename Condition>
__device__ u32 first_where(u32 begin, u32 end, Condition holds) {
    while (begin < end) {
        u32 middle = begin + (end - begin) / 2;
        if (holds(middle)) end = middle;
        else begin = middle + 1;
    }
    return begin;
}

// One slot's open bars.
struct Closing {
    const FoldArgs &args;
    u32 place, slot, marks_begin, marks_end;
    Bar *open;
    u32 count;
    u32 last;  // Its last closed bar.

    __device__ void close(const Bar &bar, i64 start_ns, i64 end_ns, u32 row) {
        u32 id = atomicAdd(args.closed_count, 1u);
        if (id >= args.closed_max) {
            *args.failed = 1;
            return;
        }
        if (last == NONE) args.first[place] = id;
        else args.closed[last].next = id;
        last = id;
        u32 begin = args.quote_begin[place];
        u32 behind = first_where(begin, args.quote_begin[place + 1], [&](u32 quote) { return args.quote[quote].row > row; });
        ClosedBar &closed = args.closed[id];
        closed.volume_e9 = bar.volume_e9;
        closed.notional_e18 = bar.notional_e18;
        closed.start_ns = start_ns;
        closed.end_ns = end_ns;
        closed.open_e9 = bar.open_e9;
        closed.high_e9 = bar.high_e9;
        closed.low_e9 = bar.low_e9;
        closed.close_e9 = bar.close_e9;
        closed.trades = bar.trades;
        closed.bid_e9 = behind > begin ? args.quote[behind - 1].bid_e9 : args.bid_e9[slot];
        closed.ask_e9 = behind > begin ? args.quote[behind - 1].ask_e9 : args.ask_e9[slot];
        closed.place = place;
        closed.row = row;
        closed.next = NONE;
        closed.spec = (u32)args.spec;
        closed.rank = args.closed_by_place[place]++;
    }

    // Closes the time bars that are over at the last watermark before a row.
    __device__ void close_before(u32 row) {
        u32 behind = first_where(marks_begin, marks_end, [&](u32 mark) { return args.mark[mark].row > row; });
        if (behind == marks_begin) return;
        i64 watermark_ns = args.mark[behind - 1].time_ns;
        u32 over = 0;
        for (; over < count; ++over) {
            i64 end_ns = time_of((i128)open[over].number + 1, args.parameter);
            if (end_ns > watermark_ns) break;
            u32 mark = first_where(marks_begin, behind, [&](u32 mark) { return args.mark[mark].time_ns >= end_ns; });
            close(open[over], time_of(open[over].number, args.parameter), end_ns, (u32)args.mark[mark].row);
        }
        for (u32 bar = over; bar < count; ++bar) open[bar - over] = open[bar];
        count -= over;
    }

    __device__ void add_by_time(const Part &part) {
        close_before(part.first_row);
        u32 position = first_where(0, count, [&](u32 bar) { return open[bar].number >= part.bar.number; });
        if (position < count && open[position].number == part.bar.number) {
            add(true, open[position], part.bar);
            return;
        }
        if (count >= args.open_max) {
            *args.failed = 1;
            return;
        }
        for (u32 bar = count; bar > position; --bar) open[bar] = open[bar - 1];
        open[position] = part.bar;
        ++count;
    }

    __device__ void add_until_full(const Bar &bar, u32 row) {
        if (count == 0) open[0] = bar;
        else add(false, open[0], bar);
        count = 1;
        bool full = args.kind == TRADES ? open[0].trades >= args.parameter : open[0].volume_e9 >= args.parameter;
        if (full) {
            close(open[0], open[0].open_time_ns, open[0].close_time_ns, row);
            count = 0;
        }
    }
};

extern "C" __global__ void close_bars(const __grid_constant__ FoldArgs args) {
    u64 place = thread_number();
    if (place >= args.places) return;
    u32 slot = args.slot[place], group = args.group[place];
    Closing closing = {
        args, (u32)place, slot, args.mark_begin[group], args.mark_begin[group + 1],
        args.open + slot * args.open_max, (u32)args.open_count[slot], NONE,
    };
    args.first[place] = NONE;
    u64 begin = args.trade_begin[place], end = args.trade_begin[place + 1];
    if (args.kind == VOLUME) {
        for (u64 trade = begin; trade < end; ++trade) {
            closing.add_until_full(bar_of_trade(args.trade[trade], 0), args.trade[trade].row);
        }
    } else {
        for (u64 run = begin / RUN; run * RUN < end; ++run) {
            for (u32 number = 0; number < args.part_count[run]; ++number) {
                const Part &part = args.parts[run * RUN + number];
                if (part.place != place) continue;
                if (args.kind == TIME) closing.add_by_time(part);
                else closing.add_until_full(part.bar, part.last_row);
            }
        }
    }
    if (args.kind == TIME) closing.close_before(NONE);
    args.open_count[slot] = closing.count;
}

extern "C" __global__ void fold_quotes(const __grid_constant__ FoldArgs args) {
    u64 place = thread_number();
    if (place >= args.places) return;
    u32 end = args.quote_begin[place + 1];
    if (end == args.quote_begin[place]) return;
    args.bid_e9[args.slot[place]] = args.quote[end - 1].bid_e9;
    args.ask_e9[args.slot[place]] = args.quote[end - 1].ask_e9;
}

}  // namespace warptape
