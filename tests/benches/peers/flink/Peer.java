import java.io.BufferedWriter;
import java.io.IOException;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Flink's embedded mini cluster as a rival: {@code Peer SPECS EMAS CROSSINGS THREADS TICKS BARS}, as the program in Rust beside it. The time counts
 * from the first tick that leaves the source to the last bar at the sink.
 */
public final class Peer {
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long MS_NS = 1_000_000L;
    private static final int TICK_BYTES = 32;
    private static final int FAST = 38;
    private static final int SLOW = 100;

    // The mini cluster runs in this process, so its source and its sink reach these.
    static Tick[] ticks;
    static final ConcurrentLinkedQueue<Bar> BARS = new ConcurrentLinkedQueue<>();
    static volatile Clock first;
    static volatile Clock last;

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        String[] lengths = arguments[0].split(",");
        boolean averages = arguments[1].equals("1");
        boolean crossings = arguments[2].equals("1");
        ticks = readTicks(Path.of(arguments[4]));

        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(arguments[3]), new Configuration());
        environment.getConfig().enableObjectReuse();
        DataGeneratorSource<Tick> source = new DataGeneratorSource<>(Peer::tick, ticks.length, TypeInformation.of(Tick.class));
        WatermarkStrategy<Tick> watermarks =
                WatermarkStrategy.<Tick>forMonotonousTimestamps().withTimestampAssigner((tick, before) -> tick.timeNs / MS_NS);
        DataStream<Tick> trades = environment.fromSource(source, watermarks, "ticks").setParallelism(1).filter(tick -> tick.isTrade).setParallelism(1);
        for (String length : lengths) {
            SingleOutputStreamOperator<Bar> bars = trades.keyBy(tick -> tick.symbol)
                    .window(TumblingEventTimeWindows.of(Duration.ofSeconds(Long.parseLong(length))))
                    .aggregate(new Fold(), new Name());
            if (averages) {
                bars = DataStreamUtils.reinterpretAsKeyedStream(bars, bar -> bar.symbol).map(new Averages(crossings));
            }
            bars.sinkTo(new Collect());
        }
        environment.execute("bars");
        write(Path.of(arguments[5]), averages, crossings);
        System.out.printf("{\"wall_s\": %s, \"cpu_s\": %s}%n", (last.wallNs - first.wallNs) / 1e9, (last.cpuNs - first.cpuNs) / 1e9);
    }

    private static Tick tick(long index) {
        if (index == 0) {
            first = new Clock();
        }
        return ticks[(int) index];
    }

    private static Tick[] readTicks(Path path) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate((int) Files.size(path)).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel file = FileChannel.open(path)) {
            while (bytes.hasRemaining() && file.read(bytes) >= 0) {}
        }
        bytes.flip();
        Tick[] read = new Tick[bytes.limit() / TICK_BYTES];
        for (int i = 0; i < read.length; i++) {
            read[i] = new Tick();
            read[i].timeNs = bytes.getLong();
            read[i].symbol = bytes.getInt();
            read[i].isTrade = bytes.getInt() == 1;
            read[i].price = bytes.getLong();
            read[i].size = bytes.getLong();
        }
        return read;
    }

    private static void write(Path path, boolean averages, boolean crossings) throws IOException {
        try (BufferedWriter out = Files.newBufferedWriter(path)) {
            for (Bar bar : BARS) {
                out.write(bar.symbol + "," + bar.lengthS + "," + bar.startNs + "," + bar.open + "," + bar.high + "," + bar.low + "," + bar.close + ","
                        + bar.volume + "," + bar.trades);
                if (averages) {
                    out.write("," + text(bar.fast) + "," + text(bar.slow));
                }
                out.write(crossings ? "," + bar.crossing + "\n" : "\n");
            }
        }
    }

    private static String text(double average) {
        return Double.isNaN(average) ? "" : Double.toString(average);
    }

    /** Wall clock and processor time of the process at one moment. */
    static final class Clock {
        final long wallNs = System.nanoTime();
        final long cpuNs = ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** A trade or a quote; times in ns since the epoch, prices and sizes in units of 1e-9. */
    public static final class Tick {
        public long timeNs;
        public int symbol;
        public boolean isTrade;
        public long price;
        public long size;
    }

    /** A bar of trades; {@code NaN} for an average without a value. */
    public static final class Bar {
        public int symbol;
        public long lengthS;
        public long startNs;
        public long open;
        public long high = Long.MIN_VALUE;
        public long low = Long.MAX_VALUE;
        public long close;
        public long volume;
        public long trades;
        public double fast = Double.NaN;
        public double slow = Double.NaN;
        public int crossing;
    }

    static final class Fold implements AggregateFunction<Tick, Bar, Bar> {
        @Override
        public Bar createAccumulator() {
            return new Bar();
        }

        @Override
        public Bar add(Tick tick, Bar bar) {
            if (bar.trades == 0) {
                bar.open = tick.price;
            }
            bar.high = Math.max(bar.high, tick.price);
            bar.low = Math.min(bar.low, tick.price);
            bar.close = tick.price;
            bar.volume += tick.size;
            bar.trades++;
            return bar;
        }

        @Override
        public Bar getResult(Bar bar) {
            return bar;
        }

        @Override
        public Bar merge(Bar left, Bar right) {
            throw new UnsupportedOperationException("tumbling windows do not merge");
        }
    }

    /** Adds the symbol and the window to a bar. */
    static final class Name extends ProcessWindowFunction<Bar, Bar, Integer, TimeWindow> {
        @Override
        public void process(Integer symbol, Context context, Iterable<Bar> folded, Collector<Bar> out) {
            Bar bar = folded.iterator().next();
            bar.symbol = symbol;
            bar.startNs = context.window().getStart() * MS_NS;
            bar.lengthS = (context.window().getEnd() - context.window().getStart()) * MS_NS / SECOND_NS;
            out.collect(bar);
        }
    }

    /** Both averages of a symbol, and their values after the bar before. */
    public static final class State implements Serializable {
        public long values;
        public double fast;
        public double slow;
    }

    static final class Averages extends RichMapFunction<Bar, Bar> {
        private final boolean crossings;
        private transient ValueState<State> states;

        Averages(boolean crossings) {
            this.crossings = crossings;
        }

        @Override
        public void open(OpenContext context) {
            states = getRuntimeContext().getState(new ValueStateDescriptor<>("averages", State.class));
        }

        @Override
        public Bar map(Bar bar) throws IOException {
            State state = states.value();
            if (state == null) {
                state = new State();
            }
            boolean comparable = state.values >= SLOW;
            double fastBefore = state.fast;
            double slowBefore = state.slow;
            double close = bar.close / 1e9;
            state.fast = next(state.fast, close, state.values, FAST);
            state.slow = next(state.slow, close, state.values, SLOW);
            state.values++;
            bar.fast = state.values >= FAST ? state.fast : Double.NaN;
            bar.slow = state.values >= SLOW ? state.slow : Double.NaN;
            if (crossings && comparable) {
                boolean up = bar.fast > bar.slow && fastBefore <= slowBefore;
                boolean down = bar.fast < bar.slow && fastBefore >= slowBefore;
                bar.crossing = (up ? 1 : 0) - (down ? 1 : 0);
            }
            states.update(state);
            return bar;
        }

        /** Returns the sum of the closes while the window fills, their mean when it is full, and the average afterwards. */
        private static double next(double before, double close, long values, int window) {
            if (values >= window) {
                return before + (close - before) * (2.0 / (window + 1));
            }
            return values + 1 == window ? (before + close) / window : before + close;
        }
    }

    /** Keeps all bars in this process. */
    static final class Collect implements Sink<Bar> {
        @Override
        public SinkWriter<Bar> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                @Override
                public void write(Bar bar, Context unused) {
                    BARS.add(bar);
                }

                @Override
                public void flush(boolean isEnd) {
                    if (isEnd) {
                        last = new Clock();
                    }
                }

                @Override
                public void close() {}
            };
        }
    }
}
